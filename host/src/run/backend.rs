//! Uses a running bitcoind as the node, and forwards calls to it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bitcoin::Network;
use futures_util::future::BoxFuture;
use outrigger_bitcoind::{BitcoindNode, OpenError, Rpc, Settings, greeting};
use outrigger_node::{ChainIdentity, Node, NodeEvent, Observer};
use outrigger_passthrough::{NodeTip, Passthrough, Submission, Taps};
use outrigger_upstream::{Endpoint, Upstream};
use outrigger_values::FeeRate;
use outrigger_wallet_engine::WalletManager;
use tokio::sync::watch;

use super::configuration::known_login;
use super::rights::refuse_lacking;
use super::{RunError, failed, no_threads};
use crate::config::{BackendConfig, Config, LoadedConfig, Wallets, seconds};

/// The most concurrent requests of services and wallets to the node.
const SERVICE_REQUESTS: usize = 4;

/// Connections reserved for these requests, besides those for long polls. They also use the connections for forwarded calls.
pub const OWN_CONNECTIONS: usize = 1;

/// The most connections that the host may open to a node with a connection limit. Bitcoin Core 32 serves 16
/// (`-rpcmaxconnections`) and keeps others waiting; the host leaves 4 to other clients of the node.
const MOST_CONNECTIONS: usize = 12;
/// The first release with that limit.
const RELEASE_OF_CONNECTIONS: u32 = 32;

/// The error text if the node may keep some of the host's connections waiting; `None` if its limit suffices.
pub fn too_many_connections(config: &BackendConfig, release: u32) -> Option<String> {
    let others = config.long_connections + OWN_CONNECTIONS;
    let most = config.connections + others;
    (release >= RELEASE_OF_CONNECTIONS && most > MOST_CONNECTIONS).then(|| {
        let remedy = match MOST_CONNECTIONS.saturating_sub(others) {
            0 => format!("set backend.long_connections to at most {}", MOST_CONNECTIONS - OWN_CONNECTIONS - 1),
            most => format!("set backend.connections to at most {most}"),
        };
        format!(
            "the host would keep up to {most} connections to the node, which serves 16 in all since Bitcoin Core {RELEASE_OF_CONNECTIONS} \
             (rpcmaxconnections); {remedy}"
        )
    })
}

/// How long the answer to a forwarded call waits until the host has processed the call's effects.
const FOLLOW_PATIENCE: Duration = Duration::from_secs(5);

pub struct Backend {
    pub node: Arc<BitcoindNode>,
    upstream: Arc<Upstream>,
}

impl Backend {
    /// Starts to follow the configured node.
    ///
    /// # Errors
    /// The node is on another chain, too old, or refuses the credentials or a vital method; or the mirror cannot be opened.
    pub fn open(
        loaded: &LoadedConfig,
        config: &BackendConfig,
        network: Network,
        release: Option<u32>,
        folder: &Path,
    ) -> Result<Self, RunError> {
        let endpoint: Endpoint =
            config.url.parse().map_err(|error| RunError::Failed(format!("backend.url: {error}")))?;
        let login = known_login(loaded, config)?;
        let chain = config.chain(network).unwrap_or_else(|| ChainIdentity::of(network));
        // Not greeted: if the node refuses the method of the greeting, no other method could be tried on the connection.
        let plain = Upstream::new(endpoint.clone(), login.clone(), 1);
        let upstream = Upstream::new(endpoint, login.clone(), config.connections)
            .greeted(Arc::new(greeting(chain.clone())))
            .polled(Duration::from_micros(config.busy_poll_microseconds));
        // Separate, so that clients' requests cannot keep the host from following the node.
        let service = upstream.for_host(SERVICE_REQUESTS, config.long_connections + OWN_CONNECTIONS);
        let (upstream, service) = (Arc::new(upstream), Arc::new(service));
        let settings = Settings {
            network,
            release,
            chain: chain.clone(),
            folder: folder.join("headers"),
            filters: folder.join("filters"),
            filter_cache: config.filter_cache_mib << 20,
            use_filters: config.filters,
            max_estimate: FeeRate::from_sat_per_kvb(config.max_estimate.saturating_mul(1_000)),
            rewind: config.rewind(network),
            behind_patience: Duration::from_secs(config.behind_seconds),
            patience: seconds(config.patience_seconds),
            zmq: config.zmq().map_err(|error| RunError::Failed(format!("backend.zmq: {error}")))?,
            may_wait: config.long_connections > 0,
        };
        let node = BitcoindNode::open(service, &settings).map_err(|error| open_error(loaded, error))?;
        refuse_lacking(loaded, &Rpc::start(Arc::new(plain)).map_err(no_threads)?, &login)?;
        if let Some(warning) = node.node_release().and_then(|release| too_many_connections(config, release)) {
            tracing::warn!("{warning}");
        }
        Ok(Self { node, upstream })
    }

    pub fn passthrough(
        &self,
        config: &Config,
        backend: &BackendConfig,
        manager: &Arc<WalletManager>,
        stop: watch::Receiver<bool>,
    ) -> Passthrough {
        let settings = outrigger_passthrough::Settings {
            node_wallets: backend.wallets == Wallets::Node,
            deny: backend.deny.iter().cloned().collect(),
            max_long_calls: config.rpc.max_long_calls(),
            shutdown_grace: Duration::from_secs(config.rpc.shutdown_grace_seconds),
        };
        let now = |node: &BitcoindNode| NodeTip { hash: node.tip().hash, height: node.tip().height };
        let (sender, tips) = watch::channel(now(&self.node));
        self.node.observe(Arc::new(TipWatch(sender.clone())));
        // A block may have arrived before the observer was registered.
        sender.send_replace(now(&self.node));
        let taps = NodeTaps { node: self.node.clone(), wallets: manager.clone() };
        Passthrough::new(self.upstream.clone(), settings, Arc::new(taps), tips, stop)
    }
}

/// Converts an error about the node: a configuration error if the node is unsuitable, otherwise a failure.
pub fn open_error(loaded: &LoadedConfig, error: OpenError) -> RunError {
    match error {
        OpenError::Foreign(reason) => loaded.error("network", &loaded.config.network, reason).into(),
        OpenError::Credentials(_) | OpenError::TooOld { .. } => loaded.error("backend", "", error.to_string()).into(),
        error => failed("backend")(error.into()),
    }
}

/// Sends new tips to forwarded calls that wait for them.
struct TipWatch(watch::Sender<NodeTip>);

impl Observer for TipWatch {
    fn notify(&self, event: NodeEvent) {
        if let NodeEvent::TipChanged { hash, height } = event {
            self.0.send_replace(NodeTip { hash, height });
        }
    }
}

/// Makes the host process the effects of forwarded calls.
struct NodeTaps {
    node: Arc<BitcoindNode>,
    wallets: Arc<WalletManager>,
}

impl NodeTaps {
    /// Synchronises chain and mempool, or only adds the transaction that the node accepted. Finally runs `then`.
    fn follow(&self, submission: Option<Submission>, then: impl FnOnce() + Send + 'static) -> BoxFuture<'static, ()> {
        let node = self.node.clone();
        Box::pin(async move {
            let following = tokio::task::spawn_blocking(move || {
                let follower = node.follower();
                let followed = match &submission {
                    Some(Submission { transaction, best, entry }) => follower.take_accepted(transaction, best, entry),
                    None => follower.sync_chain().and_then(|_| follower.sync_mempool(true)),
                };
                if let Err(error) = followed {
                    tracing::debug!(%error, "the host follows the effects of a forwarded call later");
                }
                then();
            });
            // The node has executed the call, so a slow sync must not delay its answer for long.
            let _ = tokio::time::timeout(FOLLOW_PATIENCE, following).await;
        })
    }
}

impl Taps for NodeTaps {
    fn answered(&self) {
        self.node.follower().note_passed();
    }

    fn unconfirmed(&self) -> Option<u64> {
        self.node.follower().unconfirmed()
    }

    fn caught_up(&self) -> BoxFuture<'static, ()> {
        let node = self.node.clone();
        Box::pin(async move {
            // After a panic, which its thread logs, the tip is unchanged.
            let _ = tokio::task::spawn_blocking(move || node.follower().catch_up()).await;
        })
    }

    fn changed(&self, submission: Option<Submission>) -> BoxFuture<'static, ()> {
        self.follow(submission, || ())
    }

    fn time_set(&self, seconds: u64) {
        self.node.follower().clock.set(seconds);
    }

    fn wallets_synced(&self) -> BoxFuture<'static, ()> {
        let wallets = self.wallets.clone();
        self.follow(None, move || wallets.wait_for_all())
    }
}

//! The state of the host's parts, read at each scrape.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType::{self, Counter, Gauge, Histogram};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use serde_json::{Value, json};

use crate::backups::{Figure, Figures, Kind};
use outrigger_node::{Link, Node};
use outrigger_passthrough::Passthrough;
use outrigger_plugins::metrics::Series;
use outrigger_plugins::pool::Pool;
use outrigger_plugins::registry::{Plugin, Registry};
use outrigger_rpc::EdgeFigures;
use outrigger_services::Stores;
use outrigger_wallet_engine::{WalletManager, WalletStatus};

const MILLIONTH: f64 = 1e-6;

#[derive(Clone)]
pub struct Standing {
    pub node: Arc<dyn Node>,
    pub wallets: Arc<WalletManager>,
    pub plugins: Arc<Registry>,
    pub pool: Arc<Pool>,
    pub stores: Arc<Stores>,
    /// The figures of the backups, and the longest time between two backups in seconds; `None` without backups.
    pub backups: Option<(Figures, u64)>,
    pub edge: Arc<EdgeFigures>,
    pub passthrough: Option<Arc<Passthrough>>,
}

impl fmt::Debug for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Standing")
    }
}

impl Collector for Standing {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let mut page = Page(encoder, BTreeSet::new());
        self.edge(&mut page)?;
        page.gauge("calls_queued", "Calls that wait for a thread", count(self.pool.queued()))?;
        self.chain(&mut page)?;
        self.wallets(&mut page)?;
        self.plugins(&mut page)?;
        self.backups(&mut page)?;
        process(&mut page)
    }
}

impl Standing {
    fn edge(&self, page: &mut Page<'_>) -> fmt::Result {
        let edge = &*self.edge;
        page.gauge("connections", "Open connections of clients", count(edge.open.load(Ordering::Relaxed)))?;
        let help = "Answers not read by their clients";
        page.gauge("unread_reply_bytes", help, read(&edge.unread_bytes))?;
        page.counter("wrong_credentials", "Requests with wrong credentials", read(&edge.wrong_credentials))?;
        let help = "Requests refused because too many of their address waited for the credential check";
        page.counter("refused_attempts", help, read(&edge.refused_attempts))?;
        let help = "Connections without credentials closed to make room for others";
        page.counter("connections_displaced", help, read(&edge.displaced))?;
        let help = "Connections reset because of too many unread bytes";
        page.counter("connections_cut_unread", help, read(&edge.cut_unread))
    }

    fn chain(&self, page: &mut Page<'_>) -> fmt::Result {
        let tip = self.node.tip();
        page.gauge("chain_height", "Height of the best block", f64::from(tip.height))?;
        page.gauge("chain_tip_time_seconds", "Time in the best block's header", number(u64::from(tip.time)))?;
        let help = "Reorganisations of at least wallet.reorganisation_notice blocks";
        page.counter("deep_reorganisations", help, number(self.wallets.deep_reorganisations()))?;
        if let Some(link) = self.node.link() {
            self.link(page, link)?;
            // A request to an unreachable node would block.
            if !link.reached {
                return Ok(());
            }
        }
        // These metrics are omitted if the node does not answer.
        let Ok(mempool) = self.node.mempool_info() else { return Ok(()) };
        page.gauge("mempool_transactions", "Transactions in the mempool", number(mempool.transactions))?;
        let help = "Virtual size of the mempool's transactions";
        page.gauge("mempool_virtual_bytes", help, number(mempool.virtual_size))?;
        page.gauge("mempool_memory_bytes", "Memory used by the mempool", number(mempool.usage))?;
        let help = "Minimum feerate of the mempool, in satoshi per 1000 virtual bytes";
        page.gauge("mempool_min_feerate", help, number(mempool.min_feerate.to_sat_per_kvb()))
    }

    fn link(&self, page: &mut Page<'_>, link: Link) -> fmt::Result {
        page.gauge("node_reached", "Whether the node answered when it was last asked", flag(link.reached))?;
        let help = "Blocks by which the node is behind the host's chain";
        page.gauge("node_blocks_behind", help, f64::from(link.behind))?;
        let help = "Source of hints about the node's changes: zmq, wait (a long poll) or poll";
        page.family("node_hints", help, Gauge, "source", std::iter::once((link.hints.name().to_owned(), 1.0)))?;
        let help = "Replies of the node with another block or transaction than requested, which were ignored";
        page.counter("node_unproven", help, number(link.unproven))?;
        let filters = [("kept", link.filters_kept), ("node", link.filters_fetched)];
        let filters = filters.into_iter().map(|(from, count)| (from.to_owned(), number(count)));
        page.family("node_filters", "Block filters read by rescans, by source", Counter, "from", filters)?;
        let figures = self.requests(&link);
        let mut counters = |name, help, at: usize, unit: f64| {
            let counts = figures.iter().map(|(what, counts)| ((*what).to_owned(), number(counts[at]) * unit));
            page.family(name, help, Counter, "what", counts)
        };
        let help = "Requests sent to the node: the host's own, and forwarded calls";
        counters("node_requests", help, 0, 1.0)?;
        counters("node_failures", "Requests to the node without a reply", 1, 1.0)?;
        counters("node_replies", "Replies of the node", 2, 1.0)?;
        let help = "Time from the requests to the node to the first bytes of its replies";
        counters("node_reply_seconds", help, 3, MILLIONTH)
    }

    /// The result of `gethostinfo`.
    pub fn info(&self) -> Value {
        let mut info = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "connections": self.edge.open.load(Ordering::Relaxed),
            "waiting_calls": self.pool.queued(),
        });
        if let Some(link) = self.node.link() {
            let sum = |at: usize| self.requests(&link).iter().map(|(_, counts)| counts[at]).sum::<u64>();
            info["node"] = json!({
                "reached": link.reached, "blocks_behind": link.behind, "replies": sum(2), "time_us": sum(3),
            });
        }
        info
    }

    /// The counts of requests, failures and replies, and the total reply time in microseconds: for the host's own requests, and for
    /// forwarded calls.
    fn requests(&self, link: &Link) -> Vec<(&'static str, [u64; 4])> {
        let mut figures = vec![("own", [link.requests, link.failures, link.replies, link.reply_microseconds])];
        if let Some(passed) = self.passthrough.as_ref().map(|passed| passed.figures()) {
            let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            let counts = [&passed.requests, &passed.failures, &passed.replies, &passed.reply_microseconds].map(read);
            figures.push(("passed", counts));
        }
        figures
    }

    /// Whether the host is ready: the node is reachable, keeps connections open and is not stalled, and each wallet of the load list is
    /// loaded and up to date.
    pub fn is_ready(&self) -> bool {
        self.node.link().is_none_or(|link| link.reached && !link.ends_connections && !link.stalled)
            && self.wallets.missing().is_empty()
            && self.wallets.status().iter().all(|wallet| !wallet.lagging)
    }

    fn wallets(&self, page: &mut Page<'_>) -> fmt::Result {
        let wallets = self.wallets.status();
        let mut told = |name: &str, help: &str, kind, value: fn(&WalletStatus) -> Option<f64>| {
            let values = wallets.iter().filter_map(|wallet| Some((wallet.name.clone(), value(wallet)?)));
            page.family(name, help, kind, "wallet", values)
        };
        let help = "Height of the block up to which a wallet has followed the chain";
        told("wallet_height", help, Gauge, |wallet| Some(f64::from(wallet.height)))?;
        let help = "Whether a wallet could not follow the chain when it last tried";
        told("wallet_lagging", help, Gauge, |wallet| Some(flag(wallet.lagging)))?;
        let help = "Payments of a wallet that are neither confirmed nor in the mempool, though they could be";
        told("wallet_payments_unsent", help, Gauge, |wallet| Some(number(wallet.unsent)))?;
        let help = "Progress of a wallet's rescan, from 0 to 1";
        told("wallet_rescan_progress", help, Gauge, |wallet| {
            wallet.rescan.as_ref().map(|rescan| f64::from(rescan.millionths) * MILLIONTH)
        })?;
        let help = "Attempts to unlock a wallet with a wrong passphrase since it was loaded";
        told("wallet_wrong_passphrases", help, Counter, |wallet| Some(number(wallet.wrong_passphrases)))
    }

    fn backups(&self, page: &mut Page<'_>) -> fmt::Result {
        let Some((figures, every)) = &self.backups else { return Ok(()) };
        page.gauge("backup_every_seconds", "The longest time between two backups (backup.every)", number(*every))?;
        let figures = figures.lock().clone();
        for (kind, what, label) in [(Kind::Wallet, "wallet", "wallet"), (Kind::Store, "plugin_store", "plugin")] {
            let of = |value: fn(&Figure) -> u64| {
                let of_kind = figures.iter().filter(move |(source, _)| source.kind == kind);
                of_kind.map(move |(source, figure)| (source.name.clone(), number(value(figure))))
            };
            let help = "Time of the last good backup, in seconds since 1970; 0 without one";
            page.family(&format!("{what}_last_backup_time_seconds"), help, Gauge, label, of(|one| one.last_good))?;
            let help = "Failed backups since the host started";
            page.family(&format!("{what}_backup_failures"), help, Counter, label, of(|one| one.failures))?;
        }
        Ok(())
    }

    fn plugins(&self, page: &mut Page<'_>) -> fmt::Result {
        let serving = self.plugins.serving();
        let state = |plugin: &Plugin| plugin.instance.as_ref().map(|instance| instance.state().name());
        let states = serving.plugins.iter().map(|plugin| {
            let labels = [("plugin", plugin.id().to_owned()), ("state", state(plugin).unwrap_or("stopped").to_owned())];
            (labels, 1.0)
        });
        page.labelled("plugin_state", "State of a plugin", Gauge, states)?;
        let mut told = |name: &str, help: &str, value: fn(&Plugin) -> f64| {
            let values = serving.plugins.iter().map(|plugin| (plugin.id().to_owned(), value(plugin)));
            page.family(name, help, Counter, "plugin", values)
        };
        told("plugin_calls", "Calls of a plugin begun", |plugin| read(&plugin.health.calls))?;
        told("plugin_errors", "Calls of a plugin answered with an error", |plugin| read(&plugin.health.errors))?;
        told("plugin_faults", "Faults of a plugin's code", |plugin| read(&plugin.health.faults))?;
        told("plugin_timeouts", "Calls of a plugin whose deadline passed", |plugin| read(&plugin.health.timeouts))?;
        told("plugin_restarts", "Restarts of a plugin by the host", |plugin| number(plugin.restart_count))?;
        told("plugin_busy_seconds", "Time inside a plugin's code", |plugin| {
            number(plugin.health.microseconds()) * MILLIONTH
        })?;
        let stores = self.stores.usage();
        let used = stores.iter().map(|(plugin, usage)| (plugin.clone(), number(usage.bytes)));
        page.family("plugin_store_bytes", "Bytes that a plugin's store takes", Gauge, "plugin", used)?;
        let bounds = stores.iter().map(|(plugin, usage)| (plugin.clone(), number(usage.bound)));
        page.family("plugin_store_bound_bytes", "Bytes that a plugin's store may take", Gauge, "plugin", bounds)?;
        isolated(page, &serving.plugins)?;
        let dropped = |plugin: &Plugin| (plugin.id().to_owned(), number(plugin.health.metrics.read().1));
        let (help, dropped) = ("Samples of a plugin beyond its number of series", serving.plugins.iter().map(dropped));
        page.family("plugin_samples_dropped", help, Counter, "plugin", dropped)?;
        serving.plugins.iter().try_for_each(|plugin| own(page, plugin))
    }
}

/// The metrics that a plugin records itself (`metrics/1`).
fn own(page: &mut Page<'_>, plugin: &Plugin) -> fmt::Result {
    for (name, metric) in plugin.health.metrics.read().0 {
        let name = format!("plugin_{}_{name}", plugin.id().replace('-', "_"));
        // The host, or a plugin with a similar id, already has a metric of this name.
        if !page.1.insert(name.clone()) {
            continue;
        }
        let kind = match metric.series.values().next() {
            Some(Series::Counter(_)) => Counter,
            Some(Series::Histogram { .. }) => Histogram,
            _ => Gauge,
        };
        let mut encoder = page.0.encode_descriptor(&name, &metric.help, None, kind)?;
        for (labels, series) in &metric.series {
            let mut encoder = encoder.encode_family(labels)?;
            match series {
                Series::Counter(count) => ConstCounter::new(*count).encode(encoder)?,
                Series::Gauge(level) => ConstGauge::new(*level).encode(encoder)?,
                Series::Histogram { buckets, sum, count } => {
                    let beyond = count.saturating_sub(buckets.iter().map(|(_, sizes)| sizes).sum());
                    let buckets = buckets.iter().map(|(bound, sizes)| (number(*bound), *sizes));
                    let buckets: Vec<(f64, u64)> = buckets.chain([(f64::INFINITY, beyond)]).collect();
                    encoder.encode_histogram::<Vec<(String, String)>>(number(*sum), *count, &buckets, None)?;
                }
            }
        }
    }
    Ok(())
}

fn isolated(page: &mut Page<'_>, plugins: &[Plugin]) -> fmt::Result {
    let isolated = || plugins.iter().filter(|plugin| plugin.code.as_ref().is_some_and(|code| code.is_isolated()));
    let of = |plugin: &Plugin| plugin.id().to_owned();
    let pids = isolated().filter_map(|plugin| Some((of(plugin), f64::from(*plugin.runners.read().pids.last()?))));
    page.family("plugin_process_id", "The process of an isolated plugin", Gauge, "plugin", pids)?;
    let layers = isolated().flat_map(|plugin| {
        let held = plugin.runners.read().enforced.unwrap_or_default();
        let layers = [
            ("seccomp", flag(held.seccomp)),
            ("reports", flag(held.reported)),
            ("landlock_abi", f64::from(held.landlock_abi)),
            ("namespaces", count(held.namespaces.len())),
            ("root", flag(held.root)),
        ];
        layers.map(|(layer, value)| ([("plugin", of(plugin)), ("layer", layer.to_owned())], value))
    });
    let help = "Sandbox of an isolated plugin's process: 1 or 0 per layer, the version of landlock_abi, the number of namespaces";
    page.labelled("plugin_sandbox", help, Gauge, layers)?;
    let crashes = isolated().map(|plugin| (of(plugin), number(plugin.runners.read().crashes)));
    page.family("plugin_crashes", "Unexpected ends of an isolated plugin's process", Counter, "plugin", crashes)?;
    let denials = isolated().flat_map(|plugin| {
        let kinds = plugin.runners.read().denials.by_kind;
        kinds.into_iter().map(|(kind, of_kind)| ([("plugin", of(plugin)), ("kind", kind)], number(of_kind.count)))
    });
    let help = "System calls of an isolated plugin denied by the sandbox, by kind";
    page.labelled("plugin_denials", help, Counter, denials)
}

fn read(counter: &AtomicU64) -> f64 {
    number(counter.load(Ordering::Relaxed))
}

/// A count as a float. Counts above 2^53 would be rounded, but no metric reaches that.
fn number(count: u64) -> f64 {
    count as f64
}

fn count(count: usize) -> f64 {
    count as f64
}

fn flag(is: bool) -> f64 {
    f64::from(u8::from(is))
}

/// The metrics of the process, as far as the system reports them in /proc.
fn process(page: &mut Page<'_>) -> fmt::Result {
    let resident = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = resident.and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
    if let Some(pages) = pages {
        let bytes = number(pages.saturating_mul(rustix::param::page_size() as u64));
        page.gauge("resident_memory_bytes", "Memory of the process that is in RAM", bytes)?;
    }
    if let Ok(files) = std::fs::read_dir("/proc/self/fd") {
        page.gauge("open_files", "Open file descriptors of the process", count(files.count()))?;
    }
    Ok(())
}

/// The metrics page, and the names of its metrics so far.
struct Page<'a>(DescriptorEncoder<'a>, BTreeSet<String>);

impl Page<'_> {
    fn gauge(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        self.1.insert(name.to_owned());
        let encoder = self.0.encode_descriptor(name, help, None, Gauge)?;
        ConstGauge::new(value).encode(encoder)
    }

    fn counter(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        self.1.insert(name.to_owned());
        let encoder = self.0.encode_descriptor(name, help, None, Counter)?;
        ConstCounter::new(value).encode(encoder)
    }

    /// A gauge or counter with one value per value of a label.
    fn family(
        &mut self,
        name: &str,
        help: &str,
        kind: MetricType,
        label: &'static str,
        values: impl Iterator<Item = (String, f64)>,
    ) -> fmt::Result {
        self.labelled(name, help, kind, values.map(|(of, value)| ([(label, of)], value)))
    }

    /// A gauge or counter with one value per set of labels.
    fn labelled<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        kind: MetricType,
        values: impl Iterator<Item = ([(&'static str, String); N], f64)>,
    ) -> fmt::Result {
        self.1.insert(name.to_owned());
        let mut encoder = self.0.encode_descriptor(name, help, None, kind)?;
        for (labels, value) in values {
            let encoder = encoder.encode_family(&labels)?;
            match kind {
                Counter => ConstCounter::new(value).encode(encoder)?,
                _ => ConstGauge::new(value).encode(encoder)?,
            }
        }
        Ok(())
    }
}

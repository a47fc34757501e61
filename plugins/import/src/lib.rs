//! The operation group `import`: importmulti, importdescriptors, importaddress, importpubkey, importprivkey, rescanblockchain,
//! abortrescan, importprunedfunds, removeprunedfunds.
//!
//! importmulti and importdescriptors check the call first, then each request. A refused request does not fail the call.
//! The wallet stores all accepted requests with one write. A rescan holds no thread: the plugin keeps the reply until the
//! host reports the end of the rescan.
//!
//! importmulti checks the creation times of all requests before it imports any. importdescriptors checks them one by one,
//! so that a bad one fails the call after the earlier requests were stored.

mod descriptors;
mod locktimes;
mod multi;
mod outcome;
mod pruned_funds;
mod request;
mod rescan;
mod single;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use outrigger_sdk::params::{Params, Type, check_types, flag, int32};
use outrigger_sdk::service::chain::BlockRef;
use outrigger_sdk::service::events::{Event, RescanOutcome};
use outrigger_sdk::service::log::Level;
use outrigger_sdk::service::wallet::WalletInfo;
use outrigger_sdk::service::{ErrorKind, Scope, ServiceError};
use outrigger_sdk::standard::release::Rules;
use outrigger_sdk::{Call, Host, Plugin, Reply, RpcError};
use serde_json::{Map, Value};

use outcome::{Checked, Outcome};
use request::stored_time;
use rescan::{ImportKind, Outcomes, Pending, RescanEnd, Reservation, WaitingCalls, blocks_not_fetched};

/// The plugin.
pub struct ImportPlugin {
    host: Host,
    waiting: WaitingCalls,
    /// Whether the host is stopping, which aborts long checks.
    stopping: AtomicBool,
}

impl Plugin for ImportPlugin {
    fn new(host: Host, _: Map<String, Value>) -> Result<Self, String> {
        Ok(Self { host, waiting: WaitingCalls::default(), stopping: AtomicBool::new(false) })
    }

    fn call(&self, call: Call<'_>, reply: Reply) {
        let imported = match call.method {
            "importmulti" => self.import_multi(&call.params, call.scope),
            "importdescriptors" => self.import_descriptors(&call.params, call.scope, call.rules),
            "importaddress" => self.import_address(&call.params, call.scope),
            "importpubkey" => self.import_public_key(&call.params, call.scope),
            "importprivkey" => self.import_private_key(call.params, call.scope),
            "rescanblockchain" => self.rescan_blockchain(&call.params, call.scope),
            "abortrescan" => {
                reply.send(self.host.import.rescan_abort(call.scope).map_err(RpcError::from));
                return;
            }
            "importprunedfunds" => {
                reply.send(self.import_pruned_funds(&call));
                return;
            }
            "removeprunedfunds" => {
                reply.send(self.remove_pruned_funds(&call));
                return;
            }
            other => Err(RpcError::no_method(other)),
        };
        match imported {
            Ok(Imported { rescan: Some((wallet, reservation)), pending }) => {
                self.waiting.start(wallet, reservation, reply, pending);
            }
            Ok(Imported { rescan: None, pending }) => {
                reply.send_json(pending.finish(&RescanEnd::of(RescanOutcome::Complete)));
            }
            Err(error) => {
                reply.fail(error);
            }
        }
    }

    fn cancel(&self, token: u64) {
        self.waiting.forget(token);
    }

    fn event(&self, event: Event) {
        match event {
            Event::RescanFinished { wallet, rescan, outcome, last_height, widened } => {
                if let RescanOutcome::Unreadable { block_time } = outcome {
                    let message = format!(
                        "the rescan of wallet '{wallet}' could not read all blocks; the last unread block has time {block_time}"
                    );
                    self.host.log(Level::Warn, message);
                }
                let is_unreadable = matches!(outcome, RescanOutcome::Unreadable { .. });
                let background = is_unreadable && self.is_validating(Scope::NONE);
                self.waiting.finished(wallet, rescan, &RescanEnd { outcome, last_height, widened, background });
            }
            Event::ShuttingDown => {
                self.stopping.store(true, Ordering::Relaxed);
                self.waiting.close();
            }
            _ => {}
        }
    }

    fn quiesce(&self) {
        self.waiting.close();
    }
}

/// A stored import, or a rescan without an import.
pub struct Imported<'a> {
    pending: Pending,
    /// The wallet's name and the rescan, if the call needs one.
    rescan: Option<(String, Reservation<'a>)>,
}

impl ImportPlugin {
    fn import_multi(&self, params: &Params, scope: Scope) -> Result<Imported<'_>, RpcError> {
        let wallet = self.host.wallet.info(scope)?;
        check_types(params, &[Type::Array, Type::Object])?;
        let rescan = params.get(1).get("rescan").map_or(Ok(true), flag)?;
        let reservation = if rescan { Some(self.reserve(scope)?) } else { None };
        wallet.check_unlocked()?;
        let requests = requests(params);
        let timestamps =
            requests.iter().map(|request| request::timestamp(request, wallet.synced)).collect::<Result<Vec<_>, _>>()?;
        let mut checks = multi::Checks::new(self.network(scope)?, wallet.private_keys_enabled, &self.stopping);
        let times = timestamps.iter().map(|timestamp| stored_time(*timestamp));
        let checked = requests.iter().zip(times).map(|(request, time)| checks.request(request, time)).collect();
        if checks.are_aborted() {
            return Err(ServiceError::from(ErrorKind::ShuttingDown).into());
        }
        let outcomes = self.store(scope, checked)?;
        Ok(imported(wallet, reservation, outcomes, timestamps, ImportKind::Keys))
    }

    fn import_descriptors(&self, params: &Params, scope: Scope, rules: Rules) -> Result<Imported<'_>, RpcError> {
        let wallet = self.host.wallet.info(scope)?;
        let reservation = self.reserve(scope)?;
        wallet.check_unlocked()?;
        let mut checks = descriptors::Checks {
            host: &self.host,
            scope,
            network: self.network(scope)?,
            private_keys_enabled: wallet.private_keys_enabled,
            keypool: wallet.keypool,
            rules,
            accepted: HashSet::new(),
        };
        let (mut timestamps, mut checked) = (Vec::new(), Vec::new());
        let all_checked: Result<(), RpcError> = requests(params).iter().try_for_each(|request| {
            let timestamp = request::timestamp(request, wallet.synced)?;
            checked.push(checks.request(request, stored_time(timestamp))?);
            timestamps.push(timestamp);
            Ok(())
        });
        let outcomes = self.store(scope, checked)?;
        all_checked?;
        Ok(imported(wallet, Some(reservation), outcomes, timestamps, ImportKind::Descriptors))
    }

    fn rescan_blockchain(&self, params: &Params, scope: Scope) -> Result<Imported<'_>, RpcError> {
        let wallet = self.host.wallet.info(scope)?;
        let reservation = self.reserve(scope)?;
        wallet.check_unlocked()?;
        let synced = wallet.synced.height;
        let height = |index: usize, refusal: &str| {
            let Some(height) = params.given(index).map(int32).transpose()? else { return Ok(None) };
            match u32::try_from(height) {
                Ok(height) if height <= synced => Ok(Some(height)),
                _ => Err(RpcError::invalid_parameter(refusal)),
            }
        };
        let first = height(0, "Invalid start_height")?.unwrap_or(0);
        let last = height(1, "Invalid stop_height")?;
        if last.is_some_and(|last| last < first) {
            return Err(RpcError::invalid_parameter("stop_height must be greater than start_height"));
        }
        if !self.has_block(scope, first)? {
            let pruned =
                "Can't rescan beyond pruned data. Use RPC call getblockchaininfo to determine your pruned height.";
            return Err(self.unless_validating(scope, RpcError::misc(pruned)));
        }
        Ok(Imported { pending: Pending::Heights { first, last, synced }, rescan: Some((wallet.name, reservation)) })
    }

    /// Whether the node has the block of a height. A pruned node lacks the lowest blocks.
    fn has_block(&self, scope: Scope, height: u32) -> Result<bool, ServiceError> {
        let info = self.host.chain.block_info(scope, BlockRef::Height { height })?;
        Ok(info.map(|info| self.host.chain.block(scope, info.hash)).transpose()?.flatten().is_some())
    }

    /// Whether the node validates blocks in the background, and so lacks some for now. False if it does not answer.
    fn is_validating(&self, scope: Scope) -> bool {
        self.host.chain.background_validation(scope).is_ok_and(|first| first.is_some())
    }

    /// The refusal for a block that the node lacks: `pruned`, unless the node has not fetched it yet.
    fn unless_validating(&self, scope: Scope, pruned: RpcError) -> RpcError {
        if self.is_validating(scope) { blocks_not_fetched() } else { pruned }
    }

    fn reserve(&self, scope: Scope) -> Result<Reservation<'_>, ServiceError> {
        Reservation::new(&*self.host.import, scope)
    }

    fn network(&self, scope: Scope) -> Result<bitcoin::Network, ServiceError> {
        self.host.chain.network(scope)
    }

    /// Stores all accepted requests with one write.
    fn store(&self, scope: Scope, checked: Vec<Checked<'_>>) -> Result<Vec<Outcome>, ServiceError> {
        let mut imports = Vec::new();
        let mut accept = |(import, accepted)| {
            imports.push(import);
            accepted
        };
        let checked: Vec<_> = checked.into_iter().map(|checked| checked.map(&mut accept)).collect();
        let answers = if imports.is_empty() { Vec::new() } else { self.host.import.import(scope, imports)? };
        let mut answers = answers.into_iter();
        let outcomes = checked.into_iter().map(|checked| checked.map(|accepted| accepted.outcome(answers.next())));
        Ok(outcomes.map(|outcome| outcome.unwrap_or_else(|refused| refused)).collect())
    }
}

fn requests(params: &Params) -> &[Value] {
    params.get(0).as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The stored import, with a rescan if the wallet stored any request. The rescan begins at the earliest creation time, even
/// of a refused request, or at the time of the wallet's last block.
fn imported<'a>(
    wallet: WalletInfo,
    reservation: Option<Reservation<'a>>,
    outcomes: Vec<Outcome>,
    timestamps: Vec<i64>,
    kind: ImportKind,
) -> Imported<'a> {
    let times = timestamps.iter().map(|timestamp| stored_time(*timestamp));
    let from_time = times.fold(u64::from(wallet.synced.time), u64::min);
    let rescan = reservation
        .filter(|_| outcomes.iter().any(|outcome| outcome.success))
        .map(|reservation| (wallet.name, reservation));
    Imported { pending: Pending::Outcomes(Outcomes { outcomes, timestamps, kind, from_time }), rescan }
}

// Arguments hold private keys, and libraries free copies of them without wiping.
outrigger_sdk::wipe_freed_memory!();
outrigger_sdk::export_plugin!(ImportPlugin, include_str!("../manifest.json"));

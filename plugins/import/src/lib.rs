//! The operation group `import`: importmulti, importdescriptors, importaddress, importpubkey, importprivkey; rescanblockchain, abortrescan; importprunedfunds, removeprunedfunds.
//!
//! The first two check the whole call first, then each request by itself: a request that is refused does not fail the
//! call. All that passed is stored by one write of the wallet. A rescan holds no thread: the reply is kept until the host
//! tells of its end.
//!
//! importmulti checks the creation times of all requests before it imports any; importdescriptors checks them one by
//! one, so that a bad one fails the call after the earlier requests were stored.

mod descriptors;
mod error;
mod multi;
mod outcome;
mod pruned_funds;
mod request;
mod rescan;
mod single;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, Ordering};

use outrigger_sdk::params::{Params, Type, check_types, flag, int32};
use outrigger_sdk::service::chain::BlockRef;
use outrigger_sdk::service::events::{Event, RescanOutcome};
use outrigger_sdk::service::log::Level;
use outrigger_sdk::service::wallet::{Import, WalletInfo};
use outrigger_sdk::service::{ErrorKind, Scope, ServiceError};
use outrigger_sdk::{Call, Host, Plugin, Reply, RpcError};
use serde_json::{Map, Value};

use error::ImportError;
use outcome::{Checked, Outcome};
use request::stored_time;
use rescan::{ImportKind, Outcomes, Pending, RescanEnd, Reservation, WaitingCalls};

/// The plugin.
pub struct ImportPlugin {
    host: Host,
    waiting: WaitingCalls,
    /// Whether the host is stopping: checks that take long are given up.
    stopping: AtomicBool,
}

impl Plugin for ImportPlugin {
    fn new(host: Host, _: Map<String, Value>) -> Result<Self, String> {
        Ok(Self { host, waiting: WaitingCalls::default(), stopping: AtomicBool::new(false) })
    }

    fn call(&self, call: Call<'_>, reply: Reply) {
        let imported = match call.method {
            "importmulti" => self.import_multi(&call.params, call.scope),
            "importdescriptors" => self.import_descriptors(&call.params, call.scope),
            "importaddress" => self.import_address(&call.params, call.scope),
            "importpubkey" => self.import_public_key(&call.params, call.scope),
            "importprivkey" => self.import_private_key(call.params, call.scope),
            "rescanblockchain" => self.rescan_blockchain(&call.params, call.scope),
            "abortrescan" => {
                reply.send(self.host.wallet.rescan_abort(call.scope).map_err(RpcError::from));
                return;
            }
            "importprunedfunds" => {
                reply.send(self.import_pruned_funds(&call.params, call.scope).map_err(RpcError::from));
                return;
            }
            "removeprunedfunds" => {
                reply.send(self.remove_pruned_funds(&call.params, call.scope).map_err(RpcError::from));
                return;
            }
            other => Err(RpcError::no_method(other).into()),
        };
        match imported {
            Ok(Imported { rescan: Some((wallet, reservation)), pending }) => {
                self.waiting.start(wallet, reservation, reply, pending);
            }
            Ok(Imported { rescan: None, pending }) => {
                reply.send_json(pending.finish(&RescanEnd::of(RescanOutcome::Complete)));
            }
            Err(error) => {
                reply.send::<()>(Err(error.into()));
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
                        "the rescan of wallet '{wallet}' could not read all blocks; the last one unread is of time {block_time}"
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

/// An import that was stored, or a rescan without one.
pub struct Imported<'a> {
    pending: Pending,
    /// The wallet's name and its rescan, where there is to be one.
    rescan: Option<(String, Reservation<'a>)>,
}

impl ImportPlugin {
    fn import_multi(&self, params: &Params, scope: Scope) -> Result<Imported<'_>, ImportError> {
        let wallet = self.host.wallet.info(scope)?;
        check_types(params, &[Type::Array, Type::Object])?;
        let rescan = params.get(1).get("rescan").map_or(Ok(true), flag)?;
        let reservation = if rescan { Some(self.reserve(scope)?) } else { None };
        check_unlocked(&wallet)?;
        let requests = requests(params);
        let timestamps =
            requests.iter().map(|request| request::timestamp(request, wallet.synced)).collect::<Result<Vec<_>, _>>()?;
        let mut checks = multi::Checks::new(self.network(scope)?, wallet.private_keys_enabled, &self.stopping);
        let checked =
            requests.iter().zip(&timestamps).map(|(request, time)| checks.request(request, stored_time(*time)));
        let checked = checked.collect();
        if checks.are_aborted() {
            return Err(ServiceError::from(ErrorKind::ShuttingDown).into());
        }
        let outcomes = self.store(scope, checked)?;
        Ok(imported(wallet, reservation, outcomes, timestamps, ImportKind::Keys))
    }

    fn import_descriptors(&self, params: &Params, scope: Scope) -> Result<Imported<'_>, ImportError> {
        let wallet = self.host.wallet.info(scope)?;
        let reservation = self.reserve(scope)?;
        check_unlocked(&wallet)?;
        let checks = descriptors::Checks {
            network: self.network(scope)?,
            private_keys_enabled: wallet.private_keys_enabled,
            keypool: wallet.keypool,
        };
        let (mut timestamps, mut checked, mut failure) = (Vec::new(), Vec::new(), None);
        for request in requests(params) {
            let timestamp = request::timestamp(request, wallet.synced);
            match timestamp.and_then(|timestamp| Ok((timestamp, checks.request(request, stored_time(timestamp))?))) {
                Ok((timestamp, request)) => {
                    timestamps.push(timestamp);
                    checked.push(request);
                }
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        let outcomes = self.store(scope, checked)?;
        match failure {
            Some(error) => Err(error),
            None => Ok(imported(wallet, Some(reservation), outcomes, timestamps, ImportKind::Descriptors)),
        }
    }

    fn rescan_blockchain(&self, params: &Params, scope: Scope) -> Result<Imported<'_>, ImportError> {
        let wallet = self.host.wallet.info(scope)?;
        let reservation = self.reserve(scope)?;
        check_unlocked(&wallet)?;
        let synced = wallet.synced.height;
        let height = |index: usize| {
            let height = params.given(index).map(int32).transpose()?;
            Ok::<_, RpcError>(height.map(|height| u32::try_from(height).ok().filter(|height| *height <= synced)))
        };
        let first = height(0)?.unwrap_or(Some(0)).ok_or(ImportError::StartHeight)?;
        let last = height(1)?.map(|last| last.ok_or(ImportError::StopHeight)).transpose()?;
        if last.is_some_and(|last| last < first) {
            return Err(ImportError::HeightsReversed);
        }
        if !self.has_block(scope, first)? {
            return Err(self.unless_validating(scope, ImportError::Pruned));
        }
        Ok(Imported { pending: Pending::Heights { first, last, synced }, rescan: Some((wallet.name, reservation)) })
    }

    /// Whether the node has the block of a height. One that prunes drops the lowest blocks first.
    fn has_block(&self, scope: Scope, height: u32) -> Result<bool, ServiceError> {
        let info = self.host.chain.block_info(scope, BlockRef::Height { height })?;
        Ok(info.map(|info| self.host.chain.block(scope, info.hash)).transpose()?.flatten().is_some())
    }

    /// Whether blocks that the node lacks are fetched in the background, as far as that can be told.
    fn is_validating(&self, scope: Scope) -> bool {
        self.host.chain.background_validation(scope).is_ok_and(|first| first.is_some())
    }

    /// The error of a block that the node lacks, which it has dropped or has not fetched yet.
    fn unless_validating(&self, scope: Scope, dropped: ImportError) -> ImportError {
        if self.is_validating(scope) { ImportError::Background } else { dropped }
    }

    fn reserve(&self, scope: Scope) -> Result<Reservation<'_>, ServiceError> {
        Reservation::new(&*self.host.wallet, scope)
    }

    fn network(&self, scope: Scope) -> Result<bitcoin::Network, ServiceError> {
        self.host.chain.network(scope)
    }

    /// Stores what passed its checks with one write, and tells what became of each request.
    fn store(&self, scope: Scope, mut checked: Vec<Checked>) -> Result<Vec<Outcome>, ServiceError> {
        let taken: Vec<Option<Import>> = checked.iter_mut().map(Checked::take_import).collect();
        let stored: Vec<bool> = taken.iter().map(Option::is_some).collect();
        let imports: Vec<Import> = taken.into_iter().flatten().collect();
        let answers = if imports.is_empty() { Vec::new() } else { self.host.wallet.import(scope, imports)? };
        let mut answers = answers.iter();
        let outcome = |(request, stored): (Checked, bool)| {
            let answer = if stored { answers.next() } else { None };
            request.outcome(answer)
        };
        Ok(checked.into_iter().zip(stored).map(outcome).collect())
    }
}

fn requests(params: &Params) -> &[Value] {
    params.get(0).as_array().map(Vec::as_slice).unwrap_or_default()
}

fn check_unlocked(wallet: &WalletInfo) -> Result<(), ServiceError> {
    if wallet.locked { Err(ErrorKind::WalletLocked.into()) } else { Ok(()) }
}

/// The end of an import: it is rescanned for where something was stored. The earliest creation time counts even if its
/// request failed, and so does the wallet's last block.
fn imported<'a>(
    wallet: WalletInfo,
    reservation: Option<Reservation<'a>>,
    outcomes: Vec<Outcome>,
    timestamps: Vec<i64>,
    subject: ImportKind,
) -> Imported<'a> {
    let times = timestamps.iter().map(|timestamp| stored_time(*timestamp));
    let from_time = times.fold(u64::from(wallet.synced.time), u64::min);
    let rescan = reservation
        .filter(|_| outcomes.iter().any(|outcome| outcome.success))
        .map(|reservation| (wallet.name, reservation));
    Imported { pending: Pending::Outcomes(Outcomes { outcomes, timestamps, subject, from_time }), rescan }
}

// Arguments hold keys, and what is parsed from them is freed unseen.
outrigger_sdk::wipe_freed_memory!();
outrigger_sdk::export_plugin!(ImportPlugin, include_str!("../manifest.json"));

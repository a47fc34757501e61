//! The operation group `import`: importmulti, importdescriptors, importaddress, importpubkey, importprivkey, rescanblockchain,
//! abortrescan, importprunedfunds, removeprunedfunds.
//!
//! importmulti and importdescriptors check the call first, then each request. An invalid request does not fail the call.
//! The wallet stores all accepted requests with one write. A rescan holds no thread: the plugin keeps the reply until the
//! host reports the end of the rescan.
//!
//! importmulti checks the creation times of all requests before it imports any. importdescriptors checks them one by one,
//! so an invalid time fails the call, but the earlier requests are stored.

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

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use outrigger_kit::waits::Waits;
use outrigger_sdk::options::NoOptions;
use outrigger_sdk::service::events::{Event, RescanOutcome};
use outrigger_sdk::service::log::Level;
use outrigger_sdk::service::wallet::WalletInfo;
use outrigger_sdk::service::{Scope, ServiceError};
use outrigger_sdk::{Call, Host, Plugin, Reply, RpcError, plugin};

use outcome::{Checked, Outcome};
use request::stored_time;
use rescan::{ItemWords, Lack, Outcomes, Pending, RescanEnd, Reservation, Waiting, is_validating};

pub struct ImportPlugin {
    host: Host,
    waiting: Arc<Waits<Waiting>>,
    /// Whether the host is stopping, which aborts long checks.
    stopping: AtomicBool,
}

#[plugin(
    id = "import",
    summary = "Imports keys, scripts and descriptors into a wallet, and rescans the chain for their transactions",
    services = ["chain/1", "wallet-read/1", "wallet-import/1", "log/1"],
    optional = ["wallet-book/1"],
    events = ["rescan"],
    restartable,
    methods = [descriptors, multi, pruned_funds, rescan, single]
)]
impl Plugin for ImportPlugin {
    fn new(host: Host, _: NoOptions) -> Result<Self, String> {
        let waiting = Waits::new(host.clone(), (), |waits| Waiting::abort(waits.take_due(|_| false)));
        Ok(Self { host, waiting, stopping: AtomicBool::new(false) })
    }

    fn cancel(&self, token: u64) {
        self.waiting.cancel(token);
    }

    fn event(&self, event: Event) {
        match event {
            Event::RescanFinished { wallet, rescan, outcome, last_height, widened } => {
                let mut lack = None;
                if let RescanOutcome::Unreadable { block_time } = outcome {
                    lack = is_validating(&self.host, Scope::NONE).then_some(Lack::Background);
                    let message = format!(
                        "the rescan of wallet '{wallet}' could not read all blocks; the last unread block has time {block_time}"
                    );
                    self.host.log(Level::Warn, message);
                }
                Waiting::finished(&self.waiting, &wallet, rescan, RescanEnd { outcome, last_height, widened, lack });
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

    fn stop(&self) {
        self.waiting.end();
    }
}

/// A stored import, or a rescan without an import.
pub struct Imported<'a> {
    pending: Pending,
    /// The rescan, if the call needs one.
    rescan: Option<Reservation<'a>>,
}

impl ImportPlugin {
    /// Answers a call after its rescan. A call without a rescan, or with an error, is answered at once.
    fn answer<'a>(&self, reply: Reply, import: impl FnOnce() -> Result<Imported<'a>, RpcError>) {
        match import() {
            Ok(Imported { rescan: Some(reservation), pending }) => {
                Waiting::start(&self.waiting, reservation, reply, pending);
            }
            Ok(Imported { rescan: None, pending }) => {
                reply.send_json(pending.finish(&RescanEnd::of(RescanOutcome::Complete)));
            }
            Err(error) => {
                reply.fail(error);
            }
        }
    }
}

/// Stores all accepted requests with one write.
fn store(call: &Call<'_>, checked: Vec<Checked<'_>>) -> Result<Vec<Outcome>, ServiceError> {
    let mut imports = Vec::new();
    let mut accept = |(import, accepted)| {
        imports.push(import);
        accepted
    };
    let checked: Vec<_> = checked.into_iter().map(|checked| checked.map(&mut accept)).collect();
    let answers = if imports.is_empty() { Vec::new() } else { call.host.import.import(call.scope, imports)? };
    let mut answers = answers.into_iter();
    let outcomes = checked.into_iter().map(|checked| checked.map(|accepted| accepted.outcome(answers.next())));
    Ok(outcomes.map(|outcome| outcome.unwrap_or_else(|refused| refused)).collect())
}

/// The stored import, with a rescan if the wallet stored any request. The rescan begins at the earliest creation time, even
/// of a refused request, or at the time of the wallet's last block.
fn imported<'a>(
    wallet: &WalletInfo,
    reservation: Option<Reservation<'a>>,
    outcomes: Vec<Outcome>,
    timestamps: Vec<i64>,
    item: ItemWords,
) -> Imported<'a> {
    let times = timestamps.iter().map(|timestamp| stored_time(*timestamp));
    let from_time = times.fold(u64::from(wallet.synced.time), u64::min);
    let rescan = reservation.filter(|_| outcomes.iter().any(|outcome| outcome.success));
    Imported { pending: Pending::Outcomes(Outcomes { outcomes, timestamps, item, from_time }), rescan }
}

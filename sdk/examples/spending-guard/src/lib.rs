//! A wallet policy: limits the amount that wallets spend within a period, fees included, whichever method or plugin spends it.
//!
//! ```toml
//! [[wallet.policies]]
//! wallets = ["hot*"]
//! plugin = "spending-guard"
//!
//! [[plugins]]
//! file = "spending_guard"
//! grants = ["store/1", "chain/1", "wallet-read/1"]
//! reload = "after"
//!
//! [plugins.options]
//! limit = 50_000_000
//! hours = 24
//! ```
//!
//! An amount counts against the limit from its signature until `hours` after a transaction that spends the same coins is six blocks
//! deep in a loaded wallet, or a transaction six blocks deep has made these coins impossible. All guarded wallets share the limit. The
//! clock is the chain's median time.
//!
//! The backup of a guarded wallet has the reservations, and `restorewallet` adds them. So a user with `restorewallet` can, with a forged
//! backup, reserve the whole limit for good at coins that do not exist. `outrigger plugin store spending-guard drop`, while no host runs,
//! forgets all reservations, and the whole limit is free again.

use std::sync::{Mutex, MutexGuard, PoisonError};

use outrigger_sdk::bitcoin::{Amount, OutPoint, Txid};
use outrigger_sdk::options::PluginOptions;
use outrigger_sdk::reservations::{Reservation, Reservations};
use outrigger_sdk::service::chain::BlockRef;
use outrigger_sdk::service::policy::{Act, JudgedTransaction, Judgement, Policy, PolicyQuery, SavedPolicy};
use outrigger_sdk::service::store::KeyRange;
use outrigger_sdk::service::{Result as ServiceResult, Scope};
use outrigger_sdk::store::{Batch, each_row, open_store};
use outrigger_sdk::wire::{Blob, from_bytes, to_bytes};
use outrigger_sdk::{Call, Host, Plugin, RpcError, amount, methods, plugin};
use serde_json::{Value, json};

/// The version of the store.
const VERSION: u32 = 1;

/// The number of confirmations of a spending transaction after which a reservation gets its end.
const DEPTH: i64 = 6;

/// The sighash flag of signatures that commit to a single input.
const ANYONE_CAN_PAY: u8 = 0x80;

#[derive(PluginOptions)]
pub struct Options {
    /// The most that all guarded wallets together may spend, in satoshi.
    limit: u64,
    /// The period of the limit, in hours.
    #[option(default = 24)]
    hours: u32,
    /// Whether backups are allowed. They contain the private keys.
    #[option(default = false)]
    backups: bool,
}

pub struct SpendingGuard {
    host: Host,
    limit: Amount,
    seconds: u32,
    backups: bool,
    /// The store's rows. Locked from the check of the limit until the reservation is on disk. No service calls back into this plugin.
    reserved: Mutex<Reservations>,
}

#[plugin(
    id = "spending-guard",
    summary = "Keeps wallets from giving away more than a limit",
    services = ["store/1", "chain/1", "wallet-read/1"],
    provides = ["policy/1"],
    restartable
)]
impl Plugin for SpendingGuard {
    type Options = Options;

    fn new(host: Host, options: Options) -> Result<Self, String> {
        let Options { limit, hours, backups } = options;
        let seconds = hours.checked_mul(3600).ok_or("hours is too large")?;
        Ok(Self { host, limit: Amount::from_sat(limit), seconds, backups, reserved: Mutex::default() })
    }

    fn start(&self) -> Result<(), String> {
        open_store(&self.host, Scope::NONE, VERSION, |_, _| Ok(()))?;
        self.read().map_err(|error| error.to_string())
    }
}

fn refuse(reason: impl Into<String>) -> Judgement {
    Judgement::Refuse { reason: reason.into() }
}

impl SpendingGuard {
    fn reserved(&self) -> MutexGuard<'_, Reservations> {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the reservations of the store.
    fn read(&self) -> ServiceResult<()> {
        let mut reserved = self.reserved();
        each_row(&self.host, Scope::NONE, KeyRange::default(), |key, value| {
            reserved.0.insert(from_bytes(key)?, from_bytes(value)?);
            Ok(())
        })
    }

    /// Stores reservations, and waits until they are on disk.
    fn store(&self, scope: Scope, reserved: &mut Reservations, rows: &[(OutPoint, Reservation)]) -> ServiceResult<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut batch = Batch::default();
        rows.iter().for_each(|(outpoint, reservation)| batch.put(&to_bytes(outpoint), &to_bytes(reservation)));
        batch.commit_durably(&self.host, scope)?;
        reserved.0.extend(rows.iter().copied());
        Ok(())
    }

    fn judge_transaction(&self, scope: Scope, transaction: &JudgedTransaction) -> Result<Judgement, RpcError> {
        let Some(gives) = transaction.gives else {
            return Ok(refuse("The amount of an input is not proven"));
        };
        if transaction.inputs.iter().any(|input| input.sighashes.iter().any(|byte| byte & ANYONE_CAN_PAY != 0)) {
            return Ok(refuse("A signature with ANYONECANPAY outlives the transaction"));
        }
        let own: Vec<OutPoint> = transaction.inputs.iter().filter(|input| input.own).map(|one| one.outpoint).collect();
        let now = self.host.chain.tip(scope)?.median_time;
        let mut reserved = self.reserved();
        let row = reserved.needed(gives, &own);
        for settled in [false, true] {
            if settled {
                self.settle(scope, &mut reserved, now)?;
            }
            let mut then = reserved.clone();
            then.0.extend(row);
            // Checked even if nothing is reserved: restored reservations may exceed the limit.
            if then.total(now) <= self.limit {
                self.store(scope, &mut reserved, row.as_slice())?;
                return Ok(Judgement::Allow);
            }
        }
        Ok(refuse(format!(
            "{} BTC would be given away within {} hours, and the limit is {} BTC",
            amount::to_text(reserved.total(now).checked_add(gives).unwrap_or(Amount::MAX_MONEY)),
            self.seconds / 3600,
            amount::to_text(self.limit)
        )))
    }

    /// Sets the end of each reservation whose coin is spent at [`DEPTH`] in a loaded wallet, or whose coin a block at that depth made
    /// impossible, and removes ended reservations.
    fn settle(&self, scope: Scope, reserved: &mut Reservations, now: u32) -> ServiceResult<()> {
        let open = reserved.0.iter().filter(|(_, reservation)| reservation.until.is_none());
        let open: Vec<(OutPoint, Reservation)> =
            open.map(|(outpoint, reservation)| (*outpoint, *reservation)).collect();
        let mut ended = Vec::new();
        for name in self.host.wallet.list(Scope::NONE)? {
            // A wallet that cannot be read, or is unloaded by now, ends no reservation.
            let Ok(wallet) = self.host.wallet_scope(&name) else { continue };
            let outpoints = open.iter().map(|(outpoint, _)| *outpoint).collect();
            let Ok(spenders) = self.host.wallet.spenders(wallet, outpoints) else { continue };
            for ((outpoint, reservation), spenders) in open.iter().zip(spenders) {
                let height = self.buried(wallet, spenders, 1);
                let Some(height) = height.or_else(|| self.buried(wallet, vec![outpoint.txid], -1)) else { continue };
                if let Some(block) = self.host.chain.block_info(scope, BlockRef::Height { height })? {
                    let until = Some(block.median_time.saturating_add(self.seconds));
                    ended.push((*outpoint, Reservation { until, ..*reservation }));
                }
            }
        }
        self.store(scope, reserved, &ended)?;
        let is_over = |reservation: &Reservation| reservation.until.is_some_and(|until| until <= now);
        let over = reserved.0.iter().filter(|(_, reservation)| is_over(reservation)).map(|(outpoint, _)| *outpoint);
        let over: Vec<OutPoint> = over.collect();
        let mut batch = Batch::default();
        over.iter().for_each(|outpoint| batch.delete(&to_bytes(outpoint)));
        batch.commit(&self.host, scope)?;
        reserved.0.retain(|outpoint, _| !over.contains(outpoint));
        Ok(())
    }

    /// The height at which the first of these transactions was confirmed (`sign` 1) or impossible (-1) at [`DEPTH`]; `None` if none is, or
    /// the wallet cannot be read.
    fn buried(&self, wallet: Scope, txids: Vec<Txid>, sign: i64) -> Option<u32> {
        let synced = self.host.wallet.info(wallet).ok()?.synced.height;
        let batch = self.host.wallet.transactions(wallet, txids).ok()?;
        let depths = batch.read().ok()?.rows.into_iter().map(|row| row.transaction.0.state.depth(synced) * sign);
        let deep = depths.filter_map(|depth| u32::try_from(depth - DEPTH).ok()).max()?;
        synced.checked_sub(deep)
    }
}

impl Policy for SpendingGuard {
    fn judge(&self, scope: Scope, query: &PolicyQuery) -> Result<Judgement, RpcError> {
        match &query.act {
            Act::Sign { transaction } | Act::Send { transaction, .. } => self.judge_transaction(scope, transaction),
            Act::Import => Ok(refuse("An import could make outputs of others count as the wallet's")),
            Act::GiveKeys => Ok(refuse("The private keys of guarded wallets are not given out")),
            Act::Backup if !self.backups => Ok(refuse("A backup has the private keys")),
            Act::SignMessage { .. } | Act::Backup | Act::Export => Ok(Judgement::Allow),
        }
    }

    /// All reservations: other wallets may have the same coins.
    fn save(&self, _: Scope, _: &String) -> Result<Option<Blob>, RpcError> {
        let rows: Vec<(OutPoint, Reservation)> = self.reserved().0.iter().map(|(one, other)| (*one, *other)).collect();
        Ok(Some(Blob(to_bytes(&rows))))
    }

    /// A changed file can only add reservations, so it allows no payment. An added reservation counts until its coin is spent.
    fn restore(&self, scope: Scope, saved: &SavedPolicy) -> Result<(), RpcError> {
        let mut rows: Vec<(OutPoint, Reservation)> = from_bytes(&saved.state)?;
        let latest = self.host.chain.tip(scope)?.median_time.saturating_add(self.seconds);
        let mut reserved = self.reserved();
        for (outpoint, reservation) in &mut rows {
            reservation.until = reservation.until.map(|until| until.min(latest));
            *reservation = reserved.stricter(outpoint, *reservation);
        }
        Ok(self.store(scope, &mut reserved, &rows)?)
    }
}

#[methods(category = "Spending guard")]
impl SpendingGuard {
    /// Tells what guarded wallets have given away and may still give away.
    ///
    /// # Result
    /// {"limit": n, "reserved": n, "hours": n}    (json object) The limit and what counts against it, in BTC.
    #[method(needs_tip = false)]
    fn guardstatus(&self, call: &Call<'_>) -> Result<Value, RpcError> {
        let now = self.host.chain.tip(call.scope)?.median_time;
        let reserved = self.reserved().total(now);
        let (limit, reserved) = (amount::to_json(self.limit), amount::to_json(reserved));
        Ok(json!({"limit": limit, "reserved": reserved, "hours": self.seconds / 3600}))
    }
}

outrigger_sdk::export_plugin!(SpendingGuard);

#[cfg(test)]
mod tests;

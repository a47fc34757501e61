//! What the wallet says of a transaction: its depth, and which of its inputs and outputs are ours.

use bitcoin::{Amount, Network, SignedAmount};
use outrigger_sdk::CallContext;
use outrigger_sdk::amount::Saturating;
use outrigger_sdk::params::flag;
use outrigger_sdk::service::wallet::{Ownership, Synced, WalletInfo, WalletTransactionView};
use serde_json::Value;

use crate::error::HistoryError;

/// The depth from which a coinbase can be spent.
pub const COINBASE_MATURITY_DEPTH: i64 = 101;

/// The block that the wallet has reached, which depths are counted from, and whether watch-only outputs are its own.
#[derive(Clone, Copy)]
pub struct WalletViewpoint {
    /// The block up to which the wallet has followed the chain: depths are counted from here.
    pub synced: Synced,
    /// Whether watched scripts count as ours.
    pub watch_only: bool,
    /// For addresses.
    pub network: Network,
}

impl WalletViewpoint {
    /// The viewpoint of a call; watched scripts count by default in a wallet without private keys.
    pub fn of(context: &CallContext<'_>, wallet: &WalletInfo, watch_only: &Value) -> Result<Self, HistoryError> {
        let watch_only = match watch_only {
            Value::Null => !wallet.private_keys_enabled,
            given => flag(given)?,
        };
        Ok(Self { synced: wallet.synced, watch_only, network: context.network()? })
    }

    /// How deep a transaction is: 0 when unconfirmed, negative when another one made it impossible.
    pub fn depth(&self, transaction: &WalletTransactionView<'_>) -> i64 {
        transaction.state.depth(self.synced.height)
    }

    /// Whether an output of this ownership counts as ours.
    pub fn owns(&self, ownership: Ownership) -> bool {
        match ownership {
            Ownership::Spendable => true,
            Ownership::WatchOnly => self.watch_only,
            Ownership::None => false,
        }
    }

    /// What the transaction spends of ours.
    pub fn debit(&self, transaction: &WalletTransactionView<'_>) -> SignedAmount {
        let watched = if self.watch_only { transaction.debit_watch_only } else { Amount::ZERO };
        signed(transaction.debit_spendable.saturating_add(watched))
    }

    /// What it pays to us; nothing while it is an immature coinbase.
    pub fn credit(&self, transaction: &WalletTransactionView<'_>) -> SignedAmount {
        if transaction.coinbase && self.depth(transaction) < COINBASE_MATURITY_DEPTH {
            return SignedAmount::ZERO;
        }
        let ours = transaction.outputs.iter().filter(|output| self.owns(output.ownership));
        ours.map(|output| signed(output.value)).fold(SignedAmount::ZERO, SignedAmount::saturating_add)
    }

    /// The fee as replies show it: outputs less what was spent, so normally negative; none when nothing of ours was spent.
    pub fn fee(&self, transaction: &WalletTransactionView<'_>) -> Option<SignedAmount> {
        let debit = self.debit(transaction);
        debit.is_positive().then(|| signed(transaction.total_output).saturating_sub(debit))
    }

    /// What a received entry is called.
    pub fn category(&self, transaction: &WalletTransactionView<'_>) -> &'static str {
        if !transaction.coinbase {
            return "receive";
        }
        match self.depth(transaction) {
            ..1 => "orphan",
            1..COINBASE_MATURITY_DEPTH => "immature",
            _ => "generate",
        }
    }
}

/// An amount with a sign. There are at most 2.1 * 10^15 satoshi, so it fits.
pub fn signed(amount: Amount) -> SignedAmount {
    amount.to_signed().unwrap_or(SignedAmount::MAX)
}

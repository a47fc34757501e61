//! A wallet's view of a transaction: its depth, and the amounts that the wallet owns.

use bitcoin::{Amount, Network, SignedAmount};
use outrigger_sdk::Call;
use outrigger_sdk::amount::Saturating;
use outrigger_sdk::service::ServiceError;
use outrigger_sdk::service::wallet::{Ownership, Synced, WalletInfo, WalletTransactionView};

/// The depth at which a coinbase becomes spendable.
pub const COINBASE_MATURITY_DEPTH: i64 = 101;

#[derive(Clone, Copy)]
pub struct WalletViewpoint {
    /// The wallet's last block. Depths count from it.
    pub synced: Synced,
    /// Whether watch-only scripts count as ours.
    pub watch_only: bool,
    pub network: Network,
}

impl WalletViewpoint {
    /// The viewpoint of a call. `watch_only` is its argument `include_watchonly`; if omitted, watch-only scripts count as
    /// ours in a wallet without private keys.
    pub fn of(call: &Call<'_>, wallet: &WalletInfo, watch_only: Option<bool>) -> Result<Self, ServiceError> {
        let watch_only = watch_only.unwrap_or(!wallet.signs());
        Ok(Self { synced: wallet.synced, watch_only, network: call.network()? })
    }

    /// A transaction's confirmations: 0 if unconfirmed, negative if a confirmed transaction conflicts with it.
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

    /// The sum of our coins that the transaction spends.
    pub fn debit(&self, transaction: &WalletTransactionView<'_>) -> SignedAmount {
        let watched = if self.watch_only { transaction.debit_watch_only } else { Amount::ZERO };
        signed(transaction.debit_spendable.saturating_add(watched))
    }

    /// The amount that the transaction pays to us; 0 for an immature coinbase.
    pub fn credit(&self, transaction: &WalletTransactionView<'_>) -> SignedAmount {
        if transaction.coinbase && self.depth(transaction) < COINBASE_MATURITY_DEPTH {
            return SignedAmount::ZERO;
        }
        let ours = transaction.outputs.iter().filter(|output| self.owns(output.ownership));
        ours.map(|output| signed(output.value)).fold(SignedAmount::ZERO, SignedAmount::saturating_add)
    }

    /// The fee as replies show it: outputs minus debit, so normally negative. `None` if the transaction spends nothing of ours.
    pub fn fee(&self, transaction: &WalletTransactionView<'_>) -> Option<SignedAmount> {
        let debit = self.debit(transaction);
        debit.is_positive().then(|| signed(transaction.total_output).saturating_sub(debit))
    }

    /// The category of a receive entry.
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

/// An amount with a sign. At most 2.1 * 10^15 satoshi exist, so it fits.
pub fn signed(amount: Amount) -> SignedAmount {
    amount.to_signed().unwrap_or(SignedAmount::MAX)
}

//! Coin selection, fees and the funding of transactions, by the rules of Bitcoin Core 29's wallet.
//!
//! [`fund()`] makes an unsigned transaction of recipients and a [`CoinControl`]: it reads the wallet's coins through the services of
//! a call, chooses among them, and adds change. [`mod@select`] is the choice alone, without input or output; `algorithm` has
//! the algorithms. Randomness comes from the caller.
//!
//! Invariants: the sum of inputs is that of outputs and fee; a transaction is no heavier and pays no more than its limits; a
//! change address that is not used is given back.

#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects by failing"))]

mod algorithm;
mod available;
mod bump;
mod chain_limits;
mod change;
mod coin;
pub mod coins;
mod control;
mod error;
mod fee_choice;
pub mod feerate;
mod fund;
pub mod funding_options;
mod group;
pub mod known;
pub mod locktime;
mod miniscript_size;
pub mod options;
mod replace;
mod replace_options;
pub mod select;
mod signable;
mod signed_input;
mod sweep;
mod truc;
pub mod weight;

#[cfg(test)]
mod tests;

use outrigger_service::{Host, Scope};

pub use bump::{BumpFees, Unconfirmed};
pub use change::change_type;
pub use coin::{Coin, OutputKind};
pub use control::{ChangeChoice, CoinControl, MAX_DEPTH, PresetInput, Recipient};
pub use error::SpendError;
pub use fee_choice::{EstimateMode, FeeChoice};
pub use feerate::ReasonedFeeRate;
pub use fund::{Funded, fund, fund_transaction};
pub use outrigger_service::wallet::SpendSettings;
pub use replace::{REPLACED_BY, REPLACES, ReplaceError, Replaced, Replacement, replace};
pub use replace_options::replacement;
pub use sweep::{Sweep, sweep};

/// The host's services, and the scope of the call that uses them.
#[derive(Clone, Copy)]
pub struct Services<'a> {
    /// The services.
    pub host: &'a Host,
    /// The scope.
    pub scope: Scope,
}

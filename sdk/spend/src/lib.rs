//! Coin selection, fees and funding of transactions by the rules of Bitcoin Core 29's wallet.
//!
//! [`fund()`] makes an unsigned transaction from recipients and a [`CoinControl`]: it reads the wallet's coins through
//! the host's services, selects coins and adds change. [`mod@select`] is the coin selection alone, without I/O;
//! `algorithm` has its algorithms. Randomness comes from the caller.
//!
//! Invariants: the inputs' sum equals the sum of outputs and fee; a transaction exceeds neither its weight limit nor its
//! fee limit; an unused change address is returned to the wallet.

#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic, reason = "a broken expectation fails the test"))]

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
mod signed_input;
mod sweep;
mod truc;
pub mod weight;

#[cfg(test)]
mod tests;

use outrigger_service::{Host, Scope};
use outrigger_standard::release::Rules;

pub use bump::{BumpFees, Unconfirmed, closure};
pub use change::change_type;
pub use coin::{Coin, OutputKind};
pub use coins::{REPLACED_BY, REPLACES};
pub use control::{ChangeChoice, CoinControl, MAX_DEPTH, PresetInput, Recipient};
pub use error::SpendError;
pub use fee_choice::{EstimateMode, FeeChoice};
pub use feerate::ReasonedFeeRate;
pub use fund::{Funded, fund, fund_transaction};
pub use outrigger_service::wallet::SpendSettings;
pub use replace::{Replaced, Replacement, replace};
pub use replace_options::replacement;
pub use sweep::{Sweep, sweep};

/// The host's services, and the scope of the call that uses them.
#[derive(Clone, Copy)]
pub struct Services<'a> {
    /// The host.
    pub host: &'a Host,
    /// The call's scope: its wallet and its view of the data.
    pub scope: Scope,
    /// The rules that differ between releases of Bitcoin Core.
    pub rules: Rules,
}

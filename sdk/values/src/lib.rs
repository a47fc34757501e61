//! The JSON values of RPCs: codes and errors, arguments with bitcoind's checks and words, amounts, feerates.
//!
//! Everything here is a pure function of values. The crate depends on no other of the project, and any may depend on it.

pub mod amount;
pub mod error;
mod feerate;
mod json_words;
pub mod params;
pub mod text;
pub mod typed;

pub use error::{RpcError, RpcErrorCode};
pub use feerate::FeeRate;

//! The JSON values of RPCs (codes and errors, arguments with bitcoind's checks and words, amounts, feerates), and what is known
//! for spending an output.
//!
//! Everything here is a pure function of values. The crate depends on no other of the project, and any may depend on it.

#![warn(missing_docs)]

pub mod amount;
pub mod error;
mod feerate;
mod json_words;
pub mod params;
mod solving;
pub mod text;
pub mod typed;

pub use error::{RpcError, RpcErrorCode};
pub use feerate::FeeRate;
pub use solving::{AddressType, Blob, Coin, KeyOrigin, Secret, SolvingData, TapLeaf, TaprootData};

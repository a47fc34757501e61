//! The values of JSON-RPC calls: errors and their codes, arguments, amounts, feerates. Also the solving data of outputs.
//!
//! All functions are pure. The crate depends on no other crate of the project.

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
pub use feerate::{FeeFrac, FeeRate};
pub use solving::{AddressType, Blob, Coin, KeyOrigin, Secret, SolvingData, TapLeaf, TaprootData};

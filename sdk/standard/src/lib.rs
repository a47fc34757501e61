//! Standard scripts, relay limits, addresses, scripts as text, and decoded transactions, shared by all plugins.
//!
//! All functions are pure, and accept any bytes that a client sends.

#![warn(missing_docs)]

pub mod address;
pub mod asm;
mod bech32;
mod construct;
pub mod decode;
pub mod descriptor;
pub mod json;
mod kind;
pub mod multisig;
mod ops;
pub mod policy;
pub mod release;
pub mod work;

#[cfg(test)]
mod tests;

pub use address::{AddressError, from_script, to_script};
pub use asm::{asm, asm_sighash, push_asm};
pub use construct::{output_names, outputs, transaction_from_params};
pub use decode::{
    block_from_bytes, merkle_block_from_bytes, sendable_from_hex, transaction_from_bytes, transaction_from_hex,
    transaction_to_bytes,
};
pub use json::{Shown, Spent, address_json, script_json, transaction_json};
pub use kind::{ScriptKind, classify, has_valid_ops};

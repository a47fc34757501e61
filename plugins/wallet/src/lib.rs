//! The operation group `wallet`: managing wallets, their addresses, balances and coins, encryption, and payments.
//!
//! Invariants: confirmations count from the last block that the wallet has processed, never from the tip of the chain.
//! Passphrases and private keys are arguments of the type `Secret`, whose memory is wiped. A payment method calls
//! `begin_payment` before it reads the coins, so that two calls never choose the same coin.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking"))]

mod address_info;
mod addresses;
mod arguments;
mod balances;
mod bump;
mod descriptors;
mod encryption;
mod fund;
mod hd_keys;
mod info;
mod keys;
mod labels;
mod locks;
mod manage;
mod send;
mod simulate;
mod transactions;
mod unspent;
mod upkeep;

use outrigger_sdk::methods::Json;
use outrigger_sdk::options::NoOptions;
use outrigger_sdk::{Host, Plugin, RpcError, plugin};
use serde::Serialize;

pub struct WalletPlugin;

#[plugin(
    id = "wallet",
    summary = "Wallets, their addresses, balances and coins, encryption, and payments",
    services = ["chain/1", "mempool/1", "wallet-read/1", "log/1"],
    optional = ["wallet-book/1", "wallet-pay/1", "wallet-import/1", "wallet-admin/1", "wallet-keys/1", "signer/1"],
    restartable,
    methods = [
        address_info,
        addresses,
        balances,
        bump,
        descriptors,
        encryption,
        fund,
        hd_keys,
        info,
        keys,
        labels,
        locks,
        manage,
        send,
        simulate,
        unspent,
        upkeep
    ]
)]
impl Plugin for WalletPlugin {
    fn new(_: Host, _: NoOptions) -> Result<Self, String> {
        Ok(Self)
    }
}

/// Serializes an answer that borrows its texts, without another copy of a private key.
fn to_json(value: impl Serialize) -> Result<Json, RpcError> {
    serde_json::to_vec(&value).map(Json).map_err(|error| RpcError::internal(error.to_string()))
}

#[cfg(test)]
mod tests;

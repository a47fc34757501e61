//! The operation group `wallet`: managing wallets, their addresses, balances and coins, encryption, and payments.
//!
//! Invariants: confirmations count from the last block that the wallet has processed, never from the tip of the chain.
//! A method moves passphrases from the arguments into memory that is wiped, before it does anything else. A payment
//! method calls `begin_payment` before it reads the coins, so that two calls never choose the same coin.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking"))]

mod address_info;
mod addresses;
mod arguments;
mod balances;
mod bump;
mod descriptors;
mod encryption;
mod fund;
mod info;
mod keys;
mod labels;
mod locks;
mod manage;
mod recipients;
mod send;
mod simulate;
mod transactions;
mod unspent;
mod upkeep;

use outrigger_sdk::standard::release;
use outrigger_sdk::{Call, CallContext, Host, Plugin, Reply, RpcError};
use serde::Serialize;
use serde_json::{Map, Value};

pub struct WalletPlugin {
    host: Host,
}

impl Plugin for WalletPlugin {
    fn new(host: Host, _: Map<String, Value>) -> Result<Self, String> {
        Ok(Self { host })
    }

    fn call(&self, call: Call<'_>, reply: Reply) {
        let rules = release::rules(Some(call.release));
        let mut context = CallContext { host: &self.host, scope: call.scope, params: call.params, rules, plugin: &() };
        reply.send_json(answer(call.method, &mut context));
    }
}

fn answer(method: &str, context: &mut CallContext<'_>) -> Result<Vec<u8>, RpcError> {
    match method {
        "createwallet" => manage::create_wallet(context).and_then(to_json),
        "loadwallet" => manage::load_wallet(context).and_then(to_json),
        "unloadwallet" => manage::unload_wallet(context).and_then(to_json),
        "listwallets" => manage::list_wallets(context).and_then(to_json),
        "listwalletdir" => manage::list_wallet_dir(context).and_then(to_json),
        "getwalletinfo" => info::get_wallet_info(context).and_then(to_json),
        "getwalletbackupinfo" => info::get_wallet_backup_info(context).and_then(to_json),
        "getbalances" => balances::get_balances(context).and_then(to_json),
        "getbalance" => balances::get_balance(context).and_then(to_json),
        "getunconfirmedbalance" => balances::get_unconfirmed_balance(context).and_then(to_json),
        "getnewaddress" => addresses::get_new_address(context).and_then(to_json),
        "getrawchangeaddress" => addresses::get_raw_change_address(context).and_then(to_json),
        "setlabel" => addresses::set_label(context).and_then(to_json),
        "listlabels" => labels::list_labels(context).and_then(to_json),
        "getaddressesbylabel" => labels::get_addresses_by_label(context),
        "keypoolrefill" => upkeep::keypool_refill(context).and_then(to_json),
        "setwalletflag" => upkeep::set_wallet_flag(context).and_then(to_json),
        "backupwallet" => upkeep::backup_wallet(context).and_then(to_json),
        "restorewallet" => upkeep::restore_wallet(context).and_then(to_json),
        "upgradewallet" => keys::upgrade_wallet(context).and_then(to_json),
        "gethdkeys" => keys::get_hd_keys(context),
        "createwalletdescriptor" => keys::create_wallet_descriptor(context).and_then(to_json),
        "dumpprivkey" => keys::dump_private_key(context),
        "getaddressinfo" => address_info::get_address_info(context).and_then(to_json),
        "listdescriptors" => descriptors::list_descriptors(context),
        "listunspent" => unspent::list_unspent(context),
        "simulaterawtransaction" => simulate::simulate_raw_transaction(context).and_then(to_json),
        "lockunspent" => locks::lock_unspent(context).and_then(to_json),
        "listlockunspent" => locks::list_lock_unspent(context),
        "fundrawtransaction" => fund::fund_raw_transaction(context).and_then(to_json),
        "bumpfee" => bump::bump_fee(context).and_then(to_json),
        "settxfee" => info::set_tx_fee(context).and_then(to_json),
        "sendmany" => send::send_many(context).and_then(to_json),
        "sendtoaddress" => send::send_to_address(context).and_then(to_json),
        "encryptwallet" => encryption::encrypt_wallet(context).and_then(to_json),
        "walletpassphrase" => encryption::wallet_passphrase(context).and_then(to_json),
        "walletpassphrasechange" => encryption::wallet_passphrase_change(context).and_then(to_json),
        "walletlock" => encryption::wallet_lock(context).and_then(to_json),
        other => Err(RpcError::no_method(other)),
    }
}

fn to_json<T: Serialize>(value: T) -> Result<Vec<u8>, RpcError> {
    serde_json::to_vec(&value).map_err(|error| RpcError::internal(error.to_string()))
}

// Arguments may hold private keys, and parsing them frees copies.
outrigger_sdk::wipe_freed_memory!();
outrigger_sdk::export_plugin!(WalletPlugin, include_str!("../manifest.json"));

#[cfg(test)]
mod tests;

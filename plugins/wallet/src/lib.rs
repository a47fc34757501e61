//! The operation group `wallet`: making, loading, unlocking and backing up wallets, their addresses, balances and coins, and payments.
//!
//! Invariants: depths are counted from the block up to which the wallet has followed the chain, never from the chain's
//! tip. Passphrases are moved out of the arguments into memory that is wiped, before anything else is looked at. A payment
//! is begun before it looks at the coins, so that two calls never choose the same one.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects by failing"))]

mod address_info;
mod addresses;
mod arguments;
mod balances;
mod bump;
mod descriptors;
mod encryption;
mod error;
mod fund;
mod info;
mod keys;
mod labels;
mod locks;
mod manage;
mod parents;
mod recipients;
mod send;
mod simulate;
mod unspent;
mod upkeep;

use outrigger_sdk::{Call, CallContext, Host, Plugin, Reply, RpcError};
use serde::Serialize;
use serde_json::{Map, Value};

use error::WalletError;

/// The plugin.
pub struct WalletPlugin {
    host: Host,
}

impl Plugin for WalletPlugin {
    fn new(host: Host, _: Map<String, Value>) -> Result<Self, String> {
        Ok(Self { host })
    }

    fn call(&self, call: Call<'_>, reply: Reply) {
        let answer = self
            .answer(call.method, CallContext { host: &self.host, scope: call.scope, params: call.params, plugin: &() });
        reply.send_json(answer.map_err(RpcError::from));
    }
}

impl WalletPlugin {
    fn answer(&self, method: &str, mut context: CallContext<'_>) -> Result<Vec<u8>, WalletError> {
        let q = &mut context;
        match method {
            "createwallet" => manage::create_wallet(q).and_then(to_json),
            "loadwallet" => manage::load_wallet(q).and_then(to_json),
            "unloadwallet" => manage::unload_wallet(q).and_then(to_json),
            "listwallets" => manage::list_wallets(q).and_then(to_json),
            "listwalletdir" => manage::list_wallet_dir(q).and_then(to_json),
            "getwalletinfo" => info::get_wallet_info(q).and_then(to_json),
            "getwalletbackupinfo" => info::get_wallet_backup_info(q).and_then(to_json),
            "getbalances" => balances::get_balances(q).and_then(to_json),
            "getbalance" => balances::get_balance(q).and_then(to_json),
            "getunconfirmedbalance" => balances::get_unconfirmed_balance(q).and_then(to_json),
            "getnewaddress" => addresses::get_new_address(q).and_then(to_json),
            "getrawchangeaddress" => addresses::get_raw_change_address(q).and_then(to_json),
            "setlabel" => addresses::set_label(q).and_then(to_json),
            "listlabels" => labels::list_labels(q).and_then(to_json),
            "getaddressesbylabel" => labels::get_addresses_by_label(q),
            "keypoolrefill" => upkeep::keypool_refill(q).and_then(to_json),
            "setwalletflag" => upkeep::set_wallet_flag(q).and_then(to_json),
            "backupwallet" => upkeep::backup_wallet(q).and_then(to_json),
            "restorewallet" => upkeep::restore_wallet(q).and_then(to_json),
            "upgradewallet" => keys::upgrade_wallet(q).and_then(to_json),
            "gethdkeys" => keys::get_hd_keys(q),
            "createwalletdescriptor" => keys::create_wallet_descriptor(q).and_then(to_json),
            "dumpprivkey" => keys::dump_private_key(q),
            "getaddressinfo" => address_info::get_address_info(q).and_then(to_json),
            "listdescriptors" => descriptors::list_descriptors(q),
            "listunspent" => unspent::list_unspent(q),
            "simulaterawtransaction" => simulate::simulate_raw_transaction(q).and_then(to_json),
            "lockunspent" => locks::lock_unspent(q).and_then(to_json),
            "listlockunspent" => locks::list_lock_unspent(q),
            "fundrawtransaction" => fund::fund_raw_transaction(q).and_then(to_json),
            "bumpfee" => bump::bump_fee(q).and_then(to_json),
            "settxfee" => info::set_tx_fee(q).and_then(to_json),
            "sendmany" => send::send_many(q).and_then(to_json),
            "sendtoaddress" => send::send_to_address(q).and_then(to_json),
            "encryptwallet" => encryption::encrypt_wallet(q).and_then(to_json),
            "walletpassphrase" => encryption::wallet_passphrase(q).and_then(to_json),
            "walletpassphrasechange" => encryption::wallet_passphrase_change(q).and_then(to_json),
            "walletlock" => encryption::wallet_lock(q).and_then(to_json),
            other => Err(RpcError::no_method(other).into()),
        }
    }
}

fn to_json<T: Serialize>(value: T) -> Result<Vec<u8>, WalletError> {
    serde_json::to_vec(&value).map_err(|error| RpcError::internal(error.to_string()).into())
}

// Arguments hold keys, and what is parsed from them is freed unseen.
outrigger_sdk::wipe_freed_memory!();
outrigger_sdk::export_plugin!(WalletPlugin, include_str!("../manifest.json"));

#[cfg(test)]
mod tests;

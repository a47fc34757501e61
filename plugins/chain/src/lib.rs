//! The operation group `chain`: the chain and the mempool, raw transactions, addresses and descriptors.
//!
//! Invariants: between calls the plugin keeps no data of the chain except whether the tip was ever recent, and the headers of
//! block filters, which never change. A call reads one snapshot. A waiting call holds no thread. Results have the keys of the
//! call's release of Bitcoin Core in its order and no others, because strict clients refuse unknown keys.

mod activity;
mod args;
mod block_stats;
mod blocks;
mod chunks;
mod coins;
mod deployments;
mod descriptors;
mod filters;
mod header;
mod mempool;
mod messages;
mod network;
mod proofs;
mod scan;
mod scripts;
mod send;
mod statistics;
mod transactions;
mod waiting;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use outrigger_sdk::service::events::Event;
use outrigger_sdk::{Call, CallContext, Host, Plugin, Reply, RpcError};
use serde_json::{Map, Value, json};

use crate::filters::FilterHeaders;
use crate::mempool::Relatives;
use crate::scan::Scan;
use crate::waiting::Waits;

pub struct ChainPlugin {
    host: Host,
    shared: Shared,
    waits: Arc<Waits>,
}

/// The state that calls share.
#[derive(Default)]
struct Shared {
    /// Whether the tip was ever recent. As in bitcoind, the initial block download ends only once.
    caught_up: AtomicBool,
    coin_scan: Scan,
    block_scan: Scan,
    filter_headers: FilterHeaders,
}

type Context<'a> = CallContext<'a, Shared>;

impl ChainPlugin {
    fn answer(&self, method: &str, context: &mut Context<'_>, reply: &Reply) -> Result<Value, RpcError> {
        match method {
            "getblockchaininfo" => blocks::get_blockchain_info(context),
            "getblockcount" => blocks::get_block_count(context),
            "getbestblockhash" => blocks::get_best_block_hash(context),
            "getblockhash" => blocks::get_block_hash(context),
            "getblockheader" => blocks::get_block_header(context),
            "getblock" => blocks::get_block(context),
            "getblockstats" => block_stats::get_block_stats(context),
            "getchaintips" => blocks::get_chain_tips(context),
            "gettxout" => transactions::get_tx_out(context),
            "gettxoutsetinfo" => coins::get_tx_out_set_info(context),
            "getmempoolinfo" => mempool::get_mempool_info(context),
            "getrawmempool" => mempool::get_raw_mempool(context),
            "getmempoolentry" => mempool::get_mempool_entry(context),
            "gettxspendingprevout" => mempool::get_tx_spending_prevout(context),
            "savemempool" => mempool::save_mempool(context),
            "sendrawtransaction" => send::send_raw_transaction(context),
            "submitpackage" => send::submit_package(context),
            "testmempoolaccept" => send::test_mempool_accept(context),
            "getrawtransaction" => transactions::get_raw_transaction(context),
            "createrawtransaction" => transactions::create_raw_transaction(context),
            "validateaddress" => scripts::validate_address(context),
            "getdescriptorinfo" => descriptors::get_descriptor_info(context),
            "deriveaddresses" => descriptors::derive_addresses(context),
            "getmempoolancestors" => mempool::get_relatives(context, Relatives::Ancestors),
            "getmempooldescendants" => mempool::get_relatives(context, Relatives::Descendants),
            "estimatesmartfee" => mempool::estimate_smart_fee(context),
            "getdifficulty" => statistics::get_difficulty(context),
            "getchaintxstats" => statistics::get_chain_tx_stats(context),
            "getdeploymentinfo" => deployments::get_deployment_info(context),
            "getindexinfo" => statistics::get_index_info(context),
            "getnetworkinfo" => network::get_network_info(context),
            // The answers of a node without peers.
            "getconnectioncount" => Ok(json!(0)),
            "getpeerinfo" | "listbanned" => Ok(json!([])),
            "getnodeaddresses" => network::get_node_addresses(context),
            "ping" => Ok(Value::Null),
            "getzmqnotifications" => network::get_zmq_notifications(context),
            "getnettotals" => Ok(network::get_net_totals()),
            "invalidateblock" => blocks::invalidate_block(context),
            "reconsiderblock" => blocks::reconsider_block(context),
            "setmocktime" => blocks::set_mock_time(context),
            "verifymessage" => messages::verify_message(context),
            "createmultisig" => messages::create_multisig(context),
            "gettxoutproof" => proofs::get_tx_out_proof(context),
            "verifytxoutproof" => proofs::verify_tx_out_proof(context),
            "syncwithvalidationinterfacequeue" => blocks::sync_with_validation_interface_queue(context),
            "scantxoutset" => scan::scan_tx_out_set(context, reply),
            "scanblocks" => scan::scan_blocks(context, reply),
            "getblockfilter" => filters::get_block_filter(context),
            "getdescriptoractivity" => activity::get_descriptor_activity(context, reply),
            other => Err(RpcError::no_method(other)),
        }
    }
}

impl Plugin for ChainPlugin {
    fn new(host: Host, _: Map<String, Value>) -> Result<Self, String> {
        Ok(Self { waits: Waits::new(host.clone()), host, shared: Shared::default() })
    }

    fn call(&self, call: Call<'_>, reply: Reply) {
        let rules = call.rules;
        let (scope, params, plugin) = (call.scope, call.params, &self.shared);
        let mut context = Context { host: &self.host, scope, params, rules, plugin };
        if call.method.starts_with("waitfor") {
            return self.waits.call(call.method, &context, reply);
        }
        let text = match call.method {
            "decodescript" => scripts::decode_script(&mut context),
            "decoderawtransaction" => transactions::decode_raw_transaction(&mut context),
            method => {
                let outcome = self.answer(method, &mut context, &reply);
                reply.send(outcome);
                return;
            }
        };
        reply.send_json(text);
    }

    fn cancel(&self, token: u64) {
        self.waits.cancel(token);
    }

    fn event(&self, event: Event) {
        match event {
            Event::TipChanged { .. } => self.waits.answer_due(),
            Event::ShuttingDown => self.waits.close(),
            _ => {}
        }
    }

    fn quiesce(&self) {
        self.shared.coin_scan.abort();
        self.shared.block_scan.abort();
        self.waits.close();
    }

    fn stop(&self) {
        self.waits.end();
    }
}

// Arguments may hold private keys, and parsing them frees copies.
outrigger_sdk::wipe_freed_memory!();
outrigger_sdk::export_plugin!(ChainPlugin, include_str!("../manifest.json"));

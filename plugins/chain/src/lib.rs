//! The operation group `chain`: the chain and the mempool as they are, raw transactions, addresses and descriptors.
//!
//! Invariants: of the chain nothing is kept between calls, but for the answer to one question (whether it has caught up with the
//! clock since the start) and the headers of block filters, which never change. A call that waits holds no thread. What a call reads comes from one snapshot. Results have Bitcoin Core 29's keys in its order, and
//! no others: strict clients refuse what they do not know.

mod activity;
mod args;
mod block_stats;
mod blocks;
mod coins;
mod deployments;
mod descriptors;
mod error;
mod filters;
mod header;
mod limits;
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

use crate::error::ChainError;
use crate::filters::FilterHeaders;
use crate::mempool::Relatives;
use crate::scan::Scan;
use crate::waiting::Waits;

/// The plugin.
pub struct ChainPlugin {
    host: Host,
    kept: Kept,
    waits: Arc<Waits>,
}

/// The state that outlives a call.
#[derive(Default)]
struct Kept {
    /// Whether the tip's time has once been close to the clock's. It stays so.
    caught_up: AtomicBool,
    coin_scan: Scan,
    block_scan: Scan,
    filter_headers: FilterHeaders,
}

type Context<'a> = CallContext<'a, Kept>;

type Outcome = Result<Value, ChainError>;

impl ChainPlugin {
    fn answer(&self, method: &str, context: &mut Context<'_>, reply: &Reply) -> Outcome {
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
            // As on a node without peers.
            "getconnectioncount" => Ok(json!(0)),
            "getpeerinfo" | "listbanned" => Ok(json!([])),
            "getnodeaddresses" => network::get_node_addresses(context),
            "ping" => Ok(Value::Null),
            "getzmqnotifications" => network::get_zmq_notifications(context),
            "getnettotals" => network::get_net_totals(),
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
            other => Err(RpcError::no_method(other).into()),
        }
    }
}

impl Plugin for ChainPlugin {
    fn new(host: Host, _: Map<String, Value>) -> Result<Self, String> {
        Ok(Self { waits: Waits::new(host.clone()), host, kept: Kept::default() })
    }

    fn call(&self, call: Call<'_>, reply: Reply) {
        let mut context = Context { host: &self.host, scope: call.scope, params: call.params, plugin: &self.kept };
        if call.method.starts_with("waitfor") {
            return self.waits.call(call.method, &context, reply);
        }
        let text = match call.method {
            "decodescript" => scripts::decode_script(&mut context),
            "decoderawtransaction" => transactions::decode_raw_transaction(&mut context),
            method => {
                let outcome = self.answer(method, &mut context, &reply);
                reply.send(outcome.map_err(Into::into));
                return;
            }
        };
        reply.send_json(text.map_err(Into::into));
    }

    fn cancel(&self, token: u64) {
        self.waits.cancel(token);
    }

    fn event(&self, event: Event) {
        match event {
            Event::TipChanged { .. } => self.waits.look(),
            Event::ShuttingDown => self.waits.close(),
            _ => {}
        }
    }

    fn quiesce(&self) {
        self.kept.coin_scan.abort();
        self.kept.block_scan.abort();
        self.waits.close();
    }

    fn stop(&self) {
        self.waits.end();
    }
}

// Arguments hold keys, and what is parsed from them is freed unseen.
outrigger_sdk::wipe_freed_memory!();
outrigger_sdk::export_plugin!(ChainPlugin, include_str!("../manifest.json"));

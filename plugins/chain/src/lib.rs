//! The operation group `chain`: the chain and the mempool as they are, raw transactions, addresses and descriptors.
//!
//! Invariants: nothing is kept between calls, but for the answer to one question (whether the chain has caught up with the
//! clock since the start). What a call reads comes from one snapshot. Results have Bitcoin Core 29's keys in its order, and
//! no others: strict clients refuse what they do not know.

mod args;
mod block_stats;
mod blocks;
mod coins;
mod create;
mod deployments;
mod descriptors;
mod error;
mod header;
mod limits;
mod mempool;
mod muhash;
mod network;
mod scripts;
mod send;
mod statistics;
mod transactions;

#[cfg(test)]
mod tests;

use std::sync::atomic::AtomicBool;

use outrigger_sdk::{Call, CallContext, Host, Plugin, Reply, RpcError};
use serde_json::{Map, Value};

use crate::error::ChainError;
use crate::mempool::Relatives;

/// The plugin.
pub struct ChainPlugin {
    host: Host,
    /// Whether the tip's time has once been close to the clock's. It stays so.
    caught_up: AtomicBool,
}

/// A call. What the methods share is whether the chain was once seen to be near its end.
type Context<'a> = CallContext<'a, AtomicBool>;

type Outcome = Result<Value, ChainError>;

impl ChainPlugin {
    fn answer(&self, method: &str, context: &Context<'_>) -> Outcome {
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
            "sendrawtransaction" => send::send_raw_transaction(context),
            "testmempoolaccept" => send::test_mempool_accept(context),
            "getrawtransaction" => transactions::get_raw_transaction(context),
            "createrawtransaction" => create::create_raw_transaction(context),
            "decoderawtransaction" => transactions::decode_raw_transaction(context),
            "decodescript" => scripts::decode_script(context),
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
            "getconnectioncount" => network::get_connection_count(),
            "ping" => network::ping(),
            "getzmqnotifications" => network::get_zmq_notifications(),
            "getpeerinfo" => network::get_peer_info(),
            "getnodeaddresses" => network::get_node_addresses(context),
            "getnettotals" => network::get_net_totals(),
            "getblockfrompeer" => network::get_block_from_peer(context),
            "invalidateblock" => blocks::invalidate_block(context),
            "reconsiderblock" => blocks::reconsider_block(context),
            "setmocktime" => blocks::set_mock_time(context),
            other => Err(RpcError::no_method(other).into()),
        }
    }
}

impl Plugin for ChainPlugin {
    fn new(host: Host, _: Map<String, Value>) -> Result<Self, String> {
        Ok(Self { host, caught_up: AtomicBool::new(false) })
    }

    fn call(&self, call: Call<'_>, reply: Reply) {
        let context = Context { host: &self.host, scope: call.scope, params: call.params, plugin: &self.caught_up };
        reply.send(self.answer(call.method, &context).map_err(Into::into));
    }
}

// Arguments hold keys, and what is parsed from them is freed unseen.
outrigger_sdk::wipe_freed_memory!();
outrigger_sdk::export_plugin!(ChainPlugin, include_str!("../manifest.json"));

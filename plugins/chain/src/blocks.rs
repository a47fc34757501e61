//! Blocks: which ones the node knows, their contents, and which ones are valid.

use std::sync::atomic::{AtomicBool, Ordering};

use bitcoin::{Block, BlockHash, CompactTarget, Network, Transaction};
use outrigger_kit::blocks::{damaged, decode_header, find_block};
use outrigger_kit::without_nulls;
use outrigger_sdk::params::{encode_hex, hash_text};
use outrigger_sdk::service::chain::{BlockRef, BlockState, ChainInfo, ChainTip, SpentOutputs};
use outrigger_sdk::standard::{Spent, block_from_bytes, transaction_json, transaction_to_bytes, work};
use outrigger_sdk::wire::Blob;
use outrigger_sdk::{Call, RpcError, methods, typed};
use serde_json::{Value, json};

use crate::ChainPlugin;
use crate::header::header_json;

/// A tip older than this, in seconds, means that the chain is still being downloaded.
const MAX_TIP_AGE: u64 = 24 * 60 * 60;
/// The largest mock time, in seconds: the limit of a 64-bit clock that counts nanoseconds.
const MAX_MOCK_TIME: i64 = 9_223_372_036;

/// A verbosity: a number, or false for 0 and true for 1.
pub fn verbosity(value: Option<&Value>, default: i32) -> Result<i32, RpcError> {
    match value {
        None => Ok(default),
        Some(Value::Bool(flag)) => Ok(i32::from(*flag)),
        Some(value) => typed::integer(value),
    }
}

/// The serialisation of a block.
pub fn raw_block(call: &Call<'_>, hash: BlockHash) -> Result<Blob, RpcError> {
    call.host.chain.block(call.scope, hash)?.ok_or_else(block_not_available)
}

pub fn block_not_available() -> RpcError {
    RpcError::misc("Block not available (not fully downloaded)")
}

pub fn decode_block(raw: &[u8], hash: BlockHash) -> Result<Block, RpcError> {
    block_from_bytes(raw).ok_or_else(|| damaged(&format!("block {hash}")))
}

#[methods]
impl ChainPlugin {
    /// Describes the chain and its progress.
    ///
    /// # Result
    /// {"chain": "name", "blocks": n, "headers": n, "bestblockhash": "hash", "bits": "hex", "target": "hex",
    /// "difficulty": n, "time": n, "mediantime": n, "verificationprogress": n, "initialblockdownload": bool,
    /// "chainwork": "hex", "size_on_disk": n, "pruned": false, "warnings": []}    (json object)
    #[method(category = "Blockchain", inline)]
    fn getblockchaininfo(&self, call: &Call<'_>) -> Result<Value, RpcError> {
        let info = call.host.chain.info(call.scope)?;
        let best = find_block(call, BlockRef::Hash { hash: info.tip.hash })?;
        let bits: CompactTarget = decode_header(&best)?.bits;
        let has_caught_up = has_caught_up(&self.caught_up, call)?;
        Ok(json!({
            "chain": info.network.to_core_arg(),
            "blocks": info.tip.height,
            "headers": info.headers,
            "bestblockhash": info.tip.hash,
            "bits": format!("{:08x}", bits.to_consensus()),
            "target": work::target_hex(bits),
            "difficulty": work::float(work::difficulty(bits)),
            "time": info.tip.time,
            "mediantime": info.tip.median_time,
            "verificationprogress": work::float(progress(&info)),
            "initialblockdownload": !has_caught_up,
            "chainwork": encode_hex(&best.chain_work),
            "size_on_disk": info.size_on_disk.unwrap_or_default(),
            "pruned": false,
            "warnings": info.warnings,
        }))
    }

    /// Gives the height of the best chain.
    ///
    /// # Result
    /// n    (numeric) The height; the genesis block has 0.
    #[method(category = "Blockchain", inline)]
    fn getblockcount(call: &Call<'_>) -> Result<u32, RpcError> {
        Ok(call.host.chain.tip(call.scope)?.height)
    }

    /// Gives the hash of the best chain's last block.
    ///
    /// # Result
    /// "hash"    (string)
    #[method(category = "Blockchain", inline)]
    fn getbestblockhash(call: &Call<'_>) -> Result<BlockHash, RpcError> {
        Ok(call.host.chain.tip(call.scope)?.hash)
    }

    /// Gives the hash of the best chain's block at a height.
    ///
    /// * `height` - The height.
    ///
    /// # Result
    /// "hash"    (string)
    ///
    /// # Example
    /// 1000
    #[method(category = "Blockchain", inline)]
    fn getblockhash(call: &Call<'_>, height: i32) -> Result<BlockHash, RpcError> {
        let out_of_range = || RpcError::invalid_parameter("Block height out of range");
        let height = u32::try_from(height).map_err(|_| out_of_range())?;
        let info = call.host.chain.block_info(call.scope, BlockRef::Height { height })?;
        info.map(|info| info.hash).ok_or_else(out_of_range)
    }

    /// Gives a block's header, on any branch.
    ///
    /// * `blockhash` - The block.
    /// * `verbose` - Whether to decode the header; otherwise the result is its 80 bytes in
    ///   hexadecimal.
    ///
    /// # Result
    /// {"hash": "hash", "confirmations": n, "height": n, ...}    (json object) Confirmations are -1 off the best
    /// chain.
    /// "hex"    (string) With verbose=false.
    #[method(category = "Blockchain", inline)]
    fn getblockheader(
        call: &Call<'_>,
        blockhash: &str,
        #[arg(default = true)] verbose: bool,
    ) -> Result<Value, RpcError> {
        let info = find_block(call, BlockRef::Hash { hash: hash_text(blockhash, "hash")? })?;
        if !verbose {
            return Ok(json!(encode_hex(&info.header)));
        }
        header_json(&info, &call.host.chain.tip(call.scope)?)
    }

    /// Gives a block, on any branch.
    ///
    /// * `blockhash` - The block.
    /// * `verbosity` (default: 1) - 0 for hexadecimal, 1 for an object with the ids of the transactions, 2 with
    ///   decoded transactions and their fees, 3 also with their spent outputs.
    ///
    /// # Result
    /// "hex"    (string) With verbosity 0.
    /// {"hash": "hash", ..., "strippedsize": n, "size": n, "weight": n, "tx": [...]}    (json object) With verbosity 1
    /// or more.
    ///
    /// # Example
    /// 00000000c937983704a73af28acdec37b049d214adbda81d7e2a3dd146f6ed09 2
    #[method(category = "Blockchain")]
    fn getblock(
        call: &Call<'_>,
        blockhash: &str,
        #[arg(kind = "verbosity", alias = "verbose")] verbosity: Option<&Value>,
    ) -> Result<Value, RpcError> {
        let hash = hash_text(blockhash, "blockhash")?;
        let verbosity = self::verbosity(verbosity, 1)?;
        let info = find_block(call, BlockRef::Hash { hash })?;
        let raw = raw_block(call, hash)?;
        if verbosity <= 0 {
            return Ok(json!(encode_hex(&raw)));
        }
        let block = decode_block(&raw, hash)?;
        let mut object = header_json(&info, &call.host.chain.tip(call.scope)?)?;
        let (size, weight) = (block.total_size(), block.weight().to_wu());
        object["strippedsize"] = json!((weight - size as u64) / 3);
        object["size"] = json!(size);
        object["weight"] = json!(weight);
        if let Some(coinbase) = block.coinbase().filter(|_| call.rules.block_coinbase) {
            object["coinbase_tx"] = coinbase_json(coinbase);
        }
        object["tx"] = match verbosity {
            1 => block.txdata.iter().map(|transaction| json!(transaction.compute_txid())).collect(),
            _ => transactions_json(call, &block, hash, verbosity > 2)?,
        };
        Ok(object)
    }

    /// Lists the ends of all known branches.
    ///
    /// # Result
    /// [{"height": n, "hash": "hash", "branchlen": n, "status": "active"}, ...]    (json array) The status is active,
    /// valid-fork, valid-headers, headers-only or invalid.
    #[method(category = "Blockchain", inline)]
    fn getchaintips(call: &Call<'_>) -> Result<Value, RpcError> {
        let best = call.host.chain.tip(call.scope)?;
        let mut tips = call.host.chain.tips(call.scope)?;
        tips.sort_by_key(|tip| std::cmp::Reverse(tip.height));
        let status = |tip: &ChainTip| match tip.state {
            _ if tip.hash == best.hash => "active",
            BlockState::Failed => "invalid",
            BlockState::HeaderOnly => "headers-only",
            BlockState::Stored => "valid-headers",
            BlockState::Valid => "valid-fork",
        };
        let show = |tip: &ChainTip| json!({"height": tip.height, "hash": tip.hash, "branchlen": tip.branch_length, "status": status(tip)});
        Ok(tips.iter().map(show).collect())
    }

    /// Marks a block and its descendants as invalid, and switches to the best remaining chain.
    ///
    /// * `blockhash` - The block.
    #[method(category = "Blockchain", long_running)]
    fn invalidateblock(call: &Call<'_>, blockhash: &str) -> Result<(), RpcError> {
        let info = find_block(call, BlockRef::Hash { hash: hash_text(blockhash, "blockhash")? })?;
        Ok(call.host.chain.invalidate_block(call.scope, info.hash)?)
    }

    /// Removes the marks of invalidateblock from a block, its ancestors and its descendants.
    ///
    /// * `blockhash` - The block.
    #[method(category = "Blockchain", long_running)]
    fn reconsiderblock(call: &Call<'_>, blockhash: &str) -> Result<(), RpcError> {
        let info = find_block(call, BlockRef::Hash { hash: hash_text(blockhash, "blockhash")? })?;
        Ok(call.host.chain.reconsider_block(call.scope, info.hash)?)
    }

    /// Sets the host's clock, on the regression test chain only.
    ///
    /// * `timestamp` - The time in seconds; 0 restores the real clock.
    ///
    /// # Example
    /// 1700000000
    #[method(category = "Util")]
    fn setmocktime(call: &Call<'_>, #[arg(kind = "numeric")] timestamp: &Value) -> Result<(), RpcError> {
        if call.network()? != Network::Regtest {
            return Err(RpcError::misc("setmocktime is for regression testing (-regtest mode) only"));
        }
        let time: i64 = typed::integer(timestamp)?;
        if !(0..=MAX_MOCK_TIME).contains(&time) {
            let message = format!("Mocktime must be in the range [0, {MAX_MOCK_TIME}], not {time}.");
            return Err(RpcError::invalid_parameter(message));
        }
        Ok(call.host.chain.set_mock_time(call.scope, time.unsigned_abs())?)
    }

    /// Waits until the wallets have processed all blocks and mempool changes from before the call.
    #[method(category = "Blockchain", long_running)]
    fn syncwithvalidationinterfacequeue(call: &Call<'_>) -> Result<(), RpcError> {
        // The wait matters to calls that read a wallet without waiting for the tip.
        Ok(call.host.chain.wait_for_wallets(call.scope)?)
    }
}

/// A coinbase without its outputs.
fn coinbase_json(coinbase: &Transaction) -> Value {
    let input = coinbase.input.first();
    without_nulls(json!({
        "version": coinbase.version.0,
        "locktime": coinbase.lock_time.to_consensus_u32(),
        "sequence": input.map(|input| input.sequence.to_consensus_u32()),
        "coinbase": input.map(|input| encode_hex(input.script_sig.as_bytes())),
        "witness": input.and_then(|input| input.witness.nth(0)).map(encode_hex),
    }))
}

/// The transactions of a block. If the block was ever connected, each has its fee, and with `show` the outputs it spends.
fn transactions_json(call: &Call<'_>, block: &Block, hash: BlockHash, show: bool) -> Result<Value, RpcError> {
    let network = call.network()?;
    let spent = call.host.chain.spent_outputs(call.scope, hash)?;
    let transactions = block.txdata.iter().enumerate().map(|(index, transaction)| {
        let spent = spent.as_ref().and_then(|spent| spent.get(index));
        let spent = spent.map(|SpentOutputs { coins }| Spent { coins, show });
        let mut object = transaction_json(transaction, network, spent);
        object.insert("hex".into(), json!(encode_hex(&transaction_to_bytes(transaction))));
        Value::Object(object)
    });
    Ok(transactions.collect())
}

/// Whether the tip was recent at this call or an earlier one.
fn has_caught_up(caught_up: &AtomicBool, call: &Call<'_>) -> Result<bool, RpcError> {
    if !caught_up.load(Ordering::Relaxed) {
        let chain = &call.host.chain;
        let tip = chain.tip(call.scope)?;
        caught_up.store(u64::from(tip.time) + MAX_TIP_AGE >= chain.time(call.scope)?, Ordering::Relaxed);
    }
    Ok(caught_up.load(Ordering::Relaxed))
}

/// The verified fraction of the chain. bitcoind estimates it from the network's rate of transactions. For regtest that rate
/// is zero, so bitcoind always reports 1.
fn progress(info: &ChainInfo) -> f64 {
    match info.network == Network::Regtest {
        true => 1.0,
        false => (f64::from(info.tip.height) + 1.0) / (f64::from(info.headers.max(info.tip.height)) + 1.0),
    }
}

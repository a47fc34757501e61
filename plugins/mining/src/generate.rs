//! Blocks that the host mines itself: `generatetoaddress`, `generatetodescriptor` and `generateblock`.
//!
//! Each block builds on the current tip, so these calls use the services outside of the call's snapshot.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bitcoin::absolute::LockTime;
use bitcoin::block::{Header, Version};
use bitcoin::consensus::serialize;
use bitcoin::hashes::Hash;
use bitcoin::{
    Amount, Block, BlockHash, CompactTarget, OutPoint, ScriptBuf, Sequence, Target, Transaction, TxIn, TxMerkleNode,
    TxOut, Witness, transaction,
};
use outrigger_kit::descriptor::{Checksum, Descriptor, DescriptorError};
use outrigger_kit::descriptor_syntax;
use outrigger_sdk::amount::Saturating;
use outrigger_sdk::params::{self, encode_hex};
use outrigger_sdk::service::Scope;
use outrigger_sdk::service::chain::{NextBlock, Verdict};
use outrigger_sdk::standard::release::Rules;
use outrigger_sdk::standard::{sendable_from_hex, to_script, transaction_from_bytes};
use outrigger_sdk::{Call, Host, RpcError, RpcErrorCode, methods, typed};
use serde_json::{Value, json};

use crate::template::{LastBlock, commitment};
use crate::{MiningPlugin, no_candidate};

/// The maximum height that a coinbase's script pushes as one byte (BIP 34).
const MAX_SHORT_HEIGHT: i64 = 16;
/// The number of nonces that generateblock tries.
const DEFAULT_TRIES: u64 = 1_000_000;
/// The number of nonces to try between two checks of the call's cancellation.
const TRIES_PER_CHECK: u64 = 1 << 16;
/// The maximum number of attempts to make a block while the tip changes or the block is already known.
const MAX_ATTEMPTS: usize = 100;
/// The wait for the new tip after an attempt on an outdated tip.
const NEXT_TIP_WAIT: Duration = Duration::from_millis(2);

/// The limits of the search for a nonce.
struct Effort<'a> {
    /// The number of nonces still to try.
    tries: u64,
    call: &'a Call<'a>,
    /// Whether the plugin is stopping.
    stopping: &'a AtomicBool,
}

#[methods(category = "Generating", long_running)]
impl MiningPlugin {
    /// Mines blocks at once, and returns their hashes.
    ///
    /// * `nblocks` - The number of blocks.
    /// * `address` - The address of their coinbases.
    /// * `maxtries` - The number of nonces to try for all blocks together.
    ///
    /// # Result
    /// ["hash", ...]    (json array)
    ///
    /// # Example
    /// 11 bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080
    #[method]
    fn generatetoaddress(
        &self,
        call: &Call<'_>,
        nblocks: i32,
        address: &str,
        #[arg(default = 1000000)] maxtries: i32,
    ) -> Result<Vec<BlockHash>, RpcError> {
        let script = to_script(address, call.network()?);
        let script = script.map_err(|_| RpcError::not_found("Error: Invalid address"))?;
        self.generate(call, nblocks, &script, maxtries)
    }

    /// Mines blocks at once, and returns their hashes.
    ///
    /// * `num_blocks` - The number of blocks.
    /// * `descriptor` - The descriptor of their coinbases. It has one script; the checksum is optional.
    /// * `maxtries` - The number of nonces to try for all blocks together.
    ///
    /// # Result
    /// ["hash", ...]    (json array)
    ///
    /// # Example
    /// 11 'raw(51)'
    #[method(private_keys)]
    fn generatetodescriptor(
        &self,
        call: &Call<'_>,
        num_blocks: i32,
        descriptor: &str,
        #[arg(default = 1000000)] maxtries: i32,
    ) -> Result<Vec<BlockHash>, RpcError> {
        let descriptors = parse(call, descriptor)?;
        let descriptors = descriptors.map_err(|error| RpcError::not_found(error.to_string()))?;
        self.generate(call, num_blocks, &descriptor_script(&descriptors)?, maxtries)
    }

    /// Mines a block with exactly these transactions.
    ///
    /// * `output` - The address or descriptor of its coinbase.
    /// * `transactions` - The transactions in the block's order: ids of mempool transactions, or transactions in
    ///   hexadecimal.
    /// * `submit` - Whether to submit the block.
    ///
    /// # Result
    /// {"hash": "hash", "hex": "hex"}    (json object) hex is present if the block was not submitted.
    ///
    /// # Example
    /// bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080 '[]'
    #[method]
    fn generateblock(
        &self,
        call: &Call<'_>,
        output: &str,
        transactions: &[Value],
        #[arg(default = true)] submit: bool,
    ) -> Result<Value, RpcError> {
        let script = output_script(call, output)?;
        let transactions = transactions.iter().map(|value| transaction_argument(call.host, typed::text(value)?));
        let transactions = transactions.collect::<Result<Vec<_>, _>>()?;
        let (chain, mut known) = (&call.host.chain, None);
        for _ in 0..MAX_ATTEMPTS {
            let next = unlike(known, chain.next_block(Scope::NONE)?);
            let mut block = assemble(&call.rules, &next, script.clone(), Amount::ZERO, transactions.clone());
            match chain.check_block(Scope::NONE, serialize(&block).into())? {
                Verdict::Valid => {}
                // A concurrent call has submitted the same block.
                Verdict::Duplicate | Verdict::DuplicateInconclusive => {
                    known = Some(block.header);
                    continue;
                }
                // A concurrent call has changed the tip. The host reports the new tip a moment after the chain has it.
                Verdict::NotBestPrevious => {
                    thread::sleep(NEXT_TIP_WAIT);
                    continue;
                }
                verdict => return Err(invalid_block(verdict)),
            }
            let mut effort = Effort { tries: DEFAULT_TRIES, call, stopping: &self.stopping };
            if !effort.find_nonce(&mut block.header) {
                return Err(RpcError::misc("Failed to make block."));
            }
            if !submit {
                return Ok(json!({"hash": block.block_hash(), "hex": encode_hex(&serialize(&block))}));
            }
            if submit_block(call.host, &block)? {
                return Ok(json!({"hash": block.block_hash()}));
            }
            known = Some(block.header);
        }
        Err(tip_changed())
    }

    /// Mines blocks whose coinbases pay to the script.
    fn generate(
        &self,
        call: &Call<'_>,
        blocks: i32,
        script: &ScriptBuf,
        tries: i32,
    ) -> Result<Vec<BlockHash>, RpcError> {
        // bitcoind casts a negative number to a very large unsigned number.
        let tries = i64::from(tries).cast_unsigned();
        let mut effort = Effort { tries, call, stopping: &self.stopping };
        let mut hashes = Vec::new();
        for _ in 0..blocks {
            match self.generate_next(call, script, &mut effort) {
                Ok(Some(hash)) => hashes.push(hash),
                Ok(None) => break,
                // Not -28: clients would repeat the call.
                Err(error)
                    if matches!(error.code, RpcErrorCode::IN_WARMUP | RpcErrorCode::WALLET) && !hashes.is_empty() =>
                {
                    let mined = hashes.len();
                    return Err(RpcError::wallet(format!(
                        "{mined} of {blocks} blocks were mined, then: {}",
                        error.message
                    )));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(hashes)
    }

    /// Mines a block on the tip that no concurrent call makes; `None` if the effort is spent.
    fn generate_next(
        &self,
        call: &Call<'_>,
        script: &ScriptBuf,
        effort: &mut Effort<'_>,
    ) -> Result<Option<BlockHash>, RpcError> {
        let mut known = None;
        for _ in 0..MAX_ATTEMPTS {
            let answer = call.host.mempool.candidate(Scope::NONE, None)?;
            let candidate = answer.view()?.ok_or_else(no_candidate)?;
            let read = |raw: &[u8]| transaction_from_bytes(raw).ok_or_else(not_accepted);
            let selected = candidate.transactions.iter().map(|selected| read(selected.raw));
            let (next, fees) = (unlike(known, candidate.next.read()), candidate.fees);
            let selected = selected.collect::<Result<_, _>>()?;
            let mut block = assemble(&call.rules, &next, script.clone(), fees, selected);
            self.templates.note(LastBlock::of(candidate.transactions));
            if !effort.find_nonce(&mut block.header) {
                return Ok(None);
            }
            if submit_block(call.host, &block)? {
                return Ok(Some(block.block_hash()));
            }
            known = Some(block.header);
        }
        Err(tip_changed())
    }
}

/// Gives the next block a later time than a known block on the same tip, which could have the same content.
fn unlike(known: Option<Header>, mut next: NextBlock) -> NextBlock {
    if let Some(known) = known.filter(|known| known.prev_blockhash == next.tip.hash) {
        next.time = next.time.max(known.time.saturating_add(1));
    }
    next
}

fn tip_changed() -> RpcError {
    RpcError::misc("CreateNewBlock: the tip changed while the template was made")
}

/// The error for a block that the host refuses before its proof of work.
fn invalid_block(verdict: Verdict) -> RpcError {
    let reason = match verdict {
        Verdict::DuplicateInvalid => return not_accepted(),
        Verdict::Invalid { reason, detail } if detail.is_empty() => reason,
        Verdict::Invalid { reason, detail } => format!("{reason}, {detail}"),
        verdict => format!("{verdict:?}"),
    };
    RpcError::new(RpcErrorCode::VERIFY, format!("TestBlockValidity failed: {reason}"))
}

fn not_accepted() -> RpcError {
    RpcError::internal("ProcessNewBlock, block not accepted")
}

/// Parses a descriptor in the syntax of the call's release.
fn parse(call: &Call<'_>, text: &str) -> Result<Result<Vec<Descriptor>, DescriptorError>, RpcError> {
    Ok(Descriptor::parse_as(text, call.network()?, Checksum::Optional, descriptor_syntax(&call.rules)))
}

/// The script of a descriptor or an address.
fn output_script(call: &Call<'_>, text: &str) -> Result<ScriptBuf, RpcError> {
    match parse(call, text)? {
        Ok(descriptors) => descriptor_script(&descriptors),
        Err(_) => {
            to_script(text, call.network()?).map_err(|_| RpcError::not_found("Error: Invalid address or descriptor"))
        }
    }
}

/// The script of a single, unranged descriptor. For `combo` it is P2WPKH, or P2PKH if the key is uncompressed.
fn descriptor_script(descriptors: &[Descriptor]) -> Result<ScriptBuf, RpcError> {
    let [descriptor] = descriptors else {
        return Err(RpcError::invalid_parameter("Multipath descriptor not accepted"));
    };
    if descriptor.is_ranged() {
        let message = "Ranged descriptor not accepted. Maybe pass through deriveaddresses first?";
        return Err(RpcError::invalid_parameter(message));
    }
    let not_derivable = || RpcError::not_found("Cannot derive script without private keys");
    let scripts = descriptor.expand(0).map_err(|_| not_derivable())?.scripts;
    let chosen = match scripts.len() {
        1 => scripts.first(),
        4 => scripts.get(2),
        _ => scripts.get(1),
    };
    chosen.map(|script| script.script_pubkey.clone()).ok_or_else(not_derivable)
}

/// Reads a transaction: the id of a mempool transaction, or hexadecimal.
fn transaction_argument(host: &Host, text: &str) -> Result<Transaction, RpcError> {
    let Ok(txid) = params::hash_text(text, "") else {
        return sendable_from_hex(text).ok_or_else(|| {
            let message = format!("Transaction decode failed for {text}. Make sure the tx has at least one input.");
            RpcError::undecodable(message)
        });
    };
    let found = host.mempool.transactions(Scope::NONE, vec![txid])?.pop().flatten();
    let found = found.and_then(|found| transaction_from_bytes(&found));
    found.ok_or_else(|| RpcError::not_found(format!("Transaction {text} not in mempool.")))
}

/// A block without proof of work.
fn assemble(rules: &Rules, next: &NextBlock, script: ScriptBuf, fees: Amount, transactions: Vec<Transaction>) -> Block {
    let height = i64::from(next.tip.height) + 1;
    let mut script_sig = ScriptBuf::builder().push_int(height);
    // With only a low height, the script would be too short.
    if rules.coinbase_padding || height <= MAX_SHORT_HEIGHT {
        script_sig = script_sig.push_int(0);
    }
    let (lock_time, sequence) = match rules.coinbase_lock_time {
        true => (LockTime::from_consensus(next.tip.height), Sequence::ENABLE_LOCKTIME_NO_RBF),
        false => (LockTime::ZERO, Sequence::MAX),
    };
    let commitment = commitment(transactions.iter().map(Transaction::compute_wtxid));
    let input = TxIn {
        previous_output: OutPoint::null(),
        script_sig: script_sig.into_script(),
        sequence,
        witness: Witness::from_slice(&[[0_u8; 32]]),
    };
    let coinbase = Transaction {
        version: transaction::Version::TWO,
        lock_time,
        input: vec![input],
        output: vec![
            TxOut { value: next.subsidy.saturating_add(fees), script_pubkey: script },
            TxOut { value: Amount::ZERO, script_pubkey: commitment },
        ],
    };
    let mut block = Block {
        header: Header {
            version: Version::from_consensus(next.version),
            prev_blockhash: next.tip.hash,
            merkle_root: TxMerkleNode::all_zeros(),
            time: next.time,
            bits: CompactTarget::from_consensus(next.bits),
            nonce: 0,
        },
        txdata: std::iter::once(coinbase).chain(transactions).collect(),
    };
    block.header.merkle_root = block.compute_merkle_root().unwrap_or(block.header.merkle_root);
    block
}

impl Effort<'_> {
    /// Searches for a nonce that meets the header's target. Returns whether it found one. Gives up once the client has
    /// left, the call has timed out, or the plugin is stopping.
    fn find_nonce(&mut self, header: &mut Header) -> bool {
        let target = Target::from_compact(header.bits);
        while self.tries > 0 && !self.stopping.load(Ordering::Relaxed) && self.call.is_wanted() {
            let round = self.tries.min(TRIES_PER_CHECK);
            for tried in 0..round {
                if target.is_met_by(header.block_hash()) {
                    self.tries -= tried;
                    return true;
                }
                let Some(nonce) = header.nonce.checked_add(1) else { return false };
                header.nonce = nonce;
            }
            self.tries -= round;
        }
        false
    }
}

/// Submits a block. Returns whether it is new: a concurrent call may have made the same block.
fn submit_block(host: &Host, block: &Block) -> Result<bool, RpcError> {
    match host.chain.submit_block(Scope::NONE, serialize(block).into())? {
        // The host also stores a block outside the best chain.
        Verdict::Valid | Verdict::Inconclusive => Ok(true),
        Verdict::Duplicate | Verdict::DuplicateInconclusive => Ok(false),
        _ => Err(not_accepted()),
    }
}

//! Blocks that the host mines itself: `generatetoaddress`, `generatetodescriptor` and `generateblock`.
//!
//! Each block builds on the tip of its moment, so services are asked outside of the call's snapshot.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bitcoin::absolute::LockTime;
use bitcoin::block::{Header, Version};
use bitcoin::consensus::serialize;
use bitcoin::hashes::Hash;
use bitcoin::{
    Amount, Block, BlockHash, CompactTarget, Network, OutPoint, ScriptBuf, Sequence, Target, Transaction, TxIn,
    TxMerkleNode, TxOut, Txid, Witness, transaction,
};
use outrigger_sdk::amount::Saturating;
use outrigger_sdk::descriptor::{Checksum, Descriptor};
use outrigger_sdk::params::{self, Type, encode_hex};
use outrigger_sdk::service::Scope;
use outrigger_sdk::service::chain::{NextBlock, Verdict};
use outrigger_sdk::standard::{sendable_from_hex, to_script, transaction_from_bytes};
use outrigger_sdk::{Host, Reply};
use serde_json::{Value, json};

use crate::error::MiningError;
use crate::template::{LastBlock, Templates, commitment};
use crate::{Context, Outcome};

/// How many nonces are tried unless told otherwise.
const DEFAULT_TRIES: u64 = 1_000_000;
/// How many nonces are tried between two looks at whether anyone still waits.
const TRIES_PER_LOOK: u64 = 1 << 16;
/// How often a block is made anew, where each time the tip has moved or the block is known already.
const MAX_ATTEMPTS: usize = 100;
/// How long one such attempt waits for a tip that has moved.
const NEXT_TIP_PATIENCE: Duration = Duration::from_millis(2);

/// Whether a call that mines should go on.
#[derive(Clone, Copy)]
pub struct Watch<'a> {
    /// The call's reply, which is wanted until the client has gone or the time is over.
    pub reply: &'a Reply,
    /// Whether the plugin is stopping.
    pub stopping: &'a AtomicBool,
}

impl Watch<'_> {
    fn is_over(self) -> bool {
        self.stopping.load(Ordering::Relaxed) || !self.reply.is_wanted()
    }
}

/// When to give up: the nonces that may still be tried, and whether anyone still waits.
struct Effort<'a> {
    tries: u64,
    watch: Watch<'a>,
}

pub fn generate_to_address(context: &Context<'_>, templates: &Templates, watch: Watch<'_>) -> Outcome {
    let script = |text: &str, network| to_script(text, network).map_err(|_| MiningError::Address);
    generate(context, templates, watch, script)
}

pub fn generate_to_descriptor(context: &Context<'_>, templates: &Templates, watch: Watch<'_>) -> Outcome {
    let script = |text: &str, network| {
        let parsed = Descriptor::parse(text, network, Checksum::Optional);
        descriptor_script(&parsed.map_err(|error| MiningError::Descriptor(error.to_string()))?)
    };
    generate(context, templates, watch, script)
}

/// Mines as many blocks as the first argument says, which pay the script that the second one means.
fn generate(
    context: &Context<'_>,
    templates: &Templates,
    watch: Watch<'_>,
    script: impl FnOnce(&str, Network) -> Result<ScriptBuf, MiningError>,
) -> Outcome {
    let blocks = params::int32(context.params.get(0))?;
    let tries = match context.params.given(2) {
        // bitcoind takes a negative number for a very large one.
        Some(value) => i64::from(params::int32(value)?).cast_unsigned(),
        None => DEFAULT_TRIES,
    };
    let script = script(params::text(context.params.get(1))?, network(context)?)?;
    let mut effort = Effort { tries, watch };
    let mut hashes = Vec::new();
    for _ in 0..blocks {
        let answer = context.host.mempool.candidate(Scope::NONE, None)?;
        let candidate = answer.view()?.ok_or(MiningError::NoCandidate)?;
        let read = |raw: &[u8]| transaction_from_bytes(raw).ok_or(MiningError::NotAccepted);
        let selected = candidate.transactions.iter().map(|selected| read(selected.raw));
        let (next, fees) = (candidate.next.read(), candidate.fees);
        let mut block = assemble(&next, script.clone(), fees, selected.collect::<Result<_, _>>()?);
        templates.note(LastBlock::of(candidate.transactions));
        if !effort.find_nonce(&mut block.header) {
            break;
        }
        hashes.push(json!(submit(context.host, &block)?));
    }
    Ok(Value::Array(hashes))
}

pub fn generate_block(context: &Context<'_>, watch: Watch<'_>) -> Outcome {
    let network = network(context)?;
    let script = output_script(params::text(context.params.get(0))?, network)?;
    let mut transactions = Vec::new();
    for value in params::array(context.params.get(1))? {
        let text = value.as_str().ok_or_else(|| MiningError::NotText(Type::of(value).name()))?;
        transactions.push(transaction_argument(context.host, text)?);
    }
    let submitted = context.params.flag_or(2, true)?;
    let mut block = valid_block(context.host, &script, &transactions)?;
    let mut effort = Effort { tries: DEFAULT_TRIES, watch };
    if !effort.find_nonce(&mut block.header) {
        return Err(MiningError::NoNonce);
    }
    if !submitted {
        return Ok(json!({"hash": block.block_hash(), "hex": encode_hex(&serialize(&block))}));
    }
    Ok(json!({"hash": submit(context.host, &block)?}))
}

/// A block of these transactions on the tip, without its proof of work. Other calls that make the same block at the same time may have
/// moved the tip or submitted that very block meanwhile: then it is made on the next tip, or with the next time.
fn valid_block(host: &Host, script: &ScriptBuf, transactions: &[Transaction]) -> Result<Block, MiningError> {
    let mut known: Option<Header> = None;
    for _ in 0..MAX_ATTEMPTS {
        let mut next = host.chain.next_block(Scope::NONE)?;
        if let Some(known) = known.filter(|known| known.prev_blockhash == next.tip.hash) {
            next.time = next.time.max(known.time.saturating_add(1));
        }
        let block = assemble(&next, script.clone(), Amount::ZERO, transactions.to_vec());
        match host.chain.check_block(Scope::NONE, serialize(&block).into())? {
            Verdict::Valid => return Ok(block),
            Verdict::Invalid { reason, detail } if detail.is_empty() => return Err(MiningError::InvalidBlock(reason)),
            Verdict::Invalid { reason, detail } => {
                return Err(MiningError::InvalidBlock(format!("{reason}, {detail}")));
            }
            Verdict::Duplicate | Verdict::DuplicateInconclusive => known = Some(block.header),
            Verdict::DuplicateInvalid => return Err(MiningError::NotAccepted),
            // The host tells the next tip a moment after the chain has it.
            Verdict::NotBestPrevious => thread::sleep(NEXT_TIP_PATIENCE),
            verdict => return Err(MiningError::InvalidBlock(format!("{verdict:?}"))),
        }
    }
    Err(MiningError::Unsteady)
}

fn network(context: &Context<'_>) -> Result<Network, MiningError> {
    Ok(context.host.chain.network(context.scope)?)
}

/// The script of a descriptor or an address.
fn output_script(text: &str, network: Network) -> Result<ScriptBuf, MiningError> {
    match Descriptor::parse(text, network, Checksum::Optional) {
        Ok(descriptors) => descriptor_script(&descriptors),
        Err(_) => to_script(text, network).map_err(|_| MiningError::AddressOrDescriptor),
    }
}

/// The only script that a text of these descriptors means. Of the scripts of a `combo`, that of a witness key hash, or of a
/// key hash where the key is uncompressed.
fn descriptor_script(descriptors: &[Descriptor]) -> Result<ScriptBuf, MiningError> {
    let [descriptor] = descriptors else { return Err(MiningError::Multipath) };
    if descriptor.is_ranged() {
        return Err(MiningError::Ranged);
    }
    let scripts = descriptor.expand(0).map_err(|_| MiningError::NotDerivable)?.scripts;
    let chosen = match scripts.len() {
        1 => scripts.first(),
        4 => scripts.get(2),
        _ => scripts.get(1),
    };
    chosen.map(|script| script.script_pubkey.clone()).ok_or(MiningError::NotDerivable)
}

/// A transaction of the mempool by its id, or one in hexadecimal.
fn transaction_argument(host: &Host, text: &str) -> Result<Transaction, MiningError> {
    let Ok(hash) = params::hash_text(text, "") else {
        return sendable_from_hex(text).ok_or_else(|| MiningError::TransactionUndecodable(text.to_owned()));
    };
    let found = host.mempool.transactions(Scope::NONE, vec![Txid::from_byte_array(hash)])?.pop().flatten();
    let found = found.and_then(|found| transaction_from_bytes(&found.raw));
    found.ok_or_else(|| MiningError::NotInMempool(text.to_owned()))
}

/// A block without its proof of work.
fn assemble(next: &NextBlock, script: ScriptBuf, fees: Amount, transactions: Vec<Transaction>) -> Block {
    let height = i64::from(next.tip.height) + 1;
    let commitment = commitment(transactions.iter().map(Transaction::compute_wtxid));
    let input = TxIn {
        previous_output: OutPoint::null(),
        // The height (BIP 34), and a zero that makes the script of the first blocks long enough.
        script_sig: ScriptBuf::builder().push_int(height).push_int(0).into_script(),
        sequence: Sequence::MAX,
        witness: Witness::from_slice(&[[0_u8; 32]]),
    };
    let coinbase = Transaction {
        version: transaction::Version::TWO,
        lock_time: LockTime::ZERO,
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
    /// Looks for a nonce that gives the header enough work; whether one was found.
    fn find_nonce(&mut self, header: &mut Header) -> bool {
        let target = Target::from_compact(header.bits);
        while self.tries > 0 && !self.watch.is_over() {
            let round = self.tries.min(TRIES_PER_LOOK);
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

/// Submits a block of our own.
fn submit(host: &Host, block: &Block) -> Result<BlockHash, MiningError> {
    match host.chain.submit_block(Scope::NONE, serialize(block).into())? {
        // Another block may have come first; this one is kept beside it.
        Verdict::Valid | Verdict::Duplicate | Verdict::Inconclusive => Ok(block.block_hash()),
        _ => Err(MiningError::NotAccepted),
    }
}

//! Block templates: what `getblocktemplate` answers, kept ready between calls.
//!
//! One template is kept. It is made anew when the tip changed, or when the mempool changed and the template is older than
//! five seconds; callers see the same long poll id meanwhile. Its transactions are kept as the JSON they become, so that
//! an unchanged template costs a copy.

use std::sync::Mutex;

use bitcoin::hashes::Hash;
use bitcoin::{Block, CompactTarget, ScriptBuf, WitnessMerkleNode, Wtxid, merkle_tree, opcodes};
use outrigger_sdk::Host;
use outrigger_sdk::params::encode_hex;
use outrigger_sdk::service::Scope;
use outrigger_sdk::service::chain::NextBlock;
use outrigger_sdk::service::mempool::{Candidate, Selected};
use outrigger_sdk::standard::work;
use serde_json::{Map, Value, json};

use crate::error::MiningError;
use crate::lock;

/// The age from which a change of the mempool makes a new template, in seconds.
const REFRESH_AGE: u64 = 5;
/// How often a template is begun anew because the tip changed under it.
const ATTEMPTS: usize = 5;
/// The most that a block's signature operations may cost (BIP 141).
const SIGOP_LIMIT: u32 = 80_000;
/// The most bytes of a block's serialisation, and the most weight units of a block (BIP 141).
const WEIGHT_LIMIT: u32 = 4_000_000;
/// What a template leaves for header and coinbase, in weight units.
const RESERVED_WEIGHT: u64 = 8_000;
/// What the output begins with that commits to the witnesses (BIP 141).
const COMMITMENT_HEADER: [u8; 4] = [0xaa, 0x21, 0xa9, 0xed];

/// A template's transactions and what follows from them.
struct Template {
    next: NextBlock,
    /// The mempool's sequence when it was made.
    sequence: u64,
    /// The host's time when it was made, in seconds.
    made: u64,
    /// The transactions, as JSON.
    transactions: Vec<u8>,
    /// The sum of their fees, in satoshi.
    fees: u64,
    commitment: ScriptBuf,
}

/// The template that is kept, and what the last one was, of this or of a block mined on the spot.
#[derive(Default)]
pub struct Templates {
    kept: Mutex<Option<Template>>,
    last: Mutex<Option<LastBlock>>,
}

/// The weight of the block made last, with what is left for its coinbase, and the number of its transactions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LastBlock {
    /// Its weight, in weight units.
    pub weight: u64,
    /// Its transactions, without the coinbase.
    pub transactions: usize,
}

impl Templates {
    /// The answer of `getblocktemplate`, as JSON.
    pub fn answer(&self, host: &Host, scope: Scope) -> Result<Vec<u8>, MiningError> {
        let mut kept = lock(&self.kept);
        let next = host.chain.next_block(scope)?;
        let now = host.chain.time(scope)?;
        let good = match kept.as_ref() {
            Some(template) => template.is_good(&next, now, host, scope)?,
            None => false,
        };
        if good {
            if let Some(template) = kept.as_mut() {
                template.refresh(next);
            }
        } else {
            let (template, block) = Template::make(host, scope, now)?;
            *kept = Some(template);
            self.note(block);
        }
        kept.as_ref().map(Template::json).ok_or(MiningError::Unsteady)
    }

    /// The mempool's sequence when the template that is kept was made; 0 without one.
    pub fn sequence(&self) -> u64 {
        lock(&self.kept).as_ref().map_or(0, |template| template.sequence)
    }

    /// The block that was made last, if any.
    pub fn last(&self) -> Option<LastBlock> {
        *lock(&self.last)
    }

    /// Remembers a block that was made.
    pub fn note(&self, block: LastBlock) {
        *lock(&self.last) = Some(block);
    }
}

impl LastBlock {
    /// The block that a selection makes.
    pub fn of(candidate: &Candidate) -> Self {
        let weights = candidate.transactions.iter().map(|selected| selected.weight);
        Self { weight: RESERVED_WEIGHT + weights.sum::<u64>(), transactions: candidate.transactions.len() }
    }
}

impl Template {
    fn make(host: &Host, scope: Scope, now: u64) -> Result<(Self, LastBlock), MiningError> {
        let (next, candidate) = steady(host, scope)?;
        let template = Self {
            next,
            sequence: candidate.sequence,
            made: now,
            transactions: transactions_json(&candidate.transactions),
            fees: candidate.fees,
            commitment: commitment(candidate.transactions.iter().map(|selected| selected.wtxid)),
        };
        Ok((template, LastBlock::of(&candidate)))
    }

    fn is_good(&self, next: &NextBlock, now: u64, host: &Host, scope: Scope) -> Result<bool, MiningError> {
        if self.next.tip.hash != next.tip.hash {
            return Ok(false);
        }
        // A clock that was set back must not keep a template for ever.
        let fresh = (self.made..=self.made.saturating_add(REFRESH_AGE)).contains(&now);
        Ok(fresh || host.mempool.info(scope)?.sequence == self.sequence)
    }

    /// Takes over the time of a call, which never goes back, and the target that may follow from it.
    fn refresh(&mut self, next: NextBlock) {
        let time = self.next.time.max(next.time);
        self.next = NextBlock { time, ..next };
    }

    fn json(&self) -> Vec<u8> {
        let next = &self.next;
        let bits = CompactTarget::from_consensus(next.bits);
        let available: Map<String, Value> =
            next.available.iter().map(|(rule, bit)| (rule.clone(), json!(bit))).collect();
        let before = json!({
            "capabilities": ["proposal"],
            "version": next.version,
            "rules": next.rules,
            "vbavailable": available,
            "vbrequired": 0,
            "previousblockhash": next.tip.hash,
        });
        let after = json!({
            "coinbaseaux": {},
            "coinbasevalue": next.subsidy.saturating_add(self.fees),
            "longpollid": format!("{}{}", next.tip.hash, self.sequence),
            "target": work::target_hex(bits),
            "mintime": next.min_time,
            "mutable": ["time", "transactions", "prevblock"],
            "noncerange": "00000000ffffffff",
            "sigoplimit": SIGOP_LIMIT,
            "sizelimit": WEIGHT_LIMIT,
            "weightlimit": WEIGHT_LIMIT,
            "curtime": next.time,
            "bits": format!("{:08x}", next.bits),
            "height": u64::from(next.tip.height) + 1,
            "default_witness_commitment": encode_hex(self.commitment.as_bytes()),
        });
        let (before, after) = (before.to_string(), after.to_string());
        let mut json = Vec::with_capacity(before.len() + self.transactions.len() + after.len() + 32);
        // The two objects become one: without the brace at the end of the first, and that at the start of the second.
        json.extend_from_slice(before.trim_end_matches('}').as_bytes());
        json.extend_from_slice(b",\"transactions\":");
        json.extend_from_slice(&self.transactions);
        json.push(b',');
        json.extend_from_slice(after.trim_start_matches('{').as_bytes());
        json
    }
}

/// What the next block must be and a selection for it, which belong together.
pub fn steady(host: &Host, scope: Scope) -> Result<(NextBlock, Candidate), MiningError> {
    for _ in 0..ATTEMPTS {
        let next = host.chain.next_block(scope)?;
        let candidate = host.mempool.candidate(scope)?;
        // The mempool follows the newest tip, whatever the call's snapshot shows.
        if host.chain.tip(Scope::NONE)?.hash == next.tip.hash {
            return Ok((next, candidate));
        }
        if scope != Scope::NONE {
            return steady(host, Scope::NONE);
        }
    }
    Err(MiningError::Unsteady)
}

/// The output script that commits to the witnesses of these transactions, which follow the coinbase, with a reserved value of
/// zeros (BIP 141).
pub fn commitment(transactions: impl Iterator<Item = Wtxid>) -> ScriptBuf {
    let coinbase = WitnessMerkleNode::all_zeros();
    let leaves = std::iter::once(coinbase)
        .chain(transactions.map(|wtxid| WitnessMerkleNode::from_raw_hash(wtxid.to_raw_hash())));
    let leaves: Vec<WitnessMerkleNode> = leaves.collect();
    let root = merkle_tree::calculate_root(leaves.into_iter()).unwrap_or(coinbase);
    let commitment = Block::compute_witness_commitment(&root, &[0; 32]);
    let mut data = [0; 36];
    let (header, hash) = data.split_at_mut(COMMITMENT_HEADER.len());
    header.copy_from_slice(&COMMITMENT_HEADER);
    hash.copy_from_slice(commitment.as_byte_array());
    ScriptBuf::builder().push_opcode(opcodes::all::OP_RETURN).push_slice(data).into_script()
}

/// The transactions of a template, as JSON.
fn transactions_json(transactions: &[Selected]) -> Vec<u8> {
    /// What an entry takes beside the transaction itself, in bytes.
    const ENTRY: usize = 256;
    let size = transactions.iter().map(|selected| selected.raw.len() * 2 + ENTRY).sum();
    let mut json = Vec::with_capacity(size);
    json.push(b'[');
    for (index, selected) in transactions.iter().enumerate() {
        if index > 0 {
            json.push(b',');
        }
        json.extend_from_slice(b"{\"data\":\"");
        json.extend_from_slice(encode_hex(&selected.raw).as_bytes());
        let rest = json!({
            "txid": selected.txid,
            "hash": selected.wtxid,
            "depends": selected.depends,
            "fee": selected.fee,
            "sigops": selected.sigops,
            "weight": selected.weight,
        });
        json.extend_from_slice(b"\",");
        json.extend_from_slice(rest.to_string().trim_start_matches('{').as_bytes());
    }
    json.push(b']');
    json
}

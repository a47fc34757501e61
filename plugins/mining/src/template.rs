//! Block templates for `getblocktemplate`, cached between calls.
//!
//! The plugin caches one template. It makes a new one when the tip changed, or when the mempool changed and the template is
//! older than five seconds; until then, callers see the same long poll id. The host sends each selection once: while it stays
//! the same, the plugin updates only the time and the long poll id, and calls within one second share the bytes of the answer.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use bitcoin::hashes::Hash;
use bitcoin::{Amount, Block, CompactTarget, ScriptBuf, Weight, WitnessMerkleNode, Wtxid, merkle_tree, opcodes};
use outrigger_kit::without_nulls;
use outrigger_sdk::amount::Saturating;
use outrigger_sdk::params::encode_hex;
use outrigger_sdk::service::Scope;
use outrigger_sdk::service::chain::NextBlock;
use outrigger_sdk::service::mempool::{CandidateView, Selected};
use outrigger_sdk::standard::work;
use outrigger_sdk::wire::ListView;
use outrigger_sdk::{Host, RpcError};
use serde_json::{Map, Value, json};

use crate::transactions::Parts;
use crate::{lock, no_candidate};

/// The maximum age of a template that does not reflect a change of the mempool, in seconds.
const REFRESH_AGE: u64 = 5;
/// The maximum cost of a block's signature operations (BIP 141).
const SIGOP_LIMIT: u32 = 80_000;
/// The maximum size of a block in bytes, and its maximum weight in weight units (BIP 141).
const WEIGHT_LIMIT: u32 = 4_000_000;
/// The weight reserved for the header and the coinbase.
const RESERVED_WEIGHT: Weight = Weight::from_wu(8_000);
/// The approximate size of an answer without its transactions, in bytes.
const FRAME_SIZE: usize = 2_048;
/// The header of the witness commitment in the coinbase (BIP 141).
const COMMITMENT_HEADER: [u8; 4] = [0xaa, 0x21, 0xa9, 0xed];

/// A template.
struct Template {
    /// The host's version of the selection: of the tip and the transactions.
    version: u64,
    next: NextBlock,
    /// The mempool's sequence at the last check of the selection.
    sequence: u64,
    /// The host's time at the last check of the selection, in seconds.
    made: u64,
    /// The total fees of the transactions.
    fees: Amount,
    commitment: ScriptBuf,
    /// The complete JSON.
    answer: Arc<Vec<u8>>,
    /// The position of the array of transactions in `answer`. `parts` has the positions of its entries.
    array: Range<usize>,
    parts: Parts,
    /// Whether `answer` is outdated.
    changed: bool,
    /// The previous answer. The plugin reuses its memory once no reply holds it.
    spare: Arc<Vec<u8>>,
}

/// The cached template, and the size of the last block assembled, for a template or by the generate methods.
#[derive(Default)]
pub struct Templates {
    kept: Mutex<Option<Template>>,
    last: Mutex<Option<LastBlock>>,
}

/// The size of the last block assembled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LastBlock {
    /// Includes the weight reserved for the header and the coinbase.
    pub weight: Weight,
    /// The number of transactions without the coinbase.
    pub transactions: usize,
}

impl Templates {
    /// The answer of `getblocktemplate`, as JSON. Calls wait while another call makes a template.
    pub fn answer(&self, host: &Host, scope: Scope) -> Result<Arc<Vec<u8>>, RpcError> {
        // Read before taking the lock, to hold it only briefly. If the tip is outdated by then, `refresh` ignores it.
        let next = host.chain.next_block(scope)?;
        let now = host.chain.time(scope)?;
        let mut kept = lock(&self.kept);
        if let Some(template) = kept.as_mut().filter(|template| template.is_young(&next, now)) {
            template.refresh(next);
            return Ok(template.answer());
        }
        // Read before the selection, so that the sequence never includes a change that the selection lacks.
        let sequence = host.mempool.info(scope)?.sequence;
        let known = kept.as_ref().map(|template| template.version);
        let answer = host.mempool.candidate(scope, known)?;
        match answer.view()? {
            Some(candidate) => {
                self.note(LastBlock::of(candidate.transactions));
                let template = Template::make(candidate, now, kept.take());
                Ok(kept.insert(template).answer())
            }
            None => {
                let template = kept.as_mut().ok_or_else(no_candidate)?;
                template.renew(sequence, now);
                template.refresh(next);
                Ok(template.answer())
            }
        }
    }

    /// The mempool's sequence of the cached template; 0 without one.
    pub fn sequence(&self) -> u64 {
        lock(&self.kept).as_ref().map_or(0, |template| template.sequence)
    }

    /// The size of the last block, if any.
    pub fn last(&self) -> Option<LastBlock> {
        *lock(&self.last)
    }

    /// Stores the size of the last block.
    pub fn note(&self, block: LastBlock) {
        *lock(&self.last) = Some(block);
    }
}

impl LastBlock {
    /// The size of a block with this selection.
    pub fn of(transactions: ListView<'_, Selected>) -> Self {
        let weights = transactions.iter().map(|selected| selected.weight);
        Self { weight: weights.fold(RESERVED_WEIGHT, Weight::saturating_add), transactions: transactions.len() }
    }
}

impl Template {
    /// The template of a selection. The raw transactions are read in place, and only the new ones: the JSON of the others comes from
    /// the previous template.
    fn make(candidate: CandidateView<'_>, now: u64, before: Option<Self>) -> Self {
        let CandidateView { version, next, transactions, fees, sequence } = candidate;
        let next = next.read();
        let (last, last_parts, spare) = match before {
            Some(before) => (before.answer, before.parts, before.spare),
            None => Default::default(),
        };
        let mut json = memory(spare, Parts::size(transactions) + FRAME_SIZE);
        push_before(&mut json, &next);
        let start = json.len();
        let parts = Parts::push(&mut json, transactions, Some((&last_parts, &last)));
        let array = start..json.len();
        let commitment = commitment(transactions.iter().map(|selected| selected.wtxid));
        let mut template = Self {
            version,
            next,
            sequence,
            made: now,
            fees,
            commitment,
            answer: Arc::default(),
            array,
            parts,
            changed: false,
            spare: last,
        };
        template.push_after(&mut json);
        template.answer = Arc::new(json);
        template
    }

    /// Whether the template is valid without a check of the mempool. If the clock was set back, it is not, since it might never age.
    fn is_young(&self, next: &NextBlock, now: u64) -> bool {
        self.next.tip.hash == next.tip.hash && (self.made..=self.made.saturating_add(REFRESH_AGE)).contains(&now)
    }

    /// Records that the selection is unchanged at this time and sequence.
    fn renew(&mut self, sequence: u64, now: u64) {
        self.made = now;
        self.changed |= self.sequence != sequence;
        self.sequence = sequence;
    }

    /// Updates the time, which never goes back, and the fields that may depend on it, such as the target.
    fn refresh(&mut self, next: NextBlock) {
        // The call may have read an older or a newer tip than the template's.
        if next.tip.hash == self.next.tip.hash {
            let next = NextBlock { time: self.next.time.max(next.time), ..next };
            if self.next != next {
                self.changed = true;
                self.next = next;
            }
        }
    }

    /// The answer. If it is outdated, writes a new one with a copy of the transactions.
    fn answer(&mut self) -> Arc<Vec<u8>> {
        if std::mem::take(&mut self.changed) {
            let mut json = memory(std::mem::take(&mut self.spare), self.answer.len() + FRAME_SIZE);
            push_before(&mut json, &self.next);
            let start = json.len();
            json.extend_from_slice(self.answer.get(self.array.clone()).unwrap_or_default());
            if start != self.array.start {
                // The array has moved, so the positions of its entries are wrong.
                self.parts = Parts::default();
            }
            self.array = start..json.len();
            self.push_after(&mut json);
            self.spare = std::mem::replace(&mut self.answer, Arc::new(json));
        }
        self.answer.clone()
    }

    /// Appends the members after the transactions.
    fn push_after(&self, json: &mut Vec<u8>) {
        let next = &self.next;
        let after = without_nulls(json!({
            "coinbaseaux": {},
            "coinbasevalue": next.subsidy.saturating_add(self.fees).to_sat(),
            "longpollid": format!("{}{}", next.tip.hash, self.sequence),
            "target": work::target_hex(CompactTarget::from_consensus(next.bits)),
            "mintime": next.min_time,
            "mutable": ["time", "transactions", "prevblock"],
            "noncerange": "00000000ffffffff",
            "sigoplimit": SIGOP_LIMIT,
            "sizelimit": WEIGHT_LIMIT,
            "weightlimit": WEIGHT_LIMIT,
            "curtime": next.time,
            "bits": format!("{:08x}", next.bits),
            "height": u64::from(next.tip.height) + 1,
            "signet_challenge": next.signet_challenge.as_ref().map(|challenge| encode_hex(challenge.as_bytes())),
            "default_witness_commitment": encode_hex(self.commitment.as_bytes()),
        }));
        // Continues the object after the array.
        json.push(b',');
        json.extend_from_slice(after.to_string().trim_start_matches('{').as_bytes());
    }
}

/// Appends the members before the transactions.
fn push_before(json: &mut Vec<u8>, next: &NextBlock) {
    let available: Map<String, Value> = next.available.iter().map(|(rule, bit)| (rule.clone(), json!(bit))).collect();
    let before = json!({
        "capabilities": ["proposal"],
        "version": next.version,
        "rules": next.rules,
        "vbavailable": available,
        "vbrequired": 0,
        "previousblockhash": next.tip.hash,
    });
    json.extend_from_slice(before.to_string().trim_end_matches('}').as_bytes());
    json.extend_from_slice(b",\"transactions\":");
}

/// An empty buffer for an answer. Reuses the memory of `spare` if no reply holds it.
fn memory(spare: Arc<Vec<u8>>, size: usize) -> Vec<u8> {
    let mut memory = Arc::into_inner(spare).unwrap_or_default();
    memory.clear();
    memory.reserve(size);
    memory
}

/// The script of the witness commitment output (BIP 141), for a block of the coinbase and these transactions, and a witness
/// reserved value of zeros.
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

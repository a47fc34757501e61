//! Block templates: what `getblocktemplate` answers, kept ready between calls.
//!
//! One template is kept. It is made anew when the tip changed, or when the mempool changed and the template is older than
//! five seconds; callers see the same long poll id meanwhile. The host hands a selection over once: while it stays the same,
//! only time and long poll id are written anew, and calls within one second share the very bytes of the answer.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use bitcoin::hashes::Hash;
use bitcoin::{Amount, Block, CompactTarget, ScriptBuf, Weight, WitnessMerkleNode, Wtxid, merkle_tree, opcodes};
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

/// The age from which a change of the mempool makes a new template, in seconds.
const REFRESH_AGE: u64 = 5;
/// The most that a block's signature operations may cost (BIP 141).
const SIGOP_LIMIT: u32 = 80_000;
/// The most bytes of a block's serialisation, and the most weight units of a block (BIP 141).
const WEIGHT_LIMIT: u32 = 4_000_000;
/// What a template leaves for header and coinbase.
const RESERVED_WEIGHT: Weight = Weight::from_wu(8_000);
/// What an answer takes beside its transactions, in bytes.
const FRAME_SIZE: usize = 2_048;
/// What the output begins with that commits to the witnesses (BIP 141).
const COMMITMENT_HEADER: [u8; 4] = [0xaa, 0x21, 0xa9, 0xed];

/// A template.
struct Template {
    /// The host's name for tip and transactions.
    version: u64,
    next: NextBlock,
    /// The mempool's sequence when it was made.
    sequence: u64,
    /// The host's time when it was made, in seconds.
    made: u64,
    /// The sum of its transactions' fees.
    fees: Amount,
    commitment: ScriptBuf,
    /// The whole answer.
    answer: Arc<Vec<u8>>,
    /// Where in it the array of transactions stands, and where what is said of each.
    array: Range<usize>,
    parts: Parts,
    /// Whether something is not in the answer yet.
    changed: bool,
    /// The answer before, whose memory is used again once nobody needs it.
    spare: Arc<Vec<u8>>,
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
    pub weight: Weight,
    /// Its transactions, without the coinbase.
    pub transactions: usize,
}

impl Templates {
    /// The answer of `getblocktemplate`, as JSON. Whoever comes while a template is made waits for that one.
    pub fn answer(&self, host: &Host, scope: Scope) -> Result<Arc<Vec<u8>>, RpcError> {
        // Asked before the lock is taken, which is then held for a moment only: a tip that is older by the time is no harm.
        let next = host.chain.next_block(scope)?;
        let now = host.chain.time(scope)?;
        let mut kept = lock(&self.kept);
        if let Some(template) = kept.as_mut().filter(|template| template.is_young(&next, now)) {
            template.refresh(next);
            return Ok(template.answer());
        }
        // Asked before the selection is: what came to the mempool in between is in the selection and not yet counted.
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
    pub fn of(transactions: ListView<'_, Selected>) -> Self {
        let weights = transactions.iter().map(|selected| selected.weight);
        Self { weight: weights.fold(RESERVED_WEIGHT, Weight::saturating_add), transactions: transactions.len() }
    }
}

impl Template {
    /// The template of a selection, which is read where the host wrote it: of most transactions no byte is copied, since what the
    /// template before has written of them is taken over.
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

    /// Whether it is good for now, whatever came to the mempool. A clock that was set back must not keep it for ever.
    fn is_young(&self, next: &NextBlock, now: u64) -> bool {
        self.next.tip.hash == next.tip.hash && (self.made..=self.made.saturating_add(REFRESH_AGE)).contains(&now)
    }

    /// Notes that at this time and sequence the selection was still the same.
    fn renew(&mut self, sequence: u64, now: u64) {
        self.made = now;
        self.changed |= self.sequence != sequence;
        self.sequence = sequence;
    }

    /// Takes over the time of a call, which never goes back, and the target that may follow from it.
    fn refresh(&mut self, next: NextBlock) {
        // A call may have seen the tip before or after this one's.
        if next.tip.hash == self.next.tip.hash {
            let next = NextBlock { time: self.next.time.max(next.time), ..next };
            if self.next != next {
                self.changed = true;
                self.next = next;
            }
        }
    }

    /// The answer. What has changed is written anew, and the transactions are copied.
    fn answer(&mut self) -> Arc<Vec<u8>> {
        if std::mem::take(&mut self.changed) {
            let mut json = memory(std::mem::take(&mut self.spare), self.answer.len() + FRAME_SIZE);
            push_before(&mut json, &self.next);
            let start = json.len();
            json.extend_from_slice(self.answer.get(self.array.clone()).unwrap_or_default());
            if start != self.array.start {
                // What is said of each transaction stands elsewhere now: it is not known where.
                self.parts = Parts::default();
            }
            self.array = start..json.len();
            self.push_after(&mut json);
            self.spare = std::mem::replace(&mut self.answer, Arc::new(json));
        }
        self.answer.clone()
    }

    /// Appends what follows the transactions.
    fn push_after(&self, json: &mut Vec<u8>) {
        let next = &self.next;
        let after = json!({
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
            "default_witness_commitment": encode_hex(self.commitment.as_bytes()),
        });
        // The object goes on where the array ended.
        json.push(b',');
        json.extend_from_slice(after.to_string().trim_start_matches('{').as_bytes());
    }
}

/// Appends what precedes the transactions.
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

/// Memory for an answer: what an older one took, where nobody needs that any more.
fn memory(spare: Arc<Vec<u8>>, size: usize) -> Vec<u8> {
    let mut memory = Arc::into_inner(spare).unwrap_or_default();
    memory.clear();
    memory.reserve(size);
    memory
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

//! Chunks of mempool entries (since Bitcoin Core 31). A chunk is a set of transactions of a cluster that a miner selects together.
//!
//! The embedded mempool keeps no clusters, so this module selects the ancestor set with the highest feerate first. For large clusters
//! that order may not be optimal.

use std::collections::{HashMap, HashSet};

use bitcoin::{SignedAmount, Txid, Weight};
use outrigger_kit::spend::closure;
use outrigger_sdk::amount::Saturating;
use outrigger_sdk::service::mempool::MempoolEntry;
use outrigger_sdk::{Call, RpcError};

use crate::mempool::CLUSTERS;

#[derive(Clone, Copy)]
pub struct Chunk {
    /// The modified fees (prioritisetransaction included).
    pub fee: SignedAmount,
    /// Adjusted for signature operations.
    pub weight: Weight,
}

/// The maximum number of transactions in a cluster to linearize. Each transaction of a larger cluster is its own chunk, because the
/// work grows with the cube of the number and the embedded mempool does not limit clusters.
const MAX_ORDERED: u64 = CLUSTERS.count;

impl Chunk {
    const EMPTY: Self = Self { fee: SignedAmount::ZERO, weight: Weight::ZERO };

    fn of(entry: &MempoolEntry) -> Self {
        let is_adjusted = entry.virtual_size > entry.weight.to_vbytes_ceil();
        let adjusted = Weight::from_vb(entry.virtual_size).filter(|_| is_adjusted);
        Self { fee: entry.modified_fee, weight: adjusted.unwrap_or(entry.weight) }
    }

    fn and(self, other: Self) -> Self {
        // prioritisetransaction accepts any fee delta, so the sum may overflow.
        Self { fee: self.fee.saturating_add(other.fee), weight: self.weight + other.weight }
    }

    fn pays_more_than(&self, other: &Self) -> bool {
        let product = |one: &Self, by: &Self| i128::from(one.fee.to_sat()) * i128::from(by.weight.to_wu());
        product(self, other) > product(other, self)
    }
}

/// The chunk of each entry. Reads the rest of their clusters from the mempool.
pub fn chunks(call: &Call<'_>, entries: &[&MempoolEntry]) -> Result<HashMap<Txid, Chunk>, RpcError> {
    let mut all: HashMap<Txid, MempoolEntry> = entries.iter().map(|&entry| (entry.txid, entry.clone())).collect();
    loop {
        let near = all.values().flat_map(|entry| entry.depends.iter().chain(&entry.spent_by)).copied();
        let missing: HashSet<Txid> = near.filter(|txid| !all.contains_key(txid)).collect();
        let found = call.host.mempool.entries(call.scope, missing.into_iter().collect())?;
        let before = all.len();
        all.extend(found.into_iter().flatten().map(|entry| (entry.txid, entry)));
        // Entries that have left the mempool meanwhile stay missing.
        if all.len() == before {
            return Ok(chunks_of(&all));
        }
    }
}

fn chunks_of(all: &HashMap<Txid, MempoolEntry>) -> HashMap<Txid, Chunk> {
    let mut chunks = HashMap::with_capacity(all.len());
    for entry in all.values() {
        if chunks.contains_key(&entry.txid) {
            continue;
        }
        let cluster = closure(all, [entry.txid], |entry| entry.depends.iter().chain(&entry.spent_by));
        if cluster.len() as u64 > MAX_ORDERED {
            chunks.extend(cluster.iter().filter_map(|txid| Some((*txid, Chunk::of(all.get(txid)?)))));
            continue;
        }
        for (chunk, members) in linearized(all, cluster) {
            chunks.extend(members.into_iter().map(|txid| (txid, chunk)));
        }
    }
    chunks
}

/// The chunks of a cluster, highest feerate first.
fn linearized(all: &HashMap<Txid, MempoolEntry>, mut rest: HashSet<Txid>) -> Vec<(Chunk, Vec<Txid>)> {
    let mut chunks: Vec<(Chunk, Vec<Txid>)> = Vec::new();
    while !rest.is_empty() {
        let sets = rest.iter().map(|txid| {
            let mut members: Vec<Txid> = closure(all, [*txid], |entry| entry.depends.iter())
                .into_iter()
                .filter(|txid| rest.contains(txid))
                .collect();
            members.sort_unstable();
            let sum = members
                .iter()
                .filter_map(|txid| all.get(txid))
                .fold(Chunk::EMPTY, |sum, entry| sum.and(Chunk::of(entry)));
            (sum, members)
        });
        let better = |one: (Chunk, Vec<Txid>), other: (Chunk, Vec<Txid>)| {
            let is_tie = !one.0.pays_more_than(&other.0) && !other.0.pays_more_than(&one.0);
            let first =
                if is_tie { (one.1.len(), &one.1) < (other.1.len(), &other.1) } else { one.0.pays_more_than(&other.0) };
            if first { one } else { other }
        };
        let Some((mut sum, mut members)) = sets.reduce(better) else { break };
        rest.retain(|txid| !members.contains(txid));
        // A set with a higher feerate than the chunk before it is merged into that chunk.
        while let Some((before, earlier)) = chunks.pop_if(|(before, _)| sum.pays_more_than(before)) {
            sum = before.and(sum);
            members.extend(earlier);
        }
        chunks.push((sum, members));
    }
    chunks
}

#[cfg(test)]
mod tests {
    use bitcoin::hashes::Hash;
    use bitcoin::{Amount, Wtxid};

    use super::*;

    fn txid(number: u8) -> Txid {
        Txid::from_byte_array([number; 32])
    }

    fn entry(number: u8, fee: i64, depends: &[u8], spent_by: &[u8]) -> MempoolEntry {
        let fee = SignedAmount::from_sat(fee);
        let txids = |numbers: &[u8]| numbers.iter().copied().map(txid).collect();
        MempoolEntry {
            txid: txid(number),
            wtxid: Wtxid::from_byte_array([number; 32]),
            weight: Weight::from_wu(400),
            virtual_size: 100,
            fee: Amount::ZERO,
            modified_fee: fee,
            time: 0,
            height: 0,
            ancestor_count: 0,
            ancestor_size: 0,
            ancestor_fees: fee,
            descendant_count: 0,
            descendant_size: 0,
            descendant_fees: fee,
            depends: txids(depends),
            spent_by: txids(spent_by),
            replaceable: false,
            unbroadcast: false,
        }
    }

    #[test]
    fn children_pay_for_their_parents_and_cheap_ones_stand_alone() {
        // 2 pays for its parent 1. 3 has a lower feerate than both. 4 has a higher feerate than its child 5. 6 is alone.
        let entries = [
            entry(1, 100, &[], &[2]),
            entry(2, 900, &[1], &[3]),
            entry(3, 200, &[2], &[]),
            entry(4, 700, &[], &[5]),
            entry(5, 300, &[4], &[]),
            entry(6, 50, &[], &[]),
        ];
        let all = entries.into_iter().map(|entry| (entry.txid, entry)).collect();
        let told = chunks_of(&all);
        let of = |number: u8| told.get(&txid(number)).map(|chunk| (chunk.fee.to_sat(), chunk.weight.to_wu())).unwrap();
        let expected = [(1000, 800), (1000, 800), (200, 400), (700, 400), (300, 400), (50, 400)];
        assert_eq!([1, 2, 3, 4, 5, 6].map(of), expected);
    }

    #[test]
    fn any_fees_add_up_and_signature_operations_count() {
        let mut heavy = entry(2, i64::MAX, &[1], &[]);
        heavy.virtual_size = 150;
        let all = [entry(1, i64::MAX, &[], &[2]), heavy];
        let told = chunks_of(&all.into_iter().map(|entry| (entry.txid, entry)).collect());
        assert!(told.values().all(|chunk| chunk.fee >= SignedAmount::MAX_MONEY));
        let weight = |number| told.get(&txid(number)).unwrap().weight.to_wu();
        assert_eq!((weight(1), weight(2)), (400, 600));
    }

    #[test]
    fn members_of_a_cluster_above_the_limit_stand_alone() {
        let count = u8::try_from(MAX_ORDERED).unwrap() + 1;
        let child = |number| entry(number, 900, &[0], &[]);
        let children: Vec<u8> = (1..count).collect();
        let all = children.iter().map(|number| child(*number)).chain([entry(0, 100, &[], &children)]);
        let told = chunks_of(&all.map(|entry| (entry.txid, entry)).collect());
        assert_eq!(told.len(), usize::from(count));
        assert_eq!(told.get(&txid(0)).unwrap().fee.to_sat(), 100);
    }
}

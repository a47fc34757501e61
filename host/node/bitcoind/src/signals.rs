//! Whether transactions of the mempool can be replaced (BIP 125), for nodes whose `getmempoolentry` does not say so: Bitcoin
//! Core 32 has no `bip125-replaceable`.

use std::collections::{HashMap, HashSet};

use bitcoin::Txid;
use serde_json::json;

use super::answers::EntryAnswer;
use super::blocks;
use super::error::AskError;
use super::rpc::{Question, Rpc};

/// The entries of these ids, or the node's errors.
pub fn entries(rpc: &Rpc, txids: &[Txid]) -> Result<Vec<Result<EntryAnswer, AskError>>, AskError> {
    let questions: Vec<Question> = txids.iter().map(|txid| ("getmempoolentry", json!([txid]))).collect();
    rpc.batch::<EntryAnswer>(&questions)
}

/// The transactions of `open` that signal replaceability or have a signalling ancestor in the mempool. `open` maps each
/// transaction to its parents in the mempool. Ancestors that leave the mempool meanwhile do not count.
pub fn replaceable(rpc: &Rpc, open: HashMap<Txid, Vec<Txid>>) -> Result<HashSet<Txid>, AskError> {
    let asked: Vec<Txid> = open.keys().copied().collect();
    let (mut signalling, mut parents) = (HashSet::new(), HashMap::new());
    let mut next = open;
    while !next.is_empty() {
        let txids: Vec<Txid> = next.keys().copied().collect();
        let fetched = blocks::transactions(rpc, &txids)?;
        signalling
            .extend(fetched.iter().filter(|(_, transaction)| transaction.is_explicitly_rbf()).map(|(txid, _)| *txid));
        let quiet = next.iter().filter(|(txid, _)| !signalling.contains(*txid));
        let above: HashSet<Txid> = quiet.flat_map(|(_, parents)| parents).copied().collect();
        parents.extend(next);
        let unknown: Vec<Txid> = above.into_iter().filter(|txid| !parents.contains_key(txid)).collect();
        let answers = unknown.iter().copied().zip(entries(rpc, &unknown)?);
        next = answers.filter_map(|(txid, answer)| Some((txid, answer.ok()?.depends))).collect();
    }
    Ok(asked.into_iter().filter(|txid| reaches(*txid, &signalling, &parents)).collect())
}

/// Whether a transaction or one of its ancestors is in `signalling`.
fn reaches(txid: Txid, signalling: &HashSet<Txid>, parents: &HashMap<Txid, Vec<Txid>>) -> bool {
    let (mut seen, mut open) = (HashSet::from([txid]), vec![txid]);
    while let Some(txid) = open.pop() {
        if signalling.contains(&txid) {
            return true;
        }
        open.extend(parents.get(&txid).into_iter().flatten().filter(|parent| seen.insert(**parent)));
    }
    false
}

#[cfg(test)]
mod tests {
    use bitcoin::hashes::Hash;

    use super::*;

    #[test]
    fn an_ancestor_signals_for_its_descendants() {
        let txid = |number: u8| Txid::from_byte_array([number; 32]);
        let parents: HashMap<Txid, Vec<Txid>> =
            [(1, vec![2, 3]), (2, vec![4]), (3, vec![4]), (4, vec![]), (5, vec![6])]
                .into_iter()
                .map(|(child, parents)| (txid(child), parents.into_iter().map(txid).collect()))
                .collect();
        let signalling = HashSet::from([txid(4)]);
        let told = [1, 2, 3, 4, 5, 6].map(|number| reaches(txid(number), &signalling, &parents));
        assert_eq!(told, [true, true, true, true, false, false]);
    }
}

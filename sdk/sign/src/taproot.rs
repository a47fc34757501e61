//! Spends taproot outputs (BIP341): by the internal key, by the output key, or by the leaf with the smallest witness.

use bitcoin::ScriptBuf;
use bitcoin::consensus::encode::VarInt;
use bitcoin::taproot::{LeafVersion, TapLeafHash};

use super::policy;
use super::producer::{Elements, Producer};
use super::signatures::TaprootPath;
use outrigger_service::wallet::TapLeaf;

/// The bits of the leaf version in a control block's first byte.
const LEAF_VERSION_MASK: u8 = 0xfe;
/// The leaf version of tapscript (BIP342), the only one defined.
const LEAF_VERSION_TAPSCRIPT: u8 = 0xc0;

/// The witness that spends the output with this output key; `None` if signatures or scripts are missing.
pub(super) fn solve(producer: &mut Producer<'_>, output_key: &[u8; 32]) -> Option<Elements> {
    let data = producer.taproot(output_key);
    producer.met.taproot.clone_from(&data);
    if let Some(signature) = producer.signatures.key_path() {
        return Some(vec![signature]);
    }
    if let Some(data) = &data {
        let path = TaprootPath::InternalKey { merkle_root: data.merkle_root };
        if let Some(signature) = producer.signatures.schnorr(data.internal_key, path) {
            return Some(vec![signature]);
        }
    }
    // The output key may be untweaked.
    if let Some(signature) = producer.signatures.schnorr(*output_key, TaprootPath::OutputKey) {
        return Some(vec![signature]);
    }
    let mut best: Option<Elements> = None;
    for leaf in distinct_leaves(&data.as_ref()?.leaves) {
        if let Some(witness) = solve_leaf(producer, leaf)
            && best.as_ref().is_none_or(|best| serialized_size(&witness) < serialized_size(best))
        {
            best = Some(witness);
        }
    }
    best
}

/// The tapscript leaves, sorted by script, each with its shortest control block: bitcoind's order of comparison.
fn distinct_leaves(leaves: &[TapLeaf]) -> Vec<&TapLeaf> {
    let mut leaves: Vec<&TapLeaf> = leaves.iter().filter(|leaf| is_tapscript(leaf)).collect();
    leaves.sort_by_key(|leaf| (leaf.script.as_bytes(), leaf.control_block.len(), &leaf.control_block));
    leaves.dedup_by_key(|leaf| leaf.script.as_bytes());
    leaves
}

fn is_tapscript(leaf: &TapLeaf) -> bool {
    leaf.control_block.first().is_some_and(|byte| byte & LEAF_VERSION_MASK == LEAF_VERSION_TAPSCRIPT)
}

fn solve_leaf(producer: &mut Producer<'_>, leaf: &TapLeaf) -> Option<Elements> {
    let hash = TapLeafHash::from_script(&leaf.script, LeafVersion::TapScript);
    let mut elements = policy::satisfy_leaf(producer, &leaf.script, hash)?;
    elements.push(ScriptBuf::into_bytes(leaf.script.clone()));
    elements.push(leaf.control_block.to_vec());
    Some(elements)
}

fn serialized_size(elements: &[Vec<u8>]) -> usize {
    let with_length = |length: usize| VarInt(length as u64).size() + length;
    VarInt(elements.len() as u64).size() + elements.iter().map(|element| with_length(element.len())).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_service::wire::Blob;

    fn leaf(script: &[u8], control: &[u8]) -> TapLeaf {
        TapLeaf { script: ScriptBuf::from_bytes(script.to_vec()), control_block: Blob(control.to_vec()) }
    }

    #[test]
    fn leaves_are_compared_by_script_with_their_shortest_control_block() {
        let leaves = [leaf(&[2], &[0xc0, 1]), leaf(&[1], &[0xc1, 2, 2]), leaf(&[1], &[0xc0, 3]), leaf(&[0], &[0xc2])];
        let distinct: Vec<&TapLeaf> = distinct_leaves(&leaves);
        assert_eq!(distinct, [&leaves[2], &leaves[0]]);
    }

    #[test]
    fn sizes_count_lengths_as_a_transaction_writes_them() {
        assert_eq!(serialized_size(&[]), 1);
        assert_eq!(serialized_size(&[vec![], vec![0; 252], vec![0; 253]]), 1 + 1 + 253 + 256);
    }
}

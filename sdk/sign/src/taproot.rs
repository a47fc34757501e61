//! Spends taproot outputs (BIP341): by the internal key, by the output key, or by the leaf with the smallest witness.

use bitcoin::taproot::{LeafVersion, TAPROOT_LEAF_MASK, TAPROOT_LEAF_TAPSCRIPT, TapLeafHash};
use bitcoin::{ScriptBuf, Witness};

use super::findings::Elements;
use super::job::Job;
use super::policy;
use outrigger_service::signer::Scheme;
use outrigger_service::wallet::TapLeaf;

/// The witness that spends the output with this output key; `None` if signatures or scripts are missing.
pub(super) fn solve(job: &mut Job<'_>, output_key: &[u8; 32]) -> Option<Elements> {
    let data = job.taproot(output_key);
    job.met.taproot.clone_from(&data);
    if let Some(signature) = job.observer.signatures.key_path.clone() {
        return Some(vec![signature]);
    }
    if let Some(data) = &data {
        let scheme = || Scheme::TaprootKey { merkle_root: data.merkle_root };
        if let Some(signature) = job.observer.signatures.schnorr(data.internal_key, None, scheme) {
            return Some(vec![signature]);
        }
    }
    // The output key may be untweaked.
    if let Some(signature) = job.observer.signatures.schnorr(*output_key, None, || Scheme::TaprootOutputKey) {
        return Some(vec![signature]);
    }
    let leaves = distinct_leaves(&data.as_ref()?.leaves).into_iter();
    leaves.filter_map(|leaf| solve_leaf(job, leaf)).min_by_key(|witness| Witness::from_slice(witness).size())
}

/// The tapscript leaves, sorted by script, each with its shortest control block: bitcoind's order of comparison.
fn distinct_leaves(leaves: &[TapLeaf]) -> Vec<&TapLeaf> {
    let mut leaves: Vec<&TapLeaf> = leaves.iter().filter(|leaf| is_tapscript(leaf)).collect();
    leaves.sort_by_key(|leaf| (leaf.script.as_bytes(), leaf.control_block.len(), &leaf.control_block));
    leaves.dedup_by_key(|leaf| leaf.script.as_bytes());
    leaves
}

fn is_tapscript(leaf: &TapLeaf) -> bool {
    leaf.control_block.first().is_some_and(|byte| byte & TAPROOT_LEAF_MASK == TAPROOT_LEAF_TAPSCRIPT)
}

fn solve_leaf(job: &mut Job<'_>, leaf: &TapLeaf) -> Option<Elements> {
    let hash = TapLeafHash::from_script(&leaf.script, LeafVersion::TapScript);
    let mut elements = policy::satisfy_leaf(job, &leaf.script, hash)?;
    elements.push(ScriptBuf::into_bytes(leaf.script.clone()));
    elements.push(leaf.control_block.to_vec());
    Some(elements)
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
}

//! Verifies the node's replies: a block or transaction by its hash, and a spent output by the part of its script that the
//! input reveals.

use bitcoin::consensus::deserialize;
use bitcoin::hashes::{Hash, sha256};
use bitcoin::script::Instruction;
use bitcoin::secp256k1::Secp256k1;
use bitcoin::taproot::{ControlBlock, TAPROOT_ANNEX_PREFIX, TAPROOT_LEAF_MASK};
use bitcoin::{
    Block, BlockHash, PubkeyHash, Script, ScriptHash, Transaction, TxIn, Txid, WPubkeyHash, Witness, XOnlyPublicKey,
};
use outrigger_node::ReadBlock;
use outrigger_node::merkle::{merkle_root, witness_commitment};

/// A block time, in Unix seconds, some hours after segwit's activation on the main network (block 481,824). No node
/// checked commitments of earlier blocks, and those need no witness.
const SEGWIT_IN_FORCE: u32 = 1_503_547_200;

/// Parses a block, and checks its hash, coinbase, Merkle root and witness commitment. The error is the reason.
pub fn block(hash: BlockHash, bytes: &[u8]) -> Result<ReadBlock, &'static str> {
    let block: Block = deserialize(bytes).map_err(|_| "cannot be read")?;
    if block.block_hash() != hash {
        return Err("has another hash");
    }
    // Otherwise the node could pass off inner nodes of the Merkle tree as transactions of 64 bytes.
    if !block.txdata.first().is_some_and(Transaction::is_coinbase) {
        return Err("begins with no coinbase transaction");
    }
    let read = ReadBlock::new(block, bytes.len());
    if !are_transactions_of(&read.block.header, read.txids.iter().copied()) {
        return Err("has other transactions than its header commits to");
    }
    let proven = has_proven_witnesses(&read.block);
    if proven { Ok(read) } else { Err("has witnesses that its coinbase does not commit to") }
}

/// Whether a header commits to exactly these transactions, each once (CVE-2012-2459).
pub fn are_transactions_of(header: &bitcoin::block::Header, ids: impl Iterator<Item = Txid>) -> bool {
    let (root, mutated) = merkle_root(ids.map(Txid::to_raw_hash).collect());
    !mutated && root == header.merkle_root.to_raw_hash()
}

/// Whether the coinbase commits to the witnesses. Without a commitment a block has none.
fn has_proven_witnesses(block: &Block) -> bool {
    if block.txdata.iter().flat_map(|tx| &tx.input).any(|input| !input.witness.is_empty()) {
        return block.check_witness_commitment();
    }
    // A node that drops all witnesses also drops the coinbase's reserved value. Before segwit's activation there was no
    // such value, and bitcoind committed with 32 zeros instead.
    let Some(committed) = block.txdata.first().and_then(witness_commitment) else { return true };
    block.header.time < SEGWIT_IN_FORCE
        || block
            .witness_root()
            .is_some_and(|root| Block::compute_witness_commitment(&root, &[0; 32]).as_byte_array() == committed)
}

/// Whether the keys, scripts and commitments that an input reveals prove that it cannot spend an output of this script.
pub fn contradicts(input: &TxIn, script: &Script) -> bool {
    let pushed = || match input.script_sig.instructions().last() {
        Some(Ok(Instruction::PushBytes(bytes))) => Some(bytes.as_bytes()),
        _ => None,
    };
    // A scriptSig with operations may compute the key or the script.
    if !input.script_sig.is_push_only() {
        return false;
    }
    if let Some(hash) = script.is_p2pkh().then(|| &script.as_bytes()[3..23]) {
        return pushed().is_none_or(|key| PubkeyHash::hash(key).as_byte_array()[..] != *hash);
    }
    if let Some(hash) = script.is_p2sh().then(|| &script.as_bytes()[2..22]) {
        return pushed().is_none_or(|redeem| {
            let is_other = ScriptHash::hash(redeem).as_byte_array()[..] != *hash;
            is_other || contradicts_witness(&input.witness, Script::from_bytes(redeem), true)
        });
    }
    contradicts_witness(&input.witness, script, false)
}

fn contradicts_witness(witness: &Witness, script: &Script, is_nested: bool) -> bool {
    let Some(program) = script.is_witness_program().then(|| script.as_bytes().get(2..)).flatten() else {
        // Only witness programs take a witness.
        return !witness.is_empty();
    };
    let last = witness.last().unwrap_or_default();
    if script.is_p2wpkh() {
        return witness.len() != 2 || WPubkeyHash::hash(last).as_byte_array()[..] != *program;
    }
    if script.is_p2wsh() {
        return witness.is_empty() || sha256::Hash::hash(last).as_byte_array()[..] != *program;
    }
    script.is_p2tr() && !is_nested && contradicts_taproot(witness, program)
}

/// A key path spend reveals nothing. A script path spend reveals how the output's key was computed.
fn contradicts_taproot(witness: &Witness, program: &[u8]) -> bool {
    let mut items: Vec<&[u8]> = witness.iter().collect();
    if items.len() > 1 && items.last().is_some_and(|last| last.first() == Some(&TAPROOT_ANNEX_PREFIX)) {
        items.pop();
    }
    let [.., leaf, control] = items[..] else { return items.is_empty() };
    // Consensus accepts this leaf version. The library refuses it, since the byte is also the annex prefix.
    if control.first().is_some_and(|version| version & TAPROOT_LEAF_MASK == TAPROOT_ANNEX_PREFIX) {
        return false;
    }
    let (Ok(key), Ok(control)) = (XOnlyPublicKey::from_slice(program), ControlBlock::decode(control)) else {
        return true;
    };
    !control.verify_taproot_commitment(&Secp256k1::verification_only(), key, Script::from_bytes(leaf))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bitcoin::block::Header;
    use bitcoin::consensus::serialize;
    use bitcoin::hex::FromHex;
    use bitcoin::{Amount, OutPoint, ScriptBuf, Sequence, TxOut, absolute, transaction};
    use outrigger_node::merkle::COMMITMENT_PREFIX;

    fn input(script_sig: ScriptBuf, witness: Witness) -> TxIn {
        let previous_output = OutPoint { txid: Txid::all_zeros(), vout: 0 };
        TxIn { previous_output, script_sig, sequence: Sequence::MAX, witness }
    }

    fn transaction(input: TxIn, output: Vec<TxOut>) -> Transaction {
        Transaction {
            version: transaction::Version::TWO,
            lock_time: absolute::LockTime::ZERO,
            input: vec![input],
            output,
        }
    }

    /// A block of three transactions. Its coinbase commits to the witnesses of two.
    fn made() -> Block {
        let mut coinbase = input(ScriptBuf::from(vec![1, 1]), Witness::from_slice(&[[0; 32]]));
        coinbase.previous_output = OutPoint::null();
        let pay = |value| TxOut { value: Amount::from_sat(value), script_pubkey: ScriptBuf::new() };
        let spend = |value| transaction(input(ScriptBuf::new(), Witness::from_slice(&[[7; 70]])), vec![pay(value)]);
        let header = Header {
            version: bitcoin::block::Version::TWO,
            prev_blockhash: BlockHash::all_zeros(),
            merkle_root: bitcoin::TxMerkleNode::all_zeros(),
            time: SEGWIT_IN_FORCE,
            bits: bitcoin::CompactTarget::from_consensus(0x207f_ffff),
            nonce: 0,
        };
        let mut block = Block { header, txdata: vec![transaction(coinbase, vec![pay(50)]), spend(1), spend(2)] };
        let root = block.witness_root().unwrap();
        let commitment = Block::compute_witness_commitment(&root, &[0; 32]);
        let script = [&COMMITMENT_PREFIX[..], commitment.as_byte_array()].concat();
        block.txdata[0].output.push(TxOut { value: Amount::ZERO, script_pubkey: script.into() });
        block.header.merkle_root = block.compute_merkle_root().unwrap();
        block
    }

    /// Why a changed block is refused under the original's hash.
    fn reason(change: impl Fn(&mut Block)) -> Option<&'static str> {
        let mut changed = made();
        let hash = changed.block_hash();
        change(&mut changed);
        block(hash, &serialize(&changed)).err()
    }

    #[test]
    fn block_proves_its_header_transactions_and_witnesses() {
        assert_eq!(reason(|_| {}), None);
        assert_eq!(reason(|block| block.header.nonce = 1), Some("has another hash"));
        let others = Some("has other transactions than its header commits to");
        assert_eq!(reason(|block| block.txdata[1].output[0].value = Amount::from_sat(3)), others);
        assert_eq!(reason(|block| block.txdata.truncate(1)), others);
        assert_eq!(reason(|block| block.txdata.swap(1, 2)), others);
        // These four transactions have the same root as the three.
        assert_eq!(reason(|block| block.txdata.push(block.txdata[2].clone())), others);
        assert_eq!(reason(|block| block.txdata.clear()), Some("begins with no coinbase transaction"));
        assert_eq!(reason(|block| drop(block.txdata.remove(0))), Some("begins with no coinbase transaction"));
        let witnesses = Some("has witnesses that its coinbase does not commit to");
        assert_eq!(reason(|block| block.txdata[2].input[0].witness.push([1])), witnesses);
        assert_eq!(reason(|block| block.txdata[2].input[0].witness.clear()), witnesses);
        assert_eq!(reason(|block| block.txdata[0].input[0].witness.clear()), witnesses);
        let clear = |block: &mut Block| {
            block
                .txdata
                .iter_mut()
                .flat_map(|transaction| &mut transaction.input)
                .for_each(|input| input.witness.clear());
        };
        assert_eq!(reason(clear), witnesses);
        assert_eq!(block(made().block_hash(), &[1, 2, 3]).err(), Some("cannot be read"));
    }

    #[test]
    fn block_without_witnesses_needs_no_commitment() {
        let mut old = made();
        old.txdata.iter_mut().flat_map(|transaction| &mut transaction.input).for_each(|input| input.witness.clear());
        old.header.time = SEGWIT_IN_FORCE - 1;
        assert!(block(old.block_hash(), &serialize(&old)).is_ok());
        old.header.time = SEGWIT_IN_FORCE;
        old.txdata[0].output.pop();
        old.header.merkle_root = old.compute_merkle_root().unwrap();
        assert!(block(old.block_hash(), &serialize(&old)).is_ok());
        old.txdata[1].input[0].witness.push([1]);
        assert!(block(old.block_hash(), &serialize(&old)).is_err());
    }

    #[test]
    fn input_contradicts_scripts_whose_keys_or_scripts_it_does_not_reveal() {
        let key = bitcoin::PublicKey::from_slice(
            &<[u8; 33]>::from_hex("0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798").unwrap(),
        )
        .unwrap();
        let compressed = bitcoin::CompressedPublicKey::try_from(key).unwrap();
        let (other, signature) = ([3; 33], [0x30; 71]);
        let push = |items: &[&[u8]]| {
            items
                .iter()
                .fold(bitcoin::script::Builder::new(), |builder, item| {
                    builder.push_slice(<&bitcoin::script::PushBytes>::try_from(*item).unwrap())
                })
                .into_script()
        };
        let p2wpkh = ScriptBuf::new_p2wpkh(&compressed.wpubkey_hash());
        let leaf = ScriptBuf::from(vec![0x51]);
        let p2wsh = ScriptBuf::new_p2wsh(&leaf.wscript_hash());
        let revealed: Vec<(ScriptBuf, TxIn, TxIn)> = vec![
            (
                ScriptBuf::new_p2pkh(&key.pubkey_hash()),
                input(push(&[&signature, &key.to_bytes()]), Witness::new()),
                input(push(&[&signature, &other]), Witness::new()),
            ),
            (
                p2wpkh.clone(),
                input(ScriptBuf::new(), Witness::from_slice(&[&signature[..], &key.to_bytes()])),
                input(ScriptBuf::new(), Witness::from_slice(&[&signature[..], &other])),
            ),
            (
                p2wpkh.to_p2sh(),
                input(push(&[p2wpkh.as_bytes()]), Witness::from_slice(&[&signature[..], &key.to_bytes()])),
                input(push(&[p2wpkh.as_bytes()]), Witness::from_slice(&[&signature[..], &other])),
            ),
            (
                p2wsh.clone(),
                input(ScriptBuf::new(), Witness::from_slice(&[leaf.as_bytes()])),
                input(ScriptBuf::new(), Witness::from_slice(&[[0x52]])),
            ),
            (leaf.to_p2sh(), input(push(&[leaf.as_bytes()]), Witness::new()), input(push(&[&[0x52]]), Witness::new())),
        ];
        for (script, right, wrong) in &revealed {
            assert!(!contradicts(right, script), "{script}");
            assert!(contradicts(wrong, script), "{script}");
            assert!(contradicts(&input(ScriptBuf::new(), Witness::new()), script), "{script}");
        }
        // A key path, a bare script and a later witness version reveal nothing.
        let taproot = ScriptBuf::new_p2tr_tweaked(bitcoin::key::TweakedPublicKey::dangerous_assume_tweaked(key.into()));
        assert!(!contradicts(&input(ScriptBuf::new(), Witness::from_slice(&[[0; 64]])), &taproot));
        assert!(contradicts(&input(ScriptBuf::new(), Witness::from_slice(&[vec![0x51], vec![0xc0; 33]])), &taproot));
        assert!(!contradicts(&input(push(&[&signature]), Witness::new()), &ScriptBuf::new_p2pk(&key)));
        assert!(contradicts(&input(push(&[&signature]), Witness::from_slice(&[[1]])), &ScriptBuf::new_p2pk(&key)));
    }

    #[test]
    fn input_reveals_the_tree_of_a_taproot_output() {
        let secp = Secp256k1::new();
        let internal = XOnlyPublicKey::from_slice(
            &<[u8; 32]>::from_hex("79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798").unwrap(),
        )
        .unwrap();
        let leaf = ScriptBuf::from(vec![0x51]);
        let tree = bitcoin::taproot::TaprootBuilder::new().add_leaf(0, leaf.clone()).unwrap();
        let spend = tree.finalize(&secp, internal).unwrap();
        let control =
            spend.control_block(&(leaf.clone(), bitcoin::taproot::LeafVersion::TapScript)).unwrap().serialize();
        let script = ScriptBuf::new_p2tr_tweaked(spend.output_key());
        let reveal = |leaf: &[u8], annex: Option<&[u8]>| {
            let items = [leaf, &control].into_iter().chain(annex);
            input(ScriptBuf::new(), Witness::from_slice(&items.collect::<Vec<_>>()))
        };
        assert!(!contradicts(&reveal(leaf.as_bytes(), None), &script));
        assert!(!contradicts(&reveal(leaf.as_bytes(), Some(&[TAPROOT_ANNEX_PREFIX, 1])), &script));
        assert!(contradicts(&reveal(&[0x52], None), &script));
        let unknown = Witness::from_slice(&[vec![0x51], vec![0x51; 33]]);
        assert!(!contradicts(&input(ScriptBuf::new(), unknown), &script));
    }
}

//! A miner that knows only BIPs 22, 23 and 145: it builds blocks from templates with its own coinbase.

use bitcoin::absolute::LockTime;
use bitcoin::block::{Header, Version};
use bitcoin::consensus::encode::{deserialize_hex, serialize_hex};
use bitcoin::hashes::Hash;
use bitcoin::{
    Amount, Block, CompactTarget, OutPoint, ScriptBuf, Sequence, Target, Transaction, TxIn, TxOut, Witness, transaction,
};
use serde_json::Value;

/// Builds a block on a template, with a coinbase that pays everything to `script`, and finds its proof of work.
pub fn build(template: &Value, script: ScriptBuf) -> Block {
    let mut block = assemble(template, script);
    grind(&mut block);
    block
}

/// Builds a block on a template without proof of work.
pub fn assemble(template: &Value, script: ScriptBuf) -> Block {
    let integer = |key: &str| template[key].as_u64().unwrap_or_else(|| panic!("{key} in {template}"));
    let mut outputs = vec![TxOut { value: Amount::from_sat(integer("coinbasevalue")), script_pubkey: script }];
    if let Some(commitment) = template["default_witness_commitment"].as_str() {
        outputs.push(TxOut { value: Amount::ZERO, script_pubkey: ScriptBuf::from_hex(commitment).unwrap() });
    }
    let height = i64::try_from(integer("height")).unwrap();
    let coinbase = Transaction {
        version: transaction::Version::TWO,
        lock_time: LockTime::ZERO,
        input: vec![TxIn {
            previous_output: OutPoint::null(),
            script_sig: ScriptBuf::builder().push_int(height).push_int(0).into_script(),
            sequence: Sequence::MAX,
            witness: Witness::from_slice(&[[0u8; 32]]),
        }],
        output: outputs,
    };
    let others = template["transactions"].as_array().unwrap().iter();
    let others = others.map(|entry| deserialize_hex::<Transaction>(entry["data"].as_str().unwrap()).unwrap());
    let mut block = Block {
        header: Header {
            version: Version::from_consensus(i32::try_from(integer("version")).unwrap()),
            prev_blockhash: template["previousblockhash"].as_str().unwrap().parse().unwrap(),
            merkle_root: bitcoin::TxMerkleNode::all_zeros(),
            time: u32::try_from(integer("curtime")).unwrap(),
            bits: CompactTarget::from_unprefixed_hex(template["bits"].as_str().unwrap()).unwrap(),
            nonce: 0,
        },
        txdata: std::iter::once(coinbase).chain(others).collect(),
    };
    set_merkle_root(&mut block);
    block
}

pub fn set_merkle_root(block: &mut Block) {
    block.header.merkle_root = block.compute_merkle_root().unwrap();
}

/// Finds a nonce that meets the block's own target.
pub fn grind(block: &mut Block) {
    let target = Target::from_compact(block.header.bits);
    while !target.is_met_by(block.header.block_hash()) {
        block.header.nonce += 1;
    }
}

pub fn hex(block: &Block) -> String {
    serialize_hex(block)
}

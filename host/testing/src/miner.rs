use bitcoin::absolute::LockTime;
use bitcoin::block::{Header, Version};
use bitcoin::consensus::{deserialize, serialize};
use bitcoin::hashes::{Hash, sha256d};
use bitcoin::{
    Amount, Block, BlockHash, CompactTarget, Script, ScriptBuf, Sequence, Transaction, TxIn, TxOut, Witness,
    transaction,
};
use outrigger_embedded::EmbeddedNode;
use outrigger_node::Node;
use outrigger_sdk::FeeRate;
use outrigger_sdk::amount::Saturating;
use outrigger_service::chain::Verdict;
use outrigger_service::mempool::{Admission, Candidate};

use crate::TestHost;

/// A script that anyone can spend (`OP_TRUE`). Blocks pay to it by default.
pub const ANYONE: &[u8] = &[0x51];

impl TestHost {
    /// Mines this many blocks that pay to [`ANYONE`] and include the mempool's transactions. Returns their hashes.
    ///
    /// # Panics
    /// The node refuses a block.
    pub fn mine(&self, blocks: u32) -> Vec<BlockHash> {
        (0..blocks).map(|_| self.mine_to(Script::from_bytes(ANYONE))).collect()
    }

    /// Mines a block that pays to a script and includes the mempool's transactions. Returns its hash.
    ///
    /// # Panics
    /// The node refuses the block.
    #[allow(clippy::expect_used, reason = "a test's own failure")]
    pub fn mine_to(&self, script: &Script) -> BlockHash {
        let candidate = self.node.candidate(None).expect("the node answers").expect("nothing was known");
        let block = block(&self.node, &candidate, script);
        let verdict = self.node.submit_block(&serialize(&block)).expect("the node answers");
        assert_eq!(verdict, Verdict::Valid, "of a block of the test");
        block.block_hash()
    }

    /// Submits a transaction to the mempool, without a limit on its feerate.
    ///
    /// # Panics
    /// The mempool refuses the transaction.
    #[allow(clippy::expect_used, reason = "a test's own failure")]
    pub fn send(&self, transaction: &Transaction) {
        let admission = self.node.submit(&serialize(transaction), FeeRate::ZERO).expect("the node answers");
        assert!(matches!(admission, Admission::Accepted { .. }), "the mempool refuses it: {admission:?}");
    }
}

#[allow(clippy::expect_used, reason = "a test's own failure")]
fn block(node: &EmbeddedNode, candidate: &Candidate, script: &Script) -> Block {
    let next = &candidate.next;
    let chosen =
        candidate.transactions.iter().map(|chosen| deserialize(&chosen.raw).expect("the node's own transaction"));
    let chosen: Vec<Transaction> = chosen.collect();
    let height = next.tip.height + 1;
    let mut coinbase = Transaction {
        version: transaction::Version::TWO,
        lock_time: LockTime::ZERO,
        input: vec![TxIn {
            // A coinbase script needs at least two bytes; the height of the first blocks takes only one.
            script_sig: ScriptBuf::builder().push_int(i64::from(height)).push_int(0).into_script(),
            sequence: Sequence::MAX,
            witness: Witness::from_slice(&[[0; 32]]),
            ..TxIn::default()
        }],
        output: vec![TxOut { value: next.subsidy.saturating_add(candidate.fees), script_pubkey: script.to_owned() }],
    };
    coinbase.output.push(commitment(&chosen));
    let header = Header {
        version: Version::from_consensus(next.version),
        prev_blockhash: next.tip.hash,
        merkle_root: Hash::all_zeros(),
        time: next.time.max(u32::try_from(node.time()).unwrap_or(u32::MAX)),
        bits: CompactTarget::from_consensus(next.bits),
        nonce: 0,
    };
    let mut block = Block { header, txdata: std::iter::once(coinbase).chain(chosen).collect() };
    block.header.merkle_root = block.compute_merkle_root().expect("a block has a coinbase");
    while block.header.validate_pow(block.header.target()).is_err() {
        block.header.nonce += 1;
    }
    block
}

/// The output that commits to the witnesses (BIP 141).
fn commitment(chosen: &[Transaction]) -> TxOut {
    let wtxids = chosen.iter().map(|transaction| transaction.compute_wtxid().to_raw_hash());
    let root = bitcoin::merkle_tree::calculate_root(std::iter::once(sha256d::Hash::all_zeros()).chain(wtxids));
    let root = root.unwrap_or_else(sha256d::Hash::all_zeros);
    let committed = sha256d::Hash::hash(&[root.as_byte_array().as_slice(), &[0; 32]].concat());
    let script = [&[0x6a, 0x24, 0xaa, 0x21, 0xa9, 0xed][..], committed.as_byte_array()].concat();
    TxOut { value: Amount::ZERO, script_pubkey: ScriptBuf::from_bytes(script) }
}

//! A miner for tests: blocks and transactions that need no keys.

use bitcoin::absolute::LockTime;
use bitcoin::block::{Header, Version as BlockVersion};
use bitcoin::consensus::serialize;
use bitcoin::hashes::Hash;
use bitcoin::script::Builder;
use bitcoin::{
    Amount, Block, BlockHash, CompactTarget, OutPoint, ScriptBuf, Sequence, Transaction, TxIn, TxOut, Txid, Witness,
    transaction,
};
use outrigger_service::chain::{BlockRef, Verdict};

use super::super::EmbeddedNode;
use super::super::params::subsidy;
use outrigger_node::Node;

/// The witness script, OP_TRUE: it succeeds without further witness items.
const ANYONE: [u8; 1] = [0x51];

/// A scriptPubKey that anyone can spend, and that is standard as an output and as an input.
pub fn anyone() -> ScriptBuf {
    ScriptBuf::from_bytes(ANYONE.to_vec()).to_p2wsh()
}

pub fn spend(from: &[(Txid, u32)], amounts: &[u64]) -> Transaction {
    let input = |(txid, vout): &(Txid, u32)| TxIn {
        previous_output: OutPoint { txid: *txid, vout: *vout },
        sequence: Sequence::MAX,
        witness: Witness::from_slice(&[ANYONE]),
        ..TxIn::default()
    };
    Transaction {
        version: transaction::Version::TWO,
        lock_time: LockTime::ZERO,
        input: from.iter().map(input).collect(),
        output: amounts
            .iter()
            .map(|amount| TxOut { value: Amount::from_sat(*amount), script_pubkey: anyone() })
            .collect(),
    }
}

pub struct Draft {
    block: Block,
}

impl Draft {
    /// A valid block on `parent` with these transactions. Its coinbase claims the subsidy; `tag` makes the coinbase
    /// unique.
    pub fn on(node: &EmbeddedNode, parent: BlockHash, transactions: &[Transaction], tag: u32) -> Self {
        let info = node.snapshot().unwrap().block_info(BlockRef::Hash { hash: parent }).unwrap().unwrap();
        let height = info.height + 1;
        let script = Builder::new().push_int(i64::from(height)).push_slice(tag.to_le_bytes()).into_script();
        let coinbase = Transaction {
            version: transaction::Version::TWO,
            lock_time: LockTime::ZERO,
            input: vec![TxIn { script_sig: script, sequence: Sequence::MAX, ..TxIn::default() }],
            output: vec![TxOut { value: subsidy(height), script_pubkey: anyone() }],
        };
        let header = Header {
            version: BlockVersion::from_consensus(0x2000_0000),
            prev_blockhash: parent,
            merkle_root: Hash::all_zeros(),
            time: info.median_time + 60,
            bits: CompactTarget::from_consensus(0x207f_ffff),
            nonce: 0,
        };
        let txdata = std::iter::once(coinbase).chain(transactions.iter().cloned()).collect();
        Self { block: Block { header, txdata } }
    }

    pub fn edit(mut self, change: impl FnOnce(&mut Block)) -> Self {
        change(&mut self.block);
        self
    }

    /// Adds the witness commitment (BIP 141), sets the merkle root and finds a nonce.
    pub fn finish(mut self) -> Block {
        let committed = Block::compute_witness_commitment(&self.block.witness_root().unwrap(), &[0; 32]);
        let script = [&[0x6a, 0x24, 0xaa, 0x21, 0xa9, 0xed][..], committed.as_byte_array()].concat();
        let coinbase = &mut self.block.txdata[0];
        coinbase.output.push(TxOut { value: Amount::ZERO, script_pubkey: ScriptBuf::from_bytes(script) });
        coinbase.input[0].witness = Witness::from_slice(&[[0; 32]]);
        self.finish_plain()
    }

    pub fn finish_plain(mut self) -> Block {
        self.block.header.merkle_root = self.block.compute_merkle_root().unwrap_or(Hash::all_zeros());
        mine(&mut self.block);
        self.block
    }
}

pub fn mine(block: &mut Block) {
    while block.header.validate_pow(block.header.target()).is_err() {
        block.header.nonce += 1;
    }
}

pub fn extend(node: &EmbeddedNode, transactions: &[Transaction]) -> Block {
    let block = Draft::on(node, node.tip().hash, transactions, 0).finish();
    assert_eq!(node.submit_block(&serialize(&block)).unwrap(), Verdict::Valid);
    assert_eq!(node.tip().hash, block.block_hash());
    block
}

/// Submits `count` empty blocks on the tip. Returns the ids of their coinbases; anyone can spend output 0 of each.
pub fn extend_by(node: &EmbeddedNode, count: u32) -> Vec<Txid> {
    (0..count).map(|_| extend(node, &[]).txdata[0].compute_txid()).collect()
}

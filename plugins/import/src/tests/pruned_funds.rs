use bitcoin::consensus::encode::serialize_hex;
use bitcoin::{Block, MerkleBlock, consensus};
use outrigger_sdk::service::chain::BlockRef;
use outrigger_sdk::service::{Chain, Scope};

use super::*;

/// The block at a height, and the proof of its first transaction.
fn proved(harness: &Harness, height: u32) -> (Block, String) {
    let info = harness.host.chain.block_info(Scope::NONE, BlockRef::Height { height }).unwrap().unwrap();
    let raw = harness.host.chain.block(Scope::NONE, info.hash).unwrap().unwrap();
    let block: Block = consensus::deserialize(&raw).unwrap();
    let first = block.txdata[0].compute_txid();
    let proof = MerkleBlock::from_block_with_predicate(&block, |txid| *txid == first);
    (block, serialize_hex(&proof))
}

#[test]
fn importprunedfunds_adds_a_transaction_of_the_wallets_chain() {
    let harness = Harness::new();
    let (block, proof) = proved(&harness, 1);
    let raw = serialize_hex(&block.txdata[0]);
    assert_eq!(harness.plugin.call("importprunedfunds", json!([raw, proof])), Ok(Value::Null));
    let added = harness.wallet(|wallet| wallet.added.clone());
    assert_eq!(added.len(), 1);
    assert_eq!(
        (outrigger_sdk::params::encode_hex(&added[0].0), added[0].1, added[0].2),
        (raw.clone(), block.block_hash(), 0)
    );
    let message = "TX decode failed. Make sure the tx has at least one input.";
    harness.refused("importprunedfunds", json!(["0200", proof]), -22, message);
    harness.refused("importprunedfunds", json!([raw, "zz"]), -8, "proof must be hexadecimal string (not 'zz')");
    harness.refused("importprunedfunds", json!([raw, "00"]), -1, "DataStream::read(): end of data: iostream error");
    let (other, _) = proved(&harness, 0);
    let message = "Transaction given doesn't exist in proof";
    harness.refused("importprunedfunds", json!([serialize_hex(&other.txdata[0]), proof]), -5, message);
    let spoilt = format!("{}00{}", &proof[..80], &proof[82..]);
    harness.refused("importprunedfunds", json!([raw, spoilt]), -5, "Something wrong with merkleblock");
    // The wallet has not processed the next block yet.
    harness.host.chain.mine(vec![]);
    let (next, proof) = proved(&harness, 2);
    let raw = serialize_hex(&next.txdata[0]);
    harness.refused("importprunedfunds", json!([raw, proof]), -5, "Block not found in chain");
}

#[test]
fn removeprunedfunds_names_a_transaction_that_the_wallet_does_not_have() {
    let harness = Harness::new();
    let txid = "11".repeat(32);
    let message = format!("Transaction {txid} does not belong to this wallet");
    harness.refused("removeprunedfunds", json!([txid]), -4, &message);
    harness.refused("removeprunedfunds", json!(["x"]), -8, "txid must be of length 64 (not 1, for 'x')");
}

#[test]
fn removeprunedfunds_needs_the_setting_deprecatedrpc_from_release_32_on() {
    let harness = Harness::new();
    let deprecated = "DEPRECATION WARNING: This feature will be removed in the next major release. Start bitcoind with the `-deprecatedrpc=removeprunedfunds` option in order to use this.";
    let unreadable = "txid must be of length 64 (not 1, for 'x')";
    for (release, kept, code, message) in [
        (31, &[][..], -8, unreadable),
        (32, &["bip125"], -32, deprecated),
        (32, &["removeprunedfunds"], -8, unreadable),
    ] {
        harness.plugin.set_release(release, kept);
        harness.refused("removeprunedfunds", json!(["x"]), code, message);
    }
}

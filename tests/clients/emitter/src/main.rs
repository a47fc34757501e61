//! A session of BDK's emitter: it follows blocks, reorganisations and the mempool, and ends with the chain that the host has.

use std::error::Error;
use std::path::PathBuf;

use bdk_bitcoind_rpc::bitcoincore_rpc::bitcoin::{BlockHash, Txid};
use bdk_bitcoind_rpc::bitcoincore_rpc::{Auth, Client, RpcApi};
use bdk_bitcoind_rpc::{Emitter, NO_EXPECTED_MEMPOOL_TXS};
use bdk_core::{BlockId, CheckPoint};
use serde_json::json;

/// The blocks at first, of which the first pays the wallet: its coinbase stays mature in all reorganisations.
const BLOCKS: u64 = 140;

/// How deep the reorganisations are that give the payment back: one block deeper each time, so that all go back to the block on
/// which it was made, below which its lock time lies in the future. And one that goes deeper.
const DEPTHS: [u64; 4] = [1, 2, 3, 4];
const DEEP: u64 = 60;

const NOBODY: &str = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";

type Done<T = ()> = Result<T, Box<dyn Error>>;

/// The chain as the emitter tells it: a block that connects to an earlier one takes the place of all after that.
struct Followed<'c> {
    emitter: Emitter<&'c Client>,
    chain: Vec<BlockHash>,
}

impl Followed<'_> {
    /// Takes over what is new; the ids of the transactions in the new blocks.
    fn follow(&mut self) -> Done<Vec<Txid>> {
        let mut confirmed = Vec::new();
        while let Some(event) = self.emitter.next_block()? {
            let height = usize::try_from(event.block_height())?;
            assert_eq!(event.block.block_hash(), event.block_hash());
            self.chain.truncate(height);
            assert_eq!(self.chain.last(), Some(&event.block.header.prev_blockhash), "block {height} connects");
            self.chain.push(event.block_hash());
            confirmed.extend(event.block.txdata.iter().map(|tx| tx.compute_txid()));
        }
        Ok(confirmed)
    }

    /// What entered the mempool and what left it since this was asked last.
    fn mempool(&mut self) -> Done<(Vec<Txid>, Vec<Txid>)> {
        let event = self.emitter.mempool()?;
        let entered = event.update.iter().map(|(tx, _)| tx.compute_txid()).collect();
        Ok((entered, event.evicted.iter().map(|(txid, _)| *txid).collect()))
    }
}

fn mine(wallet: &Client, blocks: u64) -> Done {
    // To a new address each time, so that no block is one that was invalidated before.
    let address: String = wallet.call("getnewaddress", &[])?;
    wallet.call::<Vec<BlockHash>>("generatetoaddress", &[json!(blocks), json!(address)])?;
    Ok(())
}

fn go_back(node: &Client, depth: u64) -> Done {
    let first = node.get_block_hash(node.get_block_count()? - depth + 1)?;
    Ok(node.invalidate_block(&first)?)
}

/// The best chain from the genesis block on.
fn chain(node: &Client) -> Done<Vec<BlockHash>> {
    (0..=node.get_block_count()?).map(|height| Ok(node.get_block_hash(height)?)).collect()
}

fn main() -> Done {
    let url = std::env::var("OUTRIGGER_URL")?;
    let cookie = || std::env::var("OUTRIGGER_COOKIE").map(|path| Auth::CookieFile(PathBuf::from(path)));
    let node = Client::new(&url, cookie()?)?;
    node.call::<serde_json::Value>("createwallet", &[json!("emitter")])?;
    let wallet = Client::new(&format!("{url}/wallet/emitter"), cookie()?)?;
    mine(&wallet, 1)?;
    node.call::<Vec<BlockHash>>("generatetoaddress", &[json!(BLOCKS - 1), json!(NOBODY)])?;

    let genesis = node.get_block_hash(0)?;
    let start = CheckPoint::new(BlockId { height: 0, hash: genesis });
    let emitter = Emitter::new(&node, start, 0, NO_EXPECTED_MEMPOOL_TXS);
    let mut followed = Followed { emitter, chain: vec![genesis] };
    assert_eq!(followed.follow()?.len() as u64, BLOCKS, "a coinbase each");

    // A payment comes from the mempool, and then in a block.
    let to: String = wallet.call("getnewaddress", &[])?;
    let paid: Txid = wallet.call("sendtoaddress", &[json!(to), json!(1.25)])?;
    assert_eq!(followed.mempool()?, (vec![paid], vec![]));
    mine(&wallet, 1)?;
    assert!(followed.follow()?.contains(&paid));

    for depth in DEPTHS {
        go_back(&node, depth)?;
        followed.follow()?;
        assert!(followed.mempool()?.0.contains(&paid), "{depth}");
        mine(&wallet, depth + 1)?;
        assert!(followed.follow()?.contains(&paid), "{depth}");
        assert_eq!(followed.mempool()?.0, []);
        assert_eq!(followed.chain, chain(&node)?, "{depth}");
    }
    go_back(&node, DEEP)?;
    mine(&wallet, DEEP + 1)?;
    followed.follow()?;
    assert_eq!(followed.chain, chain(&node)?);
    Ok(())
}

//! A chain in memory that connects blocks without validation.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Mutex;

use bitcoin::absolute::LockTime;
use bitcoin::block::{Header, Version};
use bitcoin::hashes::Hash;
use bitcoin::{
    Amount, Block, BlockHash, CompactTarget, Network, OutPoint, ScriptBuf, Sequence, Transaction, TxIn, TxOut, Txid,
    Witness, consensus, constants, transaction,
};

use super::lock;
use outrigger_service::chain::{
    BlockInfo, BlockRef, BlockState, ChainInfo, ChainTip, Coin, CoinSearch, ConfirmedTransaction, Cursor, Deployment,
    DeploymentRule, FoundCoin, NextBlock, Publication, SpentOutputs, StepSource, Steps, Tip, UnspentOutput, Verdict,
};
use outrigger_service::wire::{Blob, Encoded};
use outrigger_service::{Chain, ErrorKind, Result, Scope, ServiceError};

/// The subsidy of every block here.
const SUBSIDY: Amount = Amount::from_int_btc(50);

/// Seconds between the blocks that are mined here.
const SPACING: u32 = 600;

struct State {
    /// The best chain from the genesis block on.
    best: Vec<BlockHash>,
    blocks: HashMap<BlockHash, (Block, u32)>,
    undo: HashMap<BlockHash, Vec<SpentOutputs>>,
    coins: BTreeMap<OutPoint, Coin>,
    mock_time: u64,
    background: Option<u32>,
}

/// A chain in memory.
pub struct StubChain(Mutex<State>);

impl Default for StubChain {
    fn default() -> Self {
        Self::new()
    }
}

impl StubChain {
    /// The genesis block of regtest.
    pub fn new() -> Self {
        let genesis = constants::genesis_block(Network::Regtest);
        let hash = genesis.block_hash();
        Self(Mutex::new(State {
            best: vec![hash],
            blocks: HashMap::from([(hash, (genesis, 0))]),
            undo: HashMap::new(),
            coins: BTreeMap::new(),
            mock_time: 0,
            background: None,
        }))
    }

    /// From now on the chain reports that the blocks below this height are validated in the background.
    pub fn validate_below(&self, height: u32) {
        lock(&self.0).background = Some(height);
    }

    /// Connects a block with these transactions and a coinbase to `OP_TRUE`, and gives its hash.
    pub fn mine(&self, transactions: Vec<Transaction>) -> BlockHash {
        self.mine_to(ScriptBuf::from_bytes(vec![0x51]), transactions)
    }

    /// Connects a block whose coinbase pays to `script`, and gives its hash.
    pub fn mine_to(&self, script: ScriptBuf, transactions: Vec<Transaction>) -> BlockHash {
        let mut state = lock(&self.0);
        let height = state.best.len() as u32;
        let coinbase = Transaction {
            version: transaction::Version::TWO,
            lock_time: LockTime::ZERO,
            input: vec![TxIn {
                previous_output: OutPoint::null(),
                script_sig: ScriptBuf::builder().push_int(i64::from(height)).push_int(0).into_script(),
                sequence: Sequence::MAX,
                witness: Witness::new(),
            }],
            output: vec![TxOut { value: SUBSIDY, script_pubkey: script }],
        };
        let tip = state.tip_block();
        let mut block = Block {
            header: Header {
                version: Version::from_consensus(0x2000_0000),
                prev_blockhash: tip.block_hash(),
                merkle_root: bitcoin::TxMerkleNode::all_zeros(),
                time: tip.header.time + SPACING,
                bits: CompactTarget::from_consensus(0x207f_ffff),
                nonce: height,
            },
            txdata: std::iter::once(coinbase).chain(transactions).collect(),
        };
        block.header.merkle_root = block.compute_merkle_root().unwrap_or(block.header.merkle_root);
        state.connect(block)
    }

    /// Takes the last block off the best chain; it is still known.
    pub fn disconnect(&self) {
        lock(&self.0).disconnect();
    }

    /// Adds a coin without a transaction.
    pub fn add_coin(&self, outpoint: OutPoint, coin: Coin) {
        lock(&self.0).coins.insert(outpoint, coin);
    }

    /// A block that is known, on any branch.
    pub fn get(&self, hash: BlockHash) -> Option<Block> {
        lock(&self.0).blocks.get(&hash).map(|(block, _)| block.clone())
    }
}

impl State {
    fn tip_block(&self) -> &Block {
        let tip = self.best.last().and_then(|hash| self.blocks.get(hash));
        tip.map_or_else(|| panic!("a chain has a genesis block"), |(block, _)| block)
    }

    fn connect(&mut self, block: Block) -> BlockHash {
        let (hash, height) = (block.block_hash(), self.best.len() as u32);
        let mut undo = Vec::new();
        for transaction in &block.txdata {
            let spent = transaction.input.iter().filter_map(|input| self.coins.remove(&input.previous_output));
            undo.push(SpentOutputs { coins: spent.collect() });
            let txid = transaction.compute_txid();
            for (vout, output) in transaction.output.iter().enumerate() {
                let coin = Coin { output: output.clone(), height, coinbase: transaction.is_coinbase() };
                self.coins.insert(OutPoint::new(txid, vout as u32), coin);
            }
        }
        self.undo.insert(hash, undo);
        self.best.push(hash);
        self.blocks.insert(hash, (block, height));
        hash
    }

    fn disconnect(&mut self) {
        if self.best.len() <= 1 {
            return;
        }
        let Some((block, _)) = self.best.pop().and_then(|hash| self.blocks.get(&hash)) else { return };
        let undo = self.undo.get(&block.block_hash()).cloned().unwrap_or_default();
        for (transaction, spent) in block.txdata.iter().zip(undo).rev() {
            let txid = transaction.compute_txid();
            for vout in 0..transaction.output.len() {
                self.coins.remove(&OutPoint::new(txid, vout as u32));
            }
            for (input, coin) in transaction.input.iter().zip(spent.coins) {
                self.coins.insert(input.previous_output, coin);
            }
        }
    }

    fn median_time(&self, height: usize) -> u32 {
        let from = height.saturating_sub(10);
        let hashes = self.best.get(from..=height).unwrap_or_default();
        let mut times: Vec<u32> =
            hashes.iter().filter_map(|hash| self.blocks.get(hash)).map(|(block, _)| block.header.time).collect();
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or_default()
    }

    fn tip(&self) -> Tip {
        let block = self.tip_block();
        let height = self.best.len() - 1;
        let median_time = self.median_time(height);
        Tip { hash: block.block_hash(), height: height as u32, time: block.header.time, median_time }
    }

    fn info(&self, hash: &BlockHash) -> Option<BlockInfo> {
        let (block, height) = self.blocks.get(hash)?;
        let mut header = [0; 80];
        header.copy_from_slice(&consensus::serialize(&block.header));
        let in_best_chain = self.best.get(*height as usize) == Some(hash);
        let mut chain_work = [0; 32];
        chain_work[24..].copy_from_slice(&(2 * (u64::from(*height) + 1)).to_be_bytes());
        Some(BlockInfo {
            hash: *hash,
            header,
            height: *height,
            chain_work,
            transactions: Some(block.txdata.len() as u32),
            median_time: if in_best_chain { self.median_time(*height as usize) } else { block.header.time },
            state: BlockState::Valid,
            in_best_chain,
            next: in_best_chain.then(|| self.best.get(*height as usize + 1).copied()).flatten(),
            size: Some(block.total_size() as u32),
        })
    }

    fn block_info(&self, block: BlockRef) -> Option<BlockInfo> {
        match block {
            BlockRef::Hash { hash } => self.info(&hash),
            BlockRef::Height { height } => self.info(self.best.get(height as usize)?),
        }
    }

    fn fork_point(&self, hash: BlockHash) -> Option<BlockInfo> {
        let mut at = hash;
        while let Some((block, height)) = self.blocks.get(&at) {
            if self.best.get(*height as usize) == Some(&at) {
                return self.info(&at);
            }
            at = block.header.prev_blockhash;
        }
        None
    }

    fn judge(&self, raw: &[u8]) -> std::result::Result<Block, Verdict> {
        let block: Block = consensus::deserialize(raw).map_err(|_| Verdict::Undecodable)?;
        if !block.txdata.first().is_some_and(Transaction::is_coinbase) {
            return Err(Verdict::Invalid { reason: "bad-cb-missing".into(), detail: String::new() });
        }
        if self.blocks.contains_key(&block.block_hash()) {
            return Err(Verdict::Duplicate);
        }
        if block.header.prev_blockhash != self.tip().hash {
            return Err(Verdict::NotBestPrevious);
        }
        if !block.check_merkle_root() {
            return Err(Verdict::Invalid {
                reason: "bad-txnmrklroot".into(),
                detail: "hashMerkleRoot mismatch".into(),
            });
        }
        Ok(block)
    }
}

/// The chain for followers.
struct StubSteps<'a> {
    state: &'a State,
    with_spent: bool,
}

impl StepSource for StubSteps<'_> {
    fn tip(&self) -> Result<Cursor> {
        let Tip { hash, height, .. } = self.state.tip();
        Ok(Cursor { hash, height })
    }

    fn info(&self, block: BlockRef) -> Result<Option<BlockInfo>> {
        Ok(self.state.block_info(block))
    }

    fn fork_point(&self, hash: BlockHash) -> Result<Option<BlockInfo>> {
        Ok(self.state.fork_point(hash))
    }

    fn read(&self, at: Cursor) -> Result<(Blob, Vec<TxOut>)> {
        let (block, _) = self.state.blocks.get(&at.hash).ok_or(ErrorKind::NotFound)?;
        let spent = self.state.undo.get(&at.hash).filter(|_| self.with_spent).into_iter().flatten();
        let outputs = spent.flat_map(|spent| &spent.coins).map(|coin| coin.output.clone()).collect();
        Ok((consensus::serialize(block).into(), outputs))
    }
}

impl Chain for StubChain {
    fn tip(&self, _: Scope) -> Result<Tip> {
        Ok(lock(&self.0).tip())
    }

    fn info(&self, _: Scope) -> Result<ChainInfo> {
        let state = lock(&self.0);
        let tip = state.tip();
        let coins = state.coins.len() as u64;
        Ok(ChainInfo {
            network: Network::Regtest,
            tip,
            headers: tip.height,
            size_on_disk: Some(0),
            coins: Some(coins),
            warnings: Vec::new(),
        })
    }

    fn block_info(&self, _: Scope, block: BlockRef) -> Result<Option<BlockInfo>> {
        Ok(lock(&self.0).block_info(block))
    }

    fn block(&self, _: Scope, hash: BlockHash) -> Result<Option<Blob>> {
        Ok(lock(&self.0).blocks.get(&hash).map(|(block, _)| consensus::serialize(block).into()))
    }

    fn spent_outputs(&self, _: Scope, hash: BlockHash) -> Result<Option<Vec<SpentOutputs>>> {
        Ok(lock(&self.0).undo.get(&hash).cloned())
    }

    fn transaction(&self, _: Scope, txid: Txid) -> Result<Option<ConfirmedTransaction>> {
        let state = lock(&self.0);
        for hash in &state.best {
            let Some((block, _)) = state.blocks.get(hash) else { continue };
            if let Some(index) = block.txdata.iter().position(|transaction| transaction.compute_txid() == txid) {
                let raw = block.txdata.get(index).map(consensus::serialize).unwrap_or_default();
                return Ok(Some(ConfirmedTransaction { raw: raw.into(), block: *hash, index: index as u32 }));
            }
        }
        Ok(None)
    }

    fn coins(&self, _: Scope, outpoints: Vec<OutPoint>) -> Result<Vec<Option<Coin>>> {
        let state = lock(&self.0);
        Ok(outpoints.iter().map(|outpoint| state.coins.get(outpoint).cloned()).collect())
    }

    fn fork_point(&self, _: Scope, hash: BlockHash) -> Result<Option<BlockInfo>> {
        Ok(lock(&self.0).fork_point(hash))
    }

    fn tips(&self, _: Scope) -> Result<Vec<ChainTip>> {
        let tip = lock(&self.0).tip();
        Ok(vec![ChainTip { hash: tip.hash, height: tip.height, branch_length: 0, state: BlockState::Valid }])
    }

    fn next_block(&self, scope: Scope) -> Result<NextBlock> {
        let tip = lock(&self.0).tip();
        let min_time = tip.median_time + 1;
        Ok(NextBlock {
            tip,
            version: 0x2000_0000,
            bits: 0x207f_ffff,
            min_time,
            time: u32::try_from(self.time(scope)?).unwrap_or(u32::MAX).max(min_time),
            subsidy: SUBSIDY,
            rules: vec!["csv".into(), "!segwit".into(), "taproot".into()],
            available: Vec::new(),
            signet_challenge: None,
        })
    }

    fn time(&self, _: Scope) -> Result<u64> {
        let state = lock(&self.0);
        Ok(if state.mock_time == 0 { u64::from(state.tip().time) } else { state.mock_time })
    }

    fn check_block(&self, _: Scope, raw: Blob) -> Result<Verdict> {
        Ok(lock(&self.0).judge(&raw).map_or_else(|verdict| verdict, |_| Verdict::Valid))
    }

    fn submit_block(&self, _: Scope, raw: Blob) -> Result<Verdict> {
        let mut state = lock(&self.0);
        match state.judge(&raw) {
            Ok(block) => {
                state.connect(block);
                Ok(Verdict::Valid)
            }
            Err(Verdict::NotBestPrevious) => Ok(Verdict::Inconclusive),
            Err(verdict) => Ok(verdict),
        }
    }

    fn submit_header(&self, _: Scope, raw: Blob) -> Result<Verdict> {
        let Ok(Header { prev_blockhash, .. }) = consensus::deserialize(&raw) else { return Ok(Verdict::Undecodable) };
        if lock(&self.0).blocks.contains_key(&prev_blockhash) {
            return Ok(Verdict::Valid);
        }
        let reason = format!("Must submit previous header ({prev_blockhash}) first");
        Ok(Verdict::Invalid { reason, detail: String::new() })
    }

    fn invalidate_block(&self, _: Scope, hash: BlockHash) -> Result<()> {
        let mut state = lock(&self.0);
        let height = state.blocks.get(&hash).map(|(_, height)| *height).ok_or(ErrorKind::NotFound)?;
        while state.best.len() > height.max(1) as usize {
            state.disconnect();
        }
        Ok(())
    }

    fn reconsider_block(&self, _: Scope, hash: BlockHash) -> Result<()> {
        let mut state = lock(&self.0);
        let (block, _) = state.blocks.get(&hash).cloned().ok_or(ErrorKind::NotFound)?;
        if block.header.prev_blockhash == state.tip().hash {
            state.connect(block);
        }
        Ok(())
    }

    fn precious_block(&self, _: Scope, hash: BlockHash) -> Result<()> {
        let known = lock(&self.0).blocks.contains_key(&hash);
        if known { Ok(()) } else { Err(ServiceError::new(ErrorKind::NotFound, "Block not found")) }
    }

    fn set_mock_time(&self, _: Scope, seconds: u64) -> Result<()> {
        lock(&self.0).mock_time = seconds;
        Ok(())
    }

    fn deployments(&self, _: Scope, hash: BlockHash) -> Result<Option<Vec<Deployment>>> {
        let buried = |name: &str| Deployment { name: name.to_owned(), rule: DeploymentRule::Buried { height: 0 } };
        Ok(lock(&self.0).blocks.contains_key(&hash).then(|| ["csv", "segwit", "taproot"].map(buried).to_vec()))
    }

    fn coins_after(&self, _: Scope, outpoint: Option<OutPoint>, limit: u32) -> Result<Vec<UnspentOutput>> {
        let from = outpoint.map_or(Bound::Unbounded, Bound::Excluded);
        let state = lock(&self.0);
        let rest = state.coins.range((from, Bound::Unbounded)).take(limit as usize);
        Ok(rest.map(|(outpoint, coin)| UnspentOutput { outpoint: *outpoint, coin: coin.clone() }).collect())
    }

    fn wait_for_wallets(&self, _: Scope) -> Result<()> {
        Ok(())
    }

    fn find_coins(
        &self,
        scope: Scope,
        scripts: Encoded<Vec<ScriptBuf>>,
        outpoint: Option<OutPoint>,
        limit: u32,
    ) -> Result<CoinSearch> {
        let scripts = scripts.read()?;
        let outputs = self.coins_after(scope, outpoint, limit)?;
        let (searched, last) = (outputs.len() as u32, outputs.last().map(|output| output.outpoint));
        let mut found = Vec::new();
        for output in outputs.into_iter().filter(|output| scripts.contains(&output.coin.output.script_pubkey)) {
            let block = self.block_info(scope, BlockRef::Height { height: output.coin.height })?;
            found.push(FoundCoin { output, block: block.ok_or(ErrorKind::NotFound)?.hash });
        }
        Ok(CoinSearch { found, searched, last })
    }

    fn background_validation(&self, _: Scope) -> Result<Option<u32>> {
        Ok(lock(&self.0).background)
    }

    fn steps(&self, _: Scope, after: Option<Cursor>, limit: u32, with_spent: bool) -> Result<Steps> {
        Steps::collect(&StubSteps { state: &lock(&self.0), with_spent }, after, limit)
    }

    fn network(&self, _: Scope) -> Result<Network> {
        Ok(Network::Regtest)
    }

    fn publications(&self, _: Scope) -> Result<Vec<Publication>> {
        Ok(Vec::new())
    }
}

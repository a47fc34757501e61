//! A consistent view of the chain: the mirror has heights and branches; the node has blocks and coins.

use std::ops::Range;
use std::sync::Arc;

use bitcoin::consensus::encode::{deserialize, serialize};
use bitcoin::{Block, BlockHash, OutPoint, TxIn, TxOut, Txid};
use outrigger_node::{Findings, NodeError, ReadBlock, Result, ScriptSet, Snapshot};
use outrigger_service::chain::{
    BlockInfo, BlockRef, BlockState, ChainInfo, ChainTip, Coin, ConfirmedTransaction, SpentOutputs, Tip,
};
use outrigger_service::wire::Blob;
use outrigger_values::RpcErrorCode;
use serde::Deserialize;
use serde_json::json;

use super::answers::{
    BlockAnswer, ChainAnswer, CoinAnswer, Hex, PrevoutAnswer, TipAnswer, TransactionAnswer, read_spent,
};
use super::blocks::{block, is_missing, transaction};
use super::chain::Entry;
use super::error::AskError;
use super::mirror::Moment;
use super::proof::{are_transactions_of, contradicts};
use super::rpc::{Question, Rpc};
use super::search;
use super::sync::Follower;

/// The maximum number of attempts to read coins while the node's tip changes.
const COIN_ATTEMPTS: usize = 3;

pub struct NodeSnapshot {
    pub(crate) follower: Arc<Follower>,
    pub(crate) network: bitcoin::Network,
    pub(crate) moment: Moment,
}

/// `getrawtransaction` with verbosity.
#[derive(Deserialize)]
struct FoundTransaction {
    hex: Hex,
    blockhash: Option<BlockHash>,
}

#[derive(Deserialize)]
struct BlockIds {
    tx: Vec<Txid>,
}

impl NodeSnapshot {
    fn rpc(&self) -> &Rpc {
        &self.follower.rpc
    }

    /// A header on any branch, fetched if the mirror lacks it.
    fn entry(&self, hash: BlockHash) -> Result<Option<Entry>> {
        match self.moment.entry(&hash)? {
            Some(entry) => Ok(Some(entry)),
            None => Ok(self.follower.learn(hash)?),
        }
    }

    /// A block's spent outputs as getblock reports them. Fails if they contradict the block.
    fn reported_spent(&self, block: &Block) -> Result<Option<Vec<SpentOutputs>>> {
        let answer: BlockAnswer = match self.rpc().ask("getblock", &json!([block.block_hash(), 3])) {
            Err(error) if is_missing(&error) => return Ok(None),
            answer => answer?,
        };
        let spent = |(at, transaction): (usize, TransactionAnswer)| {
            let coins = transaction.vin.into_iter().map(|input| input.prevout.map(PrevoutAnswer::coin));
            match at {
                0 => Some(SpentOutputs { coins: Vec::new() }),
                // A node without undo data, or an old one, does not report spent outputs.
                _ => coins.collect::<Option<Vec<Coin>>>().map(|coins| SpentOutputs { coins }),
            }
        };
        let spent: Option<Vec<SpentOutputs>> = answer.tx.into_iter().enumerate().map(spent).collect();
        if let Some(spent) = &spent {
            let outputs = spent.iter().flat_map(|spent| &spent.coins).map(|coin| &coin.output);
            self.check_spent(block, spent.iter().map(|spent| spent.coins.len()), outputs)?;
        }
        Ok(spent)
    }

    /// Refuses spent outputs that contradict their block. No header commits to them, but the inputs reveal part of them.
    fn check_spent<'a>(
        &self,
        block: &Block,
        counts: impl Iterator<Item = usize>,
        outputs: impl Iterator<Item = &'a TxOut>,
    ) -> Result<()> {
        if is_possible(block, counts, outputs) {
            return Ok(());
        }
        let hash = block.block_hash();
        Err(self.rpc().unproven(format!("its undo data of block {hash} contradicts the block")).into())
    }

    pub(crate) fn info_of(&self, entry: &Entry) -> Result<BlockInfo> {
        let header = serialize(&entry.header);
        let best = self.moment.is_best(entry)?;
        let next = if best { self.moment.best_at(entry.height.saturating_add(1))? } else { None };
        Ok(BlockInfo {
            hash: entry.hash(),
            header: header.try_into().map_err(|_| NodeError::Internal("a header of another length".into()))?,
            height: entry.height,
            chain_work: entry.work.to_be_bytes(),
            transactions: None,
            median_time: entry.median_time,
            // While the node is away, only the header of a stale block is known.
            state: if best { BlockState::Valid } else { self.branch_state(entry).unwrap_or(BlockState::HeaderOnly) },
            in_best_chain: best,
            next,
            size: None,
        })
    }

    /// The state of a stale block: the state of its branch's tip.
    fn branch_state(&self, entry: &Entry) -> Result<BlockState> {
        for tip in self.tips()?.into_iter().filter(|tip| tip.branch_length > 0 && tip.height >= entry.height) {
            let fork = tip.height.saturating_sub(tip.branch_length);
            let mut last = self.entry(tip.hash)?;
            // The snapshot lacks headers that were learned after it.
            let now = self.follower.mirror.moment()?;
            while let Some(at) = last.filter(|at| at.height > entry.height && at.height > fork) {
                last = now.entry(&at.header.prev_blockhash)?;
            }
            if last.is_some_and(|at| at.hash() == entry.hash()) {
                return Ok(tip.state);
            }
        }
        Ok(BlockState::HeaderOnly)
    }
}

const LENIENT_BLOCKS: [&str; 3] = [
    "00000000000002dc756eebf4f49723ed8d30cc28a5f108eb94b1ba88ac4f9c22",
    "0000000000000000000f14c35b2d841e986ab5441de8c585d5ffe55ea1e395ad",
    "00000000dd30457c001f4095d208cc1296b0eed002427aa599874af7a432b105",
];

/// The first release whose REST interface serves the outputs that a block spends.
const SPENT_BY_REST: u32 = 30;

/// Whether the block's inputs can spend these outputs. `counts` has the number of outputs for each transaction. Two blocks of
/// the main chain and one of testnet3 break script rules (`script_flag_exceptions` in Bitcoin Core).
fn is_possible<'a>(
    block: &Block,
    counts: impl Iterator<Item = usize>,
    mut outputs: impl Iterator<Item = &'a TxOut>,
) -> bool {
    let inputs = || block.txdata.iter().map(|tx| if tx.is_coinbase() { &[][..] } else { &tx.input[..] });
    let can_spend = |input| outputs.next().is_some_and(|output| !contradicts(input, &output.script_pubkey));
    inputs().map(<[TxIn]>::len).eq(counts)
        && (LENIENT_BLOCKS.contains(&block.block_hash().to_string().as_str()) || inputs().flatten().all(can_spend))
}

/// The result for an error of getrawtransaction: the transaction is unknown, or the transaction index is missing or
/// incomplete. `None` for other errors.
fn missing_transaction(error: &AskError) -> Option<Result<Option<ConfirmedTransaction>>> {
    let AskError::Rpc { error, .. } = error else { return None };
    if error.message.contains("txindex") {
        return Some(Err(NodeError::Unsupported("the node has no index of transactions (txindex=1)".into())));
    }
    if error.message.contains("being indexed") {
        return Some(Err(NodeError::Unavailable(error.message.clone())));
    }
    (error.code == RpcErrorCode::INVALID_ADDRESS_OR_KEY).then_some(Ok(None))
}

impl Snapshot for NodeSnapshot {
    fn tip(&self) -> Tip {
        self.moment.tip.tip()
    }

    fn info(&self) -> Result<ChainInfo> {
        let info: ChainAnswer = self.rpc().ask("getblockchaininfo", &json!([]))?;
        Ok(ChainInfo {
            network: self.network,
            tip: self.tip(),
            headers: info.headers.max(self.moment.tip.height),
            size_on_disk: info.size_on_disk,
            coins: None,
            warnings: self.follower.standing.held().into_iter().chain(info.warnings()).collect(),
        })
    }

    fn block_info(&self, block: BlockRef) -> Result<Option<BlockInfo>> {
        let entry = match block {
            BlockRef::Hash { hash } => self.entry(hash)?,
            BlockRef::Height { height } => self.moment.entry_at(height)?,
        };
        entry.map(|entry| self.info_of(&entry)).transpose()
    }

    fn block(&self, hash: BlockHash) -> Result<Option<Blob>> {
        Ok(block(self.rpc(), hash)?.map(|(_, bytes)| Blob(bytes.into())))
    }

    fn read_block(&self, hash: BlockHash) -> Result<Option<ReadBlock>> {
        Ok(block(self.rpc(), hash)?.map(|(read, _)| read))
    }

    fn spent_outputs(&self, hash: BlockHash) -> Result<Option<Vec<SpentOutputs>>> {
        let Some((proven, _)) = block(self.rpc(), hash)? else { return Ok(None) };
        self.reported_spent(&proven.block)
    }

    fn spent_by(&self, hash: BlockHash, block: &[u8]) -> Result<Option<Vec<TxOut>>> {
        let block = deserialize(block).map_err(|error| NodeError::Internal(format!("block {hash}: {error}")))?;
        let by_rest = self.follower.release().is_some_and(|release| release >= SPENT_BY_REST);
        let path = format!("/rest/spenttxouts/{hash}.bin");
        if by_rest
            && let Some(spent) = self.rpc().rest(&path)?.as_deref().and_then(read_spent)
            && self.check_spent(&block, spent.iter().map(Vec::len), spent.iter().flatten()).is_ok()
        {
            return Ok(Some(spent.into_iter().flatten().collect()));
        }
        let spent = self.reported_spent(&block)?;
        Ok(spent.map(|spent| spent.into_iter().flat_map(|spent| spent.coins).map(|coin| coin.output).collect()))
    }

    fn transaction(&self, txid: Txid) -> Result<Option<ConfirmedTransaction>> {
        let found: FoundTransaction = match self.rpc().ask("getrawtransaction", &json!([txid, true])) {
            Ok(found) => found,
            Err(error) => return missing_transaction(&error).unwrap_or_else(|| Err(error.into())),
        };
        // The transaction index also has stale blocks.
        let Some(block) = found.blockhash else { return Ok(None) };
        let Some(entry) = self.entry(block)? else { return Ok(None) };
        if !self.moment.is_best(&entry)? {
            return Ok(None);
        }
        transaction(self.rpc(), txid, &found.hex.0)?;
        let ids: BlockIds = self.rpc().ask("getblock", &json!([block, 1]))?;
        if !are_transactions_of(&entry.header, ids.tx.iter().copied()) {
            return Err(self.rpc().unproven(format!("its ids of block {block} are others")).into());
        }
        let index = ids.tx.iter().position(|id| *id == txid).and_then(|index| u32::try_from(index).ok());
        Ok(index.map(|index| ConfirmedTransaction { raw: Blob(found.hex.0), block, index }))
    }

    fn coins(&self, outpoints: &[OutPoint]) -> Result<Vec<Option<Coin>>> {
        let questions: Vec<Question> =
            outpoints.iter().map(|out| ("gettxout", json!([out.txid, out.vout, false]))).collect();
        for _ in 0..COIN_ATTEMPTS {
            let answers = self.rpc().batch::<Option<CoinAnswer>>(&questions)?;
            let answers: std::result::Result<Vec<_>, AskError> = answers.into_iter().collect();
            let answers = answers?;
            let Some(seen) = answers.iter().flatten().next().map(|coin| coin.bestblock) else {
                return Ok(answers.into_iter().map(|_| None).collect());
            };
            // All coins must be as of one block, whose height the mirror knows.
            if self.moment.entry(&seen)?.is_none() {
                self.follower.sync_chain().map_err(NodeError::from)?;
            }
            let height = self.follower.mirror.moment()?.entry(&seen)?.map(|entry| entry.height);
            if let Some(height) = height.filter(|_| answers.iter().flatten().all(|coin| coin.bestblock == seen)) {
                return Ok(answers.into_iter().map(|coin| coin.map(|coin| coin.coin(height))).collect());
            }
        }
        Err(NodeError::Unavailable("the node's best chain changes too quickly".into()))
    }

    fn fork_point(&self, hash: BlockHash) -> Result<Option<BlockInfo>> {
        let Some(mut entry) = self.entry(hash)? else { return Ok(None) };
        // The snapshot lacks headers that were learned after it.
        let now = self.follower.mirror.moment()?;
        while !self.moment.is_best(&entry)? {
            let parent = now.entry(&entry.header.prev_blockhash)?;
            entry = parent.ok_or(NodeError::UnknownBlock(entry.header.prev_blockhash))?;
        }
        Ok(Some(self.info_of(&entry)?))
    }

    fn tips(&self) -> Result<Vec<ChainTip>> {
        let tips: Vec<TipAnswer> = self.rpc().ask("getchaintips", &json!([]))?;
        let state = |status: &str| match status {
            "active" | "valid-fork" => BlockState::Valid,
            "valid-headers" => BlockState::Stored,
            "invalid" => BlockState::Failed,
            _ => BlockState::HeaderOnly,
        };
        let tip = |tip: TipAnswer| ChainTip {
            hash: tip.hash,
            height: tip.height,
            branch_length: tip.branchlen,
            state: state(&tip.status),
        };
        let mut tips: Vec<ChainTip> = tips.into_iter().map(tip).collect();
        tips.sort_by_key(|tip| (tip.branch_length > 0, std::cmp::Reverse(tip.height)));
        Ok(tips)
    }

    fn max_time(&self, height: u32) -> Result<u32> {
        let entry = self.moment.entry_at(height)?;
        Ok(entry.ok_or_else(|| NodeError::Storage("the mirror lacks a header".into()))?.max_time)
    }

    fn find(&self, heights: Range<u32>, wanted: &ScriptSet) -> Result<Findings> {
        search::find(&self.moment, self.rpc(), &self.follower.filters, heights, wanted)
    }
}

#[cfg(test)]
mod tests {
    use outrigger_values::{RpcError, RpcErrorCode};

    use super::*;

    #[test]
    fn missing_transaction_is_distinguished_from_a_missing_index() {
        let missing = |code, message: &str| {
            let error = RpcError::new(RpcErrorCode(code), message);
            missing_transaction(&AskError::Rpc { method: "getrawtransaction".into(), error })
        };
        // bitcoind's words.
        let none =
            missing(-5, "No such mempool or blockchain transaction. Use gettransaction for wallet transactions.");
        assert_eq!(none, Some(Ok(None)));
        let no_index = missing(
            -5,
            "No such mempool transaction. Use -txindex or provide a block hash to enable blockchain transaction queries. Use gettransaction for wallet transactions.",
        );
        assert!(matches!(no_index, Some(Err(NodeError::Unsupported(text))) if text.contains("txindex=1")));
        let reading = missing(
            -5,
            "No such mempool transaction. Blockchain transactions are still in the process of being indexed. Use gettransaction for wallet transactions.",
        );
        assert!(matches!(reading, Some(Err(NodeError::Unavailable(_)))));
        assert_eq!(missing(-8, "parameter 1 must be of length 64"), None);
    }

    #[test]
    fn spent_outputs_by_rest_are_read_whole_or_not_at_all() {
        let output = |value: u8| [&[value, 0, 0, 0, 0, 0, 0, 0, 1][..], &[0x51]].concat();
        // Three transactions: the coinbase, one of two inputs, one of one input.
        let bytes = [&[3, 0, 2][..], &output(1), &output(2), &[1], &output(3)].concat();
        let read = read_spent(&bytes).unwrap();
        let values: Vec<Vec<u64>> =
            read.iter().map(|spent| spent.iter().map(|output| output.value.to_sat()).collect()).collect();
        assert_eq!(values, [vec![], vec![1, 2], vec![3]]);
        assert!((0..bytes.len()).all(|end| read_spent(&bytes[..end]).is_none()));
        assert_eq!(read_spent(&[&bytes[..], &[0]].concat()), None);
        assert_eq!(read_spent(&[&[0xff; 9][..], &bytes].concat()), None);
    }

    #[test]
    fn spent_outputs_match_the_number_of_inputs_of_each_transaction() {
        let genesis = bitcoin::constants::genesis_block(bitcoin::Network::Regtest);
        let mut block = genesis.clone();
        let mut spender = genesis.txdata[0].clone();
        spender.input[0].previous_output = OutPoint::new(spender.compute_txid(), 0);
        spender.input.push(spender.input[0].clone());
        block.txdata.push(spender);
        let output =
            TxOut { value: bitcoin::Amount::ONE_SAT, script_pubkey: bitcoin::ScriptBuf::from_bytes(vec![0x51]) };
        let possible = |counts: &[usize]| {
            let outputs = vec![output.clone(); counts.iter().sum()];
            is_possible(&block, counts.iter().copied(), outputs.iter())
        };
        assert!(possible(&[0, 2]));
        assert!(![&[0, 1][..], &[0, 3], &[1, 2], &[2, 0], &[2], &[0, 2, 0]].into_iter().any(possible));
    }
}

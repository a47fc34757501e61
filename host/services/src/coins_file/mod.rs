//! The unspent outputs as of a block in a file that bitcoind reads (dumptxoutset).
//!
//! The outputs as of an earlier block are those of now, but for those that later blocks made, and with those that they spent: the
//! chain itself does not go back.

mod compress;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Seek as _, SeekFrom, Write};
use std::path::PathBuf;

use bitcoin::consensus::{deserialize, serialize};
use bitcoin::hashes::{Hash, HashEngine, sha256, sha256d};
use bitcoin::{Block, BlockHash, OutPoint, Txid, VarInt};
use outrigger_base::client_files::{ClientFileError, ClientFiles, Folders};
use outrigger_node::{NodeError, Snapshot};
use outrigger_service::chain::{BlockInfo, BlockRef, Coin, CoinsDump, UnspentOutput};
use outrigger_service::{ErrorKind, ServiceError};

use compress::{put_coin, variable_number};

/// What a file begins with, and its version.
const MAGIC: [u8; 5] = *b"utxo\xff";
const VERSION: u16 = 2;
/// Where the number of outputs stands: behind magic, version, the network's magic, and the hash of the block.
const COUNT_POSITION: u64 = 5 + 2 + 4 + 32;
/// How many outputs are read at once.
const BATCH: u32 = 4096;

/// Why the unspent outputs were not written.
#[derive(Debug, thiserror::Error)]
pub enum CoinsFileError {
    /// The file may not or cannot be written.
    #[error(transparent)]
    File(#[from] ClientFileError),
    #[error(transparent)]
    Node(#[from] NodeError),
}

impl From<io::Error> for CoinsFileError {
    fn from(error: io::Error) -> Self {
        Self::File(error.into())
    }
}

/// Where a file lies that a client names: relative to the network's folder.
fn resolve(files: &ClientFiles, file: &str) -> PathBuf {
    match files.network_folder() {
        // Joined with nothing, a path would get a slash at its end.
        Some(folder) if file.is_empty() => folder.to_owned(),
        Some(folder) => folder.join(file),
        None => file.into(),
    }
}

/// Writes the unspent outputs as of a block of the best chain to a new file.
///
/// # Errors
/// `Refused` with what bitcoind says where there is such a file, or none can be made; those of the node.
pub fn dump(
    snapshot: &dyn Snapshot,
    files: &ClientFiles,
    file: &str,
    folders: &Folders,
    block: BlockHash,
) -> Result<CoinsDump, ServiceError> {
    let path = resolve(files, file);
    let exists = || {
        format!(
            "{} already exists. If you are sure this is what you want, move it out of the way first",
            path.display()
        )
    };
    let refused = |text: String| ServiceError::new(ErrorKind::Refused, text);
    if file.is_empty() {
        return Err(refused(exists()));
    }
    let mut told = None;
    let write = |to: &mut File| -> Result<(), CoinsFileError> {
        let written = write(snapshot, to, block)?;
        told = Some(written);
        Ok(())
    };
    let outcome = files.replace_of_node(&path, folders, |_| Ok(false), write);
    match (outcome, told) {
        (Ok(()), Some(written)) => Ok(CoinsDump { path: path.display().to_string(), ..written }),
        (Err(CoinsFileError::Node(error)), _) => Err(error.into()),
        (Err(CoinsFileError::File(ClientFileError::OtherFile | ClientFileError::NotAFile)), _) => {
            Err(refused(exists()))
        }
        (Err(error), _) => {
            tracing::warn!(file = %path.display(), %error, "the unspent outputs were not written");
            Err(refused(format!("Couldn't open file {}.incomplete for writing.", path.display())))
        }
        (Ok(()), None) => Err(ErrorKind::Internal.into()),
    }
}

/// Writes the outputs; gives what there is to tell, but for the path.
fn write(snapshot: &dyn Snapshot, file: &mut File, block: BlockHash) -> Result<CoinsDump, CoinsFileError> {
    let target = known(snapshot, BlockRef::Hash { hash: block })?;
    let mut out = CoinsWriter { out: BufWriter::new(file), hash: sha256d::Hash::engine(), coins: 0 };
    out.out.write_all(&MAGIC)?;
    out.out.write_all(&VERSION.to_le_bytes())?;
    out.out.write_all(&snapshot.info()?.network.magic().to_bytes())?;
    out.out.write_all(&serialize(&target.hash))?;
    // The number is known when all are written.
    out.out.write_all(&0_u64.to_le_bytes())?;
    let mut group: Option<(Txid, Vec<(u32, Coin)>)> = None;
    for_each_coin(snapshot, &target, |UnspentOutput { outpoint, coin }| {
        match &mut group {
            Some((txid, coins)) if *txid == outpoint.txid => coins.push((outpoint.vout, coin)),
            _ => {
                if let Some((txid, coins)) = group.replace((outpoint.txid, vec![(outpoint.vout, coin)])) {
                    out.put(txid, coins)?;
                }
            }
        }
        Ok(())
    })?;
    if let Some((txid, coins)) = group {
        out.put(txid, coins)?;
    }
    let CoinsWriter { mut out, hash, coins } = out;
    out.seek(SeekFrom::Start(COUNT_POSITION))?;
    out.write_all(&coins.to_le_bytes())?;
    out.flush()?;
    let hash = sha256d::Hash::from_engine(hash).to_byte_array();
    Ok(CoinsDump { coins, hash, transactions: transactions(snapshot, target.height)?, path: String::new() })
}

/// Writes outputs in bitcoind's order, and hashes them in that of their indexes.
struct CoinsWriter<W> {
    out: W,
    hash: sha256::HashEngine,
    coins: u64,
}

impl<W: Write> CoinsWriter<W> {
    /// Adds the unspent outputs of a transaction, which come by their indexes.
    fn put(&mut self, txid: Txid, mut coins: Vec<(u32, Coin)>) -> io::Result<()> {
        for (vout, coin) in &coins {
            self.hash.input(&coin.hashed_as(&OutPoint::new(txid, *vout)));
        }
        self.coins += coins.len() as u64;
        // The order of the keys in bitcoind's database, which is that of the numbers up to some length alone.
        coins.sort_by_cached_key(|(vout, _)| variable_number(u64::from(*vout)));
        let mut bytes = serialize(&txid);
        bytes.extend(serialize(&VarInt::from(coins.len())));
        for (vout, coin) in &coins {
            bytes.extend(serialize(&VarInt::from(*vout)));
            put_coin(coin, &mut bytes);
        }
        self.out.write_all(&bytes)
    }
}

fn known(snapshot: &dyn Snapshot, block: BlockRef) -> Result<BlockInfo, NodeError> {
    let missing = || NodeError::Storage("a block of the best chain is missing".into());
    snapshot.block_info(block)?.filter(|block| block.in_best_chain).ok_or_else(missing)
}

/// How many transactions the blocks up to a height have.
fn transactions(snapshot: &dyn Snapshot, height: u32) -> Result<u64, NodeError> {
    (0..=height).try_fold(0, |sum, height| {
        let block = known(snapshot, BlockRef::Height { height })?;
        Ok(sum + u64::from(block.transactions.unwrap_or_default()))
    })
}

/// Calls back with each output that was unspent as of a block, by the bytes of the transaction's id and then by index.
fn for_each_coin(
    snapshot: &dyn Snapshot,
    target: &BlockInfo,
    mut take: impl FnMut(UnspentOutput) -> io::Result<()>,
) -> Result<(), CoinsFileError> {
    let spent_later = spent_after(snapshot, target)?;
    let mut spent_later = spent_later.into_iter().map(|(outpoint, coin)| UnspentOutput { outpoint, coin }).peekable();
    let mut last = None;
    loop {
        let batch = snapshot.coins_after(last.as_ref(), BATCH)?;
        let Some(end) = batch.last() else { break };
        last = Some(end.outpoint);
        for output in batch.into_iter().filter(|output| output.coin.height <= target.height) {
            while let Some(before) = spent_later.next_if(|spent| order(&spent.outpoint, &output.outpoint).is_lt()) {
                take(before)?;
            }
            take(output)?;
        }
    }
    spent_later.try_for_each(take).map_err(Into::into)
}

fn order(one: &OutPoint, other: &OutPoint) -> Ordering {
    one.txid.as_byte_array().cmp(other.txid.as_byte_array()).then(one.vout.cmp(&other.vout))
}

/// The outputs that blocks after this one spent, and that blocks up to it made.
fn spent_after(snapshot: &dyn Snapshot, target: &BlockInfo) -> Result<BTreeMap<OutPoint, Coin>, NodeError> {
    let mut spent = BTreeMap::new();
    for height in target.height + 1..=snapshot.tip().height {
        let hash = known(snapshot, BlockRef::Height { height })?.hash;
        let damaged = || NodeError::Storage(format!("block {hash} or its undo data cannot be read"));
        let block: Block = deserialize(&snapshot.block(hash)?.ok_or_else(damaged)?).map_err(|_| damaged())?;
        let coins = snapshot.spent_outputs(hash)?.ok_or_else(damaged)?;
        for (transaction, coins) in block.txdata.iter().zip(coins).skip(1) {
            let outpoints = transaction.input.iter().map(|input| input.previous_output);
            spent.extend(outpoints.zip(coins.coins).filter(|(_, coin)| coin.height <= target.height));
        }
    }
    Ok(spent)
}

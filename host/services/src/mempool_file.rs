//! A mempool's file, written and read for clients (savemempool, importmempool).

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use bitcoin::secp256k1::rand;
use outrigger_base::client_files::{ClientFileError, ClientFiles, Folders};
use outrigger_node::mempool_file::{MempoolFileError, MempoolReader};
use outrigger_node::{Node, NodeError};
use outrigger_service::mempool::MempoolImport;
use outrigger_service::{ErrorKind, ServiceError};

/// The name of the file in the network's folder.
const FILE_NAME: &str = "mempool.dat";

/// Why a mempool was not written to a file or read from one. What was read before has been taken in.
#[derive(Debug, thiserror::Error)]
pub enum SavedMempoolError {
    #[error("this host has no folder for the mempool's file")]
    NoFolder,
    /// The file may not or cannot be read or written.
    #[error(transparent)]
    File(#[from] ClientFileError),
    /// It is none of a mempool, or damaged.
    #[error(transparent)]
    Contents(#[from] MempoolFileError),
    #[error(transparent)]
    Node(#[from] NodeError),
}

impl From<io::Error> for SavedMempoolError {
    fn from(error: io::Error) -> Self {
        Self::File(error.into())
    }
}

impl From<SavedMempoolError> for ServiceError {
    fn from(error: SavedMempoolError) -> Self {
        match error {
            SavedMempoolError::Node(error) => error.into(),
            other => Self::new(ErrorKind::Refused, other.to_string()),
        }
    }
}

/// Writes the mempool to its file in the network's folder, and gives the path.
///
/// # Errors
/// When the node has no mempool of its own, or the file cannot be written.
pub fn save(node: &dyn Node, files: &ClientFiles) -> Result<PathBuf, SavedMempoolError> {
    let saved = node.saved_mempool()?;
    let file = files.network_folder().ok_or(SavedMempoolError::NoFolder)?.join(FILE_NAME);
    let write = |file: &mut File| -> Result<(), SavedMempoolError> {
        let mut out = BufWriter::new(file);
        saved.write(rand::random(), &mut out)?;
        Ok(out.flush()?)
    };
    // The name is the host's own, whatever stands there.
    files.replace_of_node(&file, &None, |_| Ok(true), write)?;
    tracing::info!(transactions = saved.transactions.len(), file = %file.display(), "mempool saved");
    Ok(file)
}

/// Offers the transactions of a file to the mempool. Those before a damage are taken in.
///
/// # Errors
/// When the node has no mempool of its own, or the file may not or cannot be read.
pub fn import(
    node: &dyn Node,
    files: &ClientFiles,
    file: &Path,
    folders: &Folders,
    options: MempoolImport,
) -> Result<(), SavedMempoolError> {
    let outcome = import_from(node, files.read_of_node(file, folders)?, options);
    if let Err(error) = &outcome {
        tracing::warn!(file = %file.display(), %error, "the mempool's file was not imported whole");
    }
    outcome
}

fn import_from(node: &dyn Node, file: File, options: MempoolImport) -> Result<(), SavedMempoolError> {
    let now = i64::try_from(node.time()).unwrap_or(i64::MAX);
    let (mut accepted, mut refused) = (0_u64, 0_u64);
    let mut reader = MempoolReader::open(BufReader::new(file))?;
    while let Some(one) = reader.transaction()? {
        if options.fee_deltas && one.fee_delta.to_sat() != 0 {
            node.prioritise(one.txid, one.fee_delta)?;
        }
        let time = if options.use_current_time { now } else { one.time };
        let is_there = node.import_transaction(&one.raw, time)?;
        *(if is_there { &mut accepted } else { &mut refused }) += 1;
    }
    let marks = reader.marks()?;
    if options.fee_deltas {
        marks.fee_deltas.iter().try_for_each(|(txid, delta)| node.prioritise(*txid, *delta))?;
    }
    if options.unbroadcast {
        node.set_unbroadcast(&marks.unbroadcast)?;
    }
    tracing::info!(accepted, refused, "mempool imported");
    Ok(())
}

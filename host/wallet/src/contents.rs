//! The contents of a wallet's file, read from an open wallet or from a closed file. A backup counts only if both are equal.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use bitcoin::BlockHash;
use outrigger_disk::pages::DataFile;
use outrigger_disk::{Checksum, META, StoreError};
use outrigger_node::ChainIdentity;
use outrigger_service::wallet::Synced;
use outrigger_service::wire::from_bytes;
use serde::Serialize;

use super::error::{Result, WalletError};
use super::store::{
    CHAIN, CHANGES, DescriptorRow, ENCRYPTION, LATER, LAYOUT, LAYOUT_KEY, MetaRow, NAMES, Reading, Store,
};

/// The table of all transactions, confirmed or not.
const TRANSACTIONS: &str = "transactions";
const DESCRIPTORS: &str = "descriptors";

/// The contents of a wallet's file, without secrets.
#[derive(Serialize, Clone, PartialEq, Eq, Debug)]
pub struct WalletContents {
    /// The chain, by its network's name.
    pub chain: String,
    /// The last block that the wallet has followed.
    pub height: u32,
    pub block: BlockHash,
    /// The time of that block, in Unix seconds.
    pub time: u32,
    pub private_keys: bool,
    pub encrypted: bool,
    pub avoid_reuse: bool,
    /// How many changes have required a backup.
    pub changes: u64,
    pub descriptors: Vec<DescriptorContents>,
    /// The number of rows of each table.
    pub rows: BTreeMap<String, u64>,
}

#[derive(Serialize, Clone, PartialEq, Eq, Debug)]
pub struct DescriptorContents {
    pub text: String,
    pub timestamp: u64,
    pub range: [u32; 2],
    pub next_index: u32,
    pub active: bool,
    pub internal: bool,
}

impl WalletContents {
    pub fn transactions(&self) -> u64 {
        self.rows.get(TRANSACTIONS).copied().unwrap_or_default()
    }

    /// Reads an open wallet.
    pub(crate) fn of(store: &Store, txn: &Reading<'_>) -> Result<Self> {
        let t = store.tables;
        let mut rows = BTreeMap::new();
        for (name, table) in NAMES.iter().zip(t.all()) {
            rows.insert((*name).to_owned(), table.len(txn)?);
        }
        let mut descriptors = Vec::new();
        for row in t.descriptors.iter(txn)? {
            descriptors.push(decode(row?.1)?);
        }
        Self::new(|key| Ok(t.meta.get(txn, key)?.map(<[u8]>::to_vec)), descriptors, rows)
    }

    /// Reads a file whose rows and pages were [checked](check_file).
    ///
    /// # Errors
    /// The file is not a wallet's, or cannot be read.
    pub fn of_file(file: &File, path: &Path) -> Result<Self> {
        let bad = |fault| StoreError::BadFile { file: path.to_owned(), fault };
        let data = DataFile::of(file.try_clone()?).map_err(bad)?;
        let rows = data.rows().map_err(bad)?;
        if !NAMES.iter().all(|name| rows.contains_key(*name) || LATER.contains(name)) {
            return Err(WalletError::NotAWallet);
        }
        let (sums, mut encoded) = (Checksum::of(DESCRIPTORS), Vec::new());
        let take = &mut |table: &str, key: &[u8], stored: &[u8]| {
            if table == DESCRIPTORS {
                encoded.extend(sums.open(key, stored).map(<[u8]>::to_vec));
            }
            Ok(())
        };
        data.walk(take).map_err(bad)?;
        let descriptors = encoded.iter().map(|row| decode(row)).collect::<Result<_>>()?;
        let sums = Checksum::of(META);
        let meta = |key: &[u8]| {
            let stored = data.get(META, key).map_err(bad)?;
            Ok(stored.and_then(|stored| sums.open(key, &stored).map(<[u8]>::to_vec)))
        };
        Self::new(meta, descriptors, rows)
    }

    fn new(
        meta: impl Fn(&[u8]) -> Result<Option<Vec<u8>>>,
        descriptors: Vec<DescriptorContents>,
        rows: BTreeMap<String, u64>,
    ) -> Result<Self> {
        let needed = |key: &[u8]| meta(key)?.ok_or(WalletError::NotAWallet);
        let row: MetaRow = from_bytes(&needed(LAYOUT_KEY)?)?;
        let synced: Synced = from_bytes(&needed(b"synced")?)?;
        let chain = ChainIdentity::from_bytes(&needed(CHAIN)?).ok_or(WalletError::NotAWallet)?;
        Ok(Self {
            chain: chain.to_string(),
            height: synced.height,
            block: synced.hash,
            time: synced.time,
            private_keys: row.private_keys_enabled,
            encrypted: meta(ENCRYPTION)?.is_some(),
            avoid_reuse: row.avoid_reuse,
            changes: meta(CHANGES)?.map_or(Ok(0), |changes| from_bytes(&changes))?,
            descriptors,
            rows,
        })
    }
}

/// Checks each page and row of a wallet's file, and its layout.
///
/// # Errors
/// The file is damaged or has another layout.
pub fn check_file(file: &File, path: &Path) -> Result<()> {
    let bad = |fault| StoreError::BadFile { file: path.to_owned(), fault };
    let data = DataFile::of(file.try_clone()?).map_err(bad)?;
    Ok(outrigger_disk::check_file(&data, path, LAYOUT_KEY, &LAYOUT.to_le_bytes())?)
}

fn decode(row: &[u8]) -> Result<DescriptorContents> {
    let row: DescriptorRow = from_bytes(row)?;
    Ok(DescriptorContents {
        text: row.public,
        timestamp: row.timestamp,
        range: [row.range_begin, row.range_end],
        next_index: row.next_index,
        active: row.active,
        internal: row.internal,
    })
}

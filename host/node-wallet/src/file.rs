//! The file of a descriptor wallet: an SQLite database with one table of records.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use bitcoin::p2p::Magic;
use bitcoin::{Address, Network, OutPoint, Transaction};
use outrigger_descriptor::checksum;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use zeroize::Zeroizing;

use crate::error::FileError;
use crate::keys::{PrivateKeys, open_master_key, open_private_key};
use crate::record::{self, DescriptorId, MasterKey, OUT_OF_RANGE, Reader};
use crate::{Active, Coin, Comment, Content, Descriptor};

/// `WALLET_FLAG_AVOID_REUSE` and other wallet flags.
const AVOID_REUSE: u64 = 1;
const DISABLE_PRIVATE_KEYS: u64 = 1 << 32;
const BLANK: u64 = 1 << 33;
const DESCRIPTORS: u64 = 1 << 34;
const EXTERNAL_SIGNER: u64 = 1 << 35;
/// The block hash in the record of an abandoned transaction: the number 1.
const ABANDONED: [u8; 32] = {
    let mut hash = [0; 32];
    hash[0] = 1;
    hash
};

/// Reads the file of a wallet that no bitcoind has loaded. Calls `passphrase` if its private keys are encrypted.
pub fn read(path: &Path, passphrase: impl FnOnce() -> Option<Zeroizing<String>>) -> Result<Content, FileError> {
    let records = Records::read(path)?;
    let keys = records.open_keys(passphrase)?;
    Ok(records.into_content(&keys))
}

/// Whether a record can be parsed.
pub fn is_readable(key: &[u8], value: &[u8]) -> bool {
    Records::default().take(key, value).is_ok()
}

#[derive(Default)]
struct Records {
    /// `None` for a custom signet.
    network: Option<Network>,
    flags: u64,
    /// With their public texts, and all with a range.
    descriptors: Vec<(DescriptorId, Descriptor)>,
    keys: Vec<(Vec<u8>, Zeroizing<[u8; 32]>)>,
    encrypted: Vec<(Vec<u8>, Vec<u8>)>,
    master_keys: Vec<MasterKey>,
    active: HashMap<DescriptorId, Active>,
    confirmed: Vec<Transaction>,
    used: HashSet<String>,
    content: Content,
}

impl Records {
    fn read(path: &Path) -> Result<Self, FileError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let database = Connection::open_with_flags(path, flags)?;
        let mut records = Self::read_from(&database).map_err(|error| match error {
            FileError::Sqlite(error) => match error.sqlite_error_code() {
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => FileError::Loaded,
                Some(ErrorCode::NotADatabase) => FileError::NotAWallet,
                _ => FileError::Sqlite(error),
            },
            other => other,
        })?;
        if records.flags & DESCRIPTORS == 0 {
            return Err(FileError::Legacy);
        }
        if records.flags & EXTERNAL_SIGNER != 0 {
            return Err(FileError::ExternalSigner);
        }
        records.content.private_keys = records.flags & DISABLE_PRIVATE_KEYS == 0;
        records.content.avoid_reuse = records.flags & AVOID_REUSE != 0;
        records.content.blank = records.flags & BLANK != 0;
        records.content.encrypted = !records.master_keys.is_empty();
        Ok(records)
    }

    fn read_from(database: &Connection) -> Result<Self, FileError> {
        let tables = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'main'";
        if database.query_row(tables, [], |row| row.get::<_, i64>(0))? == 0 {
            return Err(FileError::NotAWallet);
        }
        // The network's message start bytes.
        let magic: i32 = database.query_row("PRAGMA application_id", [], |row| row.get(0))?;
        let mut records =
            Self { network: Network::from_magic(Magic::from_bytes(magic.to_be_bytes())), ..Self::default() };
        let mut query = database.prepare("SELECT key, value FROM main")?;
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()? {
            let (key, value) = (row.get_ref(0)?.as_blob(), row.get_ref(1)?.as_blob());
            let (Ok(key), Ok(value)) = (key, value) else { return Err(FileError::NotAWallet) };
            records.take(key, value).map_err(|error| FileError::Record { kind: record::kind(key), error })?;
        }
        Ok(records)
    }

    /// Adds a record. Fails if a record of a known kind is malformed.
    fn take(&mut self, key: &[u8], value: &[u8]) -> record::Result<()> {
        let (mut key, mut value) = (Reader(key), Reader(value));
        match key.text()?.as_str() {
            // `WalletFlags`.
            "flags" => self.flags = value.read()?,
            "walletdescriptor" => {
                let descriptor = Descriptor {
                    text: value.text()?.into(),
                    timestamp: value.read()?,
                    next_index: value.index()?,
                    range: Some((value.index()?, value.index()?)),
                    active: None,
                };
                self.descriptors.push((key.read()?, descriptor));
            }
            "walletdescriptorkey" => {
                key.read::<DescriptorId>()?;
                self.keys.push((key.bytes()?.to_vec(), record::secret(value.bytes()?)?));
            }
            "walletdescriptorckey" => {
                key.read::<DescriptorId>()?;
                self.encrypted.push((key.bytes()?.to_vec(), value.bytes()?.to_vec()));
            }
            "mkey" => self.master_keys.push(MasterKey {
                sealed: value.bytes()?.to_vec(),
                salt: value.bytes()?.to_vec(),
                method: value.read()?,
                iterations: value.read()?,
            }),
            "activeexternalspk" => {
                self.active.insert(value.read()?, Active::Receiving);
            }
            "activeinternalspk" => {
                self.active.insert(value.read()?, Active::Change);
            }
            "name" => self.content.labels.push((key.text()?, value.text()?)),
            "tx" => self.take_transaction(&mut value)?,
            "destdata" => {
                // An address whose coins were spent while the wallet avoided reuse.
                let address = key.text()?;
                if key.text()? == "used" {
                    self.used.insert(address);
                }
            }
            "lockedutxo" => self.content.locked.push(key.read()?),
            _ => {}
        }
        Ok(())
    }

    /// Adds a record of a transaction (`CWalletTx`).
    fn take_transaction(&mut self, value: &mut Reader<'_>) -> record::Result<()> {
        let transaction: Transaction = value.read().map_err(|_| "it is not a transaction")?;
        let block: [u8; 32] = value.read()?;
        // The Merkle branch, which is obsolete.
        for _ in 0..value.count()? {
            value.take(32)?;
        }
        let position: i32 = value.read()?;
        // Previous transactions. No release with descriptor wallets writes them.
        if value.count()? != 0 {
            return Err(OUT_OF_RANGE);
        }
        let (mut comment, mut to, mut smart_time) = (String::new(), String::new(), 0);
        for _ in 0..value.count()? {
            match (value.text()?.as_str(), value.text()?) {
                ("comment", text) => comment = text,
                ("to", text) => to = text,
                ("timesmart", text) => smart_time = text.parse().unwrap_or(0),
                _ => {}
            }
        }
        // `vOrderForm`.
        for _ in 0..value.count()? {
            value.bytes()?;
            value.bytes()?;
        }
        // `fTimeReceivedIsTxTime`.
        value.read::<u32>()?;
        let received = value.read::<u32>()?.into();
        let txid = transaction.compute_txid();
        self.content.transactions.push(txid);
        self.content.times.push((txid, if smart_time == 0 { received } else { smart_time }, received));
        if !comment.is_empty() || !to.is_empty() {
            self.content.comments.push(Comment { txid, comment, to });
        }
        match position {
            0 if block == [0; 32] => {
                self.content.pending.extend(transaction.input.iter().map(|input| input.previous_output));
            }
            0.. if block != ABANDONED => self.confirmed.push(transaction),
            // Abandoned, or in conflict with a block.
            _ => {}
        }
        Ok(())
    }

    fn coins(&self) -> Vec<Coin> {
        let inputs = self.confirmed.iter().flat_map(|transaction| &transaction.input);
        let spent: HashSet<OutPoint> = inputs.map(|input| input.previous_output).collect();
        let network = self.network.unwrap_or(Network::Signet);
        let mut coins = Vec::new();
        for transaction in &self.confirmed {
            let txid = transaction.compute_txid();
            for (vout, output) in (0..).zip(&transaction.output) {
                let outpoint = OutPoint { txid, vout };
                let Ok(address) = Address::from_script(&output.script_pubkey, network) else { continue };
                if !spent.contains(&outpoint) {
                    let address = address.to_string();
                    let is_used = self.used.contains(&address);
                    coins.push(Coin { output: outpoint, value: output.value, address, is_used });
                }
            }
        }
        coins
    }

    /// The private keys, decrypted if necessary.
    fn open_keys(&self, passphrase: impl FnOnce() -> Option<Zeroizing<String>>) -> Result<PrivateKeys, FileError> {
        let mut keys = PrivateKeys::default();
        for (public, secret) in &self.keys {
            keys.add(public, secret.clone())?;
        }
        if self.encrypted.is_empty() {
            return Ok(keys);
        }
        let passphrase = passphrase().ok_or(FileError::NeedsPassphrase)?;
        // After a passphrase change there may be several master keys. Any that decrypts all keys suffices.
        for master in &self.master_keys {
            let Some(key) = open_master_key(master, &passphrase)? else { continue };
            let open =
                |(public, sealed): &(Vec<u8>, Vec<u8>)| Some((public.clone(), open_private_key(&key, public, sealed)?));
            let Some(opened) = self.encrypted.iter().map(open).collect::<Option<Vec<_>>>() else { continue };
            for (public, secret) in opened {
                keys.add(&public, secret)?;
            }
            return Ok(keys);
        }
        Err(FileError::WrongPassphrase)
    }

    fn into_content(self, keys: &PrivateKeys) -> Content {
        let coins = self.coins();
        let network = self.network.unwrap_or(Network::Signet).into();
        let active = self.active;
        let descriptor = |(id, descriptor): (DescriptorId, Descriptor)| {
            let mut text = keys.put_into(&descriptor.text, network);
            let range = descriptor.range.filter(|_| text.contains('*'));
            if let Some(checksum) = checksum(&text) {
                text.push('#');
                text.push_str(&checksum);
            }
            Descriptor { text, range, active: active.get(&id).copied(), ..descriptor }
        };
        Content { descriptors: self.descriptors.into_iter().map(descriptor).collect(), coins, ..self.content }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{NOT_UTF8, SHORT};

    fn text(text: &str) -> Vec<u8> {
        [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat()
    }

    #[test]
    fn a_descriptor_is_read_and_a_short_one_refused() {
        let key = [text("walletdescriptor"), vec![7; 32]].concat();
        let value = [
            text("raw(51)#abcdefgh"),
            9_u64.to_le_bytes().to_vec(),
            3_i32.to_le_bytes().to_vec(),
            0_i32.to_le_bytes().to_vec(),
            1000_i32.to_le_bytes().to_vec(),
        ]
        .concat();
        let expected = Descriptor {
            text: "raw(51)#abcdefgh".to_owned().into(),
            timestamp: 9,
            next_index: 3,
            range: Some((0, 1000)),
            active: None,
        };
        let mut records = Records::default();
        records.take(&key, &value).unwrap();
        assert_eq!(records.descriptors, [([7; 32], expected)]);
        for length in 0..value.len() {
            assert_eq!(records.take(&key, &value[..length]), Err(SHORT), "{length}");
        }
        let negative = [&value[..value.len() - 4], &(-1_i32).to_le_bytes()].concat();
        assert_eq!(records.take(&key, &negative), Err(OUT_OF_RANGE));
    }

    #[test]
    fn a_record_of_another_kind_is_skipped_and_a_record_without_a_kind_refused() {
        let mut records = Records::default();
        assert_eq!(records.take(&text("bestblock"), &[]), Ok(()));
        assert_eq!(records.take(&[], &[]), Err(SHORT));
        assert_eq!(records.take(&[2, 0xff, 0xff], &[]), Err(NOT_UTF8));
    }
}

//! The dump of a wallet's keys and scripts as a text file (dumpwallet), and reading such a file (importwallet).

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::path::{Path, absolute};

use bitcoin::ScriptBuf;
use outrigger_base::client_files::{ClientFileError, Folders};
use outrigger_service::wallet::{AddressType, ScriptInfo};
use outrigger_service::wire::{Secret, from_bytes};
use outrigger_service::{ErrorKind, Result as ServiceResult, ServiceError};
use outrigger_sign::encode_dump_label;
use outrigger_standard::address;
use outrigger_values::params::encode_hex;
use outrigger_values::time::to_iso8601;
use zeroize::Zeroizing;

use super::WalletView;
use crate::error::{Result, WalletError};
use crate::keypool::private_key_at;
use crate::legacy::{p2sh, p2wpkh};
use crate::manager::WalletManager;
use crate::ownership::p2pkh;
use crate::signing::MAX_EXPANDED;
use crate::store::rows::{DescriptorRow, KeyRow, KnownScriptRow};
use crate::store::tables::{hash160, number_from_key};

/// The longest dump that is read, in bytes: some 600,000 keys.
const MAX_LEN: u64 = 64 << 20;
/// The length of a compressed public key, in bytes.
const COMPRESSED: usize = 33;
/// What bitcoind says of a file that cannot be opened, whatever the reason.
const CANNOT_OPEN: &str = "Cannot open wallet dump file";

/// A private key of the wallet.
struct Entry {
    time: u64,
    public_key: Vec<u8>,
    wif: Secret,
    /// What is said of it where no address of it is in the address book.
    purpose: &'static str,
}

fn refused(detail: impl Into<String>) -> ServiceError {
    ServiceError::new(ErrorKind::Refused, detail.into())
}

impl WalletManager {
    /// The text of a dump, which the rule for clients' files lets be read.
    ///
    /// # Errors
    /// `Refused` with bitcoind's words when it cannot be read, or is no text or too long.
    pub fn read_dump(&self, file: &Path, folders: &Folders) -> ServiceResult<Secret> {
        let read = || -> std::result::Result<Zeroizing<String>, ClientFileError> {
            let mut text = Zeroizing::new(String::new());
            self.shared.client_files.read(file, folders)?.take(MAX_LEN).read_to_string(&mut text)?;
            Ok(text)
        };
        match read() {
            Ok(mut text) if (text.len() as u64) < MAX_LEN => Ok(Secret::new(std::mem::take(&mut *text))),
            _ => Err(refused(CANNOT_OPEN)),
        }
    }
}

impl WalletView {
    /// Writes the wallet's private keys and scripts to a new file, in the form of bitcoind's dumpwallet. Gives its full path.
    ///
    /// # Errors
    /// `WalletLocked`; `Refused` with bitcoind's words when the file is there or cannot be written; `Storage`.
    pub fn dump(&self, file: &Path, folders: &Folders) -> ServiceResult<String> {
        let path = absolute(file).map_err(|_| refused(CANNOT_OPEN))?;
        let text = self.dump_text()?;
        let write = |to: &mut std::fs::File| Ok(to.write_all(text.as_bytes())?);
        let written = self.wallet.shared.client_files.replace(file, folders, |_| Ok(false), write);
        written.map_err(|error: ClientFileError| match error {
            ClientFileError::OtherFile => {
                let advice = "If you are sure this is what you want, move it out of the way first";
                refused(format!("{} already exists. {advice}", path.display()))
            }
            _ => refused(CANNOT_OPEN),
        })?;
        Ok(path.display().to_string())
    }

    fn dump_text(&self) -> ServiceResult<Zeroizing<String>> {
        let mut entries = self.entries()?;
        entries.sort_by_cached_key(|entry| (entry.time, hash160(&entry.public_key)));
        let mut text = Zeroizing::new(String::new());
        let (synced, now) = (self.synced, to_iso8601(self.wallet.shared.node.time()));
        let (height, hash, mined) = (synced.height, synced.hash, to_iso8601(synced.time.into()));
        // Writing to text cannot fail.
        let _ = write!(
            text,
            "# Wallet dump created by Outrigger {}\n# * Created on {now}\n\
             # * Best block at time of backup was {height} ({hash}),\n#   mined on {mined}\n\n",
            env!("CARGO_PKG_VERSION"),
        );
        for batch in entries.chunks(MAX_EXPANDED) {
            self.dump_entries(batch, &mut text)?;
        }
        text.push('\n');
        self.dump_scripts(&mut text)?;
        text.push_str("\n# End of dump\n");
        Ok(text)
    }

    /// The private keys: those that were imported, and those of the descriptors of one key.
    fn entries(&self) -> Result<Vec<Entry>> {
        let encryption_key = self.wallet.encryption_key()?;
        let mut entries = Vec::new();
        for entry in self.t().imported_keys.iter(&self.txn)? {
            let row: KeyRow = from_bytes(entry?.1).map_err(WalletError::Damaged)?;
            let place = private_key_at(&hash160(&row.public_key));
            if let Some(value) = self.t().keys.get(&self.txn, &place)? {
                let wif = encryption_key.unwrap(&place, value)?;
                entries.push(Entry { time: row.timestamp, public_key: row.public_key.0, wif, purpose: "change=1" });
            }
        }
        for entry in self.t().descriptors.iter(&self.txn)? {
            let (number, row) = entry?;
            let (number, row) =
                (number_from_key(number)?, from_bytes::<DescriptorRow>(row).map_err(WalletError::Damaged)?);
            // Legacy wallets have no taproot addresses.
            if !row.has_private || row.output_type.is_none_or(|kind| kind == AddressType::Bech32m as u8) {
                continue;
            }
            for index in row.derived_begin..row.range_end {
                let purpose = if row.active && index >= row.next_index { "reserve=1" } else { "change=1" };
                for (public_key, wif) in self.wallet.wifs_at(&self.txn, (number, index), &encryption_key)? {
                    entries.push(Entry { time: row.timestamp, public_key, wif, purpose });
                }
            }
        }
        Ok(entries)
    }

    fn dump_entries(&self, entries: &[Entry], text: &mut String) -> ServiceResult<()> {
        let scripts: Vec<Vec<ScriptBuf>> = entries.iter().map(|entry| scripts_of(&entry.public_key)).collect();
        let mut infos = self.scripts(scripts.concat())?.into_iter();
        for (entry, scripts) in entries.iter().zip(scripts) {
            let known: Vec<(&ScriptBuf, Option<ScriptInfo>)> =
                scripts.iter().map(|script| (script, infos.next().flatten())).collect();
            self.dump_entry(entry, &known, text);
        }
        Ok(())
    }

    fn dump_entry(&self, entry: &Entry, known: &[(&ScriptBuf, Option<ScriptInfo>)], text: &mut String) {
        let network = self.wallet.shared.network;
        let label = |info: &Option<ScriptInfo>| info.as_ref().and_then(|info| info.label.clone());
        let labelled = known.iter().filter_map(|(script, info)| Some((*script, label(info)?)));
        let labelled: Vec<(&ScriptBuf, String)> = labelled.collect();
        let said = match labelled.last() {
            Some((_, label)) => format!("label={}", encode_dump_label(label)),
            None => entry.purpose.to_owned(),
        };
        // Without an entry in the address book, the address is that of the default type.
        let told: Vec<&ScriptBuf> = match labelled.as_slice() {
            [] => known.get(1).or(known.first()).map(|(script, _)| *script).into_iter().collect(),
            labelled => labelled.iter().map(|(script, _)| *script).collect(),
        };
        let addresses: Vec<String> =
            told.into_iter().filter_map(|script| address::from_script(script, network)).collect();
        let is_key = |public_key: &[u8]| public_key == entry.public_key.as_slice();
        let mut origins = known.iter().filter_map(|(_, info)| info.as_ref()).flat_map(|info| &info.origins);
        let path = origins.find(|origin| is_key(&origin.public_key)).map(|origin| origin.path.replace('h', "'"));
        let path = path.map(|path| format!(" hdkeypath={path}")).unwrap_or_default();
        let (wif, time, addresses) = (entry.wif.expose(), to_iso8601(entry.time), addresses.join(","));
        let _ = writeln!(text, "{wif} {time} {said} # addr={addresses}{path}");
    }

    fn dump_scripts(&self, text: &mut String) -> Result<()> {
        for entry in self.t().imported_scripts.iter(&self.txn)? {
            let row: KnownScriptRow = from_bytes(entry?.1).map_err(WalletError::Damaged)?;
            let time = if row.timestamp == 0 { "0".to_owned() } else { to_iso8601(row.timestamp) };
            let address = address::from_script(&row.script.to_p2sh(), self.wallet.shared.network).unwrap_or_default();
            let script = encode_hex(row.script.as_bytes());
            let _ = writeln!(text, "{script} {time} script=1 # addr={address}");
        }
        Ok(())
    }
}

/// The scripts that pay to a key alone, in bitcoind's order.
fn scripts_of(public_key: &[u8]) -> Vec<ScriptBuf> {
    let hash = hash160(public_key);
    if public_key.len() != COMPRESSED {
        return vec![p2pkh(&hash)];
    }
    vec![p2pkh(&hash), p2wpkh(&hash), p2sh(&hash160(p2wpkh(&hash).as_bytes()))]
}

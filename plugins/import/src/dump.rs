//! importwallet: the keys and scripts of a file that dumpwallet wrote, here or in bitcoind.

use std::collections::BTreeMap;

use bitcoin::ScriptBuf;
use outrigger_sdk::params::{Params, decode_hex};
use outrigger_sdk::service::wallet::{Import, ImportOutcome, KeysImport};
use outrigger_sdk::service::{ErrorKind, Scope};
use outrigger_sdk::sign::WifKey;
use outrigger_sdk::time::from_iso8601;
use outrigger_sdk::wire::Secret;

use crate::error::ImportError;
use crate::legacy::{nothing, scripts_of_key};
use crate::rescan::Pending;
use crate::{ImportPlugin, Imported, check_unlocked};

/// What a dump holds.
#[derive(Default)]
struct Dump {
    /// Keys and scripts by their birth time, in seconds; 0 where it is not known.
    by_time: BTreeMap<u64, KeysImport>,
    /// The P2PKH scripts that have an entry in the address book, and their labels.
    labels: Vec<(ScriptBuf, String)>,
    /// The earliest birth time of a key, or of a script that has one.
    begin: Option<u64>,
}

impl Dump {
    /// Reads the lines that begin with a private key of the network, or a script; others say nothing.
    fn read(text: &str, network: bitcoin::NetworkKind) -> Self {
        let mut dump = Self::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&str> = line.split(' ').collect();
            let [first, time, rest @ ..] = words.as_slice() else { continue };
            let time = from_iso8601(time).unwrap_or(0);
            if let Ok(key) = WifKey::parse(first, network) {
                dump.at(time, true).private_keys.push(Secret::new((*first).to_owned()));
                let script = scripts_of_key(key.public_key()).pop();
                dump.labels.extend(script.zip(label(rest)));
            } else if let Some(script) = decode_hex(first).filter(|script| !script.is_empty()) {
                dump.at(time, time > 0).scripts.push(ScriptBuf::from_bytes(script));
            }
        }
        dump
    }

    fn at(&mut self, time: u64, counts: bool) -> &mut KeysImport {
        if counts {
            self.begin = Some(self.begin.map_or(time, |begin| begin.min(time)));
        }
        self.by_time.entry(time).or_insert_with(|| nothing(time.max(1)))
    }
}

/// The label of a key's line: none for one of the keypool or for change.
fn label(words: &[&str]) -> Option<String> {
    let mut label = Some(String::new());
    for word in words.iter().take_while(|word| !word.starts_with('#')) {
        match word.strip_prefix("label=") {
            Some(encoded) => label = Some(decoded(encoded)),
            None if matches!(*word, "change=1" | "reserve=1") => label = None,
            None => {}
        }
    }
    label
}

/// A label in which `%` and two hexadecimal digits stand for a byte.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let escaped = behind.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = behind.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl ImportPlugin {
    /// importwallet.
    pub fn import_wallet(&self, params: &Params, scope: Scope) -> Result<Imported<'_>, ImportError> {
        let wallet = self.legacy_wallet(scope)?;
        let reservation = self.reserve(scope)?;
        check_unlocked(&wallet)?;
        let text = self.host.wallet.read_dump(scope, params.text(0)?.to_owned()).map_err(|error| match error.kind {
            ErrorKind::Refused => ImportError::DumpFile,
            _ => error.into(),
        })?;
        let dump = Dump::read(text.expose(), self.network(scope)?.into());
        if !wallet.private_keys_enabled && dump.by_time.values().any(|keys| !keys.private_keys.is_empty()) {
            return Err(ImportError::DumpWithoutKeys);
        }
        let requests: Vec<Import> = dump.by_time.into_values().map(|keys| Import::Keys { keys }).collect();
        let outcomes = if requests.is_empty() { Vec::new() } else { self.host.wallet.import(scope, requests)? };
        let failed = outcomes.iter().any(|outcome| !matches!(outcome, ImportOutcome::Imported { .. }));
        for (script, label) in dump.labels {
            self.host.wallet.set_label(scope, script, label)?;
        }
        let tip = u64::from(wallet.synced.time);
        let from_time = dump.begin.map_or(tip, |begin| begin.min(tip));
        let pending = Pending::Null { from_time, failure: failed.then_some(ImportError::NotAllImported) };
        Ok(Imported { pending, rescan: Some((wallet.name, reservation)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_a_dump_are_decoded() {
        assert_eq!(decoded("a%20b%25%c3%a9"), "a b%é");
        assert_eq!(decoded("%"), "%");
        assert_eq!(decoded("%zz%4"), "%zz%4");
        assert_eq!(label(&["label=x%20y", "#", "label=z"]).as_deref(), Some("x y"));
        assert_eq!(label(&["reserve=1", "#", "addr=1"]), None);
        assert_eq!(label(&["hdseed=1"]).as_deref(), Some(""));
    }
}

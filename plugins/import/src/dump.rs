//! importwallet: the keys and scripts of a file that dumpwallet wrote, here or in bitcoind.

use std::collections::BTreeMap;

use bitcoin::ScriptBuf;
use outrigger_sdk::params::Params;
use outrigger_sdk::service::wallet::{Import, ImportOutcome, KeysImport};
use outrigger_sdk::service::{ErrorKind, Scope};
use outrigger_sdk::sign::{DumpEntry, DumpLine, dump_lines};

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
    fn read(text: &str, network: bitcoin::NetworkKind) -> Self {
        let mut dump = Self::default();
        for DumpLine { time, entry } in dump_lines(text, network) {
            match entry {
                DumpEntry::Key { wif, public_key, label } => {
                    dump.at(time, true).private_keys.push(wif);
                    dump.labels.extend(scripts_of_key(&public_key).pop().zip(label));
                }
                DumpEntry::Script(script) => dump.at(time, time > 0).scripts.push(script),
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

impl ImportPlugin {
    /// importwallet.
    pub fn import_wallet(&self, params: &Params, scope: Scope) -> Result<Imported<'_>, ImportError> {
        let wallet = self.legacy_wallet(scope)?;
        if !self.has_block(scope, 0)? {
            return Err(self.unless_validating(scope, ImportError::DumpOfPruned));
        }
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

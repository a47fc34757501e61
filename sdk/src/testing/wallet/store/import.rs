//! Imports of descriptors, and of keys and scripts.

use bitcoin::PrivateKey;

use super::Node;
use super::descriptors::{Described, KEYPOOL, parse};
use super::imported::{ImportedKey, p2pk};
use super::own::{NETWORK, Own, address_script};
use crate::descriptor::{Checksum, Descriptor};
use crate::service::wallet::{DescriptorImport, Import, ImportOutcome, KeysImport, Ownership};
use crate::service::{ErrorKind, Result};

/// A first import is derived from index 0 on when it begins no higher than this; beyond, from its beginning.
const MAX_GAP_BELOW: u32 = 1_000_000;

/// The range of an import, its end excluded.
fn range(import: &DescriptorImport) -> (u32, u32) {
    import.range.map_or((0, KEYPOOL), |(begin, end)| (begin, end.saturating_add(1)))
}

impl Own {
    pub fn import(&mut self, requests: &[Import], node: &Node) -> Result<Vec<ImportOutcome>> {
        self.require_unlocked(node)?;
        let mut outcomes = Vec::new();
        for request in requests {
            if let Err(error) = request.check_lengths() {
                outcomes.push(ImportOutcome::BadDescriptor { reason: error.detail });
                continue;
            }
            let (imported, timestamp) = match request {
                Import::Descriptor { descriptor } => (self.import_descriptor(descriptor)?, descriptor.timestamp),
                Import::Keys { keys } => (self.import_keys(keys), keys.timestamp),
                Import::Parts { parts } => {
                    let oldest = parts.iter().map(|part| part.timestamp).min().unwrap_or(u64::MAX);
                    (self.import_parts(parts), oldest)
                }
            };
            if matches!(imported, ImportOutcome::Imported { .. }) {
                self.note_born(timestamp);
            }
            outcomes.push(imported);
        }
        Ok(outcomes)
    }

    fn import_descriptor(&mut self, import: &DescriptorImport) -> Result<ImportOutcome> {
        let sides = match Descriptor::parse(import.text.expose(), NETWORK, Checksum::Optional) {
            Ok(sides) => sides,
            Err(error) => return Ok(ImportOutcome::BadDescriptor { reason: error.to_string() }),
        };
        let any_private = sides.iter().any(Descriptor::has_private_keys);
        if !self.private_keys_enabled && any_private {
            return Ok(ImportOutcome::PrivateKeysDisabled);
        }
        if sides.iter().any(|side| side.expand(0).is_err()) {
            return Ok(ImportOutcome::NotExpandable);
        }
        if self.private_keys_enabled && !any_private {
            return Ok(ImportOutcome::NoPrivateKeys);
        }
        let (begin, end) = range(import);
        for side in sides.iter().filter(|side| side.is_ranged()) {
            if let Some(row) = self.find(side).and_then(|number| self.descriptors.get(number))
                && (begin > row.begin || end < row.end)
            {
                return Ok(ImportOutcome::RangeShrinks { begin: row.begin, end: row.end.saturating_sub(1) });
            }
        }
        let imported = ImportOutcome::Imported {
            missing_private_keys: self.private_keys_enabled && !sides.iter().all(Descriptor::has_all_private_keys),
            unknown_output_type: import.active && sides.iter().any(|side| side.output_type().is_none()),
        };
        // Of two paths the first is for receiving and the second for change.
        let paired = sides.len() == 2;
        for (position, side) in sides.into_iter().enumerate() {
            let internal = if paired { position == 1 } else { import.internal.unwrap_or(false) };
            self.import_side(import, side, internal)?;
        }
        Ok(imported)
    }

    fn find(&self, side: &Descriptor) -> Option<usize> {
        let identity = side.to_public_string();
        self.descriptors.iter().position(|row| row.identity == identity)
    }

    fn import_side(&mut self, import: &DescriptorImport, side: Descriptor, internal: bool) -> Result<()> {
        let ranged = side.is_ranged();
        let (begin, end) = if ranged { range(import) } else { (0, 1) };
        let next_index = if ranged { import.next_index.unwrap_or(begin) } else { 0 };
        let ahead = if ranged { next_index.saturating_add(KEYPOOL).min(1 << 31) } else { 1 };
        let mut row = Described {
            identity: side.to_public_string(),
            public: parse(&side.to_normalized_string())?,
            private: side.has_private_keys().then(|| side.clone()),
            timestamp: import.timestamp,
            begin,
            end: end.max(ahead),
            derived_begin: if begin > MAX_GAP_BELOW { begin } else { 0 },
            next_index,
            active: false,
            internal,
        };
        let number = match self.find(&side) {
            None => {
                self.descriptors.push(row.clone());
                let number = self.descriptors.len() - 1;
                self.derive(number, &side, row.derived_begin..row.end)?;
                number
            }
            Some(number) => {
                self.deactivate(number);
                let former = self.descriptors.get(number).cloned().ok_or(ErrorKind::Internal)?;
                row.end = row.end.max(former.end);
                row.derived_begin = row.derived_begin.min(former.derived_begin);
                if former.private.is_some() || row.private.is_none() {
                    row.public = former.public;
                }
                row.private = row.private.or(former.private);
                let (derived_begin, end) = (row.derived_begin, row.end);
                if let Some(place) = self.descriptors.get_mut(number) {
                    *place = row;
                }
                self.derive(number, &side, derived_begin..former.derived_begin)?;
                self.derive(number, &side, former.end..end)?;
                number
            }
        };
        if import.active {
            self.activate(number, internal);
        }
        if !ranged && !internal {
            let label = import.label.clone().unwrap_or_default();
            for script in side.expand(0).map(|expansion| expansion.scripts).unwrap_or_default() {
                self.set_label(&script.script_pubkey, &label, true);
            }
        }
        Ok(())
    }

    /// All parts, or none where one is refused.
    fn import_parts(&mut self, parts: &[KeysImport]) -> ImportOutcome {
        if let Some(refused) = parts.iter().find_map(|part| self.refused(part)) {
            return refused;
        }
        for part in parts {
            self.store_keys(part);
        }
        ImportOutcome::Imported { missing_private_keys: false, unknown_output_type: false }
    }

    fn import_keys(&mut self, import: &KeysImport) -> ImportOutcome {
        self.import_parts(std::slice::from_ref(import))
    }

    fn refused(&self, import: &KeysImport) -> Option<ImportOutcome> {
        if !self.private_keys_enabled && !import.private_keys.is_empty() {
            return Some(ImportOutcome::PrivateKeysDisabled);
        }
        if let Some(script) = import.script_pubkeys.iter().find(|s| self.ownership(s) == Ownership::Spendable) {
            return Some(ImportOutcome::AlreadyOwned { script: script.clone() });
        }
        let bad = import.private_keys.iter().any(|wif| PrivateKey::from_wif(wif.expose()).is_err());
        bad.then(|| ImportOutcome::BadDescriptor { reason: "Invalid private key encoding".into() })
    }

    fn store_keys(&mut self, import: &KeysImport) -> ImportOutcome {
        let keys: Vec<_> = import.private_keys.iter().map(|wif| PrivateKey::from_wif(wif.expose())).collect();
        for script in &import.scripts {
            self.imported.learn_script(script, import.timestamp);
        }
        let secp = secp256k1::Secp256k1::new();
        for key in keys.into_iter().flatten() {
            self.learn(import, key.public_key(&secp).to_bytes(), Some(key));
        }
        for public_key in &import.public_keys {
            if !self.learn(import, public_key.0.clone(), None) {
                continue;
            }
            self.imported.watch(&p2pk(public_key), import.timestamp);
            if import.keypool {
                self.imported.pool.push((import.internal, super::imported::hash160(public_key)));
            }
        }
        for script in &import.script_pubkeys {
            let ours = self.imported.ownership(script) != Ownership::None;
            if !import.solving_data || !ours {
                self.imported.watch(script, import.timestamp);
            }
            if !import.internal && address_script(script).is_some() {
                self.set_label(script, &import.label, true);
            }
        }
        ImportOutcome::Imported { missing_private_keys: false, unknown_output_type: false }
    }

    fn learn(&mut self, import: &KeysImport, public_key: Vec<u8>, private: Option<PrivateKey>) -> bool {
        let origin = import.origins.iter().find(|origin| origin.public_key.0 == public_key).cloned();
        self.imported.learn_key(ImportedKey { public_key, private, timestamp: import.timestamp, origin })
    }
}

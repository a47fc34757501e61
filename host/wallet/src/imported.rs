//! Keys and scripts from importmulti: the ownership that they give to scripts, and their solving data.
//!
//! The rules are those of Bitcoin Core 0.21. A script is ours if the wallet holds its private keys and knows the
//! scripts that it hashes. A witness program is ours only if the program itself is a known script, through a compressed
//! key or an import. Other scripts are watched if an import asked for that.

use std::collections::BTreeSet;

use bitcoin::hashes::{Hash, ripemd160};
use bitcoin::{PublicKey, Script, ScriptBuf};
use outrigger_service::wallet::{KeyOrigin, Ownership, SolvingData};
use outrigger_service::wire::Blob;
use outrigger_standard::{ScriptKind, classify};

use super::error::Result;
use super::ownership::p2pkh;
use super::store::{KeyRow, KnownScriptRow, Reading, ScriptRow, Tables, get, hash160, script_key};
use super::write::Write;

const COMPRESSED: usize = 33;

/// The level of nesting of a script.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ScriptContext {
    Top,
    RedeemScript,
    Witness,
}

/// The hash under which a witness script is stored: its HASH160, which is the RIPEMD160 of its witness program.
pub fn witness_script_id(program: &[u8; 32]) -> [u8; 20] {
    ripemd160::Hash::hash(program).to_byte_array()
}

pub fn p2wpkh(hash: &[u8; 20]) -> ScriptBuf {
    ScriptBuf::from_bytes([&[0, 20], hash.as_slice()].concat())
}

pub fn p2pk(key: &[u8]) -> ScriptBuf {
    let len = u8::try_from(key.len()).unwrap_or(u8::MAX);
    ScriptBuf::from_bytes([&[len], key, &[0xac]].concat())
}

/// The scripts that a single key can spend.
pub fn scripts_of_key(public_key: &[u8]) -> Vec<ScriptBuf> {
    let hash = hash160(public_key);
    let mut scripts = vec![p2pk(public_key), p2pkh(&hash)];
    if public_key.len() == COMPRESSED {
        let program = p2wpkh(&hash);
        scripts.extend([program.to_p2sh(), program]);
    }
    scripts
}

pub fn ownership(t: &Tables, txn: &Reading<'_>, script: &Script) -> Result<Ownership> {
    Ok(mine(t, txn, script, ScriptContext::Top)?.unwrap_or(Ownership::None))
}

/// `None` for an invalid script, which is never ours, even if the wallet holds the keys.
fn mine(t: &Tables, txn: &Reading<'_>, script: &Script, context: ScriptContext) -> Result<Option<Ownership>> {
    let held = |hash: &[u8; 20]| -> Result<bool> { Ok(t.imported_key(txn, hash)?.is_some_and(|key| key.private)) };
    let within = |hash: &[u8; 20], context| match t.imported_script(txn, hash)? {
        Some(known) => mine(t, txn, &known.script, context),
        None => Ok(Some(Ownership::None)),
    };
    let known_as_script = || -> Result<bool> { Ok(t.imported_script(txn, &hash160(script.as_bytes()))?.is_some()) };
    let owned = |is_held: bool| Some(if is_held { Ownership::Spendable } else { Ownership::None });
    let is_witness = context == ScriptContext::Witness;
    let found = match classify(script) {
        ScriptKind::PubKey { key } if is_witness && key.len() != COMPRESSED => None,
        ScriptKind::PubKey { key } => owned(held(&hash160(key))?),
        ScriptKind::PubKeyHash { hash } => key_hash(t, txn, hash, context)?,
        ScriptKind::ScriptHash { hash } if context == ScriptContext::Top => within(hash, ScriptContext::RedeemScript)?,
        ScriptKind::ScriptHash { .. } => None,
        ScriptKind::WitnessV0KeyHash { .. } | ScriptKind::WitnessV0ScriptHash { .. } if is_witness => None,
        ScriptKind::WitnessV0KeyHash { .. } | ScriptKind::WitnessV0ScriptHash { .. }
            if context == ScriptContext::Top && !known_as_script()? =>
        {
            owned(false)
        }
        ScriptKind::WitnessV0KeyHash { hash } => key_hash(t, txn, hash, ScriptContext::Witness)?,
        ScriptKind::WitnessV0ScriptHash { hash } => within(&witness_script_id(hash), ScriptContext::Witness)?,
        ScriptKind::Multisig { keys, .. } if is_witness && keys.iter().any(|key| key.len() != COMPRESSED) => None,
        ScriptKind::Multisig { keys, .. } if context != ScriptContext::Top => {
            let mut all = true;
            for key in keys {
                all = all && held(&hash160(key))?;
            }
            owned(all)
        }
        _ => owned(false),
    };
    if found == Some(Ownership::None) && t.imported_watch.get(txn, &script_key(script))?.is_some() {
        return Ok(Some(Ownership::WatchOnly));
    }
    Ok(found)
}

fn key_hash(t: &Tables, txn: &Reading<'_>, hash: &[u8; 20], context: ScriptContext) -> Result<Option<Ownership>> {
    Ok(match t.imported_key(txn, hash)? {
        Some(key) if context == ScriptContext::Witness && key.public_key.len() != COMPRESSED => None,
        Some(key) if key.private => Some(Ownership::Spendable),
        _ => Some(Ownership::None),
    })
}

#[derive(Default)]
pub struct Knowledge {
    pub solving: SolvingData,
    pub origins: Vec<KeyOrigin>,
    /// The birth time of the first key or script, in seconds; 0 if unknown.
    pub timestamp: u64,
    /// The descriptor of the script, without checksum; `None` if more than private keys is missing.
    pub descriptor: Option<String>,
    /// Whether an import provided any of it. The rest is read from the script itself.
    pub known: bool,
}

pub fn knowledge(t: &Tables, txn: &Reading<'_>, script: &Script) -> Result<Knowledge> {
    let mut found = Knowledge::default();
    found.descriptor = collect(t, txn, script, ScriptContext::Top, &mut found)?;
    if found.timestamp == 0 {
        let watched = t.imported_watch.get(txn, &script_key(script))?;
        found.timestamp = watched.and_then(|time| time.try_into().ok()).map_or(0, u64::from_le_bytes);
    }
    Ok(found)
}

/// Adds the solving data of `script` to `found`. Returns its descriptor if it is complete.
fn collect(
    t: &Tables,
    txn: &Reading<'_>,
    script: &Script,
    context: ScriptContext,
    found: &mut Knowledge,
) -> Result<Option<String>> {
    let inner = |hash: &[u8; 20], context: ScriptContext, found: &mut Knowledge| -> Result<Option<String>> {
        let Some(known) = t.imported_script(txn, hash)? else { return Ok(None) };
        found.known = true;
        found.solving.scripts.push(known.script.clone());
        found.timestamp = found.timestamp.max(known.timestamp);
        collect(t, txn, &known.script, context, found)
    };
    Ok(match classify(script) {
        ScriptKind::PubKey { key } => Some(format!("pk({})", add_key(t, txn, key, found)?)),
        ScriptKind::PubKeyHash { hash } => add_key_by_hash(t, txn, hash, found)?.map(|key| format!("pkh({key})")),
        ScriptKind::WitnessV0KeyHash { hash } if context != ScriptContext::Witness => {
            add_key_by_hash(t, txn, hash, found)?.map(|key| format!("wpkh({key})"))
        }
        ScriptKind::Multisig { required, keys } => {
            let mut text = format!("multi({required}");
            for key in keys {
                text = text + "," + &add_key(t, txn, key, found)?;
            }
            Some(text + ")")
        }
        ScriptKind::ScriptHash { hash } if context == ScriptContext::Top => {
            inner(hash, ScriptContext::RedeemScript, found)?.map(|text| format!("sh({text})"))
        }
        ScriptKind::WitnessV0ScriptHash { hash } if context != ScriptContext::Witness => {
            inner(&witness_script_id(hash), ScriptContext::Witness, found)?.map(|text| format!("wsh({text})"))
        }
        _ => None,
    })
}

/// Adds a key of a script. Returns its key expression.
fn add_key(t: &Tables, txn: &Reading<'_>, key: &[u8], found: &mut Knowledge) -> Result<String> {
    match add_key_by_hash(t, txn, &hash160(key), found)? {
        Some(text) => Ok(text),
        None => {
            found.solving.public_keys.push(Blob(key.to_vec()));
            Ok(outrigger_values::params::encode_hex(key))
        }
    }
}

fn add_key_by_hash(t: &Tables, txn: &Reading<'_>, hash: &[u8; 20], found: &mut Knowledge) -> Result<Option<String>> {
    let Some(row) = t.imported_key(txn, hash)? else { return Ok(None) };
    found.known = true;
    found.timestamp = if found.timestamp == 0 { row.timestamp } else { found.timestamp };
    let text = row.expression();
    found.solving.public_keys.push(row.public_key);
    found.origins.extend(row.origin);
    Ok(Some(text))
}

/// The hashes of the keys and scripts that a script refers to.
fn named(script: &Script) -> Vec<[u8; 20]> {
    match classify(script) {
        ScriptKind::PubKey { key } => vec![hash160(key)],
        ScriptKind::PubKeyHash { hash } | ScriptKind::WitnessV0KeyHash { hash } | ScriptKind::ScriptHash { hash } => {
            vec![*hash]
        }
        ScriptKind::WitnessV0ScriptHash { hash } => vec![witness_script_id(hash)],
        ScriptKind::Multisig { keys, .. } => keys.into_iter().map(hash160).collect(),
        _ => Vec::new(),
    }
}

/// New keys and scripts of a write, for [`Write::settle`].
#[derive(Default)]
pub struct NewKeys {
    hashes: Vec<[u8; 20]>,
    scripts: BTreeSet<ScriptBuf>,
}

impl Write<'_> {
    pub fn learn_script(&mut self, script: &Script, timestamp: u64, learned: &mut NewKeys) -> Result<()> {
        let hash = hash160(script.as_bytes());
        if self.t.imported_script(self.reads(), &hash)?.is_some() {
            return Ok(());
        }
        let row = KnownScriptRow { script: script.to_owned(), timestamp };
        self.store_row(self.t.imported_scripts, &hash, &row)?;
        for name in named(script) {
            self.put(self.t.imported_uses, &[name, hash].concat(), &[])?;
        }
        learned.hashes.push(hash);
        learned.scripts.extend([script.to_owned(), script.to_p2sh()]);
        Ok(())
    }

    /// Stores a public key, or marks a stored one as having its private key. Returns whether anything changed.
    pub fn learn_key(&mut self, mut row: KeyRow, learned: &mut NewKeys) -> Result<bool> {
        let hash = hash160(&row.public_key);
        if let Some(known) = self.t.imported_key(self.reads(), &hash)? {
            if known.private || !row.private {
                return Ok(false);
            }
            row.origin = row.origin.or(known.origin);
        }
        self.store_row(self.t.imported_keys, &hash, &row)?;
        if row.public_key.len() == COMPRESSED {
            // Once the program is a known script, the key's segwit scripts have the key's ownership.
            self.learn_script(&p2wpkh(&hash), 0, learned)?;
        }
        learned.hashes.push(hash);
        learned.scripts.extend([p2pk(&row.public_key), p2pkh(&hash)]);
        Ok(true)
    }

    /// Adds a script to the watch list, or replaces its birth time there.
    pub fn watch(&mut self, script: &Script, timestamp: u64, learned: &mut NewKeys) -> Result<()> {
        self.put(self.t.imported_watch, &script_key(script), &timestamp.to_le_bytes())?;
        learned.hashes.push(hash160(script.as_bytes()));
        learned.scripts.insert(script.to_owned());
        if let ScriptKind::PubKey { key } = classify(script)
            && PublicKey::from_slice(key).is_ok()
        {
            let row = KeyRow { public_key: Blob(key.to_vec()), timestamp, private: false, origin: None };
            self.learn_key(row, learned)?;
        }
        Ok(())
    }

    /// Updates the ownership in the rows of all affected scripts. Notes the scripts whose ownership changed.
    pub fn settle(&mut self, mut learned: NewKeys) -> Result<()> {
        let mut seen: BTreeSet<[u8; 20]> = BTreeSet::new();
        while let Some(hash) = learned.hashes.pop() {
            if !seen.insert(hash) {
                continue;
            }
            if let Some(known) = self.t.imported_script(self.reads(), &hash)? {
                learned.scripts.extend([known.script.to_p2sh(), known.script]);
            }
            for entry in self.t.imported_uses.prefix_iter(self.reads(), &hash)? {
                let (key, _) = entry?;
                learned.hashes.extend(key.get(20..).and_then(|user| <[u8; 20]>::try_from(user).ok()));
            }
        }
        for (number, script) in learned.scripts.into_iter().enumerate() {
            self.check_chunk(number)?;
            self.settle_script(script)?;
        }
        Ok(())
    }

    fn settle_script(&mut self, script: ScriptBuf) -> Result<()> {
        let imported = ownership(&self.t, self.reads(), &script)?;
        let key = script_key(&script);
        let row: Option<ScriptRow> = get(self.t.scripts, self.reads(), &key)?;
        let known = row.as_ref().map_or(Ownership::None, |row| row.imported);
        if imported != known {
            let row = row.unwrap_or_else(|| ScriptRow::new(script.clone()));
            self.store_row(self.t.scripts, &key, &ScriptRow { imported, ..row })?;
            self.wallet.follow_script(&key);
            self.touched.push(script);
        }
        Ok(())
    }
}

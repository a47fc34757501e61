//! Which descriptors stand for the imported keys and scripts of a legacy wallet.
//!
//! As in Bitcoin Core 29: each private key becomes a `combo`; each other script that is the wallet's gets the descriptor that
//! is known of it. Where that lacks private keys, it goes to the watch-only wallet, unless the wallet may not hold any. What
//! the wallet neither owns nor watches and could help to spend goes to the wallet of solvables.

use std::collections::{BTreeSet, HashSet};

use bitcoin::{Network, Script, ScriptBuf};
use heed::RoTxn;
use outrigger_descriptor::{Checksum, Descriptor};
use outrigger_service::wallet::{AddressType, Ownership};
use outrigger_service::wire::{Secret, from_bytes};
use outrigger_standard::{ScriptKind, classify, descriptor};
use outrigger_values::params::encode_hex;
use zeroize::Zeroizing;

use crate::descriptors::parse_stored;
use crate::encrypt::EncryptionKey;
use crate::error::{Result, WalletError};
use crate::keypool::{private_key_at, private_key_of};
use crate::legacy::{self, Knowledge, p2pk, p2sh, witness_script_id};
use crate::ownership::p2pkh;
use crate::store::Tables;
use crate::store::rows::{KeyRow, KnownScriptRow, ScriptRow};
use crate::store::tables::{hash160, number_from, script_key};

/// The types of a legacy wallet's addresses, in the order in which its active descriptors are asked for their master key.
const KINDS: [AddressType; 3] = [AddressType::Legacy, AddressType::P2shSegwit, AddressType::Bech32];

/// A descriptor without a wildcard.
pub struct Planned {
    /// It, with its private keys.
    pub descriptor: Descriptor,
    /// When it was born, in seconds; 0 where that is not known.
    pub timestamp: u64,
}

/// Descriptors, and the scripts that they expand to.
#[derive(Default)]
pub struct Group {
    /// They.
    pub descriptors: Vec<Planned>,
    /// Their scripts.
    pub scripts: HashSet<ScriptBuf>,
}

impl Group {
    fn add(&mut self, descriptor: Descriptor, timestamp: u64) {
        let expansion = descriptor.expand(0).map(|expansion| expansion.scripts).unwrap_or_default();
        self.scripts.extend(expansion.into_iter().map(|script| script.script_pubkey));
        self.descriptors.push(Planned { descriptor, timestamp });
    }
}

/// What becomes of a legacy wallet's imports.
pub struct Plan {
    /// What stays in the wallet itself.
    pub main: Group,
    /// What it only watches.
    pub watched: Group,
    /// What it could help to spend, and does not watch.
    pub solvable: Group,
    /// The master key of its addresses, as text; none where it has none.
    pub master: Option<Secret>,
    /// Whether it has no keys and scripts at all.
    pub empty: bool,
}

/// Reads what there is to plan.
pub struct Planner<'a> {
    pub t: &'a Tables,
    pub txn: &'a RoTxn<'a>,
    pub network: Network,
    /// What opens the private entries; none for a wallet without private keys that is encrypted, which there is not.
    pub encryption_key: &'a EncryptionKey,
    /// Whether the wallet may hold private keys.
    pub private_keys_enabled: bool,
}

impl Planner<'_> {
    /// Plans the migration.
    pub fn plan(&self) -> Result<Plan> {
        let mut plan = Plan {
            main: self.combos()?,
            watched: Group::default(),
            solvable: Group::default(),
            master: self.master()?,
            empty: self.is_empty()?,
        };
        for entry in self.t.scripts.iter(self.txn)? {
            let row: ScriptRow = from_bytes(entry?.1).map_err(WalletError::Damaged)?;
            if row.imported == Ownership::None || plan.main.scripts.contains(&row.script) {
                continue;
            }
            let (descriptor, timestamp) = self.descriptor_of(&row.script)?;
            let complete = descriptor.is_solvable() && descriptor.has_all_private_keys();
            // Where private keys are disabled, what is watched is all that the wallet has.
            if complete || !self.private_keys_enabled {
                plan.main.add(descriptor, timestamp);
            } else {
                plan.watched.add(descriptor, timestamp);
            }
        }
        for script in self.candidates()? {
            let row = self.t.script(self.txn, &script)?;
            if row.is_none_or(|row| row.ownership() == Ownership::None) && self.can_provide(&script)? {
                let (descriptor, timestamp) = self.descriptor_of(&script)?;
                if descriptor.is_solvable() {
                    plan.solvable.add(descriptor, timestamp);
                }
            }
        }
        Ok(plan)
    }

    fn is_empty(&self) -> Result<bool> {
        let t = self.t;
        let tables = [t.descriptors, t.imported_keys, t.imported_scripts, t.imported_watch];
        tables.iter().try_fold(true, |empty, table| Ok(empty && table.is_empty(self.txn)?))
    }

    /// The private keys, each as all the scripts that pay to it alone.
    fn combos(&self) -> Result<Group> {
        let mut group = Group::default();
        for entry in self.t.imported_keys.iter(self.txn)? {
            let row: KeyRow = from_bytes(entry?.1).map_err(WalletError::Damaged)?;
            let hash = hash160(&row.public_key);
            let Some(wif) = self.wif(&hash)?.filter(|_| row.private) else { continue };
            let origin = match &row.origin {
                Some(origin) => {
                    let path = origin.path.strip_prefix('m').unwrap_or(&origin.path);
                    format!("{}{path}", encode_hex(&origin.fingerprint))
                }
                // A key of unknown origin is its own master.
                None => encode_hex(hash.get(..4).unwrap_or_default()),
            };
            let text = Secret::new(format!("combo([{origin}]{})", wif.expose()));
            let descriptor = parse_stored(0, text.expose(), self.network)?;
            group.scripts.extend([p2pk(&row.public_key), p2pkh(&hash)]);
            group.add(descriptor, row.timestamp);
        }
        Ok(group)
    }

    /// The private key of an imported public key with this hash, as WIF.
    fn wif(&self, hash: &[u8; 20]) -> Result<Option<Secret>> {
        let place = private_key_at(hash);
        let value = self.t.keys.get(self.txn, &place)?;
        value.map(|value| self.encryption_key.unwrap(&place, value)).transpose()
    }

    /// The extended private key behind the addresses that the wallet gives out.
    fn master(&self) -> Result<Option<Secret>> {
        for kind in KINDS {
            let Some(number) = self.t.active.get(self.txn, &[kind as u8, 0])? else { continue };
            // The last seed that was set counts, even if its turn has not come.
            let number = match self.t.successor(self.txn, kind as u8, false)? {
                Some(successor) => successor,
                None => number_from(number)?,
            };
            let place = private_key_of(number);
            let Some(value) = self.t.keys.get(self.txn, &place)? else { continue };
            let text = self.encryption_key.unwrap(&place, value)?;
            let mut keys = parse_stored(number, text.expose(), self.network)?.extended_keys().into_iter();
            return Ok(keys.find_map(|(_, private)| private));
        }
        Ok(None)
    }

    /// The descriptor that is known of a script, with all private keys that are held, and when it was born.
    fn descriptor_of(&self, script: &Script) -> Result<(Descriptor, u64)> {
        let knowledge = legacy::knowledge(self.t, self.txn, script)?;
        let known = if knowledge.complete { self.solvable(script, &knowledge)? } else { None };
        let descriptor = match known {
            Some(known) => known,
            None => parse_stored(0, &descriptor::infer(script, self.network), self.network)?,
        };
        let watched = self.t.imported_watch.get(self.txn, &script_key(script))?;
        let watched = watched.and_then(|time| time.try_into().ok()).map(u64::from_le_bytes);
        Ok((descriptor, watched.unwrap_or(knowledge.timestamp)))
    }

    /// The descriptor of a script that lacks nothing but keys; none where the text that is known of it is none of descriptors.
    fn solvable(&self, script: &Script, knowledge: &Knowledge) -> Result<Option<Descriptor>> {
        let mut text = Zeroizing::new(knowledge.descriptor.clone());
        for public_key in &knowledge.solving.public_keys {
            if let Some(wif) = self.wif(&hash160(public_key))? {
                // A public key in hexadecimal stands for nothing but itself.
                *text = text.replace(&encode_hex(public_key), wif.expose());
            }
        }
        let Ok(parsed) = Descriptor::parse(&text, self.network, Checksum::Optional) else { return Ok(None) };
        let means = |descriptor: &Descriptor| {
            descriptor.expand(0).is_ok_and(|expansion| expansion.scripts.iter().any(|one| one.script_pubkey == *script))
        };
        Ok(parsed.into_iter().next().filter(means))
    }

    /// The P2SH and P2WSH scripts of what the wallet knows by its hash.
    fn candidates(&self) -> Result<BTreeSet<ScriptBuf>> {
        let mut known = Vec::new();
        for entry in self.t.imported_scripts.iter(self.txn)? {
            known.push(from_bytes::<KnownScriptRow>(entry?.1).map_err(WalletError::Damaged)?.script);
        }
        let mut candidates = BTreeSet::new();
        for script in known {
            let program = script.to_p2wsh();
            let wrapped = p2sh(&hash160(program.as_bytes()));
            candidates.extend([p2sh(&hash160(script.as_bytes())), program, wrapped, script]);
        }
        candidates.retain(|script| script.is_p2sh() || script.is_p2wsh());
        Ok(candidates)
    }

    /// Whether the wallet has something to say of a P2SH or P2WSH script that it does not own: it knows what is hashed there,
    /// and for a witness program which it does not know as a script, it holds a key, too.
    fn can_provide(&self, script: &Script) -> Result<bool> {
        match classify(script) {
            ScriptKind::ScriptHash { hash } => Ok(self.t.imported_script(self.txn, hash)?.is_some()),
            ScriptKind::WitnessV0ScriptHash { hash } => {
                let Some(inner) = self.t.imported_script(self.txn, &witness_script_id(hash))? else { return Ok(false) };
                if self.t.imported_script(self.txn, &hash160(script.as_bytes()))?.is_some() {
                    return Ok(true);
                }
                let knowledge = legacy::knowledge(self.t, self.txn, &inner.script)?;
                for public_key in &knowledge.solving.public_keys {
                    if self.t.imported_key(self.txn, &hash160(public_key))?.is_some_and(|key| key.private) {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            _ => Ok(false),
        }
    }
}

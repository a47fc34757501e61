//! A wallet's policies, and the keys by which copies of it are found.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bitcoin::hashes::{Hash, sha256};
use bitcoin::hex::DisplayHex;
use bitcoin::key::TweakedPublicKey;
use bitcoin::secp256k1::{PublicKey, XOnlyPublicKey};
use bitcoin::{PrivateKey, ScriptBuf};
use outrigger_descriptor::Descriptor;
use outrigger_memory::wipe_stack;
use outrigger_service::Result as ServiceResult;
use outrigger_service::wire::{Blob, from_bytes};

use super::descriptors::{SECP, parse_stored};
use super::encrypt::EncryptionKey;
use super::error::Result;
use super::guards::{Claim, Guarded, KeyId, Keys, Policies};
use super::imported::scripts_of_key;
use super::keypool::private_key_at;
use super::live::Wallet;
use super::store::{DescriptorRow, KeyRow, Reading, hash160};
use super::write::Write;

/// How many indexes of a descriptor an imported single key is compared with, if only the descriptor's expansion tells
/// its keys. 1,000 take some 0.1 s, during which the importing wallet cannot be written.
const MAX_COMPARED: u32 = 10_000;

impl Wallet {
    /// The wallet's policies. Another wallet with the same key may have got policies since the last call.
    ///
    /// # Errors
    /// The list of keys cannot be stored, or the wallet cannot be read.
    pub fn policies(&self) -> Result<Policies> {
        let Guarded { policies, version, .. } = self.guarded.lock().clone();
        let guards = &self.shared.guards;
        if version == guards.version.load(Ordering::SeqCst) || (policies.is_empty() && guards.is_idle()) {
            return Ok(policies);
        }
        self.settle_policies(&*self.store.read()?, false)
    }

    /// Whether it has policies, or may have got some since [`Self::policies`] was last called. Reads nothing from disk.
    pub(super) fn may_be_guarded(&self) -> bool {
        let guards = &self.shared.guards;
        let guarded = self.guarded.lock();
        let is_current = guarded.version == guards.version.load(Ordering::SeqCst);
        !guarded.policies.is_empty() || !(is_current || guards.is_idle())
    }

    /// Finds the policies for the wallet's keys. A wallet that does not load only gets more of them.
    fn settle_policies(&self, txn: &Reading<'_>, loads: bool) -> Result<Policies> {
        let guards = &self.shared.guards;
        loop {
            let version = guards.version.load(Ordering::SeqCst);
            let before = self.guarded.lock().clone();
            let mut keys = self.guarded_keys(txn)?;
            if before.on_trial {
                keys.values_mut().for_each(|claim| *claim = Claim::Public);
            }
            let policies = guards.settle(&self.name, &before.policies, &keys, loads && !before.on_trial)?;
            let mut guarded = self.guarded.lock();
            // Meanwhile an unlock may have revealed more keys, or another call may have found more policies.
            if *guarded == before {
                *guarded = Guarded { policies: policies.clone(), version, ..before };
                drop(guarded);
                self.tell_of_new(&before.policies, &policies);
                return Ok(policies);
            }
        }
    }

    /// Logs which policies the wallet has got, and why.
    fn tell_of_new(&self, before: &[Arc<str>], now: &[Arc<str>]) {
        for policy in now.iter().filter(|policy| !before.contains(policy)) {
            let is_set = self.shared.guards.sets(&self.name, policy);
            let cause = match self.signer() {
                _ if is_set => "the configuration",
                Some(_) => "it has a key or the signer of a guarded wallet",
                None => "it holds a private key of a guarded wallet",
            };
            tracing::info!(wallet = self.name(), policy = &**policy, cause, "the wallet is guarded from now on");
        }
    }

    /// Finds a wallet's policies when it is loaded, and stores them.
    pub(super) fn begin_guarding(&self) -> Result<()> {
        let before = self.guarded.lock().policies.clone();
        let txn = self.store.read()?;
        let now = if self.may_be_guarded() { self.settle_policies(&txn, true)? } else { Policies::default() };
        let states = self.store.tables.meta.prefix_iter(&txn, POLICY_STATE)?;
        let mut states = states.map(|row| Ok(row?.0.to_vec())).collect::<Result<Vec<_>>>()?;
        drop(txn);
        // The wallet keeps no states of policies that do not guard it.
        states.retain(|key| now.iter().all(|policy| state_key(policy) != *key));
        if (before == now && states.is_empty()) || self.read_only().is_some() {
            return Ok(());
        }
        for removed in before.iter().filter(|name| !now.contains(name)) {
            tracing::warn!(wallet = self.name(), policy = &**removed, "the configuration removes a policy");
            (self.shared.settings.policy_removed)(self.name(), removed);
        }
        self.write(|write| {
            write.meta.policies = now.iter().map(ToString::to_string).collect();
            states.iter().try_for_each(|key| write.delete(write.t.meta, key).map(drop))
        })
    }

    /// Ends the trial of a restored wallet: from now on, its keys are listed.
    pub(super) fn end_trial(&self) -> Result<()> {
        let mut guarded = self.guarded.lock();
        (guarded.on_trial, guarded.version) = (false, 0);
        drop(guarded);
        self.begin_guarding()
    }

    /// The keys with which the wallet, or its signer plugin, signs, and the keys above them from which the wallet derives these.
    fn guarded_keys(&self, txn: &Reading<'_>) -> Result<Keys> {
        let (t, is_provided) = (&self.store.tables, self.signer().is_some());
        let encryption_key = self.encryption_key().ok();
        let mut found = Vec::new();
        for (number, row) in t.all_descriptors(txn)? {
            if row.has_private || is_provided {
                // A write that replaces the encryption key cannot decrypt with the former one.
                let private = encryption_key.as_ref().map(|key| self.private_descriptor(txn, number, key));
                found.extend(self.keys_of(number, &row, private.and_then(Result::ok).flatten(), is_provided)?);
            }
        }
        for entry in t.imported_keys.iter(txn)? {
            let row: KeyRow = from_bytes(entry?.1)?;
            if let Some(key) = single(&row.public_key).filter(|_| row.private) {
                let is_proven = match &encryption_key {
                    Some(encryption_key) => self.has_imported(txn, &row.public_key, encryption_key)?,
                    None => false,
                };
                found.push((key, if is_proven { Claim::Proven } else { Claim::Stated }));
            }
        }
        wipe_stack();
        let mut keys = Keys::new();
        for (key, claim) in found {
            let known = keys.entry(key).or_insert(Claim::Public);
            *known = if is_provided { Claim::Public } else { claim.max(*known) };
        }
        // The signer counts, too: it finds its keys by their origins, and any wallet may name those.
        keys.extend(self.signer().map(|signer| (format!("signer {signer}"), Claim::Stated)));
        Ok(keys)
    }

    /// Whether the wallet's entry for an imported key has its private key.
    fn has_imported(&self, txn: &Reading<'_>, public_key: &[u8], encryption_key: &EncryptionKey) -> Result<bool> {
        let place = private_key_at(&hash160(public_key));
        let Some(value) = self.store.tables.keys.get(txn, &place)? else { return Ok(false) };
        let wif = encryption_key.unwrap(&place, value).ok();
        let private = wif.and_then(|wif| PrivateKey::from_wif(wif.expose()).ok());
        Ok(private.is_some_and(|private| private.public_key(&SECP).to_bytes() == public_key))
    }

    /// The keys of a descriptor that are the wallet's own. Only its private text tells the keys between hardened steps, and only that
    /// text proves a key: the row has the rest from the file.
    fn keys_of(
        &self,
        number: u32,
        row: &DescriptorRow,
        private: Option<Descriptor>,
        is_provided: bool,
    ) -> Result<Vec<(KeyId, Claim)>> {
        let (network, is_locked) = (self.shared.network, private.is_none());
        let written = private.map_or_else(|| parse_stored(number, &row.identity, network), Ok)?;
        let normalised = parse_stored(number, &row.public, network)?;
        let extended_keys = written.extended_keys();
        let paths = written.path_keys().into_iter().zip(normalised.path_keys());
        let own = extended_keys.iter().zip(paths).filter(|((xpub, _), _)| is_provided || row.holds(&xpub.to_string()));
        let claim = |is_private: bool| if is_private { Claim::Proven } else { Claim::Stated };
        let mut keys = Vec::new();
        for ((_, private), (above, below)) in own {
            keys.extend(above.into_iter().map(|key| (extended(key), claim(private.is_some()))));
            keys.extend(below.into_iter().map(|key| (extended(key), Claim::Stated)));
        }
        // The public text does not tell which of several single keys are private, so all of them count.
        let is_own = |is_private| is_private || (is_locked && extended_keys.is_empty());
        let singles = written.single_keys().into_iter().filter(|(_, is_private)| is_own(*is_private));
        keys.extend(singles.filter_map(|(key, is_private)| Some((single(&key.to_bytes())?, claim(is_private)))));
        Ok(keys)
    }

    /// Whether a descriptor with private keys derives one of these public keys, also one of a co-signer.
    fn derives_any(&self, public_keys: &[PublicKey]) -> Result<bool> {
        let (txn, t) = (self.store.read()?, &self.store.tables);
        for script in public_keys.iter().flat_map(scripts_of) {
            for (number, _) in t.script(&txn, &script)?.map(|row| row.owners).unwrap_or_default() {
                if t.descriptor(&txn, number)?.is_some_and(|row| row.has_private) {
                    return Ok(true);
                }
            }
        }
        let wanted: BTreeSet<XOnlyPublicKey> = public_keys.iter().map(|key| key.x_only_public_key().0).collect();
        for (number, row) in t.all_descriptors(&txn)?.into_iter().filter(|(_, row)| row.has_private) {
            let parsed = self.descriptors.get(number, &row.public)?;
            let end = row.range_end.min(row.derived_begin.saturating_add(MAX_COMPARED));
            for index in row.derived_begin..end {
                let expanded = parsed.expand(index).ok();
                let expanded =
                    expanded.map_or_else(|| self.expand_derived(&txn, (number, index)), |one| Ok(Some(one)))?;
                let scripts = expanded.map(|one| one.scripts).unwrap_or_default();
                let origins = scripts.iter().flat_map(|script| &script.origins);
                let keys: Vec<PublicKey> =
                    origins.filter_map(|one| PublicKey::from_slice(&one.public_key).ok()).collect();
                if keys.iter().any(|key| wanted.contains(&key.x_only_public_key().0)) {
                    return Ok(true);
                }
                // The table of scripts told of such a descriptor.
                let is_found = |script: &ScriptBuf| keys.iter().any(|key| scripts_of(key).contains(script));
                if !keys.is_empty() && scripts.iter().all(|one| is_found(&one.script_pubkey)) {
                    break;
                }
            }
        }
        Ok(false)
    }
}

/// The scripts for which the key alone signs, as descriptors derive them.
fn scripts_of(key: &PublicKey) -> Vec<ScriptBuf> {
    let x_only = key.x_only_public_key().0;
    let tweaked = TweakedPublicKey::dangerous_assume_tweaked(x_only);
    let taproot = [ScriptBuf::new_p2tr(&SECP, x_only, None), ScriptBuf::new_p2tr_tweaked(tweaked)];
    [scripts_of_key(&key.serialize()), taproot.into()].concat()
}

fn extended((public_key, chain_code): (PublicKey, [u8; 32])) -> KeyId {
    sha256::Hash::hash(&[&public_key.serialize()[..], &chain_code].concat()).to_string()
}

fn single(public_key: &[u8]) -> Option<KeyId> {
    let x = if public_key.len() == 32 { Some(public_key) } else { public_key.get(1..33) };
    x.map(|x| x.to_lower_hex_string())
}

impl Wallet {
    /// A policy's state from the wallet's backup, until the policy has restored it.
    pub fn pending_policy_state(&self, policy: &str) -> Result<Option<Blob>> {
        let txn = self.store.read()?;
        let state = self.store.tables.meta.get(&txn, &state_key(policy))?;
        Ok(state.map(|state| Blob(state.to_vec())))
    }

    pub fn policy_restored(&self, policy: &str) -> ServiceResult<()> {
        // Works in a read-only wallet, too, as backups do.
        let key = state_key(policy);
        Ok(self.write_in(&self.lock_writes(), |write| write.delete(write.t.meta, &key).map(drop))?)
    }
}

/// The prefix of the keys of policies' states in the table `meta`.
pub const POLICY_STATE: &[u8] = b"policy ";

/// The key of a policy's state in the table `meta`.
pub fn state_key(policy: &str) -> Vec<u8> {
    [POLICY_STATE, policy.as_bytes()].concat()
}

impl Write<'_> {
    /// Called before the commit of a write that added keys, so the wallet gets their policies before it can sign with them.
    pub(super) fn guard_keys(&mut self) -> Result<()> {
        let guards = &self.wallet.shared.guards;
        if guards.is_idle() && self.meta.policies.is_empty() {
            return Ok(());
        }
        // The keys that guarded wallets derive for their addresses are not listed.
        let others = if self.new_keys.is_empty() { Vec::new() } else { self.wallet.shared.follower.loaded() };
        for other in others {
            let of_other = other.guarded.lock().policies.clone();
            if other.slot != self.wallet.slot && !of_other.is_empty() && other.derives_any(&self.new_keys)? {
                let mut guarded = self.wallet.guarded.lock();
                guarded.policies = guarded.policies.iter().chain(&*of_other).cloned().collect();
            }
        }
        let policies = self.wallet.settle_policies(self.reads(), false)?;
        self.meta.policies = policies.iter().map(ToString::to_string).collect();
        Ok(())
    }
}

//! A wallet's policies, and the keys by which copies of it are found.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use bitcoin::bip32::Xpub;
use bitcoin::hashes::{Hash, sha256};
use bitcoin::hex::DisplayHex;
use outrigger_service::Result as ServiceResult;
use outrigger_service::wire::{Blob, from_bytes};

use super::descriptors::{bad_descriptor, parse_stored};
use super::error::{Result, WalletError};
use super::guards::{KeyId, Policies};
use super::live::Wallet;
use super::store::Reading;
use super::store::rows::{DescriptorRow, KeyRow};
use super::write::Write;

impl Wallet {
    /// The wallet's policies. Another wallet with the same key may have got policies since the last call.
    ///
    /// # Errors
    /// The list of keys cannot be stored, or the wallet cannot be read.
    pub fn policies(&self) -> Result<Policies> {
        let guards = &self.shared.guards;
        let version = guards.version.load(Ordering::SeqCst);
        let known = self.guarded.lock().policies.clone();
        if self.guarded.lock().version == version || (known.is_empty() && guards.is_idle()) {
            return Ok(known);
        }
        let txn = self.store.read()?;
        let keys = self.guarded_keys(&txn)?;
        self.settle_policies(&keys, version)
    }

    /// Whether it has policies, or may have got some since [`Self::policies`] was last called. Reads nothing from disk.
    pub(super) fn may_be_guarded(&self) -> bool {
        let guards = &self.shared.guards;
        let guarded = self.guarded.lock();
        let is_current = guarded.version == guards.version.load(Ordering::SeqCst);
        !guarded.policies.is_empty() || !(is_current || guards.is_idle())
    }

    /// Finds the policies for these private keys. At run time, policies are only added.
    fn settle_policies(&self, keys: &BTreeSet<KeyId>, version: u64) -> Result<Policies> {
        let mut guarded = self.guarded.lock();
        guarded.policies = self.shared.guards.settle(&self.name, &guarded.policies, keys)?;
        guarded.version = version;
        Ok(guarded.policies.clone())
    }

    /// Finds a wallet's policies when it is loaded, and stores them.
    pub(super) fn begin_guarding(&self) -> Result<()> {
        let txn = self.store.read()?;
        for entry in self.store.tables.meta.prefix_iter(&txn, POLICY_STATE)? {
            let (key, state) = entry?;
            let policy = String::from_utf8_lossy(key.get(POLICY_STATE.len()..).unwrap_or_default()).into_owned();
            self.guarded.lock().pending.insert(policy, state.to_vec());
        }
        drop(txn);
        let before = self.guarded.lock().policies.clone();
        let now = self.policies()?;
        if before == now || self.read_only().is_some() {
            return Ok(());
        }
        for removed in before.iter().filter(|name| !now.contains(name)) {
            tracing::warn!(wallet = self.name(), policy = &**removed, "the configuration removes a policy");
        }
        self.write(|write| {
            write.meta.policies = now.iter().map(ToString::to_string).collect();
            Ok(())
        })
    }

    /// The keys with which the wallet, or its signer plugin, signs.
    fn guarded_keys(&self, txn: &Reading<'_>) -> Result<BTreeSet<KeyId>> {
        let (t, is_provided) = (&self.store.tables, self.signer().is_some());
        // The signer counts, too: it finds its keys by their origins, and any wallet may name those.
        let mut keys: BTreeSet<KeyId> = self.signer().map(|signer| format!("signer {signer}")).into_iter().collect();
        for (number, row) in t.all_descriptors(txn)? {
            if row.has_private || is_provided {
                keys.extend(self.keys_of(number, &row, is_provided)?);
            }
        }
        for entry in t.imported_keys.iter(txn)? {
            let row: KeyRow = from_bytes(entry?.1).map_err(WalletError::Damaged)?;
            keys.extend(single(&row.public_key).filter(|_| row.private));
        }
        Ok(keys)
    }

    /// The keys of a descriptor that are the wallet's own.
    fn keys_of(&self, number: u32, row: &DescriptorRow, is_provided: bool) -> Result<Vec<KeyId>> {
        let parsed = parse_stored(number, &row.identity, self.shared.network)?;
        let all = parsed.extended_keys();
        if all.is_empty() {
            // A descriptor of single keys. All of them count, including those of co-signers.
            let expansion = parsed.expand(0).map_err(|error| bad_descriptor(number, &error))?;
            let origins = expansion.scripts.iter().flat_map(|script| &script.origins);
            return Ok(origins.filter_map(|origin| single(&origin.public_key)).collect());
        }
        let is_own = |(xpub, _): &(Xpub, _)| is_provided || row.holds(&xpub.to_string());
        let mut keys: Vec<KeyId> = all.iter().filter(|key| is_own(key)).map(|(xpub, _)| extended(xpub)).collect();
        if keys.len() == all.len() {
            // If all are its own, so are the keys below their hardened steps.
            let normalised = parse_stored(number, &row.public, self.shared.network)?;
            keys.extend(normalised.extended_keys().iter().map(|(xpub, _)| extended(xpub)));
        }
        Ok(keys)
    }
}

fn extended(xpub: &Xpub) -> KeyId {
    let bytes = [&xpub.public_key.serialize()[..], &xpub.chain_code.to_bytes()[..]].concat();
    sha256::Hash::hash(&bytes).to_string()
}

fn single(public_key: &[u8]) -> Option<KeyId> {
    let x = if public_key.len() == 32 { Some(public_key) } else { public_key.get(1..33) };
    x.map(|x| x.to_lower_hex_string())
}

impl Wallet {
    /// A policy's state from the wallet's backup, until the policy has restored it.
    pub fn pending_policy_state(&self, policy: &str) -> Option<Blob> {
        self.guarded.lock().pending.get(policy).cloned().map(Blob)
    }

    /// Records that a policy has restored its state.
    pub fn policy_restored(&self, policy: &str) -> ServiceResult<()> {
        self.set_policy_state(policy, None)?;
        self.guarded.lock().pending.remove(policy);
        Ok(())
    }

    /// Sets the state of a policy that the wallet's next backup includes. `None`: no state.
    pub fn set_policy_state(&self, policy: &str, state: Option<Blob>) -> ServiceResult<()> {
        let key = state_key(policy);
        // Works in a read-only wallet, too, as backups do.
        Ok(self.write_in(&self.lock_writes(), |write| match state {
            Some(state) => write.put(write.t.meta, &key, &state),
            None => write.delete(write.t.meta, &key).map(drop),
        })?)
    }
}

/// The prefix of the keys of policies' states in the table `meta`.
pub const POLICY_STATE: &[u8] = b"policy ";

/// The key of a policy's state in the table `meta`.
fn state_key(policy: &str) -> Vec<u8> {
    [POLICY_STATE, policy.as_bytes()].concat()
}

impl Write<'_> {
    /// Called before the commit of a write that added keys, so the wallet gets their policies before it can sign with them.
    pub(super) fn guard_keys(&mut self) -> Result<()> {
        let guards = &self.wallet.shared.guards;
        if guards.is_idle() && self.meta.policies.is_empty() {
            return Ok(());
        }
        let version = guards.version.load(Ordering::SeqCst);
        let keys = self.wallet.guarded_keys(self.reads())?;
        let policies = self.wallet.settle_policies(&keys, version)?;
        self.meta.policies = policies.iter().map(ToString::to_string).collect();
        Ok(())
    }
}

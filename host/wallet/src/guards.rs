//! The policies of wallets (`policy/1`). The setting `wallet.policies` gives a wallet its policies, and the wallet's file keeps them.
//!
//! A wallet with a private key of a guarded wallet gets the same policies, whatever its name. A file beside the wallets lists the keys
//! of guarded wallets, so that this holds for copies that are created, imported or restored while the other is not loaded.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bitcoin::bip32::Xpub;
use bitcoin::hashes::{Hash, sha256};
use bitcoin::hex::DisplayHex;
use outrigger_service::Result as ServiceResult;
use outrigger_service::wire::{Blob, from_bytes};
use parking_lot::Mutex;
use serde::Deserialize;

use super::descriptors::{bad_descriptor, parse_stored};
use super::error::{Result, WalletError};
use super::files;
use super::live::Wallet;
use super::store::Reading;
use super::store::rows::{DescriptorRow, KeyRow};
use super::store::tables::number_from_key;
use super::write::Write;

/// The ids of the plugins that judge for a wallet, in the order in which they are asked.
pub type Policies = Arc<[Arc<str>]>;

/// What the keys of policies' states in the table `meta` begin with.
pub const POLICY_STATE: &[u8] = b"policy ";

/// Identifies a key: the hash of an extended public key and its chain code, or the x coordinate of a single key.
type KeyId = String;

/// A setting `[[wallet.policies]]`.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyRule {
    /// The names of wallets. One that ends with `*` means all names that begin so.
    pub wallets: Vec<String>,
    /// The id of the plugin.
    pub plugin: String,
    /// Takes the policy away from these wallets.
    #[serde(default)]
    pub remove: bool,
}

impl PolicyRule {
    fn concerns(&self, wallet: &str) -> bool {
        let is_named =
            |name: &String| name.strip_suffix('*').map_or(name == wallet, |beginning| wallet.starts_with(beginning));
        self.wallets.iter().any(is_named)
    }
}

/// The rules of the configuration, and the keys of guarded wallets.
pub struct Guards {
    dir: PathBuf,
    rules: Vec<PolicyRule>,
    /// The policies of each key.
    keys: Mutex<BTreeMap<KeyId, BTreeSet<String>>>,
    /// Grows with the list of keys.
    version: AtomicU64,
}

impl Guards {
    pub fn open(dir: &Path, rules: Vec<PolicyRule>) -> Result<Self> {
        let keys = files::guarded_keys(dir)?;
        Ok(Self { dir: dir.to_owned(), rules, keys: Mutex::new(keys), version: AtomicU64::new(1) })
    }

    /// Whether no wallet can be guarded.
    fn is_idle(&self) -> bool {
        self.rules.is_empty() && self.keys.lock().is_empty()
    }

    /// The policies of a wallet that had some `before` and has these private keys. Lists the keys of a guarded wallet.
    fn settle(&self, wallet: &str, before: &[Arc<str>], own: &BTreeSet<KeyId>) -> Result<Policies> {
        let mut keys = self.keys.lock();
        let of_rules =
            |remove: bool| self.rules.iter().filter(move |rule| rule.remove == remove && rule.concerns(wallet));
        let removed: BTreeSet<&str> = of_rules(true).map(|rule| rule.plugin.as_str()).collect();
        let mut names: BTreeSet<String> = before.iter().map(ToString::to_string).collect();
        names.extend(of_rules(false).map(|rule| rule.plugin.clone()));
        names.extend(own.iter().filter_map(|key| keys.get(key)).flatten().cloned());
        names.retain(|name| !removed.contains(name.as_str()));
        let mut changed = keys.clone();
        for key in own {
            let of_key = changed.entry(key.clone()).or_default();
            of_key.retain(|name| !removed.contains(name.as_str()));
            of_key.extend(names.iter().cloned());
        }
        changed.retain(|_, of_key| !of_key.is_empty());
        if changed != *keys {
            files::store_guarded_keys(&self.dir, &changed)?;
            *keys = changed;
            self.version.fetch_add(1, Ordering::SeqCst);
        }
        // In the order of the configuration.
        let place = |name: &String| self.rules.iter().position(|rule| rule.plugin == *name).unwrap_or(usize::MAX);
        let mut names: Vec<String> = names.into_iter().collect();
        names.sort_by_key(place);
        Ok(names.into_iter().map(Arc::from).collect())
    }
}

/// A wallet's policies, and the version of the list of keys for which they were found.
#[derive(Default)]
pub struct Guarded {
    policies: Policies,
    version: u64,
}

impl Guarded {
    /// The stored policies.
    pub fn stored(names: &[String]) -> Self {
        Self { policies: names.iter().map(|name| Arc::from(name.as_str())).collect(), version: 0 }
    }
}

impl Wallet {
    /// The plugins that judge for the wallet. Another wallet with the same key may have got policies since the last time.
    ///
    /// # Errors
    /// The list of keys cannot be stored, or the wallet not be read.
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

    /// Finds the policies for these private keys. At run time policies are only added.
    fn settle_policies(&self, keys: &BTreeSet<KeyId>, version: u64) -> Result<Policies> {
        let mut guarded = self.guarded.lock();
        guarded.policies = self.shared.guards.settle(&self.name, &guarded.policies, keys)?;
        guarded.version = version;
        Ok(guarded.policies.clone())
    }

    /// Gives a wallet that is loaded its policies, and stores them.
    pub(super) fn begin_guarding(&self) -> Result<()> {
        let before = self.guarded.lock().policies.clone();
        let now = self.policies()?;
        if before == now || self.read_only().is_some() {
            return Ok(());
        }
        for removed in before.iter().filter(|name| !now.contains(name)) {
            tracing::warn!(wallet = self.name(), policy = &**removed, "the configuration takes a policy away");
        }
        self.write(|write| {
            write.meta.policies = now.iter().map(ToString::to_string).collect();
            Ok(())
        })
    }

    /// The keys with which the wallet, or the plugin that has its keys, signs.
    fn guarded_keys(&self, txn: &Reading<'_>) -> Result<BTreeSet<KeyId>> {
        let (t, is_provided) = (&self.store.tables, self.signer().is_some());
        let mut keys = BTreeSet::new();
        for entry in t.descriptors.iter(txn)? {
            let (number, row) = entry?;
            let row: DescriptorRow = from_bytes(row).map_err(WalletError::Damaged)?;
            if row.has_private || is_provided {
                keys.extend(self.keys_of(number_from_key(number)?, &row, is_provided)?);
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
            // A descriptor of single keys. Those of co-signers count as well.
            let expansion = parsed.expand(0).map_err(|error| bad_descriptor(number, &error))?;
            let origins = expansion.scripts.iter().flat_map(|script| &script.origins);
            return Ok(origins.filter_map(|origin| single(&origin.public_key)).collect());
        }
        let is_own = |(xpub, _): &(Xpub, _)| is_provided || row.holds(&xpub.to_string());
        let mut keys: Vec<KeyId> = all.iter().filter(|key| is_own(key)).map(|(xpub, _)| extended(xpub)).collect();
        if keys.len() == all.len() {
            // So are the keys behind their hardened steps.
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
    /// What a policy keeps about the wallet, as the wallet's backup has it.
    pub fn policy_state(&self, policy: &str) -> ServiceResult<Option<Blob>> {
        let txn = self.store.read().map_err(WalletError::from)?;
        let state = self.store.tables.meta.get(&txn, &state_key(policy)).map_err(WalletError::from)?;
        Ok(state.map(|state| Blob(state.to_vec())))
    }

    pub fn set_policy_state(&self, policy: &str, state: Option<Blob>) -> ServiceResult<()> {
        if self.policy_state(policy)? == state {
            return Ok(());
        }
        let key = state_key(policy);
        // Works in a read-only wallet, too, as backups do.
        Ok(self.write_in(&self.lock_writes(), |write| match state {
            Some(state) => write.put(write.t.meta, &key, &state),
            None => write.delete(write.t.meta, &key).map(drop),
        })?)
    }
}

/// The key of a policy's state in the table `meta`.
fn state_key(policy: &str) -> Vec<u8> {
    [POLICY_STATE, policy.as_bytes()].concat()
}

impl Write<'_> {
    /// Called before a write commits that added keys. The wallet has the policies of its keys before it can sign with them.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(wallets: &[&str], plugin: &str, remove: bool) -> PolicyRule {
        PolicyRule { wallets: wallets.iter().map(ToString::to_string).collect(), plugin: plugin.into(), remove }
    }

    fn names(policies: &Policies) -> Vec<&str> {
        policies.iter().map(|name| &**name).collect()
    }

    #[test]
    fn a_wallet_with_a_key_of_a_guarded_one_is_guarded_whatever_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let rules = vec![rule(&["hot*"], "second", false), rule(&["hot"], "first", false)];
        let guards = Guards::open(dir.path(), rules).unwrap();
        let [mine, other] = ["mine", "other"].map(|key| BTreeSet::from([key.to_owned()]));
        assert_eq!(names(&guards.settle("copy", &[], &mine).unwrap()), Vec::<&str>::new());
        assert_eq!(names(&guards.settle("hot", &[], &mine).unwrap()), ["second", "first"]);
        assert_eq!(names(&guards.settle("copy", &[], &mine).unwrap()), ["second", "first"]);
        assert_eq!(names(&guards.settle("copy", &[], &other).unwrap()), Vec::<&str>::new());
        assert_eq!(names(&guards.settle("hotter", &["kept".into()], &other).unwrap()), ["second", "kept"]);

        // Another start, whose configuration says nothing.
        let guards = Guards::open(dir.path(), Vec::new()).unwrap();
        assert_eq!(names(&guards.settle("copy", &[], &mine).unwrap()), ["first", "second"]);
        let guards = Guards::open(dir.path(), vec![rule(&["*"], "first", true)]).unwrap();
        assert_eq!(names(&guards.settle("copy", &["first".into()], &mine).unwrap()), ["second"]);
        let guards = Guards::open(dir.path(), Vec::new()).unwrap();
        assert_eq!(names(&guards.settle("copy", &[], &mine).unwrap()), ["second"]);
    }
}

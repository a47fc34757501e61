//! The policies of wallets (`policy/1`). The setting `wallet.policies` gives a wallet its policies, and the wallet's file keeps them.
//!
//! A wallet with a private key of a guarded wallet gets the same policies, whatever its name. A file beside the wallets lists the keys
//! of guarded wallets, so that this also holds for copies that are created, imported or restored while the guarded wallet is not loaded.
//! A wallet with a `signer` finds its policies by its public keys, too. It lists only the signer: a user who makes a wallet with another
//! user's public keys must not guard the other user's wallets.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::error::Result;
use super::files;
use super::settings::PolicyRule;

/// The ids of a wallet's policy plugins, in the order in which the host asks them.
pub type Policies = Arc<[Arc<str>]>;

/// Identifies a key: the hash of an extended public key and its chain code, or the x coordinate of a single key.
pub type KeyId = String;

/// How certain the host is that a wallet has the private key of a key. It decides which of the wallet's policies the host lists for
/// the key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Claim {
    /// The host knows only the public key, as anybody may. It lists no policy.
    Public,
    /// The wallet's file says that the wallet has the private key, or the key is the id of the wallet's signer. The host lists the
    /// policies that the configuration sets for the wallet.
    Stated,
    /// The host has decrypted the private key. It lists all policies of the wallet.
    Proven,
}

/// The keys by which a wallet's policies are found.
pub type Keys = BTreeMap<KeyId, Claim>;

/// The rules of the configuration, and the keys of guarded wallets.
pub struct Guards {
    dir: PathBuf,
    rules: Vec<PolicyRule>,
    keys: Mutex<BTreeMap<KeyId, BTreeSet<String>>>,
    /// Counts the changes of `keys`.
    pub version: AtomicU64,
}

impl Guards {
    pub fn open(dir: &Path, rules: Vec<PolicyRule>) -> Result<Self> {
        let keys = files::read(dir, files::GUARDED_FILE, "the list of the keys of guarded wallets")?;
        Ok(Self { dir: dir.to_owned(), rules, keys: Mutex::new(keys), version: AtomicU64::new(1) })
    }

    /// Whether no wallet can be guarded.
    pub fn is_idle(&self) -> bool {
        self.rules.is_empty() && self.keys.lock().is_empty()
    }

    /// Whether the configuration gives a wallet this policy.
    pub fn sets(&self, wallet: &str, policy: &str) -> bool {
        self.rules.iter().any(|rule| !rule.remove && rule.plugin == policy && rule.concerns(wallet))
    }

    /// The policies of a wallet that had the policies `before` and has the keys `own`. Lists a guarded wallet's keys, each as its
    /// [`Claim`] allows. Takes removed policies off them only if the wallet `loads`: another loaded wallet with the same key may list
    /// them again.
    pub fn settle(&self, wallet: &str, before: &[Arc<str>], own: &Keys, loads: bool) -> Result<Policies> {
        let mut keys = self.keys.lock();
        let of_rules =
            |remove: bool| self.rules.iter().filter(move |rule| rule.remove == remove && rule.concerns(wallet));
        let removed: BTreeSet<&str> = of_rules(true).map(|rule| rule.plugin.as_str()).collect();
        let mut set: BTreeSet<String> = of_rules(false).map(|rule| rule.plugin.clone()).collect();
        set.retain(|name| !removed.contains(name.as_str()));
        let mut names: BTreeSet<String> = before.iter().map(ToString::to_string).collect();
        names.extend(own.keys().filter_map(|key| keys.get(key)).flatten().cloned());
        names.retain(|name| !removed.contains(name.as_str()));
        names.extend(set.iter().cloned());
        let mut changed = keys.clone();
        for (key, claim) in own {
            let of_key = changed.entry(key.clone()).or_default();
            of_key.retain(|name| !loads || !removed.contains(name.as_str()));
            match claim {
                Claim::Public => (),
                Claim::Stated => of_key.extend(set.iter().cloned()),
                Claim::Proven => of_key.extend(names.iter().cloned()),
            }
        }
        changed.retain(|_, of_key| !of_key.is_empty());
        if changed != *keys {
            files::replace(&self.dir, files::GUARDED_FILE, &changed)?;
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
#[derive(Clone, Default, PartialEq)]
pub struct Guarded {
    pub policies: Policies,
    pub version: u64,
    /// Counts how often the wallet was unlocked.
    pub unlocks: u64,
    /// Whether the wallet's restore may still be refused. The list of keys then stays as it is.
    pub on_trial: bool,
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
        let [mine, other] = ["mine", "other"].map(|key| Keys::from([(key.to_owned(), Claim::Proven)]));
        assert_eq!(names(&guards.settle("copy", &[], &mine, true).unwrap()), Vec::<&str>::new());
        assert_eq!(names(&guards.settle("hot", &[], &mine, true).unwrap()), ["second", "first"]);
        assert_eq!(names(&guards.settle("copy", &[], &mine, true).unwrap()), ["second", "first"]);
        assert_eq!(names(&guards.settle("copy", &[], &other, true).unwrap()), Vec::<&str>::new());
        assert_eq!(names(&guards.settle("hotter", &["kept".into()], &other, true).unwrap()), ["second", "kept"]);

        // Another start, whose configuration says nothing.
        let guards = Guards::open(dir.path(), Vec::new()).unwrap();
        assert_eq!(names(&guards.settle("copy", &[], &mine, true).unwrap()), ["first", "second"]);
        let guards = Guards::open(dir.path(), vec![rule(&["*"], "first", true)]).unwrap();
        assert_eq!(names(&guards.settle("copy", &["first".into()], &mine, true).unwrap()), ["second"]);
        let guards = Guards::open(dir.path(), Vec::new()).unwrap();
        assert_eq!(names(&guards.settle("copy", &[], &mine, true).unwrap()), ["second"]);
    }

    #[test]
    fn two_wallets_with_a_key_do_not_change_its_policies_in_turn() {
        let dir = tempfile::tempdir().unwrap();
        let mine = Keys::from([("mine".to_owned(), Claim::Proven)]);
        let guards = Guards::open(dir.path(), vec![rule(&["hot"], "first", true)]).unwrap();
        for (wallet, before) in [("hot", vec!["first".into()]), ("copy", vec!["first".into()])] {
            guards.settle(wallet, &before, &mine, true).unwrap();
        }
        let version = guards.version.load(Ordering::SeqCst);
        assert_eq!(names(&guards.settle("hot", &[], &mine, false).unwrap()), Vec::<&str>::new());
        assert_eq!(names(&guards.settle("copy", &["first".into()], &mine, false).unwrap()), ["first"]);
        assert_eq!(guards.version.load(Ordering::SeqCst), version);
    }

    #[test]
    fn a_key_lists_only_what_its_claim_allows() {
        let dir = tempfile::tempdir().unwrap();
        let guards = Guards::open(dir.path(), vec![rule(&["hot"], "set", false)]).unwrap();
        let of = |claims: &[(&str, Claim)]| claims.iter().map(|(key, claim)| ((*key).to_owned(), *claim)).collect();
        let listed = |key: &str| -> Vec<String> {
            names(&guards.settle("", &[], &of(&[(key, Claim::Public)]), true).unwrap())
                .into_iter()
                .map(Into::into)
                .collect()
        };
        let own: Keys = of(&[("seen", Claim::Public), ("stated", Claim::Stated), ("proven", Claim::Proven)]);
        assert_eq!(names(&guards.settle("hot", &["kept".into()], &own, true).unwrap()), ["set", "kept"]);
        // The second time, the wallet finds `kept` by its proven key.
        for _ in 0..2 {
            assert_eq!(listed("seen"), Vec::<String>::new());
            assert_eq!(listed("stated"), ["set"]);
            assert_eq!(listed("proven"), ["set", "kept"]);
            guards.settle("hot", &["kept".into()], &own, true).unwrap();
        }
    }
}

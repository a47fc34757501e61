//! Which wallets get the policies of others.

use bitcoin::bip32::{DerivationPath, Xpriv};
use bitcoin::secp256k1::Secp256k1;
use outrigger_service::ErrorKind;
use outrigger_service::wire::Secret;
use outrigger_testing::made::wif;
use tempfile::TempDir;

use super::{Harness, IMPORTED, XPRV, descriptor, keys, kind_of, settings};
use crate::{PolicyRule, Settings};

/// A host with the signer plugin `hsm`, whose configuration gives the policy `judge` to the wallet `guarded`, if any.
fn host(guarded: Option<&str>) -> Harness {
    let mut harness = Harness::new();
    harness.restart_with(configured(guarded), |_| {});
    harness
}

fn configured(guarded: Option<&str>) -> Settings {
    let rule = |wallet: &str| PolicyRule { wallets: vec![wallet.into()], plugin: "judge".into(), remove: false };
    Settings { signer: Some("hsm".into()), policies: guarded.map(rule).into_iter().collect(), ..settings() }
}

impl Harness {
    /// Creates a wallet with the descriptor `wpkh(KEY/0/*)`.
    fn hold(&self, name: &str, passphrase: &str) {
        self.create(name, |options| (options.blank, options.passphrase) = (true, Secret::new(passphrase.into())));
        let wallet = self.manager.select(Some(name)).unwrap().wallet().clone();
        if !passphrase.is_empty() {
            wallet.unlock(Secret::new(passphrase.into()), 60).unwrap();
        }
        assert_eq!(wallet.import(vec![descriptor(&format!("wpkh({XPRV}/0/*)"), |_| {})]).unwrap(), [IMPORTED]);
    }

    /// Imports a single private key, into a new wallet if there is none with this name.
    fn import_key(&self, name: &str, wif: Secret) {
        if self.manager.select(Some(name)).is_err() {
            self.create(name, |options| options.blank = true);
        }
        let wallet = self.manager.select(Some(name)).unwrap().wallet().clone();
        wallet.import(vec![keys(|keys| keys.private_keys = vec![wif])]).unwrap();
    }

    /// Creates a wallet with the signer `hsm` and the public descriptors of another wallet, if any.
    fn provide(&self, name: &str, texts: &[String]) {
        self.create(name, |options| (options.disable_private_keys, options.external_signer) = (true, true));
        let wallet = self.manager.select(Some(name)).unwrap().wallet().clone();
        for text in texts {
            assert_eq!(wallet.import(vec![descriptor(text, |_| {})]).unwrap(), [IMPORTED]);
        }
    }

    fn public_texts(&self, name: &str) -> Vec<String> {
        let descriptors = self.manager.select(Some(name)).unwrap().descriptors(false).unwrap();
        descriptors.iter().map(|one| one.text.expose().to_owned()).collect()
    }

    fn is_guarded(&self, name: &str) -> bool {
        let policies = self.manager.select(Some(name)).unwrap().wallet().policies().unwrap();
        assert!(policies.iter().all(|policy| &**policy == "judge"));
        !policies.is_empty()
    }

    /// Backs a wallet up to a file.
    fn backed_up(&self, name: &str) -> (TempDir, std::path::PathBuf) {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("backup");
        self.manager.select(Some(name)).unwrap().wallet().backup(&file, &None, &[]).unwrap();
        (folder, file)
    }

    fn list_of_keys(&self) -> Option<String> {
        std::fs::read_to_string(self.dir.path().join(crate::files::GUARDED_FILE)).ok()
    }
}

#[test]
fn a_restored_wallet_of_a_signer_guards_no_other_wallet() {
    let (from, mut to) = (host(Some("mine")), host(None));
    to.hold("hot", "");
    to.provide("vault", &[]);
    from.provide("mine", &to.public_texts("hot"));
    assert!(from.is_guarded("mine"));
    let (_folder, file) = from.backed_up("mine");
    to.manager.restore("mine".into(), &file, &None, Some(true), &|_| Ok(())).unwrap();
    for _ in 0..2 {
        assert_eq!(["mine", "hot", "vault"].map(|name| to.is_guarded(name)), [true, false, false]);
        assert_eq!(to.list_of_keys(), None);
        to.restart_with(configured(None), |_| {});
    }
    to.manager.unload("mine".into(), None).unwrap();
    assert!(!to.is_guarded("hot"));
}

#[test]
fn a_signer_wallet_with_somebody_elses_public_keys_does_not_guard_their_wallets() {
    let host = host(Some("vault"));
    host.hold("hot", "");
    host.provide("other", &[]);
    host.provide("vault", &host.public_texts("hot"));
    // The wallets of a signer share the policies that the configuration sets.
    host.provide("later", &[]);
    let names = ["vault", "other", "later", "hot"];
    assert_eq!(names.map(|name| host.is_guarded(name)), [true, true, true, false]);
    // Nor does it guard a wallet with a single key that its descriptors derive.
    let key: Xpriv = XPRV.parse().unwrap();
    let key = key.derive_priv(&Secp256k1::new(), &"0/3".parse::<DerivationPath>().unwrap()).unwrap();
    host.import_key("single", Secret::new(key.to_priv().to_wif()));
    assert!(!host.is_guarded("single"));
}

#[test]
fn a_wallet_of_a_signer_is_guarded_by_a_key_and_does_not_pass_that_on() {
    let host = host(Some("hot"));
    host.hold("hot", "");
    host.provide("vault", &host.public_texts("hot"));
    host.provide("other", &[]);
    assert_eq!(["hot", "vault", "other"].map(|name| host.is_guarded(name)), [true, true, false]);
    host.hold("copy", "");
    assert!(host.is_guarded("copy"));
}

#[test]
fn a_restored_wallet_guards_others_once_its_private_keys_are_read() {
    for passphrase in ["", "p"] {
        let (from, to) = (host(Some("mine")), host(None));
        from.hold("mine", passphrase);
        from.import_key("mine", wif(1));
        to.hold("hot", "");
        to.import_key("single", wif(1));
        let (_folder, file) = from.backed_up("mine");
        to.manager.restore("mine".into(), &file, &None, None, &|_| Ok(())).unwrap();
        assert!(to.is_guarded("mine"));
        assert_eq!(["hot", "single"].map(|name| to.is_guarded(name)), [passphrase.is_empty(); 2]);
        if !passphrase.is_empty() {
            let mine = to.manager.select(Some("mine")).unwrap().wallet().clone();
            mine.unlock(Secret::new(passphrase.into()), 60).unwrap();
            assert_eq!(["mine", "hot", "single"].map(|name| to.is_guarded(name)), [true; 3]);
        }
    }
}

#[test]
fn a_refused_restore_guards_no_other_wallet() {
    let (from, to) = (host(Some("mine")), host(Some("mine")));
    from.hold("mine", "");
    to.hold("hot", "");
    let (_folder, file) = from.backed_up("mine");
    let restore = |refuses: bool| {
        to.manager.restore("mine".into(), &file, &None, None, &|wallet| {
            assert_eq!(wallet.policies().map(|policies| policies.len()).unwrap(), 1);
            if refuses { Err(ErrorKind::Refused.into()) } else { Ok(()) }
        })
    };
    assert_eq!(kind_of(restore(true)), ErrorKind::Refused);
    assert_eq!((to.is_guarded("hot"), to.list_of_keys()), (false, None));
    restore(false).unwrap();
    assert!(to.is_guarded("hot") && to.list_of_keys().is_some());
}

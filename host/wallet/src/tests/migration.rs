//! A wallet of keys and scripts that becomes one of descriptors, also where a kill comes in between.

use outrigger_service::ErrorKind;
use outrigger_service::wallet::{AddressType, Ownership, WalletKind};
use outrigger_service::wire::Secret;

use super::imports::{key, keys, p2wpkh};
use super::{Harness, elsewhere, foreign, kind_of, spend};
use crate::files::{self, MIGRATION_FILE};

/// A wallet `w` with a key of its own and a script that it watches, each paid to.
fn wallet() -> Harness {
    let harness = Harness::new();
    harness.create("w", |options| options.descriptors = Some(false));
    let ours = harness.address(Some("ours"));
    let watch = keys(|keys| {
        (keys.script_pubkeys, keys.solving_data) = (vec![foreign(1)], false);
        keys.label = "watched".into();
    });
    harness.view().wallet().import(vec![watch]).unwrap();
    harness.mine(vec![spend(&[elsewhere(1)], &[(&ours, 70)]), spend(&[elsewhere(2)], &[(&foreign(1), 80)])]);
    harness
}

fn sums(harness: &Harness, name: &str) -> Vec<(u64, Ownership)> {
    let coins = super::coins(&harness.manager.select(Some(name)).unwrap());
    coins.iter().map(|coin| (coin.value.to_sat(), coin.ownership)).collect()
}

fn kind(harness: &Harness) -> WalletKind {
    harness.view().info().unwrap().kind
}

#[test]
fn migratewallet_divides_what_the_wallet_owns_from_what_it_watches() {
    let harness = wallet();
    let migration = harness.manager.migrate("w", &Secret::default()).unwrap();
    assert_eq!((migration.watch_only.as_deref(), migration.solvables), (Some("w_watchonly"), None));
    assert!(std::path::Path::new(&migration.backup).is_file());
    assert_eq!(kind(&harness), WalletKind::Descriptors);
    assert_eq!(sums(&harness, "w"), [(70, Ownership::Spendable)]);
    assert_eq!(sums(&harness, "w_watchonly"), [(80, Ownership::Spendable)]);
    assert_eq!(harness.view().info().unwrap().transactions, 1);
    assert!(!harness.dir.path().join(MIGRATION_FILE).exists());
    // Both follow the chain from here.
    let ours = harness.address(Some(""));
    harness.mine(vec![spend(&[elsewhere(3)], &[(&ours, 1), (&foreign(1), 2)])]);
    assert_eq!((sums(&harness, "w").len(), sums(&harness, "w_watchonly").len()), (2, 2));
    assert_eq!(kind_of(harness.manager.migrate("w", &Secret::default())), ErrorKind::Refused);
    assert_eq!(kind_of(harness.manager.migrate("none", &Secret::default())), ErrorKind::NotFound);
}

#[test]
fn migratewallet_keeps_unconfirmed_payments_and_what_a_rescan_has_still_to_read() {
    let mut harness = wallet();
    let (wif, public) = key(3);
    let single = p2wpkh(&public);
    let import = keys(|keys| (keys.script_pubkeys, keys.private_keys) = (vec![single.clone()], vec![wif.clone()]));
    harness.view().wallet().import(vec![import]).unwrap();
    let payment = spend(&[elsewhere(4)], &[(&single, 5), (&foreign(1), 6)]);
    harness.accept(&payment);
    assert_eq!(harness.coins().len(), 4);
    harness.manager.migrate("w", &Secret::default()).unwrap();
    assert_eq!(sums(&harness, "w").iter().map(|(value, _)| value).sum::<u64>(), 75);
    assert_eq!(sums(&harness, "w_watchonly").iter().map(|(value, _)| value).sum::<u64>(), 86);
    // The key was imported, and is the wallet's as a descriptor.
    let texts: Vec<String> =
        harness.view().descriptors(true).unwrap().iter().map(|one| one.text.expose().to_owned()).collect();
    assert!(texts.iter().any(|text| text.starts_with("combo([") && text.contains(wif.expose())));
    harness.restart(|_| {});
    assert_eq!((harness.coins().len(), sums(&harness, "w_watchonly").len()), (2, 2));
    harness.mine(vec![payment]);
    assert_eq!((harness.coins().len(), sums(&harness, "w_watchonly").len()), (2, 2));
}

#[test]
fn migratewallet_that_was_killed_before_its_commit_leaves_no_other_wallet() {
    let mut harness = wallet();
    harness.restart(|harness| {
        // As a kill leaves it that comes when the other wallets are made.
        let folder = harness.dir.path().join("w_watchonly");
        std::fs::create_dir(&folder).unwrap();
        std::fs::copy(harness.dir.path().join("w/data.mdb"), folder.join("data.mdb")).unwrap();
        let note = br#"{"wallet": "w", "sides": ["w_watchonly", "w_solvables"]}"#;
        files::write_migration(harness.dir.path(), note).unwrap();
    });
    assert_eq!(harness.manager.directory().unwrap(), ["w"]);
    assert_eq!((kind(&harness), harness.coins().len()), (WalletKind::Legacy, 2));
    assert!(!harness.dir.path().join(MIGRATION_FILE).exists());
    harness.manager.migrate("w", &Secret::default()).unwrap();
}

#[test]
fn migratewallet_that_was_killed_after_its_commit_has_happened() {
    let mut harness = wallet();
    harness.manager.migrate("w", &Secret::default()).unwrap();
    harness.restart(|harness| {
        files::set_load_on_startup(
            harness.dir.path(),
            &mut files::load_list(harness.dir.path()).unwrap(),
            "w_watchonly",
            false,
        )
        .unwrap();
        files::write_migration(harness.dir.path(), br#"{"wallet": "w", "sides": ["w_watchonly"]}"#).unwrap();
    });
    assert_eq!(harness.manager.list(), ["w", "w_watchonly"]);
    assert!(!harness.dir.path().join(MIGRATION_FILE).exists());
}

#[test]
fn migratewallet_of_an_encrypted_wallet_takes_its_passphrase_alone() {
    let harness = wallet();
    let passphrase = Secret::new("a passphrase".into());
    harness.view().wallet().encrypt(passphrase.clone()).unwrap();
    let before = harness.view().descriptors(false).unwrap().len();
    for wrong in ["", "another"] {
        let wrong = harness.manager.migrate("w", &Secret::new(wrong.into()));
        assert_eq!(kind_of(wrong), ErrorKind::PassphraseIncorrect);
        assert_eq!(kind(&harness), WalletKind::Legacy);
    }
    harness.manager.migrate("w", &passphrase).unwrap();
    let info = harness.view().info().unwrap();
    assert!(info.encrypted && info.locked && info.kind == WalletKind::Descriptors);
    assert_eq!(harness.view().descriptors(false).unwrap().len(), before);
    harness.view().wallet().unlock(passphrase, 1000).unwrap();
    assert_eq!(harness.view().hd_keys(true).unwrap().iter().filter(|key| key.xprv.is_some()).count(), 2);
    harness.view().wallet().new_address(AddressType::Bech32m, false, Some("".into())).unwrap();
}

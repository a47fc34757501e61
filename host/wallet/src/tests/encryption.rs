use outrigger_service::ErrorKind;
use outrigger_service::events::Event;
use outrigger_service::wallet::AddressType;
use outrigger_service::wire::Secret;

use super::{Harness, XPRV, descriptor, kind_of, until};
use crate::error::Result;
use crate::store::{ENCRYPTION, EncryptionRow};

fn secret(text: &str) -> Secret {
    Secret::new(text.into())
}

fn data(harness: &Harness) -> Vec<u8> {
    std::fs::read(harness.dir.path().join("w/data.mdb")).unwrap()
}

fn holds(data: &[u8], bytes: &[u8]) -> bool {
    data.windows(bytes.len()).any(|window| window == bytes)
}

fn private_texts(harness: &Harness) -> Vec<String> {
    harness.view().descriptors(true).unwrap().iter().map(|info| info.text.expose().to_owned()).collect()
}

#[test]
fn encryption_leaves_no_key_in_the_file_and_gives_fresh_descriptors() {
    let mut harness = Harness::with_wallet();
    let before = private_texts(&harness);
    assert!(before.iter().all(|text| text.contains("tprv")) && !holds(&data(&harness), b"tprv"));
    let old_address = harness.address(Some("old"));
    let wallet = harness.view().wallet().clone();
    let key = wallet.encryption_key().unwrap().to_plaintext()[..32].to_vec();
    assert!(holds(&data(&harness), &key));
    wallet.encrypt(secret("pass")).unwrap();
    drop(wallet);
    assert!(!holds(&data(&harness), &key), "the former encryption key is still in the file");
    let info = harness.view().info().unwrap();
    assert!(info.encrypted && info.locked && info.unlocked_until == 0);
    assert_eq!(kind_of(harness.view().descriptors(true)), ErrorKind::WalletLocked);
    let descriptors = harness.view().descriptors(false).unwrap();
    assert_eq!((descriptors.len(), descriptors.iter().filter(|info| info.active).count()), (16, 8));
    assert!(harness.view().scripts(vec![old_address]).unwrap()[0].is_some(), "no script stops being ours");

    harness.restart(|_| {});
    assert!(harness.view().info().unwrap().locked);
    harness.view().wallet().unlock(secret("pass"), 100).unwrap();
    let after = private_texts(&harness);
    assert_eq!(after[..8], before[..]);
}

#[test]
fn a_wallet_made_with_a_passphrase_never_writes_a_key_in_the_clear() {
    let harness = Harness::new();
    harness.create("w", |options| options.passphrase = secret("pass"));
    assert!(!holds(&data(&harness), b"tprv"));
    let view = harness.view();
    assert!(view.info().unwrap().locked);
    // A locked wallet derives public scripts.
    let mut scripts: Vec<_> =
        (0..50).map(|_| view.wallet().new_address(AddressType::Bech32m, false, None).unwrap()).collect();
    scripts.dedup();
    assert_eq!(scripts.len(), 50);
}

#[test]
fn walletpassphrase_and_related_calls_check_the_encryption_state_like_bitcoind() {
    let harness = Harness::with_wallet();
    let view = harness.view();
    let wallet = view.wallet();
    for (result, method) in [
        (wallet.unlock(secret("x"), 10), "walletpassphrase"),
        (wallet.lock(), "walletlock"),
        (wallet.change_passphrase(secret("x"), secret("y")), "walletpassphrasechange"),
    ] {
        let error = result.unwrap_err();
        assert_eq!(error.kind, ErrorKind::WrongEncryptionState);
        assert_eq!(error.detail, format!("Error: running with an unencrypted wallet, but {method} was called."));
    }
    wallet.encrypt(secret("pass")).unwrap();
    let error = wallet.encrypt(secret("other")).unwrap_err();
    assert_eq!(error.detail, "Error: running with an encrypted wallet, but encryptwallet was called.");
    assert_eq!(kind_of(wallet.unlock(secret("wrong"), 10)), ErrorKind::PassphraseIncorrect);
    assert_eq!(kind_of(wallet.change_passphrase(secret("wrong"), secret("y"))), ErrorKind::PassphraseIncorrect);
    wallet.change_passphrase(secret("pass"), secret("new")).unwrap();
    assert_eq!(kind_of(wallet.unlock(secret("pass"), 10)), ErrorKind::PassphraseIncorrect);
    wallet.unlock(secret("new"), 200_000_000).unwrap();
    let info = harness.view().info().unwrap();
    assert!(!info.locked);
    assert_eq!(info.unlocked_until, u64::from(info.synced.time) + 100_000_000);
    wallet.change_passphrase(secret("new"), secret("newer")).unwrap();
    assert!(!harness.view().info().unwrap().locked, "a change leaves it as it was");
    // A wrong old passphrase locks the wallet. Only an unlocked wallet announces that.
    for _ in 0..2 {
        assert_eq!(kind_of(wallet.change_passphrase(secret("new"), secret("y"))), ErrorKind::PassphraseIncorrect);
        assert!(harness.view().info().unwrap().locked);
    }
    wallet.unlock(secret("newer"), 10).unwrap();
    wallet.lock().unwrap();
    assert!(harness.view().info().unwrap().locked);
    let told: Vec<bool> = harness
        .events
        .lock()
        .iter()
        .filter_map(|event| match event {
            Event::WalletLockChanged { locked, .. } => Some(*locked),
            _ => None,
        })
        .collect();
    assert_eq!(told, [true, false, true, false, true]);
}

#[test]
fn walletpassphrase_timeout_locks_the_wallet() {
    let harness = Harness::new();
    harness.create("w", |options| options.passphrase = secret("pass"));
    harness.view().wallet().unlock(secret("pass"), 1).unwrap();
    assert!(!harness.view().info().unwrap().locked);
    let locked = |event: &Event| matches!(event, Event::WalletLockChanged { locked: true, .. });
    until("it is locked", || harness.events.lock().iter().any(locked));
    assert!(harness.view().info().unwrap().locked);
}

fn wait_until_scrubbed(harness: &Harness) {
    until("the mark is gone", || harness.view().info().unwrap().warnings.is_empty());
}

fn encryption_row(harness: &Harness) -> EncryptionRow {
    let wallet = harness.view().wallet().clone();
    let txn = wallet.store.read().unwrap();
    wallet.store.tables.encryption(&txn).unwrap().unwrap()
}

#[test]
fn encryptwallet_keeps_the_scrub_due_while_a_snapshot_pins_the_old_key() {
    let harness = Harness::with_wallet();
    let held = harness.view();
    let wallet = held.wallet().clone();
    let key = *wallet.encryption_key().unwrap().expose();
    wallet.encrypt(secret("pass")).unwrap();
    assert!(holds(&data(&harness), &key), "the snapshot pins nothing, so this test shows nothing");
    let warnings = harness.view().info().unwrap().warnings;
    assert!(warnings.len() == 1 && warnings[0].starts_with("A former key"), "{warnings:?}");
    // Retries hardly grow the file, however many there are.
    let (before, attempts) = (data(&harness).len(), 20);
    (0..attempts).for_each(|_| wallet.scrub());
    assert!(holds(&data(&harness), &key));
    let grown = data(&harness).len() - before;
    assert!(grown < attempts * 64 * 4096, "the file has grown by {grown} bytes");
    drop(held);
    wait_until_scrubbed(&harness);
    assert!(!holds(&data(&harness), &key));
    wallet.unlock(secret("pass"), 10).unwrap();
    assert_eq!(private_texts(&harness).len(), 16);
    assert!(!holds(&data(&harness), wallet.encryption_key().unwrap().expose()), "the new key is in the file");
}

#[test]
fn loadwallet_finishes_a_scrub_that_is_due() {
    let mut harness = Harness::with_wallet();
    let held = harness.view();
    let key = *held.wallet().encryption_key().unwrap().expose();
    held.wallet().encrypt(secret("pass")).unwrap();
    // The snapshot lives until the manager is gone, as if the process were killed.
    harness.restart(|harness| {
        assert!(holds(&data(harness), &key));
        drop(held);
    });
    assert!(!holds(&data(&harness), &key), "loading did not finish it");
    assert!(harness.view().info().unwrap().warnings.is_empty());
}

#[test]
fn a_start_removes_the_former_key_of_a_wallet_that_is_not_loaded() {
    let mut harness = Harness::new();
    harness.create("w", |options| options.load_on_startup = Some(false));
    let held = harness.view();
    let key = *held.wallet().encryption_key().unwrap().expose();
    held.wallet().encrypt(secret("pass")).unwrap();
    let note = harness.dir.path().join("w/former-key");
    harness.restart(|harness| {
        assert!(holds(&data(harness), &key) && note.exists());
        drop(held);
    });
    harness.manager.scrub_unloaded().unwrap();
    until("the note is gone", || !note.exists());
    assert!(harness.manager.list().is_empty());
    assert!(!holds(&data(&harness), &key));
}

#[test]
fn walletpassphrasechange_removes_the_former_encrypted_key() {
    let harness = Harness::new();
    harness.create("w", |options| options.passphrase = secret("first"));
    let wallet = harness.view().wallet().clone();
    let former = encryption_row(&harness);
    assert!(holds(&data(&harness), &former.encrypted_key));
    wallet.change_passphrase(secret("first"), secret("second")).unwrap();
    wait_until_scrubbed(&harness);
    assert!(!holds(&data(&harness), &former.encrypted_key));
    // The same while a snapshot still sees the row, with a small row that shares its page.
    let mut small = encryption_row(&harness);
    small.filler.0.clear();
    wallet.write(|write| write.store_row(write.t.meta, ENCRYPTION, &small)).unwrap();
    let held = harness.view();
    wallet.change_passphrase(secret("second"), secret("third")).unwrap();
    assert_eq!(harness.view().info().unwrap().warnings.len(), 1);
    drop(held);
    wait_until_scrubbed(&harness);
    assert!(!holds(&data(&harness), &small.encrypted_key));
    wallet.unlock(secret("third"), 10).unwrap();
}

#[test]
fn a_scrub_that_was_killed_leaves_no_filler_behind() -> Result<()> {
    let mut harness = Harness::with_wallet();
    let wallet = harness.view().wallet().clone();
    wallet.write(|write| write.put(write.t.meta, b"scrub/x", &[0; 4000]))?;
    drop(wallet);
    harness.restart(|_| {});
    let wallet = harness.view().wallet().clone();
    assert!(wallet.store.tables.meta.get(&*wallet.store.read()?, b"scrub/x")?.is_none());
    Ok(())
}

#[test]
fn gethdkeys_of_a_locked_wallet_tells_which_private_keys_it_has() {
    const XPUB: &str = "tpubD6NzVbkrYhZ4XgiXtGrdW5XDAPFCL9h7we1vwNCpn8tGbBcgfVYjXyhWo4E1xkh56hjod1RhGjxbaTLV3X4FyWuejifB9jusQ46QzG87VKp";
    let harness = Harness::blank();
    let text = format!("wsh(multi(1,{XPRV}/0/*,{XPUB}/1/*))");
    harness.view().wallet().import(vec![descriptor(&text, |import| import.range = Some((0, 3)))]).unwrap();
    let held = |harness: &Harness| -> Vec<(bool, bool)> {
        let keys = harness.view().hd_keys(false).unwrap();
        keys.iter().map(|key| (key.xpub == XPUB, key.has_private)).collect()
    };
    let unlocked = held(&harness);
    assert_eq!(unlocked.iter().filter(|(_, held)| *held).count(), 1);
    assert!(unlocked.contains(&(true, false)));
    harness.view().wallet().encrypt(Secret::new("a passphrase".into())).unwrap();
    assert!(harness.view().info().unwrap().locked);
    assert_eq!(held(&harness), unlocked);
}

//! Backups of a live wallet, and restoring them.

use outrigger_service::ErrorKind;
use outrigger_service::wallet::{AddressType, LabelledScript};
use outrigger_service::wire::{Blob, Secret};
use tempfile::TempDir;

use super::{Harness, descriptor, elsewhere, foreign, kind_of, spend};
use crate::WalletView;

const TEXT: &str = "wpkh(cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87JcbXMTcA)";

fn book(view: &WalletView) -> Vec<LabelledScript> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let batch = view.labels(after, 2).unwrap();
        all.extend(batch.entries);
        after = batch.next;
        if after.is_none() {
            all.sort_by(|one, other| one.script.cmp(&other.script));
            return all;
        }
    }
}

/// All answers of a wallet except its name and its backups, as text.
fn content(view: &WalletView) -> String {
    let mut info = view.info().unwrap();
    (info.name, info.backup_needed, info.last_backup) = (String::new(), false, 0);
    let descriptors: Vec<String> =
        view.descriptors(!info.locked).unwrap().iter().map(|one| format!("{one:?}{}", one.text.expose())).collect();
    format!("{info:?} {descriptors:?} {:?} {:?}", super::coins(view), book(view))
}

#[test]
fn a_backup_has_the_newest_position_of_a_wallet_that_no_block_concerns() {
    let harness = Harness::with_wallet();
    let (_folder, file) = place();
    let backups: [&dyn Fn(&crate::Wallet); 2] = [&|wallet| wallet.backup(&file, &None, &[]).unwrap(), &|wallet| {
        wallet.copy_out(&mut tempfile::tempfile().unwrap()).map(drop).unwrap();
    }];
    for back_up in backups {
        harness.mine(Vec::new());
        let view = harness.view();
        let wallet = view.wallet();
        let position = || wallet.feed.position();
        assert!(position().stored.height < position().now.height);
        back_up(wallet);
        assert_eq!(position().stored.height, position().now.height);
    }
}

#[test]
fn a_backup_of_a_live_wallet_opens_as_the_same_wallet() {
    let harness = Harness::with_wallet();
    let (folder, file) = place();
    let info = harness.view().info().unwrap();
    assert_eq!((info.backup_needed, info.last_backup), (true, 0));
    let ours: Vec<_> = ["rent", "food", "rent"].map(|label| harness.address(Some(label))).to_vec();
    harness.view().wallet().set_label(foreign(7), "landlord".into()).unwrap();
    let payments: Vec<_> =
        (1..).zip(&ours).map(|(number, script)| spend(&[elsewhere(number)], &[(script, 70)])).collect();
    harness.mine(payments[..2].to_vec());
    harness.accept(&payments[2]);
    let before = content(&harness.view());
    harness.view().wallet().backup(&file, &None, &[]).unwrap();
    let info = harness.view().info().unwrap();
    assert!(!info.backup_needed && info.last_backup > 0);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing unfinished is left");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    harness.manager.restore("copy".into(), &file, &None, Some(true), &|_| Ok(())).unwrap();
    assert_eq!(content(&harness.manager.select(Some("copy")).unwrap()), before);
    assert_eq!(content(&harness.view()), before);
    // The copy follows the chain from its own position and hands out the same addresses.
    let (one, other) =
        (harness.view().wallet().clone(), harness.manager.select(Some("copy")).unwrap().wallet().clone());
    let next = |wallet: &crate::Wallet| wallet.new_address(AddressType::Bech32, false, Some("".into())).unwrap();
    assert_eq!(next(&one), next(&other));
    harness.mine(vec![payments[2].clone()]);
    assert_eq!(content(&harness.manager.select(Some("copy")).unwrap()), content(&harness.view()));
    // An import after the backup makes another backup necessary.
    one.import(vec![descriptor(TEXT, |_| {})]).unwrap();
    assert!(harness.view().info().unwrap().backup_needed);
    one.backup(&file, &None, &[]).unwrap();
    assert!(!harness.view().info().unwrap().backup_needed);
}

fn place() -> (TempDir, std::path::PathBuf) {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("backup.mdb");
    (folder, file)
}

#[test]
fn an_encrypted_wallet_comes_back_locked_and_opens_with_its_passphrase() {
    let harness = Harness::new();
    harness.create("w", |options| options.passphrase = Secret::new("p".into()));
    let (_folder, file) = place();
    harness.view().wallet().backup(&file, &None, &[]).unwrap();
    harness.manager.restore("copy".into(), &file, &None, None, &|_| Ok(())).unwrap();
    let copy = harness.manager.select(Some("copy")).unwrap();
    assert!(copy.info().unwrap().locked);
    assert_eq!(kind_of(copy.wallet().unlock(Secret::new("q".into()), 10)), ErrorKind::PassphraseIncorrect);
    copy.wallet().unlock(Secret::new("p".into()), 10).unwrap();
    harness.view().wallet().unlock(Secret::new("p".into()), 10).unwrap();
    assert!(copy.descriptors(true).unwrap().iter().all(|one| one.text.expose().contains("tprv")));
}

#[test]
fn a_backup_that_cannot_be_written_changes_nothing() {
    let harness = Harness::with_wallet();
    let (folder, file) = place();
    let data = harness.dir.path().join("w/data.mdb");
    std::fs::create_dir(&file).unwrap();
    for place in [&file, &folder.path().join("none/backup"), &data, std::path::Path::new("/"), std::path::Path::new("")]
    {
        let refused = harness.view().wallet().backup(place, &None, &[]).unwrap_err();
        assert_eq!(
            (refused.kind, refused.detail.as_str()),
            (ErrorKind::Refused, "Error: Wallet backup failed!"),
            "{place:?}"
        );
    }
    // The error names the system's reason.
    let long = folder.path().join("x".repeat(300));
    let refused = harness.view().wallet().backup(&long, &None, &[]).unwrap_err();
    assert_eq!(refused.detail, "Error: Wallet backup failed! File name too long (os error 36)");
    assert!(harness.view().info().unwrap().backup_needed);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    assert_eq!(std::fs::read_dir(harness.dir.path().join("w")).unwrap().count(), 2);
}

#[test]
fn restorewallet_of_what_is_no_backup_makes_no_wallet() {
    let harness = Harness::with_wallet();
    let (folder, file) = place();
    harness.view().wallet().backup(&file, &None, &[]).unwrap();
    let restore = |name: &str, file: &std::path::Path| {
        harness.manager.restore(name.into(), file, &None, Some(true), &|_| Ok(())).unwrap_err()
    };
    let missing = restore("new", &folder.path().join("none"));
    assert_eq!((missing.kind, missing.detail.as_str()), (ErrorKind::NotFound, "Backup file does not exist"));
    let exists = restore("w", &file);
    let data = harness.dir.path().join("w/data.mdb");
    let message = format!("Failed to restore wallet. Database file exists in '{}'.", data.display());
    assert_eq!((exists.kind, exists.detail), (ErrorKind::WalletExists, message));
    let whole = std::fs::read(&file).unwrap();
    for damaged in [&b"junk"[..], &[0; 9000], &whole[..4096], &whole[..whole.len() - 4096], &whole[..9000]] {
        std::fs::write(&file, damaged).unwrap();
        let refused = restore("new", &file);
        assert_eq!(refused.kind, ErrorKind::WalletNotLoaded, "{} bytes: {refused:?}", damaged.len());
        let said =
            if damaged.len() < 4096 || damaged[16] == 0 { "Data is not in recognized format." } else { "is damaged: " };
        assert!(refused.detail.contains(said), "{}", refused.detail);
        assert!(!harness.dir.path().join("new").exists());
    }
    assert_eq!(kind_of(harness.manager.restore("../new".into(), &file, &None, None, &|_| Ok(()))), ErrorKind::Refused);
    assert_eq!(harness.manager.list(), ["w"]);
    std::fs::write(&file, whole).unwrap();
    harness.manager.unload("w".into(), None).unwrap();
    assert_eq!(restore("w", &file).kind, ErrorKind::WalletExists);
    // The restored wallet cannot follow the chain.
    let block = harness.chain.mine_to(foreign(0), Vec::new());
    harness.node.faults.forget(block);
    assert_eq!(restore("new", &file).kind, ErrorKind::Storage);
    assert!(!harness.dir.path().join("new").exists());
    harness.node.faults.remember(block);
    harness.manager.restore("new".into(), &file, &None, None, &|_| Ok(())).unwrap();
}

#[test]
fn backupwallet_replaces_a_backup_and_no_other_file() {
    let harness = Harness::with_wallet();
    let (folder, file) = place();
    let wallet = harness.view().wallet().clone();
    for _ in 0..2 {
        wallet.backup(&file, &None, &[]).unwrap();
    }
    let backup = std::fs::read(&file).unwrap();
    for other in [&b"notes"[..], &[], &[7; 20_000], &backup[..4096], &backup[..backup.len() / 2]] {
        let path = folder.path().join("other");
        std::fs::write(&path, other).unwrap();
        let refused = wallet.backup(&path, &None, &[]);
        // A truncated backup may still be recognised as one.
        if refused.is_err() {
            assert_eq!(std::fs::read(&path).unwrap(), other);
        } else {
            assert!(other.len() > 4096 && other[..4096] == backup[..4096]);
        }
    }
    // No backup is written into the wallets' folder, under any name.
    for own in ["load.json", "unfinished.json", "w/data.mdb", "w/lock.mdb", "new", "w/new"] {
        let before = std::fs::read(harness.dir.path().join(own)).ok();
        assert_eq!(kind_of(wallet.backup(&harness.dir.path().join(own), &None, &[])), ErrorKind::Refused, "{own}");
        assert_eq!(std::fs::read(harness.dir.path().join(own)).ok(), before, "{own}");
    }
    let data = harness.dir.path().join("w/data.mdb");
    let refused = harness.manager.restore("copy".into(), &data, &None, None, &|_| Ok(())).unwrap_err();
    assert_eq!(
        (refused.kind, refused.detail.as_str()),
        (ErrorKind::Refused, "The backup file cannot be read: it lies in the data directory")
    );
}

#[test]
fn an_export_has_no_private_key() {
    let harness = Harness::new();
    for passphrase in ["", "p"] {
        let name = format!("w{passphrase}");
        harness.create(&name, |options| options.passphrase = Secret::new(passphrase.into()));
        let (view, (_folder, file)) = (harness.manager.select(Some(&name)).unwrap(), place());
        let key = match passphrase {
            "" => view.wallet().encryption_key().unwrap().expose().to_vec(),
            _ => crate::encryption_key(&view.wallet().store.data_file(), passphrase).unwrap().to_vec(),
        };
        view.wallet().export_watch_only(&file, &None).unwrap();
        let bytes = std::fs::read(&file).unwrap();
        assert!(!bytes.windows(key.len()).any(|window| window == key), "the key that encrypts the private keys");
        let copy = format!("copy{passphrase}");
        harness.manager.restore(copy.clone(), &file, &None, None, &|_| Ok(())).unwrap();
        let copied = harness.manager.select(Some(&copy)).unwrap();
        let info = copied.info().unwrap();
        assert!(!info.private_keys_enabled && !info.encrypted);
        assert!(copied.wallet().store.tables.keys.is_empty(&copied.wallet().store.read().unwrap()).unwrap());
        let texts = |view: &WalletView, private| -> Vec<String> {
            view.descriptors(private).unwrap().iter().map(|one| one.text.expose().to_owned()).collect()
        };
        assert_eq!(texts(&copied, true), texts(&view, false));
        assert!(copied.hd_keys(true).unwrap().iter().all(|key| !key.has_private && key.xprv.is_none()));
    }
}

#[test]
fn an_export_waits_for_no_write_and_has_the_log() {
    let harness = Harness::with_wallet();
    harness.accept(&spend(&[elsewhere(1)], &[(&harness.address(None), 70)]));
    let (view, (_folder, file)) = (harness.view(), place());
    let _writes = view.wallet().lock_writes();
    view.wallet().export_watch_only(&file, &None).unwrap();
    harness.manager.restore("copy".into(), &file, &None, None, &|_| Ok(())).unwrap();
    let logged = |view: &WalletView| {
        let log = view.log(0, 10).unwrap();
        (log.last, log.entries.iter().map(|entry| entry.number).collect::<Vec<_>>())
    };
    let log = logged(&view);
    assert_eq!(log.1, [log.0]);
    assert_eq!(logged(&harness.manager.select(Some("copy")).unwrap()), log);
}

#[test]
fn only_a_backup_has_the_states_of_policies() {
    let harness = Harness::with_wallet();
    let (wallet, (_folder, file)) = (harness.view().wallet().clone(), place());
    wallet.backup(&file, &None, &[("judge".into(), Blob(b"the judge's state".to_vec()))]).unwrap();
    let has =
        |file: &std::path::Path| std::fs::read(file).unwrap().windows(17).any(|window| window == b"the judge's state");
    assert!(has(&file) && !has(&wallet.store.data_file()));
    assert!(!wallet.store.env.folder().join(outrigger_disk::MAKING).exists());
    // The copy, which no policy guards, does not keep it.
    harness.manager.restore("copy".into(), &file, &None, None, &|_| Ok(())).unwrap();
    let copy = harness.manager.select(Some("copy")).unwrap().wallet().clone();
    assert_eq!(copy.pending_policy_state("judge").unwrap(), None);
}

#[test]
fn a_restored_wallet_has_only_the_used_pages_of_its_backup() {
    let harness = Harness::with_wallet();
    let (_folder, file) = place();
    harness.view().wallet().backup(&file, &None, &[]).unwrap();
    std::fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(1 << 32).unwrap();
    harness.manager.restore("copy".into(), &file, &None, None, &|_| Ok(())).unwrap();
    assert!(std::fs::metadata(harness.dir.path().join("copy/data.mdb")).unwrap().len() < 1 << 24);
}

#[test]
fn an_export_replaces_no_file() {
    let harness = Harness::with_wallet();
    let (_folder, file) = place();
    harness.view().wallet().backup(&file, &None, &[]).unwrap();
    let before = std::fs::read(&file).unwrap();
    assert_eq!(kind_of(harness.view().wallet().export_watch_only(&file, &None)), ErrorKind::Refused);
    assert_eq!(std::fs::read(&file).unwrap(), before);
}

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use outrigger_node::{Gap, Node as _};
use outrigger_service::wallet::BalancesQuery;
use outrigger_service::wire::Secret;
use outrigger_service::{ErrorKind, ServiceError};

use super::{Harness, elsewhere, foreign, kind_of, spend};
use crate::store::LAYOUT;

#[test]
fn a_new_wallet_has_the_descriptors_of_bitcoind() {
    let harness = Harness::with_wallet();
    let descriptors = harness.view().descriptors(false).unwrap();
    let found: Vec<(String, Option<bool>)> = descriptors
        .iter()
        .map(|info| {
            let text = info.text.expose();
            let path = |bytes: &str| bytes.find("]tpub").map(|at| at + 1).unwrap_or_default();
            let function = text.split('[').next().unwrap_or_default();
            let origin = text.get(function.len() + 9..path(text) - 1).unwrap_or_default();
            let tail = text
                .split('#')
                .next()
                .unwrap_or_default()
                .rsplit_once("/*")
                .map_or("", |(head, _)| &head[head.len() - 2..]);
            (format!("{function}{origin}{tail}"), info.internal)
        })
        .collect();
    let expected = [
        ("pkh(/44h/1h/0h/0", false),
        ("sh(wpkh(/49h/1h/0h/0", false),
        ("wpkh(/84h/1h/0h/0", false),
        ("tr(/86h/1h/0h/0", false),
        ("pkh(/44h/1h/0h/1", true),
        ("sh(wpkh(/49h/1h/0h/1", true),
        ("wpkh(/84h/1h/0h/1", true),
        ("tr(/86h/1h/0h/1", true),
    ];
    let expected = expected.map(|(text, internal)| (text.to_owned(), Some(internal)));
    assert_eq!(found, expected);
    let info = harness.view().info().unwrap();
    assert_eq!((info.keypool_external, info.keypool_internal), (80, 80));
    assert!(!info.blank && info.private_keys_enabled && !info.encrypted);
    assert_eq!(info.birth_time, u64::from(harness.node.tip().time));
    assert!(descriptors.iter().all(|info| info.range == Some((0, 19)) && info.next_index == 0));
}

#[test]
fn making_and_loading_are_refused_in_the_words_of_bitcoind() {
    let harness = Harness::new();
    harness.create("w", |_| {});
    let exists = harness.try_create("w", |_| {}).unwrap_err();
    assert_eq!(exists.kind, ErrorKind::WalletExists);
    assert!(exists.detail.ends_with("Database already exists."), "{}", exists.detail);
    let loaded = harness.manager.load("w".into(), None).unwrap_err();
    assert_eq!(
        (loaded.kind, loaded.detail.as_str()),
        (ErrorKind::WalletAlreadyLoaded, "Wallet \"w\" is already loaded.")
    );
    let missing = harness.manager.load("missing".into(), None).unwrap_err();
    assert_eq!(missing.kind, ErrorKind::WalletNotLoaded);
    assert!(missing.detail.ends_with("Path does not exist."), "{}", missing.detail);
    std::fs::create_dir(harness.dir.path().join("empty")).unwrap();
    std::fs::create_dir(harness.dir.path().join("junk")).unwrap();
    std::fs::write(harness.dir.path().join("junk/data.mdb"), vec![7; 9000]).unwrap();
    for name in ["empty", "junk"] {
        let refused = harness.manager.load(name.into(), None).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::WalletNotLoaded, "{refused:?}");
        assert!(refused.detail.ends_with("Data is not in recognized format."), "{}", refused.detail);
    }
    let keyless = harness.try_create("k", |options| {
        options.disable_private_keys = true;
        options.passphrase = Secret::new("p".into());
    });
    let no_keys = "Passphrase provided but private keys are disabled. A passphrase is only used to encrypt private keys, so cannot be used for wallets with private keys disabled.";
    assert_eq!(keyless, Err(ServiceError::new(ErrorKind::Refused, no_keys)));
    assert_eq!(kind_of(harness.try_create("../out", |_| {})), ErrorKind::Refused);
    assert_eq!(kind_of(harness.manager.unload("missing".into(), None)), ErrorKind::WalletNotLoaded);
    harness.manager.unload("w".into(), None).unwrap();
    assert_eq!(kind_of(harness.try_create("w", |_| {})), ErrorKind::WalletExists);
    assert_eq!(harness.manager.directory().unwrap(), ["junk", "w"]);
}

#[test]
fn loading_without_the_blocks_to_follow_names_them_and_a_remedy() {
    let harness = Harness::with_wallet();
    harness.manager.unload("w".into(), None).unwrap();
    let lacking = harness.mine(vec![]);
    let height = harness.node.tip().height;
    harness.mine(vec![]);
    harness.node.faults.forget(lacking);
    let refused = |gap: Gap| {
        harness.node.faults.set_gap(gap);
        harness.manager.load("w".into(), None).unwrap_err()
    };
    let pruned = "Wallet loading failed. Prune: last wallet synchronisation goes beyond pruned data. You need to -reindex (download the whole blockchain again in case of a pruned node). ";
    let (near, far) = (refused(Gap::Pruned { first: height + 100 }), refused(Gap::Pruned { first: height + 101 }));
    assert_eq!((near.kind, far.kind), (ErrorKind::Refused, ErrorKind::Refused));
    let fetch = format!("{pruned}Or have the node fetch the blocks of heights {height} to {} again", height + 99);
    assert!(near.detail.starts_with(&fetch) && near.detail.contains("getblockfrompeer"), "{}", near.detail);
    assert!(far.detail.starts_with(&format!("{pruned}Or let the host use a node")), "{}", far.detail);
    let background = refused(Gap::Background { first: height + 1 });
    let reaches = format!("Wallet should be able to load successfully after node sync reaches height {}", height + 1);
    assert!(background.detail.starts_with("Wallet loading failed. Error loading wallet."), "{}", background.detail);
    assert!(background.kind == ErrorKind::Refused && background.detail.ends_with(&reaches), "{}", background.detail);
    // The node should have this block, so it is a storage error.
    let missing = refused(Gap::Pruned { first: height });
    assert_eq!(missing.kind, ErrorKind::Storage);
    harness.node.faults.remember(lacking);
    harness.manager.load("w".into(), None).unwrap();
}

/// The error for a wallet with this layout.
fn refused_with_layout(layout: u32) -> String {
    let harness = Harness::with_wallet();
    let wallet = harness.view().wallet().clone();
    wallet
        .write(|write| {
            write.meta.version = layout;
            Ok(())
        })
        .unwrap();
    drop(wallet);
    harness.manager.unload("w".into(), None).unwrap();
    let refused = harness.manager.load("w".into(), None).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::WalletNotLoaded);
    refused.detail
}

#[test]
fn loadwallet_refuses_another_layout_naming_the_version_needed() {
    let said = refused_with_layout(LAYOUT + 1);
    let why = format!(
        "data.mdb has layout {}, but this build of the program reads layout {LAYOUT}. A build of version {} wrote it.",
        LAYOUT + 1,
        env!("CARGO_PKG_VERSION")
    );
    assert!(said.ends_with(&why), "{said}");
    let said = refused_with_layout(5);
    let remedy = " A build of commit 038d4830f085 loads it: its listdescriptors tells the keys.";
    assert!(said.contains("data.mdb has layout 5, ") && said.ends_with(remedy), "{said}");
}

#[test]
fn unloaded_wallets_can_be_loaded_again_while_an_old_view_is_open() {
    let harness = Harness::with_wallet();
    let script = harness.address(Some("kept"));
    let view = harness.view();
    harness.manager.unload("w".into(), None).unwrap();
    assert_eq!(kind_of(harness.manager.unload("w".into(), None)), ErrorKind::WalletNotLoaded);
    assert!(view.info().is_ok());
    drop(view);
    harness.manager.load("w".into(), None).unwrap();
    let info = harness.view().scripts(vec![script]).unwrap().remove(0).unwrap();
    assert_eq!(info.label.as_deref(), Some("kept"));
}

#[test]
fn a_restart_loads_what_it_is_told_to() {
    let mut harness = Harness::new();
    harness.create("a", |_| {});
    harness.create("b", |options| options.load_on_startup = None);
    harness.create("c", |_| {});
    harness.manager.unload("c".into(), Some(false)).unwrap();
    harness.restart(|_| {});
    assert_eq!(harness.manager.list(), ["a"]);
    assert_eq!(harness.manager.directory().unwrap(), ["a", "b", "c"]);
    // As in bitcoind, a list that cannot be written gives a warning. Here a folder has the name of the new list.
    std::fs::create_dir(harness.dir.path().join("load.json.new")).unwrap();
    let warning = |outcome: &str| {
        vec![format!("Wallet load on startup setting could not be updated, so wallet {outcome} next node startup.")]
    };
    let (added, removed) = (Ok(warning("may not be loaded")), Ok(warning("may still be loaded")));
    assert_eq!(harness.try_create("d", |_| {}), added);
    assert_eq!(harness.manager.load("b".into(), Some(true)), added);
    assert_eq!(harness.manager.unload("a".into(), Some(false)), removed);
    assert_eq!(harness.manager.list(), ["d", "b"]);
}

#[test]
fn a_full_store_refuses_whole_and_a_lagging_wallet_says_so() {
    use super::{elsewhere, spend};
    let harness = Harness::with_wallet();
    let script = harness.address(Some(""));
    // Payments with long outputs fill the reserved space.
    let filler = bitcoin::ScriptBuf::from_bytes(vec![0x6a; 1 << 20]);
    let mut counter = 0;
    let refused = loop {
        counter += 1;
        assert!(counter < 100, "the store never fills");
        let mut payment = spend(&[elsewhere(counter)], &[(&script, 1), (&filler, 0)]);
        payment.version = bitcoin::transaction::Version(i32::from(counter));
        harness.mine(vec![payment]);
        match harness.manager.select(Some("w")) {
            Ok(view) => {
                let info = view.info().unwrap();
                assert_eq!((info.transactions, info.synced.height), (u64::from(counter), u32::from(counter)));
            }
            Err(error) => break error,
        }
    };
    assert_eq!(refused.kind, ErrorKind::Storage);
    assert!(refused.detail.contains("unload and load the wallet"), "{}", refused.detail);
    // Any number of calls schedule only one retry.
    let follower = harness.manager.follower.loaded()[0].shared.follower.clone();
    for _ in 0..5 {
        assert_eq!(kind_of(harness.manager.select(Some("w")).map(drop)), ErrorKind::Storage);
        assert!(follower.alarms.retries() <= 1);
    }
    // After a reload, the wallet has space to follow the chain.
    harness.manager.unload("w".into(), None).unwrap();
    harness.manager.load("w".into(), None).unwrap();
    assert_eq!(harness.view().info().unwrap().transactions, u64::from(counter));
}

#[test]
fn createwallet_leaves_all_or_nothing() {
    let mut harness = Harness::new();
    // A killed host leaves the half-written file in a separate folder.
    let making = harness.dir.path().join("w").join(outrigger_disk::MAKING);
    harness.restart(|_| {
        std::fs::create_dir_all(&making).unwrap();
        std::fs::write(making.join("data.mdb"), [7; 20_000]).unwrap();
    });
    assert!(!making.exists(), "the start has removed it");
    assert_eq!(harness.manager.directory().unwrap(), [""; 0]);
    harness.create("w", |_| {});
    assert_eq!(harness.view().descriptors(false).unwrap().len(), 8);
    let mut files: Vec<_> =
        std::fs::read_dir(harness.dir.path().join("w")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["data.mdb", "lock.mdb"]);
    // A wallet that cannot be opened once it is made: its reader table is a folder.
    let lock = harness.dir.path().join("v/lock.mdb");
    std::fs::create_dir_all(&lock).unwrap();
    assert!(harness.try_create("v", |_| {}).is_err());
    assert_eq!(harness.manager.directory().unwrap(), ["w"]);
    std::fs::remove_dir(lock).unwrap();
    harness.create("v", |_| {});
}

#[test]
fn a_wallet_that_is_being_made_or_loaded_is_not_made_or_loaded_twice() {
    let harness = Harness::with_wallet();
    harness.manager.unload("w".into(), None).unwrap();
    let reserved = harness.manager.reserve_name("w").unwrap();
    let refused = [harness.manager.load("w".into(), None), harness.try_create("w", |_| {})];
    for refused in refused.map(Result::unwrap_err) {
        assert_eq!((refused.kind, refused.detail.as_str()), (ErrorKind::Refused, "Wallet already loading."));
    }
    drop(reserved);
    harness.manager.load("w".into(), None).unwrap();
}

#[test]
fn loadwallet_waits_while_the_file_is_searched_for_former_keys() {
    let harness = Harness::with_wallet();
    harness.manager.unload("w".into(), None).unwrap();
    let searching = harness.manager.searching.lock();
    thread::scope(|scope| {
        let (done, loaded) = mpsc::channel();
        let manager = &harness.manager;
        scope.spawn(move || done.send(manager.load("w".into(), None)));
        assert!(loaded.recv_timeout(Duration::from_millis(20)).is_err());
        drop(searching);
        assert_eq!(loaded.recv(), Ok(Ok(Vec::new())));
    });
}

#[test]
fn a_restart_keeps_which_scripts_the_wallet_has_spent_from() {
    let mut harness = Harness::with_wallet();
    let [used, fresh] = [(); 2].map(|()| harness.address(Some("")));
    harness.mine(vec![spend(&[elsewhere(1)], &[(&used, 7), (&used, 8), (&fresh, 9)])]);
    let first = harness.coins().into_iter().find(|coin| coin.value.to_sat() == 7).unwrap();
    let spent_from = |harness: &Harness| harness.view().spent_from(&[used.clone(), fresh.clone()]).unwrap();
    assert_eq!(spent_from(&harness), [false, false]);
    harness.accept(&spend(&[first.outpoint], &[(&foreign(1), 6)]));
    assert_eq!(spent_from(&harness), [true, false]);
    let query = BalancesQuery { min_depth: 0, avoid_reuse: true };
    let used_of = |harness: &Harness| harness.view().balances(&query).unwrap().used.to_sat();
    assert_eq!(used_of(&harness), 8);
    harness.restart(|_| {});
    assert_eq!((spent_from(&harness), used_of(&harness)), (vec![true, false], 8));
}

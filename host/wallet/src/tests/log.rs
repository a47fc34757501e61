use std::fs::{self, File};
use std::path::Path;

use bitcoin::{OutPoint, Transaction, Txid};
use outrigger_disk::{Environment, Opening};
use outrigger_service::wallet::{LogCategory, LogEntry, LogKind, WalletLog};

use super::{Harness, SUBSIDY, elsewhere, foreign, settings, spend};
use crate::log::NEVER;
use crate::store::{DATA_FILE, LATER, LOG_STATE, NAMES, Store, get};
use crate::write::Write;
use crate::{WalletContents, check_file};

fn log(harness: &Harness) -> WalletLog {
    let (mut all, mut after) = (Vec::new(), 0);
    loop {
        let part = harness.view().log(after, 3).unwrap();
        let Some(last) = part.entries.last() else { return WalletLog { entries: all, ..part } };
        after = last.number;
        all.extend(part.entries);
    }
}

/// The log entries since `seen`, without their numbers. Checks that the numbers grow.
fn news(harness: &Harness, seen: &mut u64) -> Vec<(LogKind, Txid, Option<u32>)> {
    let log = log(harness);
    assert!(log.entries.is_sorted_by(|one, other| one.number < other.number));
    let entries: Vec<LogEntry> = log.entries.into_iter().filter(|entry| entry.number > *seen).collect();
    *seen = log.last;
    entries.into_iter().map(|entry| (entry.kind, entry.txid, entry.height)).collect()
}

fn id(transaction: &Transaction) -> Txid {
    transaction.compute_txid()
}

#[test]
fn payments_of_an_entry_with_its_fee_sum_up_to_what_the_wallet_gains() {
    let harness = Harness::with_wallet();
    let (rent, change) = (harness.address(Some("rent")), harness.address(None));
    let mined = harness.mine_to(rent.clone(), vec![]);
    let coinbase = harness.block(mined).txdata[0].compute_txid();
    let payment =
        spend(&[OutPoint { txid: coinbase, vout: 0 }], &[(&foreign(1), 10), (&rent, 20), (&change, SUBSIDY - 100)]);
    harness.accept(&payment);
    let log = log(&harness);
    let [first, second] = &log.entries[..] else { panic!("{log:?}") };
    assert_eq!((first.fee, first.payments[0].category), (None, LogCategory::Immature));
    assert_eq!(first.payments[0].label.as_deref(), Some("rent"));
    assert!(first.payments[0].address.as_ref().is_some_and(|address| address.starts_with("bcrt1")));
    let payments: Vec<_> = second.payments.iter().map(|of| (of.category, of.vout, of.amount.to_sat())).collect();
    let expected = [(LogCategory::Send, 0, -10), (LogCategory::Send, 1, -20), (LogCategory::Receive, 1, 20)];
    assert_eq!((&payments[..], second.fee.map(bitcoin::SignedAmount::to_sat)), (&expected[..], Some(-70)));
    assert_eq!((log.wallet.as_str(), log.last, log.dropped), ("w", second.number, 0));
}

#[test]
fn the_block_that_makes_a_transaction_deep_writes_it_once_though_it_does_not_touch_the_wallet() {
    let mut harness = Harness::with_wallet();
    let (script, mut seen) = (harness.address(Some("")), 0);
    let [first, second] = [1, 2].map(|number| spend(&[elsewhere(number)], &[(&script, 7)]));
    harness.mine(vec![first.clone()]);
    harness.mine(vec![second.clone()]);
    news(&harness, &mut seen);
    let stored = |harness: &Harness| harness.view().wallet().feed.position().stored.height;
    for height in 3..=5 {
        harness.mine(vec![]);
        assert_eq!((news(&harness, &mut seen), stored(&harness)), (vec![], 2), "{height} is followed in memory");
    }
    harness.mine(vec![]);
    assert_eq!(news(&harness, &mut seen), [(LogKind::Deep, id(&first), Some(1))]);
    // The host stops at height 6 and sees the next block at its start.
    harness.restart(|harness| {
        harness.chain.mine(vec![]);
    });
    assert_eq!(news(&harness, &mut seen), [(LogKind::Deep, id(&second), Some(2))]);
    assert_eq!(harness.view().wallet().feed.position().due, NEVER);
    // A reorganisation above the wallet's transactions logs nothing.
    harness.disconnect_blocks(3);
    for _ in 0..6 {
        harness.mine(vec![]);
    }
    assert_eq!(news(&harness, &mut seen), []);
    // A reorganisation of the transaction's own block logs it again.
    harness.disconnect_blocks(9);
    harness.mine(vec![second.clone()]);
    for _ in 0..5 {
        harness.mine(vec![]);
    }
    let told = news(&harness, &mut seen);
    let of = |txid: Txid| told.iter().filter(|(_, of, _)| *of == txid).map(|(kind, ..)| *kind).collect::<Vec<_>>();
    assert_eq!(of(id(&second)), [LogKind::Reorganised, LogKind::Confirmed, LogKind::Deep]);
    assert_eq!(of(id(&first)), []);
}

#[test]
fn a_rescan_tells_old_transactions_with_their_blocks_once() {
    let harness = Harness::with_wallet();
    let (script, mut seen) = (foreign(7), 0);
    let paid = spend(&[elsewhere(1)], &[(&script, 7)]);
    harness.mine(vec![paid.clone()]);
    for _ in 0..8 {
        harness.mine(vec![]);
    }
    let text = format!("raw({})", script.to_hex_string());
    harness.create("watch", |options| (options.disable_private_keys, options.blank) = (true, true));
    let watch = harness.manager.select(Some("watch")).unwrap();
    let import = super::descriptor(&text, |_| {});
    watch.wallet().import(vec![import]).unwrap();
    let rescan = || {
        let wallet = watch.wallet();
        let number = wallet.rescan_reserve().unwrap();
        wallet.rescan_start(number, 1).unwrap();
        while wallet.rescan_progress().is_some() {
            std::thread::yield_now();
        }
    };
    rescan();
    rescan();
    let log = harness.manager.select(Some("watch")).unwrap().log(0, 10).unwrap();
    let told: Vec<_> = log.entries.iter().map(|entry| (entry.kind, entry.txid, entry.height)).collect();
    assert_eq!(told, [(LogKind::Confirmed, id(&paid), Some(1)), (LogKind::Deep, id(&paid), Some(1))]);
    assert_eq!(news(&harness, &mut seen), []);
}

#[test]
fn an_import_that_makes_a_payment_ours_logs_it_again() {
    let harness = Harness::with_wallet();
    harness.create("watch", |options| (options.disable_private_keys, options.blank) = (true, true));
    let view = || harness.manager.select(Some("watch")).unwrap();
    let import = |script: &bitcoin::ScriptBuf| {
        view().wallet().import(vec![super::descriptor(&format!("raw({})", script.to_hex_string()), |_| {})]).unwrap();
    };
    import(&foreign(1));
    let paid = spend(&[elsewhere(1)], &[(&foreign(1), 7), (&foreign(2), 8)]);
    harness.mine(vec![paid.clone()]);
    assert_eq!(view().log(0, 10).unwrap().entries[0].payments.len(), 1);
    import(&foreign(2));
    let log = view().log(0, 10).unwrap();
    let told: Vec<_> = log.entries.iter().map(|entry| (entry.kind, entry.payments.len())).collect();
    assert_eq!(told, [(LogKind::Confirmed, 2), (LogKind::Confirmed, 2)]);
}

#[test]
fn the_log_drops_the_oldest_entries_and_says_so() {
    let harness = Harness::with_wallet();
    let script = harness.address(Some(""));
    for number in 1..=5 {
        harness.accept(&spend(&[elsewhere(number)], &[(&script, 7)]));
    }
    let numbers: Vec<u64> = log(&harness).entries.iter().map(|entry| entry.number).collect();
    let drop = |oldest: u64, most: u64| {
        let wallet = harness.view().wallet().clone();
        wallet
            .write(|write| {
                let mut state = get(write.t.meta, write.reads(), LOG_STATE)?.unwrap_or_default();
                write.drop_old(&mut state, oldest, most)?;
                write.store_row(write.t.meta, LOG_STATE, &state)
            })
            .unwrap();
        let log = log(&harness);
        assert_eq!(log.last, numbers[4]);
        (log.entries.iter().map(|entry| entry.number).collect::<Vec<_>>(), log.dropped)
    };
    assert_eq!(drop(0, 5), (numbers.clone(), 0));
    assert_eq!(drop(0, 3), (numbers[2..].to_vec(), numbers[1]));
    assert_eq!(drop(numbers[3], 5), (numbers[3..].to_vec(), numbers[2]));
    assert_eq!(drop(u64::MAX, 5), (vec![], numbers[4]));
    harness.accept(&spend(&[elsewhere(6)], &[(&script, 7)]));
    assert!(log(&harness).entries[0].number > numbers[4]);
}

/// Copies a wallet's rows into a new file without the tables and the state of the log. Builds without a log wrote such files.
fn copy_without_log(store: &Store, folder: &Path) {
    let tables = u32::try_from(NAMES.len()).unwrap();
    let opening = Opening { map_size: settings().least_map, max_readers: settings().max_readers, tables, lazy: false };
    let env = Environment::open(folder, &opening).unwrap();
    let (from, mut txn) = (store.read().unwrap(), env.write().unwrap());
    for (name, table) in NAMES.iter().copied().zip(store.tables.all()).filter(|(name, _)| !LATER.contains(name)) {
        let to = env.make_table(&mut txn, name).unwrap();
        for row in table.iter(&from).unwrap() {
            let (key, value) = row.unwrap();
            if key != LOG_STATE {
                to.put(&mut txn, key, value).unwrap();
            }
        }
    }
    txn.commit().unwrap();
}

#[test]
fn a_wallet_of_a_former_build_can_be_inspected_and_is_loaded_with_an_empty_log() {
    let mut harness = Harness::with_wallet();
    let script = harness.address(Some(""));
    harness.mine(vec![spend(&[elsewhere(1)], &[(&script, 7)])]);
    harness.view();
    harness.restart(|harness| {
        let (folder, former) = (harness.dir.path().join("w"), harness.dir.path().join("former"));
        fs::create_dir(&former).unwrap();
        copy_without_log(&Store::open(&folder, &settings()).unwrap(), &former);
        let path = folder.join(DATA_FILE);
        fs::rename(former.join(DATA_FILE), &path).unwrap();
        fs::remove_dir_all(former).unwrap();
        let file = File::open(&path).unwrap();
        check_file(&file, &path).unwrap();
        let contents = WalletContents::of_file(&file, &path).unwrap();
        assert_eq!(contents.transactions(), 1);
        assert!(LATER.iter().all(|name| !contents.rows.contains_key(*name)));
    });
    assert_eq!((log(&harness).entries, log(&harness).last), (vec![], 0));
    let paid = spend(&[elsewhere(2)], &[(&script, 7)]);
    harness.accept(&paid);
    assert_eq!(news(&harness, &mut 0), [(LogKind::Seen, id(&paid), None)]);
    harness.restart(|_| {});
    assert_eq!(news(&harness, &mut 0), [(LogKind::Seen, id(&paid), None)]);
}

#[test]
fn the_log_leaves_out_a_transaction_that_comes_and_goes_within_one_write() {
    let harness = Harness::with_wallet();
    let other = spend(&[elsewhere(2)], &[(&harness.address(Some("")), 9)]);
    let comes_and_goes = |write: &mut Write<'_>| {
        write.enter_mempool(&other, 1)?;
        let row = write.t.transaction(write.reads(), &id(&other))?.unwrap();
        write.remove(row)
    };
    harness.view().wallet().write(comes_and_goes).unwrap();
    assert_eq!(news(&harness, &mut 0), []);
}

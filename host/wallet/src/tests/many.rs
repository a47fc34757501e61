//! Many wallets: the cost of a block or transaction for untouched wallets, and the failure of one wallet.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bitcoin::{Amount, OutPoint};
use outrigger_service::ErrorKind;
use outrigger_service::events::Event;
use outrigger_service::wallet::{AddressType, TxState};
use parking_lot::Mutex;

use super::busy::{Busy, at_once};
use super::{Harness, elsewhere, foreign, kind_of, settings, spend};
use crate::follow::THREADS;
use crate::{Settings, Wallet, WalletManager};

fn wallet(harness: &Harness, name: &str) -> Arc<Wallet> {
    harness.manager.select(Some(name)).unwrap().wallet().clone()
}

fn stored(wallet: &Wallet) -> u32 {
    wallet.store.tables.synced(&wallet.store.read().unwrap()).unwrap().height
}

#[test]
fn a_block_that_does_not_touch_a_wallet_moves_it_on_in_memory() {
    let harness = Harness::with_wallet();
    let (w, script) = (wallet(&harness, "w"), harness.address(Some("")));
    for height in 1..=3 {
        let hash = harness.mine(vec![spend(&[elsewhere(1)], &[(&foreign(1), 5)])]);
        let synced = harness.view().info().unwrap().synced;
        assert_eq!((synced.hash, synced.height, stored(&w)), (hash, height, 0));
    }
    // Every write stores the position.
    harness.view().wallet().set_label(script.clone(), "rent".into()).unwrap();
    assert_eq!(stored(&w), 3);
    harness.mine(vec![]);
    assert_eq!((harness.view().info().unwrap().synced.height, stored(&w)), (4, 3));
    harness.mine(vec![spend(&[elsewhere(2)], &[(&script, 5)])]);
    assert_eq!((harness.view().info().unwrap().synced.height, stored(&w)), (5, 5));
}

#[test]
fn unloadwallet_and_a_stop_store_how_far_the_wallet_has_followed() {
    let harness = Harness::with_wallet();
    harness.create("v", |_| {});
    harness.mine(vec![]);
    let (w, v) = (wallet(&harness, "w"), wallet(&harness, "v"));
    assert_eq!((stored(&w), stored(&v)), (0, 0));
    harness.manager.unload("w".into(), None).unwrap();
    assert_eq!((stored(&w), stored(&v)), (1, 0));
    harness.manager.shutdown();
    assert_eq!(stored(&v), 1);
}

#[test]
fn maintenance_stores_the_position_of_wallets_that_are_100_blocks_ahead() {
    let harness = Harness::with_wallet();
    let w = wallet(&harness, "w");
    // A wallet stores its position once 100 blocks have not touched it.
    for height in 1..100 {
        harness.mine(vec![]);
        harness.manager.follower.run_maintenance();
        assert_eq!(stored(&w), 0, "{height}");
    }
    harness.mine(vec![]);
    assert_eq!(harness.view().info().unwrap().synced.height, 100);
    harness.manager.follower.run_maintenance();
    assert_eq!(stored(&w), 100);
}

#[test]
fn a_crash_reads_again_what_was_followed_in_memory() {
    let harness = Harness::with_wallet();
    let script = harness.address(Some(""));
    harness.mine(vec![]);
    harness.mine(vec![]);
    assert_eq!(harness.view().info().unwrap().synced.height, 2);
    // The file as a crash leaves it.
    let (from, to) = (harness.dir.path().join("w"), harness.dir.path().join("crashed"));
    std::fs::create_dir(&to).unwrap();
    std::fs::copy(from.join("data.mdb"), to.join("data.mdb")).unwrap();
    harness.manager.load("crashed".into(), None).unwrap();
    let payment = spend(&[elsewhere(1)], &[(&script, 7)]);
    let hash = harness.mine(vec![payment.clone()]);
    for name in ["w", "crashed"] {
        let view = harness.manager.select(Some(name)).unwrap();
        assert_eq!((view.info().unwrap().synced.hash, view.info().unwrap().transactions), (hash, 1));
    }
}

#[test]
fn a_reorganisation_that_touches_nobody_is_followed_in_memory() {
    let harness = Harness::with_wallet();
    let w = wallet(&harness, "w");
    harness.mine_to(harness.address(Some("")), vec![]);
    // Waits for the wallet: its pending write would store later positions, too.
    assert_eq!(harness.view().info().unwrap().synced.height, 1);
    let fork = harness.mine(vec![]);
    harness.mine(vec![]);
    harness.disconnect();
    let at = |harness: &Harness| harness.view().info().unwrap().synced.hash;
    assert_eq!((at(&harness), stored(&w)), (fork, 1));
    let hash = harness.mine_to(foreign(9), vec![]);
    assert_eq!((at(&harness), stored(&w)), (hash, 1));
    // Also disconnects the block that paid the wallet, which touches it.
    (0..3).for_each(|_| harness.disconnect());
    assert_eq!((harness.view().info().unwrap().synced.height, stored(&w)), (0, 0));
}

#[test]
fn a_transaction_of_the_mempool_wakes_only_the_wallets_that_it_concerns() {
    let harness = Harness::with_wallet();
    harness.create("v", |_| {});
    let (w, v) = (wallet(&harness, "w"), wallet(&harness, "v"));
    let before = (w.feed.pushed(), v.feed.pushed());
    let payment = spend(&[elsewhere(1)], &[(&harness.address(Some("")), 9)]);
    harness.accept(&payment);
    // A busy wallet would get every event, so it has to become idle first.
    assert_eq!(harness.known(payment.compute_txid()).state, TxState::InMempool);
    harness.accept(&spend(&[elsewhere(2)], &[(&foreign(1), 9)]));
    assert_eq!(harness.view().info().unwrap().transactions, 1);
    assert_eq!((w.feed.pushed(), v.feed.pushed()), (before.0 + 1, before.1));
    // Its removal touches the same wallets.
    harness.take_out(payment.compute_txid(), outrigger_node::events::Removal::Dropped);
    assert_eq!(harness.known(payment.compute_txid()).state, TxState::Inactive);
    assert_eq!((w.feed.pushed(), v.feed.pushed()), (before.0 + 2, before.1));
}

#[test]
fn wallets_that_are_written_to_hold_no_thread() {
    let harness = Harness::with_wallet();
    let scripts: Vec<_> = (0..THREADS + 2)
        .map(|number| {
            let name = format!("busy{number}");
            harness.create(&name, |_| {});
            let kind = AddressType::Bech32;
            (wallet(&harness, &name), wallet(&harness, &name).new_address(kind, false, None).unwrap())
        })
        .collect();
    let writes: Vec<Busy> = scripts.iter().map(|(wallet, _)| Busy::of(wallet.clone())).collect();
    // A block that touches all of them, and `w`.
    let own = harness.address(Some(""));
    let mut outputs: Vec<_> = scripts.iter().map(|(_, script)| (script, 5)).collect();
    outputs.push((&own, 5));
    let hash = harness.mine(vec![spend(&[elsewhere(1)], &outputs)]);
    let info = at_once(&harness, |manager| manager.select(Some("w")).unwrap().info().unwrap());
    assert_eq!((info.synced.hash, info.transactions), (hash, 1));
    drop(writes);
    for (wallet, _) in &scripts {
        let info = harness.manager.select(Some(wallet.name())).unwrap().info().unwrap();
        assert_eq!((info.synced.hash, info.transactions), (hash, 1));
    }
}

#[test]
fn a_panic_while_following_fails_that_wallet_alone_and_wakes_its_callers() {
    let harness = Harness::with_wallet();
    harness.create("v", |_| {});
    harness.manager.shutdown();
    // The sink panics once, on an event of `w`.
    let armed = Arc::new(Mutex::new(true));
    let trap = armed.clone();
    let sink = move |event| {
        let told = matches!(&event, Event::WalletTransaction { wallet, .. } if wallet == "w");
        assert!(!(told && std::mem::take(&mut *trap.lock())), "the trap");
    };
    let manager = WalletManager::open(harness.dir.path(), settings(), harness.node.clone(), Arc::new(sink));
    let harness = Harness { manager: manager.unwrap(), ..harness };
    let (script, other) = (harness.address(Some("")), wallet(&harness, "v"));
    let payment = spend(&[elsewhere(1)], &[(&script, 9)]);
    let hash = harness.mine(vec![payment]);
    let refused = harness.manager.select(Some("w")).err().unwrap();
    assert_eq!(refused.kind, ErrorKind::Storage);
    assert!(refused.detail.contains("\"w\"") && refused.detail.contains("the trap"), "{}", refused.detail);
    assert!(harness.manager.status()[0].lagging);
    assert_eq!(harness.manager.select(Some("v")).unwrap().info().unwrap().synced.hash, hash);
    drop(other);
    // Loading the wallet again repairs it.
    harness.manager.unload("w".into(), None).unwrap();
    assert_eq!(kind_of(harness.manager.select(Some("w")).map(drop)), ErrorKind::WalletNotLoaded);
    harness.manager.load("w".into(), None).unwrap();
    assert_eq!(harness.view().info().unwrap().transactions, 1);
}

#[test]
fn wallets_that_are_loaded_at_the_start_read_each_block_once_and_what_concerns_them_of_the_mempool() {
    let mut harness = Harness::with_wallet();
    let names = ["w", "a", "b", "c", "d"];
    names.iter().skip(1).for_each(|name| harness.create(name, |_| {}));
    let scripts = names.map(|name| {
        let view = harness.manager.select(Some(name)).unwrap();
        view.wallet().new_address(AddressType::Bech32, false, Some(String::new())).unwrap()
    });
    let waiting = spend(&[elsewhere(1)], &[(&scripts[1], 5), (&foreign(1), 6)]);
    let mut paid = Vec::new();
    harness.restart(|harness| {
        // More blocks than the cache holds. The payments of each wallet are far apart.
        for number in 0..60 {
            let payment = spend(&[elsewhere(10 + number)], &[(&scripts[number as usize % names.len()], 7)]);
            paid.push(payment.compute_txid());
            harness.chain.mine_to(foreign(0), vec![payment]);
        }
        harness.mempool.add(waiting.clone(), Amount::from_sat(1000));
    });
    let read = harness.manager.follower.blocks.read.load(Ordering::Relaxed);
    assert_eq!(read, 60, "each block once for all wallets");
    for (number, name) in names.iter().enumerate() {
        let view = harness.manager.select(Some(name)).unwrap();
        assert_eq!(view.info().unwrap().synced.height, 60, "{name}");
        let own: Vec<_> = paid.iter().skip(number).step_by(names.len()).copied().collect();
        assert_eq!(view.transactions(&own).unwrap().view().unwrap().rows.len(), 12, "{name}");
        let known = view.transactions(&[waiting.compute_txid()]).unwrap().view().unwrap().rows.len();
        assert_eq!(known, usize::from(number == 1), "{name}");
    }
}

#[test]
fn wallets_far_behind_at_the_start_find_what_the_mempool_spends_of_the_blocks_they_missed() {
    let mut harness = Harness::with_wallet();
    let script = harness.address(Some(""));
    let payment = spend(&[elsewhere(1)], &[(&script, 70)]);
    let coin = OutPoint { txid: payment.compute_txid(), vout: 0 };
    let waiting = spend(&[coin], &[(&foreign(1), 60)]);
    harness.restart_with(Settings { search_from: 10, ..settings() }, |harness| {
        harness.chain.mine_to(foreign(0), vec![payment.clone()]);
        for _ in 0..30 {
            harness.chain.mine_to(foreign(0), Vec::new());
        }
        harness.mempool.add(waiting.clone(), Amount::from_sat(10));
    });
    assert_eq!(harness.known(waiting.compute_txid()).state, TxState::InMempool);
    assert!(harness.coins().is_empty());
}

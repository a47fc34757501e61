use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bitcoin::{OutPoint, ScriptBuf};
use outrigger_descriptor::{Checksum, Descriptor};
use outrigger_scripted_node::ScriptedNode;
use outrigger_sdk::testing::StubChain;
use outrigger_service::chain::BlockRef;
use outrigger_service::events::{Event, RescanOutcome};
use outrigger_service::wallet::TxState;
use outrigger_service::{Chain, Scope};

use crate::store::RescanRow;

use super::{Harness, XPRV, descriptor, elsewhere, foreign, spend, until};

const TEXT: &str = "wpkh(cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87JcbXMTcA)";

pub(super) fn scripts_of(text: &str) -> impl Fn(u32) -> ScriptBuf {
    let parsed = Descriptor::parse(text, bitcoin::Network::Regtest, Checksum::Optional).unwrap();
    move |index| parsed[0].expand(index).unwrap().scripts[0].script_pubkey.clone()
}

fn script() -> ScriptBuf {
    scripts_of(TEXT)(0)
}

pub(super) fn finished(harness: &Harness) -> RescanOutcome {
    finished_of(harness, "w")
}

pub(super) fn finished_of(harness: &Harness, name: &str) -> RescanOutcome {
    let found = || {
        harness.events.lock().iter().find_map(|event| match event {
            Event::RescanFinished { wallet, outcome, .. } if wallet == name => Some(outcome.clone()),
            _ => None,
        })
    };
    until("the rescan ends", || found().is_some());
    found().unwrap()
}

/// 60 blocks. The 10th and the 50th pay to the script.
fn history(chain: &StubChain) {
    for height in 1..=60_u8 {
        let payment = spend(&[elsewhere(height)], &[(&script(), u64::from(height))]);
        chain.mine_to(foreign(0), if [10, 50].contains(&height) { vec![payment] } else { vec![] });
    }
}

/// The blank wallet `w` after this history.
fn with_history() -> Harness {
    let harness = Harness::new();
    history(&harness.chain);
    harness.create("w", |options| options.blank = true);
    harness
}

/// The values of the coins, ascending.
fn values(harness: &Harness) -> Vec<u64> {
    let mut values: Vec<u64> = harness.coins().iter().map(|coin| coin.value.to_sat()).collect();
    values.sort_unstable();
    values
}

fn time_at(harness: &Harness, height: u32) -> u64 {
    let info = harness.chain.block_info(Scope::NONE, BlockRef::Height { height }).unwrap().unwrap();
    u64::from(u32::from_le_bytes(info.header[68..72].try_into().unwrap()))
}

#[test]
fn rescan_shows_each_payment_at_the_time_of_its_block_and_takes_the_wallet_back_to_it() {
    let harness = Harness::new();
    history(&harness.chain);
    let now = time_at(&harness, 60) + 1000;
    harness.chain.set_mock_time(Scope::NONE, now).unwrap();
    harness.create("w", |options| options.blank = true);
    let wallet = harness.view();
    wallet.wallet().import(vec![descriptor(TEXT, |import| import.timestamp = now)]).unwrap();
    assert_eq!(harness.view().info().unwrap().birth_time, now);
    // The later payment is found first.
    for (from, height) in [(51, 50), (1, 10)] {
        let rescan = wallet.wallet().rescan_reserve().unwrap();
        wallet.wallet().rescan_start(rescan, time_at(&harness, from)).unwrap();
        assert_eq!(finished(&harness), RescanOutcome::Complete);
        harness.events.lock().clear();
        let payment = spend(&[elsewhere(height)], &[(&script(), u64::from(height))]);
        let known = harness.known(payment.compute_txid());
        let block_time = time_at(&harness, u32::from(height));
        assert_eq!((known.time, known.time_received), (block_time, now));
        assert_eq!(harness.view().info().unwrap().birth_time, block_time);
    }
}

#[test]
fn a_rescan_of_heights_looks_at_these_blocks_alone() {
    let harness = with_history();
    let wallet = harness.view().wallet().clone();
    wallet.import(vec![descriptor(TEXT, |_| {})]).unwrap();
    for (first, last, found) in [
        (11, Some(49), &[][..]),
        (10, Some(10), &[10]),
        (11, Some(49), &[10]),
        (11, None, &[10, 50]),
        (60, Some(99), &[10, 50]),
    ] {
        let rescan = wallet.rescan_reserve().unwrap();
        wallet.rescan_heights(rescan, first, last).unwrap();
        assert_eq!(finished(&harness), RescanOutcome::Complete);
        assert_eq!(values(&harness), found, "{first} {last:?}");
        harness.events.lock().clear();
    }
}

/// Blocks that pay to indexes of a descriptor, each near the end of the scripts derived by the payments before it.
fn ladder(text: &str, steps: u32) -> (Arc<ScriptedNode>, Vec<u64>) {
    let at = scripts_of(text);
    let node = ScriptedNode::new();
    let chain = &node.chain;
    for step in 0..steps {
        let from = OutPoint { vout: step, ..elsewhere(1) };
        chain.mine_to(foreign(0), vec![spend(&[from], &[(&at(step * 19), u64::from(step) + 1)])]);
        chain.mine_to(foreign(0), vec![]);
    }
    (node, (1..=u64::from(steps)).collect())
}

/// The values of the coins of a wallet that imports 20 scripts of a descriptor and scans the whole chain.
fn found_by(harness: &Harness, text: &str) -> Vec<u64> {
    harness.create("w", |options| options.blank = true);
    let wallet = harness.view().wallet().clone();
    let rescan = wallet.rescan_reserve().unwrap();
    wallet.import(vec![descriptor(text, |import| import.range = Some((0, 19)))]).unwrap();
    wallet.rescan_start(rescan, 1).unwrap();
    assert_eq!(finished(harness), RescanOutcome::Complete);
    values(harness)
}

#[test]
fn rescan_follows_payments_to_more_scripts_and_these_to_more_payments() {
    // The first path can be derived in advance, the second only with its private key.
    for (path, steps) in [("/*", 120), ("/*h", 12)] {
        let text = format!("wpkh({XPRV}{path})");
        let (node, values) = ladder(&text, steps);
        let harness = Harness::over(node);
        assert_eq!(found_by(&harness, &text), values, "{path}");
        let next = harness.view().descriptors(false).unwrap()[0].next_index;
        assert_eq!(next, (steps - 1) * 19 + 1);
    }
}

#[test]
fn a_block_that_leads_to_more_scripts_is_looked_through_for_them_too() {
    let text = format!("wpkh({XPRV}/*)");
    let at = scripts_of(&text);
    let harness = Harness::new();
    // In each block one payment derives the script of the other: the earlier payment in the first block, the later one
    // in the second.
    for (number, indexes) in [[15, 30], [60, 45]].into_iter().enumerate() {
        let pay = |index| spend(&[OutPoint { vout: index, ..elsewhere(1) }], &[(&at(index), u64::from(index))]);
        harness.mine(indexes.into_iter().map(pay).collect());
        assert_eq!(harness.chain.tip(Scope::NONE).unwrap().height as usize, number + 1);
    }
    assert_eq!(found_by(&harness, &text), [15, 30, 45, 60]);
}

#[test]
fn rescan_that_finds_payments_near_the_end_looks_again_for_more_scripts() {
    let text = format!("wpkh({XPRV}/*)");
    let at = scripts_of(&text);
    // Of 20 scripts, the last 4 count as the end. The later blocks derive the scripts that the earlier ones pay to.
    for (paid, found, widened) in [
        (&[70, 52, 35, 18][..], &[18, 35, 52, 70][..], true),
        (&[20, 15][..], &[15][..], false),
        (&[20, 16][..], &[16, 20][..], true),
        (&[90, 18][..], &[18][..], true),
    ] {
        let harness = Harness::new();
        for index in paid {
            harness.chain.mine_to(
                foreign(0),
                vec![spend(&[OutPoint { vout: *index, ..elsewhere(1) }], &[(&at(*index), u64::from(*index))])],
            );
        }
        assert_eq!(found_by(&harness, &text), found, "{paid:?}");
        let blocks = u32::try_from(paid.len()).unwrap();
        let told = harness.events.lock().iter().any(|event| {
            matches!(event, Event::RescanFinished { last_height, widened: told, .. } if *told == widened && *last_height == Some(blocks))
        });
        assert!(told, "{paid:?}: {:?}", harness.events.lock());
    }
}

#[test]
fn rescan_of_a_block_that_leaves_the_chain_meanwhile_confirms_nothing() {
    let harness = Arc::new(Harness::new());
    for height in 1..=5_u8 {
        let payment = spend(&[elsewhere(height)], &[(&script(), u64::from(height))]);
        harness.chain.mine_to(foreign(0), if height == 5 { vec![payment] } else { vec![] });
    }
    for name in ["w", "v"] {
        harness.create(name, |options| options.blank = true);
    }
    let wallet = harness.view().wallet().clone();
    wallet.import(vec![descriptor(TEXT, |_| {})]).unwrap();
    let rescan = wallet.rescan_reserve().unwrap();
    let meanwhile = harness.clone();
    let (done, changed) = std::sync::mpsc::channel();
    // The rescan queries the chain for its start, for the blocks, and for whether these are still in the chain.
    harness.node.faults.once_looked_at(3, move || {
        // Selecting another wallet waits until all wallets have received the events.
        meanwhile.disconnect();
        meanwhile.mine(vec![]);
        meanwhile.manager.select(Some("v")).unwrap();
        done.send(()).unwrap();
    });
    wallet.rescan_start(rescan, 1).unwrap();
    assert_eq!(finished(&harness), RescanOutcome::Complete);
    changed.recv_timeout(Duration::from_secs(30)).expect("the chain has changed right before the write");
    let payment = spend(&[elsewhere(5)], &[(&script(), 5)]).compute_txid();
    let known = harness.transaction(payment);
    assert!(known.as_ref().is_none_or(|known| known.state == TxState::Inactive), "{known:?}");
    assert!(harness.coins().iter().all(|coin| coin.state == TxState::Inactive));
}

#[test]
fn a_stop_between_an_import_and_its_rescan_leaves_the_rescan() {
    let mut harness = with_history();
    let wallet = harness.view().wallet().clone();
    wallet.rescan_reserve().unwrap();
    wallet.import(vec![descriptor(TEXT, |_| {})]).unwrap();
    drop(wallet);
    harness.restart(|_| {});
    assert_eq!(finished(&harness), RescanOutcome::Complete);
    assert_eq!(harness.coins().len(), 2);
    // An aborted rescan does not resume.
    harness.events.lock().clear();
    let wallet = harness.view().wallet().clone();
    let rescan = wallet.rescan_reserve().unwrap();
    wallet.import(vec![descriptor(&format!("pkh({XPRV})"), |_| {})]).unwrap();
    wallet.rescan_release(rescan).unwrap();
    drop(wallet);
    harness.restart(|_| {});
    assert!(harness.view().info().unwrap().rescan.is_none());
    assert!(harness.events.lock().iter().all(|event| !matches!(event, Event::RescanFinished { .. })));
}

#[test]
fn a_block_that_cannot_be_read_is_told_and_does_not_stop_the_scan() {
    let harness = with_history();
    harness.node.faults.set_unreadable(10);
    let view = harness.view();
    view.wallet().import(vec![descriptor(TEXT, |_| {})]).unwrap();
    let rescan = view.wallet().rescan_reserve().unwrap();
    view.wallet().rescan_start(rescan, 1).unwrap();
    let block_time = u32::try_from(time_at(&harness, 10)).unwrap();
    assert_eq!(finished(&harness), RescanOutcome::Unreadable { block_time });
    assert_eq!(values(&harness), [50]);
}

#[test]
fn a_rescan_whose_node_is_away_goes_on_when_it_is_back_or_ends_when_it_is_aborted() {
    let harness = with_history();
    let wallet = harness.view().wallet().clone();
    wallet.import(vec![descriptor(TEXT, |_| {})]).unwrap();
    for abort in [true, false] {
        harness.events.lock().clear();
        let (node, (told, away)) = (harness.node.clone(), std::sync::mpsc::channel());
        // After the query for the start.
        harness.node.faults.once_looked_at(1, move || {
            node.faults.set_absent(true);
            told.send(()).unwrap();
        });
        let rescan = wallet.rescan_reserve().unwrap();
        wallet.rescan_start(rescan, 1).unwrap();
        away.recv_timeout(Duration::from_secs(30)).expect("the rescan has begun");
        if abort {
            assert!(wallet.rescan_abort().unwrap());
            assert_eq!(finished(&harness), RescanOutcome::Aborted);
            harness.node.faults.set_absent(false);
        } else {
            harness.node.faults.set_absent(false);
            assert_eq!(finished(&harness), RescanOutcome::Complete);
        }
    }
    assert_eq!(values(&harness), [10, 50]);
}

#[test]
fn an_aborted_scan_ends_and_one_cut_off_by_a_stop_goes_on() {
    let mut harness = Harness::new();
    history(&harness.chain);
    for _ in 0..100 {
        harness.chain.mine_to(foreign(0), vec![]);
    }
    harness.node.faults.set_slow(Duration::from_millis(30));
    harness.create("w", |options| options.blank = true);
    harness.view().wallet().import(vec![descriptor(TEXT, |_| {})]).unwrap();
    let wallet = harness.view().wallet().clone();
    let rescan = wallet.rescan_reserve().unwrap();
    wallet.rescan_start(rescan, 1).unwrap();
    assert!(harness.view().info().unwrap().rescan.is_some());
    assert!(wallet.rescan_abort().unwrap());
    assert_eq!(finished(&harness), RescanOutcome::Aborted);

    harness.events.lock().clear();
    let rescan = wallet.rescan_reserve().unwrap();
    wallet.rescan_start(rescan, 1).unwrap();
    drop(wallet);
    harness.restart(|harness| {
        assert_eq!(finished(harness), RescanOutcome::Aborted);
        harness.events.lock().clear();
        harness.node.faults.set_slow(Duration::ZERO);
    });
    assert_eq!(finished(&harness), RescanOutcome::Complete);
    assert_eq!(harness.coins().len(), 2);
}

#[test]
fn a_rescan_that_goes_on_tells_its_progress_from_where_it_began() {
    let harness = with_history();
    let wallet = harness.view().wallet().clone();
    let tip = harness.view().info().unwrap().synced.height;
    wallet.rescan_reserve().unwrap();
    // The rescan aborts before its first block, after reporting its progress.
    wallet.rescan.abort.store(true, Ordering::SeqCst);
    let told = |first_height, next_height| {
        let row = RescanRow { next_height, first_height, ..crate::rescan::begin(1) };
        wallet.rescan_all(row).unwrap();
        wallet.rescan_progress().unwrap().millionths
    };
    assert_eq!(told(None, Some(tip)), 0);
    assert_eq!(told(Some(1), Some(tip)), (tip - 1) * 1_000_000 / tip);
}

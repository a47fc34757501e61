use std::thread;

use bitcoin::OutPoint;
use bitcoin::consensus::serialize;
use outrigger_service::mempool::Admission;

use super::{Harness, elsewhere, foreign, spend};

fn two_coins(harness: &Harness) -> [OutPoint; 2] {
    let script = harness.address(Some(""));
    harness.mine(vec![spend(&[elsewhere(1)], &[(&script, 70)]), spend(&[elsewhere(2)], &[(&script, 70)])]);
    let coins = harness.coins();
    [coins[0].outpoint, coins[1].outpoint]
}

fn locked(harness: &Harness) -> Vec<OutPoint> {
    harness.view().wallet().locked_coins()
}

#[test]
fn lockunspent_outlives_a_restart_only_where_it_is_persistent() {
    let mut harness = Harness::with_wallet();
    let [one, other] = two_coins(&harness);
    let lock = |harness: &Harness, coin, persistent| {
        harness.view().wallet().lock_coins(vec![coin], persistent).unwrap();
    };
    lock(&harness, other, false);
    lock(&harness, one, true);
    // Locking again without `persistent` leaves the lock persistent.
    lock(&harness, one, false);
    assert_eq!(locked(&harness), [one, other]);
    harness.restart(|_| {});
    assert_eq!(locked(&harness), [one]);
    lock(&harness, other, true);
    harness.view().wallet().unlock_coins(&[one, elsewhere(9)]).unwrap();
    harness.restart(|_| {});
    assert_eq!(locked(&harness), [other]);
    harness.view().wallet().unlock_coins(&[other]).unwrap();
    harness.restart(|_| {});
    assert_eq!(locked(&harness), []);
}

#[test]
fn lockunspent_ends_when_a_transaction_of_the_wallet_spends_the_coin() {
    let mut harness = Harness::with_wallet();
    let [one, other] = two_coins(&harness);
    harness.view().wallet().lock_coins(vec![one, other], true).unwrap();
    let (first, second) = (spend(&[one], &[(&foreign(1), 60)]), spend(&[other], &[(&foreign(1), 60)]));
    harness.accept(&first);
    assert_eq!(locked(&harness), [other]);
    harness.restart(|harness| {
        harness.mine(vec![second]);
    });
    assert_eq!(locked(&harness), []);
    // The wallet locks foreign outputs, but not spent coins.
    harness.view().wallet().lock_coins(vec![one, elsewhere(5)], true).unwrap();
    assert_eq!(locked(&harness), [elsewhere(5)]);
}

#[test]
fn wait_for_all_waits_for_writers_but_not_for_unloaded_wallets() {
    let harness = Harness::with_wallet();
    let [one, other] = two_coins(&harness);
    let wallet = harness.view().wallet().clone();
    wallet.lock_coins(vec![one, other], false).unwrap();
    let as_it_stands = || harness.manager.select_as_it_stands(Some("w")).unwrap().wallet().locked_coins();
    thread::scope(|scope| {
        let writes = wallet.lock_writes();
        harness.accept(&spend(&[one], &[(&foreign(1), 60)]));
        let waiting = scope.spawn(|| harness.manager.wait_for_all());
        assert_eq!(as_it_stands(), [one, other], "the follower waits for the other writer");
        drop(writes);
        waiting.join().unwrap();
        assert_eq!(as_it_stands(), [other]);
    });
    harness.manager.unload("w".into(), None).unwrap();
    harness.accept(&spend(&[other], &[(&foreign(1), 60)]));
    harness.manager.wait_for_all();
}

#[test]
fn lockunspent_ends_with_a_payment_that_is_kept_though_the_mempool_refuses_it() {
    let mut harness = Harness::with_wallet();
    let [one, other] = two_coins(&harness);
    let wallet = harness.view().wallet().clone();
    wallet.lock_coins(vec![one], true).unwrap();
    wallet.lock_coins(vec![other], false).unwrap();
    // Pays more than it spends.
    let refused = wallet.send(None, &serialize(&spend(&[one, other], &[(&foreign(1), 600)])), Vec::new()).unwrap();
    assert!(matches!(refused, Some(Admission::Rejected { .. } | Admission::MissingInputs)), "{refused:?}");
    assert_eq!(locked(&harness), []);
    drop(wallet);
    harness.restart(|_| {});
    assert_eq!(locked(&harness), []);
}

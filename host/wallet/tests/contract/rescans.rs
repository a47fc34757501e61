use crate::tester::{Tester, WALLET, foreign, out, p2wpkh, pay, refused, same, single, spend, watch};
use outrigger_service::wallet::TxState;
use outrigger_service::{ErrorKind, Result as ServiceResult};

const TWO_HOURS: u64 = 7200;

fn reserve(tester: &Tester) -> ServiceResult<u64> {
    tester.ask(|host, scope| host.import.rescan_reserve(scope))
}

fn release(tester: &Tester, rescan: u64) -> ServiceResult<()> {
    tester.ask(|host, scope| host.import.rescan_release(scope, rescan))
}

fn start(tester: &Tester, rescan: u64, from_time: u64) -> ServiceResult<()> {
    tester.ask(|host, scope| host.import.rescan_start(scope, rescan, from_time))
}

#[test]
fn there_is_one_rescan() {
    let tester = &Tester::with(|_| {});
    tester.try_create("other", |_| {}).unwrap();
    let first = reserve(tester).unwrap();
    refused("a second one", reserve(tester), ErrorKind::WalletRescanning);
    tester.of(Some("other"), |host, scope| host.import.rescan_reserve(scope)).unwrap();
    release(tester, first).unwrap();
    let second = reserve(tester).unwrap();
    assert!(second != first, "its number is a new one");
    start(tester, second, 1).unwrap();
    tester.await_rescan();
    let third = reserve(tester).unwrap();
    assert!(third != first && third != second, "its number is a new one");
}

#[test]
fn a_reservation_is_given_back_by_its_number_only() {
    let tester = &Tester::with(|_| {});
    release(tester, 7).unwrap();
    let rescan = reserve(tester).unwrap();
    release(tester, rescan + 1).unwrap();
    refused("it is reserved still", reserve(tester), ErrorKind::WalletRescanning);
    release(tester, rescan).unwrap();
    release(tester, rescan).unwrap();
    reserve(tester).unwrap();
}

#[test]
fn what_is_not_reserved_cannot_be_started() {
    let tester = &Tester::with(|_| {});
    refused("nothing is reserved", start(tester, 1, 1), ErrorKind::NotFound);
    let rescan = reserve(tester).unwrap();
    refused("another number", start(tester, rescan + 1, 1), ErrorKind::NotFound);
    release(tester, rescan).unwrap();
    refused("what was given back", start(tester, rescan, 1), ErrorKind::NotFound);
    let rescan = reserve(tester).unwrap();
    start(tester, rescan, 1).unwrap();
    tester.await_rescan();
    refused("what has come to its end", start(tester, rescan, 1), ErrorKind::NotFound);
}

#[test]
fn a_wallet_with_a_reserved_rescan_stays_loaded() {
    let tester = &Tester::with(|_| {});
    let rescan = reserve(tester).unwrap();
    refused("unloading it", tester.unload(WALLET), ErrorKind::WalletRescanning);
    release(tester, rescan).unwrap();
    tester.unload(WALLET).unwrap();
}

#[test]
fn a_rescan_begins_two_hours_before_its_time() {
    let tester = &Tester::with(|_| {});
    let script = foreign(9);
    let mut times = Vec::new();
    for number in 1..=20 {
        tester.mine(&[&pay(number, &script, u64::from(number))]);
        times.push(u64::from(tester.tip().time));
    }
    tester.take(watch(&script));
    let found = |tester: &Tester| {
        let mut values: Vec<u64> = tester.coins().iter().map(|coin| coin.value.to_sat()).collect();
        values.sort_unstable();
        values
    };
    for (position, from) in [(15, 16), (8, 9)] {
        // The block at this position is the first whose time is at most two hours earlier.
        let time = times.get(position).copied().unwrap_or_default();
        tester.rescan(time + TWO_HOURS);
        same("what it finds", found(tester), (from..=20).collect());
    }
    tester.rescan(u64::from(u32::MAX) * 2);
    tester.rescan(0);
    same("all of it", found(tester), (1..=20).collect());
}

#[test]
fn a_rescan_offers_what_is_idle_to_the_mempool() {
    let tester = &Tester::with(|_| {});
    tester.take(single(1));
    let payment = pay(1, &p2wpkh(1), 70);
    tester.mine(&[&payment]);
    let [kept, dropped] = [60, 50].map(|value| spend(&[out(&payment, 0)], &[(&foreign(1), value)]));
    tester.accept(&dropped);
    tester.take_out(dropped.compute_txid());
    tester.ask(|host, scope| host.pay.abandon(scope, dropped.compute_txid())).unwrap();
    tester.accept(&kept);
    tester.take_out(kept.compute_txid());
    tester.rescan(1);
    same("what was idle", tester.known(kept.compute_txid()).state, TxState::InMempool);
    same("what was given up", tester.known(dropped.compute_txid()).state, TxState::Abandoned);
}

#[test]
fn a_reserved_rescan_is_reported_but_cannot_be_aborted() {
    let tester = &Tester::with(|_| {});
    let abort = || tester.ask(|host, scope| host.import.rescan_abort(scope));
    same("there is none to abort", abort().unwrap(), false);
    let rescan = reserve(tester).unwrap();
    same("a reserved one is none to abort", abort().unwrap(), false);
    same("but it is told of", tester.info().rescan.is_some(), true);
    start(tester, rescan, 1).unwrap();
    tester.await_rescan();
    same("one that is over is not", tester.info().rescan, None);
    same("one that is over neither", abort().unwrap(), false);
}

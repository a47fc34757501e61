//! The one rescan of a wallet.

use outrigger_service::wallet::TxState;
use outrigger_service::{ErrorKind, Result as ServiceResult};
use crate::testing::conformance::Outcome;
use crate::testing::conformance::bench::{
    Bench, WALLET, foreign, holds, out, p2wpkh, pay, refused, same, single, spend, watch,
};

/// Seconds in two hours.
const TWO_HOURS: u64 = 7200;

fn reserve(bench: &Bench<'_>) -> ServiceResult<u64> {
    bench.ask(|wallet, scope| wallet.rescan_reserve(scope))
}

fn release(bench: &Bench<'_>, rescan: u64) -> ServiceResult<()> {
    bench.ask(|wallet, scope| wallet.rescan_release(scope, rescan))
}

fn start(bench: &Bench<'_>, rescan: u64, from_time: u64) -> ServiceResult<()> {
    bench.ask(|wallet, scope| wallet.rescan_start(scope, rescan, from_time))
}

pub fn there_is_one_rescan(bench: &Bench<'_>) -> Outcome {
    bench.create(|_| {})?;
    bench.try_create("other", |_| {})?;
    let first = reserve(bench)?;
    refused("a second one", reserve(bench), ErrorKind::WalletRescanning)?;
    bench.of(Some("other"), |wallet, scope| wallet.rescan_reserve(scope))?;
    release(bench, first)?;
    let second = reserve(bench)?;
    holds("its number is a new one", second != first)?;
    start(bench, second, 1)?;
    bench.await_rescan()?;
    let third = reserve(bench)?;
    holds("its number is a new one", third != first && third != second)
}

pub fn a_reservation_is_given_back_by_its_number_only(bench: &Bench<'_>) -> Outcome {
    bench.create(|_| {})?;
    release(bench, 7)?;
    let rescan = reserve(bench)?;
    release(bench, rescan + 1)?;
    refused("it is reserved still", reserve(bench), ErrorKind::WalletRescanning)?;
    release(bench, rescan)?;
    release(bench, rescan)?;
    reserve(bench)?;
    Ok(())
}

pub fn what_is_not_reserved_cannot_be_started(bench: &Bench<'_>) -> Outcome {
    bench.create(|_| {})?;
    refused("nothing is reserved", start(bench, 1, 1), ErrorKind::NotFound)?;
    let rescan = reserve(bench)?;
    refused("another number", start(bench, rescan + 1, 1), ErrorKind::NotFound)?;
    release(bench, rescan)?;
    refused("what was given back", start(bench, rescan, 1), ErrorKind::NotFound)?;
    let rescan = reserve(bench)?;
    start(bench, rescan, 1)?;
    bench.await_rescan()?;
    refused("what has come to its end", start(bench, rescan, 1), ErrorKind::NotFound)
}

pub fn a_wallet_with_a_reserved_rescan_stays_loaded(bench: &Bench<'_>) -> Outcome {
    bench.create(|_| {})?;
    let rescan = reserve(bench)?;
    refused("unloading it", bench.unload(WALLET), ErrorKind::WalletRescanning)?;
    release(bench, rescan)?;
    bench.unload(WALLET)?;
    Ok(())
}

pub fn a_rescan_finds_what_was_paid_before(bench: &Bench<'_>) -> Outcome {
    bench.create(|_| {})?;
    let script = p2wpkh(1)?;
    let payment = pay(1, &script, 70);
    let spending = spend(&[out(&payment, 0)], &[(&foreign(1), 20), (&script, 40)]);
    let waiting = spend(&[out(&spending, 1)], &[(&script, 30)]);
    bench.mine(&[&payment]);
    bench.mine(&[&pay(2, &foreign(2), 5)]);
    bench.mine(&[&spending]);
    bench.accept(&waiting);
    bench.take(single(1)?)?;
    bench.rescan(1)?;
    same("its coins", bench.outpoints()?, vec![out(&waiting, 0)])?;
    same("its transactions", bench.info()?.transactions, 3)?;
    same("what one spends", bench.known(spending.compute_txid())?.debit_spendable, 70)?;
    same("what waits", bench.known(waiting.compute_txid())?.state, TxState::InMempool)?;
    let before = bench.history(outrigger_service::wallet::HistoryRange::All, false, 5)?;
    bench.rescan(1)?;
    same("a second one finds nothing new", bench.history(outrigger_service::wallet::HistoryRange::All, false, 5)?, before)
}

pub fn a_rescan_begins_two_hours_before_its_time(bench: &Bench<'_>) -> Outcome {
    bench.create(|_| {})?;
    let script = foreign(9);
    let mut times = Vec::new();
    for number in 1..=20 {
        bench.mine(&[&pay(number, &script, u64::from(number))]);
        times.push(u64::from(bench.tip()?.time));
    }
    bench.take(watch(&script))?;
    let found = |bench: &Bench<'_>| -> Result<Vec<u64>, crate::testing::conformance::Failure> {
        let mut values: Vec<u64> = bench.coins()?.iter().map(|coin| coin.value).collect();
        values.sort_unstable();
        Ok(values)
    };
    for (position, from) in [(15, 16), (8, 9)] {
        // The block at this position is the first whose time is no more than two hours before.
        let time = times.get(position).copied().unwrap_or_default();
        bench.rescan(time + TWO_HOURS)?;
        same("what it finds", found(bench)?, (from..=20).collect())?;
    }
    bench.rescan(u64::from(u32::MAX) * 2)?;
    bench.rescan(0)?;
    same("all of it", found(bench)?, (1..=20).collect())
}

pub fn a_rescan_offers_what_is_idle_to_the_mempool(bench: &Bench<'_>) -> Outcome {
    bench.create(|_| {})?;
    bench.take(single(1)?)?;
    let payment = pay(1, &p2wpkh(1)?, 70);
    bench.mine(&[&payment]);
    let [kept, dropped] = [60, 50].map(|value| spend(&[out(&payment, 0)], &[(&foreign(1), value)]));
    bench.accept(&dropped);
    bench.take_out(dropped.compute_txid());
    bench.ask(|wallet, scope| wallet.abandon(scope, dropped.compute_txid()))?;
    bench.accept(&kept);
    bench.take_out(kept.compute_txid());
    bench.rescan(1)?;
    same("what was idle", bench.known(kept.compute_txid())?.state, TxState::InMempool)?;
    same("what was given up", bench.known(dropped.compute_txid())?.state, TxState::Abandoned)
}

pub fn a_reservation_is_told_of_and_is_none_to_abort(bench: &Bench<'_>) -> Outcome {
    bench.create(|_| {})?;
    let abort = || bench.ask(|wallet, scope| wallet.rescan_abort(scope));
    same("there is none to abort", abort()?, false)?;
    let rescan = reserve(bench)?;
    same("a reserved one is none to abort", abort()?, false)?;
    same("but it is told of", bench.info()?.rescan.is_some(), true)?;
    start(bench, rescan, 1)?;
    bench.await_rescan()?;
    same("one that is over is not", bench.info()?.rescan, None)?;
    same("one that is over neither", abort()?, false)
}

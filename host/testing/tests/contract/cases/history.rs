//! The history: its rows, their order, and reading it in parts.

use bitcoin::consensus::serialize;
use bitcoin::{ScriptBuf, Transaction, Txid, Witness};

use outrigger_service::ErrorKind;
use outrigger_service::wallet::{HistoryRange, Ownership, TxState, WalletOutput, WalletTransaction};
use crate::testing::conformance::bench::{
    Bench, foreign, holds, out, p2wpkh, pay, refused, same, single, spend,
};
use crate::testing::conformance::{Failure, Outcome};
use outrigger_service::wire::Blob;

const CONFIRMED: HistoryRange = HistoryRange::Confirmed { from_height: 0 };

/// The wallet `w` with one key, and its script.
fn with_key(bench: &Bench<'_>) -> Result<ScriptBuf, Failure> {
    bench.create(|_| {})?;
    bench.take(single(1)?)?;
    p2wpkh(1)
}

fn ids(transactions: &[&Transaction]) -> Vec<Txid> {
    transactions.iter().map(|transaction| transaction.compute_txid()).collect()
}

pub fn a_payment_is_told_with_all_that_is_stored_of_it(bench: &Bench<'_>) -> Outcome {
    let script = with_key(bench)?;
    let mut payment = spend(&[crate::testing::conformance::bench::elsewhere(1)], &[(&foreign(1), 30), (&script, 70)]);
    payment.lock_time = bitcoin::absolute::LockTime::from_consensus(7);
    for input in &mut payment.input {
        input.sequence = bitcoin::Sequence::ENABLE_RBF_NO_LOCKTIME;
    }
    bench.accept(&payment);
    let now = u64::from(bench.tip()?.time);
    let output = |value, script: &ScriptBuf, ours: bool| WalletOutput {
        value,
        script: script.clone(),
        ownership: if ours { Ownership::Spendable } else { Ownership::None },
        change: false,
        label: ours.then(|| "1".to_owned()),
        descriptors: if ours { vec![0] } else { Vec::new() },
    };
    let expected = WalletTransaction {
        contested: false,
        state: TxState::InMempool,
        txid: payment.compute_txid(),
        wtxid: payment.compute_wtxid(),
        arrival: 0,
        time: now,
        time_received: now,
        coinbase: false,
        signals: true,
        lock_time: 7,
        total_output: 100,
        debit_spendable: 0,
        debit_watch_only: 0,
        metadata: Vec::new(),
        inputs: payment.input.iter().map(|input| input.previous_output).collect(),
        outputs: vec![output(30, &foreign(1), false), output(70, &script, true)],
    };
    same("the payment", bench.known(payment.compute_txid())?, expected)?;
    let spending = spend(&[out(&payment, 1)], &[(&foreign(2), 60)]);
    bench.mine(&[&payment, &spending]);
    let known = bench.known(spending.compute_txid())?;
    same("what it spends of ours", (known.debit_spendable, known.debit_watch_only), (70, 0))?;
    same("it arrived second", known.arrival, 1)?;
    let height = bench.tip()?.height;
    let place = (bench.tip()?.hash, bench.tip()?.time);
    let state = TxState::Confirmed { block: place.0, height, index: 2, time: place.1 };
    same("its place in the chain", known.state, state)?;
    let coinbase = bench.mine_to(&script, &[]);
    let [row] = bench.history(HistoryRange::Confirmed { from_height: height + 1 }, false, 5)?.try_into().map_err(
        |rows: Vec<_>| Failure(format!("{} rows in block {coinbase}", rows.len())),
    )?;
    let row = row.transaction.0;
    same("a coinbase spends nothing", (row.coinbase, row.inputs), (true, Vec::new()))
}

pub fn what_does_not_concern_the_wallet_is_not_there(bench: &Bench<'_>) -> Outcome {
    with_key(bench)?;
    let stranger = pay(1, &foreign(1), 70);
    bench.accept(&stranger);
    bench.mine(&[&stranger]);
    same("its transactions", bench.info()?.transactions, 0)?;
    same("its rows", bench.rows(&ids(&[&stranger]))?.len(), 0)?;
    same("its history", bench.ids(HistoryRange::All, false)?, Vec::new())?;
    let raw = bench.ask(|wallet, scope| wallet.raw_transactions(scope, ids(&[&stranger])))?;
    same("its serialisation", raw, vec![None])
}

pub fn each_range_has_its_order_and_its_reverse(bench: &Bench<'_>) -> Outcome {
    let script = with_key(bench)?;
    let [one, two, three, four, five] = [1, 2, 3, 4, 5].map(|number| pay(number, &script, u64::from(number)));
    for transaction in [&one, &two, &three, &four, &five] {
        bench.accept(transaction);
    }
    bench.mine(&[&four]);
    // In a block the position counts, not the arrival.
    bench.mine(&[&three, &one]);
    bench.take_out(two.compute_txid());
    let rivals = [2, 5].map(|number| pay(number, &foreign(number), 1));
    let [rival, other] = &rivals;
    bench.mine(&[other]);
    bench.mine(&[rival]);
    let waiting = pay(6, &script, 6);
    bench.accept(&waiting);
    let both = |what: &str, range, mut expected: Vec<Txid>| -> Outcome {
        same(what, bench.ids(range, false)?, expected.clone())?;
        expected.reverse();
        same(what, bench.ids(range, true)?, expected)
    };
    both("by height and position", CONFIRMED, ids(&[&four, &three, &one]))?;
    both("by the conflict's height", HistoryRange::Conflicted { from_height: 0 }, ids(&[&five, &two]))?;
    both("what waits", HistoryRange::Unconfirmed, ids(&[&waiting]))?;
    both("by arrival", HistoryRange::All, ids(&[&one, &two, &three, &four, &five, &waiting]))
}

pub fn heights_bound_what_is_confirmed(bench: &Bench<'_>) -> Outcome {
    let script = with_key(bench)?;
    let [one, two] = [1, 2].map(|number| pay(number, &script, 5));
    bench.mine(&[&one]);
    bench.mine(&[&two]);
    for (from_height, expected) in [(1, ids(&[&one, &two])), (2, ids(&[&two])), (3, Vec::new()), (u32::MAX, Vec::new())]
    {
        let range = HistoryRange::Confirmed { from_height };
        same("from a height on", bench.ids(range, false)?, expected.clone())?;
        let reversed: Vec<Txid> = expected.into_iter().rev().collect();
        same("down to a height", bench.ids(range, true)?, reversed)?;
    }
    Ok(())
}

pub fn no_row_comes_twice_and_none_is_left_out(bench: &Bench<'_>) -> Outcome {
    let script = with_key(bench)?;
    let payments: Vec<Transaction> = (1..=9).map(|number| pay(number, &script, u64::from(number))).collect();
    payments.iter().for_each(|payment| bench.accept(payment));
    bench.mine(&payments.iter().take(5).collect::<Vec<_>>());
    let expected: Vec<Txid> = payments.iter().map(Transaction::compute_txid).collect();
    for limit in [1, 2, 4, 9, 100] {
        for reverse in [false, true] {
            for (range, count) in [(HistoryRange::All, 0..9), (CONFIRMED, 0..5), (HistoryRange::Unconfirmed, 5..9)] {
                let rows = bench.history(range, reverse, limit)?;
                let mut found: Vec<Txid> = rows.iter().map(|row| row.transaction.0.txid).collect();
                if reverse {
                    found.reverse();
                }
                let wanted = expected.get(count).unwrap_or_default().to_vec();
                same(&format!("{range:?} in batches of {limit}, reverse {reverse}"), found, wanted)?;
            }
        }
    }
    Ok(())
}

pub fn a_batch_holds_at_least_one_row(bench: &Bench<'_>) -> Outcome {
    let script = with_key(bench)?;
    bench.accept(&pay(1, &script, 1));
    bench.accept(&pay(2, &script, 2));
    let batch = bench.batch(HistoryRange::All, false, None, 0)?.read()?;
    same("rows of a batch of none", (batch.rows.len(), batch.next.is_some()), (1, true))?;
    let batch = bench.coin_batch(None, 0)?;
    same("coins of a batch of none", (batch.coins.len(), batch.next.is_some()), (1, true))?;
    bench.ask(|wallet, scope| wallet.set_label(scope, foreign(1), "x".into()))?;
    let batch = bench.label_batch(None, 0)?;
    same("entries of a batch of none", (batch.entries.len(), batch.next.is_some()), (1, true))
}

pub fn a_place_in_the_history_outlives_what_happens_meanwhile(bench: &Bench<'_>) -> Outcome {
    let script = with_key(bench)?;
    let [one, two, three, four] = [1, 2, 3, 4].map(|number| pay(number, &script, u64::from(number)));
    for transaction in [&one, &two, &three] {
        bench.accept(transaction);
    }
    let batch = bench.batch(HistoryRange::Unconfirmed, false, None, 2)?.read()?;
    same("the first two", batch.rows.len(), 2)?;
    let back = bench.batch(HistoryRange::Unconfirmed, true, None, 1)?.read()?;
    // The rows where both batches ended leave the range, and one comes to its end.
    bench.mine(&[&two, &three]);
    bench.accept(&four);
    let next = bench.batch(HistoryRange::Unconfirmed, false, batch.next, 5)?.read()?;
    let found: Vec<Txid> = next.rows.iter().map(|row| row.transaction.0.txid).collect();
    same("what comes after them now", found, ids(&[&four]))?;
    let next = bench.batch(HistoryRange::Unconfirmed, true, back.next, 5)?.read()?;
    let found: Vec<Txid> = next.rows.iter().map(|row| row.transaction.0.txid).collect();
    same("what comes before the last one now", found, ids(&[&one]))
}

pub fn a_place_that_no_batch_gave_is_malformed(bench: &Bench<'_>) -> Outcome {
    with_key(bench)?;
    for place in [Vec::new(), vec![1; 65]] {
        let after = || Some(Blob(place.clone()));
        for range in [CONFIRMED, HistoryRange::Unconfirmed, HistoryRange::All] {
            refused("in the history", bench.batch(range, false, after(), 5), ErrorKind::Malformed)?;
            refused("in the history, backwards", bench.batch(range, true, after(), 5), ErrorKind::Malformed)?;
        }
        refused("among the coins", bench.coin_batch(after(), 5), ErrorKind::Malformed)?;
        refused("in the address book", bench.label_batch(after(), 5), ErrorKind::Malformed)?;
    }
    Ok(())
}

pub fn transactions_come_in_the_order_asked_for(bench: &Bench<'_>) -> Outcome {
    let script = with_key(bench)?;
    let [one, two, three] = [1, 2, 3].map(|number| pay(number, &script, u64::from(number)));
    let stranger = pay(4, &foreign(4), 4);
    for transaction in [&one, &two, &three, &stranger] {
        bench.accept(transaction);
    }
    let asked = ids(&[&three, &stranger, &one, &three]);
    let found: Vec<Txid> = bench.rows(&asked)?.iter().map(|row| row.transaction.0.txid).collect();
    same("those that it has", found, ids(&[&three, &one, &three]))?;
    let raw = bench.ask(|wallet, scope| wallet.raw_transactions(scope, asked))?;
    let serialised = |transaction: &Transaction| Some(Blob(serialize(transaction)));
    same("their bytes", raw, vec![serialised(&three), None, serialised(&one), serialised(&three)])
}

pub fn the_newest_witness_is_the_one_that_is_told(bench: &Bench<'_>) -> Outcome {
    let script = with_key(bench)?;
    let payment = pay(1, &script, 7);
    bench.accept(&payment);
    let mut other = payment.clone();
    for input in &mut other.input {
        input.witness = Witness::from_slice(&[[1_u8; 3]]);
    }
    bench.mine(&[&other]);
    let known = bench.known(payment.compute_txid())?;
    same("its id with witness", known.wtxid, other.compute_wtxid())?;
    same("it is the same transaction", (known.arrival, bench.info()?.transactions), (0, 1))?;
    let raw = bench.ask(|wallet, scope| wallet.raw_transactions(scope, ids(&[&payment])))?;
    same("its bytes", raw, vec![Some(Blob(serialize(&other)))])
}

pub fn metadata_is_kept_sorted_by_key(bench: &Bench<'_>) -> Outcome {
    let script = with_key(bench)?;
    let payment = pay(1, &script, 7);
    let txid = payment.compute_txid();
    let set = |key: &str, value: &str| bench.ask(|w, scope| w.set_metadata(scope, txid, key.into(), value.into()));
    refused("before it is known", set("to", "x"), ErrorKind::NotFound)?;
    bench.accept(&payment);
    for (key, value) in [("to", "Anna"), ("comment", "rent"), ("x", "y"), ("to", "Bea"), ("x", "")] {
        set(key, value)?;
    }
    let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    let expected = pairs(&[("comment", "rent"), ("to", "Bea")]);
    same("each key once, and none that is empty", bench.known(txid)?.metadata, expected.clone())?;
    bench.mine(&[&payment]);
    same("after it is confirmed", bench.known(txid)?.metadata, expected)?;
    holds("nothing else changed", bench.known(txid)?.outputs.len() == 1)
}

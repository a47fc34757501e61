//! The history: its rows, their order, and its batches.

use std::collections::{BTreeMap, BTreeSet};

use bitcoin::consensus::serialize;
use bitcoin::{Amount, ScriptBuf, Transaction, Txid, Witness};

use crate::tester::{
    Tester, descriptor, elsewhere, foreign, out, p2wpkh, pay, refused, same, single, spend, watch, wif, with_key,
};
use outrigger_service::ErrorKind;
use outrigger_service::wallet::{
    HistoryRange, Ownership, Received, ReceivedBy, ReceivedQuery, TxState, WalletOutput, WalletTransaction,
};
use outrigger_service::wire::Blob;

const CONFIRMED: HistoryRange = HistoryRange::Confirmed { from_height: 0 };

fn ids(transactions: &[&Transaction]) -> Vec<Txid> {
    transactions.iter().map(|transaction| transaction.compute_txid()).collect()
}

#[test]
fn a_history_row_has_all_stored_fields_of_a_payment() {
    let tester = &Tester::new();
    let script = with_key(tester);
    let mut payment = spend(&[elsewhere(1)], &[(&foreign(1), 30), (&script, 70)]);
    payment.lock_time = bitcoin::absolute::LockTime::from_consensus(7);
    for input in &mut payment.input {
        input.sequence = bitcoin::Sequence::ENABLE_RBF_NO_LOCKTIME;
    }
    tester.accept(&payment);
    let now = u64::from(tester.tip().time);
    let output = |value, script: &ScriptBuf, ours: bool| WalletOutput {
        value: Amount::from_sat(value),
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
        order_position: 0,
        time: now,
        time_received: now,
        coinbase: false,
        signals: true,
        lock_time: 7,
        total_output: Amount::from_sat(100),
        debit_spendable: Amount::ZERO,
        debit_watch_only: Amount::ZERO,
        metadata: Vec::new(),
        inputs: payment.input.iter().map(|input| input.previous_output).collect(),
        outputs: vec![output(30, &foreign(1), false), output(70, &script, true)],
    };
    same("the payment", tester.known(payment.compute_txid()), expected);
    let spending = spend(&[out(&payment, 1)], &[(&foreign(2), 60)]);
    tester.mine(&[&payment, &spending]);
    let known = tester.known(spending.compute_txid());
    same("what it spends of ours", (known.debit_spendable.to_sat(), known.debit_watch_only.to_sat()), (70, 0));
    same("it arrived second", known.order_position, 1);
    let height = tester.tip().height;
    let place = (tester.tip().hash, tester.tip().time);
    let state = TxState::Confirmed { block: place.0, height, index: 2, time: place.1 };
    same("its place in the chain", known.state, state);
    tester.mine_to(&script, &[]);
    let mut rows = tester.history(HistoryRange::Confirmed { from_height: height + 1 }, false, 5);
    same("the rows of its block", rows.len(), 1);
    let row = rows.remove(0).transaction.0;
    same("a coinbase spends nothing", (row.coinbase, row.inputs), (true, Vec::new()));
}

#[test]
fn each_range_has_its_order_and_its_reverse() {
    let tester = &Tester::new();
    let script = with_key(tester);
    let [one, two, three, four, five] = [1, 2, 3, 4, 5].map(|number| pay(number, &script, u64::from(number)));
    for transaction in [&one, &two, &three, &four, &five] {
        tester.accept(transaction);
    }
    tester.mine(&[&four]);
    // Within a block, the block's order counts, not the order position.
    tester.mine(&[&three, &one]);
    tester.take_out(two.compute_txid());
    let rivals = [2, 5].map(|number| pay(number, &foreign(number), 1));
    let [rival, other] = &rivals;
    tester.mine(&[other]);
    tester.mine(&[rival]);
    let waiting = pay(6, &script, 6);
    tester.accept(&waiting);
    let both = |what: &str, range, mut expected: Vec<Txid>| {
        same(what, tester.ids(range, false), expected.clone());
        expected.reverse();
        same(what, tester.ids(range, true), expected)
    };
    both("by height and position", CONFIRMED, ids(&[&four, &three, &one]));
    both("by the conflict's height", HistoryRange::Conflicted { from_height: 0 }, ids(&[&five, &two]));
    let from_height = tester.tip().height;
    both("from a height on", HistoryRange::Conflicted { from_height }, ids(&[&two]));
    both("what waits", HistoryRange::Unconfirmed, ids(&[&waiting]));
    both("by order position", HistoryRange::All, ids(&[&one, &two, &three, &four, &five, &waiting]));
}

#[test]
fn heights_bound_what_is_confirmed() {
    let tester = &Tester::new();
    let script = with_key(tester);
    let [one, two] = [1, 2].map(|number| pay(number, &script, 5));
    tester.mine(&[&one]);
    tester.mine(&[&two]);
    for (from_height, expected) in [(1, ids(&[&one, &two])), (2, ids(&[&two])), (3, Vec::new()), (u32::MAX, Vec::new())]
    {
        let range = HistoryRange::Confirmed { from_height };
        same("from a height on", tester.ids(range, false), expected.clone());
        let reversed: Vec<Txid> = expected.into_iter().rev().collect();
        same("down to a height", tester.ids(range, true), reversed);
    }
}

#[test]
fn a_batch_holds_at_least_one_row() {
    let tester = &Tester::new();
    let script = with_key(tester);
    tester.accept(&pay(1, &script, 1));
    tester.accept(&pay(2, &script, 2));
    let batch = tester.batch(HistoryRange::All, false, None, 0).unwrap().read().unwrap();
    same("rows of a batch of none", (batch.rows.len(), batch.next.is_some()), (1, true));
    let batch = tester.coin_batch(None, 0).unwrap();
    same("coins of a batch of none", (batch.coins.len(), batch.next.is_some()), (1, true));
    tester.ask(|host, scope| host.book.set_label(scope, foreign(1), "x".into())).unwrap();
    let batch = tester.label_batch(None, 0).unwrap();
    same("entries of a batch of none", (batch.entries.len(), batch.next.is_some()), (1, true));
}

#[test]
fn a_place_in_the_history_outlives_what_happens_meanwhile() {
    let tester = &Tester::new();
    let script = with_key(tester);
    let [one, two, three, four] = [1, 2, 3, 4].map(|number| pay(number, &script, u64::from(number)));
    for transaction in [&one, &two, &three] {
        tester.accept(transaction);
    }
    let batch = tester.batch(HistoryRange::Unconfirmed, false, None, 2).unwrap().read().unwrap();
    same("the first two", batch.rows.len(), 2);
    let back = tester.batch(HistoryRange::Unconfirmed, true, None, 1).unwrap().read().unwrap();
    // The rows at which the two batches ended leave the range.
    tester.mine(&[&two, &three]);
    tester.accept(&four);
    let next = tester.batch(HistoryRange::Unconfirmed, false, batch.next, 5).unwrap().read().unwrap();
    let found: Vec<Txid> = next.rows.iter().map(|row| row.transaction.0.txid).collect();
    same("what comes after them now", found, ids(&[&four]));
    let next = tester.batch(HistoryRange::Unconfirmed, true, back.next, 5).unwrap().read().unwrap();
    let found: Vec<Txid> = next.rows.iter().map(|row| row.transaction.0.txid).collect();
    same("what comes before the last one now", found, ids(&[&one]));
}

#[test]
fn a_place_that_no_batch_gave_is_malformed() {
    let tester = &Tester::new();
    with_key(tester);
    for place in [Vec::new(), vec![1; 65]] {
        let after = || Some(Blob(place.clone()));
        for range in [CONFIRMED, HistoryRange::Unconfirmed, HistoryRange::All] {
            refused("in the history", tester.batch(range, false, after(), 5), ErrorKind::Malformed);
            refused("in the history, backwards", tester.batch(range, true, after(), 5), ErrorKind::Malformed);
        }
        refused("among the coins", tester.coin_batch(after(), 5), ErrorKind::Malformed);
        refused("in the address book", tester.label_batch(after(), 5), ErrorKind::Malformed);
    }
}

#[test]
fn transactions_come_in_the_order_asked_for() {
    let tester = &Tester::new();
    let script = with_key(tester);
    let [one, two, three] = [1, 2, 3].map(|number| pay(number, &script, u64::from(number)));
    let stranger = pay(4, &foreign(4), 4);
    for transaction in [&one, &two, &three, &stranger] {
        tester.accept(transaction);
    }
    let asked = ids(&[&three, &stranger, &one, &three]);
    let found: Vec<Txid> = tester.rows(&asked).iter().map(|row| row.transaction.0.txid).collect();
    same("those that it has", found, ids(&[&three, &one, &three]));
    let raw = tester.ask(|host, scope| host.wallet.raw_transactions(scope, asked)).unwrap();
    let serialised = |transaction: &Transaction| Some(Blob(serialize(transaction)));
    same("their bytes", raw, vec![serialised(&three), None, serialised(&one), serialised(&three)]);
}

#[test]
fn the_newest_witness_is_shown() {
    let tester = &Tester::new();
    let script = with_key(tester);
    let payment = pay(1, &script, 7);
    tester.accept(&payment);
    let mut other = payment.clone();
    for input in &mut other.input {
        input.witness = Witness::from_slice(&[[1_u8; 3]]);
    }
    tester.mine(&[&other]);
    let known = tester.known(payment.compute_txid());
    same("its id with witness", known.wtxid, other.compute_wtxid());
    same("it is the same transaction", (known.order_position, tester.info().transactions), (0, 1));
    let raw = tester.ask(|host, scope| host.wallet.raw_transactions(scope, ids(&[&payment]))).unwrap();
    same("its bytes", raw, vec![Some(Blob(serialize(&other)))]);
}

#[test]
fn metadata_is_kept_sorted_by_key() {
    let tester = &Tester::new();
    let script = with_key(tester);
    let payment = pay(1, &script, 7);
    let txid = payment.compute_txid();
    let set = |key: &str, value: &str| {
        tester.ask(|host, scope| host.book.set_metadata(scope, txid, key.into(), value.into()))
    };
    refused("before it is known", set("to", "x"), ErrorKind::NotFound);
    tester.accept(&payment);
    for (key, value) in [("to", "Anna"), ("comment", "rent"), ("x", "y"), ("to", "Bea"), ("x", "")] {
        set(key, value).unwrap();
    }
    let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    let expected = pairs(&[("comment", "rent"), ("to", "Bea")]);
    same("each key once, and none that is empty", tester.known(txid).metadata, expected.clone());
    tester.mine(&[&payment]);
    same("after it is confirmed", tester.known(txid).metadata, expected);
    assert!(tester.known(txid).outputs.len() == 1, "nothing else changed");
}

/// Received amounts, summed up from the history.
fn summed(tester: &Tester, query: &ReceivedQuery) -> BTreeMap<ScriptBuf, Received> {
    let mut sums = BTreeMap::<ScriptBuf, Received>::new();
    let height = tester.tip().height;
    for row in tester.history(HistoryRange::All, false, 5) {
        let row = row.transaction.0;
        let depth = match row.state {
            TxState::Confirmed { height: at, .. } => i64::from(height) - i64::from(at) + 1,
            TxState::Conflicted { height: at, .. } => -(i64::from(height) - i64::from(at) + 1),
            _ => 0,
        };
        let min_depth = if row.coinbase { query.min_coinbase_depth } else { query.min_depth };
        for output in row.outputs.into_iter().filter(|output| output.ownership != Ownership::None) {
            let wanted = match &query.by {
                ReceivedBy::Scripts { scripts } => scripts.contains(&output.script),
                ReceivedBy::AddressBook => output.label.is_some(),
            };
            if !wanted || depth < min_depth {
                continue;
            }
            let WalletOutput { value, script, ownership, label, .. } = output;
            let none =
                Received { script: script.clone(), ownership, label, amount: Amount::ZERO, depth, txids: vec![] };
            let sum = sums.entry(script).or_insert(none);
            sum.amount = Amount::from_sat(sum.amount.to_sat() + value.to_sat());
            sum.depth = sum.depth.min(depth);
            sum.txids.push(row.txid);
        }
    }
    sums
}

/// Compares `received` with the history, for several depths. Records in `met`, for each sum, whether it is watch-only,
/// its label, and the number of outputs.
fn compare_received(tester: &Tester, chosen: &[ReceivedBy], met: &mut BTreeSet<(bool, Option<String>, usize)>) {
    for by in chosen {
        for (min_depth, min_coinbase_depth) in [(0, 1), (1, 2), (1, 3), (2, 101), (-10, -10), (9, 9)] {
            let query = ReceivedQuery { by: by.clone(), min_depth, min_coinbase_depth };
            let found = tester.ask(|host, scope| host.wallet.received(scope, query.clone())).unwrap().read().unwrap();
            let (count, found) = (found.len(), found.into_iter().map(|sum| (sum.script.clone(), sum)));
            let found: BTreeMap<ScriptBuf, Received> = found.collect();
            assert!(found.len() == count, "no script comes twice");
            met.extend(
                found.values().map(|sum| (sum.ownership == Ownership::WatchOnly, sum.label.clone(), sum.txids.len())),
            );
            same(&format!("by {query:?}"), found, summed(tester, &query));
        }
    }
}

#[test]
fn what_scripts_received_is_the_sum_of_their_outputs() {
    let tester = &Tester::with(|_| {});
    let [labelled, unlabelled, watched, long] = [p2wpkh(1), p2wpkh(2), foreign(3), p2wpkh(4)];
    let change = descriptor(&format!("wpkh({})", wif(2).expose()), |import| import.internal = Some(true));
    tester.import(vec![single(1), change, watch(&watched), single(4)]).unwrap();
    // A long label. The address book also has a foreign address.
    let long_label = "x".repeat(200);
    for (script, label) in [(&labelled, "rent"), (&watched, ""), (&long, &long_label), (&foreign(9), "stranger")] {
        tester.ask(|host, scope| host.book.set_label(scope, script.clone(), label.to_owned())).unwrap();
    }
    let [one, two, three] = [&labelled, &watched, &long].map(|script| spend(&[elsewhere(1)], &[(script, 7)]));
    let twice = spend(&[elsewhere(2)], &[(&labelled, 30), (&unlabelled, 40), (&labelled, 50), (&foreign(9), 60)]);
    // A block conflicts with two of them, and one stays unconfirmed.
    for transaction in [&two, &three, &pay(3, &long, 8)] {
        tester.accept(transaction);
    }
    tester.mine_to(&labelled, &[&one]);
    tester.mine_to(&foreign(9), &[&twice]);
    let all = [labelled.clone(), unlabelled.clone(), watched.clone(), long.clone(), foreign(9), foreign(8)];
    let mut met = BTreeSet::new();
    let chosen = [all.to_vec(), vec![labelled.clone()], vec![], vec![unlabelled.clone(); 2]];
    let chosen = chosen.map(|scripts| ReceivedBy::Scripts { scripts });
    let chosen: Vec<ReceivedBy> = chosen.into_iter().chain([ReceivedBy::AddressBook]).collect();
    compare_received(tester, &chosen, &mut met);
    // Cached sums do not hide later writes: a label, and blocks with and without payments.
    tester.ask(|host, scope| host.book.set_label(scope, labelled.clone(), "other".to_owned())).unwrap();
    compare_received(tester, &chosen, &mut met);
    tester.mine_to(&foreign(9), &[&pay(4, &labelled, 9)]);
    compare_received(tester, &chosen, &mut met);
    tester.mine_to(&foreign(9), &[]);
    compare_received(tester, &chosen, &mut met);
    let label = |label: &str| Some(label.to_owned());
    let (rent, other) = ((false, label("rent"), 4), (false, label("other"), 5));
    let expected = [(false, None, 1), rent, (true, label(""), 1), (false, Some(long_label), 2), other];
    assert!(expected.iter().all(|kind| met.contains(kind)), "all of it was met");
}

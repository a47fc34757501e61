use std::sync::Arc;
use std::time::{Duration, Instant};

use bitcoin::{Amount, OutPoint, ScriptBuf, Transaction};
use outrigger_service::events::Event;
use outrigger_service::wallet::{BalancesQuery, HistoryQuery, HistoryRange, TxState};
use outrigger_service::{Mempool as _, Scope};

use super::{Harness, Known, SUBSIDY, elsewhere, foreign, settings, spend};
use crate::live::outgoing::OfferScope;
use crate::settings::Settings;
use crate::store::ROWS_READ;
use outrigger_node::events::{NodeEvent, Observer as _, Removal};

/// A coinbase of the wallet with a depth of 100, and its outpoint.
fn funded(harness: &Harness) -> OutPoint {
    let hash = harness.mine_to(harness.address(Some("mined")), vec![]);
    for _ in 0..100 {
        harness.mine(vec![]);
    }
    OutPoint { txid: harness.block(hash).txdata[0].compute_txid(), vout: 0 }
}

#[test]
fn follow_debits_what_is_spent_and_tells_change() {
    let harness = Harness::with_wallet();
    let coin = funded(&harness);
    let change = harness.address(None);
    let payment = spend(&[coin], &[(&foreign(1), 10), (&change, SUBSIDY - 1010)]);
    harness.accept(&payment);
    let sent = harness.known(payment.compute_txid());
    assert_eq!((sent.debit_spendable, sent.debit_watch_only), (Amount::from_sat(SUBSIDY), Amount::ZERO));
    assert!(sent.outputs[1].change && sent.outputs[1].label.is_none());
    assert!(sent.trusted);
    let coins = harness.coins();
    assert_eq!(coins.len(), 1);
    assert!(
        coins[0].change && coins[0].trusted && coins[0].from_us && coins[0].value == Amount::from_sat(SUBSIDY - 1010)
    );

    // A label makes the output no longer change, and writes only the address book.
    let wallet = harness.view().wallet().clone();
    let stored = || {
        let (txn, t) = (wallet.store.read().unwrap(), wallet.store.tables);
        let of = |(key, row): (&[u8], &[u8])| (key.to_vec(), row.to_vec());
        [t.transactions, t.coins].map(|table| {
            let rows = table.iter(&txn).unwrap().map(Result::unwrap);
            rows.map(of).collect::<Vec<_>>()
        })
    };
    let before = stored();
    wallet.set_label(change, "mine".into()).unwrap();
    assert_eq!(stored(), before);
    let sent = harness.known(payment.compute_txid());
    assert!(!sent.outputs[1].change && sent.outputs[1].label.as_deref() == Some("mine"));
    assert_eq!(harness.coins()[0].label.as_deref(), Some("mine"));
}

#[test]
fn a_child_met_before_its_parent_is_debited_when_the_parent_comes() {
    let harness = Harness::with_wallet();
    let script = harness.address(Some(""));
    let parent = spend(&[elsewhere(1)], &[(&script, 40)]);
    let child = spend(&[OutPoint { txid: parent.compute_txid(), vout: 0 }], &[(&script, 30)]);
    harness.accept(&child);
    assert_eq!(harness.known(child.compute_txid()).debit_spendable, Amount::from_sat(0));
    harness.accept(&parent);
    assert_eq!(harness.known(child.compute_txid()).debit_spendable, Amount::from_sat(40));
    let coins = harness.coins();
    assert_eq!((coins.len(), coins[0].value), (1, Amount::from_sat(30)));
}

/// A payment's cost must not be the product of its inputs and the outputs of their transactions, nor a balance's that of the coins.
#[test]
fn follow_reads_a_transaction_a_few_times_however_many_of_its_outputs_another_spends() {
    const MANY: usize = 100;
    let check = |what: &str, work: &dyn Fn()| {
        let before = ROWS_READ.get();
        work();
        let read = ROWS_READ.get() - before;
        assert!(read < MANY / 2, "{what}: {read} rows");
        read
    };
    let harness = Harness::with_wallet();
    let script = harness.address(Some(""));
    let spend_all = |parent: &Transaction, outputs: &[(&ScriptBuf, u64)]| {
        let txid = parent.compute_txid();
        spend(&(0..).take(MANY).map(|vout| OutPoint { txid, vout }).collect::<Vec<_>>(), outputs)
    };
    let parent = spend(&[elsewhere(1)], &[(&script, 70); MANY]);
    harness.mine(vec![parent.clone()]);
    let wallet = harness.view().wallet().clone();
    let enter = |transaction: &Transaction| wallet.write(|write| write.enter_mempool(transaction, 1)).unwrap();
    let payment = spend_all(&parent, &[(&script, 60); MANY]);
    assert!(check("a payment", &|| enter(&payment)) > 0);
    check("its coins", &|| {
        let coins = harness.view().coins(None, 256).unwrap().coins;
        assert_eq!(coins.iter().filter(|coin| coin.trusted).count(), MANY);
    });
    let balance = || {
        let balances = harness.view().balances(&BalancesQuery { min_depth: 0, avoid_reuse: false }).unwrap();
        assert_eq!(balances.mine.trusted, Amount::from_sat(60 * MANY as u64));
    };
    check("the balance", &balance);
    assert_eq!(check("the balance again", &balance), 0);
    let rival = spend_all(&parent, &[(&foreign(1), 50)]);
    check("another payment from the same coins", &|| enter(&rival));
    harness.chain.mine_to(foreign(0), vec![rival.clone()]);
    check("a block with that one", &|| wallet.catch_up().unwrap());
    let parent = spend(&[elsewhere(2)], &[(&script, 70); MANY]);
    enter(&spend_all(&parent, &[(&script, 60)]));
    check("a parent that comes after its child", &|| enter(&parent));
}

#[test]
fn follow_sees_payments_resubmitted_at_the_start_in_the_mempool() {
    let mut harness = Harness::with_wallet();
    let coin = funded(&harness);
    let payment = spend(&[coin], &[(&foreign(7), 9), (&harness.address(None), 5)]);
    harness.accept(&payment);
    assert_eq!(harness.known(payment.compute_txid()).state, TxState::InMempool);
    // The mempool is empty after the restart. The wallet submits the transaction before it receives events.
    harness.restart(|harness| harness.mempool.clear());
    assert_eq!(harness.mempool.ids(Scope::NONE).unwrap(), [payment.compute_txid()]);
    assert_eq!(harness.known(payment.compute_txid()).state, TxState::InMempool);
}

#[test]
fn follow_drops_events_from_before_a_full_read_of_the_mempool() {
    let harness = Harness::with_wallet();
    let script = harness.address(Some(""));
    let payment = spend(&[elsewhere(1)], &[(&script, 9)]);
    harness.accept(&payment);
    harness.take_out(payment.compute_txid(), Removal::Dropped);
    harness.view().wallet().reread_mempool();
    let sequence = harness.mempool.info(Scope::NONE).unwrap().sequence;
    assert!(sequence > 0);
    let other = spend(&[elsewhere(1)], &[(&foreign(7), 9)]);
    let added = |sequence| NodeEvent::TransactionAdded { transaction: Arc::new(other.clone()), time: 1, sequence };
    harness.manager.notify(added(sequence));
    assert_eq!(harness.known(payment.compute_txid()).mempool_conflicts, []);
    harness.manager.notify(added(sequence + 1));
    assert_eq!(harness.known(payment.compute_txid()).mempool_conflicts, [other.compute_txid()]);
}

#[test]
fn a_long_label_is_told_with_every_payment_and_stored_once() {
    let harness = Harness::with_wallet();
    let script = harness.address(Some(""));
    let payment = spend(&[elsewhere(1)], &[(&script, 7); 150]);
    harness.mine(vec![payment.clone()]);
    for label in ["x".repeat(64), "y".repeat(65), "\0".to_owned(), "é".repeat(2048), "short".into(), String::new()] {
        harness.view().wallet().set_label(script.clone(), label.clone()).unwrap();
        let known = harness.known(payment.compute_txid());
        assert!(known.outputs.iter().all(|output| output.label.as_ref() == Some(&label)), "{label:?}");
        assert!(known.trusted && !known.contested && known.conflicts.is_empty());
        let query = HistoryQuery { range: HistoryRange::All, reverse: false, after: None, limit: 1 };
        let batch = harness.view().history(&query).unwrap();
        let listed = batch.view().unwrap().rows.iter().next().map(Known::read).unwrap();
        assert_eq!(listed.outputs, known.outputs);
        let coins = harness.coins();
        assert!(coins.len() == 150 && coins.iter().all(|coin| coin.label.as_ref() == Some(&label)), "{label:?}");
        let stored = std::fs::read(harness.view().wallet().store.data_file()).unwrap();
        let times = stored.windows(label.len().max(1)).filter(|bytes| *bytes == label.as_bytes()).count();
        // Free pages may still contain the label.
        assert!(label.len() < 100 || (1..=3).contains(&times), "{times} times");
    }
}

/// The numbers of blocks and transactions in a reorganisation event of `w`.
fn reorganised(event: &Event) -> Option<(u32, usize)> {
    match event {
        Event::WalletReorganised { wallet, blocks, transactions } if wallet == "w" => {
            Some((*blocks, transactions.len()))
        }
        _ => None,
    }
}

#[test]
fn follow_counts_and_tells_reorganisations_from_a_depth_on() {
    let mut harness = Harness::with_wallet();
    harness.restart_with(Settings { reorganisation_notice: Some(2), ..settings() }, |_| {});
    let script = harness.address(Some(""));
    for (depth, count) in [(1, 0), (2, 1), (3, 2)] {
        for _ in 0..depth {
            harness.mine_to(script.clone(), vec![]);
        }
        harness.events.lock().clear();
        harness.view();
        harness.disconnect_blocks(depth);
        harness.mine(vec![]);
        harness.view();
        assert_eq!(harness.manager.deep_reorganisations(), count, "{depth}");
        let told: Vec<_> = harness.events.lock().iter().filter_map(reorganised).collect();
        let expected = if depth > 1 { vec![(depth, depth as usize)] } else { vec![] };
        assert_eq!(told, expected, "{depth}");
    }
}

#[test]
fn unconfirmed_transactions_are_offered_again_after_12_to_36_hours() {
    const HOUR: Duration = Duration::from_secs(3600);
    let before = Instant::now();
    let harness = Harness::with_wallet();
    let wallet = harness.manager.follower.loaded().remove(0);
    let planned = || wallet.outgoing.lock().planned;
    let at = planned().unwrap();
    assert!((before + 12 * HOUR..Instant::now() + 36 * HOUR).contains(&at));
    // Only the earlier of two planned times counts, and it fires once.
    wallet.resubmit(OfferScope::All, None).unwrap();
    assert!(planned().unwrap() <= at);
    let at = planned().unwrap();
    assert_eq!([at + HOUR, at, at].map(|rung| wallet.take_due_resend(rung)), [false, true, false]);
    wallet.resubmit(OfferScope::All, None).unwrap();
    assert!(planned().unwrap() > before + 12 * HOUR);
}

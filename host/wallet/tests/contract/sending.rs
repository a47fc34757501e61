use std::sync::mpsc::channel;

use bitcoin::consensus::serialize;
use bitcoin::{OutPoint, ScriptBuf, Transaction, Txid};
use outrigger_node::NodeEvent;
use outrigger_scripted_node::Lost;
use outrigger_service::mempool::Admission;
use outrigger_service::wallet::{MAX_TEXT_LEN, TxState};
use outrigger_service::{ErrorKind, Result as ServiceResult};
use outrigger_testing::until;

use crate::tester::{Tester, foreign, out, p2wpkh, pay, refused, same, single, spend};

fn with_coins<const N: usize>(tester: &Tester, values: [u64; N]) -> (ScriptBuf, [OutPoint; N]) {
    tester.create(|_| {});
    tester.take(single(1));
    let script = p2wpkh(1);
    let outputs = values.map(|value| (&script, value));
    let payment = pay(1, &script, 1);
    let payment = Transaction { output: spend(&[], &outputs).output, ..payment };
    tester.mine(&[&payment]);
    let mut vout = 0..;
    (script, values.map(|_| out(&payment, vout.next().unwrap_or_default())))
}

fn send_with(tester: &Tester, transaction: &Transaction, texts: &[(&str, &str)]) -> ServiceResult<Option<Admission>> {
    let texts = texts.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect();
    tester.ask(|host, scope| host.pay.send(scope, serialize(transaction).into(), texts))
}

fn send(tester: &Tester, transaction: &Transaction) -> ServiceResult<Option<Admission>> {
    send_with(tester, transaction, &[])
}

fn state(tester: &Tester, transaction: &Transaction) -> TxState {
    tester.known(transaction.compute_txid()).state
}

fn is_in_pool(tester: &Tester, txid: Txid) -> bool {
    tester.node().pool().iter().any(|transaction| transaction.compute_txid() == txid)
}

#[test]
fn what_is_sent_is_stored_before_the_node_is_asked() {
    let tester = &Tester::new();
    let (script, [coin, other]) = with_coins(tester, [70, 80]);
    let payment = spend(&[coin], &[(&foreign(1), 20), (&script, 50)]);
    let txid = payment.compute_txid();
    let (found, seen) = channel();
    // Another call sees the payment before the node answers, and does not wait for a lock.
    let (services, scope) = (tester.handle(), tester.open(Some(crate::tester::WALLET)));
    let (scope, _call) = scope;
    tester.node().faults.once_submitted(move || {
        let row = services.wallet.transactions(scope, vec![txid]).unwrap().read().unwrap().rows.remove(0).transaction.0;
        let coins = services.wallet.coins(scope, false, None, 10).unwrap().coins;
        found.send((row, coins)).unwrap();
    });
    let answer =
        send_with(tester, &payment, &[("to", "landlord"), ("comment", "rent"), ("x", "")]).unwrap().expect("an answer");
    assert!(matches!(answer, Admission::Accepted { txid: accepted, .. } if accepted == txid), "it is accepted");
    let (row, coins) = seen.recv().unwrap();
    let texts = |row: &outrigger_service::wallet::WalletTransaction| row.metadata.clone();
    let expected = [("comment", "rent"), ("to", "landlord")].map(|(key, text)| (key.to_owned(), text.to_owned()));
    same("its texts", texts(&row), expected.to_vec());
    same("its state", row.state, TxState::Inactive);
    let mut free: Vec<OutPoint> = coins.iter().map(|coin| coin.outpoint).collect();
    free.retain(|outpoint| outpoint.txid != txid);
    same("what is free", free, vec![other]);
    tester.tell(tester.node().untold());
    same("once the mempool tells of it", state(tester, &payment), TxState::InMempool);
    same("its texts then", texts(&tester.known(txid)), expected.to_vec());
    same("it is told of", tester.told().last(), Some(&txid));
}

#[test]
fn what_the_mempool_refuses_is_kept_and_offered_again() {
    let tester = &Tester::new();
    let (script, [coin]) = with_coins(tester, [70]);
    tester.told();
    // Pays more than it spends.
    let payment = spend(&[coin], &[(&script, 71)]);
    let txid = payment.compute_txid();
    let answer = send_with(tester, &payment, &[("comment", "rent")]).unwrap().expect("an answer");
    assert!(matches!(answer, Admission::Rejected { .. }), "it is refused");
    let stored = tester.known(txid);
    same("its state and texts", (stored.state, stored.metadata.len()), (TxState::Inactive, 1));
    same("it is told of", tester.told().last(), Some(&txid));
    let rival = spend(&[coin], &[(&foreign(1), 60)]);
    refused("what spends the same", send(tester, &rival), ErrorKind::Refused);
    tester.unload("w").unwrap();
    tester.load("w").unwrap();
    tester.tell(vec![NodeEvent::Reached]);
    same("refused again", (state(tester, &payment), tester.node().pool().len()), (TxState::Inactive, 0));
    tester.ask(|host, scope| host.pay.abandon(scope, txid)).unwrap();
    same("given up, what it spends is free", tester.outpoints(), vec![coin]);
    let answer = send(tester, &rival).unwrap().expect("an answer");
    assert!(matches!(answer, Admission::Accepted { .. }), "the other is accepted");
}

#[test]
fn a_payment_that_the_node_may_have_accepted_is_kept() {
    let tester = &Tester::new();
    let (_, [coin]) = with_coins(tester, [70]);
    let payment = spend(&[coin], &[(&foreign(1), 60)]);
    tester.node().faults.set_lost(Some(Lost::After));
    same("no answer", send(tester, &payment).unwrap(), None);
    same("until the mempool tells of it", state(tester, &payment), TxState::Inactive);
    same("it is told of", tester.told().last(), Some(&payment.compute_txid()));
    let abandon = || tester.ask(|host, scope| host.pay.abandon(scope, payment.compute_txid()));
    refused("while the node has it", abandon(), ErrorKind::Refused);
    tester.node().faults.set_absent(true);
    refused("while the node is away", abandon(), ErrorKind::NodeUnavailable);
    tester.node().faults.set_absent(false);
    tester.node().faults.set_lost(None);
    tester.tell(tester.node().untold());
    same("then", state(tester, &payment), TxState::InMempool);
}

#[test]
fn what_the_node_does_not_answer_is_kept_and_offered_again() {
    let tester = &Tester::new();
    let (script, [one, two]) = with_coins(tester, [70, 80]);
    let [first, second] = [one, two].map(|coin| spend(&[coin], &[(&foreign(1), 60)]));
    tester.node().faults.set_lost(Some(Lost::Before));
    same("its answer is lost", send_with(tester, &first, &[("comment", "rent")]).unwrap(), None);
    tester.node().faults.set_absent(true);
    same("the node is away", send(tester, &second).unwrap(), None);
    for payment in [&first, &second] {
        same("its state meanwhile", state(tester, payment), TxState::Inactive);
    }
    same("what they spend is taken", tester.outpoints(), Vec::new());
    refused("a second payment", send(tester, &spend(&[one], &[(&script, 1)])), ErrorKind::Refused);
    tester.node().faults.set_absent(false);
    tester.node().faults.set_lost(None);
    tester.tell(vec![NodeEvent::Reached]);
    for payment in [&first, &second] {
        let txid = payment.compute_txid();
        until("it is offered again", || is_in_pool(tester, txid));
    }
    tester.tell(tester.node().untold());
    same("the first", state(tester, &first), TxState::InMempool);
    same("the second", state(tester, &second), TxState::InMempool);
    same("its text", tester.known(first.compute_txid()).metadata.len(), 1);
}

#[test]
fn what_waits_is_offered_when_its_input_or_the_node_is_there() {
    let tester = &Tester::new();
    let (_, [coin, other]) = with_coins(tester, [70, 80]);
    let parent = pay(2, &foreign(1), 50);
    let child = spend(&[other, out(&parent, 0)], &[(&foreign(1), 60)]);
    same("without its parent", send(tester, &child).unwrap(), Some(Admission::MissingInputs));
    tester.mine(&[&parent]);
    until("it is offered once a block has the parent", || is_in_pool(tester, child.compute_txid()));
    let payment = spend(&[coin], &[(&foreign(1), 60)]);
    tester.accept(&payment);
    // A node that returns without its mempool announces the removals first.
    let mut events = tester.node().take_out(payment.compute_txid());
    events.push(NodeEvent::Reached);
    tester.tell(events);
    until("it is offered again", || is_in_pool(tester, payment.compute_txid()));
}

#[test]
fn what_was_given_up_is_not_offered() {
    let tester = &Tester::new();
    let (_, [one, two]) = with_coins(tester, [70, 80]);
    let [first, second] = [one, two].map(|coin| spend(&[coin], &[(&foreign(1), 60)]));
    for payment in [&first, &second] {
        tester.accept(payment);
        tester.take_out(payment.compute_txid());
    }
    tester.ask(|host, scope| host.pay.abandon(scope, first.compute_txid())).unwrap();
    same("what it spends is free", tester.outpoints(), vec![one]);
    tester.tell(vec![NodeEvent::Reached]);
    // The wallet submits payments in order, so the first would be in the mempool by now.
    until("the other is offered", || is_in_pool(tester, second.compute_txid()));
    same("what was given up", is_in_pool(tester, first.compute_txid()), false);
}

#[test]
fn send_refuses_foreign_payments_and_spent_coins() {
    let tester = &Tester::new();
    let (script, [coin]) = with_coins(tester, [70]);
    let rival = spend(&[coin], &[(&foreign(1), 60)]);
    refused("another's", send(tester, &pay(2, &foreign(1), 5)), ErrorKind::Refused);
    let long = "x".repeat(MAX_TEXT_LEN + 1);
    refused("a long text", send_with(tester, &rival, &[("comment", &long)]), ErrorKind::Refused);
    let garbage = tester.ask(|host, scope| host.pay.send(scope, vec![1, 2].into(), Vec::new())).unwrap();
    same("no transaction", garbage, Some(Admission::Undecodable));
    tester.accept(&rival);
    refused("what is spent", send(tester, &spend(&[coin], &[(&script, 50)])), ErrorKind::Refused);
    same("what the mempool has", tester.node().pool().len(), 1);
    // An abandoned transaction does not block its inputs.
    tester.take_out(rival.compute_txid());
    tester.ask(|host, scope| host.pay.abandon(scope, rival.compute_txid())).unwrap();
    let answer = send(tester, &spend(&[coin], &[(&script, 50)])).unwrap().expect("an answer");
    assert!(matches!(answer, Admission::Accepted { .. }), "it is accepted");
}

#[test]
fn sending_a_known_payment_only_submits_it_again() {
    let tester = &Tester::new();
    let (script, [coin]) = with_coins(tester, [70]);
    let payment = spend(&[coin], &[(&foreign(1), 60)]);
    tester.accept(&payment);
    let known = Some(Admission::Known { txid: payment.compute_txid() });
    same("in the mempool", send_with(tester, &payment, &[("comment", "rent")]).unwrap(), known);
    same("its texts", tester.known(payment.compute_txid()).metadata, Vec::new());
    // A refused payment stays.
    tester.take_out(payment.compute_txid());
    let rival = spend(&[coin], &[(&script, 50)]);
    tester.node().accept(rival);
    let answer = send(tester, &payment).unwrap().expect("an answer");
    assert!(matches!(answer, Admission::Rejected { .. }), "it is refused");
    same("it stays", state(tester, &payment), TxState::Inactive);
}

#[test]
fn getwalletinfo_warns_of_no_payment_in_conflict_or_replaced() {
    let tester = &Tester::new();
    let (_, [one, two]) = with_coins(tester, [70, 80]);
    let warning = |what: &str| {
        vec![format!("Payments that are not in the mempool, and are offered to the node again: 1: {what}")]
    };
    let [payment, rival] = [60, 50].map(|value| spend(&[one], &[(&foreign(1), value)]));
    let txid = payment.compute_txid();
    let told_later = tester.node().accept(rival);
    assert!(matches!(send(tester, &payment).unwrap(), Some(Admission::Rejected { .. })), "it is refused");
    same("before", tester.info().warnings, warning(&format!("{txid} (txn-mempool-conflict)")));
    tester.tell(told_later);
    same("once the mempool tells of its rival", tester.info().warnings, Vec::new());
    // The mempool gets neither the payment nor its replacement.
    tester.node().faults.set_lost(Some(Lost::Before));
    let [payment, replacement] = [60, 50].map(|value| spend(&[two], &[(&foreign(1), value)]));
    let (txid, raw) = (payment.compute_txid(), serialize(&replacement));
    same("the payment", send(tester, &payment).unwrap(), None);
    same("before", tester.info().warnings, warning(&txid.to_string()));
    let replaced = tester.ask(|host, scope| host.pay.replace(scope, txid, raw.into(), Vec::new())).unwrap();
    same("its replacement", replaced, None);
    same("of the replacement alone", tester.info().warnings, warning(&replacement.compute_txid().to_string()));
}

use bitcoin::Transaction;

use crate::tester::{Tester, foreign, out, pay, refused, same, spend, with_key};
use outrigger_service::ErrorKind;
use outrigger_service::wallet::{TxState, UnsettledState};

fn state(tester: &Tester, transaction: &Transaction) -> TxState {
    tester.known(transaction.compute_txid()).state
}

fn unsettled(tester: &Tester, transaction: &Transaction) -> UnsettledState {
    tester.row(transaction.compute_txid()).unsettled.expect("the unsettled state")
}

#[test]
fn a_block_conflicts_with_double_spends_and_their_descendants() {
    let tester = &Tester::new();
    let script = with_key(tester);
    let payment = pay(1, &script, 70);
    let child = spend(&[out(&payment, 0)], &[(&script, 60)]);
    let grandchild = spend(&[out(&child, 0)], &[(&foreign(1), 50)]);
    for transaction in [&payment, &child, &grandchild] {
        tester.accept(transaction);
    }
    let rival = pay(1, &foreign(2), 70);
    let block = tester.mine(&[&rival]);
    let conflicted = TxState::Conflicted { block, height: tester.tip().height };
    for transaction in [&payment, &child, &grandchild] {
        same("it is impossible", state(tester, transaction), conflicted);
    }
    same("the rival is nothing to the wallet", tester.info().transactions, 3);
    same("no coin is left", tester.outpoints(), Vec::new());
    tester.disconnect();
    for transaction in [&payment, &child, &grandchild] {
        same("it is possible again", state(tester, transaction), TxState::Inactive);
    }
    // The rival in the mempool conflicts with the payment and with its descendants.
    for transaction in [&payment, &child, &grandchild] {
        let told = unsettled(tester, transaction);
        same("who stands in its way", told.mempool_conflicts, vec![rival.compute_txid()]);
        same("none of the wallet's", told.conflicts, Vec::new());
    }
}

#[test]
fn what_the_mempool_replaced_frees_what_it_spent() {
    let tester = &Tester::new();
    let script = with_key(tester);
    let [one, two] = [1, 2].map(|number| pay(number, &script, 70));
    tester.mine(&[&one, &two]);
    let first = spend(&[out(&one, 0), out(&two, 0)], &[(&script, 100)]);
    let child = spend(&[out(&first, 0)], &[(&script, 90)]);
    tester.accept(&first);
    tester.accept(&child);
    same("while they wait", tester.outpoints(), vec![out(&child, 0)]);
    // Their replacement spends one of the two inputs.
    let second = spend(&[out(&one, 0)], &[(&foreign(1), 60)]);
    tester.take_out(first.compute_txid());
    tester.accept(&second);
    same("the other one is free", tester.outpoints(), vec![out(&two, 0)]);
    for transaction in [&first, &child] {
        same("it may come back", state(tester, transaction), TxState::Inactive);
        same("what is in its way", unsettled(tester, transaction).mempool_conflicts, vec![second.compute_txid()]);
    }
    tester.take_out(second.compute_txid());
    same("with nothing in its way", unsettled(tester, &child).mempool_conflicts, Vec::new());
    same("what it spends is not free", tester.outpoints(), vec![out(&child, 0)]);
    // A foreign transaction conflicts with a payment to the wallet that spends the same foreign input.
    let stranger = pay(3, &script, 5);
    tester.accept(&stranger);
    tester.take_out(stranger.compute_txid());
    let rival = pay(3, &foreign(2), 5);
    tester.accept(&rival);
    same("in the way of a payment to us", unsettled(tester, &stranger).mempool_conflicts, vec![rival.compute_txid()]);
    assert!(!tester.outpoints().contains(&out(&stranger, 0)), "which makes no coin");
    tester.take_out(rival.compute_txid());
    assert!(tester.outpoints().contains(&out(&stranger, 0)), "until that is gone");
}

#[test]
fn only_what_is_idle_can_be_given_up() {
    let tester = &Tester::new();
    let script = with_key(tester);
    let payment = pay(1, &script, 70);
    let child = spend(&[out(&payment, 0)], &[(&script, 60)]);
    let txid = payment.compute_txid();
    let abandon = |txid| tester.ask(|host, scope| host.pay.abandon(scope, txid));
    refused("what is not known", abandon(txid), ErrorKind::NotFound);
    tester.accept(&payment);
    refused("what is in the mempool", abandon(txid), ErrorKind::Refused);
    tester.mine(&[&payment]);
    refused("what is in the chain", abandon(txid), ErrorKind::Refused);
    tester.accept(&child);
    tester.disconnect();
    tester.take_out(txid);
    same("the child left with its parent", state(tester, &child), TxState::Inactive);
    abandon(txid).unwrap();
    same("it is given up", state(tester, &payment), TxState::Abandoned);
    same("and what builds on it", state(tester, &child), TxState::Abandoned);
    same("no coin", tester.outpoints(), Vec::new());
    for transaction in [&payment, &child] {
        abandon(transaction.compute_txid()).unwrap();
        same("it is given up still", state(tester, transaction), TxState::Abandoned);
    }
    tester.accept(&payment);
    same("the payment is sent again", state(tester, &payment), TxState::InMempool);
    same("but not the child", state(tester, &child), TxState::Abandoned);
    same("whose coin is free", tester.outpoints(), vec![out(&payment, 0)]);
    tester.accept(&child);
    same("the child as well", tester.outpoints(), vec![out(&child, 0)]);
    tester.take_out(txid);
    tester.mine(&[&pay(1, &foreign(1), 5)]);
    refused("what is impossible", abandon(txid), ErrorKind::Refused);
}

#[test]
fn only_confirmed_uncontested_transactions_have_no_unsettled_state() {
    let tester = &Tester::new();
    let script = with_key(tester);
    let payment = pay(1, &script, 7);
    tester.accept(&payment);
    same("while it waits", tester.row(payment.compute_txid()).unsettled.is_some(), true);
    tester.mine(&[&payment]);
    same("once it is settled", tester.row(payment.compute_txid()).unsettled, None);
}

#[test]
fn own_unconfirmed_payments_are_trusted() {
    let tester = &Tester::new();
    let script = with_key(tester);
    let [one, two] = [1, 2].map(|number| pay(number, &script, 70));
    tester.mine(&[&one]);
    let spending = spend(&[out(&one, 0)], &[(&script, 60)]);
    let further = spend(&[out(&spending, 0)], &[(&script, 50)]);
    let mixed = spend(&[out(&two, 0)], &[(&script, 40)]);
    for transaction in [&two, &spending, &further] {
        tester.accept(transaction);
    }
    same("a stranger's payment", unsettled(tester, &two).trusted, false);
    same("one of ours on a confirmed one", unsettled(tester, &spending).trusted, true);
    same("one of ours on one of ours", unsettled(tester, &further).trusted, true);
    let coin = |transaction: &Transaction| {
        let coin = tester.coins().into_iter().find(|coin| coin.outpoint == out(transaction, 0));
        coin.expect("the coin").trusted
    };
    same("its coin", coin(&further), true);
    same("the stranger's coin", coin(&two), false);
    tester.accept(&mixed);
    same("one of ours on a stranger's", unsettled(tester, &mixed).trusted, false);
    same("the coin of one on a stranger's", coin(&mixed), false);
    tester.take_out(further.compute_txid());
    same("one that is out of the mempool", unsettled(tester, &further).trusted, false);
    tester.mine(&[&two]);
    same("once the stranger's is confirmed", unsettled(tester, &mixed).trusted, true);
    same("its coin then", coin(&mixed), true);
}

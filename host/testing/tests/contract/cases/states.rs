//! Where transactions stand, and what follows from it.

use bitcoin::{ScriptBuf, Sequence, Transaction};

use outrigger_service::ErrorKind;
use outrigger_service::wallet::{HistoryRange, Outlook, Replaceable, TxState};
use crate::testing::conformance::bench::{
    Bench, foreign, holds, out, p2wpkh, pay, refused, same, single, some, spend,
};
use crate::testing::conformance::{Failure, Outcome};

fn with_key(bench: &Bench<'_>) -> Result<ScriptBuf, Failure> {
    bench.create(|_| {})?;
    bench.take(single(1)?)?;
    p2wpkh(1)
}

fn state(bench: &Bench<'_>, transaction: &Transaction) -> Result<TxState, Failure> {
    Ok(bench.known(transaction.compute_txid())?.state)
}

fn outlook(bench: &Bench<'_>, transaction: &Transaction) -> Result<Outlook, Failure> {
    some("what the moment says", bench.row(transaction.compute_txid())?.outlook)
}

pub fn a_block_confirms_and_its_end_takes_that_back(bench: &Bench<'_>) -> Outcome {
    let script = with_key(bench)?;
    let payment = pay(1, &script, 7);
    bench.accept(&payment);
    same("in the mempool", state(bench, &payment)?, TxState::InMempool)?;
    let block = bench.mine(&[&payment]);
    let tip = bench.tip()?;
    let confirmed = TxState::Confirmed { block, height: tip.height, index: 1, time: tip.time };
    same("in a block", state(bench, &payment)?, confirmed)?;
    bench.disconnect();
    same("back in the mempool", state(bench, &payment)?, TxState::InMempool)?;
    same("where the wallet stands", bench.info()?.synced.hash, bench.tip()?.hash)?;
    let other = bench.mine_to(&foreign(5), &[&payment]);
    holds("it is another block", other != block)?;
    let confirmed = TxState::Confirmed { block: other, height: tip.height, index: 1, time: tip.time };
    same("in another block", state(bench, &payment)?, confirmed)?;
    same("it is one transaction", bench.info()?.transactions, 1)
}

pub fn what_leaves_the_mempool_is_inactive_until_it_comes_back(bench: &Bench<'_>) -> Outcome {
    let script = with_key(bench)?;
    let payment = pay(1, &script, 7);
    bench.accept(&payment);
    bench.take_out(payment.compute_txid());
    same("out of the mempool", state(bench, &payment)?, TxState::Inactive)?;
    same("it still counts", bench.outpoints()?, vec![out(&payment, 0)])?;
    bench.accept(&payment);
    same("back in it", state(bench, &payment)?, TxState::InMempool)?;
    bench.mine(&[&payment]);
    bench.disconnect();
    bench.take_out(payment.compute_txid());
    same("out of chain and mempool", state(bench, &payment)?, TxState::Inactive)
}

pub fn a_block_makes_impossible_what_it_contradicts_and_what_builds_on_that(bench: &Bench<'_>) -> Outcome {
    let script = with_key(bench)?;
    let payment = pay(1, &script, 70);
    let child = spend(&[out(&payment, 0)], &[(&script, 60)]);
    let grandchild = spend(&[out(&child, 0)], &[(&foreign(1), 50)]);
    for transaction in [&payment, &child, &grandchild] {
        bench.accept(transaction);
    }
    let rival = pay(1, &foreign(2), 70);
    let block = bench.mine(&[&rival]);
    let conflicted = TxState::Conflicted { block, height: bench.tip()?.height };
    for transaction in [&payment, &child, &grandchild] {
        same("it is impossible", state(bench, transaction)?, conflicted)?;
    }
    same("the rival is nothing to the wallet", bench.info()?.transactions, 3)?;
    same("no coin is left", bench.outpoints()?, Vec::new())?;
    bench.disconnect();
    for transaction in [&payment, &child, &grandchild] {
        same("it is possible again", state(bench, transaction)?, TxState::Inactive)?;
    }
    // The rival waits in the mempool, in the way also of what builds on what it contradicts.
    for transaction in [&payment, &child, &grandchild] {
        let told = outlook(bench, transaction)?;
        same("who stands in its way", told.mempool_conflicts, vec![rival.compute_txid()])?;
        same("none of the wallet's", told.conflicts, Vec::new())?;
    }
    Ok(())
}

pub fn the_deeper_of_two_conflicts_counts(bench: &Bench<'_>) -> Outcome {
    let script = with_key(bench)?;
    let inputs = [1, 2].map(crate::testing::conformance::bench::elsewhere);
    let payment = spend(&inputs, &[(&script, 70)]);
    bench.accept(&payment);
    let first = bench.mine(&[&pay(1, &foreign(1), 5)]);
    let height = bench.tip()?.height;
    bench.mine(&[&pay(2, &foreign(2), 5)]);
    same("the first one", state(bench, &payment)?, TxState::Conflicted { block: first, height })?;
    bench.disconnect();
    same("it is there still", state(bench, &payment)?, TxState::Conflicted { block: first, height })
}

pub fn a_disconnected_coinbase_makes_no_coin(bench: &Bench<'_>) -> Outcome {
    let script = with_key(bench)?;
    bench.mine_to(&script, &[]);
    let coins = bench.coins()?;
    let coin = some("the coin", coins.first())?;
    holds("it is a coinbase's", coin.coinbase && coins.len() == 1)?;
    bench.disconnect();
    same("no coin", bench.outpoints()?, Vec::new())?;
    let known = bench.known(coin.outpoint.txid)?;
    same("its transaction is kept", (known.coinbase, known.state), (true, TxState::Abandoned))?;
    same("among what is not confirmed", bench.ids(HistoryRange::Unconfirmed, false)?, vec![coin.outpoint.txid])
}

pub fn what_builds_on_a_disconnected_coinbase_is_given_up(bench: &Bench<'_>) -> Outcome {
    let script = with_key(bench)?;
    let other = pay(1, &script, 9);
    bench.mine(&[&other]);
    bench.mine_to(&script, &[]);
    let coins = bench.coins()?;
    let coinbase = some("the coin", coins.iter().find(|coin| coin.coinbase))?.outpoint;
    for _ in 0..100 {
        bench.mine(&[]);
    }
    let confirmed = spend(&[coinbase], &[(&script, 8)]);
    bench.mine(&[&confirmed]);
    let waiting = spend(&[out(&confirmed, 0), out(&other, 0)], &[(&script, 7)]);
    bench.accept(&waiting);
    same("while all is well", bench.outpoints()?, vec![out(&waiting, 0)])?;
    for _ in 0..102 {
        bench.disconnect();
    }
    for txid in [coinbase.txid, confirmed.compute_txid(), waiting.compute_txid()] {
        same("it is given up", bench.known(txid)?.state, TxState::Abandoned)?;
    }
    same("what else was spent is free", bench.outpoints()?, vec![out(&other, 0)])?;
    bench.mine(&[]);
    bench.accept(&waiting);
    same("until it is met again", state(bench, &waiting)?, TxState::InMempool)
}

pub fn what_the_mempool_replaced_frees_what_it_spent(bench: &Bench<'_>) -> Outcome {
    let script = with_key(bench)?;
    let [one, two] = [1, 2].map(|number| pay(number, &script, 70));
    bench.mine(&[&one, &two]);
    let first = spend(&[out(&one, 0), out(&two, 0)], &[(&script, 100)]);
    let child = spend(&[out(&first, 0)], &[(&script, 90)]);
    bench.accept(&first);
    bench.accept(&child);
    same("while they wait", bench.outpoints()?, vec![out(&child, 0)])?;
    // What took their place spends one of the two.
    let second = spend(&[out(&one, 0)], &[(&foreign(1), 60)]);
    bench.take_out(first.compute_txid());
    bench.accept(&second);
    same("the other one is free", bench.outpoints()?, vec![out(&two, 0)])?;
    for transaction in [&first, &child] {
        same("it may come back", state(bench, transaction)?, TxState::Inactive)?;
        same("what is in its way", outlook(bench, transaction)?.mempool_conflicts, vec![second.compute_txid()])?;
    }
    bench.take_out(second.compute_txid());
    same("with nothing in its way", outlook(bench, &child)?.mempool_conflicts, Vec::new())?;
    same("what it spends is not free", bench.outpoints()?, vec![out(&child, 0)])?;
    // One that is nothing to the wallet is in the way of what spends the same of others.
    let stranger = pay(3, &script, 5);
    bench.accept(&stranger);
    bench.take_out(stranger.compute_txid());
    let rival = pay(3, &foreign(2), 5);
    bench.accept(&rival);
    same("in the way of a payment to us", outlook(bench, &stranger)?.mempool_conflicts, vec![rival.compute_txid()])?;
    holds("which makes no coin", !bench.outpoints()?.contains(&out(&stranger, 0)))?;
    bench.take_out(rival.compute_txid());
    holds("until that is gone", bench.outpoints()?.contains(&out(&stranger, 0)))
}

pub fn only_what_is_idle_can_be_given_up(bench: &Bench<'_>) -> Outcome {
    let script = with_key(bench)?;
    let payment = pay(1, &script, 70);
    let child = spend(&[out(&payment, 0)], &[(&script, 60)]);
    let txid = payment.compute_txid();
    let abandon = |txid| bench.ask(|wallet, scope| wallet.abandon(scope, txid));
    refused("what is not known", abandon(txid), ErrorKind::NotFound)?;
    bench.accept(&payment);
    refused("what is in the mempool", abandon(txid), ErrorKind::Refused)?;
    bench.mine(&[&payment]);
    refused("what is in the chain", abandon(txid), ErrorKind::Refused)?;
    bench.accept(&child);
    bench.disconnect();
    bench.take_out(txid);
    same("the child left with its parent", state(bench, &child)?, TxState::Inactive)?;
    abandon(txid)?;
    same("it is given up", state(bench, &payment)?, TxState::Abandoned)?;
    same("and what builds on it", state(bench, &child)?, TxState::Abandoned)?;
    same("no coin", bench.outpoints()?, Vec::new())?;
    for transaction in [&payment, &child] {
        abandon(transaction.compute_txid())?;
        same("it is given up still", state(bench, transaction)?, TxState::Abandoned)?;
    }
    bench.mine(&[&pay(1, &foreign(1), 5)]);
    refused("what is impossible", abandon(txid), ErrorKind::Refused)
}

pub fn what_was_given_up_can_come_back(bench: &Bench<'_>) -> Outcome {
    let script = with_key(bench)?;
    let [one, two] = [1, 2].map(|number| pay(number, &script, 70));
    let spending = spend(&[out(&one, 0)], &[(&foreign(1), 60)]);
    bench.mine(&[&one]);
    for transaction in [&two, &spending] {
        bench.accept(transaction);
        bench.take_out(transaction.compute_txid());
        bench.ask(|wallet, scope| wallet.abandon(scope, transaction.compute_txid()))?;
    }
    same("what it spends is free", bench.outpoints()?, vec![out(&one, 0)])?;
    bench.accept(&two);
    same("back in the mempool", state(bench, &two)?, TxState::InMempool)?;
    bench.mine(&[&spending]);
    holds("back in a block", matches!(state(bench, &spending)?, TxState::Confirmed { .. }))?;
    same("its coin", bench.outpoints()?, vec![out(&two, 0)])
}

pub fn contested_transactions_name_one_another(bench: &Bench<'_>) -> Outcome {
    let script = with_key(bench)?;
    let one = pay(1, &script, 7);
    bench.accept(&one);
    same("alone", bench.known(one.compute_txid())?.contested, false)?;
    let two = pay(1, &script, 6);
    let three = pay(1, &script, 5);
    bench.accept(&two);
    bench.accept(&three);
    bench.mine(&[&two]);
    for transaction in [&one, &two, &three] {
        let txid = transaction.compute_txid();
        same("it is contested", bench.known(txid)?.contested, true)?;
        let mut others: Vec<_> = [&one, &two, &three].map(Transaction::compute_txid).to_vec();
        others.retain(|other| *other != txid);
        others.sort_unstable();
        same("by the others", outlook(bench, transaction)?.conflicts, others)?;
    }
    Ok(())
}

pub fn only_what_is_confirmed_and_uncontested_needs_no_outlook(bench: &Bench<'_>) -> Outcome {
    let script = with_key(bench)?;
    let payment = pay(1, &script, 7);
    bench.accept(&payment);
    same("while it waits", bench.row(payment.compute_txid())?.outlook.is_some(), true)?;
    bench.mine(&[&payment]);
    same("once it is settled", bench.row(payment.compute_txid())?.outlook, None)
}

pub fn what_is_ours_and_waits_is_trusted(bench: &Bench<'_>) -> Outcome {
    let script = with_key(bench)?;
    let [one, two] = [1, 2].map(|number| pay(number, &script, 70));
    bench.mine(&[&one]);
    let spending = spend(&[out(&one, 0)], &[(&script, 60)]);
    let further = spend(&[out(&spending, 0)], &[(&script, 50)]);
    let mixed = spend(&[out(&two, 0)], &[(&script, 40)]);
    for transaction in [&two, &spending, &further] {
        bench.accept(transaction);
    }
    same("a stranger's payment", outlook(bench, &two)?.trusted, false)?;
    same("one of ours on a confirmed one", outlook(bench, &spending)?.trusted, true)?;
    same("one of ours on one of ours", outlook(bench, &further)?.trusted, true)?;
    let coin = |transaction: &Transaction| -> Result<_, Failure> {
        let coins = bench.coins()?.into_iter().find(|coin| coin.outpoint == out(transaction, 0));
        Ok(some("the coin", coins)?.trusted)
    };
    same("its coin", coin(&further)?, true)?;
    same("the stranger's coin", coin(&two)?, false)?;
    bench.accept(&mixed);
    same("one of ours on a stranger's", outlook(bench, &mixed)?.trusted, false)?;
    bench.take_out(further.compute_txid());
    same("one that is out of the mempool", outlook(bench, &further)?.trusted, false)?;
    bench.mine(&[&two]);
    same("once that is confirmed", outlook(bench, &mixed)?.trusted, true)
}

pub fn replaceability_is_told_where_it_can_be_known(bench: &Bench<'_>) -> Outcome {
    let script = with_key(bench)?;
    let mut signalling = pay(1, &script, 70);
    for input in &mut signalling.input {
        input.sequence = Sequence::ENABLE_RBF_NO_LOCKTIME;
    }
    let child = spend(&[out(&signalling, 0)], &[(&script, 60)]);
    let plain = pay(2, &script, 5);
    for transaction in [&signalling, &child, &plain] {
        bench.accept(transaction);
    }
    let told = |transaction| Ok::<_, Failure>(outlook(bench, transaction)?.replaceable);
    same("one that signals it", told(&signalling)?, Replaceable::Yes)?;
    same("one that builds on it", told(&child)?, Replaceable::Yes)?;
    same("one that does not", told(&plain)?, Replaceable::No)?;
    bench.take_out(plain.compute_txid());
    same("one whose ancestors are not known", told(&plain)?, Replaceable::Unknown)?;
    bench.mine(&[&signalling]);
    same("on one that is confirmed", told(&child)?, Replaceable::No)
}

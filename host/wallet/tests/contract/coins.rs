use bitcoin::ScriptBuf;
use bitcoin::hashes::Hash;

use crate::tester::{Tester, foreign, out, p2pkh, p2wpkh, pay, public, same, spend, watch, with_key};
use outrigger_service::wallet::{LabelledScript, Ownership, TxState};

#[test]
fn coins_come_by_outpoint() {
    let tester = &Tester::new();
    let script = with_key(tester);
    let payments: Vec<_> = (1..=4).map(|number| pay(number, &script, 5)).collect();
    let wide = spend(&[out(&payments[0], 0)], &[(&script, 1), (&foreign(1), 1), (&script, 1), (&script, 1)]);
    payments.iter().for_each(|payment| tester.accept(payment));
    tester.accept(&wide);
    let mut expected: Vec<_> = payments.iter().skip(1).map(|payment| out(payment, 0)).collect();
    expected.extend([0, 2, 3].map(|vout| out(&wide, vout)));
    expected.sort_by_key(|outpoint| (outpoint.txid.to_byte_array(), outpoint.vout));
    same("the coins", tester.outpoints(), expected);
}

#[test]
fn a_place_among_the_coins_outlives_what_happens_meanwhile() {
    let tester = &Tester::new();
    let script = with_key(tester);
    let payments: Vec<_> = (1..=5).map(|number| pay(number, &script, 5)).collect();
    payments.iter().for_each(|payment| tester.accept(payment));
    let before = tester.outpoints();
    let first = tester.coin_batch(None, 1).unwrap();
    let gone = before.first().expect("the first coin");
    tester.accept(&spend(&[*gone], &[(&foreign(1), 4)]));
    let mut found: Vec<_> = first.coins.iter().map(|coin| coin.outpoint).collect();
    let mut after = first.next;
    while let Some(place) = after {
        let batch = tester.coin_batch(Some(place), 1).unwrap();
        found.extend(batch.coins.iter().map(|coin| coin.outpoint));
        assert!(found.len() < 50, "reading comes to its end");
        after = batch.next;
    }
    same("each coin once, though the first was spent meanwhile", found, before);
}

#[test]
fn a_lock_ends_when_the_coin_is_spent() {
    let tester = &Tester::new();
    let script = with_key(tester);
    let payments = [pay(1, &script, 70), pay(2, &script, 70)];
    tester.mine(&payments.each_ref());
    let mut coins: Vec<_> = payments.iter().map(|payment| out(payment, 0)).collect();
    coins.sort_unstable();
    let locked = || tester.ask(|host, scope| host.wallet.locked_coins(scope));
    let spenders = || tester.ask(|host, scope| host.wallet.spenders(scope, coins.clone()));
    tester.ask(|host, scope| host.book.lock_coins(scope, coins.clone(), false)).unwrap();
    same("the locked ones", locked().unwrap(), coins.clone());
    same("they are coins still", tester.outpoints(), coins.clone());
    let spending = spend(&[*coins.last().expect("a coin")], &[(&foreign(1), 60)]);
    tester.accept(&spending);
    tester.take_out(spending.compute_txid());
    tester.ask(|host, scope| host.pay.abandon(scope, spending.compute_txid())).unwrap();
    same("what was spent once is locked no more", locked().unwrap(), coins.iter().take(1).copied().collect());
    same("the spenders, given up or not", spenders().unwrap(), vec![Vec::new(), vec![spending.compute_txid()]]);
    tester.ask(|host, scope| host.book.unlock_coins(scope, coins.clone())).unwrap();
    same("none is locked", locked().unwrap(), Vec::new());
}

#[test]
fn a_coin_says_what_its_transaction_says() {
    let tester = &Tester::new();
    let script = with_key(tester);
    tester.take(watch(&p2wpkh(2)));
    let payment = pay(1, &script, 70);
    tester.mine(&[&payment]);
    let spending = spend(&[out(&payment, 0)], &[(&script, 20), (&p2wpkh(2), 30), (&foreign(1), 10)]);
    tester.accept(&spending);
    for coin in tester.coins() {
        let known = tester.known(coin.outpoint.txid);
        let output = known.output(coin.outpoint.vout).expect("its output");
        same("value, script", (coin.value, &coin.script), (output.value, &output.script));
        same("ownership, change", (coin.ownership, coin.change), (output.ownership, output.change));
        same("label", &coin.label, &output.label);
        same("state, coinbase", (coin.state, coin.coinbase), (known.state, known.coinbase));
        same("whether it is from us", coin.from_us, known.is_from_us());
    }
    let whose: Vec<Ownership> = tester.coins().iter().map(|coin| coin.ownership).collect();
    same("whose they are", whose, vec![Ownership::Spendable, Ownership::WatchOnly]);
    let states: Vec<TxState> = tester.coins().iter().map(|coin| coin.state).collect();
    same("where they stand", states, vec![TxState::InMempool; 2]);
}

#[test]
fn labels_are_entries_of_the_address_book() {
    let tester = &Tester::with(|_| {});
    tester.take(watch(&p2wpkh(1)));
    let set =
        |script: ScriptBuf, label: &str| tester.ask(|host, scope| host.book.set_label(scope, script, label.into()));
    set(foreign(1), "shop").unwrap();
    set(p2wpkh(1), "home").unwrap();
    set(p2wpkh(1), "").unwrap();
    let entry =
        |script, label: &str, ownership, sending| LabelledScript { script, label: label.into(), ownership, sending };
    let others = entry(foreign(1), "shop", Ownership::None, true);
    let mut expected = vec![others, entry(p2wpkh(1), "", Ownership::WatchOnly, false)];
    expected.sort_by(|one, other| one.script.cmp(&other.script));
    same("the address book", tester.labels(), expected);
    let info = tester.script(&foreign(1)).expect("an address of another's");
    let told = (info.ownership, info.label.as_deref(), info.change);
    same("what is told of it", told, (Ownership::None, Some("shop"), false));
    same("what nothing is known of", tester.script(&foreign(2)), None);
}

#[test]
fn an_address_that_was_labelled_as_anothers_stays_so_when_it_is_imported() {
    let tester = &Tester::with(|_| {});
    let text = format!("wpkh({}/2/*)", crate::tester::master(1));
    let script = super::imports::at(&text, 1);
    let set = |label: &str| tester.ask(|host, scope| host.book.set_label(scope, script.clone(), label.into()));
    let told = || {
        let entry = |entry: LabelledScript| (entry.label, entry.ownership, entry.sending);
        tester.labels().into_iter().map(entry).collect::<Vec<_>>()
    };
    let entry = |label: &str, ownership, sending| vec![(label.to_owned(), ownership, sending)];
    set("theirs").unwrap();
    same("before", told(), entry("theirs", Ownership::None, true));
    tester.take(crate::tester::descriptor(&text, |import| import.range = Some((0, 5))));
    same("after", told(), entry("theirs", Ownership::Spendable, true));
    set("mine").unwrap();
    same("labelled again", told(), entry("mine", Ownership::Spendable, false));
}

#[test]
fn a_label_changes_rows_coins_and_scripts_at_once() {
    let tester = &Tester::with(|_| {});
    let text = format!("wpkh({})", crate::tester::wif(1).expose());
    let change = crate::tester::descriptor(&text, |import| import.internal = Some(true));
    tester.take(change);
    let script = p2wpkh(1);
    let payment = pay(1, &script, 7);
    tester.accept(&payment);
    let told = || {
        let known = tester.known(payment.compute_txid());
        let output = known.output(0).expect("the output").clone();
        let coins = tester.coins();
        let coin = coins.first().expect("the coin").clone();
        let info = tester.script(&script).expect("the script");
        [(output.label, output.change), (coin.label, coin.change), (info.label, info.change)]
    };
    same("before", told(), [(None, true), (None, true), (None, true)]);
    tester.ask(|host, scope| host.book.set_label(scope, script.clone(), "mine".into())).unwrap();
    let labelled = || (Some("mine".to_owned()), false);
    same("after", told(), [labelled(), labelled(), labelled()]);
}

#[test]
fn a_script_without_an_address_takes_no_label() {
    let tester = &Tester::with(|_| {});
    for script in [ScriptBuf::new_op_return([1, 2]), ScriptBuf::from_bytes(vec![0x51])] {
        tester.ask(|host, scope| host.book.set_label(scope, script.clone(), "x".into())).unwrap();
        same("what is known of it", tester.script(&script), None);
    }
    same("the address book", tester.labels(), Vec::new());
}

#[test]
fn a_bare_key_has_no_label() {
    let tester = &Tester::with(|_| {});
    let text = format!("pk({})", crate::tester::wif(1).expose());
    tester.take(crate::tester::descriptor(&text, |import| import.label = Some("a".into())));
    let script = ScriptBuf::new_p2pk(&public(1));
    let payment = pay(1, &script, 7);
    tester.accept(&payment);
    tester.ask(|host, scope| host.book.set_label(scope, p2pkh(1), "b".into())).unwrap();
    tester.ask(|host, scope| host.book.set_label(scope, script.clone(), "c".into())).unwrap();
    let known = tester.known(payment.compute_txid());
    let output = known.output(0).expect("the output");
    same("its output", (output.change, output.label.as_deref()), (true, None));
    let entries: Vec<_> = tester.labels().into_iter().map(|entry| (entry.script, entry.label)).collect();
    same("only the address of its hash has one", entries, vec![(p2pkh(1), "b".to_owned())]);
}

#[test]
fn the_address_book_comes_whole_and_each_entry_once() {
    let tester = &Tester::with(|_| {});
    for number in 1..=7 {
        tester.ask(|host, scope| host.book.set_label(scope, foreign(number), number.to_string())).unwrap();
    }
    let found: Vec<_> = tester.labels().into_iter().map(|entry| entry.script).collect();
    same("all of it", found, (1..=7).map(foreign).collect::<Vec<_>>());
    // Entries added between batches do not move others.
    let first = tester.label_batch(None, 1).unwrap();
    let mut found: Vec<_> = first.entries.into_iter().map(|entry| entry.script).collect();
    (8..=12)
        .try_for_each(|number| tester.ask(|host, scope| host.book.set_label(scope, foreign(number), "new".into())))
        .unwrap();
    let mut after = first.next;
    while let Some(place) = after {
        let batch = tester.label_batch(Some(place), 2).unwrap();
        found.extend(batch.entries.into_iter().map(|entry| entry.script));
        assert!(found.len() < 50, "reading comes to its end");
        after = batch.next;
    }
    found.retain(|script| (1..=7).any(|number| foreign(number) == *script));
    found.sort();
    same("each of the old ones once", found, (1..=7).map(foreign).collect());
}

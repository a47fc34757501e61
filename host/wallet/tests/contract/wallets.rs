use crate::tester::{Tester, WALLET, descriptor, foreign, master, out, p2wpkh, pay, refused, same, single, spend};
use outrigger_service::ErrorKind;
use outrigger_service::wallet::AddressType;
use outrigger_service::wire::Secret;

#[test]
fn a_new_wallet_says_what_it_was_made_as() {
    let tester = &Tester::new();
    tester.mine(&[]);
    tester.create(|options| options.avoid_reuse = true);
    let tip = tester.tip();
    let info = tester.info();
    same("where it begins", info.synced, tip);
    same("its name", info.name.as_str(), WALLET);
    same("a blank one with private keys", (info.blank, info.private_keys_enabled), (true, true));
    same("its flag", info.avoid_reuse, true);
    same("its encryption", (info.encrypted, info.locked, info.unlocked_until), (false, false, 0));
    same("its keypools", (info.keypool_external, info.keypool_internal), (0, 0));
    same("its birth time", info.birth_time, 0);
    same("its backups", (info.backup_needed, info.last_backup), (true, 0));
    same("its transactions", info.transactions, 0);
    tester.try_create("keyless", |options| (options.blank, options.disable_private_keys) = (false, true)).unwrap();
    let info = tester.of(Some("keyless"), |host, scope| host.wallet.info(scope)).unwrap();
    same("one without private keys", (info.blank, info.private_keys_enabled), (false, false));
    tester.try_create("sealed", |options| options.passphrase = Secret::new("pass".into())).unwrap();
    let info = tester.of(Some("sealed"), |host, scope| host.wallet.info(scope)).unwrap();
    same("one with a passphrase", (info.encrypted, info.locked), (true, true));
}

#[test]
fn a_call_sees_one_moment() {
    let tester = &Tester::with(|_| {});
    tester.take(single(1));
    let script = p2wpkh(1);
    let host = tester.services();
    let (scope, call) = tester.open(Some(WALLET));
    let before = host.wallet.info(scope).unwrap();
    tester.mine(&[&pay(1, &script, 70)]);
    tester.ask(|host, scope| host.book.set_label(scope, script.clone(), "new".into())).unwrap();
    same("the wallet as the call met it", host.wallet.info(scope).unwrap(), before);
    same("its coins", host.wallet.coins(scope, false, None, 9).unwrap().coins, Vec::new());
    let label = host.wallet.labels(scope, None, 9).unwrap().entries.into_iter().next().map(|entry| entry.label);
    same("its address book", label.as_deref(), Some("1"));
    drop(call);
    same("what a later call sees", tester.coins().len(), 1);
    same("where it stands", tester.info().synced.hash, tester.tip().hash);
}

#[test]
fn a_call_sees_what_it_wrote() {
    let tester = &Tester::with(|_| {});
    let host = tester.services();
    let (scope, call) = tester.open(Some(WALLET));
    same("what it knows at first", host.wallet.scripts(scope, vec![p2wpkh(1)]).unwrap(), vec![None]);
    host.import.import(scope, vec![single(1)]).unwrap();
    assert!(
        host.wallet.scripts(scope, vec![p2wpkh(1)]).unwrap().iter().all(Option::is_some),
        "it knows what it imported"
    );
    let text = format!("wpkh({}/0/*)", master(9));
    host.import
        .import(scope, vec![descriptor(&text, |import| (import.range, import.active) = (Some((0, 5)), true))])
        .unwrap();
    let script = host.book.new_address(scope, AddressType::Bech32, false, Some("fresh".into())).unwrap();
    let labels = host.wallet.labels(scope, None, 9).unwrap().entries;
    assert!(labels.iter().any(|entry| entry.script == script && entry.label == "fresh"), "it sees the label it gave");
    drop(call);
    let payment = pay(1, &script, 70);
    tester.accept(&payment);
    tester.take_out(payment.compute_txid());
    let (scope, call) = tester.open(Some(WALLET));
    let coins = host.wallet.coins(scope, false, None, 9).unwrap().coins;
    same("the coin", coins.first().map(|coin| coin.outpoint), Some(out(&payment, 0)));
    host.pay.abandon(scope, payment.compute_txid()).unwrap();
    same("none when it gave its transaction up", host.wallet.coins(scope, false, None, 9).unwrap().coins, Vec::new());
    drop(call);
    let spending = spend(&[out(&payment, 0)], &[(&foreign(1), 60)]);
    tester.accept(&payment);
    tester.accept(&spending);
    same("what spends it concerns the wallet", tester.known(spending.compute_txid()).debit_spendable.to_sat(), 70);
}

#[test]
fn avoid_reuse_is_kept() {
    let tester = &Tester::with(|_| {});
    for avoid in [true, false, true] {
        tester.ask(|host, scope| host.admin.set_avoid_reuse(scope, avoid)).unwrap();
        same("the flag", tester.info().avoid_reuse, avoid);
    }
}

#[test]
fn wallets_are_opened_by_name_outside_of_calls() {
    let tester = &Tester::new();
    for name in ["a", "b"] {
        tester.try_create(name, |_| {}).unwrap();
    }
    let host = tester.services();
    let [a, b] = [host.wallet_scope("a").unwrap(), host.wallet_scope("b").unwrap()];
    same("the same for the same name", host.wallet_scope("a").unwrap(), a);
    same("the one", host.wallet.info(a).unwrap().name.as_str(), "a");
    same("the other", host.wallet.info(b).unwrap().name.as_str(), "b");
    host.book.set_label(a, foreign(1), "x".into()).unwrap();
    let labels = |scope| host.wallet.labels(scope, None, 9).unwrap().entries.len();
    same("a write is seen at once", labels(a), 1);
    same("in that wallet alone", labels(b), 0);
    refused("a payment is begun in a call", host.pay.begin_payment(a), ErrorKind::Unsupported);
    refused("one that is not loaded", host.wallet_scope("c"), ErrorKind::WalletNotLoaded);
    tester.unload("a").unwrap();
    refused("one that was unloaded", host.wallet.info(a), ErrorKind::WalletNotLoaded);
}

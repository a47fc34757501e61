use crate::tester::{
    Tester, WALLET, descriptor, foreign, holds, master, out, p2wpkh, pay, refused, same, single, some, spend,
};
use crate::{Failure, Outcome};
use outrigger_service::ErrorKind;
use outrigger_service::wallet::{AddressType, HistoryRange, Synced};
use outrigger_service::wire::Secret;

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn the_wallet_of_a_call_is_the_named_or_the_only_one() -> Outcome {
    let tester = &Tester::new();
    let name = |wallet: Option<&str>| tester.of(wallet, |w, scope| w.info(scope).map(|info| info.name));
    refused("none is loaded", name(None), ErrorKind::NoWallet)?;
    refused("one is named, and none loaded", name(Some("a")), ErrorKind::WalletNotLoaded)?;
    tester.try_create("a", |_| {})?;
    same("the only one", name(None)?, "a".into())?;
    tester.try_create("b", |_| {})?;
    refused("there are two", name(None), ErrorKind::WalletNotSpecified)?;
    same("the named one", name(Some("b"))?, "b".into())?;
    refused("another is named", name(Some("c")), ErrorKind::WalletNotLoaded)?;
    let written = tester.of(None, |w, scope| w.set_label(scope, foreign(1), "x".into()));
    refused("a write without a name", written, ErrorKind::WalletNotSpecified)?;
    tester.unload("a")?;
    same("the one that is left", name(None)?, "b".into())?;
    refused("one that was unloaded", name(Some("a")), ErrorKind::WalletNotLoaded)
}

#[test]
fn loaded_wallets_are_listed_in_their_order_and_all_by_name() -> Outcome {
    let tester = &Tester::new();
    for name in ["b", "c", "a/d"] {
        tester.try_create(name, |_| {})?;
    }
    let list = || tester.of(None, |wallet, scope| wallet.list(scope));
    same("the loaded ones", list()?, names(&["b", "c", "a/d"]))?;
    tester.unload("b")?;
    same("without the first", list()?, names(&["c", "a/d"]))?;
    let directory = tester.of(None, |wallet, scope| wallet.directory(scope))?;
    same("all of them", directory, names(&["a/d", "b", "c"]))?;
    tester.load("b")?;
    same("the one loaded last comes last", list()?, names(&["c", "a/d", "b"]))
}

#[test]
fn a_wallet_that_cannot_be_made_leaves_nothing_behind() -> Outcome {
    let tester = &Tester::with(|_| {})?;
    refused("a name that is taken", tester.try_create(WALLET, |_| {}), ErrorKind::WalletExists)?;
    refused("a name that leads elsewhere", tester.try_create("../x", |_| {}), ErrorKind::Refused)?;
    let keyless = tester.try_create("k", |options| {
        (options.disable_private_keys, options.passphrase) = (true, Secret::new("pass".into()));
    });
    refused("a passphrase for no keys", keyless, ErrorKind::Refused)?;
    tester.unload(WALLET)?;
    refused("a name that is taken by an unloaded one", tester.try_create(WALLET, |_| {}), ErrorKind::WalletExists)?;
    same("what there is", tester.of(None, |wallet, scope| wallet.directory(scope))?, names(&[WALLET]))
}

#[test]
fn loading_and_unloading_are_refused_where_there_is_nothing_to_do() -> Outcome {
    let tester = &Tester::new();
    refused("one that does not exist is loaded", tester.load("x"), ErrorKind::WalletNotLoaded)?;
    refused("one that does not exist is unloaded", tester.unload("x"), ErrorKind::WalletNotLoaded)?;
    tester.create(|_| {})?;
    refused("a loaded one is loaded", tester.load(WALLET), ErrorKind::WalletAlreadyLoaded)?;
    tester.unload(WALLET)?;
    refused("an unloaded one is unloaded", tester.unload(WALLET), ErrorKind::WalletNotLoaded)
}

#[test]
fn what_a_wallet_holds_outlives_its_unloading() -> Outcome {
    let tester = &Tester::with(|options| options.avoid_reuse = true)?;
    tester.take(single(1)?)?;
    let script = p2wpkh(1)?;
    let payment = pay(1, &script, 70);
    tester.mine(&[&payment]);
    tester.accept(&pay(2, &script, 80));
    tester.ask(|w, scope| w.set_metadata(scope, payment.compute_txid(), "comment".into(), "rent".into()))?;
    let all = || -> Result<_, Failure> {
        let history = tester.history(HistoryRange::All, false, 2)?;
        Ok((tester.info()?, history, tester.coins()?, tester.labels()?, tester.script(&script)?))
    };
    let before = all()?;
    tester.unload(WALLET)?;
    tester.load(WALLET)?;
    same("everything", all()?, before)
}

#[test]
fn a_wallet_catches_up_when_it_is_loaded() -> Outcome {
    let tester = &Tester::with(|_| {})?;
    tester.take(single(1)?)?;
    let script = p2wpkh(1)?;
    let [gone, mined, waiting] = [1, 2, 3].map(|number| pay(number, &script, u64::from(number)));
    let block = tester.mine(&[&gone]);
    tester.unload(WALLET)?;
    tester.disconnect();
    tester.take_out(gone.compute_txid());
    tester.mine(&[&mined]);
    tester.accept(&waiting);
    tester.load(WALLET)?;
    holds("the tip is another one", tester.tip()?.hash != block)?;
    same("the height where it stands", tester.info()?.synced.height, tester.tip()?.height)?;
    let confirmed = HistoryRange::Confirmed { from_height: 0 };
    same("what is confirmed", tester.ids(confirmed, false)?, vec![mined.compute_txid()])?;
    let waiting = vec![gone.compute_txid(), waiting.compute_txid()];
    same("what is not", tester.ids(HistoryRange::Unconfirmed, false)?, waiting)
}

#[test]
fn a_new_wallet_says_what_it_was_made_as() -> Outcome {
    let tester = &Tester::new();
    tester.mine(&[]);
    tester.create(|options| options.avoid_reuse = true)?;
    let tip = tester.tip()?;
    let info = tester.info()?;
    let synced = Synced { hash: tip.hash, height: tip.height, time: tip.time, median_time: tip.median_time };
    same("where it begins", info.synced, synced)?;
    same("its name", info.name.as_str(), WALLET)?;
    same("a blank one with private keys", (info.blank, info.private_keys_enabled), (true, true))?;
    same("its flag", info.avoid_reuse, true)?;
    same("its encryption", (info.encrypted, info.locked, info.unlocked_until), (false, false, 0))?;
    same("its keypools", (info.keypool_external, info.keypool_internal), (0, 0))?;
    same("its birth time", info.birth_time, 0)?;
    same("its backups", (info.backup_needed, info.last_backup), (true, 0))?;
    same("its transactions", info.transactions, 0)?;
    tester.try_create("keyless", |options| (options.blank, options.disable_private_keys) = (false, true))?;
    let info = tester.of(Some("keyless"), |wallet, scope| wallet.info(scope))?;
    same("one without private keys", (info.blank, info.private_keys_enabled), (false, false))?;
    tester.try_create("sealed", |options| options.passphrase = Secret::new("pass".into()))?;
    let info = tester.of(Some("sealed"), |wallet, scope| wallet.info(scope))?;
    same("one with a passphrase", (info.encrypted, info.locked), (true, true))
}

#[test]
fn a_wallet_with_keys_of_its_own_has_an_address_of_each_kind() -> Outcome {
    let tester = &Tester::with(|options| options.blank = false)?;
    let info = tester.info()?;
    let ahead = 4 * u64::from(tester.keypool());
    same("its keypools", (info.keypool_external, info.keypool_internal), (ahead, ahead))?;
    same("it is not blank", info.blank, false)?;
    let time = u64::from(tester.tip()?.time);
    same("its birth time is the node's", info.birth_time, time)?;
    let address = |kind, internal| tester.ask(|wallet, scope| wallet.new_address(scope, kind, internal, None));
    for internal in [false, true] {
        holds("legacy is P2PKH", address(AddressType::Legacy, internal)?.is_p2pkh())?;
        holds("p2sh-segwit is P2SH", address(AddressType::P2shSegwit, internal)?.is_p2sh())?;
        holds("bech32 is P2WPKH", address(AddressType::Bech32, internal)?.is_p2wpkh())?;
        let script = address(AddressType::Bech32m, internal)?;
        holds("bech32m is P2TR", script.is_p2tr())?;
        same("it knows the side", some("the script", tester.script(&script)?)?.internal, internal)?;
    }
    let told = tester.ask(|wallet, scope| wallet.descriptors(scope, false))?;
    same("its active descriptors", told.iter().filter(|info| info.active).count(), 8)
}

#[test]
fn a_backup_is_the_wallet_as_it_was() -> Outcome {
    let tester = &Tester::with(|_| {})?;
    tester.take(single(1)?)?;
    let script = p2wpkh(1)?;
    tester.mine(&[&pay(1, &script, 70)]);
    let file = tester.backup_file("one");
    tester.ask(|wallet, scope| wallet.backup(scope, file.clone()))?;
    let info = tester.info()?;
    same("what is said of it", (info.backup_needed, info.last_backup), (false, u64::from(tester.tip()?.time)))?;
    tester.take(single(2)?)?;
    same("an import after it", tester.info()?.backup_needed, true)?;
    tester.ask(|wallet, scope| wallet.set_label(scope, foreign(1), "later".into()))?;
    tester.mine(&[&pay(2, &script, 80)]);
    tester.of(None, |wallet, scope| wallet.restore(scope, "copy".into(), file, None))?;
    let (info, coins, labels) = tester.of(Some("copy"), |wallet, scope| {
        Ok::<_, Failure>((wallet.info(scope)?, wallet.coins(scope, None, 9)?, wallet.labels(scope, None, 9)?))
    })?;
    same("its name, and that it needs a backup", (info.name.as_str(), info.backup_needed), ("copy", true))?;
    same("it has followed the chain since", info.synced.hash, tester.tip()?.hash)?;
    same("its coins", coins.coins.len(), 2)?;
    let labels: Vec<_> = labels.entries.into_iter().map(|entry| (entry.script, entry.label)).collect();
    same("its address book", labels, vec![(script, "1".to_owned())])
}

#[test]
fn a_backup_is_restored_under_a_free_name_only() -> Outcome {
    let tester = &Tester::with(|_| {})?;
    let file = tester.backup_file("one");
    let restore = |name: &str, file: String| tester.of(None, |w, scope| w.restore(scope, name.into(), file, None));
    refused("no file", restore("copy", file.clone()), ErrorKind::NotFound)?;
    tester.ask(|wallet, scope| wallet.backup(scope, file.clone()))?;
    refused("a loaded wallet's name", restore(WALLET, file.clone()), ErrorKind::WalletExists)?;
    tester.unload(WALLET)?;
    refused("an unloaded wallet's name", restore(WALLET, file.clone()), ErrorKind::WalletExists)?;
    refused("a name that leads elsewhere", restore("../x", file.clone()), ErrorKind::Refused)?;
    restore("copy", file)?;
    same("what is loaded", tester.of(None, |wallet, scope| wallet.list(scope))?, names(&["copy"]))
}

#[test]
fn a_call_sees_one_moment() -> Outcome {
    let tester = &Tester::with(|_| {})?;
    tester.take(single(1)?)?;
    let script = p2wpkh(1)?;
    let wallet = tester.wallet();
    let (scope, call) = tester.open(Some(WALLET));
    let before = wallet.info(scope)?;
    tester.mine(&[&pay(1, &script, 70)]);
    tester.ask(|wallet, scope| wallet.set_label(scope, script.clone(), "new".into()))?;
    same("the wallet as the call met it", wallet.info(scope)?, before)?;
    same("its coins", wallet.coins(scope, None, 9)?.coins, Vec::new())?;
    let label = wallet.labels(scope, None, 9)?.entries.into_iter().next().map(|entry| entry.label);
    same("its address book", label.as_deref(), Some("1"))?;
    drop(call);
    same("what a later call sees", tester.coins()?.len(), 1)?;
    same("where it stands", tester.info()?.synced.hash, tester.tip()?.hash)
}

#[test]
fn a_call_sees_what_it_wrote() -> Outcome {
    let tester = &Tester::with(|_| {})?;
    let wallet = tester.wallet();
    let (scope, call) = tester.open(Some(WALLET));
    same("what it knows at first", wallet.scripts(scope, vec![p2wpkh(1)?])?, vec![None])?;
    wallet.import(scope, vec![single(1)?])?;
    holds("it knows what it imported", wallet.scripts(scope, vec![p2wpkh(1)?])?.iter().all(Option::is_some))?;
    let text = format!("wpkh({}/0/*)", master(9)?);
    wallet.import(scope, vec![descriptor(&text, |import| (import.range, import.active) = (Some((0, 5)), true))])?;
    let script = wallet.new_address(scope, AddressType::Bech32, false, Some("fresh".into()))?;
    let labels = wallet.labels(scope, None, 9)?.entries;
    holds("it sees the label it gave", labels.iter().any(|entry| entry.script == script && entry.label == "fresh"))?;
    drop(call);
    let payment = pay(1, &script, 70);
    tester.accept(&payment);
    tester.take_out(payment.compute_txid());
    let (scope, call) = tester.open(Some(WALLET));
    let coins = wallet.coins(scope, None, 9)?.coins;
    same("the coin", coins.first().map(|coin| coin.outpoint), Some(out(&payment, 0)))?;
    wallet.abandon(scope, payment.compute_txid())?;
    same("none when it gave its transaction up", wallet.coins(scope, None, 9)?.coins, Vec::new())?;
    drop(call);
    let spending = spend(&[out(&payment, 0)], &[(&foreign(1), 60)]);
    tester.accept(&payment);
    tester.accept(&spending);
    same("what spends it concerns the wallet", tester.known(spending.compute_txid())?.debit_spendable.to_sat(), 70)
}

#[test]
fn avoid_reuse_is_kept() -> Outcome {
    let tester = &Tester::with(|_| {})?;
    for avoid in [true, false, true] {
        tester.ask(|wallet, scope| wallet.set_avoid_reuse(scope, avoid))?;
        same("the flag", tester.info()?.avoid_reuse, avoid)?;
    }
    Ok(())
}

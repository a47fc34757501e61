//! Imports, and their immediate effects.

use bitcoin::ScriptBuf;
use bitcoin::opcodes::all::OP_CHECKMULTISIG;
use bitcoin::script::Builder;

use crate::tester::{
    Tester, descriptor, foreign, keys, master, out, p2pkh, p2wpkh, pay, public, same, spend, watch, wif,
};
use outrigger_descriptor::{Checksum, Descriptor};
use outrigger_service::wallet::Ownership;
use outrigger_service::wire::Blob;

fn ownership(tester: &Tester, script: &ScriptBuf) -> Ownership {
    tester.script(script).map_or(Ownership::None, |info| info.ownership)
}

fn parsed(text: &str) -> Descriptor {
    Descriptor::parse(text, bitcoin::Network::Regtest, Checksum::Optional).unwrap().remove(0)
}

pub(super) fn at(text: &str, index: u32) -> ScriptBuf {
    parsed(text).expand(index).unwrap().scripts.remove(0).script_pubkey
}

#[test]
fn an_import_says_what_it_made_of_the_wallet() {
    let tester = &Tester::with(|_| {});
    tester.ask(|host, scope| host.admin.backup(scope, tester.backup_file("one"))).unwrap();
    let state = |tester: &Tester| {
        let info = tester.info();
        (info.blank, info.birth_time, info.backup_needed)
    };
    tester.import(vec![descriptor("nonsense(1)", |_| {})]).unwrap();
    same("nothing, where it is refused", state(tester), (true, 0, false));
    let text = format!("wpkh({})", wif(1).expose());
    tester.take(descriptor(&text, |import| import.timestamp = 700));
    same("after the first", state(tester), (true, 700, true));
    tester.take(keys(|keys| (keys.script_pubkeys, keys.solving_data, keys.timestamp) = (vec![foreign(1)], false, 900)));
    same("after a later one", state(tester), (true, 700, true));
    tester.take(keys(|keys| (keys.script_pubkeys, keys.solving_data, keys.timestamp) = (vec![foreign(2)], false, 500)));
    same("after an earlier one", state(tester), (true, 500, true));
}

#[test]
fn a_descriptor_owns_what_it_derives() {
    let tester = &Tester::with(|_| {});
    let text = format!("wpkh({}/84h/1h/0h/0/*)", master(1));
    let (first, last) = (3, 40);
    tester.take(descriptor(&text, |import| (import.range, import.timestamp) = (Some((first, last)), 77)));
    for index in [0, first, last] {
        same(&format!("index {index}"), ownership(tester, &at(&text, index)), Ownership::Spendable);
    }
    same("beyond the last", ownership(tester, &at(&text, last + 1)), Ownership::None);
    let told = tester.ask(|host, scope| host.wallet.descriptors(scope)).unwrap();
    let told = told.first().expect("the descriptor");
    same("its range", (told.range, told.next_index), (Some((first, last)), first));
    let public = told.text.expose().to_owned();
    assert!(!public.contains("prv"), "it shows no private key");
    let info = tester.script(&at(&text, 5)).expect("a script");
    same("its parents", info.parents, vec![public]);
    same("what is told of it", (info.solvable, info.change, info.internal), (true, true, false));
    same("its birth time", info.timestamp, 77);
    let origin = info.origins.first().expect("where its key comes from");
    assert!(origin.path.ends_with("/0/5"), "its path");
    assert!(info.descriptor.starts_with("wpkh(["), "its own descriptor");
    same("its key", info.solving.public_keys.len(), 1);
}

#[test]
fn descriptors_are_told_in_the_order_of_their_import() {
    let tester = &Tester::with(|_| {});
    let texts = [format!("wpkh({}/1h/*)", master(1)), format!("pkh({})", wif(2).expose())];
    for text in &texts {
        tester.take(descriptor(text, |import| import.range = text.contains('*').then_some((0, 3))));
    }
    let public = |text: &String| Some(parsed(text).to_public_string());
    let [first, second] = &texts;
    let numbers = tester.ask(|host, scope| host.wallet.descriptor_texts(scope, vec![1, 7, 0])).unwrap();
    same("texts by number, as they were imported", numbers, vec![public(second), None, public(first)]);
    let told = tester.ask(|host, scope| host.keys.private_descriptors(scope)).unwrap();
    let found: Vec<String> = told.iter().map(|info| info.text.expose().to_owned()).collect();
    let private = |text: &String| parsed(text).to_private_string().unwrap().expose().to_owned();
    same("with their private keys", found, texts.iter().map(private).collect());
    let payment = pay(1, &at(second, 0), 7);
    tester.accept(&payment);
    let known = tester.known(payment.compute_txid());
    same("the number at an output", known.output(0).expect("it").descriptors.clone(), vec![1]);
}

#[test]
fn only_an_address_for_receiving_is_entered_in_the_address_book() {
    let tester = &Tester::with(|_| {});
    let text = |number| format!("wpkh({})", wif(number).expose());
    tester.take(descriptor(&text(1), |import| import.label = Some("rent".into())));
    tester.take(descriptor(&text(2), |_| {}));
    tester.take(descriptor(&text(3), |import| (import.internal, import.label) = (Some(true), Some("no".into()))));
    let ranged = format!("wpkh({}/*)", master(1));
    tester.take(descriptor(&ranged, |import| (import.range, import.label) = (Some((0, 2)), Some("no".into()))));
    tester.take(keys(|keys| {
        (keys.script_pubkeys, keys.solving_data, keys.label) = (vec![foreign(4)], false, "four".into());
    }));
    tester.take(keys(|keys| {
        (keys.script_pubkeys, keys.solving_data, keys.internal) = (vec![foreign(5)], false, true);
    }));
    let label = |script: ScriptBuf| tester.script(&script).expect("the script").label;
    same("labelled", label(p2wpkh(1)).as_deref(), Some("rent"));
    same("without a label", label(p2wpkh(2)).as_deref(), Some(""));
    same("for change", label(p2wpkh(3)), None);
    same("with a range", label(at(&ranged, 0)), None);
    same("watched", label(foreign(4)).as_deref(), Some("four"));
    same("watched for change", label(foreign(5)), None);
    same("the address book", tester.labels().len(), 3);
}

#[test]
fn of_two_paths_the_second_is_for_change() {
    let tester = &Tester::with(|_| {});
    let text = format!("wpkh({}/<0;1>/*)", master(1));
    tester.take(descriptor(&text, |import| (import.range, import.active) = (Some((0, 5)), true)));
    let told = tester.ask(|host, scope| host.wallet.descriptors(scope)).unwrap();
    let sides: Vec<_> = told.iter().map(|info| (info.active, info.internal)).collect();
    same("their sides", sides, vec![(true, Some(false)), (true, Some(true))]);
    for (path, internal) in [(0, false), (1, true)] {
        let script = at(&format!("wpkh({}/{path}/*)", master(1)), 0);
        same("its side", tester.script(&script).expect("the script").internal, internal);
    }
}

#[test]
fn a_watched_script_becomes_ours_with_its_key_at_once() {
    let tester = &Tester::with(|_| {});
    let script = p2wpkh(1);
    tester.take(watch(&script));
    let payment = pay(1, &script, 70);
    let spending = spend(&[out(&payment, 0)], &[(&foreign(1), 20), (&script, 40)]);
    tester.accept(&payment);
    tester.accept(&spending);
    let told = || {
        let (paid, spent) = (tester.known(payment.compute_txid()), tester.known(spending.compute_txid()));
        let coins = tester.coins();
        let coin = coins.first().expect("the coin");
        let whose = paid.output(0).expect("the output").ownership;
        (whose, coin.ownership, coin.label.clone(), spent.debit_spendable.to_sat(), spent.debit_watch_only.to_sat())
    };
    let watched = Ownership::WatchOnly;
    same("while it is watched", told(), (watched, watched, Some(String::new()), 0, 70));
    assert!(!tester.script(&script).expect("the script").solvable, "how it is spent is not known");
    tester.take(keys(|keys| {
        (keys.script_pubkeys, keys.label) = (vec![script.clone()], "mine".into());
        keys.private_keys = vec![wif(1)];
    }));
    let ours = Ownership::Spendable;
    same("with its key", told(), (ours, ours, Some("mine".into()), 70, 0));
    let info = tester.script(&script).expect("the script");
    same("its key", info.solving.public_keys, vec![Blob(public(1).to_bytes())]);
    assert!(info.solvable && info.descriptor.starts_with("wpkh("), "its descriptor");
}

#[test]
fn a_compressed_key_owns_all_its_forms() {
    let tester = &Tester::with(|_| {});
    tester.take(keys(|keys| {
        keys.script_pubkeys = vec![p2pkh(1)];
        keys.private_keys = vec![wif(1)];
    }));
    let nested = ScriptBuf::new_p2sh(&p2wpkh(1).script_hash());
    for script in [p2pkh(1), p2wpkh(1), ScriptBuf::new_p2pk(&public(1)), nested] {
        same(&format!("{script}"), ownership(tester, &script), Ownership::Spendable);
        assert!(tester.script(&script).expect("it").solvable, "how it is spent is known");
    }
}

#[test]
fn a_multisig_is_ours_with_its_last_key() {
    let tester = &Tester::with(|_| {});
    let script = Builder::new().push_int(1).push_key(&public(1)).push_key(&public(2)).push_int(2);
    let script = script.push_opcode(OP_CHECKMULTISIG).into_script();
    let program = ScriptBuf::new_p2wsh(&script.wscript_hash());
    let nested = ScriptBuf::new_p2sh(&program.script_hash());
    tester.take(keys(|keys| {
        keys.script_pubkeys = vec![nested.clone()];
        keys.scripts = vec![script.clone(), program.clone()];
        keys.private_keys = vec![wif(1)];
    }));
    same("with one key", ownership(tester, &nested), Ownership::WatchOnly);
    let payment = pay(1, &nested, 7);
    tester.accept(&payment);
    let info = tester.script(&nested).expect("the script");
    same("its scripts", (info.solvable, info.solving.scripts), (true, vec![program.clone(), script.clone()]));
    assert!(info.descriptor.starts_with("sh(wsh(multi(1,"), "its descriptor");
    tester.take(keys(|keys| {
        keys.script_pubkeys = vec![p2pkh(2)];
        keys.private_keys = vec![wif(2)];
    }));
    for script in [&nested, &program] {
        same("with both", ownership(tester, script), Ownership::Spendable);
    }
    same("bare", ownership(tester, &script), Ownership::None);
    let known = tester.known(payment.compute_txid());
    same("what was paid to it", known.output(0).expect("it").ownership, Ownership::Spendable);
}

#[test]
fn a_second_watch_moves_the_birth_time() {
    let tester = &Tester::with(|_| {});
    for timestamp in [1000, 10, 500] {
        tester.take(keys(|keys| {
            (keys.script_pubkeys, keys.solving_data, keys.timestamp) = (vec![foreign(1)], false, timestamp);
        }));
        same("the script's", tester.script(&foreign(1)).expect("it").timestamp, timestamp);
    }
    same("the wallet's", tester.info().birth_time, 10);
}

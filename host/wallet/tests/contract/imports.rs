//! Imports, and their immediate effects.

use bitcoin::ScriptBuf;
use bitcoin::opcodes::all::OP_CHECKMULTISIG;
use bitcoin::script::Builder;

use crate::tester::{
    Tester, descriptor, foreign, holds, keys, master, out, p2pkh, p2wpkh, pay, public, same, some, spend, watch, wif,
};
use crate::{Failure, Outcome};
use outrigger_descriptor::{Checksum, Descriptor};
use outrigger_service::wallet::Ownership;
use outrigger_service::wire::Blob;

fn ownership(tester: &Tester, script: &ScriptBuf) -> Result<Ownership, Failure> {
    Ok(tester.script(script)?.map_or(Ownership::None, |info| info.ownership))
}

pub(super) fn at(text: &str, index: u32) -> Result<ScriptBuf, Failure> {
    let failure = |error: &dyn std::fmt::Display| Failure::from(error.to_string());
    let parsed = Descriptor::parse(text, bitcoin::Network::Regtest, Checksum::Optional).map_err(|e| failure(&e))?;
    let expansion = some("the descriptor", parsed.first())?.expand(index).map_err(|error| failure(&error))?;
    some("its script", expansion.scripts.into_iter().next().map(|script| script.script_pubkey))
}

#[test]
fn an_import_says_what_it_made_of_the_wallet() -> Outcome {
    let tester = &Tester::with(|_| {})?;
    tester.ask(|host, scope| host.admin.backup(scope, tester.backup_file("one")))?;
    let state = |tester: &Tester| -> Result<_, Failure> {
        let info = tester.info()?;
        Ok((info.blank, info.birth_time, info.backup_needed))
    };
    tester.import(vec![descriptor("nonsense(1)", |_| {})])?;
    same("nothing, where it is refused", state(tester)?, (true, 0, false))?;
    let text = format!("wpkh({})", wif(1)?.expose());
    tester.take(descriptor(&text, |import| import.timestamp = 700))?;
    same("after the first", state(tester)?, (true, 700, true))?;
    tester
        .take(keys(|keys| (keys.script_pubkeys, keys.solving_data, keys.timestamp) = (vec![foreign(1)], false, 900)))?;
    same("after a later one", state(tester)?, (true, 700, true))?;
    tester
        .take(keys(|keys| (keys.script_pubkeys, keys.solving_data, keys.timestamp) = (vec![foreign(2)], false, 500)))?;
    same("after an earlier one", state(tester)?, (true, 500, true))
}

#[test]
fn a_descriptor_owns_what_it_derives() -> Outcome {
    let tester = &Tester::with(|_| {})?;
    let text = format!("wpkh({}/84h/1h/0h/0/*)", master(1)?);
    let (first, last) = (3, 40);
    tester.take(descriptor(&text, |import| (import.range, import.timestamp) = (Some((first, last)), 77)))?;
    for index in [0, first, last] {
        same(&format!("index {index}"), ownership(tester, &at(&text, index)?)?, Ownership::Spendable)?;
    }
    same("beyond the last", ownership(tester, &at(&text, last + 1)?)?, Ownership::None)?;
    let told = tester.ask(|host, scope| host.wallet.descriptors(scope))?;
    let told = some("the descriptor", told.first())?;
    same("its range", (told.range, told.next_index), (Some((first, last)), first))?;
    let public = told.text.expose().to_owned();
    holds("it shows no private key", !public.contains("prv"))?;
    let info = some("a script", tester.script(&at(&text, 5)?)?)?;
    same("its parents", info.parents, vec![public])?;
    same("what is told of it", (info.solvable, info.change, info.internal), (true, true, false))?;
    same("its birth time", info.timestamp, 77)?;
    let origin = some("where its key comes from", info.origins.first())?;
    holds("its path", origin.path.ends_with("/0/5"))?;
    holds("its own descriptor", info.descriptor.starts_with("wpkh(["))?;
    same("its key", info.solving.public_keys.len(), 1)
}

#[test]
fn descriptors_are_told_in_the_order_of_their_import() -> Outcome {
    let tester = &Tester::with(|_| {})?;
    let texts = [format!("wpkh({}/1h/*)", master(1)?), format!("pkh({})", wif(2)?.expose())];
    for text in &texts {
        tester.take(descriptor(text, |import| import.range = text.contains('*').then_some((0, 3))))?;
    }
    let public = |text: &String| {
        let parsed = Descriptor::parse(text, bitcoin::Network::Regtest, Checksum::Optional).ok()?;
        Some(parsed.first()?.to_public_string())
    };
    let [first, second] = &texts;
    let numbers = tester.ask(|host, scope| host.wallet.descriptor_texts(scope, vec![1, 7, 0]))?;
    same("texts by number, as they were imported", numbers, vec![public(second), None, public(first)])?;
    let told = tester.ask(|host, scope| host.keys.private_descriptors(scope))?;
    let found: Vec<String> = told.iter().map(|info| info.text.expose().to_owned()).collect();
    let mut expected = Vec::new();
    for text in &texts {
        let parsed = Descriptor::parse(text, bitcoin::Network::Regtest, Checksum::Optional);
        let private = parsed.ok().and_then(|parsed| parsed.first()?.to_private_string());
        expected.push(some("the private text", private)?.expose().to_owned());
    }
    same("with their private keys", found, expected)?;
    let payment = pay(1, &at(second, 0)?, 7);
    tester.accept(&payment);
    let known = tester.known(payment.compute_txid())?;
    same("the number at an output", some("it", known.output(0))?.descriptors.clone(), vec![1])
}

#[test]
fn only_an_address_for_receiving_is_entered_in_the_address_book() -> Outcome {
    let tester = &Tester::with(|_| {})?;
    let text = |number| -> Result<String, Failure> { Ok(format!("wpkh({})", wif(number)?.expose())) };
    tester.take(descriptor(&text(1)?, |import| import.label = Some("rent".into())))?;
    tester.take(descriptor(&text(2)?, |_| {}))?;
    tester.take(descriptor(&text(3)?, |import| (import.internal, import.label) = (Some(true), Some("no".into()))))?;
    let ranged = format!("wpkh({}/*)", master(1)?);
    tester.take(descriptor(&ranged, |import| (import.range, import.label) = (Some((0, 2)), Some("no".into()))))?;
    tester.take(keys(|keys| {
        (keys.script_pubkeys, keys.solving_data, keys.label) = (vec![foreign(4)], false, "four".into());
    }))?;
    tester.take(keys(|keys| {
        (keys.script_pubkeys, keys.solving_data, keys.internal) = (vec![foreign(5)], false, true);
    }))?;
    let label = |script: ScriptBuf| Ok::<_, Failure>(some("the script", tester.script(&script)?)?.label);
    same("labelled", label(p2wpkh(1)?)?.as_deref(), Some("rent"))?;
    same("without a label", label(p2wpkh(2)?)?.as_deref(), Some(""))?;
    same("for change", label(p2wpkh(3)?)?, None)?;
    same("with a range", label(at(&ranged, 0)?)?, None)?;
    same("watched", label(foreign(4))?.as_deref(), Some("four"))?;
    same("watched for change", label(foreign(5))?, None)?;
    same("the address book", tester.labels()?.len(), 3)
}

#[test]
fn of_two_paths_the_second_is_for_change() -> Outcome {
    let tester = &Tester::with(|_| {})?;
    let text = format!("wpkh({}/<0;1>/*)", master(1)?);
    tester.take(descriptor(&text, |import| (import.range, import.active) = (Some((0, 5)), true)))?;
    let told = tester.ask(|host, scope| host.wallet.descriptors(scope))?;
    let sides: Vec<_> = told.iter().map(|info| (info.active, info.internal)).collect();
    same("their sides", sides, vec![(true, Some(false)), (true, Some(true))])?;
    for (path, internal) in [(0, false), (1, true)] {
        let script = at(&format!("wpkh({}/{path}/*)", master(1)?), 0)?;
        same("its side", some("the script", tester.script(&script)?)?.internal, internal)?;
    }
    Ok(())
}

#[test]
fn a_watched_script_becomes_ours_with_its_key_at_once() -> Outcome {
    let tester = &Tester::with(|_| {})?;
    let script = p2wpkh(1)?;
    tester.take(watch(&script))?;
    let payment = pay(1, &script, 70);
    let spending = spend(&[out(&payment, 0)], &[(&foreign(1), 20), (&script, 40)]);
    tester.accept(&payment);
    tester.accept(&spending);
    let told = || -> Result<_, Failure> {
        let (paid, spent) = (tester.known(payment.compute_txid())?, tester.known(spending.compute_txid())?);
        let coins = tester.coins()?;
        let coin = some("the coin", coins.first())?;
        let whose = some("the output", paid.output(0))?.ownership;
        Ok((whose, coin.ownership, coin.label.clone(), spent.debit_spendable.to_sat(), spent.debit_watch_only.to_sat()))
    };
    let watched = Ownership::WatchOnly;
    same("while it is watched", told()?, (watched, watched, Some(String::new()), 0, 70))?;
    holds("how it is spent is not known", !some("the script", tester.script(&script)?)?.solvable)?;
    tester.take(keys(|keys| {
        (keys.script_pubkeys, keys.label) = (vec![script.clone()], "mine".into());
        keys.private_keys = wif(1).into_iter().collect();
    }))?;
    let ours = Ownership::Spendable;
    same("with its key", told()?, (ours, ours, Some("mine".into()), 70, 0))?;
    let info = some("the script", tester.script(&script)?)?;
    same("its key", info.solving.public_keys, vec![Blob(public(1)?.to_bytes())])?;
    holds("its descriptor", info.solvable && info.descriptor.starts_with("wpkh("))
}

#[test]
fn a_compressed_key_owns_all_its_forms() -> Outcome {
    let tester = &Tester::with(|_| {})?;
    tester.take(keys(|keys| {
        keys.script_pubkeys = p2pkh(1).into_iter().collect();
        keys.private_keys = wif(1).into_iter().collect();
    }))?;
    let nested = ScriptBuf::new_p2sh(&p2wpkh(1)?.script_hash());
    for script in [p2pkh(1)?, p2wpkh(1)?, ScriptBuf::new_p2pk(&public(1)?), nested] {
        same(&format!("{script}"), ownership(tester, &script)?, Ownership::Spendable)?;
        holds("how it is spent is known", some("it", tester.script(&script)?)?.solvable)?;
    }
    Ok(())
}

#[test]
fn a_multisig_is_ours_with_its_last_key() -> Outcome {
    let tester = &Tester::with(|_| {})?;
    let script = Builder::new().push_int(1).push_key(&public(1)?).push_key(&public(2)?).push_int(2);
    let script = script.push_opcode(OP_CHECKMULTISIG).into_script();
    let program = ScriptBuf::new_p2wsh(&script.wscript_hash());
    let nested = ScriptBuf::new_p2sh(&program.script_hash());
    tester.take(keys(|keys| {
        keys.script_pubkeys = vec![nested.clone()];
        keys.scripts = vec![script.clone(), program.clone()];
        keys.private_keys = wif(1).into_iter().collect();
    }))?;
    same("with one key", ownership(tester, &nested)?, Ownership::WatchOnly)?;
    let payment = pay(1, &nested, 7);
    tester.accept(&payment);
    let info = some("the script", tester.script(&nested)?)?;
    same("its scripts", (info.solvable, info.solving.scripts), (true, vec![program.clone(), script.clone()]))?;
    holds("its descriptor", info.descriptor.starts_with("sh(wsh(multi(1,"))?;
    tester.take(keys(|keys| {
        keys.script_pubkeys = p2pkh(2).into_iter().collect();
        keys.private_keys = wif(2).into_iter().collect();
    }))?;
    for script in [&nested, &program] {
        same("with both", ownership(tester, script)?, Ownership::Spendable)?;
    }
    same("bare", ownership(tester, &script)?, Ownership::None)?;
    let known = tester.known(payment.compute_txid())?;
    same("what was paid to it", some("it", known.output(0))?.ownership, Ownership::Spendable)
}

#[test]
fn a_second_watch_moves_the_birth_time() -> Outcome {
    let tester = &Tester::with(|_| {})?;
    for timestamp in [1000, 10, 500] {
        tester.take(keys(|keys| {
            (keys.script_pubkeys, keys.solving_data, keys.timestamp) = (vec![foreign(1)], false, timestamp);
        }))?;
        same("the script's", some("it", tester.script(&foreign(1))?)?.timestamp, timestamp)?;
    }
    same("the wallet's", tester.info()?.birth_time, 10)
}

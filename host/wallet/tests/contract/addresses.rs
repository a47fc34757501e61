use bitcoin::ScriptBuf;

use super::imports::at;
use crate::tester::{Tester, descriptor, keys, master, p2wpkh, pay, public, refused, same};
use outrigger_service::wallet::{AddressSource, AddressType, Ownership};
use outrigger_service::wire::Blob;
use outrigger_service::{ErrorKind, Result as ServiceResult};

fn address(tester: &Tester, kind: AddressType, internal: bool, label: Option<&str>) -> ServiceResult<ScriptBuf> {
    tester.ask(|host, scope| host.book.new_address(scope, kind, internal, label.map(Into::into)))
}

fn activate(tester: &Tester, number: u8, last: u32, internal: bool) -> String {
    let text = format!("wpkh({}/0/*)", master(number));
    tester.take(descriptor(&text, |import| {
        (import.range, import.active, import.internal) = (Some((0, last)), true, Some(internal));
    }));
    text
}

#[test]
fn addresses_are_fresh_and_entered_with_their_label() {
    let tester = &Tester::with(|_| {});
    let receive = activate(tester, 1, 5, false);
    let change = activate(tester, 2, 5, true);
    for index in 0..4 {
        let label = format!("label {index}");
        let script = address(tester, AddressType::Bech32, false, Some(&label)).unwrap();
        same("for receiving", &script, &at(&receive, index));
        same("its label", tester.script(&script).expect("it").label, Some(label));
        let script = address(tester, AddressType::Bech32, true, None).unwrap();
        same("for change", &script, &at(&change, index));
        let info = tester.script(&script).expect("it");
        same("it has no entry", (info.label, info.change, info.internal), (None, true, true));
    }
    let told = tester.ask(|host, scope| host.wallet.descriptors(scope)).unwrap();
    same("the next ones", told.iter().map(|info| info.next_index).collect::<Vec<_>>(), vec![4, 4]);
}

#[test]
fn the_newest_active_descriptor_gives_the_addresses() {
    let tester = &Tester::with(|_| {});
    activate(tester, 1, 5, false);
    let newer = activate(tester, 2, 5, false);
    same("of the newer one", address(tester, AddressType::Bech32, false, None).unwrap(), at(&newer, 0));
    let told = tester.ask(|host, scope| host.wallet.descriptors(scope)).unwrap();
    let active: Vec<_> = told.iter().map(|info| (info.active, info.internal)).collect();
    same("only that one is active", active, vec![(false, None), (true, Some(false))]);
    let inactive = descriptor(&newer, |import| import.range = Some((0, tester.keypool() + 9)));
    tester.take(inactive);
    refused("after it was imported as inactive", address(tester, AddressType::Bech32, false, None), ErrorKind::Refused);
}

#[test]
fn a_used_address_is_not_handed_out_and_more_are_derived() {
    let tester = &Tester::with(|_| {});
    let text = activate(tester, 1, 2, false);
    let ahead = tester.keypool();
    same("what is derived ahead", tester.info().keypool_external, u64::from(ahead.max(3)));
    let used = ahead - 1;
    tester.accept(&pay(1, &at(&text, used), 7));
    let last = used + ahead;
    same("as many as before lie ahead", tester.info().keypool_external, u64::from(ahead));
    let owner = |index| tester.script(&at(&text, index)).map(|info| info.ownership);
    same("the last one", owner(last), Some(Ownership::Spendable));
    same("the one behind it", owner(last + 1), None);
    same("the next address", address(tester, AddressType::Bech32, false, None).unwrap(), at(&text, used + 1));
    same("it is taken from those ahead", owner(last + 1), None);
    let info = tester.info();
    same("the keypool", info.keypool_external, u64::from(ahead) - 1);
    // A payment to any script of the descriptor derives further scripts.
    tester.accept(&pay(2, &at(&text, 0), 8));
    same("one more is derived", owner(last + 1), Some(Ownership::Spendable));
    // The removal of the payment does not reset the next index.
    let told = tester.ask(|host, scope| host.wallet.descriptors(scope)).unwrap();
    same("the next index", told.first().map(|info| info.next_index), Some(used + 2));
}

#[test]
fn a_payment_enters_the_addresses_that_it_passes_over() {
    let tester = &Tester::with(|_| {});
    let receive = activate(tester, 1, 5, false);
    let change = activate(tester, 2, 5, true);
    let inactive = format!("wpkh({}/1/*)", master(1));
    tester.take(descriptor(&inactive, |import| import.range = Some((0, 5))));
    tester.ask(|host, scope| host.book.set_label(scope, at(&receive, 1), "kept".into())).unwrap();
    let labels = |text: &str| -> Vec<Option<String>> {
        (0..5).map(|index| tester.script(&at(text, index)).and_then(|info| info.label)).collect()
    };
    let entry = |label: &str| Some(label.to_owned());
    let payment = pay(1, &at(&receive, 2), 7);
    tester.accept(&payment);
    same("up to the payment", labels(&receive), vec![entry(""), entry("kept"), entry(""), None, None]);
    let output = tester.known(payment.compute_txid()).outputs.into_iter().next().map(|out| (out.change, out.label));
    same("the row says so", output, Some((false, entry(""))));
    for text in [&change, &inactive] {
        tester.accept(&pay(2 + u8::from(*text == inactive), &at(text, 2), 7));
        same("none for change and none for an inactive one", labels(text), vec![None; 5]);
    }
    let told = tester.ask(|host, scope| host.wallet.descriptors(scope)).unwrap();
    same("the next indexes", told.iter().map(|info| info.next_index).collect::<Vec<_>>(), vec![3, 3, 3]);
}

#[test]
fn a_payment_to_an_address_that_was_passed_over_enters_nothing() {
    let tester = &Tester::with(|_| {});
    let text = format!("wpkh({}/0/*)", master(1));
    tester.take(descriptor(&text, |import| {
        (import.range, import.active, import.next_index) = (Some((0, 9)), true, Some(3));
    }));
    tester.accept(&pay(1, &at(&text, 1), 7));
    same("nothing is entered", tester.labels(), Vec::new());
    let told = tester.ask(|host, scope| host.wallet.descriptors(scope)).unwrap();
    same("the next one", told.first().map(|info| info.next_index), Some(3));
}

#[test]
fn an_address_that_is_not_needed_is_given_back() {
    let tester = &Tester::with(|_| {});
    let text = activate(tester, 1, 5, true);
    let give_back = |script: ScriptBuf| tester.ask(|host, scope| host.book.return_address(scope, script));
    let next = || address(tester, AddressType::Bech32, true, None);
    let first = next().unwrap();
    same("the last one drawn", give_back(first.clone()).unwrap(), true);
    same("it is drawn again", next().unwrap(), first.clone());
    let second = next().unwrap();
    same("one that another was drawn after", give_back(first.clone()).unwrap(), false);
    tester.accept(&pay(1, &at(&text, 2), 7));
    same("one that a payment passed over", give_back(second).unwrap(), false);
    let third = next().unwrap();
    tester.accept(&pay(2, &third, 8));
    same("one that a payment has come to", give_back(third).unwrap(), false);
    same("one of nobody's", give_back(crate::tester::foreign(9)).unwrap(), false);
    same("the next", next().unwrap(), at(&text, 4));
}

#[test]
fn what_was_paid_before_is_used_once_it_is_met_again() {
    let tester = &Tester::with(|_| {});
    tester.take(crate::tester::single(9));
    let [mined, waiting] = [1, 2].map(|number| at(&format!("wpkh({}/0/*)", master(number)), 0));
    let pay_two = |number, other: &ScriptBuf| {
        let inputs = [crate::tester::elsewhere(number)];
        crate::tester::spend(&inputs, &[(&p2wpkh(9), 5), (other, 6)])
    };
    tester.mine(&[&pay_two(1, &mined)]);
    tester.accept(&pay_two(2, &waiting));
    for (number, used) in [(1, &mined), (2, &waiting)] {
        let text = activate(tester, number, 5, false);
        tester.rescan(1);
        let fresh = address(tester, AddressType::Bech32, false, None).unwrap();
        assert!(fresh != *used, "the used one is not handed out");
        same("but the next one", fresh, at(&text, 1));
    }
}

#[test]
fn without_a_descriptor_of_the_kind_there_is_no_address() {
    let tester = &Tester::with(|_| {});
    refused("a blank wallet", address(tester, AddressType::Bech32, false, None), ErrorKind::Refused);
    activate(tester, 1, 5, false);
    refused("another kind", address(tester, AddressType::Legacy, false, None), ErrorKind::KeypoolRanOut);
    refused("the other side", address(tester, AddressType::Bech32, true, None), ErrorKind::Refused);
    let source = AddressSource { kind: AddressType::Bech32, internal: false, available: true };
    same("where addresses come from", tester.info().sources, vec![source]);
    address(tester, AddressType::Bech32, false, None).unwrap();
    let text = format!("pkh({})", crate::tester::wif(1).expose());
    tester.take(descriptor(&text, |import| import.active = true));
    assert!(address(tester, AddressType::Legacy, false, None).unwrap().is_p2pkh(), "one without a range gives one");
    refused("and no other", address(tester, AddressType::Legacy, false, None), ErrorKind::KeypoolRanOut);
}

#[test]
fn imported_public_keys_are_handed_out_in_their_order() {
    let tester = &Tester::with(|options| options.disable_private_keys = true);
    for number in [2, 1] {
        let (script, key) = (p2wpkh(number), public(number));
        tester.take(keys(|keys| {
            (keys.script_pubkeys, keys.keypool) = (vec![script], true);
            keys.public_keys = vec![Blob(key.to_bytes())];
        }));
    }
    let info = tester.info();
    same("the keypool", (info.keypool_external, info.keypool_internal), (2, 0));
    for number in [2, 1] {
        let script = address(tester, AddressType::Bech32, false, Some("given")).unwrap();
        same("the oldest first", &script, &p2wpkh(number));
        let info = tester.script(&script).expect("it");
        same("it is watched", (info.ownership, info.label.as_deref()), (Ownership::WatchOnly, Some("given")));
    }
    same("the keypool is used up", tester.info().keypool_external, 0);
    refused("there is none left", address(tester, AddressType::Bech32, false, None), ErrorKind::Refused);
}

#[test]
fn a_refill_derives_so_many_ahead() {
    let tester = &Tester::with(|_| {});
    let text = activate(tester, 1, 5, false);
    let ahead = tester.keypool();
    let refill = |size| tester.ask(|host, scope| host.book.refill_keypool(scope, size));
    refill(Some(ahead + 7)).unwrap();
    same("more", tester.info().keypool_external, u64::from(ahead) + 7);
    let last = tester.script(&at(&text, ahead + 6));
    same("the last one", last.map(|info| info.ownership), Some(Ownership::Spendable));
    refill(Some(1)).unwrap();
    refill(None).unwrap();
    same("fewer take nothing away", tester.info().keypool_external, u64::from(ahead) + 7);
    refused("too many", refill(Some(u32::MAX)), ErrorKind::Refused);
}

//! Payments to several recipients, with what Bitcoin Core 29 answers to the same arguments.

use bitcoin::{Sequence, consensus};
use outrigger_sdk::service::Mempool;

use outrigger_sdk::service::wallet::{AddressSource, AddressType};

use super::*;

/// The address of another.
fn stranger(number: u8, form: Form) -> String {
    address(&TestKey::new(number).script(form))
}

/// A wallet with two coins of a bitcoin each, and change addresses.
fn rich() -> Fixture {
    let test = Fixture::new();
    let script = test.own(&TestKey::new(1), Form::Wpkh);
    test.fund(&script, 100_000_000, 100);
    test.fund(&script, 100_000_000, 100);
    let change = test.own(&TestKey::new(50), Form::Wpkh);
    test.wallet(|state| state.addresses.extend(vec![change; 10]));
    test
}

/// The last payment, as the value of each output by its script, its first sequence and its fee.
fn last(test: &Fixture) -> (Vec<(ScriptBuf, u64)>, Sequence, u64) {
    let id = *test.host.mempool.ids(Scope::NONE).unwrap().last().unwrap();
    let entry = test.host.mempool.entries(Scope::NONE, vec![id]).unwrap().pop().flatten().unwrap();
    let raw = test.host.mempool.transactions(Scope::NONE, vec![id]).unwrap().pop().flatten().unwrap().raw;
    let payment: bitcoin::Transaction = consensus::deserialize(&raw).unwrap();
    let outputs = payment.output.into_iter().map(|output| (output.script_pubkey, output.value.to_sat())).collect();
    (outputs, payment.input[0].sequence, entry.fee.to_sat())
}

fn value(outputs: &[(ScriptBuf, u64)], script: &ScriptBuf) -> u64 {
    outputs.iter().find(|(known, _)| known == script).unwrap().1
}

#[test]
fn sendmany_pays_several_by_one_transaction() {
    let test = rich();
    let scripts = [(91, Form::Wpkh), (92, Form::Pkh), (93, Form::Tr)].map(|(n, form)| TestKey::new(n).script(form));
    let [first, second, third] = [&scripts[0], &scripts[1], &scripts[2]].map(address);
    let amounts = json!({&first: 0.1, second: "0.2", third: 0.3, "data": "00ff"});
    let answer = test.call("sendmany", json!([null, amounts, -5, "wages", [], false, 6, "ECONOMICAL", null, true]));
    assert_eq!(answer.unwrap()["fee_reason"], json!("Fallback fee"));
    let (outputs, sequence, fee) = last(&test);
    assert_eq!((outputs.len(), sequence), (5, Sequence(0xffff_fffe)));
    let values = [10_000_000, 20_000_000, 30_000_000];
    assert_eq!(scripts.each_ref().map(|script| value(&outputs, script)), values);
    assert_eq!(value(&outputs, &ScriptBuf::from_bytes(vec![0x6a, 2, 0, 0xff])), 0);
    assert_eq!(value(&outputs, &TestKey::new(50).script(Form::Wpkh)), 40_000_000 - fee);
    let txid = test.call("sendmany", json!(["", {first: 0.1}])).unwrap();
    assert_eq!(txid, json!(test.host.mempool.ids(Scope::NONE).unwrap().last().unwrap()));
}

#[test]
fn sendmany_subtractfeefrom_shares_the_fee_among_those_named() {
    let test = rich();
    let scripts = [91, 92, 93].map(|number| TestKey::new(number).script(Form::Wpkh));
    let [first, second, third] = scripts.each_ref().map(address);
    let amounts = json!({first: 0.1, second.as_str(): 0.1, third: 0.1});
    test.call("sendmany", json!(["", amounts, 1, "", [second, 2]])).unwrap();
    let (outputs, _, fee) = last(&test);
    let [free, named, counted] = scripts.each_ref().map(|script| 10_000_000 - value(&outputs, script));
    assert_eq!((free, named + counted, named.abs_diff(counted)), (0, fee, fee % 2));
}

/// The type of change beside recipients of these forms, in a wallet with change addresses of these types.
fn change_type(paid: &[Form], sources: &[AddressType]) -> AddressType {
    let mut info = WalletState::empty("w").info;
    info.sources = sources.iter().map(|kind| AddressSource { kind: *kind, internal: true, available: true }).collect();
    let scripts = paid.iter().map(|form| TestKey::new(91).script(*form));
    let recipients =
        scripts.map(|script| outrigger_sdk::spend::Recipient { script, amount: Amount::ONE_SAT, subtract_fee: false });
    outrigger_sdk::spend::change_type(&recipients.collect::<Vec<_>>(), &info, AddressType::Bech32)
}

#[test]
fn sendmany_change_has_the_preferred_type_of_a_recipient() {
    use AddressType::{Bech32, Bech32m, Legacy, P2shSegwit};
    let all = [Legacy, P2shSegwit, Bech32, Bech32m];
    assert_eq!(change_type(&[Form::Pkh, Form::Wpkh, Form::Tr], &all), Bech32m);
    assert_eq!(change_type(&[Form::Pkh, Form::ShWpkh, Form::Wpkh], &all), Bech32);
    assert_eq!(change_type(&[Form::Pkh, Form::ShWpkh], &all), P2shSegwit);
    assert_eq!(change_type(&[Form::Pkh], &all), Legacy);
}

#[test]
fn sendmany_change_has_a_type_that_the_wallet_has() {
    use AddressType::{Bech32, Bech32m, Legacy, P2shSegwit};
    assert_eq!(change_type(&[Form::Pkh, Form::Tr], &[Legacy, Bech32]), Legacy);
    assert_eq!(change_type(&[Form::Pkh], &[P2shSegwit, Bech32, Bech32m]), Bech32m);
    assert_eq!(change_type(&[Form::Pkh], &[P2shSegwit, Bech32]), Bech32);
    assert_eq!(change_type(&[Form::Tr], &[P2shSegwit]), Bech32);
    assert_eq!(change_type(&[], &[Legacy, Bech32, Bech32m]), Bech32m);
    assert_eq!(change_type(&[Form::Tr], &[]), Bech32);
}

#[test]
fn sendmany_refuses_what_cannot_be_paid() {
    let test = rich();
    let (to, other, upper) =
        (stranger(91, Form::Wpkh), stranger(92, Form::Wpkh), stranger(91, Form::Wpkh).to_uppercase());
    let refuse = |arguments: Value, code, message: &str| test.refuse("sendmany", arguments, code, message);
    refuse(json!(["x", {}]), -8, "Dummy value must be set to \"\"");
    let message = "Wrong type passed:\n{\n    \"Position 1 (dummy)\": \"JSON value of type number is not of expected type string\"\n}";
    refuse(json!([5, {&to: 1}]), -3, message);
    refuse(json!(["", {}]), -6, "Transaction must have at least one recipient");
    refuse(json!(["", {"bad": "x"}]), -5, "Invalid Bitcoin address: bad");
    refuse(json!(["", {"": 1}]), -5, "Invalid Bitcoin address: ");
    refuse(json!(["", {&to: "x", "bad": 1}]), -3, "Invalid amount");
    refuse(json!(["", {&to: -1}]), -3, "Amount out of range");
    refuse(json!(["", {&to: null}]), -3, "Amount is not a number or string");
    refuse(json!(["", {&to: 0.1, &upper: 0.1}]), -8, &format!("Invalid parameter, duplicated address: {upper}"));
    refuse(json!(["", {&to: 0.1, &upper: "x"}]), -3, "Invalid amount");
    refuse(json!(["", {&to: 0.00000293, &other: 1}]), -6, "Transaction amount too small");
    refuse(json!(["", {&to: 1, &other: 1}]), -6, "Insufficient funds");
    refuse(json!(["", {&to: 20_999_999, &other: 20_999_999}]), -6, "Insufficient funds");
    refuse(json!(["", {"data": "zz"}]), -8, "Data must be hexadecimal string (not 'zz')");
    refuse(json!(["", {"data": 5}]), -8, "Data must be hexadecimal string (not '5')");
    let message = "Transaction requires one destination of non-0 value, a non-0 feerate, or a pre-selected input";
    refuse(json!(["", {"data": "00"}, 1, "", [0]]), -6, message);
    let payers = |payers: Value, code, message: &str| {
        let message = message.replacen('^', "Invalid parameter 'subtract fee from output', ", 1);
        test.refuse("sendmany", json!(["", {&to: 0.1}, 1, "", payers]), code, &message);
        // The addresses are not looked at yet.
        test.refuse("sendmany", json!(["", {&to: "x"}, 1, "", payers]), code, &message);
    };
    payers(json!(["bad"]), -8, "^destination bad not found in tx outputs");
    payers(json!([upper]), -8, &format!("^destination {upper} not found in tx outputs"));
    payers(json!(["0"]), -8, "^destination 0 not found in tx outputs");
    payers(json!([1]), -8, "^position too large: 1");
    payers(json!([-1]), -8, "^negative position: -1");
    payers(json!([to, 0, "bad"]), -8, "^duplicated position: 0");
    payers(json!([true]), -8, "^invalid value type: bool");
    payers(json!([null]), -8, "^invalid value type: null");
    payers(json!([0.5]), -1, "JSON integer out of range");
    let message = "The transaction amount is too small to pay the fee";
    refuse(json!(["", {&to: 0.00001, &other: 1}, 1, "", [0, 1], true, null, null, 50]), -6, message);
    refuse(json!(["", {"data": "00", &to: 1}, 1, "", ["data"]]), -6, message);
    let message = "Invalid estimate_mode parameter, must be one of: \"unset\", \"economical\", \"conservative\"";
    refuse(json!(["", {"bad": 1}, 1, "", ["x"], true, 0, "foo"]), -8, message);
    refuse(json!(["", {"bad": 1}, 1, "", ["x"], true, 0]), -8, "Invalid conf_target, must be between 1 and 1008");
    test.info(|info| info.private_keys_enabled = false);
    refuse(json!(["", {"bad": 1}]), -5, "Invalid Bitcoin address: bad");
    refuse(json!(["", {}]), -4, "Error: Private keys are disabled for this wallet");
    test.info(|info| info.locked = true);
    refuse(json!(["", {&to: 0}]), -13, "Error: Please enter the wallet passphrase with walletpassphrase first.");
    refuse(json!(["x", {&to: 0}]), -8, "Dummy value must be set to \"\"");
    assert!(test.host.mempool.ids(Scope::NONE).unwrap().is_empty());
}

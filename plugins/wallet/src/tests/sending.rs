//! The errors of sendtoaddress and sendmany, the type of change, and the reason of the feerate.

use outrigger_sdk::service::wallet::{AddressSource, AddressType};

use super::*;

/// The type of change for recipients of the types `paid`, in a wallet with change addresses of the types `sources`.
fn change_type(paid: &[AddressType], sources: &[AddressType]) -> AddressType {
    use AddressType::{Bech32, Bech32m, Legacy, P2shSegwit};
    let mut info = WalletState::empty("w").info;
    info.sources = sources.iter().map(|kind| AddressSource { kind: *kind, internal: true, available: true }).collect();
    let script = |kind: &AddressType| match kind {
        Legacy => ScriptBuf::new_p2pkh(&PubkeyHash::all_zeros()),
        P2shSegwit => wpkh(91).to_p2sh(),
        Bech32 => wpkh(91),
        Bech32m => ScriptBuf::from_bytes([&[0x51, 32][..], &key(91).1[1..]].concat()),
    };
    let recipient = |script| outrigger_kit::spend::Recipient { script, amount: Amount::ONE_SAT, subtract_fee: false };
    let recipients: Vec<_> = paid.iter().map(script).map(recipient).collect();
    outrigger_kit::spend::change_type(&recipients, &info, Bech32)
}

#[test]
fn sendmany_change_has_a_type_of_the_wallet_and_if_possible_of_a_recipient() {
    use AddressType::{Bech32, Bech32m, Legacy, P2shSegwit};
    let all = [Legacy, P2shSegwit, Bech32, Bech32m];
    for (paid, sources, expected) in [
        (&[Legacy, Bech32, Bech32m][..], &all[..], Bech32m),
        (&[Legacy, P2shSegwit, Bech32], &all, Bech32),
        (&[Legacy, P2shSegwit], &all, P2shSegwit),
        (&[Legacy], &all, Legacy),
        (&[Legacy, Bech32m], &[Legacy, Bech32], Legacy),
        (&[Legacy], &all[1..], Bech32m),
        (&[Legacy], &[P2shSegwit, Bech32], Bech32),
        (&[Bech32m], &[P2shSegwit], Bech32),
        (&[], &[Legacy, Bech32, Bech32m], Bech32m),
        (&[Bech32m], &[], Bech32),
    ] {
        assert_eq!(change_type(paid, sources), expected, "{paid:?} {sources:?}");
    }
}

#[test]
fn sendmany_refuses_bad_arguments_and_impossible_payments() {
    let test = Fixture::rich();
    let (to, other) = (address(&wpkh(91)), address(&wpkh(92)));
    let upper = to.to_uppercase();
    let refuse = |arguments: Value, code, message: &str| test.refuses(&[("sendmany", arguments, code, message)]);
    refuse(json!(["x", {}]), -8, "Dummy value must be set to \"\"");
    let message = "Wrong type passed:\n{\n    \"Position 1 (dummy)\": \"JSON value of type number is not of expected type string\"\n}";
    refuse(json!([5, {&to: 1}]), -3, message);
    refuse(json!(["", {}]), -6, "Transaction must have at least one recipient");
    refuse(json!(["", {"bad": "x"}]), -3, "Invalid amount");
    refuse(json!(["", {"": 1}]), -5, "Invalid Bitcoin address: ");
    refuse(json!(["", {&to: "x", "bad": 1}]), -3, "Invalid amount");
    refuse(json!(["", {&to: -1}]), -3, "Amount out of range");
    refuse(json!(["", {&to: null}]), -3, "Amount is not a number or string");
    refuse(json!(["", {&to: 0.1, &upper: 0.1}]), -8, &format!("Invalid parameter, duplicated address: {upper}"));
    refuse(json!(["", {&to: 0.1, &upper: "x"}]), -3, "Invalid amount");
    refuse(json!(["", {&to: 0.00000293, &other: 1}]), -6, "Transaction amount too small");
    refuse(json!(["", {&to: 5, &other: 1}]), -6, "Insufficient funds");
    refuse(json!(["", {&to: 20_999_999, &other: 20_999_999}]), -6, "Insufficient funds");
    refuse(json!(["", {"data": "zz"}]), -8, "Data must be hexadecimal string (not 'zz')");
    refuse(json!(["", {"data": 5}]), -8, "Data must be hexadecimal string (not '5')");
    // A raw transaction whose only amount is negative.
    let raw = json!(["02000000000100e1f505000000ff015100000000"]);
    test.refuses(&[("fundrawtransaction", raw, -4, "Transaction amounts must not be negative")]);
    let message = "Transaction requires one destination of non-0 value, a non-0 feerate, or a pre-selected input";
    refuse(json!(["", {"data": "00"}, 1, "", [0]]), -6, message);
    let payers = |payers: Value, code, message: &str| {
        let message = message.replacen('^', "Invalid parameter 'subtract fee from output', ", 1);
        refuse(json!(["", {&to: 0.1}, 1, "", payers]), code, &message);
        // The fee payers are checked before the addresses.
        refuse(json!(["", {&to: "x"}, 1, "", payers]), code, &message);
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
}

#[test]
fn sendtoaddress_refuses_bad_arguments_and_impossible_payments() {
    let test = Fixture::rich();
    let to = address(&wpkh(99));
    let refuse = |arguments: Value, code, message: &str| test.refuses(&[("sendtoaddress", arguments, code, message)]);
    refuse(json!(["garbage", 1]), -5, "Invalid Bitcoin address: garbage");
    refuse(json!([to, "x"]), -3, "Invalid amount");
    refuse(json!([to, -1]), -3, "Amount out of range");
    refuse(json!([to, true]), -3, "Amount is not a number or string");
    refuse(json!([to, 0]), -6, "Transaction amount too small");
    refuse(json!([to, 0.00000293]), -6, "Transaction amount too small");
    refuse(json!([to, 1000]), -6, "Insufficient funds");
    refuse(json!([to, 5.2]), -6, "Insufficient funds");
    let with =
        |target: Value, mode: Value, feerate: Value| json!([to, 1, "", "", false, true, target, mode, null, feerate]);
    let message = "Cannot specify both conf_target and fee_rate. Please provide either a confirmation target in blocks for automatic fee estimation, or an explicit fee rate.";
    refuse(with(json!(3), json!(null), json!(5)), -8, message);
    refuse(with(json!(null), json!("economical"), json!(5)), -8, "Cannot specify both estimate_mode and fee_rate");
    let message = "Invalid estimate_mode parameter, must be one of: \"unset\", \"economical\", \"conservative\"";
    refuse(with(json!(null), json!("foo"), json!(null)), -8, message);
    refuse(with(json!(0), json!(null), json!(null)), -8, "Invalid conf_target, must be between 1 and 1008");
    refuse(with(json!(1009), json!(null), json!(null)), -8, "Invalid conf_target, must be between 1 and 1008");
    let message = "Fee rate (0.500 sat/vB) is lower than the minimum fee rate setting (1.000 sat/vB)";
    refuse(with(json!(null), json!(null), json!(0.5)), -6, message);
    let message = "Fee exceeds maximum configured by user (e.g. -maxtxfee, maxfeerate)";
    refuse(with(json!(null), json!("unset"), json!(90_000)), -6, message);
    let message = "wallet does not have the \"avoid reuse\" feature enabled";
    refuse(json!([to, 1, "", "", false, true, null, null, true]), -4, message);
    test.wallet(|state| state.addresses.clear());
    let message = "Transaction needs a change address, but we can't generate it. Error: Keypool ran out, please call keypoolrefill first";
    refuse(json!([to, 0.4]), -6, message);
    test.info(|info| info.private_keys_enabled = false);
    refuse(json!([to, 1]), -4, "Error: Private keys are disabled for this wallet");
}

#[test]
fn sendtoaddress_gives_the_reason_of_its_feerate() {
    let pay = |fallback: u64, explicit: Value| {
        let test = Fixture::rich();
        test.wallet(|state| state.spending.fallback_feerate = Some(FeeRate::from_sat_per_kvb(fallback)));
        let arguments = json!([address(&wpkh(99)), 1, "", "", true, null, null, "unset", null, explicit, true]);
        test.plugin.call("sendtoaddress", arguments).unwrap()["fee_reason"].clone()
    };
    assert_eq!(pay(2000, json!(null)), "Fallback fee");
    assert_eq!(pay(500, json!(null)), "Minimum Required Fee");
    assert_eq!(pay(2000, json!(2)), "PayTxFee set");
}

use bitcoin::absolute::LockTime;
use bitcoin::{Sequence, Transaction};

use super::*;

#[test]
fn listunspent_describes_a_coin() {
    let test = Fixture::new();
    let script = test.own(&TestKey::new(1), Form::ShWpkh);
    let outpoint = test.add(WalletCoin { label: Some("rent".into()), ..coin(&script, 123_456_789, 0) });
    // Of the descriptors it comes from, the texts as they were imported.
    let mut parent = transaction(outpoint.txid, Vec::new(), &script);
    parent.outputs[0].descriptors = vec![7, 3];
    test.meet(parent);
    test.wallet(|state| state.descriptor_texts.extend([(3, "three".into()), (5, "five".into()), (7, "seven".into())]));
    let hex = |form| outrigger_sdk::params::encode_hex(TestKey::new(1).script(form).as_bytes());
    let expect = format!(
        r#"[{{"txid":"{}","vout":0,"address":"{}","label":"rent","redeemScript":"{}","scriptPubKey":"{}","amount":1.23456789,"confirmations":101,"spendable":true,"solvable":true,"desc":"desc#checksum","parent_descs":["seven","three"],"safe":true}}]"#,
        outpoint.txid,
        address(&script),
        hex(Form::Wpkh),
        hex(Form::ShWpkh),
    );
    test.check("listunspent", json!([]), &expect);
}

#[test]
fn listunspent_unconfirmed_coins_tell_their_ancestors() {
    let test = Fixture::new();
    let script = test.own(&TestKey::new(1), Form::Wpkh);
    let parent = Transaction {
        version: bitcoin::transaction::Version::TWO,
        lock_time: LockTime::ZERO,
        input: vec![bitcoin::TxIn { sequence: Sequence::MAX, ..Default::default() }],
        output: vec![output(5000, &script)],
    };
    let outpoint = OutPoint::new(parent.compute_txid(), 0);
    test.host.mempool.add(parent, Amount::from_sat(77));
    test.add(WalletCoin { outpoint, state: TxState::InMempool, trusted: false, ..coin(&script, 5000, 0) });
    assert_eq!(test.call("listunspent", json!([])), Ok(json!([])));
    assert_eq!(test.call("listunspent", json!([0, 9, [], false])), Ok(json!([])));
    let answer = test.call("listunspent", json!([0])).unwrap();
    let entry = &answer[0];
    assert_eq!((&entry["ancestorcount"], &entry["ancestorfees"]), (&json!(1), &json!(77)));
    assert_eq!((&entry["confirmations"], &entry["safe"]), (&json!(0), &json!(false)));
    assert_eq!(entry.get("label"), None);
}

/// The amounts, in satoshi, that a call lists.
fn amounts(test: &Fixture, arguments: Value) -> Vec<u64> {
    let answer = test.call("listunspent", arguments).unwrap();
    let amount = |entry: &Value| outrigger_sdk::amount::from_json(&entry["amount"]).unwrap().to_sat();
    answer.as_array().unwrap().iter().map(amount).collect()
}

#[test]
fn listunspent_filters_apply() {
    let test = Fixture::new();
    let first = test.own(&TestKey::new(1), Form::Wpkh);
    let second = test.own(&TestKey::new(2), Form::Wpkh);
    test.fund(&first, 100, 200);
    test.fund(&second, 200, 190);
    test.add(WalletCoin { coinbase: true, state: confirmed(150), ..coin(&first, 400, 2) });
    test.add(WalletCoin { state: TxState::Inactive, ..coin(&first, 800, 3) });
    test.add(WalletCoin { ownership: Ownership::None, ..coin(&first, 1600, 4) });
    assert_eq!(amounts(&test, json!([])), [100, 200]);
    assert_eq!(amounts(&test, json!([0])), [100, 200]);
    assert_eq!(amounts(&test, json!([2])), [200]);
    assert_eq!(amounts(&test, json!([1, 1])), [100]);
    assert_eq!(amounts(&test, json!([11, 11])), [200]);
    assert_eq!(amounts(&test, json!([12])), Vec::<u64>::new());
    assert_eq!(amounts(&test, json!([5, 1])), Vec::<u64>::new());
    assert_eq!(amounts(&test, json!([1, 999, [address(&second)]])), [200]);
    let options = |options: Value| amounts(&test, json!([null, null, null, null, options]));
    assert_eq!(options(json!({"minimumAmount": "0.00000101"})), [200]);
    assert_eq!(options(json!({"maximumAmount": "0.00000199"})), [100]);
    assert_eq!(options(json!({"maximumCount": 1})), [100]);
    assert_eq!(options(json!({"maximumCount": 0})), [100, 200]);
    assert_eq!(options(json!({"minimumSumAmount": "0.00000100"})), [100]);
    assert_eq!(options(json!({"minimumSumAmount": "0.00000101"})), [100, 200]);
    assert_eq!(options(json!({"include_immature_coinbase": true})), [100, 200, 400]);
}

#[test]
fn listunspent_coinbase_matures_at_depth_101() {
    let test = Fixture::new();
    let script = test.own(&TestKey::new(1), Form::Wpkh);
    test.add(WalletCoin { coinbase: true, state: confirmed(101), ..coin(&script, 1, 0) });
    test.add(WalletCoin { coinbase: true, state: confirmed(100), ..coin(&script, 2, 1) });
    assert_eq!(amounts(&test, json!([])), [2]);
}

#[test]
fn listunspent_lists_more_coins_than_fit_into_a_batch() {
    let test = Fixture::new();
    let script = test.own(&TestKey::new(1), Form::Wpkh);
    for number in 0..2500 {
        test.wallet(|state| state.coins.push(coin(&script, u64::from(number) + 1, number)));
    }
    assert_eq!(amounts(&test, json!([])).len(), 2500);
}

#[test]
fn listunspent_bad_arguments_are_refused() {
    let test = Fixture::new();
    test.refuse("listunspent", json!([1.5]), -1, "JSON integer out of range");
    test.refuse("listunspent", json!([1, 2, ["garbage"]]), -5, "Invalid Bitcoin address: garbage");
    test.refuse("listunspent", json!([1, 2, [], true, {"nosuch": 1}]), -3, "Unexpected key nosuch");
}

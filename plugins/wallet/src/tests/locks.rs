use super::*;

#[test]
fn lockunspent_checks_each_output_before_it_reads_the_next() {
    let test = Fixture::new();
    let script = test.own(&TestKey::new(1), Form::Wpkh);
    let coin = test.fund(&script, 5000, 100);
    let spent = test.fund(&script, 5000, 100);
    for (txid, inputs) in [(coin.txid, vec![]), (spent.txid, vec![]), (Txid::from_byte_array([9; 32]), vec![spent])] {
        test.meet(transaction(txid, inputs, &script));
    }
    let named = |txid: Txid, vout: i64| json!({"txid": txid, "vout": vout});
    let of = |coin: &OutPoint| named(coin.txid, coin.vout.into());
    let none = Txid::from_byte_array([7; 32]);
    let refused = [
        (json!([5]), -3, "JSON value of type number is not of expected type object"),
        (json!([{}]), -3, "Missing txid"),
        (json!([{"txid": 5}]), -3, "JSON value of type number for field txid is not of expected type string"),
        (json!([{"txid": "ab"}]), -3, "Missing vout"),
        (json!([{"txid": "ab", "vout": 0}]), -8, "txid must be of length 64 (not 2, for 'ab')"),
        (json!([{"txid": none, "vout": 0.5}]), -1, "JSON integer out of range"),
        (json!([named(none, -1)]), -8, "Invalid parameter, vout cannot be negative"),
        (json!([named(none, 0), 5]), -8, "Invalid parameter, unknown transaction"),
        (json!([of(&coin), 5]), -3, "JSON value of type number is not of expected type object"),
        (json!([named(coin.txid, 1)]), -8, "Invalid parameter, vout index out of bounds"),
        (json!([of(&coin), of(&spent)]), -8, "Invalid parameter, expected unspent output"),
    ];
    for (list, code, message) in refused {
        test.refuse("lockunspent", json!([false, list]), code, message);
    }
    test.refuse("lockunspent", json!([true, [of(&coin)]]), -8, "Invalid parameter, expected locked output");
    test.check("listlockunspent", json!([]), "[]");
    test.check("lockunspent", json!([false, [of(&coin), of(&coin)]]), "true");
    test.refuse("lockunspent", json!([false, [of(&coin)]]), -8, "Invalid parameter, output already locked");
    test.check("lockunspent", json!([false, [of(&coin)], true]), "true");
    test.check("lockunspent", json!([true, []]), "true");
    test.check("lockunspent", json!([false]), "true");
    test.check("listlockunspent", json!([]), &format!(r#"[{{"txid":"{}","vout":0}}]"#, coin.txid));
    test.check("lockunspent", json!([true, [of(&coin)]]), "true");
    test.check("listlockunspent", json!([]), "[]");
}

#[test]
fn lockunspent_keeps_coins_from_listunspent_and_sendtoaddress_and_not_from_getbalances() {
    let test = Fixture::new();
    let script = test.own(&TestKey::new(1), Form::Wpkh);
    let coin = test.fund(&script, 100_000_000, 100);
    test.meet(transaction(coin.txid, vec![], &script));
    test.wallet(|state| state.addresses.push_back(script.clone()));
    let balance = test.call("getbalances", json!([]));
    let list = json!([{"txid": coin.txid, "vout": 0}]);
    test.check("lockunspent", json!([false, list]), "true");
    test.check("listunspent", json!([]), "[]");
    assert_eq!(test.call("getbalances", json!([])), balance);
    let pay = json!([address(&TestKey::new(9).script(Form::Wpkh)), 0.5]);
    test.refuse("sendtoaddress", pay.clone(), -6, "Insufficient funds");
    test.check("lockunspent", json!([true]), "true");
    assert!(test.call("sendtoaddress", pay).is_ok());
}

//! fundrawtransaction, walletcreatefundedpsbt, send and sendall beside a real bitcoind with the same descriptors and coins.

use bitcoin::Transaction;
use bitcoin::consensus::encode::{deserialize_hex, serialize_hex};
use serde_json::{Map, Value, json};

use super::compared::{FOREIGN, Pair};
use crate::compared::told;

const OTHER: &str = "bcrt1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qzf4jry";

/// An answer without its random parts: any text counts as equal, and so does any position of change.
fn shape(answer: &str) -> String {
    let Ok(Value::Object(object)) = serde_json::from_str::<Value>(answer) else { return answer.to_owned() };
    let shaped = object.into_iter().filter(|(key, _)| key != "warnings").map(|(key, value)| match value {
        Value::String(_) => (key, json!("text")),
        Value::Number(number) if key == "changepos" => (key, json!(number.to_string() != "-1")),
        other => (key, other),
    });
    Value::Object(shaped.collect::<Map<_, _>>()).to_string()
}

impl Pair {
    /// Checks that both answers have the same shape, or the same error.
    #[track_caller]
    fn check_shape(&mut self, method: &str, params: &Value) {
        if self.is_of_watched_coins(params) {
            return;
        }
        let [ours, theirs] = [&mut self.ours, &mut self.theirs].map(|client| shape(&told(client, method, params)));
        assert_eq!(ours, theirs, "{method} {params}");
    }

    /// Checks a method with each of these options, which go after `params`.
    #[track_caller]
    fn check_options(&mut self, method: &str, params: &[Value], options: Vec<Value>) {
        for options in options {
            self.check_shape(method, &json!([params, std::slice::from_ref(&options)].concat()));
        }
    }
}

/// Options that all three methods read the same way.
fn shared_options() -> Vec<Value> {
    let (zero, weight) = ("00".repeat(32), |weight: i64| json!({"max_tx_weight": weight}));
    let solving = |data: Value| json!({"solving_data": data});
    vec![
        json!({}),
        json!({"nosuch": 1}),
        json!({"nosuch": 1, "add_inputs": "x"}),
        json!({"add_inputs": null}),
        json!({"add_inputs": false}),
        json!({"include_unsafe": 1}),
        json!({"include_unsafe": null}),
        json!({"change_type": "x"}),
        json!({"change_type": 5}),
        json!({"change_type": "legacy"}),
        json!({"change_type": "p2sh-segwit"}),
        json!({"change_type": "bech32m"}),
        json!({"fee_rate": "x"}),
        json!({"fee_rate": 5}),
        json!({"fee_rate": 25.5}),
        json!({"fee_rate": 40}),
        json!({"fee_rate": 0.0005}),
        json!({"fee_rate": 100_000}),
        json!({"fee_rate": 100_000_000}),
        json!({"fee_rate": 5, "conf_target": 3}),
        json!({"fee_rate": 5, "estimate_mode": "economical"}),
        json!({"conf_target": 0, "estimate_mode": "economical"}),
        json!({"conf_target": 3, "estimate_mode": "economical"}),
        json!({"estimate_mode": "foo"}),
        json!({"minconf": -1}),
        json!({"minconf": 1.5}),
        json!({"minconf": 3, "maxconf": 2}),
        json!({"minconf": 200}),
        json!({"maxconf": 0}),
        weight(259),
        weight(400_001),
        weight(-1),
        weight(270),
        weight(400),
        weight(600),
        json!({"max_tx_weight": "x"}),
        json!({"replaceable": false}),
        json!({"replaceable": "x"}),
        solving(json!([])),
        solving(json!({"foo": 1})),
        solving(json!({"pubkeys": 5})),
        solving(json!({"pubkeys": [5]})),
        solving(json!({"pubkeys": ["x"]})),
        solving(json!({"pubkeys": ["02"]})),
        solving(json!({"pubkeys": ["05".repeat(33)]})),
        solving(json!({"scripts": ["x"]})),
        solving(json!({"scripts": [""]})),
        solving(json!({"descriptors": ["x"]})),
        json!({"input_weights": [{"txid": zero, "vout": 0, "weight": 164}]}),
    ]
}

/// The options under their names in fundrawtransaction and walletcreatefundedpsbt.
fn named_options() -> Vec<Value> {
    vec![
        json!({"changeAddress": "bad"}),
        json!({"changeAddress": 5}),
        json!({"changeAddress": OTHER, "changePosition": 1}),
        json!({"change_address": FOREIGN, "change_position": 0}),
        json!({"changeAddress": FOREIGN, "change_type": "legacy"}),
        json!({"changePosition": 2}),
        json!({"changePosition": -1}),
        json!({"changePosition": 1.5}),
        json!({"feeRate": 0.0001, "fee_rate": 1}),
        json!({"feeRate": 0.0001, "conf_target": 1}),
        json!({"feeRate": 0.0001, "estimate_mode": "economical"}),
        json!({"feeRate": "x"}),
        json!({"feeRate": null}),
        json!({"feeRate": 0}),
        json!({"feeRate": 0.0003}),
        json!({"feeRate": 1}),
        json!({"fee_rate": 0}),
        json!({"fee_rate": 0.1}),
        json!({"includeWatching": true}),
        json!({"include_watching": 1}),
        json!({"subtractFeeFromOutputs": [0]}),
        json!({"subtractFeeFromOutputs": [1]}),
        json!({"subtractFeeFromOutputs": [-1]}),
        json!({"subtractFeeFromOutputs": [0, 0]}),
        json!({"subtractFeeFromOutputs": ["x"]}),
        json!({"subtractFeeFromOutputs": 5}),
        json!({"subtractFeeFromOutputs": [true]}),
        json!({"inputs": [], "locktime": 5, "psbt": true, "add_to_wallet": true}),
        json!({"psbt": 1}),
    ]
}

fn inputs(pair: &mut Pair) -> Vec<Value> {
    let coins = pair.ours.call("listunspent", json!([]));
    coins.as_array().unwrap().iter().map(|coin| json!({"txid": coin["txid"], "vout": coin["vout"]})).collect()
}

#[test]
fn fundrawtransaction_walletcreatefundedpsbt_and_send_answer_as_bitcoind() {
    let Some(mut pair) = Pair::start(&[]) else { return };
    pair.fund(3);
    check_fundrawtransaction(&mut pair);
    // The last call has locked a coin in each wallet.
    pair.both("lockunspent", &json!([true]));
    check_walletcreatefundedpsbt(&mut pair);
    check_send(&mut pair);
}

fn check_fundrawtransaction(pair: &mut Pair) {
    let coins = inputs(pair);
    let mut raw = |inputs: Value, outputs: Value| pair.ours.call("createrawtransaction", json!([inputs, outputs]));
    let plain = raw(json!([]), json!([{FOREIGN: 1}]));
    let zero = "00".repeat(32);
    let transactions = [
        raw(json!([]), json!([])),
        raw(json!([]), json!([{"data": "00"}, {FOREIGN: 0.1}])),
        raw(json!([]), json!([{FOREIGN: 0.000001}])),
        raw(json!([]), json!([{FOREIGN: 100_000}])),
        raw(json!([]), json!([{FOREIGN: 120}])),
        raw(json!([coins[0]]), json!([{FOREIGN: 1}])),
        raw(json!([coins[0], coins[1]]), json!([{FOREIGN: 80}, {OTHER: 50}])),
        raw(json!([{"txid": zero, "vout": 0}]), json!([{FOREIGN: 1}])),
        raw(json!([{"txid": coins[0]["txid"], "vout": 9}]), json!([{FOREIGN: 1}])),
        json!("zz"),
        json!(""),
    ];
    for transaction in transactions {
        pair.check_options("fundrawtransaction", &[transaction], vec![json!({}), json!({"add_inputs": false})]);
    }
    pair.check_options("fundrawtransaction", std::slice::from_ref(&plain), shared_options());
    pair.check_options("fundrawtransaction", std::slice::from_ref(&plain), named_options());
    let weights = [
        json!([5]),
        json!([{}]),
        json!([{"txid": "x"}]),
        json!([{"txid": zero}]),
        json!([{"txid": zero, "vout": -1}]),
        json!([{"txid": zero, "vout": 0}]),
        json!([{"txid": zero, "vout": 0, "weight": 400_001}]),
        json!([{"txid": zero, "vout": 0, "weight": 400}]),
        json!(5),
    ];
    let others = vec![json!(true), json!("x"), json!(5), json!([]), json!({"subtractFeeFromOutputs": ["dummy"]})];
    let weights = weights.into_iter().map(|weights| json!({"input_weights": weights}));
    pair.check_options("fundrawtransaction", std::slice::from_ref(&plain), others.into_iter().chain(weights).collect());
    for params in [json!([plain, {}, true]), json!([plain, {}, false]), json!([plain, {}, 5]), json!([5])] {
        pair.check_shape("fundrawtransaction", &params);
    }
    // An input that only `input_weights` names is spent too.
    let weighed = |coin: &Value| json!({"txid": coin["txid"], "vout": coin["vout"], "weight": 300});
    for add_inputs in [true, false] {
        let options =
            json!({"input_weights": [weighed(&coins[0]), weighed(&coins[2])], "add_inputs": add_inputs, "fee_rate": 5});
        pair.check_shape("fundrawtransaction", &json!([plain, options]));
        let funded = pair.both("fundrawtransaction", &json!([plain, options]));
        let spent = funded.map(|funded| {
            let decoded = pair.ours.call("decoderawtransaction", json!([funded["hex"]]));
            let inputs = decoded["vin"].as_array().unwrap().iter();
            let mut spent: Vec<String> = inputs.map(|input| format!("{}:{}", input["txid"], input["vout"])).collect();
            spent.sort();
            spent
        });
        assert_eq!((spent[0].len(), &spent[0]), (2, &spent[1]));
    }
    pair.check_shape("fundrawtransaction", &json!([plain, {"lockUnspents": true}]));
    assert_eq!(pair.both("listlockunspent", &json!([])).map(|locked| locked.as_array().unwrap().len()), [1, 1]);
}

/// The most inputs of 273 weight units in a transaction to one P2WPKH address.
const MOST_INPUTS: usize = 1464;

#[test]
fn fundrawtransaction_of_foreign_and_of_too_many_inputs_answers_as_bitcoind() {
    let Some(mut pair) = Pair::start(&[]) else { return };
    pair.fund(6);
    check_foreign_inputs(&mut pair);
    // The last check spends the remaining five coins.
    check_too_many_inputs(&mut pair);
}

/// fundrawtransaction refuses too many inputs with given weights.
fn check_too_many_inputs(pair: &mut Pair) {
    let [address, _] = pair.both("getnewaddress", &json!(["", "legacy"]));
    let outputs = json!([{FOREIGN: 102.6}, {address.as_str().unwrap(): 0.1}]);
    let coins = inputs(pair);
    let raw = pair.ours.call("createrawtransaction", json!([coins, outputs]));
    let mut payment: Transaction = deserialize_hex(raw.as_str().unwrap()).unwrap();
    payment.output.resize(1474, payment.output[1].clone());
    let signed = pair.ours.call("signrawtransactionwithwallet", json!([serialize_hex(&payment)]))["hex"].clone();
    let [txid, _] = pair.both("sendrawtransaction", &json!([signed]));
    pair.mine(1, &json!(FOREIGN));
    for count in [MOST_INPUTS, MOST_INPUTS + 1, 1471, 1472, 1473] {
        let weights: Vec<Value> = (1..=count).map(|vout| json!({"txid": txid, "vout": vout, "weight": 273})).collect();
        let amount: f64 = format!("{}.{}", (count - 1) / 10, (count - 1) % 10).parse().unwrap();
        for named in [0, count] {
            let raw = pair.ours.call("createrawtransaction", json!([weights[..named], [{FOREIGN: amount}]]));
            let params = json!([raw, {"input_weights": weights}]);
            pair.check_shape("fundrawtransaction", &params);
            let too_large = told(&mut pair.ours, "fundrawtransaction", &params) == "-4 Transaction too large";
            assert_eq!(too_large, count > MOST_INPUTS, "{count} {named}");
        }
    }
}

fn check_foreign_inputs(pair: &mut Pair) {
    // A coin of neither wallet, in neither the mempool nor the chain.
    let key = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
    let to = pair.ours.call("deriveaddresses", json!([format!("wpkh({key})#ucxz0gak")]))[0].clone();
    let spent = inputs(pair)[0].clone();
    let paid = pair.ours.call("createrawtransaction", json!([[spent], [{to.as_str().unwrap(): 49.9999}]]));
    let signed = pair.ours.call("signrawtransactionwithwallet", json!([paid]))["hex"].clone();
    let [txid, _] = pair.both("sendrawtransaction", &json!([signed]));
    for mined in [false, true] {
        if mined {
            pair.mine(1, &json!(FOREIGN));
        }
        let input = json!([{"txid": txid, "vout": 0}]);
        let raw = pair.ours.call("createrawtransaction", json!([input, [{FOREIGN: 40}]]));
        let options = vec![
            json!({}),
            json!({"solving_data": {"pubkeys": [key]}}),
            json!({"solving_data": {"descriptors": [format!("wpkh({key})#ucxz0gak")]}, "fee_rate": 20}),
            json!({"input_weights": [{"txid": txid, "vout": 0, "weight": 500}]}),
        ];
        pair.check_options("fundrawtransaction", &[raw], options);
        let outputs = json!([{FOREIGN: 60}]);
        let more = json!({"add_inputs": true, "solving_data": {"pubkeys": [key]}});
        pair.check_shape("walletcreatefundedpsbt", &json!([input, outputs, 0, more]));
    }
}

fn check_walletcreatefundedpsbt(pair: &mut Pair) {
    let coins = inputs(pair);
    let with = |key: &str, value: i64| {
        let mut coin = coins[0].clone();
        coin[key] = json!(value);
        json!([coin])
    };
    let one = json!([{FOREIGN: 1}]);
    let calls = [
        json!([[], one]),
        json!([null, one]),
        json!([[], {FOREIGN: 1}]),
        json!([[], []]),
        json!([[], null]),
        json!([[], [{FOREIGN: 1}, {FOREIGN: 2}]]),
        json!([[], [{"bad": 1}]]),
        // Release 29 makes P2TR change here, Bitcoin Knots P2WPKH.
        json!([[], {"data": "00"}, 0, {"change_type": "bech32"}]),
        json!([[], one, -1]),
        json!([[], one, 500_000_001]),
        json!([[coins[0]], one]),
        json!([[coins[0], coins[0]], one]),
        json!([[coins[0]], [{FOREIGN: 60}]]),
        json!([[coins[0]], [{FOREIGN: 60}], 0, {"add_inputs": true}]),
        json!([[coins[0]], one, 0, {"add_inputs": false}]),
        json!([with("sequence", 0xffff_ffff), one, 0, {"replaceable": true}]),
        json!([with("sequence", 0xffff_ffff), one, 0, {"replaceable": false}]),
        json!([with("weight", 100), one]),
        json!([with("weight", 1000), one]),
        json!([[coins[0]], one, 0, {"input_weights": []}]),
        json!([[5], one]),
        json!(["x", one]),
        json!([[], one, 0, true]),
        json!([[], one, 0, {}, 5]),
        json!([[], one, 0, {}, false]),
        json!([[], [{"bad": 1}], 0, {"subtractFeeFromOutputs": ["x"]}]),
        json!([[], [{"bad": 1}], -1, {"subtractFeeFromOutputs": [0]}]),
        json!([[], one, 0, {"subtractFeeFromOutputs": [FOREIGN]}]),
        json!([[], one, 0, {"replaceable": null}]),
        json!([[{"txid": "11".repeat(32), "vout": 0}], one]),
        json!([[], [{FOREIGN: 149.99998}]]),
        json!([[], [{FOREIGN: 149.999999}]]),
        json!([[], [{FOREIGN: 100}, {OTHER: 50}], 0, {"subtractFeeFromOutputs": [0, 1]}]),
    ];
    for params in calls {
        pair.check_shape("walletcreatefundedpsbt", &params);
    }
    let params = [json!([]), one, json!(0)];
    pair.check_options("walletcreatefundedpsbt", &params, shared_options());
    pair.check_options("walletcreatefundedpsbt", &params, named_options());
    // All coins and one output: only the order of the inputs is random, and PSBT entries of all inputs are alike.
    let whole = json!([coins, [{FOREIGN: 150}], 0, {"subtractFeeFromOutputs": [0], "add_inputs": false}]);
    for bip32derivs in [true, false] {
        let mut params = whole.clone();
        params.as_array_mut().unwrap().push(json!(bip32derivs));
        let [ours, theirs] = pair.both("walletcreatefundedpsbt", &params);
        assert_eq!(ours, theirs);
    }
}

fn check_send(pair: &mut Pair) {
    let coins = inputs(pair);
    let one = json!([{FOREIGN: 1}]);
    let unsent = [
        json!([one, 6]),
        json!([one, 6, "unset"]),
        json!([one, 6, "foo"]),
        json!([one, 6, null, null, {"conf_target": 6}]),
        json!([one, null, "economical", null, {"estimate_mode": "economical"}]),
        json!([one, null, null, 5, {"fee_rate": 6}]),
        json!([one, null, null, 0.5]),
        json!([one, 6, "economical", 5]),
        json!([[]]),
        json!([null]),
        json!([[{FOREIGN: 30_000}]]),
        json!([one, null, null, null, 5]),
    ];
    for params in unsent {
        pair.check_shape("send", &params);
    }
    let params = [one.clone(), json!(null), json!(null), json!(null)];
    let renamed = ["feeRate", "changeAddress", "changePosition", "includeWatching", "lockUnspents"];
    let renamed = renamed.map(|name| json!({name: null}));
    let own = [
        json!({"subtractFeeFromOutputs": null}),
        json!({"add_to_wallet": "x"}),
        json!({"psbt": "x"}),
        json!({"change_position": 5}),
        json!({"locktime": -1}),
        json!({"inputs": 5}),
        json!({"inputs": [coins[0]], "input_weights": []}),
        json!({"subtract_fee_from_outputs": [3]}),
    ];
    pair.check_options("send", &params, renamed.into_iter().chain(own).collect());
    // Only Bitcoin Knots refuses a mode without a target.
    let is_knots = |options: &Value| options.get("estimate_mode").is_some() && options.get("conf_target").is_none();
    let shared = shared_options().into_iter().filter(|options| !is_knots(options)).map(|mut options| {
        options["add_to_wallet"] = json!(false);
        options
    });
    pair.check_options("send", &params, shared.collect());
    let mut with_weight = coins[0].clone();
    with_weight["weight"] = json!(500);
    let given = [
        json!({"psbt": true}),
        json!({"add_to_wallet": false}),
        json!({"psbt": true, "add_to_wallet": false}),
        json!({"psbt": true, "inputs": [coins[0]]}),
        json!({"psbt": true, "inputs": [with_weight]}),
        json!({"psbt": true, "subtract_fee_from_outputs": [0], "locktime": 5}),
        json!({"psbt": true, "change_address": OTHER, "change_position": 0}),
    ];
    pair.check_options("send", &params, given.into_iter().collect());
    pair.check_shape("send", &json!([[{FOREIGN: 60}], null, null, null, {"psbt": true, "inputs": [coins[0]]}]));
    let more = json!({"psbt": true, "inputs": [coins[0]], "add_inputs": true});
    pair.check_shape("send", &json!([[{FOREIGN: 60}], null, null, null, more]));
    // Wallet and mempool know sent payments.
    pair.check_shape("send", &json!([{FOREIGN: 1}, null, null, 7]));
    for client in [&mut pair.ours, &mut pair.theirs] {
        let txid = client.call("getrawmempool", json!([]))[0].clone();
        assert_eq!(client.call("gettransaction", json!([txid]))["amount"].to_string(), "-1.00000000");
    }
    // A locked wallet and one without keys return a partial answer.
    for client in [&mut pair.ours, &mut pair.theirs] {
        client.call("encryptwallet", json!(["secret"]));
    }
    pair.check_shape("send", &json!([one]));
    pair.check_shape("sendall", &json!([[FOREIGN]]));
}

#[test]
fn sendall_answers_as_bitcoind() {
    let Some(mut pair) = Pair::start(&[]) else { return };
    pair.fund(2);
    // A coin that costs more to spend at 10 satoshi per virtual byte than its value.
    let [small, _] = pair.both("getnewaddress", &json!([]));
    let coin = inputs(&mut pair)[0].clone();
    let outputs = json!([{small.as_str().unwrap(): 0.000005}, {FOREIGN: 49.9999}]);
    let raw = pair.ours.call("createrawtransaction", json!([[coin], outputs]));
    let signed = pair.ours.call("signrawtransactionwithwallet", json!([raw]))["hex"].clone();
    pair.both("sendrawtransaction", &json!([signed]));
    pair.mine(1, &json!(FOREIGN));
    let coins = inputs(&mut pair);
    let recipients = [
        json!([FOREIGN]),
        json!([FOREIGN, OTHER]),
        json!([{OTHER: 1}, FOREIGN]),
        json!([{OTHER: 1}]),
        json!([]),
        json!(["bad"]),
        json!([5]),
        json!([{OTHER: 60}, FOREIGN]),
        json!([{OTHER: 50.000004}, FOREIGN]),
        json!([{OTHER: 0.000001}, FOREIGN]),
        json!([{OTHER: 49.999995}, FOREIGN]),
        json!([FOREIGN, FOREIGN]),
    ];
    for recipients in recipients {
        pair.check_shape("sendall", &json!([recipients, null, null, 1, {"add_to_wallet": false}]));
    }
    let given = |mut options: Value| {
        options["add_to_wallet"] = json!(false);
        options
    };
    let options = [
        json!({"send_max": true}),
        json!({"fee_rate": 10}),
        json!({"fee_rate": 10, "send_max": true}),
        json!({"inputs": [coins[0]]}),
        json!({"inputs": [coins[0]], "send_max": true}),
        json!({"inputs": [coins[0]], "send_max": false}),
        json!({"inputs": [coins[0]], "minconf": 1}),
        json!({"inputs": [{"txid": "11".repeat(32), "vout": 0}]}),
        json!({"inputs": [{"txid": coins[0]["txid"], "vout": 9}]}),
        json!({"inputs": [coin]}),
        json!({"inputs": [coins[0], coins[0]]}),
        json!({"inputs": []}),
        json!({"inputs": 5}),
        json!({"minconf": -1}),
        json!({"minconf": 200}),
        json!({"minconf": 2, "maxconf": 1}),
        json!({"maxconf": 0}),
        json!({"minconf": "x"}),
        json!({"minconf": null}),
        json!({"nosuch": 1}),
        json!({"feeRate": 1}),
        json!({"include_watching": "x"}),
        json!({"replaceable": false}),
        json!({"replaceable": "x"}),
        json!({"locktime": 5}),
        json!({"locktime": -1}),
        json!({"conf_target": 6}),
        json!({"conf_target": 6, "estimate_mode": "economical"}),
        json!({"fee_rate": 0.5}),
        json!({"fee_rate": 100_000}),
        json!({"psbt": "x"}),
        json!({"send_max": 5}),
        json!({"add_inputs": true, "solving_data": {}}),
    ];
    let params = [json!([FOREIGN]), json!(null), json!(null), json!(null)];
    pair.check_options("sendall", &params, options.into_iter().map(given).collect());
    // Each recipient's amount is the same to the satoshi.
    let plain = json!({"add_to_wallet": false, "locktime": 5});
    // An input named twice counts twice.
    let twice = json!({"add_to_wallet": false, "inputs": [coins[0], coins[1], coins[1]]});
    for options in [plain, twice] {
        let shared = json!([[FOREIGN, {OTHER: 3}], null, null, 3, options]);
        let shares = pair.both("sendall", &shared).map(|answer| answer["hex"].clone());
        let [ours, theirs] = shares.map(|hex| pair.ours.call("decoderawtransaction", json!([hex]))["vout"].clone());
        assert_eq!(ours, theirs);
    }
    pair.check_shape("sendall", &json!([[FOREIGN]]));
    pair.check_shape("sendall", &json!([[FOREIGN]]));
    assert_eq!(pair.both("listunspent", &json!([0])).map(|coins| coins.as_array().unwrap().len()), [0, 0]);
}

//! Raw transactions, scripts, addresses and descriptors. They need no chain.

use outrigger_sdk::RpcError;
use outrigger_sdk::testing::StubHost;
use serde_json::{Value, json};

use super::{ADDRESS, KEY, check, keys, start};

#[test]
fn createrawtransaction_answers_as_recorded() {
    let plugin = start(&StubHost::new());
    let txid = "11".repeat(32);
    let input = json!([{"txid": txid, "vout": 0}]);
    let pay = json!([{ADDRESS: 0.1}]);
    let made = |sequence: &str, outputs: &str, lock_time: &str| {
        json!(format!("0200000001{txid}0000000000{sequence}{outputs}{lock_time}"))
    };
    let one = "01809698000000000016001440dd6c184e1b5429f0da3616fd9dcf9bf01896fd";
    let two = "02809698000000000016001440dd6c184e1b5429f0da3616fd9dcf9bf01896fd0000000000000000046a0200ff";
    let sequence = |value: Value| json!([{"txid": txid, "vout": 0, "sequence": value}]);
    check(
        &plugin,
        "createrawtransaction",
        &[
            (json!([input, pay]), made("fdffffff", one, "00000000")),
            (json!([input, {ADDRESS: 0.1, "data": "00ff"}]), made("fdffffff", two, "00000000")),
            (json!([input, format!("{{\"{ADDRESS}\":\"0.1\"}}")]), made("fdffffff", one, "00000000")),
            (json!([input, pay, 500, true]), made("fdffffff", one, "f4010000")),
            (json!([input, pay, 0, false]), made("ffffffff", one, "00000000")),
            (json!([input, pay, 500, false]), made("feffffff", one, "f4010000")),
            (json!([input, pay, 4_294_967_295_u32]), made("fdffffff", one, "ffffffff")),
            (json!([sequence(json!(1000)), pay, 5]), made("e8030000", one, "05000000")),
            (json!([sequence(json!("1")), pay]), made("fdffffff", one, "00000000")),
            (json!([[], []]), json!("02000000000000000000")),
        ],
    );
    let not_hex = "z".repeat(64);
    plugin.refuses(
        "createrawtransaction",
        &[
            (json!([input, [{"data": ""}]]), -8, "Data must be hexadecimal string (not '')"),
            (json!([input, [{"data": "zz"}]]), -8, "Data must be hexadecimal string (not 'zz')"),
            (json!([input, [{"data": "00"}, {"data": "01"}]]), -8, "Invalid parameter, duplicate key: data"),
            (
                json!([input, [{ADDRESS: 0.1}, {ADDRESS: 0.2}]]),
                -8,
                &format!("Invalid parameter, duplicated address: {ADDRESS}"),
            ),
            (json!([input, [{"garbage": 0.1}]]), -5, "Invalid Bitcoin address: garbage"),
            (json!([input, [{ADDRESS: -1}]]), -3, "Amount out of range"),
            (json!([input, [{ADDRESS: "x"}]]), -3, "Invalid amount"),
            (json!([input, [{"a": 1, "b": 1}]]), -8, "Invalid parameter, key-value pair must contain exactly one key"),
            (json!([input, [{}]]), -8, "Invalid parameter, key-value pair must contain exactly one key"),
            (json!([input, ["x"]]), -8, "Invalid parameter, key-value pair not an object as expected"),
            (json!([input, "x"]), -3, "JSON value of type string is not of expected type array"),
            (json!([input, null]), -8, "Invalid parameter, output argument must be non-null"),
            (json!([["x"], pay]), -3, "JSON value of type string is not of expected type object"),
            (json!([[{}], pay]), -3, "JSON value of type null is not of expected type string"),
            (json!([[{"txid": "zz", "vout": 0}], pay]), -8, "txid must be of length 64 (not 2, for 'zz')"),
            (
                json!([[{"txid": not_hex, "vout": 0}], pay]),
                -8,
                &format!("txid must be hexadecimal string (not '{not_hex}')"),
            ),
            (json!([[{"txid": txid}], pay]), -8, "Invalid parameter, missing vout key"),
            (json!([[{"txid": txid, "vout": -1}], pay]), -8, "Invalid parameter, vout cannot be negative"),
            (json!([sequence(json!(-1)), pay]), -8, "Invalid parameter, sequence number is out of range"),
            (json!([sequence(json!(1_u64 << 32)), pay]), -8, "Invalid parameter, sequence number is out of range"),
            (json!([input, pay, -1]), -8, "Invalid parameter, locktime out of range"),
            (
                json!([sequence(json!(u32::MAX)), pay, 0, true]),
                -8,
                "Invalid parameter combination: Sequence number(s) contradict replaceable option",
            ),
        ],
    );
}

#[test]
fn decoderawtransaction_decodes_the_requested_form() {
    let plugin = start(&StubHost::new());
    let empty = "02000000000000000000";
    let shown = plugin.call("decoderawtransaction", json!([empty])).unwrap();
    assert_eq!(keys(&shown), ["txid", "hash", "version", "size", "vsize", "weight", "locktime", "vin", "vout"]);
    let unfunded = "0200000000010100000000000000015100000000";
    assert!(plugin.call("decoderawtransaction", json!([unfunded, false])).is_ok());
    for bad in [json!(["zz"]), json!([""]), json!([unfunded, true])] {
        plugin.refuses("decoderawtransaction", &[(bad, -22, "TX decode failed")]);
    }
}

#[test]
fn decodescript_answers_as_recorded() {
    let plugin = start(&StubHost::new());
    let answer = |hex: String| plugin.call("decodescript", json!([hex])).unwrap();
    let pk = answer(format!("21{KEY}ac"));
    let segwit = json!({
        "asm": "0 63f3ebd51cd47966cd53fee3b3187ccdbdb5c9ed",
        "desc": "addr(bcrt1qv0e7h4gu63ukdn2nlm3mxxruek7mtj0d7gagxw)#6qxtkqd5",
        "hex": "001463f3ebd51cd47966cd53fee3b3187ccdbdb5c9ed",
        "address": "bcrt1qv0e7h4gu63ukdn2nlm3mxxruek7mtj0d7gagxw",
        "type": "witness_v0_keyhash",
        "p2sh-segwit": "2MsG5rs7r83mEMwEARytyZ9H4jXr8KZLeJL",
    });
    let expected = json!({
        "asm": format!("{KEY} OP_CHECKSIG"),
        "desc": format!("pk({KEY})#4f6ru7w0"),
        "type": "pubkey",
        "p2sh": "2N3WzE4yem1HnnCpshEtWRbqeQijXTsGmh1",
        "segwit": segwit,
    });
    assert_eq!(pk.to_string(), expected.to_string());
    let miniscript = answer(format!("21{KEY}ad5ab2"));
    assert_eq!(miniscript["p2sh"], "2Mz2zUppmFAXMrnDmtLA9JVWYkqzLHCBtCs");
    assert_eq!(miniscript["segwit"]["desc"], format!("wsh(and_v(v:pk({KEY}),older(10)))#c434ug6z"));
    let empty = answer(String::new());
    assert_eq!(empty["segwit"]["p2sh-segwit"], "2N2CmnxjBbPTHrawgG2FkTuBLcJtEzA86sF");
    // Each script, and whether it can be a redeem script and a witness script.
    let wrapped = |hex: &str| {
        let answer = answer(hex.to_owned());
        (answer.get("p2sh").is_some(), answer.get("segwit").is_some())
    };
    for (hex, expected) in [
        ("a914da1745e9b549bd0bfa1a569971c77eba30cd5a4b87", (false, false)),
        ("51024e73", (false, false)),
        ("6a026162", (false, false)),
        ("ff", (false, false)),
        ("50", (false, false)),
        ("001463f3ebd51cd47966cd53fee3b3187ccdbdb5c9ed", (true, false)),
        (
            "4104a48b2aa38ccb5e48361c89d16b398047006b7eb2c4a9bc3a2cedaeedf332cfcc18881aa43570165972d68a5aa7890e950a5b2517c3cebb16cf5f0ab7dccda10bac",
            (true, false),
        ),
        ("51", (true, true)),
    ] {
        assert_eq!(wrapped(hex), expected, "{hex}");
    }
    let message = "argument must be hexadecimal string (not 'zz')";
    plugin.refuses("decodescript", &[(json!(["zz"]), -8, message)]);
}

#[test]
fn decodescript_describes_scripts_above_the_size_limit() {
    let plugin = start(&StubHost::new());
    let longest = 10_000;
    for (opcode, word) in [("51", "1"), ("ac", "OP_CHECKSIG"), ("ff", "OP_INVALIDOPCODE")] {
        let shown = |length: usize| {
            let hex = opcode.repeat(length);
            let answer = plugin.call("decodescript", json!([hex])).unwrap();
            assert_eq!(answer["asm"], vec![word; length].join(" "));
            assert!(answer["desc"].as_str().unwrap().starts_with(&format!("raw({hex})#")), "{length}");
            assert_eq!(answer["type"], "nonstandard");
            keys(&answer).into_iter().cloned().collect::<Vec<String>>()
        };
        assert_eq!(shown(longest + 1), ["asm", "desc", "type"]);
        assert_eq!(shown(longest)[..3], ["asm", "desc", "type"]);
    }
    let data = format!("6a{}", "00".repeat(longest));
    let answer = plugin.call("decodescript", json!([data])).unwrap();
    assert_eq!((&answer["type"], keys(&answer).len()), (&json!("nulldata"), 3));
}

#[test]
fn validateaddress_answers_as_recorded() {
    let plugin = start(&StubHost::new());
    check(
        &plugin,
        "validateaddress",
        &[
            (
                json!(["mrrEvVahbkE5qi9wq936VbiszJswLpjXze"]),
                json!({"isvalid": true, "address": "mrrEvVahbkE5qi9wq936VbiszJswLpjXze",
                    "scriptPubKey": "76a9147c4f2adfa53f39b968396ab53171e69cb64ad3b988ac",
                    "isscript": false, "iswitness": false}),
            ),
            (
                json!(["2N79nRPizh5y3pLXQ1UuojavNZQGaRVgQz4"]),
                json!({"isvalid": true, "address": "2N79nRPizh5y3pLXQ1UuojavNZQGaRVgQz4",
                    "scriptPubKey": "a914988a56bd9443f05e5571b27f0b089d8661d78a3e87",
                    "isscript": true, "iswitness": false}),
            ),
            (
                json!(["BCRT1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KYGT080"]),
                json!({"isvalid": true, "address": "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080",
                    "scriptPubKey": "0014751e76e8199196d454941c45d1b3a323f1433bd6", "isscript": false,
                    "iswitness": true, "witness_version": 0,
                    "witness_program": "751e76e8199196d454941c45d1b3a323f1433bd6"}),
            ),
            (
                json!(["bcrt1pfeesnyr2tx"]),
                json!({"isvalid": true, "address": "bcrt1pfeesnyr2tx", "scriptPubKey": "51024e73",
                    "isscript": true, "iswitness": true}),
            ),
            (
                json!(["bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt081"]),
                json!({"isvalid": false, "error_locations": [43], "error": "Invalid separator position"}),
            ),
        ],
    );
}

#[test]
fn getdescriptorinfo_and_deriveaddresses_answer_as_recorded() {
    let plugin = start(&StubHost::new());
    let info = plugin.call_json("getdescriptorinfo", json!([format!("pkh({KEY})")])).unwrap();
    let expected = format!(
        r#"{{"descriptor":"pkh({KEY})#qevngwza","checksum":"qevngwza","isrange":false,"issolvable":true,"hasprivatekeys":false}}"#
    );
    assert_eq!(info, expected);
    let private = "cSDnEboTpA86cQS85YWShTYBQUrabK8EdXUbq2Fh9dfBKPdFBs5T";
    let info = plugin.call("getdescriptorinfo", json!([format!("pk({private})")])).unwrap();
    assert_eq!((&info["checksum"], &info["hasprivatekeys"]), (&json!("0qeehurc"), &json!(true)));
    assert!(!info.to_string().contains(private));
    let addresses = |descriptor: String| plugin.call("deriveaddresses", json!([descriptor]));
    let expected = json!(["bcrt1qv0e7h4gu63ukdn2nlm3mxxruek7mtj0d7gagxw"]);
    assert_eq!(addresses(format!("wpkh({KEY})#jh8x92j2")), Ok(expected));
    let combo = json!([
        "mpdTPzJRwTaKt4GtpYX5LHfja39rfJ62Xm",
        "bcrt1qv0e7h4gu63ukdn2nlm3mxxruek7mtj0d7gagxw",
        "2MsG5rs7r83mEMwEARytyZ9H4jXr8KZLeJL"
    ]);
    assert_eq!(addresses(format!("combo({KEY})#z6453lqp")), Ok(combo));
    let ranged = "wpkh(tpubD6NzVbkrYhZ4WftWoL6uQgGPwZrywmoh2Ckm4QyTm7rknQB66xHRfF6iVhbkt875LvDFc3fagZZUNmk4UX6F9boFm5DTmvTfi3RKnji1TgE/84h/1h/0h/0/*)#hhxv7auj";
    plugin.refuses(
        "deriveaddresses",
        &[
            (json!([ranged, [0, 2]]), -5, "Cannot derive script without private keys"),
            (json!([ranged]), -8, "Range must be specified for a ranged descriptor"),
            (json!([ranged, [2, 0]]), -8, "Range specified as [begin,end] must not have begin after end"),
            (json!([ranged.split('#').next(), 1]), -5, "Missing checksum"),
            (
                json!([format!("wpkh({KEY})#jh8x92j2"), [0, 2]]),
                -8,
                "Range should not be specified for an un-ranged descriptor",
            ),
            (json!([format!("pk({KEY})#4f6ru7w0")]), -5, "Descriptor does not have a corresponding address"),
        ],
    );
    let error = plugin.call("getdescriptorinfo", json!(["nosuch(1)"])).unwrap_err();
    assert!(error.code.0 == -5 && error.message.contains("is not a valid descriptor function"), "{error}");
}

#[test]
fn deriveaddresses_of_a_multipath_descriptor_gives_a_list_per_path() {
    let plugin = start(&StubHost::new());
    let text = "wpkh(tprv8ZgxMBicQKsPdCriugSK1GcHNYM3nScnSu9ymtwALr4MwuvKUZTqUkUrKYSsLfYHz4X2MQwfft4C5Gk1WqeCWaDhWN9aVSXT3rF9tcZx77N/<0;1>/*)#pmgs3x5k";
    let expected: Result<Value, RpcError> = Ok(json!([
        ["bcrt1qgw04ruwfyxt0ykz3cszw4rnwdgyx4vddw58c33", "bcrt1qhcnju37e3wyzlvg02qph50arc985hku5ted08q"],
        ["bcrt1qgq34vcw57jdwwp9e94gj0td9wca62nzkwkhxv0", "bcrt1qfttfghvyv8c7kednf5zpke54rzsd4ppnd49esr"]
    ]));
    assert_eq!(plugin.call("deriveaddresses", json!([text, [0, 1]])), expected);
    let info = plugin.call("getdescriptorinfo", json!([text])).unwrap();
    assert_eq!(info["multipath_expansion"].as_array().unwrap().len(), 2);
    assert_eq!(info["multipath_expansion"][0], info["descriptor"]);
}

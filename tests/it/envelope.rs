use outrigger_tests::{Client, Host};
use serde_json::{Value, json};

#[test]
fn arguments_are_named_counted_typed_unwrapped_and_parsed_and_wallets_are_named_by_a_path() {
    let host = Host::start();
    let mut client = host.client();
    let genesis = client.call("getblockhash", json!([0]));
    assert_eq!(client.call("getblockhash", json!({"height": 0})), genesis);
    assert_eq!(
        client.call("getblockheader", json!({"args": [genesis], "verbose": false})).as_str().unwrap().len(),
        160
    );
    assert_eq!(client.refused("getblockhash", json!({"hight": 0})), (-8, "Unknown named parameter hight".into()));
    let block = json!({"blockhash": genesis, "verbosity": 0, "verbose": 1});
    assert_eq!(client.refused("getblock", block), (-8, "Unknown named parameter verbose".into()));
    let twice = "Parameter verbosity|verbose specified twice both as positional and named argument";
    let block = json!({"args": [genesis, 0], "verbosity": 1, "nope": 1});
    assert_eq!(client.refused("getblock", block), (-8, twice.into()));
    let (code, message) = client.refused("getblockhash", json!([]));
    assert_eq!((code, message.lines().next()), (-1, Some("getblockhash height")));
    assert_eq!(client.refused("getblockhash", json!([1, 2])).0, -1);
    let (code, message) = client.refused("getblockhash", json!(["0"]));
    let expected = "Wrong type passed:\n{\n    \"Position 1 (height)\": \"JSON value of type string is not of expected type number\"\n}";
    assert_eq!((code, message.as_str()), (-3, expected));
    // Some clients send an array as a JSON text.
    let raw = client.call("createrawtransaction", json!([[{"txid": "11".repeat(32), "vout": 0}], []]));
    let signed = client.call("signrawtransactionwithkey", json!([raw, "[]"]));
    assert_eq!(signed["complete"], json!(false));
    // Arguments that no plugin can parse are parse errors.
    let deep = format!("{}{}", "[".repeat(400), "]".repeat(400));
    for (argument, expected) in [(r#""\ud800""#, "Parse error"), (&deep, "Parse error: recursion limit exceeded")] {
        let reply = client.post(&format!(r#"{{"id":1,"method":"importdescriptors","params":[{argument}]}}"#));
        let body: Value = serde_json::from_str(&reply.body).unwrap();
        assert_eq!(body["error"]["code"], json!(-32700), "{body}");
        assert!(body["error"]["message"].as_str().unwrap().starts_with(expected), "{body}");
    }
    let import = client.plugin("import");
    assert_eq!((&import["state"], &import["faults"]), (&json!("running"), &json!(0)));
    // A URL path that is not UTF-8 names no wallet.
    client.call("createwallet", json!(["\u{fffd}", true]));
    let mut nobody = client.wallet("%ff");
    assert_eq!(nobody.call("getblockcount", json!([])), json!(0));
    assert_eq!(nobody.call("listwallets", json!([])), json!(["\u{fffd}"]));
    let unknown = (-18, "Requested wallet does not exist or is not loaded".to_owned());
    assert_eq!(nobody.refused("getwalletinfo", json!([])), unknown);
    check_bad_values(&mut client);
}

/// Errors name the bad argument, and nothing changes.
fn check_bad_values(client: &mut Client) {
    let mut wallet = client.create_wallet("w", json!({}));
    let before = (client.call("getblockchaininfo", json!([])), wallet.call("listdescriptors", json!([])));
    let cases = [
        (
            "signrawtransactionwithkey",
            json!(["zz", []]),
            -22,
            "TX decode failed. Make sure the tx has at least one input.",
        ),
        ("importmulti", json!([{}]), -3, "Expected type array, got object"),
        (
            "getblocktemplate",
            json!([{}]),
            -8,
            "getblocktemplate must be called with the segwit rule set (call with {\"rules\": [\"segwit\"]})",
        ),
        ("gettransaction", json!(["zz"]), -8, "txid must be of length 64 (not 2, for 'zz')"),
        ("listsinceblock", json!(["00".repeat(32)]), -5, "Block not found"),
        ("submitblock", json!(["zz"]), -22, "Block decode failed"),
        ("sendrawtransaction", json!(["zz"]), -22, "TX decode failed. Make sure the tx has at least one input."),
        ("getblock", json!(["00".repeat(32)]), -5, "Block not found"),
    ];
    for (method, params, code, message) in cases {
        assert_eq!(wallet.refused(method, params.clone()), (code, message.to_owned()), "{method} {params}");
    }
    let mut unknown = client.wallet("nosuch");
    let message = "Requested wallet does not exist or is not loaded";
    for method in ["getwalletinfo", "listsinceblock"] {
        assert_eq!(unknown.refused(method, json!([])), (-18, message.into()), "{method}");
    }
    assert_eq!(unknown.call("getblockcount", json!([])), json!(0));
    assert_eq!((client.call("getblockchaininfo", json!([])), wallet.call("listdescriptors", json!([]))), before);
}

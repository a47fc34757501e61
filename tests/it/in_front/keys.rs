//! Keys, signed messages and pruned funds of a wallet of the host and one of the node with the same keys.

use outrigger_tests::{XPRV, XPUB};
use serde_json::{Value, json};

use super::ADDRESS;
use super::twins::Wallets;

impl Wallets {
    /// The `blank` flag of our wallet and of the node's.
    fn blank(&mut self) -> [Value; 2] {
        [&mut self.ours, &mut self.theirs].map(|client| client.call("getwalletinfo", json!([]))["blank"].clone())
    }

    fn import(&mut self, text: &str, active: bool) {
        let text = self.host.client().with_checksum(text);
        let mut import = json!({"desc": text, "timestamp": "now", "active": active});
        if text.contains('*') {
            import["range"] = json!([0, 9]);
        }
        let outcome = self.check("importdescriptors", json!([[import]])).unwrap();
        assert_eq!(outcome[0]["success"], true, "{outcome}");
    }
}

#[test]
fn keys_are_listed_and_imported_as_by_the_node() {
    let Some(mut wallets) = Wallets::start() else { return };
    check_hd_keys(&mut wallets);
    // createwalletdescriptor accepts imported single keys, which have no chain code.
    let master: bitcoin::bip32::Xpriv = XPRV.parse().unwrap();
    let of = |compressed| {
        bitcoin::PrivateKey { compressed, network: bitcoin::NetworkKind::Test, inner: master.private_key }.to_wif()
    };
    let mut other: bitcoin::bip32::Xpub = XPUB.parse().unwrap();
    other.chain_code = [7; 32].into();
    for (number, form) in
        ["pkh(KEY)", "wsh(multi(1,KEY))", "tr(KEY)", "wsh(and_v(v:pk(KEY),older(5)))"].iter().enumerate()
    {
        wallets.make(&format!("one{number}"), &[json!(false), json!(true)]);
        wallets.import(&form.replace("KEY", &of(true)), false);
        wallets.check("createwalletdescriptor", json!(["bech32m", {"hdkey": XPUB}])).unwrap();
        wallets.check("createwalletdescriptor", json!(["bech32", {"hdkey": other.to_string()}])).unwrap();
        wallets.check("gethdkeys", json!([{"private": true}])).unwrap();
    }
    wallets.make("uncompressed", &[json!(false), json!(true)]);
    wallets.import(&format!("pkh({})", of(false)), false);
    wallets.check("createwalletdescriptor", json!(["bech32m", {"hdkey": XPUB}])).unwrap_err();
    // getaddressinfo shows full keys if a leaf contains their hash.
    let keys = [1, 2, 3].map(|number| format!("[d34db33f/{number}h]{XPUB}/{number}/*"));
    for (number, form) in [
        "tr({0},pk({1}))",
        "tr({0},pkh({1}))",
        "tr({0},{pkh({1}),pkh({2})})",
        "tr({0},and_v(v:pk({1}),pkh({2})))",
        "tr({0},and_v(v:pkh({1}),older(5)))",
        "tr({0},{and_v(v:pkh({1}),pk({2})),pk({1})})",
        "tr({0},multi_a(1,{1},{2}))",
        "tr({0},and_v(v:multi_a(1,{1},{2}),after(9)))",
        "tr({0},{sortedmulti_a(2,{1},{2}),pkh({0})})",
        "wsh(and_v(v:pkh({0}),pk({1})))",
        "sh(wsh(pkh({2})))",
    ]
    .iter()
    .enumerate()
    {
        wallets.make(&format!("tree{number}"), &[json!(true), json!(true)]);
        let text = ["{0}", "{1}", "{2}"].iter().zip(&keys);
        let text = text.fold((*form).to_owned(), |text, (name, key)| text.replace(name, key));
        wallets.import(&text, false);
        let text = wallets.check("getdescriptorinfo", json!([text])).unwrap()["descriptor"].clone();
        let addresses = wallets.check("deriveaddresses", json!([text, [0, 5]])).unwrap();
        for address in addresses.as_array().unwrap() {
            let [ours, theirs] =
                wallets.ask("getaddressinfo", &json!([address])).map(|info| info.unwrap()["desc"].clone());
            assert_eq!(ours, theirs, "{form}");
        }
    }
}

#[test]
fn pruned_funds_and_messages_are_handled_as_by_the_node() {
    let Some(mut wallets) = Wallets::start() else { return };
    check_pruned_funds(&mut wallets);
    check_upgradewallet(&mut wallets);
    check_signmessage(&mut wallets);
}

fn check_signmessage(wallets: &mut Wallets) {
    let address = wallets.address("", "legacy");
    for message in ["", "hello", "h\u{e9}llo\n"] {
        let signature = wallets.check("signmessage", json!([address, message])).unwrap();
        assert_eq!(wallets.host.client().call("verifymessage", json!([address, signature, message])), true);
    }
    for params in
        [json!(["x", "m"]), json!(["mipcBbFg9gMiCh81Kj8tqqdgoZub1ZJRfn", "m"]), json!([5, "m"]), json!([address, 5])]
    {
        wallets.check("signmessage", params).unwrap_err();
    }
    let public = wallets.ours.call("getaddressinfo", json!([address]))["pubkey"].clone();
    // Bitcoin Knots also signs for other address types.
    let bech32 = wallets.address("", "bech32");
    let error = wallets.ours.try_call("signmessage", json!([bech32, "m"])).unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (-3, "Address does not refer to key"));
    wallets.make("locked", &[json!(false), json!(false), json!("secret")]);
    wallets.check("signmessage", json!(["x", "m"])).unwrap_err();
    wallets.make("watches", &[json!(true), json!(true)]);
    wallets.import(&format!("pkh({})", public.as_str().unwrap()), false);
    let refused = wallets.check("signmessage", json!([address, "m"])).unwrap_err();
    assert_eq!(refused, (-4, "Private key not available".into()));
}

fn check_hd_keys(wallets: &mut Wallets) {
    for params in
        [json!([]), json!([{}]), json!([{"active_only": true}]), json!([{"private": true, "active_only": false}])]
    {
        assert!(!wallets.check("gethdkeys", params).unwrap().as_array().unwrap().is_empty());
    }
    wallets.check("gethdkeys", json!([{"private": 1}])).unwrap_err();
    wallets.check("gethdkeys", json!([1])).unwrap_err();
    for params in [
        json!(["bech32"]),
        json!(["x"]),
        json!([5]),
        json!(["bech32m", {"internal": true}]),
        json!(["bech32m", {"internal": 1}]),
        json!(["bech32", {"hdkey": "zz"}]),
        json!(["bech32", {"hdkey": XPUB}]),
    ] {
        wallets.check("createwalletdescriptor", params).unwrap_err();
    }
    wallets.make("blank", &[json!(false), json!(true)]);
    wallets.check("gethdkeys", json!([])).unwrap();
    wallets.check("createwalletdescriptor", json!(["legacy"])).unwrap_err();
    wallets.import(&format!("wpkh({XPRV}/84h/1h/0h/0/*)"), true);
    wallets.import("pkh(cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87JcbXMTcA)", false);
    wallets.import(&format!("wsh(multi(1,{XPRV}/5/*,{XPUB}/6/*))"), false);
    assert_eq!(wallets.blank(), [true, true], "imports leave a wallet blank");
    wallets.check("createwalletdescriptor", json!(["bech32m", {"internal": true}])).unwrap();
    assert_eq!(wallets.blank(), [false, false]);
    wallets.check("createwalletdescriptor", json!(["bech32m", {"hdkey": XPUB}])).unwrap();
    wallets.check("createwalletdescriptor", json!(["legacy"])).unwrap();
    wallets.check("createwalletdescriptor", json!(["bech32"])).unwrap();
    wallets.check("createwalletdescriptor", json!(["bech32"])).unwrap_err();
    wallets.check("gethdkeys", json!([{"private": true}])).unwrap();
    wallets.check("gethdkeys", json!([{"active_only": true}])).unwrap();
    for kind in ["legacy", "bech32", "bech32m"] {
        wallets.address("", kind);
    }
    wallets.check("encryptwallet", json!(["secret"])).unwrap();
    assert_eq!(wallets.blank(), [false, false]);
    // The wallet is no longer blank, so encryption gives it a new seed for all types.
    for client in [&mut wallets.ours, &mut wallets.theirs] {
        let keys = client.call("gethdkeys", json!([{"active_only": true}]));
        let [key] = keys.as_array().unwrap().as_slice() else { panic!("{keys}") };
        assert!(key["xpub"] != XPUB && key["descriptors"].as_array().unwrap().len() == 8, "{keys}");
    }
    wallets.check("createwalletdescriptor", json!(["p2sh-segwit"])).unwrap_err();
    wallets.check("gethdkeys", json!([{"private": true}])).unwrap_err();
}

fn check_upgradewallet(wallets: &mut Wallets) {
    // Bitcoin Core 30 removed the method.
    if outrigger_tests::bitcoind::release(&mut wallets.theirs) >= 30 {
        assert_eq!(wallets.ours.call("upgradewallet", json!([]))["current_version"], 169_900);
        return;
    }
    for params in [json!([]), json!([0]), json!([169_900]), json!([170_000]), json!([1]), json!([-1])] {
        wallets.check("upgradewallet", params).unwrap();
    }
    wallets.check("upgradewallet", json!(["x"])).unwrap_err();
}

/// importprunedfunds and removeprunedfunds, on a fresh chain.
fn check_pruned_funds(wallets: &mut Wallets) {
    let address = wallets.fund(1);
    let sent = wallets.ours.call("sendtoaddress", json!([address, 1, "", "", false, true, null, "unset", null, 10]));
    wallets.mine(1, ADDRESS);
    let mut node = wallets.host.client();
    let mut block = |height: u32| {
        let hash = node.call("getblockhash", json!([height]));
        let block = node.call("getblock", json!([hash, 2]));
        let transactions = block["tx"].as_array().unwrap().clone();
        let mut told = |transaction: &Value| {
            let proof = node.call("gettxoutproof", json!([[transaction["txid"]], hash]));
            (transaction["txid"].clone(), transaction["hex"].clone(), proof)
        };
        told(transactions.last().unwrap())
    };
    let (first, raw, proof) = block(1);
    let (_, foreign, foreign_proof) = block(2);
    let (_, sent_raw, other) = block(102);
    for params in [
        json!(["x", proof]),
        json!(["0200", proof]),
        json!([raw, "zz"]),
        json!([raw, "00"]),
        json!([raw, other]),
        json!([foreign, foreign_proof]),
        json!([raw, format!("ff{}", &proof.as_str().unwrap()[2..])]),
        json!([5, 5]),
    ] {
        wallets.check("importprunedfunds", params).unwrap_err();
    }
    for params in [json!(["x"]), json!([5]), json!(["11".repeat(32)])] {
        wallets.check("removeprunedfunds", params).unwrap_err();
    }
    let check = |wallets: &mut Wallets| {
        wallets.check("getbalances", json!([])).unwrap();
        wallets.check("getreceivedbyaddress", json!([address])).unwrap();
        for txid in [&first, &sent] {
            let answers = wallets.ask("gettransaction", &json!([txid]));
            let [ours, theirs] = answers.map(|answer| answer.map(|told| told["amount"].clone()));
            assert_eq!(ours, theirs, "{txid}");
        }
    };
    // Bitcoin Core 32 deprecated removeprunedfunds, so both refuse it.
    let is_deprecated = outrigger_tests::bitcoind::release(&mut wallets.theirs) >= 32;
    for txid in [&first, &sent] {
        if is_deprecated {
            wallets.check("removeprunedfunds", json!([txid])).unwrap_err();
            continue;
        }
        wallets.check("removeprunedfunds", json!([txid])).unwrap();
        check(wallets);
        wallets.check("removeprunedfunds", json!([txid])).unwrap_err();
    }
    wallets.check("importprunedfunds", json!([raw, proof])).unwrap();
    check(wallets);
    wallets.check("importprunedfunds", json!([sent_raw, other])).unwrap();
    wallets.check("importprunedfunds", json!([sent_raw, other])).unwrap();
    // bitcoind detects that the first import is spent only when it reloads the wallet.
    wallets.theirs.call("unloadwallet", json!([]));
    wallets.theirs.call("loadwallet", json!(["w"]));
    check(wallets);
}

//! What the methods of wallets answer with: the keys, errors, change and lock times of Bitcoin Core 29.

use outrigger_tests::{Client, Host, HostOptions, groups};
use serde_json::{Value, json};

/// A master key of these tests.
const MASTER: &str =
    "tprv8ZgxMBicQKsPd7Uf69XL1XwhmjHopUGep8GuEiJDZmbQz6o58LninorQAfcKZWARbtRtfnLcJ5MQ2AtHcQJCCRUcMRvmDUjyEmNUWwx8UbK";

fn keys(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Imports active descriptors: the text without its checksum, and whether it is for change.
fn activate(client: &mut Client, descriptors: &[(&str, bool)]) {
    for (text, internal) in descriptors {
        let checksum = client.call("getdescriptorinfo", json!([text]))["checksum"].as_str().unwrap().to_owned();
        let desc = format!("{text}#{checksum}");
        let request =
            json!([{"desc": desc, "timestamp": "now", "active": true, "internal": internal, "range": [0, 9]}]);
        let imported = client.call("importdescriptors", json!([request]));
        assert_eq!(imported, json!([{"success": true}]), "{text}");
    }
}

/// Gives a wallet 50 BTC that can be spent, at an address of a type.
fn fund(client: &mut Client, kind: &str) {
    let address = client.call("getnewaddress", json!(["", kind]));
    client.call("generatetoaddress", json!([1, address]));
    client.call("generatetoaddress", json!([100, "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080"]));
}

#[test]
fn createwallet_loadwallet_restorewallet_and_unloadwallet_have_warnings_only_where_there_are_any() {
    let host = Host::start();
    let mut client = host.client();
    assert_eq!(client.call("createwallet", json!(["a"])), json!({"name": "a"}));
    let warnings = ["Empty string given as passphrase, wallet will not be encrypted."];
    let created = client.call("createwallet", json!({"wallet_name": "b", "passphrase": ""}));
    assert_eq!((keys(&created), &created["warnings"]), (vec!["name", "warnings"], &json!(warnings)));
    assert_eq!(client.call("unloadwallet", json!(["a"])), json!({}));
    assert_eq!(client.call("loadwallet", json!(["a"])), json!({"name": "a"}));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("backup");
    client.wallet("a").call("backupwallet", json!([file]));
    assert_eq!(client.call("restorewallet", json!(["c", file])), json!({"name": "c"}));
}

#[test]
fn createwallet_with_an_empty_name_is_reached_by_its_path() {
    let host = Host::start();
    let mut client = host.client();
    assert_eq!(client.call("createwallet", json!([""])), json!({"name": ""}));
    client.call("createwallet", json!(["other"]));
    assert_eq!(client.wallet("").call("getwalletinfo", json!([]))["walletname"], json!(""));
}

#[test]
fn getwalletinfo_has_the_keys_of_29_in_their_order() {
    let host = Host::start();
    let mut client = host.client();
    let mut expected = vec![
        "walletname",
        "walletversion",
        "format",
        "balance",
        "unconfirmed_balance",
        "immature_balance",
        "txcount",
        "keypoolsize",
        "keypoolsize_hd_internal",
        "paytxfee",
        "private_keys_enabled",
        "avoid_reuse",
        "scanning",
        "descriptors",
        "external_signer",
        "blank",
        "birthtime",
        "lastprocessedblock",
    ];
    let info = host.new_wallet("w").call("getwalletinfo", json!([]));
    assert_eq!(keys(&info), expected);
    assert_eq!((&info["keypoolsize"], &info["keypoolsize_hd_internal"]), (&json!(4000), &json!(4000)));
    client.call("createwallet", json!({"wallet_name": "l", "descriptors": false}));
    let info = client.wallet("l").call("getwalletinfo", json!([]));
    expected.insert(7, "keypoololdest");
    assert_eq!(keys(&info), expected);
    assert_eq!((&info["keypoolsize"], &info["keypoolsize_hd_internal"]), (&json!(1000), &json!(1000)));
    assert_eq!(info["keypoololdest"], info["birthtime"]);
    let told = client.wallet("l").call("getwalletbackupinfo", json!([]));
    assert_eq!(told, json!({"walletname": "l", "backup_needed": true, "last_backup": 0}));
}

#[test]
fn wallet_methods_without_a_path_are_refused_where_several_wallets_are_loaded() {
    let host = Host::start();
    let (mut client, _, _) = (host.client(), host.new_wallet("a"), host.new_wallet("b"));
    let message = "Multiple wallets are loaded. Please select which wallet to use by requesting the RPC through the /wallet/<walletname> URI path.";
    for method in ["getwalletinfo", "getbalances", "listunspent", "listtransactions", "listdescriptors"] {
        assert_eq!(client.refused(method, json!([])), (-19, message.into()), "{method}");
    }
}

#[test]
fn generate_and_other_removed_methods_are_refused_as_29_does() {
    let host = Host::start();
    let mut client = host.client();
    let message = "generate\n\nhas been replaced by the -generate cli option. Refer to -help for more information.\n";
    for (params, code) in [(json!([]), -32601), (json!({}), -32601), (json!([1]), -1), (json!([[]]), -1)] {
        assert_eq!(client.refused("generate", params.clone()), (code, message.into()), "{params}");
    }
    assert_eq!(client.post(r#"{"method":"generate","id":1}"#).status, 404);
    for method in ["getinfo", "addwitnessaddress", "estimatefee", "getaccount", "signrawtransaction"] {
        assert_eq!(client.refused(method, json!([1])), (-32601, "Method not found".into()), "{method}");
    }
}

#[test]
fn listunspent_and_importmulti_take_their_options_by_name() {
    let host = Host::start();
    let mut client = host.client();
    client.call("createwallet", json!({"wallet_name": "w", "descriptors": false}));
    fund(&mut client, "bech32");
    let count = |client: &mut Client, params| client.call("listunspent", params).as_array().unwrap().len();
    assert_eq!(count(&mut client, json!({"minimumAmount": 50, "minconf": 101})), 1);
    assert_eq!(count(&mut client, json!({"args": [1], "minimumAmount": "50.00000001"})), 0);
    for options in [json!({}), Value::Null] {
        let message = "Parameter query_options conflicts with parameter maximumCount";
        let refused = client.refused("listunspent", json!({"maximumCount": 1, "query_options": options}));
        assert_eq!(refused, (-8, message.into()));
    }
    let refused = client.refused("listunspent", json!({"query_options": {"nosuch": 1}}));
    assert_eq!(refused, (-3, "Unexpected key nosuch".into()));
    assert_eq!(client.refused("listunspent", json!({"nosuch": 1})), (-8, "Unknown named parameter nosuch".into()));
    let request = json!([{"scriptPubKey": {"address": "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080"},
        "timestamp": 0, "watchonly": true}]);
    let imported = client.call("importmulti", json!({"requests": request, "rescan": false}));
    assert_eq!(imported[0]["success"], json!(true));
    let message = "Parameter options conflicts with parameter rescan";
    let refused = client.refused("importmulti", json!({"requests": request, "rescan": false, "options": {}}));
    assert_eq!(refused, (-8, message.into()));
}

#[test]
fn getnewaddress_and_getrawchangeaddress_say_which_addresses_there_are_not() {
    let host = Host::start();
    let mut client = host.client();
    client.call("createwallet", json!({"wallet_name": "w", "blank": true}));
    let no_keys = (-4, "Error: This wallet has no available keys".to_owned());
    assert_eq!(client.refused("getnewaddress", json!(["*", "nosuch"])), no_keys);
    activate(&mut client, &[(&format!("wpkh({MASTER}/0/*)"), false)]);
    assert_eq!(client.refused("getnewaddress", json!(["", "nosuch"])), (-5, "Unknown address type 'nosuch'".into()));
    let missing = (-12, "Error: No bech32m addresses available.".to_owned());
    assert_eq!(client.refused("getnewaddress", json!(["", "bech32m"])), missing);
    assert_eq!(client.refused("getrawchangeaddress", json!(["nosuch"])), no_keys);
    client.call("getnewaddress", json!([]));
}

#[test]
fn sendtoaddress_without_a_change_address_is_refused_and_p2wsh_change_is_weighed_as_such() {
    let host = Host::start();
    let mut client = host.client();
    client.call("createwallet", json!({"wallet_name": "w", "blank": true}));
    activate(&mut client, &[(&format!("wpkh({MASTER}/0/*)"), false), (&format!("pkh({MASTER}/1/*)"), true)]);
    fund(&mut client, "bech32");
    let to = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";
    let message = "Transaction needs a change address, but we can't generate it. Error: No bech32 addresses available.";
    assert_eq!(client.refused("sendtoaddress", json!([to, 1])), (-6, message.into()));
    assert_eq!(client.refused("sendmany", json!(["", {to: 1}])), (-6, message.into()));
    assert_eq!(client.refused("sendtoaddress", json!([to, 51])), (-6, "Insufficient funds".into()));
    activate(&mut client, &[(&format!("wsh(pk({MASTER}/2/*))"), true)]);
    let txid = client.call("sendtoaddress", json!({"address": to, "amount": 1, "fee_rate": 1}));
    let entry = client.call("getmempoolentry", json!([txid]));
    let fee = entry["fees"]["base"].to_string().replace('.', "").parse::<u64>().unwrap();
    let size = entry["vsize"].as_u64().unwrap();
    // A signature in 256 is a byte shorter than it is counted.
    assert!((size..=size + 1).contains(&fee), "{fee} for {size}");
    let outputs = client.call("gettransaction", json!({"txid": txid, "verbose": true}))["decoded"]["vout"].clone();
    let types: Vec<&Value> = outputs.as_array().unwrap().iter().map(|output| &output["scriptPubKey"]["type"]).collect();
    assert!(types.contains(&&json!("witness_v0_scripthash")), "{types:?}");
}

#[test]
fn sendtoaddress_uses_up_one_change_address_and_none_where_it_fails() {
    let host = Host::start();
    let mut client = host.new_wallet("w");
    fund(&mut client, "bech32");
    let index = |client: &mut Client| {
        let address = client.call("getrawchangeaddress", json!([]));
        let path = client.call("getaddressinfo", json!([address]))["hdkeypath"].as_str().unwrap().to_owned();
        path.rsplit('/').next().unwrap().parse::<u32>().unwrap()
    };
    let to = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";
    let range = |client: &mut Client| {
        let listed = client.call("listdescriptors", json!([]));
        let of = |listed: &&Value| {
            listed["internal"] == json!(true) && listed["desc"].as_str().unwrap().starts_with("wpkh(")
        };
        listed["descriptors"].as_array().unwrap().iter().find(of).unwrap()["range"][1].as_u64().unwrap()
    };
    assert_eq!(index(&mut client), 0);
    let before = range(&mut client);
    assert_eq!(client.refused("sendtoaddress", json!([to, 51])).0, -6);
    assert_eq!(range(&mut client), before + 1, "what was derived ahead for it stays");
    assert_eq!(index(&mut client), 1);
    client.call("sendtoaddress", json!({"address": to, "amount": 50, "subtractfeefromamount": true}));
    assert_eq!(index(&mut client), 3);
}

#[test]
fn sendtoaddress_locktime_is_the_height_unless_the_tip_is_old() {
    let host = Host::start();
    let mut client = host.new_wallet("w");
    let address = client.call("getnewaddress", json!([]));
    client.call("generatetoaddress", json!([103, address]));
    let tip = client.call("getbestblockhash", json!([]));
    let tip = client.call("getblockheader", json!([tip]));
    let time = tip["time"].as_u64().unwrap();
    let locktime = |client: &mut Client, age: u64| {
        client.call("setmocktime", json!([time + age]));
        let txid = client.call("sendtoaddress", json!([address, 1]));
        client.call("gettransaction", json!({"txid": txid, "verbose": true}))["decoded"]["locktime"].as_u64().unwrap()
    };
    // One in ten is up to 99 blocks further back.
    assert!((4..=103).contains(&locktime(&mut client, 28_800)));
    assert_eq!(locktime(&mut client, 28_801), 0);
}

#[test]
fn sendtoaddress_needs_a_feerate_where_no_fallback_is_configured() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.toml");
    let text = std::fs::read_to_string(groups("regtest.toml")).unwrap();
    std::fs::write(&config, text.replace("options = { fallbackfee = 1000 }\n", "")).unwrap();
    let host = Host::start_with(HostOptions { config: Some(config), ..HostOptions::default() });
    let mut client = host.new_wallet("w");
    fund(&mut client, "bech32");
    let to = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";
    let message = "Fee estimation failed. Fallbackfee is disabled. Wait a few blocks or enable -fallbackfee.";
    assert_eq!(client.refused("sendtoaddress", json!([to, 1])), (-6, message.into()));
    assert_eq!(client.refused("sendmany", json!(["", {to: 1}])), (-6, message.into()));
    client.call("sendtoaddress", json!({"address": to, "amount": 1, "fee_rate": 2}));
}

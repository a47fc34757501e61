//! A third party's signing group in place of ours, with keys in another process.

use outrigger_tests::{Client, ELSEWHERE, Host, HostOptions, all_groups, built};
use serde_json::{Value, json};

use crate::isolation::has_sandbox;
use crate::key_daemon::KeyDaemon;

/// The keys 1 and 2 for test chains, compressed, and their public keys.
const WIFS: [&str; 2] =
    ["cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87JcbXMTcA", "cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87K7XCyj5v"];
const KEYS: [&str; 2] = [
    "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798",
    "02c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5",
];
/// A public key whose private key no test has.
const FOREIGN: &str = "02f9308a019258c31049344f85f89d5229b531c845836f99b08601f113bce036f9";

/// Kinds of outputs, with `A` and `B` for the two keys and `F` for the foreign one.
const KINDS: [&str; 9] = [
    "pkh(A)",
    "wpkh(A)",
    "sh(wpkh(B))",
    "wsh(multi(2,A,B))",
    "sh(multi(1,F,B))",
    "tr(A)",
    "tr(F,pk(B))",
    "wsh(multi(2,A,F))",
    "wsh(and_v(v:pk(A),older(5)))",
];

fn daemon() -> KeyDaemon {
    KeyDaemon::new("vault-daemon", &WIFS.join("\n"))
}

/// A host with the vault's plugin in place of our group. `reach` serves if all plugins are isolated.
fn host(vault: &KeyDaemon) -> Host {
    host_with(vault, "")
}

/// As [`host`]; `rest` is added to the plugin's section.
fn host_with(vault: &KeyDaemon, rest: &str) -> Host {
    let text = all_groups().replace("file = \"signing\"", "file = \"signing\"\nenabled = false");
    let socket = vault.socket();
    let grants = "grants = [\"chain/1\", \"mempool/1\", \"wallet-read/1\", \"log/1\"]";
    let rest =
        format!("{grants}\nreach = [\"connect:unix:{socket}\"]\n{rest}[plugins.options]\nsocket = \"{socket}\"\n");
    let options = HostOptions::with_plugin(&text, built().library("outrigger_vault_signing"), &rest);
    Host::start_with(HostOptions { log: Some(vault.path("log")), ..options })
}

fn descriptor(kind: &str, [a, b]: [&str; 2]) -> String {
    let text: Vec<String> = kind
        .split_inclusive([',', '(', ')'])
        .map(|part| match part.split_at(part.len() - 1) {
            ("A", end) => a.to_owned() + end,
            ("B", end) => b.to_owned() + end,
            ("F", end) => FOREIGN.to_owned() + end,
            _ => part.to_owned(),
        })
        .collect();
    text.concat()
}

/// A wallet with all kinds of outputs of these two keys.
fn wallet(host: &Host, name: &str, watch_only: bool, keys: [&str; 2]) -> Client {
    let mut client = host.client();
    let mut wallet = client.create_wallet(name, json!({"disable_private_keys": watch_only, "blank": true}));
    let request = |kind: &&str| json!({"desc": client.with_checksum(&descriptor(kind, keys)), "timestamp": "now"});
    let requests: Vec<Value> = KINDS.iter().map(request).collect();
    wallet.import(&json!(requests));
    wallet
}

/// A transaction that spends made-up outputs of all kinds, and the `prevtxs` of these.
fn spend(client: &mut Client, kinds: &[&str]) -> (Value, Value) {
    let (mut inputs, mut prevtxs) = (Vec::new(), Vec::new());
    for (vout, kind) in kinds.iter().enumerate() {
        let text = descriptor(kind, KEYS);
        let checked = client.call("getdescriptorinfo", json!([text]))["descriptor"].clone();
        let address = client.call("deriveaddresses", json!([checked]))[0].clone();
        let script = client.call("validateaddress", json!([address]))["scriptPubKey"].clone();
        inputs.push(json!({"txid": "ab".repeat(32), "vout": vout}));
        prevtxs.push(json!({"txid": "ab".repeat(32), "vout": vout, "scriptPubKey": script, "amount": "0.5"}));
    }
    let raw = client.call("createrawtransaction", json!([inputs, [{"data": "00"}]]));
    (raw, json!(prevtxs))
}

#[test]
fn vault_answers_signrawtransaction_rpcs_as_our_group_does() {
    let vault = daemon();
    let (theirs, ours) = (host(&vault), Host::start());
    let mut theirs = wallet(&theirs, "watching", true, KEYS);
    let mut ours = wallet(&ours, "hot", false, WIFS);
    let (raw, prevtxs) = spend(&mut ours, &KINDS);
    let mut requests = vec![
        ("signrawtransactionwithwallet", json!([raw])),
        ("signrawtransactionwithwallet", json!([raw, [{"txid": "ab".repeat(32)}]])),
        ("signrawtransactionwithwallet", json!([raw, prevtxs, "all"])),
        ("signrawtransactionwithwallet", json!(["00", prevtxs])),
        ("signrawtransactionwithkey", json!([raw, WIFS, prevtxs])),
        ("signrawtransactionwithkey", json!([raw, ["x"]])),
        ("signrawtransactionwithkey", json!([raw])),
    ];
    for sighash in ["DEFAULT", "ALL", "NONE", "SINGLE|ANYONECANPAY"] {
        requests.push(("signrawtransactionwithwallet", json!([raw, prevtxs, sighash])));
    }
    for (method, params) in requests {
        let post = |client: &mut Client| {
            let reply = client.post(&json!({"id": 1, "method": method, "params": params}).to_string());
            (reply.status, reply.body)
        };
        // The help text for a wrong number of arguments is the plugin's own, and is the same here.
        assert_eq!(post(&mut theirs), post(&mut ours), "{method} {params}");
    }
    // An input without a key gets an error, and all others are signed.
    let signed = theirs.call("signrawtransactionwithwallet", json!([raw, prevtxs]));
    let incomplete: Vec<&Value> = signed["errors"].as_array().unwrap().iter().map(|error| &error["vout"]).collect();
    assert_eq!(incomplete, [&json!(7), &json!(8)], "{signed}");
}

/// Spends coins of a watch-only wallet with the daemon's keys.
fn spend_coins(wallet: &mut Client) {
    let spendable = &KINDS[..7];
    for kind in spendable {
        let checked = wallet.call("getdescriptorinfo", json!([descriptor(kind, KEYS)]))["descriptor"].clone();
        let address = wallet.call("deriveaddresses", json!([checked]))[0].clone();
        wallet.call("generatetoaddress", json!([1, address]));
    }
    wallet.call("generatetoaddress", json!([100, ELSEWHERE]));
    let coins = wallet.call("listunspent", json!([]));
    let inputs: Vec<Value> =
        coins.as_array().unwrap().iter().map(|coin| json!({"txid": coin["txid"], "vout": coin["vout"]})).collect();
    assert_eq!(inputs.len(), spendable.len());
    let raw = wallet.call("createrawtransaction", json!([inputs, [{ELSEWHERE: 349.999}]]));
    let signed = wallet.call("signrawtransactionwithwallet", json!([raw]));
    assert_eq!(signed["complete"], json!(true), "{signed}");
    wallet.call("sendrawtransaction", json!([signed["hex"]]));
    wallet.call("generatetoaddress", json!([1, ELSEWHERE]));
    assert_eq!(wallet.call("listunspent", json!([])), json!([]));
}

#[test]
fn vault_signs_with_the_daemons_keys_reports_a_stopped_daemon_and_reconnects() {
    let mut vault = daemon();
    let host = host(&vault);
    let mut wallet = wallet(&host, "watching", true, KEYS);
    spend_coins(&mut wallet);
    let (raw, prevtxs) = spend(&mut wallet, &KINDS[..2]);
    let mut sign = || wallet.try_call("signrawtransactionwithwallet", json!([raw, prevtxs]));
    assert_eq!(sign().unwrap()["complete"], json!(true));
    vault.stop();
    let gone = sign().unwrap_err();
    assert_eq!((gone.code, gone.message.as_str()), (-4, "The signing daemon cannot be reached"));
    vault.start();
    assert_eq!(sign().unwrap()["complete"], json!(true));
    // Keys in the call need no daemon.
    vault.stop();
    let answer = wallet.call("signrawtransactionwithkey", json!([raw, WIFS, prevtxs]));
    assert_eq!(answer["complete"], json!(true));
    drop(host);
    let log = std::fs::read_to_string(vault.path("log")).unwrap();
    assert!(log.contains("the signing daemon at "), "{log}");
    assert!(!WIFS.iter().any(|wif| log.contains(wif)));
}

#[test]
fn vault_isolated_signs_only_with_its_socket_granted() {
    if !has_sandbox() {
        return;
    }
    let vault = daemon();
    let socket = vault.socket();
    let host = host_with(&vault, "isolated = true\n");
    let mut client = wallet(&host, "watching", true, KEYS);
    let (raw, prevtxs) = spend(&mut client, &KINDS[..7]);
    let signed = client.call("signrawtransactionwithwallet", json!([raw, prevtxs]));
    assert_eq!(signed["complete"], json!(true), "{signed}");
    let of_granted = client.plugin("vault-signing");
    assert_eq!((&of_granted["isolated"], &of_granted["denied"]["count"]), (&json!(true), &json!(0)), "{of_granted}");

    // The plugin restarts with another reach.
    let granted = format!("reach = [\"connect:unix:{socket}\"]\n");
    let other = format!("reach = [\"connect:unix:{socket}.other\"]\n");
    let mut refused_with = |from: &str, to: &str| {
        host.change(from, to);
        client.call("stopplugin", json!(["vault-signing"]));
        client.call("startplugin", json!(["vault-signing"]));
        let refused = client.refused("signrawtransactionwithwallet", json!([raw, prevtxs]));
        assert_eq!(refused, (-4, "The signing daemon cannot be reached".into()));
        client.plugin("vault-signing")["denied"]["last"].clone()
    };
    let connect = json!({"kind": "connect", "call": "connect", "argument": format!("unix:{socket}")});
    assert_eq!(refused_with(&granted, &other), connect);
    // Without any granted connection, the plugin may make no socket.
    assert_eq!(refused_with(&other, ""), json!({"kind": "socket", "call": "socket", "argument": "family 1"}));
}

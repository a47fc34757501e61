//! Nodes of other releases. A relay in front of the installed node reports their version, and removes the methods, members and
//! texts that the release lacks according to its release notes.

use std::collections::BTreeSet;
use std::sync::Barrier;

use outrigger_tests::{Bitcoind, Client, Host, Relay, bitcoind};
use serde_json::{Value, json};

use super::operators::checked_with;
use super::{ADDRESS, pay, start_before};

/// Versions, each with the methods from the host's table of required methods that the release lacks.
const RELEASES: [(u64, &[&str]); 6] = [
    (240_200, &["getchainstates", "getprioritisedtransactions"]),
    (250_200, &["getchainstates", "getprioritisedtransactions"]),
    (260_200, &[]),
    (270_200, &[]),
    (280_400, &[]),
    (300_200, &[]),
];

/// Result members that the host may read, with their method and their first version.
const MEMBERS: [(&str, &str, u64); 6] = [
    ("getblockchaininfo", "bits", 290_000),
    ("getblockchaininfo", "target", 290_000),
    ("getblockchaininfo", "signet_challenge", 290_000),
    ("getmininginfo", "bits", 290_000),
    ("getmininginfo", "target", 290_000),
    ("getmininginfo", "next", 290_000),
];

/// Converts a result to an older version's. Before 28, warnings were one text and known payments had another error.
fn as_of(version: u64, method: &str, answer: &mut Value) {
    let Some(result) = answer["result"].as_object_mut() else {
        if version < 280_000 && answer["error"]["code"] == -27 {
            answer["error"]["message"] = json!("Transaction already in block chain");
        }
        return;
    };
    for (_, member, _) in MEMBERS.iter().filter(|(of, _, since)| *of == method && version < *since) {
        result.shift_remove(*member);
    }
    if let Some(warnings) = result.get_mut("warnings").filter(|_| version < 280_000) {
        *warnings = json!("");
    }
}

/// A relay to a node that emulates this version, without these methods.
fn relay_to(node: &Bitcoind, version: u64, lacking: &'static [&'static str]) -> Relay {
    let relay = Relay::to(node.address);
    relay.change_answers(move |method, answer| {
        as_of(version, method, answer);
        if lacking.contains(&method) {
            answer["result"] = Value::Null;
            answer["error"] = json!({"code": -32601, "message": "Method not found"});
        } else if method == "getnetworkinfo" {
            answer["result"]["version"] = json!(version);
            answer["result"]["subversion"] = json!(format!("/Satoshi:{}.{}.0/", version / 10_000, version / 100 % 100));
        } else if method == "help" && answer["result"].is_string() {
            let help = answer["result"].as_str().unwrap().lines();
            let told: Vec<&str> = help.filter(|line| !lacking.iter().any(|method| line.starts_with(method))).collect();
            answer["result"] = json!(told.join("\n"));
        }
    });
    relay
}

/// A wallet of the host that finds an earlier payment by a rescan, pays, and signs a PSBT.
fn use_wallet(host: &Host, node: &mut Client) {
    let mut wallet = host.new_wallet("w");
    let mine = wallet.call("getnewaddress", json!([]));
    node.wallet("theirs").call("sendtoaddress", json!([mine, 3]));
    node.call("generatetoaddress", json!([1, ADDRESS]));
    let descriptors = wallet.call("listdescriptors", json!([true]))["descriptors"].clone();
    let mut found = host.new_wallet("found");
    let all: Vec<Value> =
        descriptors.as_array().unwrap().iter().map(|one| json!({"desc": one["desc"], "timestamp": 0})).collect();
    found.import(&json!(all));
    for wallet in [&mut wallet, &mut found] {
        assert_eq!(wallet.call("getbalance", json!([])).to_string(), "3.00000000");
    }
    let paid = wallet.call("sendtoaddress", json!([ADDRESS, 1]));
    assert!(node.call("getrawmempool", json!([])).as_array().unwrap().contains(&paid));
    let funded = wallet.call("walletcreatefundedpsbt", json!([[], [{ADDRESS: 0.5}]]));
    let signed = wallet.call("walletprocesspsbt", json!([funded["psbt"]]));
    assert_eq!(signed["complete"], true, "{signed}");
    let sent = wallet.call("sendrawtransaction", json!([signed["hex"]]));
    node.call("generatetoaddress", json!([1, ADDRESS]));
    // The host passes on the node's messages.
    let told = wallet.refused("sendrawtransaction", json!([signed["hex"]]));
    assert_eq!(told, node.refused("sendrawtransaction", json!([signed["hex"]])));
    assert_eq!(wallet.call("gettransaction", json!([sent]))["confirmations"], 1);
}

#[test]
fn host_works_with_nodes_since_24_and_refuses_older_ones() {
    let Some(path) = bitcoind::installed() else { return };
    let (mut node, _) =
        Bitcoind::start_with(path, &["-fallbackfee=0.0001", "-addresstype=bech32", "-changetype=bech32"]);
    let mut client = node.client();
    pay(&mut client, &[1]);
    let relay = relay_to(&node, 230_200, &["gettxspendingprevout"]);
    let (code, told) = checked_with(&node, relay.address, &[]);
    let refusal = "backend: the node is Bitcoin Core 23; the host needs 24 or later, whose gettxspendingprevout ";
    assert!(code == Some(2) && told.contains(refusal), "{told}");
    for (version, lacking) in RELEASES {
        let relay = relay_to(&node, version, lacking);
        let (code, told) = checked_with(&node, relay.address, &[]);
        let missing: BTreeSet<&str> = told.lines().filter(|line| line.starts_with("release: the node lacks")).collect();
        // Before 29, the node reports a signet's challenge elsewhere.
        assert_eq!(
            (code, missing.len()),
            (Some(0), lacking.len() + usize::from(version < 290_000)),
            "{version}: {told}"
        );
        let mut host = start_before(node, &relay, &[]);
        // Through the relay, the node answers as this version.
        use_wallet(&host, &mut client.at(relay.address));
        node = host.node.take().unwrap();
    }
}

/// A node of release 32 serves 16 connections and leaves others waiting. The host opens fewer, so no client waits.
#[test]
fn thirty_two_clients_need_no_more_connections_than_a_node_of_32_serves() {
    const CLIENTS: usize = 32;
    let Some(path) = bitcoind::installed() else { return };
    let (node, _) = Bitcoind::start_with(&path, &["-fallbackfee=0.0001"]);
    pay(&mut node.client(), &[1]);
    let tip = node.client().call("getbestblockhash", json!([]));
    let relay = relay_to(&node, 320_100, &[]);
    // The check fails if the node would keep the host's connections waiting.
    let (code, told) = checked_with(&node, relay.address, &[]);
    assert_eq!(code, Some(0), "{told}");
    let (code, told) = checked_with(&node, relay.address, &["backend.connections=11"]);
    assert_eq!(code, Some(2), "{told}");
    let reason = "the host would keep up to 13 connections to the node, which serves 16 in all since Bitcoin Core 32 (rpcmaxconnections); \
                  set backend.connections to at most 10";
    assert!(told.contains(reason), "{told}");
    let host = start_before(node, &relay, &[]);
    host.new_wallet("w");
    let begin = Barrier::new(CLIENTS);
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let (host, begin, tip) = (&host, &begin, &tip);
            scope.spawn(move || {
                let mut client = if number % 2 == 0 { host.client() } else { host.client().wallet("w") };
                begin.wait();
                for _ in 0..10 {
                    client.call("waitfornewblock", json!([10]));
                    client.call("getblock", json!([tip, 2]));
                    client.call("getmempoolinfo", json!([]));
                    client.call("scantxoutset", json!(["status"]));
                    if number % 2 == 1 {
                        client.call("getbalances", json!([]));
                    }
                    if number == 1 {
                        client.call("rescanblockchain", json!([0]));
                    }
                }
            });
        }
    });
    let most = relay.most_open();
    assert!((2..=12).contains(&most), "{most} connections");
}

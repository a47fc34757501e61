//! Passed calls: the client gets the node's answer.

use std::collections::BTreeSet;
use std::io::{Read, Write};

use outrigger_tests::{Client, Host};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{ADDRESS, start, start_behind_relay};

fn reply(client: &mut Client, body: &str) -> (u16, Option<String>, String) {
    let reply = client.post(body);
    let kind = reply.header("content-type").map(str::to_owned);
    (reply.status, kind, reply.body)
}

/// Methods of release 29 without effects that are not compared, with the reason.
const NOT_COMPARED: [(&str, &str); 17] = [
    ("analyzepsbt", "needs a PSBT with inputs of the chain: those that it refuses are compared"),
    ("enumeratesigners", "of the wallets, and not ours"),
    ("fundrawtransaction", "of the wallets"),
    ("getaddrmaninfo", "counts what the node hears of"),
    ("getblocktemplate", "tells the time; waiting ones are answered by the host"),
    ("getmempoolcluster", "needs a transaction of the mempool"),
    ("getmemoryinfo", "differs from call to call"),
    ("getnettotals", "tells the time"),
    ("getopenrpcinfo", "the host's own beside the node's"),
    ("getprivatebroadcastinfo", "tells the time"),
    ("getrpcinfo", "the host's own"),
    ("help", "the host's own beside the node's"),
    ("rpc.discover", "the host's own beside the node's"),
    ("signrawtransactionwithkey", "a plugin's"),
    ("uptime", "the host's own"),
    ("verifychain", "its progress is logged for seconds"),
    ("waitfornewblock", "waits"),
];

/// Methods with effects, on the node, its files or its peers.
const WITH_EFFECTS: &[&str] = &[
    "abortprivatebroadcast",
    "addnode",
    "clearbanned",
    "disconnectnode",
    "dumptxoutset",
    "exportasmap",
    "getblockfrompeer",
    "importmempool",
    "loadtxoutset",
    "logging",
    "ping",
    "preciousblock",
    "prioritisetransaction",
    "pruneblockchain",
    "savemempool",
    "setban",
    "setnetworkactive",
    "stop",
    "submitpackage",
];

/// Methods of Bitcoin Knots that Bitcoin Core 29 does not have.
const OF_KNOTS: &[&str] = &[
    "getgeneralinfo",
    "getmempoolstats",
    "getrpcwhitelist",
    "listmempooltransactions",
    "listprunelocks",
    "maxmempool",
    "savefeeestimates",
    "scriptthreadsinfo",
    "setprunelock",
    "setscriptthreadsenabled",
];

/// Calls without effects, valid and invalid, for a node with some blocks and a mempool transaction.
fn questions(node: &mut Client) -> Vec<(&'static str, Value)> {
    let hash = node.call("getblockhash", json!([3]));
    let coinbase = node.call("getblock", json!([hash, 1]))["tx"][0].clone();
    let none = "00".repeat(32);
    let inputs = json!([{"txid": coinbase, "vout": 0}]);
    let outputs = json!([{ADDRESS: 1}]);
    let raw = node.call("createrawtransaction", json!([inputs, outputs]));
    let psbt = node.call("createpsbt", json!([inputs, outputs]));
    let proof = node.call("gettxoutproof", json!([[coinbase]]));
    let descriptor = "wpkh(02c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5)#8zl0zxma";
    let key = "cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87K7XCyj5v";
    vec![
        ("analyzepsbt", json!(["x"])),
        ("combinepsbt", json!([[psbt, psbt]])),
        ("combinerawtransaction", json!([[raw, raw]])),
        ("converttopsbt", json!([raw])),
        ("createmultisig", json!([1, ["02c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5"]])),
        ("createpsbt", json!([inputs, outputs])),
        ("createrawtransaction", json!({"inputs": inputs, "outputs": outputs})),
        ("decodepsbt", json!([psbt])),
        ("decoderawtransaction", json!([raw])),
        ("decodescript", json!(["76a914000000000000000000000000000000000000000088ac"])),
        ("deriveaddresses", json!([descriptor])),
        ("descriptorprocesspsbt", json!([psbt, [descriptor]])),
        ("echo", json!(["a"])),
        ("estimatesmartfee", json!([6])),
        ("finalizepsbt", json!([psbt])),
        ("getaddednodeinfo", json!([])),
        ("getbestblockhash", json!([])),
        ("getblock", json!([hash])),
        ("getblock", json!([hash, 0])),
        ("getblock", json!([hash, 3])),
        ("getblock", json!([none])),
        ("getblock", json!(["x"])),
        ("getblock", json!({"blockhash": hash, "verbosity": 2})),
        ("getblock", json!({"wrong": 1})),
        ("getblockchaininfo", json!([])),
        ("getblockcount", json!([])),
        ("getblockcount", json!([1])),
        ("getblockfilter", json!([hash])),
        ("getblockhash", json!([1000])),
        ("getblockheader", json!([hash])),
        ("getblockheader", json!([hash, false])),
        ("getblockstats", json!([3])),
        ("getchainstates", json!([])),
        ("getchaintips", json!([])),
        ("getchaintxstats", json!([])),
        ("getconnectioncount", json!([])),
        ("getdeploymentinfo", json!([])),
        ("getdescriptoractivity", json!([[hash], [format!("addr({ADDRESS})")]])),
        ("getdescriptorinfo", json!([format!("addr({ADDRESS})")])),
        ("getdifficulty", json!([])),
        ("getindexinfo", json!([])),
        ("getmempoolancestors", json!([coinbase])),
        ("getmempooldescendants", json!([coinbase])),
        ("getmempoolentry", json!([coinbase])),
        ("getmempoolinfo", json!([])),
        ("getmininginfo", json!([])),
        ("getnetworkhashps", json!([])),
        ("getnetworkinfo", json!([])),
        ("getnodeaddresses", json!([])),
        ("getpeerinfo", json!([])),
        ("getprioritisedtransactions", json!([])),
        ("getrawmempool", json!([true])),
        ("getrawtransaction", json!([coinbase, 2])),
        ("gettxout", json!([coinbase, 0])),
        ("gettxoutproof", json!([[coinbase]])),
        ("gettxoutsetinfo", json!(["muhash"])),
        ("gettxspendingprevout", json!([inputs])),
        ("getzmqnotifications", json!([])),
        ("joinpsbts", json!([[psbt, psbt]])),
        ("listbanned", json!([])),
        ("scanblocks", json!(["start", [format!("addr({ADDRESS})")]])),
        ("scanblocks", json!(["status"])),
        ("scantxoutset", json!(["start", [format!("addr({ADDRESS})")]])),
        ("sendrawtransaction", json!(["00"])),
        ("signmessagewithprivkey", json!([key, "a"])),
        ("submitblock", json!(["00"])),
        ("submitheader", json!(["00"])),
        ("testmempoolaccept", json!([["00"]])),
        ("testmempoolaccept", json!([[raw]])),
        ("utxoupdatepsbt", json!([psbt])),
        ("validateaddress", json!([ADDRESS])),
        ("verifymessage", json!(["a", "b", "c"])),
        ("verifytxoutproof", json!([proof])),
        ("waitforblock", json!([hash, 1])),
        ("waitforblockheight", json!([1])),
    ]
}

#[test]
fn passed_calls_answer_as_the_node_itself() {
    let Some(host) = start(&["-txindex=1", "-blockfilterindex=1"]) else { return };
    let (mut client, mut node) = (host.client(), host.node_client());
    node.call("generatetoaddress", json!([5, ADDRESS]));
    let questions = questions(&mut node);
    // Each method of the node is compared or has a reason not to be.
    let help = node.call("help", json!([]));
    let (public, _) = help.as_str().unwrap().split_once("== Wallet ==").unwrap();
    let zmq = help.as_str().unwrap().lines().filter(|line| line.starts_with("getzmq"));
    let listed = public.lines().chain(zmq).filter(|line| !line.is_empty() && !line.starts_with("=="));
    for line in listed {
        let name = line.split(' ').next().unwrap();
        let known = questions.iter().any(|(method, _)| *method == name)
            || NOT_COMPARED.iter().any(|(method, _)| *method == name)
            || [WITH_EFFECTS, OF_KNOTS].concat().contains(&name);
        assert!(known, "{name} is not compared");
    }
    check_answers(&mut client, &mut node, &questions);
    // The host answers requests of all JSON-RPC versions as the node.
    let of = |version: &str| format!(r#"{{"jsonrpc":{version},"method":"getblockcount","id":1}}"#);
    let versions = [r#""1.0""#, r#""2.0""#, "null", r#""1.1""#, r#""3.0""#, r#""""#, "1", "2.0", "true", "[]", "{}"];
    let mut bodies: Vec<String> = versions.iter().map(|version| of(version)).collect();
    bodies.push(format!("[{}]", versions.map(of).join(",")));
    // The node checks the version after the id and before the method.
    bodies.push(r#"{"jsonrpc":"1.1","method":5,"id":"a"}"#.to_owned());
    bodies.push(r#"{"jsonrpc":5}"#.to_owned());
    for body in bodies {
        let (ours, theirs) = (client.post(&body), node.post(&body));
        assert_eq!((ours.status, ours.body), (theirs.status, theirs.body), "{body}");
    }
    check_many_clients(&host, &mut node);
    check_long_results(&mut client, &mut node);
}

fn check_answers(client: &mut Client, node: &mut Client, questions: &[(&str, Value)]) {
    let requests = |(method, params): &(&str, Value)| {
        let one = json!({"id": "a", "method": method, "params": params});
        let two = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let notified = json!({"jsonrpc": "2.0", "method": method, "params": params});
        [one.to_string(), two.to_string(), notified.to_string(), json!([one, two, notified, one]).to_string()]
    };
    for request in questions.iter().flat_map(requests) {
        assert_eq!(reply(client, &request), reply(node, &request), "{request}");
    }
    // All calls in one batch, which the host splits for the node.
    let all: Vec<Value> =
        questions.iter().map(|(method, params)| json!({"id": 1, "method": method, "params": params})).collect();
    let all: Vec<&Value> = all.iter().cycle().take(600).collect();
    let batch = json!(all).to_string();
    let (ours, theirs) = (reply(client, &batch), reply(node, &batch));
    assert_eq!((ours.0, &ours.1), (theirs.0, &theirs.1));
    let elements = |text: &str| serde_json::from_str::<Vec<Box<RawValue>>>(text).unwrap();
    let (ours, theirs) = (elements(&ours.2), elements(&theirs.2));
    assert_eq!((ours.len(), theirs.len()), (all.len(), all.len()));
    for (index, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
        assert_eq!(ours.get(), theirs.get(), "element {index}: {}", all[index]);
    }
}

/// Each of many clients gets the answers to its calls.
fn check_many_clients(host: &Host, node: &mut Client) {
    const HEIGHTS: usize = 10;
    const CLIENTS: usize = 16;
    const CALLS: usize = 200;
    let request = |height| json!({"id": "a", "method": "getblockhash", "params": [height]}).to_string();
    let asked: Vec<_> = (0..HEIGHTS).map(|height| (request(height), reply(node, &request(height)))).collect();
    assert!(asked.iter().any(|(_, answer)| answer.0 == 200) && asked.iter().any(|(_, answer)| answer.0 == 500));
    std::thread::scope(|scope| {
        for first in 0..CLIENTS {
            let asked = &asked;
            scope.spawn(move || {
                let mut client = host.client();
                for (request, answer) in asked.iter().cycle().skip(first).take(CALLS) {
                    assert_eq!(reply(&mut client, request), *answer, "{request}");
                }
            });
        }
    });
}

#[test]
fn help_lists_the_nodes_methods_and_its_wallet_methods_are_unreachable() {
    let Some(host) = start(&[]) else { return };
    let (mut client, mut node) = (host.client(), host.node_client());
    check_help(&mut client, &mut node);
    // help also lists argument conversions of the node's methods.
    let rows = |client: &mut Client, name: &str| {
        let all = client.call("help", json!(["dump_all_command_conversions"]));
        let of_method = |row: &&Value| row[0] == name;
        all.as_array().unwrap().iter().filter(of_method).map(Value::to_string).collect::<BTreeSet<_>>()
    };
    for method in ["getblock", "scantxoutset", "addnode", "gettransaction"] {
        let ours = rows(&mut client, method);
        assert!(!ours.is_empty() && ours == rows(&mut node, method), "{method}: {ours:?}");
    }
    assert!(rows(&mut client, "migratewallet").is_empty() && !rows(&mut client, "importmulti").is_empty());
    // rpc.discover describes the methods of both.
    for method in ["rpc.discover", "getopenrpcinfo"] {
        let document = client.call(method, json!([]));
        let methods = document["methods"].as_array().unwrap();
        let names: Vec<&str> = methods.iter().map(|method| method["name"].as_str().unwrap()).collect();
        assert!(names.contains(&"getchaintips") && names.contains(&"importmulti"), "{names:?}");
        let params =
            |name: &str| methods.iter().find(|method| method["name"] == name).map(|method| method["params"].clone());
        // Wallet methods come from the host.
        assert!(names.is_sorted() && !names.contains(&"migratewallet"), "{names:?}");
        let getblock = params("getblock").unwrap();
        assert_eq!((&getblock[0]["name"], &getblock[1]["name"]), (&json!("blockhash"), &json!("verbosity")));
        assert_eq!(getblock[0]["schema"]["type"], json!("string"));
    }
    check_wallet_methods(&mut client, &mut node);
}

/// help lists the methods of the node and of the host.
fn check_help(client: &mut Client, node: &mut Client) {
    let ours = client.call("help", json!([]));
    let ours = ours.as_str().unwrap();
    for line in ["getblock \"blockhash\" ( verbosity )", "listplugins", "== Mining ==", "importmulti"] {
        assert!(ours.contains(line), "{line}: {ours}");
    }
    // A wallet method of the node that the host lacks.
    assert!(!ours.contains("\nwalletdisplayaddress"), "{ours}");
    assert_eq!(client.call("help", json!(["getblock"])), node.call("help", json!(["getblock"])));
    let unknown = json!("help: unknown command: walletdisplayaddress");
    assert_eq!(client.call("help", json!(["walletdisplayaddress"])), unknown);
    assert_ne!(client.call("help", json!(["stop"])), node.call("help", json!(["stop"])), "the host's own");
}

/// Wallet methods never reach the wallets of the node.
fn check_wallet_methods(client: &mut Client, node: &mut Client) {
    node.call("createwallet", json!(["theirs"]));
    let listed = node.call("help", json!([]));
    let (_, wallet) = listed.as_str().unwrap().split_once("== Wallet ==").unwrap();
    let names = wallet.lines().filter_map(|line| line.split_whitespace().next());
    let names: Vec<&str> = names.filter(|name| *name != "==").collect();
    assert!(names.len() > 40, "{names:?}");
    let before = node.call("listwallets", json!([]));
    let mut through = client.wallet("theirs");
    let ours = client.call("help", json!([]));
    for name in names {
        let answered = through.try_call(name, json!([]));
        let is_ours = ours.as_str().unwrap().lines().any(|line| line.split_whitespace().next() == Some(name));
        // The host answers its own methods for its wallets, none of which has this name, and refuses methods that it lacks.
        match answered {
            Ok(_) => assert!(is_ours, "{name}"),
            Err(error) => assert_eq!(error.code == -32601, !is_ours, "{name}: {error:?}"),
        }
    }
    assert_eq!(client.refused("walletdisplayaddress", json!(["00"])).0, -32601);
    assert_eq!(node.call("listwallets", json!([])), before);
}

/// The host passes on results of any length completely.
fn check_long_results(client: &mut Client, node: &mut Client) {
    let block = node.call("generatetoaddress", json!([1, ADDRESS]))[0].clone();
    let batch: Vec<Value> = (0..300).map(|id| json!({"id": id, "method": "getblock", "params": [block, 3]})).collect();
    let batch = json!(batch).to_string();
    assert_eq!(reply(client, &batch), reply(node, &batch));
    let many = json!({"id": 1, "method": "deriveaddresses", "params": [
        "wpkh(tpubD6NzVbkrYhZ4WaWSyoBvQwbpLkojyoTZPRsgXELWz3Popb3qkjcJyJUGLnL4qHHoQvao8ESaAstxYSnhyswJ76uZPStJRJCTKvosUCJZL5B/1/*)#gaxlxt8m",
        [0, 48_000]
    ]});
    let asked = many.to_string();
    let (direct, passed) = (reply(node, &asked), reply(client, &asked));
    assert_eq!(direct.0, 200, "{}", &direct.2[..200.min(direct.2.len())]);
    assert!(direct.2.len() > 2 << 20, "a reply that is streamed");
    assert!(direct == passed);
    // A client that disconnects during a long result disturbs no other.
    let mut stream = client.post_and_stay(&asked);
    let mut some = [0; 1000];
    stream.read_exact(&mut some).unwrap();
    stream.flush().unwrap();
    drop(stream);
    assert_eq!(client.call("getblockcount", json!([])), json!(6));
}

#[test]
fn replies_with_other_white_space_are_read_and_passed_on() {
    let Some((host, relay)) = start_behind_relay(&[]) else { return };
    host.client().call("generatetoaddress", json!([1, ADDRESS]));
    // A proxy between host and node may write white space differently.
    relay.change("\"method\"", |body| Some([b" ", body.trim_ascii_end()].concat()));
    let host = host.restart();
    let (mut client, mut node) = (host.client(), host.node_client());
    client.call("generatetoaddress", json!([1, ADDRESS]));
    let mut wallet = host.new_wallet("w");
    assert_eq!(wallet.call("getwalletinfo", json!([]))["lastprocessedblock"]["height"], 2);
    // A short result, a long one, two other answers, and a batch.
    let text = "a".repeat(2 << 20);
    for (method, params) in [
        ("getblockcount", json!([])),
        ("decodescript", json!([text])),
        ("getblockhash", json!([7])),
        ("gettxout", json!(["77".repeat(32), 0])),
    ] {
        assert_eq!(client.try_call(method, params.clone()), node.try_call(method, params), "{method}");
    }
    let batch = json!([{"id": 1, "method": "getblockcount"}, {"id": 2, "method": "getbestblockhash"}]).to_string();
    assert_eq!(reply(&mut client, &batch), reply(&mut node, &batch));
}

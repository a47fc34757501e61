//! Users of the host, and what they reach of the node.

use outrigger_tests::{Bitcoind, Client, Host, HostOptions, Relay, bitcoind};
use serde_json::{Value, json};

use super::start_set;
use crate::users::ALICE;

pub fn with_user(settings: &str, more: &[&str]) -> Option<(Host, Client)> {
    let user = format!("rpc.users=[{{ rpcauth = '{ALICE}', {settings} }}]");
    let host = start_set(&[], &[&[&*user], more].concat())?;
    let alice = Client::new(host.address, "alice:pass:word");
    Some((host, alice))
}

pub fn status(client: &mut Client, method: &str) -> u16 {
    client.post(&json!({"id": 1, "method": method, "params": []}).to_string()).status
}

#[test]
fn users_method_list_holds_for_passed_methods_and_batches() {
    let Some((_host, mut alice)) = with_user("methods = ['getblockcount', 'scantxoutset']", &[]) else { return };
    assert_eq!(status(&mut alice, "getblockcount"), 200);
    assert_eq!(status(&mut alice, "getbestblockhash"), 403);
    let batch = json!([{"id": 1, "method": "getblockcount"}, {"id": 2, "method": "getbestblockhash"}]);
    assert_eq!(alice.post(&batch.to_string()).status, 403);
}

#[test]
fn users_limits_take_the_calls_of_a_batch_one_by_one() {
    let batch = |calls| Value::from(vec![json!({"id": 1, "method": "getblockhash", "params": [0]}); calls]).to_string();
    let answered = |settings, calls| {
        let (_host, mut alice) = with_user(settings, &[])?;
        Some(alice.post(&batch(calls)).body.matches(r#""error":null"#).count())
    };
    let Some(one_at_a_time) = answered("max_concurrent_calls = 1", 300) else { return };
    assert_eq!(one_at_a_time, 300);
    // As many as the user may make, and not none.
    assert!((20..200).contains(&answered("max_calls_per_second = 20", 200).unwrap()));
    // The node's wallets are not counted, so they cannot be limited.
    let user = format!("rpc.users=[{{ rpcauth = '{ALICE}', max_wallets = 1 }}]");
    let backend = ["backend.url=http://127.0.0.1:1", "backend.cookie=/nonexistent", "backend.wallets=node"];
    let error = Host::refused(&HostOptions::with(&[&backend[..], &[user.as_str()]].concat()));
    assert!(error.contains("max_wallets") && error.contains("the node's wallets are not counted"), "{error}");
}

#[test]
fn user_without_a_list_touches_no_files_of_the_node() {
    let Some((host, mut alice)) = with_user("", &[]) else { return };
    alice.call("getblockcount", json!([]));
    let batch = json!([{"id": 1, "method": "savemempool"}]).to_string();
    for method in ["savemempool", "dumptxoutset", "importmempool", "loadtxoutset"] {
        assert_eq!(status(&mut alice, method), 403, "{method}");
    }
    assert!(alice.post(&batch).body.contains("The node does not allow this method"));
    // The operator may.
    assert!(host.client().call("savemempool", json!([]))["filename"].is_string());
}

#[test]
fn users_method_list_names_sets_of_methods() {
    let Some((_host, mut alice)) = with_user("methods = ['@read', '@send', 'savemempool']", &[]) else { return };
    for (method, expected) in [
        ("getblockcount", 200),
        ("getmininginfo", 200),
        ("uptime", 200),
        ("savemempool", 200),
        // Allowed, and refused by the node for want of arguments.
        ("sendrawtransaction", 500),
        ("generatetoaddress", 403),
        ("prioritisetransaction", 403),
        ("getbalances", 403),
        ("setban", 403),
        ("dumptxoutset", 403),
        ("stop", 403),
    ] {
        assert_eq!(status(&mut alice, method), expected, "{method}");
    }
}

#[test]
fn users_of_bitcoin_conf_are_those_of_the_host_too() {
    let Some(path) = bitcoind::installed() else { return };
    let conf = tempfile::NamedTempFile::new().unwrap();
    let bob = ALICE.replace("alice", "bob");
    let text = format!("rpcauth={ALICE}\nrpcauth={bob}\nrpcwhitelist=alice:getblockcount,uptime,getbalances\n");
    // Else the node would allow its cookie nothing.
    let text = text + "rpcwhitelistdefault=0\n";
    std::fs::write(conf.path(), text).unwrap();
    let arguments = format!("-conf={}", conf.path().display());
    let (node, _) = Bitcoind::start_with(path, &[&arguments]);
    let set = vec![format!("rpc.bitcoin_conf='{}'", conf.path().display())];
    let folder = tempfile::tempdir().unwrap();
    let options = HostOptions { set, ..HostOptions::in_front_of(&[]) };
    let host = Host::start_before(folder, options, Some(node));
    let address = host.node.as_ref().unwrap().address;
    for (user, method, expected) in [
        ("alice", "getblockcount", 200),
        ("alice", "uptime", 200),
        ("alice", "getbestblockhash", 403),
        ("bob", "getblockcount", 200),
    ] {
        let credentials = format!("{user}:pass:word");
        // As at the node itself.
        for address in [host.address, address] {
            assert_eq!(status(&mut Client::new(address, &credentials), method), expected, "{user} {method}");
        }
    }
    assert_eq!(status(&mut Client::new(host.address, "alice:pass"), "getblockcount"), 401);
}

#[test]
fn user_confined_to_a_wallet_changes_neither_the_node_nor_its_files() {
    let Some((host, mut alice)) = with_user("wallet = 'hers'", &[]) else { return };
    host.new_wallet("hers");
    host.new_wallet("other");
    alice.call("getblockcount", json!([]));
    assert_eq!(alice.call("getwalletinfo", json!([]))["walletname"], "hers");
    for method in ["dumptxoutset", "savemempool", "setban", "invalidateblock", "pruneblockchain"] {
        assert_eq!(status(&mut alice, method), 403, "{method}");
    }
    // The operator may.
    assert_ne!(status(&mut host.client(), "setban"), 403);
}

#[test]
fn user_confined_to_a_wallet_of_the_node_reaches_no_other() {
    let Some((host, mut alice)) = with_user("wallet = 'hers'", &["backend.wallets=node", "plugins=[]"]) else { return };
    let mut client = host.client();
    client.call("createwallet", json!(["hers"]));
    client.call("createwallet", json!(["other"]));
    assert_eq!(alice.call("getwalletinfo", json!([]))["walletname"], "hers");
    assert_eq!(alice.wallet("hers").call("getwalletinfo", json!([]))["walletname"], "hers");
    let refused = alice.wallet("other").refused("getwalletinfo", json!([]));
    assert_eq!(refused, (-18, "Requested wallet does not exist or is not loaded".to_owned()));
    for method in ["listwallets", "loadwallet", "unloadwallet", "createwallet", "backupwallet"] {
        assert_eq!(status(&mut alice, method), 403, "{method}");
    }
}

#[test]
fn methods_that_the_host_does_not_know_reach_no_user_who_is_not_allowed_them() {
    /// What a later release has.
    const NEW: &str = "exportsecrets";
    let node = match bitcoind::installed() {
        Some(path) => Bitcoind::start_with(path, &[]).0,
        None => return,
    };
    let relay = Relay::to(node.address);
    relay.change("\"method\":\"help\"", |body| {
        let text = String::from_utf8(body.to_vec()).ok()?;
        Some(text.replace("== Util ==\\n", &format!("== Util ==\\n{NEW} \\\"file\\\"\\n")).into_bytes())
    });
    let user = |name: &str, settings: &str| format!("{{ rpcauth = '{}'{settings} }}", ALICE.replace("alice", name));
    let users = [
        user("alice", ""),
        user("bob", ", wallet = 'w'"),
        user("carol", ", folders = ['/srv']"),
        user("dora", ", unknown_methods = 'allow'"),
        user("eve", ", wallet = 'w', unknown_methods = 'allow'"),
    ];
    let host = Host::start_before(
        tempfile::tempdir().unwrap(),
        HostOptions::with(&[
            &format!("rpc.users=[{}]", users.join(", ")),
            &format!("backend.url=http://{}", relay.address),
        ]),
        Some(node),
    );
    let client = |name: &str| Client::new(host.address, &format!("{name}:pass:word"));
    let call = json!({"id": 1, "method": NEW, "params": []}).to_string();
    let batch = json!([{"id": 1, "method": NEW}, {"id": 2, "method": "getblockcount"}]).to_string();
    let shows = |client: &mut Client| client.call("help", json!([])).as_str().unwrap().contains(NEW);
    for name in ["alice", "bob", "carol"] {
        let reply = client(name).post(&call);
        assert!(reply.status == 403 && reply.body.contains("unknown_methods = \"allow\""), "{name}: {}", reply.body);
        let answers: Value = serde_json::from_str(&client(name).post(&batch).body).unwrap();
        let told = answers[0]["error"]["message"].as_str().unwrap();
        assert!(told.contains("unknown_methods") && answers[1]["result"] == 0, "{name}: {answers}");
        assert!(!shows(&mut client(name)), "{name}");
    }
    assert_eq!(relay.count(NEW), 0);
    for (position, name) in ["dora", "eve"].into_iter().enumerate() {
        assert_eq!(client(name).refused(NEW, json!([])).0, -32601, "{name}");
        assert!(shows(&mut client(name)), "{name}");
        assert_eq!(relay.count(NEW), position + 1);
    }
    assert_eq!(host.client().refused(NEW, json!([])).0, -32601);
    assert!(shows(&mut host.client()));
}

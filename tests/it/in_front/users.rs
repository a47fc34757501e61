//! Users of the host, and the node's methods and files that they may use.

use outrigger_tests::{Bitcoind, Client, Host, HostOptions, Relay, bitcoind};
use serde_json::{Value, json};

use super::operators::checked_at;
use super::{before, start_before, start_set};
use crate::users::ALICE;

/// The setting `rpc.users`: each user with its name and further lines. The password of each is `pass:word`.
pub fn users(users: &[(&str, &str)]) -> String {
    let user = |(name, settings): &(&str, &str)| {
        let rpcauth = ALICE.replace("alice", name);
        format!("{{ rpcauth = '{rpcauth}', {settings} }}")
    };
    format!("rpc.users=[{}]", users.iter().map(user).collect::<Vec<_>>().join(", "))
}

/// A client of a user that [`users`] configured.
pub fn client_of(host: &Host, name: &str) -> Client {
    Client::new(host.address, &format!("{name}:pass:word"))
}

pub fn status(client: &mut Client, method: &str) -> u16 {
    client.post(&json!({"id": 1, "method": method, "params": []}).to_string()).status
}

#[test]
fn users_call_only_the_node_methods_that_their_settings_allow() {
    let users = users(&[
        ("named", "methods = ['getblockcount', 'scantxoutset']"),
        ("sets", "methods = ['@read', '@send', 'savemempool']"),
        ("unlisted", ""),
        ("one", "max_concurrent_calls = 1"),
        ("twenty", "max_calls_per_second = 20"),
        ("confined", "wallet = 'hers'"),
    ]);
    let Some(host) = start_set(&[], &[&users]) else { return };
    check_method_list(&mut client_of(&host, "named"));
    check_sets_of_methods(&mut client_of(&host, "sets"));
    check_files_of_the_node(&mut client_of(&host, "unlisted"));
    // The operator may write files of the node.
    assert!(host.client().call("savemempool", json!([]))["filename"].is_string());
    // The rate limits count each call of a batch.
    let call = json!({"id": 1, "method": "getblockhash", "params": [0]});
    let answered = |name, calls| {
        let batch = json!(vec![&call; calls]).to_string();
        client_of(&host, name).post(&batch).body.matches(r#""error":null"#).count()
    };
    assert_eq!(answered("one", 300), 300);
    // The user gets at least its allowance, and is then limited.
    assert!((20..200).contains(&answered("twenty", 200)));
    check_confined(&host, &mut client_of(&host, "confined"));
}

/// A list of methods applies to passed methods and batches.
fn check_method_list(user: &mut Client) {
    assert_eq!(status(user, "getblockcount"), 200);
    assert_eq!(status(user, "getbestblockhash"), 403);
    let batch = json!([{"id": 1, "method": "getblockcount"}, {"id": 2, "method": "getbestblockhash"}]);
    assert_eq!(user.post(&batch.to_string()).status, 403);
}

fn check_sets_of_methods(user: &mut Client) {
    for (method, expected) in [
        ("getblockcount", 200),
        ("getmininginfo", 200),
        ("uptime", 200),
        ("savemempool", 200),
        // The user may call it; the node refuses the missing arguments.
        ("sendrawtransaction", 500),
        ("generatetoaddress", 403),
        ("prioritisetransaction", 403),
        ("getbalances", 403),
        ("setban", 403),
        ("dumptxoutset", 403),
        ("stop", 403),
    ] {
        assert_eq!(status(user, method), expected, "{method}");
    }
}

/// A user without a list of methods cannot make the node read or write files.
fn check_files_of_the_node(user: &mut Client) {
    user.call("getblockcount", json!([]));
    let batch = json!([{"id": 1, "method": "savemempool"}]).to_string();
    for method in ["savemempool", "dumptxoutset", "importmempool", "loadtxoutset"] {
        assert_eq!(status(user, method), 403, "{method}");
    }
    assert!(user.post(&batch).body.contains("The node does not allow this method"));
}

/// A user who is confined to a wallet changes neither the node nor its files.
fn check_confined(host: &Host, user: &mut Client) {
    host.new_wallet("hers");
    host.new_wallet("other");
    user.call("getblockcount", json!([]));
    assert_eq!(user.call("getwalletinfo", json!([]))["walletname"], "hers");
    for method in ["dumptxoutset", "savemempool", "setban", "invalidateblock", "pruneblockchain"] {
        assert_eq!(status(user, method), 403, "{method}");
    }
    // The operator may change the node.
    assert_ne!(status(&mut host.client(), "setban"), 403);
}

#[test]
fn users_max_wallets_is_refused_when_the_node_keeps_the_wallets() {
    let backend = ["backend.url=http://127.0.0.1:1", "backend.cookie=/nonexistent", "backend.wallets=node"];
    let users = users(&[("alice", "max_wallets = 1")]);
    let error = Host::refused(&HostOptions::with(&[&backend[..], &[users.as_str()]].concat()));
    assert!(error.contains("max_wallets") && error.contains("the node's wallets are not counted"), "{error}");
}

#[test]
fn users_of_bitcoin_conf_may_call_the_host() {
    let Some(path) = bitcoind::installed() else { return };
    let conf = tempfile::NamedTempFile::new().unwrap();
    let bob = ALICE.replace("alice", "bob");
    let text = format!("rpcauth={ALICE}\nrpcauth={bob}\nrpcwhitelist=alice:getblockcount,uptime,getbalances\n");
    // Without this line the node would allow its cookie nothing.
    let text = text + "rpcwhitelistdefault=0\n";
    std::fs::write(conf.path(), text).unwrap();
    let arguments = format!("-conf={}", conf.path().display());
    let (node, _) = Bitcoind::start_with(path, &[&arguments]);
    let host = before(node, &[&format!("rpc.bitcoin_conf='{}'", conf.path().display())]);
    let address = host.node.as_ref().unwrap().address;
    for (user, method, expected) in [
        ("alice", "getblockcount", 200),
        ("alice", "uptime", 200),
        ("alice", "getbestblockhash", 403),
        ("bob", "getblockcount", 200),
    ] {
        let credentials = format!("{user}:pass:word");
        // Host and node answer the same.
        for address in [host.address, address] {
            assert_eq!(status(&mut Client::new(address, &credentials), method), expected, "{user} {method}");
        }
    }
    assert_eq!(status(&mut Client::new(host.address, "alice:pass"), "getblockcount"), 401);
}

#[test]
fn node_wallets_are_called_by_path_and_a_confined_user_reaches_only_one() {
    let users = users(&[("alice", "wallet = 'hers'")]);
    let Some(host) = start_set(&[], &["backend.wallets=node", "plugins=[]", &users]) else { return };
    let (mut client, mut alice) = (host.client(), client_of(&host, "alice"));
    client.call("createwallet", json!(["hers"]));
    client.call("createwallet", json!(["a b"]));
    assert_eq!(client.wallet("a%20b").call("getwalletinfo", json!([]))["walletname"], "a b");
    assert_eq!(client.refused("getwalletinfo", json!([])).0, -19);
    assert_eq!(alice.call("getwalletinfo", json!([]))["walletname"], "hers");
    assert_eq!(alice.wallet("hers").call("getwalletinfo", json!([]))["walletname"], "hers");
    let refused = alice.wallet("a%20b").refused("getwalletinfo", json!([]));
    assert_eq!(refused, (-18, "Requested wallet does not exist or is not loaded".to_owned()));
    for method in ["listwallets", "loadwallet", "unloadwallet", "createwallet", "backupwallet"] {
        assert_eq!(status(&mut alice, method), 403, "{method}");
    }
}

#[test]
fn users_call_methods_unknown_to_the_host_only_if_allowed() {
    /// A method that only a later release has.
    const NEW: &str = "exportsecrets";
    let Some(path) = bitcoind::installed() else { return };
    let (node, _) = Bitcoind::start_with(path, &[]);
    let relay = Relay::to(node.address);
    relay.change("\"method\":\"help\"", |body| {
        let text = String::from_utf8(body.to_vec()).ok()?;
        Some(text.replace("== Util ==\\n", &format!("== Util ==\\n{NEW} \\\"file\\\"\\n")).into_bytes())
    });
    // The check before the start names the method.
    let (code, told) = checked_at(&node, relay.address);
    let unknown = |line: &&str| line.starts_with("methods of the node that the host does not know: ");
    let line = told.lines().find(unknown).unwrap_or_default();
    assert!(code == Some(0) && line.contains(NEW) && !line.contains("getblockcount"), "{told}");
    let users = users(&[
        ("alice", ""),
        ("bob", "wallet = 'w'"),
        ("carol", "folders = ['/srv']"),
        ("dora", "unknown_methods = 'allow'"),
        ("eve", "wallet = 'w', unknown_methods = 'allow'"),
    ]);
    let host = start_before(node, &relay, &[&users]);
    let client = |name: &str| client_of(&host, name);
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

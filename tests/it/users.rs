//! Permissions of users.

use outrigger_tests::{Client, Host, HostOptions, plugin_section};
use serde_json::{Value, json};

use crate::mistakes::CHAIN;
use crate::operator::logged_with;

/// `alice`, whose password is `pass:word`.
pub const ALICE: &str =
    "alice:0123456789abcdef0123456789abcdef$36eec41693efe2766d65afc49dcabcd63a478f61cd99bb469a80f7ad8885432b";

/// A host with all groups, and a client of its user `alice`, who has these configuration lines.
pub fn with_user(lines: &str) -> (Host, Client) {
    let host = Host::start_with(HostOptions::with_groups(&format!("[[rpc.users]]\nrpcauth = \"{ALICE}\"\n{lines}\n")));
    let alice = Client::new(host.address, "alice:pass:word");
    (host, alice)
}

#[test]
fn users_method_list_and_credentials_refuse_calls_and_each_refusal_is_logged() {
    // The list may name methods of plugins that are off or not configured.
    let user = format!(
        "[[rpc.users]]\nrpcauth = \"{ALICE}\"\nmethods = [\"uptime\", \"getblockcount\", \"submitblock\", \"faultwho\"]\n"
    );
    let faulty = plugin_section("outrigger_faulty", "enabled = false\n");
    let options = HostOptions::configured(&format!("{user}{CHAIN}{faulty}"));
    let (host, log) = logged_with(options.and(&["log.format=json"]));
    let mut alice = Client::new(host.address, "alice:pass:word");
    alice.call("getblockcount", json!([]));
    let document = alice.call("rpc.discover", json!([]));
    let listed: Vec<_> = document["methods"].as_array().unwrap().iter().map(|method| &method["name"]).collect();
    assert_eq!(listed, ["getblockcount", "rpc.discover", "uptime"]);
    host.client().call("getbestblockhash", json!([]));
    assert_eq!(Client::new(host.address, "alice:guess").post(r#"{"method":"uptime","id":1}"#).status, 401);
    let refused = alice.post(r#"{"method":"stop","id":1}"#);
    assert_eq!((refused.status, refused.body.as_str()), (403, ""));
    assert_eq!(alice.post(r#"[{"method":"uptime","id":1},{"method":"getbestblockhash","id":2}]"#).status, 403);
    let long = "é".repeat(1000);
    assert_eq!(alice.post(&format!(r#"{{"method":"{long}","id":1}}"#)).status, 403);
    check_logged_refusals(&log());
    // The host itself has no REST.
    for path in ["/rest/chaininfo.json", "/rest/mempool/info.json", "/rest/"] {
        let reply = alice.send(&format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
        assert_eq!((reply.status, reply.body.as_str()), (404, ""), "{path}");
    }
}

/// The log has a refusal with address, user and method, and wrong credentials with the address.
fn check_logged_refusals(text: &str) {
    let lines = |part: &str| -> Vec<Value> {
        text.lines().filter(|line| line.contains(part)).map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let told: Vec<Value> = lines("not allowed")
        .iter()
        .map(|line| json!([line["fields"]["peer"], line["fields"]["user"], line["fields"]["method"]]))
        .collect();
    let refusal = |method: &str| json!(["127.0.0.1", "alice", method]);
    assert_eq!(told, [refusal("stop"), refusal("getbestblockhash"), refusal(&"é".repeat(64))], "{text}");
    let wrong = lines("wrong credentials");
    assert_eq!((&wrong[0]["level"], &wrong[0]["fields"]["peer"]), (&json!("WARN"), &json!("127.0.0.1")));
    assert!(!text.contains("guess"), "{text}");
}

#[test]
fn users_of_one_wallet_see_no_other() {
    let (host, mut alice) = with_user("wallet = \"hot\"");
    let (mut hot, mut cold) = (host.new_wallet("hot"), host.new_wallet("cold"));
    let address = hot.call("getnewaddress", json!([]));
    cold.call("getnewaddress", json!([]));

    // With two wallets loaded, only a user confined to one need not name it.
    assert_eq!(host.client().refused("getwalletinfo", json!([])).0, -19);
    assert_eq!(alice.call("getwalletinfo", json!([]))["walletname"], "hot");
    assert_eq!(alice.wallet("hot").call("getaddressinfo", json!([address]))["ismine"], true);
    let unknown = (-18, "Requested wallet does not exist or is not loaded".to_owned());
    assert_eq!(alice.wallet("cold").refused("getwalletinfo", json!([])), unknown);
    assert_eq!(alice.call("listwallets", json!([])), json!(["hot"]));
    let directory: Vec<_> = alice.call("listwalletdir", json!([]))["wallets"].as_array().unwrap().clone();
    assert_eq!(directory.len(), 1);
    for (method, arguments) in
        [("unloadwallet", json!(["cold"])), ("loadwallet", json!(["cold"])), ("createwallet", json!(["new"]))]
    {
        assert_eq!(alice.refused(method, arguments).0, -18, "{method}");
    }
    for (method, arguments) in [("stop", json!([])), ("stopplugin", json!(["chain"])), ("setmocktime", json!([1]))] {
        let request = json!({"id": 1, "method": method, "params": arguments});
        assert_eq!(alice.post(&request.to_string()).status, 403, "{method}");
    }
    assert_eq!(host.client().call("listwallets", json!([])), json!(["hot", "cold"]));
    alice.call("unloadwallet", json!(["hot"]));
    assert_eq!(alice.refused("getwalletinfo", json!([])), unknown);
    assert_eq!(cold.call("getwalletinfo", json!([]))["walletname"], "cold");
}

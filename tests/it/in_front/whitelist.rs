//! A node that refuses some methods to the host (`-rpcwhitelist`).

use outrigger_tests::Client;
use serde_json::{Value, json};

use super::nodes::import;
use super::{ADDRESS, start};

/// The methods that the host itself calls, and those that the tests call.
const ALLOWED: &str = "-rpcwhitelist=__cookie__:getbestblockhash,getblock,getblockchaininfo,getblockcount,getblockhash,getblockheader,\
                       getdescriptorinfo,getindexinfo,getmempoolentry,getmempoolinfo,getnetworkinfo,getrawmempool,getrawtransaction,getrpcinfo,getzmqnotifications,generatetoaddress,help,\
                       pruneblockchain,stop,uptime,waitfornewblock";

fn answers(client: &mut Client, methods: &[&str]) -> Vec<Value> {
    let calls: Vec<Value> =
        methods.iter().map(|method| json!({"id": method, "method": method, "params": []})).collect();
    let reply = client.post(&json!(calls).to_string());
    let answers: Value = serde_json::from_str(&reply.body).unwrap();
    let answer = |answer: &Value| match answer["error"]["code"].clone() {
        Value::Null => answer["result"].clone(),
        code => code,
    };
    answers.as_array().unwrap().iter().map(answer).collect()
}

#[test]
fn methods_that_the_node_refuses_fail_alone_in_a_batch_and_do_not_wait() {
    let Some(host) = start(&[ALLOWED]) else { return };
    let mut client = host.client();
    let hash = client.call("generatetoaddress", json!([2, ADDRESS]))[1].clone();
    assert_eq!(client.post(&json!({"method": "getdifficulty"}).to_string()).status, 403);
    let told = answers(&mut client, &["getblockcount", "getdifficulty", "getbestblockhash", "getdifficulty"]);
    assert_eq!(told, [json!(2), json!(-32603), hash.clone(), json!(-32603)]);
    // The host asks for a transaction's entry in the batch that sends it.
    let block = client.call("getblock", json!([hash, 2]));
    let call = json!({"id": 1, "method": "sendrawtransaction", "params": [block["tx"][0]["hex"]]});
    assert_eq!(client.post(&call.to_string()).status, 403);
    // A long poll for a template.
    let id = format!("{}1", hash.as_str().unwrap());
    let call = json!({"id": 1, "method": "getblocktemplate", "params": [{"rules": ["segwit"], "longpollid": id}]});
    assert_eq!(client.post(&call.to_string()).status, 403);
}

#[test]
fn rescan_reads_every_block_if_the_node_refuses_getblockfilter() {
    for index in ["-blockfilterindex=0", "-blockfilterindex=1"] {
        let Some(host) = start(&[ALLOWED, index]) else { return };
        let (mut client, mut owner) = (host.client(), host.new_wallet("owner"));
        let mine = owner.call("getnewaddress", json!([]));
        client.call("generatetoaddress", json!([5, mine]));
        client.call("generatetoaddress", json!([100, ADDRESS]));
        let (mut wallet, answer) = import(&mut client, "w", &mine);
        assert_eq!(answer["success"], json!(true), "{answer}");
        assert_eq!(wallet.call("getwalletinfo", json!([]))["txcount"], json!(5));
        let (_, message) = owner.refused("sendtoaddress", json!([ADDRESS, 1]));
        assert_eq!(message, "the node's -rpcwhitelist refuses estimatesmartfee");
    }
}

#[test]
fn loadwallet_reports_missing_pruned_blocks_when_the_node_refuses_getchainstates() {
    let Some(host) = start(&[ALLOWED, "-prune=1", "-fastprune"]) else { return };
    let mut client = host.client();
    client.call("createwallet", json!(["away", true, true]));
    client.call("unloadwallet", json!(["away"]));
    client.call("generatetoaddress", json!([800, ADDRESS]));
    client.call("pruneblockchain", json!([500]));
    let (code, message) = client.refused("loadwallet", json!(["away"]));
    assert!(
        code == -4 && message.starts_with("Wallet loading failed. Prune: last wallet synchronisation"),
        "{message}"
    );
}

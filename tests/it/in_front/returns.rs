//! A node that returns without its mempool, without its last blocks, or together with the host. No wallet answers before the host has
//! submitted its payments again and read the mempool.

use outrigger_tests::{Client, Host, wait_until};
use serde_json::{Value, json};

use super::{ADDRESS, start_set};
use crate::metrics::ask;

/// A host in front of a node that drops its mempool at a restart, and a wallet with coins. Both have written them to disk.
fn start() -> Option<(Host, Client)> {
    let host = start_set(&["-persistmempool=0", "-fallbackfee=0.0001"], &["metrics.listen=127.0.0.1:0"])?;
    let mut wallet = host.client().create_wallet("w", json!({"load_on_startup": true}));
    wallet.fund(3);
    flush(&host);
    Some((host, wallet))
}

fn flush(host: &Host) {
    host.node_client().call("gettxoutsetinfo", json!([]));
}

fn until_passed(client: &mut Client) {
    wait_until("calls are passed on", || client.try_call("getblockcount", json!([])).is_ok());
}

fn balances(wallet: &mut Client) -> Value {
    wallet.call("getbalances", json!([]))["mine"].clone()
}

#[test]
fn wallet_shows_its_payments_at_once_when_the_node_returns_with_an_empty_mempool() {
    let Some((mut host, mut wallet)) = start() else { return };
    let sent = wallet.call("sendtoaddress", json!([ADDRESS, 1]));
    let before = balances(&mut wallet);
    for host_too in [false, true] {
        let node = host.node.as_mut().unwrap();
        node.kill();
        if host_too {
            // The host starts before its node.
            host.kill();
            host = host.start_again();
        }
        host.bitcoind().start_again();
        let mut client = host.client();
        until_passed(&mut client);
        let mut wallet = client.wallet("w");
        assert_eq!(balances(&mut wallet), before, "{host_too}");
        assert_eq!(client.call("getrawmempool", json!([])), json!([sent]), "{host_too}");
    }
    // The wallet also knows at once a transaction passed on by the host and a payment of its own.
    host.bitcoind().kill_and_restart(|_| {});
    let (mut client, mut wallet) = (host.client(), host.client().wallet("w"));
    let coin = &wallet.call("listunspent", json!([1]))[0];
    let raw = wallet
        .call("createrawtransaction", json!([[{"txid": coin["txid"], "vout": coin["vout"]}], [{ADDRESS: 49.999}]]));
    let signed = wallet.call("signrawtransactionwithwallet", json!([raw]));
    until_passed(&mut client);
    let passed = client.call("sendrawtransaction", json!([signed["hex"]]));
    assert_eq!(wallet.call("gettransaction", json!([passed]))["confirmations"], 0);
    let own = wallet.call("sendtoaddress", json!([ADDRESS, 1]));
    let change = wallet.call("listunspent", json!([0, 0]));
    assert!(change.as_array().unwrap().iter().any(|coin| coin["txid"] == own), "{change}");
}

#[test]
fn wallet_resubmits_a_payment_refused_for_missing_blocks_at_the_next_block() {
    let Some((mut host, mut wallet)) = start() else { return };
    let height = 104;
    let saved = tempfile::tempdir().unwrap();
    host.bitcoind().restart(|node| node.save_data(saved.path()));
    let mut client = host.client();
    until_passed(&mut client);
    client.call("generatetoaddress", json!([1, ADDRESS]));
    let sent = wallet.call("send", json!({"outputs": [{ADDRESS: 1}], "options": {"locktime": height}}))["txid"].clone();
    assert_eq!(client.call("getrawmempool", json!([])), json!([sent]));
    // The node loses its last block and its mempool: the payment it had accepted is not final any more.
    host.bitcoind().kill_and_restart(|node| node.restore_data(saved.path()));
    let mut node = host.node_client();
    until_passed(&mut client);
    wait_until("the wallet goes back", || {
        wallet.call("getwalletinfo", json!([]))["lastprocessedblock"]["height"] == height - 1
    });
    assert_eq!(node.call("getrawmempool", json!([])), json!([]));
    // The payment's locktime is in the future, which is no reason for a warning.
    assert_eq!(wallet.call("getwalletinfo", json!([])).get("warnings"), None);
    node.call("generatetoaddress", json!([1, ADDRESS]));
    wait_until("the payment is offered again", || node.call("getrawmempool", json!([])) == json!([sent]));
    wait_until("the wallet has seen it", || wallet.call("listunspent", json!([0, 0])) != json!([]));
    let metrics = ask(host.metrics.unwrap(), "GET /metrics");
    assert!(metrics.contains("outrigger_wallet_payments_unsent{wallet=\"w\"} 0.0"), "{metrics}");
}

#[test]
fn new_payments_use_the_height_of_a_node_that_lacks_blocks_and_older_ones_wait_for_its_blocks() {
    let arguments = ["-persistmempool=0", "-fallbackfee=0.0001"];
    let Some(mut host) = start_set(&arguments, &["backend.max_rewind=3"]) else { return };
    let (mut client, mut wallet) = (host.client(), host.new_wallet("w"));
    wallet.mine(3);
    client.call("generatetoaddress", json!([101, ADDRESS]));
    let saved = tempfile::tempdir().unwrap();
    host.bitcoind().restart(|node| node.save_data(saved.path()));
    until_passed(&mut client);
    let hashes = client.call("generatetoaddress", json!([6, ADDRESS]));
    let blocks: Vec<Value> =
        hashes.as_array().unwrap().iter().map(|hash| client.call("getblock", json!([hash, 0]))).collect();
    let older = wallet.call("send", json!({"outputs": [{ADDRESS: 1}], "options": {"locktime": 110}}))["txid"].clone();
    host.bitcoind().kill_and_restart(|node| node.restore_data(saved.path()));
    let mut node = host.node_client();
    wait_until("the host holds", || wallet.call("getwalletinfo", json!([])).get("warnings").is_some());
    assert_eq!(node.call("getblockcount", json!([])), 104);
    let own = wallet.call("sendtoaddress", json!([ADDRESS, 1]));
    assert_eq!(node.call("getrawmempool", json!([])), json!([own]));
    let locktime = wallet.call("gettransaction", json!([own, true, true]))["decoded"]["locktime"].as_u64().unwrap();
    assert!(locktime <= 104, "{locktime}");
    for block in &blocks {
        assert_eq!(node.call("submitblock", json!([block])), json!(null));
    }
    wait_until("the older payment is offered again", || {
        node.call("getrawmempool", json!([])).as_array().unwrap().contains(&older)
    });
}

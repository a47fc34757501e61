//! Rescans by the node's block filters, which the host keeps.

use outrigger_tests::{Client, Host, HostOptions, bitcoind};
use serde_json::{Value, json};

use crate::metrics::ask;

const ADDRESS: &str = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";

/// How many filters rescans have found here, and how many came from the node.
fn filters(host: &Host) -> [f64; 2] {
    let page = ask(host.metrics.unwrap(), "GET /metrics");
    let count = |from: &str| {
        let name = format!("outrigger_node_filters_total{{from=\"{from}\"}} ");
        page.lines().find_map(|line| line.strip_prefix(&*name)?.parse().ok()).unwrap()
    };
    [count("kept"), count("node")]
}

/// The transactions that a fresh wallet finds for an address in the whole chain.
fn found(client: &mut Client, name: &str, address: &Value) -> Value {
    client.call("createwallet", json!([name, true, true]));
    let described = client.call("getdescriptorinfo", json!([format!("addr({})", address.as_str().unwrap())]));
    let mut wallet = client.wallet(name);
    let answer = wallet.call("importdescriptors", json!([[{"desc": described["descriptor"], "timestamp": 0}]]));
    assert_eq!(answer[0]["success"], json!(true), "{answer}");
    wallet.call("getwalletinfo", json!([]))["txcount"].clone()
}

#[test]
fn filters_are_asked_for_once_also_over_restarts_and_reorganisations() {
    for rest in ["-rest=1", "-rest=0"] {
        if bitcoind::installed().is_none() {
            return;
        }
        let set = vec!["metrics.listen=127.0.0.1:0".to_owned()];
        let arguments: &[&str] = &["-blockfilterindex=1", rest];
        let host = Host::start_with(HostOptions { set, ..HostOptions::in_front_of(arguments) });
        let mut client = host.client();
        // Before there is a wallet, which would follow so many blocks by their filters.
        client.call("generatetoaddress", json!([300, ADDRESS]));
        let mine = host.new_wallet("owner").call("getnewaddress", json!([]));
        client.call("generatetoaddress", json!([5, mine]));
        assert_eq!(found(&mut client, "first", &mine), json!(5));
        // The genesis block has one too.
        assert_eq!(filters(&host), [0.0, 306.0]);
        assert_eq!(found(&mut client, "second", &mine), json!(5));
        assert_eq!(filters(&host), [306.0, 306.0]);
        let host = host.restart();
        let mut client = host.client();
        assert_eq!(found(&mut client, "third", &mine), json!(5));
        assert_eq!(filters(&host), [306.0, 0.0]);
        // Three of the blocks leave the chain, and others come, two of which pay.
        let stale = client.call("getblockhash", json!([303]));
        client.call("invalidateblock", json!([stale]));
        client.call("generatetoaddress", json!([2, ADDRESS]));
        client.call("generatetoaddress", json!([2, mine]));
        assert_eq!(found(&mut client, "fourth", &mine), json!(4));
        assert_eq!(filters(&host), [306.0 + 303.0, 4.0]);
    }
}

//! The host rejects blocks and transactions other than the requested ones, from the node or a proxy before it.

use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};

use bitcoin::consensus::encode::{Decodable, Encodable, deserialize_hex, serialize_hex};
use bitcoin::{Amount, Block, Transaction};
use outrigger_tests::{Bitcoind, Client, Host, HostOptions, Relay, bitcoind, wait_until};
use serde_json::{Value, json};

use super::ADDRESS;
use crate::metrics::ask;

/// A host with these settings, its log in a folder, behind a relay to a node without ZMQ.
fn start(log: &Path, set: &[&str]) -> Option<(Host, Relay)> {
    let arguments = ["-fallbackfee=0.0001", "-blockfilterindex=1", "-changetype=bech32"];
    let node = Bitcoind::start_with(bitcoind::installed()?, &arguments).0;
    let relay = Relay::to(node.address);
    let options = HostOptions { log: Some(log.join("log")), ..HostOptions::with(set) };
    let options = options.and(&["metrics.listen=127.0.0.1:0", &format!("backend.url=http://{}", relay.address)]);
    Some((Host::start_before(tempfile::tempdir().unwrap(), options, Some(node)), relay))
}

fn unproven(host: &Host) -> f64 {
    let page = ask(host.metrics.unwrap(), "GET /metrics");
    page.lines().find_map(|line| line.strip_prefix("outrigger_node_unproven_total ")?.parse().ok()).unwrap()
}

fn payer(node: &mut Client) -> Client {
    let mut payer = node.create_wallet("payer", json!({}));
    let mine = payer.call("getnewaddress", json!(["", "bech32"]));
    payer.call("generatetoaddress", json!([110, mine]));
    payer
}

/// Changes the hexadecimal results of a reply's body and leaves its other bytes alone.
fn altered<T: Decodable + Encodable>(body: &[u8], change: impl Fn(T) -> T) -> Option<Vec<u8>> {
    let mut text = String::from_utf8(body.to_vec()).ok()?;
    let replies: Value = serde_json::from_slice(body).ok()?;
    for reply in replies.as_array().unwrap_or(&vec![replies.clone()]) {
        let hex = reply["result"].as_str()?;
        text = text.replace(hex, &serialize_hex(&change(deserialize_hex(hex).ok()?)));
    }
    Some(text.into_bytes())
}

type Change = Box<dyn Fn(Block) -> Block + Send>;

/// The ways to falsify a block; `other` is another block of the chain.
fn changes(other: Block) -> Vec<(&'static str, Change)> {
    vec![
        (
            "has other transactions",
            Box::new(|mut block| {
                block.txdata[1].output.iter_mut().for_each(|output| output.value = Amount::from_int_btc(1000));
                block
            }),
        ),
        ("has another hash", Box::new(move |_| other.clone())),
        (
            "has other transactions",
            Box::new(|mut block| {
                block.txdata.truncate(1);
                block
            }),
        ),
        // The three transactions have the same merkle root as these four.
        (
            "has other transactions",
            Box::new(|mut block| {
                block.txdata.push(block.txdata[2].clone());
                block
            }),
        ),
        (
            "has witnesses",
            Box::new(|mut block| {
                block.txdata[1].input[0].witness.push([1]);
                block
            }),
        ),
        (
            "has witnesses",
            Box::new(|mut block| {
                let inputs = block.txdata.iter_mut().flat_map(|transaction| &mut transaction.input);
                inputs.for_each(|input| input.witness.clear());
                block
            }),
        ),
    ]
}

#[test]
fn host_rejects_false_blocks_transactions_and_estimates() {
    let log = tempfile::tempdir().unwrap();
    let Some((host, relay)) = start(log.path(), &[]) else { return };
    let mut payer = payer(&mut host.node_client());
    check_blocks(&host, &relay, &mut payer, log.path());
    // The host rejects a mempool transaction other than the requested one.
    let mut wallet = host.new_wallet("paid");
    let address = wallet.call("getnewaddress", json!([]));
    let pending = |wallet: &mut Client| wallet.call("getbalances", json!([]))["mine"]["untrusted_pending"].as_f64();
    assert_eq!(pending(&mut wallet), Some(0.0));
    relay.change("\"method\":\"getrawtransaction\"", |body| {
        altered(body, |mut transaction: Transaction| {
            transaction.output.iter_mut().for_each(|output| output.value = Amount::from_int_btc(1000));
            transaction
        })
    });
    let before = unproven(&host);
    let paid = payer.call("sendtoaddress", json!([address, 1]));
    wait_until("the transaction was refused twice", || unproven(&host) > before + 1.0);
    assert_eq!(pending(&mut wallet), Some(0.0));
    relay.change_nothing();
    wait_until("the wallet has the payment", || pending(&mut wallet) == Some(1.0));
    assert_eq!(wallet.call("gettransaction", json!([paid]))["amount"].as_f64(), Some(1.0));
    // The host refuses an estimate above `max_estimate` before it signs.
    let mut wallet = host.new_wallet("payer");
    wallet.mine(101);
    let estimate = |feerate: f64| {
        move |body: &[u8]| {
            let reply: Value = serde_json::from_slice(body).ok()?;
            let (result, id) = (json!({"feerate": feerate, "blocks": 6}), &reply["id"]);
            Some(format!("{{\"result\":{result},\"error\":null,\"id\":{id}}}\n").into_bytes())
        }
    };
    relay.change("\"method\":\"estimatesmartfee\"", estimate(0.010_000_01));
    for (method, params) in [
        ("sendtoaddress", json!([ADDRESS, 1])),
        ("send", json!([{ADDRESS: 1}])),
        ("walletcreatefundedpsbt", json!([[], {ADDRESS: 1}])),
    ] {
        let (code, message) = wallet.refused(method, params);
        assert!(code == -4 && message.contains("1000.001 sat/vB") && message.contains("1000.000 sat/vB"), "{message}");
    }
    assert_eq!(wallet.call("listtransactions", json!(["*", 1000])).as_array().unwrap().len(), 101);
    // A payment with a feerate needs no estimate.
    wallet.call("sendtoaddress", json!([ADDRESS, 1, "", "", false, true, null, "unset", null, 2]));
    relay.change("\"method\":\"estimatesmartfee\"", estimate(0.0002));
    wallet.call("sendtoaddress", json!([ADDRESS, 1]));
}

/// The host requests a block again if it gets another one.
fn check_blocks(host: &Host, relay: &Relay, payer: &mut Client, log: &Path) {
    let mut wallet = host.new_wallet("w");
    let mut node = host.node_client();
    let address = wallet.call("getnewaddress", json!([]));
    let balance = |wallet: &mut Client| {
        let balances = wallet.try_call("getbalances", json!([])).ok()?;
        Some(balances["mine"]["trusted"].as_f64().unwrap().round())
    };
    let first = node.call("getblockhash", json!([1]));
    let other: Block = deserialize_hex(node.call("getblock", json!([first, 0])).as_str().unwrap()).unwrap();
    for (number, (reason, change)) in (0_u8..).zip(changes(other)) {
        let before = unproven(host);
        // The wallet may still be reading blocks without payments.
        let change = move |block: Block| if block.txdata.len() == 3 { change(block) } else { block };
        relay.change("\"method\":\"getblock\"", move |body| altered(body, &change));
        payer.call("sendtoaddress", json!([address, 1]));
        payer.call("sendtoaddress", json!([ADDRESS, 1]));
        node.call("generatetoaddress", json!([1, ADDRESS]));
        // The host repeats the request.
        wait_until("the block was refused", || unproven(host) > before + 1.0);
        let held = balance(&mut wallet);
        assert!(held.is_none_or(|held| held == f64::from(number)), "{held:?}: {reason}");
        relay.change_nothing();
        wait_until("the wallet has the payment", || balance(&mut wallet) == Some(f64::from(number) + 1.0));
        let told = std::fs::read_to_string(log.join("log")).unwrap();
        assert!(told.contains("the node returned false data") && told.contains(reason), "{reason}: {told}");
    }
    assert_eq!(wallet.call("getwalletinfo", json!([]))["txcount"], json!(6));
}

#[test]
fn rescan_rejects_every_block_but_the_requested_one() {
    let log = tempfile::tempdir().unwrap();
    // Filters only select the blocks to read.
    for set in [&[][..], &["backend.filters=false"]] {
        let Some((host, relay)) = start(log.path(), set) else { return };
        let mut node = host.node_client();
        let mut payer = payer(&mut node);
        let address = payer.call("getnewaddress", json!([]));
        payer.call("sendtoaddress", json!([address, 1]));
        payer.call("sendtoaddress", json!([ADDRESS, 1]));
        node.call("generatetoaddress", json!([1, ADDRESS]));
        let mut client = host.client();
        client.call("createwallet", json!(["watch", true, true]));
        let described = client.call("getdescriptorinfo", json!([format!("addr({})", address.as_str().unwrap())]));
        let left = AtomicI32::new(2);
        relay.change("\"method\":\"getblock\"", move |body| {
            altered(body, |mut block: Block| {
                let is_left_out = block.txdata.len() > 1 && left.fetch_sub(1, Ordering::SeqCst) > 0;
                block.txdata.truncate(if is_left_out { 1 } else { usize::MAX });
                block
            })
        });
        let before = unproven(&host);
        let filters =
            |host: &Host| ask(host.metrics.unwrap(), "GET /metrics").contains("node_filters_total{from=\"node\"} 0");
        let mut watch = client.wallet("watch");
        watch.import(&json!([{"desc": described["descriptor"], "timestamp": 0}]));
        assert!(unproven(&host) > before, "{set:?}");
        assert_eq!(watch.call("getwalletinfo", json!([]))["txcount"], json!(1));
        assert_eq!(filters(&host), !set.is_empty(), "{set:?}");
    }
}

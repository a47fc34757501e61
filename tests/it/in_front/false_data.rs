//! The host rejects false data of the node, or of a proxy before it: blocks, transactions, headers, ids and spent outputs other than the
//! requested ones.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};

use bitcoin::consensus::encode::{Decodable, Encodable, deserialize, deserialize_hex, serialize, serialize_hex};
use bitcoin::{Amount, Block, Transaction};
use outrigger_tests::{Bitcoind, Client, Host, HostOptions, Point, Relay, bitcoind, wait_until};
use serde_json::{Value, json};

use super::groups::{MINING, reader};
use super::{ADDRESS, start_before};
use crate::address_index::section;
use crate::metrics::ask;

/// A host with these settings, its log in a folder, behind a relay to a node without ZMQ, with REST or without.
fn start(log: &Path, with_rest: bool, set: &[&str]) -> Option<(Host, Relay)> {
    let rest = format!("-rest={}", u8::from(with_rest));
    let arguments = ["-fallbackfee=0.0001", "-blockfilterindex=1", "-changetype=bech32", &rest];
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
    let Some((host, relay)) = start(log.path(), false, &[]) else { return };
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
    // Filters only select the blocks to read. A block that is false by REST is requested by RPC.
    for (with_rest, set) in [(false, &[][..]), (false, &["backend.filters=false"]), (true, &[])] {
        let Some((host, relay)) = start(log.path(), with_rest, set) else { return };
        let mut node = host.node_client();
        let mut payer = payer(&mut node);
        let address = payer.call("getnewaddress", json!([]));
        payer.call("sendtoaddress", json!([address, 1]));
        payer.call("sendtoaddress", json!([ADDRESS, 1]));
        node.call("generatetoaddress", json!([1, ADDRESS]));
        let mut client = host.client();
        let mut watch = client.create_wallet("watch", json!({"disable_private_keys": true, "blank": true}));
        let described = client.call("getdescriptorinfo", json!([format!("addr({})", address.as_str().unwrap())]));
        let left = AtomicI32::new(if with_rest { i32::MAX } else { 2 });
        let cut = move |mut block: Block| {
            let is_left_out = block.txdata.len() > 1 && left.fetch_sub(1, Ordering::SeqCst) > 0;
            block.txdata.truncate(if is_left_out { 1 } else { usize::MAX });
            block
        };
        match with_rest {
            true => relay.change("GET /rest/block/", move |body| Some(serialize(&cut(deserialize(body).ok()?)))),
            false => relay.change("\"method\":\"getblock\"", move |body| altered(body, &cut)),
        }
        let before = unproven(&host);
        let filters =
            |host: &Host| ask(host.metrics.unwrap(), "GET /metrics").contains("node_filters_total{from=\"node\"} 0");
        watch.import(&json!([{"desc": described["descriptor"], "timestamp": 0}]));
        assert!(unproven(&host) > before, "{with_rest} {set:?}");
        assert_eq!(watch.call("getwalletinfo", json!([]))["txcount"], json!(1));
        assert_eq!(filters(&host), !set.is_empty(), "{set:?}");
    }
}

/// In the node's getblock: the script of the output that the second transaction spends.
const SCRIPT: &str = "/result/tx/1/vin/0/prevout/scriptPubKey/hex";
/// In the node's getblocktemplate: the first transaction.
const SELECTED: &str = "/result/transactions/0/data";

/// Falsifies a member of the node's answers to a method, if there is one. The node counts as release 30, whose REST interface serves spent
/// outputs.
fn falsify(relay: &Relay, method: &'static str, member: &'static str, told: Value) {
    let version = json!(300_200);
    relay.change_answers(move |asked, answer| {
        for (of, at, told) in [("getnetworkinfo", "/result/version", &version), (method, member, &told)] {
            if let Some(value) = answer.pointer_mut(at).filter(|_| asked == of) {
                *value = told.clone();
            }
        }
    });
}

fn tell_the_truth(relay: &Relay) {
    falsify(relay, "", "", Value::Null);
}

#[test]
fn host_rejects_false_spent_outputs_ids_templates_and_headers() {
    let Some(path) = bitcoind::installed() else { return };
    let (node, _) = Bitcoind::start_with(path, &["-changetype=bech32", "-rest=1", "-txindex=1"]);
    let mut direct = node.client();
    // The host learns of this block only if a client names it.
    let stale = direct.call("generatetoaddress", json!([1, ADDRESS]))[0].clone();
    direct.call("invalidateblock", json!([stale]));
    let mut payer = payer(&mut direct);
    let coins = payer.call("listunspent", json!([]));
    let payment = |coin: &Value| {
        let spent = json!([{"txid": coin["txid"], "vout": coin["vout"]}]);
        let raw = payer.call("createrawtransaction", json!([spent, [{ADDRESS: 49.999}]]));
        payer.call("signrawtransactionwithwallet", json!([raw]))["hex"].clone()
    };
    let payments: Vec<Value> = coins.as_array().unwrap().iter().take(3).map(payment).collect();
    let relay = Relay::to(node.address);
    tell_the_truth(&relay);
    let plugins = format!("plugins=[{}, {MINING}, {{ {} }}]", reader(), section(", "));
    let host = start_before(node, &relay, &["metrics.listen=127.0.0.1:0", &plugins]);
    let block = check_followed(&host, &relay, &coins[0]["address"], &payments);
    direct.call("sendrawtransaction", json!([payments[2]]));
    check_called(&host, &relay, [&block, &stale], &payments);
    check_unknown(&host, &relay);
}

/// A plugin that follows the chain gets only spent outputs that the inputs can spend. Mines two payments by `payer`, and returns the block
/// of the first.
fn check_followed(host: &Host, relay: &Relay, payer: &Value, payments: &[Value]) -> Value {
    let (mut client, mut node) = (host.client(), host.node_client());
    // The relay holds the host's request by REST for the outputs that the block spends.
    let mut mine = |payment: &Value| {
        let gate = relay.hold_all();
        let block = node.call("generateblock", json!([ADDRESS, [payment]]))["hash"].clone();
        let path: &str = format!("/rest/spenttxouts/{}.bin", block.as_str().unwrap()).leak();
        let asked = relay.hold(path, Point::Request);
        drop(gate);
        (block, path, asked.recv().unwrap())
    };
    let mut has_spent = |bitcoins: f64| {
        let balance = client.try_call("getscriptbalance", json!([payer]));
        balance.is_ok_and(|balance| balance["spent"].as_f64() == Some(bitcoins))
    };
    // If another script comes by REST, the host asks by RPC. The relay would hold a second request by REST.
    let (block, path, held) = mine(&payments[0]);
    let again = relay.hold(path, Point::Request);
    let spent: Vec<u8> = [&[2, 0, 1][..], &[1, 0, 0, 0, 0, 0, 0, 0], &[1, 0x51]].concat();
    held.answer(move |stream| {
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", spent.len())?;
        stream.write_all(&spent)
    });
    wait_until("the index has the first payment", || has_spent(50.0));
    assert!(unproven(host) > 0.0 && again.try_recv().is_err());
    // Another script comes by RPC, and nothing by REST.
    let before = unproven(host);
    let (_, _, held) = mine(&payments[1]);
    falsify(relay, "getblock", SCRIPT, json!("51"));
    held.answer(|stream| stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"));
    wait_until("the script is refused", || unproven(host) > before);
    tell_the_truth(relay);
    wait_until("the index has the second payment", || has_spent(100.0));
    block
}

/// Calls whose answers would contain false data of the node fail. The first block has the first payment, and the last payment is in the
/// mempool.
fn check_called(host: &Host, relay: &Relay, [block, stale]: [&Value; 2], payments: &[Value]) {
    let (mut client, mut node) = (host.client(), host.node_client());
    let ids = node.call("getblock", json!([block]))["tx"].clone();
    let header = node.call("getblockheader", json!([block, false]));
    let mut witness: Transaction = deserialize_hex(payments[2].as_str().unwrap()).unwrap();
    witness.input[0].witness.push([1]);
    let (paid, witness) = (&payments[0], json!(serialize_hex(&witness)));
    let (coinbase, template) = (json!(["transaction", ids[0]]), json!([{"rules": ["segwit"]}]));
    let lies = [
        ("readchain", json!(["spent", block]), "its undo data of block", "getblock", SCRIPT, json!("51")),
        ("readchain", coinbase.clone(), "its transaction", "getrawtransaction", "/result/hex", paid.clone()),
        ("readchain", coinbase, "its ids of block", "getblock", "/result/tx", json!([ids[1], ids[0]])),
        ("getblocktemplate", template.clone(), "is another, or none", "getblocktemplate", SELECTED, paid.clone()),
        ("getblocktemplate", template, "has another witness", "getblocktemplate", SELECTED, witness),
        ("readchain", json!(["header", stale]), "its header", "getblockheader", "/result", header),
    ];
    for (call, params, reason, method, member, told) in lies.clone() {
        falsify(relay, method, member, told);
        let (code, message) = client.refused(call, params);
        assert!(code == -28 && message.contains(reason), "{reason}: {message}");
    }
    tell_the_truth(relay);
    for (call, params, ..) in lies {
        client.call(call, params);
    }
}

/// A block that the node does not have yet is not called unknown.
fn check_unknown(host: &Host, relay: &Relay) {
    let (mut client, unknown) = (host.client(), json!(["header", "77".repeat(32)]));
    assert!(client.call("readchain", unknown.clone()).is_null());
    let mut info = host.node_client().call("getblockchaininfo", json!([]));
    info["headers"] = json!(info["blocks"].as_u64().unwrap() + 3);
    // The host ignores this member on regtest.
    info["initialblockdownload"] = json!(true);
    info["chain"] = json!("main");
    falsify(relay, "getblockchaininfo", "/result", info);
    let told = "the node is 3 blocks behind, and is downloading the chain";
    assert_eq!(client.refused("readchain", unknown), (-28, told.to_owned()));
}

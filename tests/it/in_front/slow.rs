//! A node that answers slowly, sends very long answers, or cuts connections.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use outrigger_tests::{Bitcoind, Client, Host, Pending, Point, Relay, RpcFailure, wait_until};
use serde_json::{Value, json};

use super::{ADDRESS, start, start_behind_relay, start_behind_relay_with};

const SET_TIME: u64 = 2_000_000_000;

/// Passed calls that wait for the node, more than the host sends to it at a time.
const PASSED: usize = 20;
/// How often the test calls the wallet meanwhile.
const ASKED: usize = 20;

/// The length of the result of a long answer, the host memory that two of them may take, and the length of a piece that is written or
/// read at a time, all in bytes.
const LONG_RESULT: usize = 300_000_000;
const MAX_MEMORY: u64 = 8 << 20;
const PIECE: usize = 100_000;

/// Answers of wallet calls for which the host need not ask the node again.
fn shown(wallet: &mut Client, mine: &Value) -> Vec<Value> {
    let calls = [
        ("getbalance", json!([])),
        ("getbalances", json!([])),
        ("listtransactions", json!(["*", 10])),
        ("listsinceblock", json!([])),
        ("listunspent", json!([])),
        ("getaddressinfo", json!([mine])),
        ("setlabel", json!([mine, "label"])),
    ];
    calls.map(|(method, params)| wallet.call(method, params)).into()
}

#[test]
fn slow_calls_block_no_others_and_the_host_retries_only_cut_calls_without_effects() {
    let Some((host, relay)) = start_behind_relay(&[]) else { return };
    // The host answers wallet calls while passed calls wait for the node.
    let (mut client, mut wallet) = (host.client(), host.new_wallet("w"));
    let mine = wallet.mine(101);
    wallet.call("setlabel", json!([mine, "label"]));
    let before = shown(&mut wallet, &mine);
    let held = relay.hold_all();
    let passed: Vec<Pending> =
        (0..PASSED).map(|id| client.begin(&json!({"id": id, "method": "getblockcount"}).to_string())).collect();
    wait_until("the passed calls wait", || {
        client.call("getrpcinfo", json!([]))["active_commands"].as_array().unwrap().len() == PASSED + 1
    });
    for _ in 0..ASKED {
        assert_eq!(shown(&mut wallet, &mine), before);
        let fresh = wallet.call("getnewaddress", json!([]));
        assert_eq!(wallet.call("getaddressinfo", json!([fresh]))["ismine"], json!(true));
    }
    drop(held);
    for (id, call) in passed.into_iter().enumerate() {
        assert_eq!(call.answer(), json!({"result": 101, "error": null, "id": id}));
    }
    // One thread serves one connection, and uses the node connection of its last call again.
    let (mut client, mut node) = (host.client(), host.node_client());
    for (point, done) in [(Point::Request, 0), (Point::Reply, 1)] {
        let blocks = client.call("getblockcount", json!([]));
        let told = call_cut((&mut client, &relay), ("getblockcount", json!([])), point);
        assert_eq!(told, Ok(blocks.clone()), "{point:?}");
        let refused = call_cut((&mut client, &relay), ("generatetoaddress", json!([1, ADDRESS])), point);
        // The host does not know how much of the request the node has read.
        assert_eq!(refused.map_err(|error| error.code), Err(-4), "{point:?}");
        let more = node.call("getblockcount", json!([])).as_u64().unwrap() - blocks.as_u64().unwrap();
        assert_eq!(more, done, "{point:?}");
    }
    check_two_payments(&host, &relay);
}

#[test]
fn host_stops_in_time_although_a_rescan_waits_for_a_node_that_hangs() {
    let Some((mut host, relay)) = start_behind_relay_with(&[], &["rpc.shutdown_grace_seconds=1"]) else { return };
    let mut wallet = host.new_wallet("w");
    wallet.call("generatetoaddress", json!([5, ADDRESS]));
    // The rescan's first question.
    let held = relay.hold("getindexinfo", Point::Request);
    let scanned = host.client().wallet("w").begin_call("rescanblockchain", json!([]));
    let held = held.recv().unwrap();
    let begun = Instant::now();
    assert!(host.terminate().success());
    // Half of the time limit in the systemd unit.
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    drop((held, scanned));
}

/// Writes a bitcoind reply whose result is a text of `length` bytes, quotation marks included.
fn answer_at_length(stream: &mut TcpStream, length: usize) -> std::io::Result<()> {
    let (before, behind) = ("{\"result\":\"", "\",\"error\":null,\"id\":1}\n");
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{before}", before.len() + length - 2 + behind.len())?;
    for _ in 0..(length - 2) / PIECE {
        stream.write_all(&[b'a'; PIECE])?;
    }
    stream.write_all(&[b'a'; PIECE][..(length - 2) % PIECE])?;
    stream.write_all(behind.as_bytes())
}

/// Reads a reply to its end. Returns the length of its text.
fn read_at_length(stream: TcpStream) -> usize {
    let mut stream = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    while line != "\r\n" {
        line.clear();
        stream.read_line(&mut line).unwrap();
        length = line.strip_prefix("Content-Length: ").map_or(length, |length| length.trim().parse().unwrap());
    }
    let (mut piece, mut count) = ([0; PIECE], 0);
    while length > 0 {
        let most = length.min(PIECE);
        let read = stream.read(&mut piece[..most]).unwrap();
        assert!(read > 0, "the reply ended {length} bytes before its end");
        length -= read;
        count += piece[..read].iter().filter(|byte| **byte == b'a').count();
    }
    count
}

#[test]
fn host_passes_on_answers_of_300_mb_in_less_than_8_mib_of_memory() {
    let Some((host, relay)) = start_behind_relay(&[]) else { return };
    let client = host.client();
    let ask = |length: usize| {
        let held = relay.hold("getrawmempool", Point::Request);
        let mut stream = client.connect();
        let call = json!({"id": "a", "method": "getrawmempool", "params": []}).to_string();
        stream.write_all(client.request(&call).as_bytes()).unwrap();
        held.recv().unwrap().answer(move |stream| answer_at_length(stream, length));
        stream
    };
    // The memory that the first two streams allocate stays with the host.
    for stream in [ask(PIECE * 50), ask(PIECE * 50)] {
        read_at_length(stream);
    }
    host.peak_memory();
    let before = host.peak_memory();
    let streams = [ask(LONG_RESULT), ask(LONG_RESULT)];
    // The id of the reply has one more quotation mark.
    let readers = streams.map(|stream| std::thread::spawn(|| read_at_length(stream)));
    assert_eq!(readers.map(|reader| reader.join().unwrap()), [LONG_RESULT - 2 + 1; 2]);
    let more = host.peak_memory() - before;
    assert!(more < MAX_MEMORY, "{more} bytes more than {before}");
}

fn connections(node: &Bitcoind) -> BTreeSet<String> {
    const ESTABLISHED: &str = "01";
    let node = format!(":{:04X}", node.address.port());
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let rows = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.filter(|row| row[2].ends_with(&node) && row[3] == ESTABLISHED).map(|row| row[1].to_owned()).collect()
}

#[test]
fn host_reconnects_after_the_node_closed_idle_connections() {
    let Some(host) = start(&["-rpcservertimeout=2"]) else { return };
    let (mut client, node) = (host.client(), host.node.as_ref().unwrap());
    for round in 1..=2 {
        let before = connections(node);
        assert_eq!(client.call("getblockcount", json!([])), json!(round - 1));
        // The connection of this call is one of these. The host's own connections are hardly ever idle for so long.
        let made: BTreeSet<_> = connections(node).difference(&before).cloned().collect();
        wait_until("the node closes it", || {
            made.is_empty() || made.intersection(&connections(node)).count() < made.len()
        });
        // A call with effects, which the host sends once.
        client.call("generatetoaddress", json!([1, ADDRESS]));
        assert_eq!(node.client().call("getblockcount", json!([])), json!(round));
        assert_eq!(client.call("getblockcount", json!([])), json!(round));
    }
}

/// Makes a call and cuts its connection to the node at `point`.
fn call_cut(
    (client, relay): (&mut Client, &Relay),
    (method, params): (&'static str, Value),
    point: Point,
) -> Result<Value, RpcFailure> {
    let held = relay.hold(method, point);
    std::thread::scope(|scope| {
        let called = scope.spawn(|| client.try_call(method, params));
        drop(held.recv().unwrap());
        called.join().unwrap()
    })
}

/// Payments of two wallets do not wait for each other.
fn check_two_payments(host: &Host, relay: &Relay) {
    let mut node = host.client();
    let mut wallets = ["one", "two"].map(|name| host.new_wallet(name));
    for wallet in &mut wallets {
        wallet.mine(2);
    }
    node.call("generatetoaddress", json!([100, ADDRESS]));
    let [mut one, mut two] = wallets;
    let begin = || host.client().wallet("one").begin_call("sendtoaddress", json!([ADDRESS, 1]));
    let caught = relay.hold("sendrawtransaction", Point::Request);
    let first = begin();
    let held = caught.recv().unwrap();
    // While the node has not answered the first payment, it takes one of the other wallet; a second one of the same wallet waits.
    let other = two.call("sendtoaddress", json!([ADDRESS, 1]));
    assert_eq!(node.call("getrawmempool", json!([])), json!([other]));
    let second = begin();
    held.pass();
    let spent = [first, second].map(|pending| {
        let payment = one.call("gettransaction", json!([pending.answer()["result"], true, true]));
        let inputs = payment["decoded"]["vin"].as_array().unwrap().iter();
        inputs.map(|input| (input["txid"].clone(), input["vout"].clone())).collect::<Vec<_>>()
    });
    assert!(spent[0].iter().all(|coin| !spent[1].contains(coin)), "{spent:?}");
    assert_eq!(node.call("getrawmempool", json!([])).as_array().unwrap().len(), 3);
}

#[test]
fn payment_that_arrives_during_a_mempool_read_has_the_mock_time_set_before_it() {
    let Some((host, relay)) = start_behind_relay(&["-fallbackfee=0.0001"]) else { return };
    let (mut client, mut wallet) = (host.client(), host.new_wallet("w"));
    let mine = wallet.call("getnewaddress", json!([]));
    let mut node = host.node_client();
    node.call("createwallet", json!(["theirs"]));
    node.mine(102);
    let held = relay.hold("getrawmempool", Point::Request);
    // The host notices the first payment and asks for the mempool, which holds the second one by then.
    node.call("sendtoaddress", json!([mine, 1]));
    let held = held.recv().unwrap();
    client.call("setmocktime", json!([SET_TIME]));
    let second = node.call("sendtoaddress", json!([mine, 2]));
    held.pass();
    let mut time = || wallet.try_call("gettransaction", json!([second])).map(|found| found["time"].clone());
    wait_until("the wallet has the payment", || time().is_ok());
    assert_eq!(time(), Ok(json!(SET_TIME)));
}

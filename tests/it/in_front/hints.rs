//! The host reaches the node's state even if ZMQ notifications are lost, late or cut off.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use outrigger_tests::{Bitcoind, Client, Host, HostOptions, Relay, bitcoind, wait_until};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{ADDRESS, before};
use crate::kills::Numbers;
use crate::metrics::ask;

/// The number of changes on the node, and the changes between comparisons of wallet and node.
const CHANGES: u64 = 120;
const COMPARED_EVERY: u64 = 30;

const GREETING: usize = 64;

fn publishing(folder: &TempDir) -> Option<(Bitcoind, PathBuf)> {
    let path = bitcoind::installed()?;
    let socket = folder.path().join("zmq");
    let publish = format!("-zmqpubsequence=unix:{}", socket.display());
    Some((Bitcoind::start_with(path, &[&publish, "-fallbackfee=0.0001", "-txindex=1"]).0, socket))
}

fn host_before(node: Bitcoind, settings: &[&str]) -> Host {
    before(node, &[&["metrics.listen=127.0.0.1:0"], settings].concat())
}

fn source(host: &Host) -> String {
    let page = ask(host.metrics.unwrap(), "GET /metrics");
    let line = page.lines().find_map(|line| line.strip_prefix("outrigger_node_hints{source=\""));
    line.and_then(|rest| rest.split('"').next()).unwrap_or_default().to_owned()
}

/// The height of the only wallet, from metrics: the host does not ask the node.
fn height(host: &Host) -> f64 {
    let page = ask(host.metrics.unwrap(), "GET /metrics");
    let line = page.lines().find(|line| line.starts_with("outrigger_wallet_height"));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(-1.0)
}

#[test]
fn host_hears_of_blocks_and_payments_by_zmq_if_the_node_lists_it() {
    let folder = tempfile::tempdir().unwrap();
    let Some((node, _)) = publishing(&folder) else { return };
    let host = host_before(node, &[]);
    let mut wallet = host.new_wallet("w");
    let mine = wallet.call("getnewaddress", json!([]));
    let mut node = host.node_client();
    node.call("createwallet", json!(["funds"]));
    node.mine(101);
    // The host relies on the publisher only after its first notification.
    wait_until("the first notification", || {
        node.call("generatetoaddress", json!([1, ADDRESS]));
        source(&host) == "zmq"
    });
    let blocks = node.call("getblockcount", json!([])).as_f64().unwrap();
    wait_until("the wallet has the blocks", || (height(&host) - blocks).abs() < 0.5);
    let paid = node.call("sendtoaddress", json!([mine, 1]));
    wait_until("the wallet has the payment", || wallet.try_call("gettransaction", json!([paid])).is_ok());
    assert_eq!(source(&host), "zmq");
}

#[test]
fn node_without_zmq_and_waiting_calls_is_polled() {
    let folder = tempfile::tempdir().unwrap();
    let Some((node, _)) = publishing(&folder) else { return };
    let host = host_before(node, &["backend.zmq=off", "backend.long_connections=0"]);
    host.new_wallet("w");
    host.node_client().call("generatetoaddress", json!([3, ADDRESS]));
    wait_until("the wallet has the blocks", || (height(&host) - 3.0).abs() < 0.5);
    assert_eq!(source(&host), "poll");
}

#[test]
fn node_with_one_thread_is_polled_and_answers_meanwhile() {
    let Some(path) = bitcoind::installed() else { return };
    let [conf, log] = [(); 2].map(|()| tempfile::NamedTempFile::new().unwrap());
    std::fs::write(conf.path(), "rpcthreads=1\n").unwrap();
    let (node, _) = Bitcoind::start_with(path, &[&format!("-conf={}", conf.path().display())]);
    let relay = Relay::to(node.address);
    let options = HostOptions::with(&[&format!("backend.url=http://{}", relay.address), "metrics.listen=127.0.0.1:0"]);
    let options = HostOptions { log: Some(log.path().to_owned()), ..options };
    let mut host = Host::start_before(tempfile::tempdir().unwrap(), options, Some(node));
    let mut client = host.client();
    wait_until("the host waits at the node", || relay.count("waitfornewblock") == 1);
    let asked = relay.count("getbestblockhash");
    wait_until("the host asks for blocks", || {
        assert_eq!(client.call("getblockcount", json!([])), json!(0));
        relay.count("getbestblockhash") >= asked + 5
    });
    assert_eq!(relay.count("waitfornewblock"), 1, "it was tried once");
    let told = "a long poll occupies the node's last thread (-rpcthreads): the host polls for blocks once a second";
    wait_until("the log says so", || std::fs::read_to_string(log.path()).unwrap().contains(told));
    // With more threads, the host waits again.
    host.bitcoind().restart(|_| std::fs::write(conf.path(), "rpcthreads=4\n").unwrap());
    wait_until("the host waits at the node again", || source(&host) == "wait");
}

/// A proxy between the node's publisher and the host: it drops messages, delays some until the next one, and closes connections.
struct Proxy {
    address: SocketAddr,
    honest: Arc<AtomicBool>,
    counts: Arc<Mutex<[u32; 3]>>,
}

impl Proxy {
    fn start(publisher: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (honest, counts) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new([0; 3])));
        let (is_honest, counted, publisher) = (honest.clone(), counts.clone(), publisher.to_owned());
        std::thread::spawn(move || {
            let mut numbers = Numbers(7);
            for client in listener.incoming() {
                let (mut client, Ok(node)) = (client.unwrap(), UnixStream::connect(&publisher)) else { return };
                let (mut from_client, mut to_node) = (client.try_clone().unwrap(), node.try_clone().unwrap());
                std::thread::spawn(move || std::io::copy(&mut from_client, &mut to_node));
                relay(&mut &node, &mut client, &mut numbers, &is_honest, &counted);
                let _ = (node.shutdown(Shutdown::Both), client.shutdown(Shutdown::Both));
            }
        });
        Self { address, honest, counts }
    }
}

/// Passes messages on until a connection ends.
fn relay(
    from: &mut impl Read,
    to: &mut impl Write,
    numbers: &mut Numbers,
    honest: &AtomicBool,
    counts: &Mutex<[u32; 3]>,
) -> Option<()> {
    let mut greeting = [0; GREETING];
    from.read_exact(&mut greeting).ok()?;
    to.write_all(&greeting).ok()?;
    let mut held = Vec::new();
    loop {
        let (message, is_command) = message(from)?;
        let count = |what: usize| counts.lock().unwrap()[what] += 1;
        let chance = if is_command || honest.load(Ordering::SeqCst) { 100 } else { numbers.below(100) };
        held.extend(if chance < 20 { Vec::new() } else { message });
        match chance {
            0..20 => count(0),
            20..40 => count(1),
            40..43 => {
                count(2);
                return None;
            }
            _ => to.write_all(&std::mem::take(&mut held)).ok()?,
        }
    }
}

/// The bytes of one ZMTP message or command, and whether it is a command.
fn message(from: &mut impl Read) -> Option<(Vec<u8>, bool)> {
    let mut bytes = Vec::new();
    loop {
        let mut head = [0; 2];
        from.read_exact(&mut head).ok()?;
        let mut body = vec![0; usize::from(head[1])];
        from.read_exact(&mut body).ok()?;
        bytes.extend_from_slice(&head);
        bytes.extend(body);
        if head[0] & 1 == 0 {
            return Some((bytes, head[0] & 4 != 0));
        }
    }
}

/// A wallet's confirmed and mempool transactions; it may never have heard of transactions that were replaced early.
fn transactions(wallet: &mut Client, mempool: &Value) -> Vec<String> {
    let listed = wallet.call("listtransactions", json!(["*", 1000]));
    let counts = |entry: &&Value| {
        entry["confirmations"].as_i64().unwrap() > 0 || mempool.as_array().unwrap().contains(&entry["txid"])
    };
    let entry = |entry: &Value| format!("{} {} {}", entry["txid"], entry["vout"], entry["confirmations"]);
    let mut entries: Vec<String> = listed.as_array().unwrap().iter().filter(counts).map(entry).collect();
    entries.sort();
    entries
}

#[test]
fn wallet_and_mempool_match_the_node_despite_lost_notifications() {
    let folder = tempfile::tempdir().unwrap();
    let Some((node, publisher)) = publishing(&folder) else { return };
    let proxy = Proxy::start(&publisher);
    // Without calls that wait for blocks, the host depends on notifications and polls.
    let publisher = format!("backend.zmq=tcp://{}", proxy.address);
    let host = host_before(node, &[&publisher, "backend.long_connections=0"]);
    let mut wallet = host.new_wallet("w");
    let node = host.node.as_ref().unwrap();
    let mut twin = bitcoind::twin(node.client(), &mut wallet);
    let mine = wallet.call("getnewaddress", json!([]));
    let mut client = node.client();
    let mut funds = client.create_wallet("funds", json!({}));
    funds.mine(120);
    let (mut numbers, mut last) = (Numbers(11), Value::Null);
    for change in 1..=CHANGES {
        match numbers.below(10) {
            0 => {
                let to = if numbers.below(2) == 0 { &json!(ADDRESS) } else { &mine };
                funds.call("generatetoaddress", json!([1, to]));
            }
            1 => {
                let tip = funds.call("getbestblockhash", json!([]));
                funds.call("invalidateblock", json!([tip]));
                // Mine to a new address: the same block would be invalid again.
                funds.mine(2);
            }
            // The node refuses this once the payment is confirmed.
            2 | 3 => drop(funds.try_call("bumpfee", json!([last]))),
            4 => drop(funds.call("sendtoaddress", json!([ADDRESS, 0.5]))),
            _ => last = funds.call("sendtoaddress", json!([mine, 0.01])),
        }
        if change % COMPARED_EVERY == 0 {
            // The next notification reveals the loss by its sequence number.
            proxy.honest.store(true, Ordering::SeqCst);
            funds.call("sendtoaddress", json!([ADDRESS, 0.5]));
            let mempool = funds.call("getrawmempool", json!([]));
            // The node's wallet also follows its mempool with a delay.
            wait_until("the wallet is at the node's truth", || {
                let balances = |wallet: &mut Client| wallet.call("getbalances", json!([]))["mine"].clone();
                transactions(&mut wallet, &mempool) == transactions(&mut twin, &mempool)
                    && balances(&mut wallet) == balances(&mut twin)
            });
            proxy.honest.store(false, Ordering::SeqCst);
        }
    }
    let counts = *proxy.counts.lock().unwrap();
    assert!(counts.iter().all(|count| *count > 0), "lost, held back, cut: {counts:?}");
}

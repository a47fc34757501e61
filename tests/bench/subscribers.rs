//! Many subscriptions of `subscribe_events`: how soon all of them report a payment, and a block.

use std::thread;
use std::time::{Duration, Instant};

use outrigger_tests::{Host, HostOptions, NOBODY, WebSocket};
use serde_json::{Value, json};

use crate::{median, milliseconds};

const SUBSCRIBERS: usize = 1_000;
const ROUNDS: u32 = 11;

pub fn run() {
    crate::raise_file_limit();
    let host = Host::start_with(HostOptions::with(&["rpc.max_connections=2000", "rpc.max_long_calls=2000"]));
    let mut wallet = host.new_wallet("w");
    wallet.mine(101 + ROUNDS);
    let mut sockets: Vec<WebSocket> = (0..SUBSCRIBERS).map(|_| host.client().wallet("w").websocket()).collect();
    for socket in &mut sockets {
        socket.call("subscribe_events", json!([])).unwrap();
    }
    let (mut paid, mut mined) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        // Until all subscriptions wait again after the last event.
        thread::sleep(Duration::from_secs(1));
        let began = Instant::now();
        let txid = wallet.call("sendtoaddress", json!([NOBODY, "0.01"]));
        paid.push(told(&mut sockets, began, |event| event["txid"] == txid));
        thread::sleep(Duration::from_secs(1));
        let began = Instant::now();
        let block = wallet.call("generatetoaddress", json!([1, NOBODY]))[0].clone();
        mined.push(told(&mut sockets, began, |event| event["kind"] == "block" && event["blockhash"] == block));
    }
    println!("| what | outrigger |\n|---|---|");
    println!("| until {SUBSCRIBERS} subscribers know of a payment, median | {:.1} ms |", milliseconds(median(paid)));
    println!("| until they know of a block, median | {:.1} ms |", milliseconds(median(mined)));
}

fn told(sockets: &mut [WebSocket], began: Instant, is_it: impl Fn(&Value) -> bool) -> Duration {
    for socket in sockets {
        while !is_it(&socket.receive()["params"]["result"]) {}
    }
    began.elapsed()
}

//! The host publishes the same messages over ZMQ as bitcoind.

use std::time::Duration;

use bitcoin::{Amount, OutPoint, Transaction};
use outrigger_tests::pair::{COIN, Pair, spend};
use outrigger_tests::{HostOptions, wait_until};
use outrigger_zmq::{Stream, Subscription, ZmqEndpoint};
use serde_json::json;

const TOPICS: [&str; 5] = ["hashblock", "hashtx", "rawblock", "rawtx", "sequence"];

const PATIENCE: Duration = Duration::from_secs(60);

/// The longest accepted part of a message, in bytes.
const MAX_BLOCK: u64 = 8 << 20;

type Message = (String, Vec<u8>, u32);

fn message(parts: &[Vec<u8>]) -> Message {
    let [topic, body, number] = parts else { panic!("{} parts", parts.len()) };
    (String::from_utf8(topic.clone()).unwrap(), body.clone(), u32::from_le_bytes(number[..].try_into().unwrap()))
}

/// All messages up to the block's `rawblock`, which is the last one if everything is subscribed to. Without it, those before the timeout.
fn up_to(subscription: &mut Subscription<Box<dyn Stream>>, block: &str) -> Vec<Message> {
    let hash = || block.parse::<bitcoin::BlockHash>().unwrap();
    let mut messages = Vec::new();
    while let Ok(message) = subscription.read().map(|parts| message(&parts)) {
        let is_last = message.0 == "rawblock"
            && bitcoin::consensus::deserialize::<bitcoin::Block>(&message.1).unwrap().block_hash() == hash();
        messages.push(message);
        if is_last {
            break;
        }
    }
    messages
}

/// Messages as lines, numbered from the first message of their topic: at its very first start bitcoind also announces the genesis block.
fn told(messages: &[Message]) -> String {
    let line = |(topic, body, number): &Message| {
        let first = messages.iter().find(|(other, ..)| other == topic).map_or(0, |(_, _, first)| *first);
        let body: String = body.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{} {topic} {body}\n", number - first)
    };
    messages.iter().map(line).collect()
}

/// A host and a node that publish everything at sockets in a folder, and the sockets.
fn publishing(folder: &std::path::Path) -> Option<(Pair, [ZmqEndpoint; 2])> {
    let paths = ["ours", "theirs"].map(|name| folder.join(name));
    let set = TOPICS.map(|topic| format!("notify.zmqpub{topic}=ipc://{}", paths[0].display())).to_vec();
    let arguments = TOPICS.map(|topic| format!("-zmqpub{topic}=unix:{}", paths[1].display()));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let pair = Pair::start(HostOptions { set, ..HostOptions::default() }, &arguments, 110)?;
    Some((pair, paths.map(ZmqEndpoint::Ipc)))
}

/// Subscribes to everything at both, and returns the subscriptions once both have received a message.
fn subscribed(pair: &mut Pair, endpoints: [ZmqEndpoint; 2]) -> [Subscription<Box<dyn Stream>>; 2] {
    // A subscription takes effect after a while: the test mines blocks until both subscribers have received a message.
    let waiting = endpoints.map(|endpoint| {
        std::thread::spawn(move || {
            let mut subscription = endpoint.subscribe(&TOPICS.map(str::as_bytes), MAX_BLOCK, PATIENCE).unwrap();
            subscription.read().unwrap();
            subscription
        })
    });
    wait_until("both are subscribed to", || {
        pair.mine();
        waiting.iter().all(std::thread::JoinHandle::is_finished)
    });
    let mark = pair.mine();
    waiting.map(|thread| {
        let mut subscription = thread.join().unwrap();
        up_to(&mut subscription, &mark);
        subscription
    })
}

/// Makes each kind of change, and a block at the end. Returns the hash of this block.
fn session(pair: &mut Pair) -> String {
    let sat = Amount::from_sat;
    let of = |transaction: &Transaction, vout| OutPoint::new(transaction.compute_txid(), vout);
    let parent = spend(&[pair.coin()], &[COIN - sat(2_000), sat(1_000)]);
    let child = spend(&[of(&parent, 0)], &[COIN - sat(3_000)]);
    let [one, other] = [child.clone(), spend(&[of(&parent, 1), pair.coin()], &[COIN])];
    for transaction in [&parent, &one, &other] {
        pair.send(transaction);
    }
    // Replaces all three.
    let replacement =
        spend(&parent.input.iter().map(|input| input.previous_output).collect::<Vec<_>>(), &[COIN - sat(90_000)]);
    pair.send(&replacement);
    pair.mine();
    // A block that confirms one mempool transaction, and one that conflicts with two of them.
    let coins = [pair.coin(), pair.coin()];
    let kept = spend(&coins[..1], &[COIN - sat(5_000)]);
    let excluded = spend(&coins[1..], &[COIN - sat(5_000)]);
    let built_on_it = spend(&[of(&excluded, 0)], &[COIN - sat(9_000)]);
    for transaction in [&kept, &excluded, &built_on_it] {
        pair.send(transaction);
    }
    let conflict = spend(&coins[1..], &[COIN - sat(7_000)]);
    pair.mine_only(&[kept.clone(), conflict.clone()]);
    // A longer branch without these blocks returns both transactions to the mempool.
    pair.fork();
    pair.mine_only(&[]);
    pair.mine_only(&[]);
    pair.settle();
    pair.same_mempool();
    // The tip is invalidated and reconsidered.
    let tip = pair.host.client().call("getbestblockhash", json!([]));
    for method in ["invalidateblock", "reconsiderblock"] {
        pair.same(method, &json!([tip]));
        pair.settle();
        pair.same_mempool();
    }
    pair.mine();
    pair.mine()
}

#[test]
fn zmq_messages_are_those_of_bitcoind() {
    let folder = tempfile::tempdir().unwrap();
    let Some((mut pair, endpoints)) = publishing(folder.path()) else { return };
    let [ours, theirs] = endpoints.clone();
    let listed = pair.host.client().call("getzmqnotifications", json!([]));
    let text = pair.node.client().call("getzmqnotifications", json!([])).to_string();
    let paths = [ours, theirs].map(|endpoint| match endpoint {
        ZmqEndpoint::Ipc(path) => path.display().to_string(),
        ZmqEndpoint::Tcp(..) => panic!("not a file"),
    });
    assert_eq!(listed.to_string(), text.replace(&paths[1], &paths[0]));
    let mut subscriptions = subscribed(&mut pair, endpoints);
    let last = session(&mut pair);
    let [ours, theirs] = subscriptions.each_mut().map(|subscription| up_to(subscription, &last));
    let [ours, theirs] = [ours, theirs].map(|list| told(&list));
    assert!(ours == theirs, "ours:\n{ours}\n\ntheirs:\n{theirs}");
}

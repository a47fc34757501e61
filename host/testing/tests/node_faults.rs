//! Tests wallets on a node that hangs, is unreachable, or returns no blocks. `histories` plays the other faults.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a broken expectation fails the test")]

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use bitcoin::ScriptBuf;
use outrigger_node::Node as _;
use outrigger_scripted_node::ScriptedNode;
use outrigger_sdk::testing::{PendingCall, TestPlugin};
use outrigger_service::ErrorKind;
use outrigger_service::wallet::AddressType;
use outrigger_service::wire::Secret;
use outrigger_testing::TestHost;
use outrigger_wallet::WalletPlugin;
use serde_json::{Value, json};

/// The time limit of a call that does not need the node; it allows for a busy machine. A call that waits for the node
/// always fails, since the node answers only when the test lets it.
const AT_ONCE: Duration = Duration::from_secs(20);
const PATIENCE: Duration = Duration::from_secs(60);

struct Fixture {
    host: TestHost<ScriptedNode>,
    plugin: Arc<TestPlugin<WalletPlugin>>,
}

impl Fixture {
    fn new() -> Self {
        let host = TestHost::over(ScriptedNode::new());
        host.create_wallet("w", |options| options.passphrase = Secret::new("pass".into())).unwrap();
        let plugin = host.start(json!({}));
        Self { host, plugin: Arc::new(plugin) }
    }

    /// A new address of the wallet.
    fn script(&self) -> ScriptBuf {
        let view = self.host.wallet("w").unwrap();
        view.wallet().new_address(AddressType::Bech32, false, Some("rent".into())).unwrap()
    }

    fn mine_to(&self, script: &ScriptBuf) {
        let (_, events) = self.host.node.connect(script.clone(), Vec::new());
        self.host.node.tell(events);
    }

    /// Calls a method on its own thread. Returns the receiver of the answer.
    fn begin(&self, method: &'static str, arguments: Value) -> Receiver<PendingCall> {
        let (plugin, (answer, answered)) = (self.plugin.clone(), channel());
        thread::spawn(move || {
            let _ = answer.send(plugin.begin(method, arguments));
        });
        answered
    }

    /// Makes a call that must not wait for the node, and returns its result.
    #[track_caller]
    fn at_once(&self, method: &'static str, arguments: Value) -> Value {
        let call = self.begin(method, arguments).recv_timeout(AT_ONCE);
        call.unwrap_or_else(|_| panic!("{method} waits for the node")).answer().unwrap().unwrap()
    }

    fn coins(&self) -> usize {
        self.host.wallet("w").unwrap().coins(None, 100).unwrap().coins.len()
    }
}

fn await_that(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what} does not come");
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn setlabel_walletlock_and_getnewaddress_do_not_wait_for_a_node_that_hangs() {
    let test = Fixture::new();
    let script = test.script();
    let address = outrigger_sdk::standard::from_script(&script, test.host.node.network()).unwrap();
    test.host.node.faults.set_hanging(true);
    test.mine_to(&script);
    test.host.node.faults.wait_for_a_victim();
    test.at_once("walletpassphrase", json!(["pass", 1000]));
    test.at_once("getnewaddress", json!([]));
    test.at_once("setlabel", json!([address, "food"]));
    test.at_once("getaddressinfo", json!([address]));
    test.at_once("walletlock", json!([]));
    // A call that needs the newest block waits for it, and then sees it.
    let balance = test.begin("getbalances", json!([]));
    assert_eq!(balance.recv_timeout(Duration::from_millis(50)).err(), Some(RecvTimeoutError::Timeout));
    test.host.node.faults.set_hanging(false);
    let balance = balance.recv_timeout(PATIENCE).unwrap().answer().unwrap().unwrap();
    assert_eq!(balance["mine"]["immature"].to_string(), "50.00000000");
    assert_eq!(test.at_once("getaddressinfo", json!([address]))["labels"], json!(["food"]));
}

#[test]
fn a_wallet_is_locked_in_time_while_the_node_hangs() {
    let test = Fixture::new();
    test.host.node.faults.set_hanging(true);
    test.mine_to(&ScriptBuf::new());
    test.host.node.faults.wait_for_a_victim();
    test.at_once("walletpassphrase", json!(["pass", 1]));
    let view = test.host.wallets.select_as_it_stands(Some("w")).unwrap();
    await_that("the lock", || view.info().unwrap().locked);
    test.host.node.faults.set_hanging(false);
}

#[test]
fn a_wallet_tells_what_it_knows_while_the_node_cannot_be_reached_and_catches_up_then() {
    let mut test = Fixture::new();
    let script = test.script();
    test.mine_to(&script);
    assert_eq!(test.coins(), 1);
    test.host.node.faults.set_absent(true);
    test.mine_to(&script);
    assert_eq!(test.coins(), 1);
    assert!(test.host.wallets.status()[0].lagging);
    // A wallet can be loaded while the node is unreachable, and is at its last block.
    let plugin = Arc::into_inner(test.plugin).unwrap();
    plugin.stop();
    test.host.restart(|_| {});
    let view = test.host.wallet("w").unwrap();
    assert_eq!((view.info().unwrap().synced.height, view.coins(None, 9).unwrap().coins.len()), (1, 1));
    drop(view);
    test.host.node.faults.set_absent(false);
    await_that("the second block", || {
        let view = test.host.wallet("w").unwrap();
        view.info().unwrap().synced.height == 2 && view.coins(None, 9).unwrap().coins.len() == 2
    });
    await_that("the end of its lag", || !test.host.wallets.status()[0].lagging);
}

#[test]
fn a_block_that_cannot_be_read_is_tried_again() {
    let test = Fixture::new();
    let script = test.script();
    test.host.node.faults.set_unreadable(1);
    test.mine_to(&script);
    let refused = test.host.wallet("w").err().unwrap();
    assert_eq!(refused.kind, ErrorKind::Storage);
    test.host.node.faults.set_readable();
    await_that("the block", || test.host.wallet("w").is_ok_and(|view| view.info().unwrap().synced.height == 1));
    assert_eq!(test.coins(), 1);
}

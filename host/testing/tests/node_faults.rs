//! Tests wallets on a node that hangs. `histories` plays the other faults.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a broken expectation fails the test")]

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use bitcoin::ScriptBuf;
use outrigger_node::Node as _;
use outrigger_scripted_node::ScriptedNode;
use outrigger_sdk::testing::{PendingCall, TestPlugin};
use outrigger_service::wallet::AddressType;
use outrigger_service::wire::Secret;
use outrigger_testing::{TestHost, until};
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
    /// An encrypted wallet whose node hangs before it gives a block that pays this script of the wallet.
    fn new() -> (Self, ScriptBuf) {
        let host = TestHost::over(ScriptedNode::new());
        host.create_wallet("w", |options| options.passphrase = Secret::new("pass".into())).unwrap();
        let view = host.wallet("w").unwrap();
        let script = view.wallet().new_address(AddressType::Bech32, false, Some("rent".into())).unwrap();
        drop(view);
        let plugin = Arc::new(host.start(json!({})));
        host.node.faults.set_hanging(true);
        let (_, events) = host.node.connect(script.clone(), Vec::new());
        host.node.tell(events);
        host.node.faults.wait_for_a_victim();
        (Self { host, plugin }, script)
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
}

#[test]
fn setlabel_walletlock_and_getnewaddress_do_not_wait_for_a_node_that_hangs() {
    let (test, script) = Fixture::new();
    let address = outrigger_sdk::standard::from_script(&script, test.host.node.network()).unwrap();
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
    let (test, _) = Fixture::new();
    test.at_once("walletpassphrase", json!(["pass", 1]));
    let view = test.host.wallets.select_as_it_stands(Some("w")).unwrap();
    until("the wallet is locked", || view.info().unwrap().locked);
    test.host.node.faults.set_hanging(false);
}

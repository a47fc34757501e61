//! Events of wallet transactions, from `waitevents` and from subscriptions.

use outrigger_tests::{Client, Host, HostOptions, NOBODY, WebSocket};
use serde_json::{Value, json};

use crate::users::{ALICE, with_user};

/// The longest wait for an event, in milliseconds.
const PATIENCE: u64 = 60_000;

/// Reads the event log of a client's wallet.
struct Reader {
    wallet: Client,
    since: Value,
}

impl Reader {
    /// Reads from now on.
    fn of(mut wallet: Client) -> Self {
        let since = wallet.call("waitevents", json!([]))["next"].clone();
        Self { wallet, since }
    }

    /// Reads the next events until each expected transaction has its kind of event. Returns them.
    #[track_caller]
    fn expect(&mut self, expected: &[(&Value, &str)]) -> Vec<Value> {
        let mut told = Vec::new();
        while told.len() < expected.len() {
            let answer = self.wallet.call("waitevents", json!([self.since, PATIENCE]));
            assert_ne!(answer["events"], json!([]), "expected {expected:?}, told {told:#?}");
            assert_eq!(answer["missed"], json!([]));
            self.since = answer["next"].clone();
            let events = answer["events"].as_array().unwrap().clone();
            told.extend(events.into_iter().filter(|event| expected.iter().any(|(txid, _)| **txid == event["txid"])));
        }
        let mut kinds: Vec<String> = told.iter().map(|event| format!("{} {}", event["txid"], event["kind"])).collect();
        let mut wanted: Vec<String> = expected.iter().map(|(txid, kind)| format!("{txid} {}", json!(kind))).collect();
        kinds.sort();
        wanted.sort();
        assert_eq!(kinds, wanted, "{told:#?}");
        told
    }
}

fn check_all_kinds(host: &Host) {
    let mut wallet = host.new_wallet("w");
    let mine = wallet.call("getnewaddress", json!(["rent"]));
    wallet.call("generatetoaddress", json!([101, mine]));
    let mut log = Reader::of(host.client().wallet("w"));
    let first = wallet.call("sendtoaddress", json!([NOBODY, 1]));
    let seen = log.expect(&[(&first, "seen")]).remove(0);
    assert_eq!((&seen["wallet"], &seen["blockhash"]), (&json!("w"), &Value::Null));
    let detail = wallet.call("gettransaction", json!([first]))["details"][0].clone();
    let payment = &seen["payments"][0];
    for key in ["address", "category", "amount", "vout"] {
        assert_eq!(payment[key], detail[key], "{key}");
    }
    assert_eq!((&seen["fee"], seen["payments"].as_array().unwrap().len()), (&detail["fee"], 1));

    let second = wallet.call("bumpfee", json!([first]))["txid"].clone();
    log.expect(&[(&second, "seen"), (&first, "replaced")]);
    let block = wallet.call("generatetoaddress", json!([1, NOBODY]))[0].clone();
    let height = wallet.call("getblockcount", json!([]));
    for event in log.expect(&[(&second, "confirmed"), (&first, "conflicted")]) {
        assert_eq!((&event["blockhash"], &event["blockheight"]), (&block, &height));
    }
    wallet.call("generatetoaddress", json!([5, NOBODY]));
    let deep = log.expect(&[(&second, "deep")]).remove(0);
    assert_eq!((&deep["blockhash"], &deep["blockheight"]), (&block, &height));

    wallet.call("invalidateblock", json!([block]));
    let told = log.expect(&[(&second, "reorganised"), (&first, "seen"), (&first, "replaced")]);
    let reorganised = told.iter().find(|event| event["txid"] == second).unwrap();
    assert_eq!((&reorganised["blockhash"], &reorganised["blockheight"]), (&block, &height));
    wallet.call("abandontransaction", json!([first]));
    log.expect(&[(&first, "abandoned")]);
    wallet.call("removeprunedfunds", json!([first]));
    let removed = log.expect(&[(&first, "removed")]).remove(0);
    assert_eq!(removed["payments"], json!([]));
}

/// waitevents reports each change of a transaction, and subscribe_events reports blocks and payments.
fn check_events(host: &Host) {
    check_subscription(host);
    check_all_kinds(host);
}

#[test]
fn events_report_each_change_of_a_transaction() {
    check_events(&Host::start());
}

#[test]
fn in_front_events_report_each_change_of_a_transaction() {
    if outrigger_tests::bitcoind::installed().is_some() {
        check_events(&Host::start_with(HostOptions::in_front_of(&[])));
    }
}

#[test]
fn waitevents_continues_after_a_kill_and_reuses_no_number_after_a_restore() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("backup").display().to_string();
    let host = Host::start();
    let mut wallet = host.new_wallet("w");
    wallet.mine(101);
    wallet.call("backupwallet", json!([file]));
    let mut log = Reader::of(host.client().wallet("w"));
    let paid = wallet.call("sendtoaddress", json!([NOBODY, 1]));
    log.expect(&[(&paid, "seen")]);
    wallet.call("generatetoaddress", json!([3, NOBODY]));
    log.expect(&[(&paid, "confirmed")]);
    let told = |wallet: &mut Client| -> Vec<String> {
        let events = wallet.call("waitevents", json!([0]))["events"].clone();
        let told = |event: &Value| format!("{} {} {}", event["number"], event["kind"], event["txid"]);
        events.as_array().unwrap().iter().map(told).collect()
    };
    let before = told(&mut wallet);
    let host = host.kill_and_restart();
    host.client().call("loadwallet", json!(["w"]));
    let mut wallet = host.client().wallet("w");
    // The wallet may have followed the last blocks only after the log was read.
    assert_eq!(told(&mut wallet)[..before.len()], before);
    wallet.call("generatetoaddress", json!([3, NOBODY]));
    let mut log = Reader { wallet: host.client().wallet("w"), since: log.since };
    log.expect(&[(&paid, "deep")]);
    assert_eq!(wallet.call("waitevents", json!([log.since, 1]))["events"], json!([]));

    let lost = log.since.as_u64().unwrap();
    // A number beyond the end is answered at once.
    assert_eq!(wallet.call("waitevents", json!([lost + 1_000_000_000]))["next"], log.since);
    wallet.call("unloadwallet", json!(["w"]));
    host.client().call("restorewallet", json!(["restored", file]));
    let mut log = Reader { wallet: host.client().wallet("restored"), since: json!(lost) };
    for event in log.expect(&[(&paid, "confirmed"), (&paid, "deep")]) {
        assert!(event["number"].as_u64().unwrap() > lost, "{event}");
    }
}

/// The next events of a subscription, up to the first of this kind.
fn until(socket: &mut WebSocket, id: &Value, kind: &str) -> Value {
    loop {
        let message = socket.receive();
        assert_eq!((&message["method"], &message["params"]["subscription"]), (&json!("events"), id), "{message}");
        let event = message["params"]["result"].clone();
        if event["kind"] == kind {
            return event;
        }
    }
}

fn check_subscription(host: &Host) {
    let mut wallet = host.new_wallet("subscribed");
    let mine = wallet.call("getnewaddress", json!([]));
    let mut socket = host.client().websocket();
    let id = socket.call("subscribe_events", json!([])).unwrap();
    let block = wallet.call("generatetoaddress", json!([101, mine]))[100].clone();
    loop {
        let told = until(&mut socket, &id, "block");
        if told["blockhash"] == block {
            assert_eq!(told["blockheight"], 101);
            break;
        }
    }
    let mut of_wallet = host.client().wallet("subscribed").websocket();
    let other = of_wallet.call("subscribe_events", json!({"since": 0})).unwrap();
    assert_eq!(until(&mut of_wallet, &other, "confirmed")["payments"][0]["address"], mine);
    let paid = wallet.call("sendtoaddress", json!([NOBODY, 1]));
    for (socket, id) in [(&mut socket, &id), (&mut of_wallet, &other)] {
        assert_eq!(until(socket, id, "seen")["txid"], paid);
    }
    assert_eq!(of_wallet.call("unsubscribe_events", json!([other])), Ok(json!(true)));
    wallet.call("sendtoaddress", json!([NOBODY, 1]));
    // The next message is the answer: the host sent no event before it.
    assert_eq!(of_wallet.call("unsubscribe_events", json!([other])), Ok(json!(false)));
}

#[test]
fn waitevents_and_subscribe_events_keep_to_the_users_wallets_and_lists() {
    let bob = ALICE.replacen("alice", "bob", 1);
    let carol = ALICE.replacen("alice", "carol", 1);
    let carol = format!("\n\n[[rpc.users]]\nrpcauth = \"{carol}\"\nmethods = [\"subscribe_events\"]");
    let (host, mut alice) =
        with_user(&format!("wallet = \"a\"\n\n[[rpc.users]]\nrpcauth = \"{bob}\"\nmethods = [\"waitevents\"]{carol}"));
    let (mut one, mut other) = (host.new_wallet("a"), host.new_wallet("b"));
    let mut client = host.client();
    let next = client.call("waitevents", json!([null, 0, ["a", "b"]]))["next"].clone();
    let waiting = client.begin_call("waitevents", json!([next, PATIENCE]));
    other.mine(1);
    let told = &waiting.answer()["result"];
    assert_eq!((&told["events"][0]["wallet"], &told["events"][0]["kind"]), (&json!("b"), &json!("confirmed")));
    assert_eq!((&told["next"]["a"], &told["next"]["b"]), (&next["a"], &told["events"][0]["number"]));

    assert_eq!(alice.refused("waitevents", json!([{"b": 0}])).0, -18);
    assert_eq!(alice.refused("waitevents", json!([0, 0, ["a", "b"]])).0, -18);
    let mut of_carol = Client::new(host.address, "carol:pass:word").websocket();
    let id = of_carol.call("subscribe_events", json!([])).unwrap();
    other.mine(1);
    assert_eq!(until(&mut of_carol, &id, "confirmed")["wallet"], "b");
    let mut of_alice = alice.websocket();
    assert_eq!(of_alice.call("subscribe_events", json!([null, ["b"]])), Err(-18));
    assert!(of_alice.call("subscribe_events", json!([])).is_ok());
    let mut of_bob = Client::new(host.address, "bob:pass:word").websocket();
    assert_eq!(of_bob.call("subscribe_events", json!([])), Err(-32603));
    assert_eq!(client.refused("subscribe_events", json!([])).0, -32601);
    // Unloading a wallet ends the wait and the subscription with an error.
    let waiting = alice.begin_call("waitevents", json!([0, PATIENCE]));
    one.call("unloadwallet", json!(["a"]));
    assert_eq!(waiting.answer()["error"]["code"], -18);
    assert_eq!(of_alice.receive()["params"]["error"]["code"], -18);
}

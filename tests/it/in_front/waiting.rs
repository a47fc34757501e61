//! Calls that wait for a block or a template: they wait in the host, and occupy no thread of the node.

use std::io::{Read, Write};
use std::net::Shutdown;

use outrigger_tests::{Bitcoind, Client, Host, Pending, Point, wait_until};
use serde_json::{Value, json};

use super::{ADDRESS, start, start_behind_relay};

/// The methods of the calls in progress, without the getrpcinfo call itself.
fn active(client: &mut Client) -> Vec<Value> {
    let info = client.call("getrpcinfo", json!([]));
    let methods = info["active_commands"].as_array().unwrap().iter().map(|call| call["method"].clone());
    methods.filter(|method| *method != "getrpcinfo").collect()
}

#[test]
fn hundreds_of_long_polls_hold_no_thread_of_a_small_node() {
    let Some(host) = start(&["-rpcthreads=4", "-rpcworkqueue=16"]) else { return };
    let (mut client, mut node) = (host.client(), host.node_client());
    // Ends the initial block download, during which the node makes no templates.
    client.call("generatetoaddress", json!([1, ADDRESS]));
    let template = client.call("getblocktemplate", json!([{"rules": ["segwit"]}]));
    let mut wallet = host.new_wallet("w");
    let polls: Vec<Pending> = (0..100)
        .map(|id| {
            let rules = ["segwit".to_owned(), format!("r{id}")];
            client.begin_call("getblocktemplate", json!([{"rules": rules, "longpollid": template["longpollid"]}]))
        })
        .collect();
    let waits: Vec<Pending> = (0..100).map(|_| client.begin_call("waitfornewblock", json!([]))).collect();
    wait_until("all wait", || active(&mut client).len() == polls.len() + waits.len());
    // The host asks the node once whether it refuses the polls. Then the node has none of them, but at most one waiting call of the host.
    // Host and node answer other calls meanwhile.
    wait_until("the node has none of them", || {
        (0..50).all(|_| {
            assert_eq!(client.call("getblockcount", json!([])), json!(1));
            assert_eq!(wallet.call("getbalance", json!([])).as_f64(), Some(0.0));
            let at_node = active(&mut node);
            assert!(at_node.iter().filter(|method| **method == "waitfornewblock").count() <= 1, "{at_node:?}");
            at_node.iter().all(|method| method != "getblocktemplate")
        })
    });
    let hash = node.call("generatetoaddress", json!([1, ADDRESS]))[0].clone();
    client.call("getbestblockhash", json!([]));
    for poll in polls {
        let reply = poll.finish();
        let answer: Value = serde_json::from_str(&reply.body).unwrap();
        assert_eq!(answer["result"]["previousblockhash"], hash, "{}", &reply.body[..200.min(reply.body.len())]);
    }
    for wait in waits {
        assert_eq!(wait.answer()["result"], json!({"hash": hash, "height": 2}));
    }
}

#[test]
fn waiting_calls_end_with_their_clients_and_answer_as_the_node_does() {
    let Some(host) = start(&[]) else { return };
    let (mut client, mut node) = (host.client(), host.node_client());
    let request = json!({"id": 1, "method": "waitfornewblock", "params": []}).to_string();
    let waiting = client.begin(&request);
    let [half_closed, closed] = [(); 2].map(|()| {
        let mut stream = client.connect();
        stream.write_all(client.request(&request).as_bytes()).unwrap();
        stream
    });
    wait_until("all wait", || active(&mut client).len() == 3);
    half_closed.shutdown(Shutdown::Write).unwrap();
    // Closed in order, as by a process that ended after it had read everything.
    drop(closed);
    let mut answer = String::new();
    (&half_closed).read_to_string(&mut answer).unwrap();
    let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(body["error"]["code"], json!(-9), "{body}");
    wait_until("one is left", || active(&mut client).len() == 1);
    // A call goes on if its client may still send.
    let hash = client.call("generatetoaddress", json!([1, ADDRESS]))[0].clone();
    assert_eq!(waiting.answer()["result"], json!({"hash": hash, "height": 1}));
    let hash = client.call("generatetoaddress", json!([2, ADDRESS]))[1].clone();
    for (method, params) in [
        ("waitforblock", json!([hash, 1000])),
        ("waitforblockheight", json!([2])),
        ("waitforblockheight", json!({"height": 3, "timeout": 100})),
        ("waitforblockheight", json!([4, 50])),
        ("waitfornewblock", json!([50])),
        ("waitforblock", json!(["x"])),
        ("waitfornewblock", json!(["x"])),
        // Beyond 32 bits. If the host took them, these calls would return at once.
        ("waitforblockheight", json!([1_u64 << 31, 1])),
        ("waitforblockheight", json!({"height": 2, "timeout": 1_u64 << 31})),
        ("waitforblock", json!([hash, 1_u64 << 32])),
        ("waitfornewblock", json!([1_u64 << 40, "77".repeat(32)])),
    ] {
        assert_eq!(client.try_call(method, params.clone()), node.try_call(method, params.clone()), "{method} {params}");
    }
}

/// The tip in the answer of a call.
fn tip_of(call: Pending) -> Value {
    let answer = call.answer();
    assert!(answer["error"].is_null(), "{answer}");
    answer["result"].clone()
}

/// The node's best block, in the form in which waiting calls return it.
fn tip(host: &Host) -> Value {
    let mut node = host.node_client();
    let hash = node.call("getbestblockhash", json!([]));
    json!({"hash": hash, "height": node.call("getblockheader", json!([hash]))["height"]})
}

/// Checks that each waiting call returns this tip, whose height is at least 3; `former` was the tip before.
fn check_answered(host: &Host, former: &Value, tip: &Value) {
    let waits = [
        ("waitfornewblock", json!([0, former["hash"]])),
        ("waitforblock", json!([tip["hash"]])),
        ("waitforblockheight", json!([3])),
    ];
    for (method, params) in waits {
        assert_eq!(tip_of(host.client().begin_call(method, params)), *tip, "{method}");
    }
}

#[test]
fn waiting_calls_return_no_old_block_and_fail_at_once_where_the_node_refuses_them() {
    let Some((host, relay)) = start_behind_relay(&[]) else { return };
    host.client().call("generatetoaddress", json!([1, ADDRESS]));
    // If a client has seen a block, its waiting calls return that block or a later one.
    let (mut client, mut node) = (host.client(), host.node_client());
    // Limits of one millisecond: a call that has to wait returns the newest block.
    type Params = fn(&Value) -> Value;
    let waits: [(&str, Params); 4] = [
        ("waitforblockheight", |_| json!([1])),
        ("waitforblock", |former| json!([former["hash"], 1])),
        ("waitfornewblock", |former| json!([0, former["hash"]])),
        ("waitfornewblock", |_| json!([1])),
    ];
    for (method, params) in waits {
        let former = tip(&host);
        // The host asks for the best block, and the relay holds the request.
        let held = relay.hold("getbestblockhash", Point::Request).recv().unwrap();
        node.call("generatetoaddress", json!([1, ADDRESS]));
        let shown = client.call("getblockcount", json!([]));
        let asked = relay.count("getbestblockhash");
        let call = client.begin_call(method, params(&former));
        // The call waits for the held request, or sends its own.
        wait_until("it has begun", || {
            relay.count("getbestblockhash") > asked || active(&mut client).contains(&json!(method))
        });
        held.pass();
        let told = tip_of(call);
        assert_eq!((&told["height"], &told), (&shown, &tip(&host)), "{method}");
    }
    // The host does not hold long polls that the node refuses or answers at once.
    let (mut client, mut node) = (host.client(), host.node_client());
    let template = client.call("getblocktemplate", json!([{"rules": ["segwit"], "longpollid": null}]));
    let id = &template["longpollid"];
    for request in [
        json!({"rules": ["segwit"], "longpollid": ""}),
        json!({"longpollid": ""}),
        json!({"rules": [5], "longpollid": id}),
        json!({"rules": ["segwit"], "longpollid": 5, "mode": "x"}),
    ] {
        let answers = [&mut client, &mut node].map(|side| side.try_call("getblocktemplate", json!([request])));
        assert!(answers[0].is_err() && answers[0] == answers[1], "{request}: {answers:?}");
    }
    // The answers of a mainnet node without peers, and of one in its initial download.
    let downloads = "Bitcoin Core is in initial sync and waiting for blocks...";
    for (code, words) in [(-9, "Bitcoin is not connected!"), (-10, downloads)] {
        let refusal = json!({"result": null, "error": {"code": code, "message": words}, "id": 1}).to_string();
        relay.change("longpollid", move |_| Some(refusal.clone().into_bytes()));
        let refused = client.refused("getblocktemplate", json!([{"rules": ["segwit"], "longpollid": id}]));
        assert_eq!(refused, (code, words.to_owned()));
    }
}

#[test]
fn waiting_calls_return_any_other_tip() {
    let Some(mut host) = start(&[]) else { return };
    let mut client = host.client();
    client.call("generatetoaddress", json!([5, ADDRESS]));
    // The node leaves a chain of five blocks for a lower branch.
    let former = tip(&host);
    let call = client.begin_call("waitforblockheight", json!([6]));
    wait_until("it waits", || active(&mut client).len() == 1);
    let third = client.call("getblockhash", json!([3]));
    client.call("invalidateblock", json!([third]));
    client.call("generatetodescriptor", json!([1, "raw(51)"]));
    let now = tip(&host);
    assert_eq!(now["height"], 3);
    check_answered(&host, &former, &now);
    // A call that waits for a greater height continues.
    wait_until("it alone waits", || active(&mut client) == [json!("waitforblockheight")]);
    client.call("generatetodescriptor", json!([3, "raw(51)"]));
    assert_eq!(tip_of(call), tip(&host));
    // The node's operator calls the best block invalid.
    let former = tip(&host);
    // The call names the tip: the host may read it after the call is active.
    let call = client.begin_call("waitfornewblock", json!([0, former["hash"]]));
    wait_until("it waits", || active(&mut client).len() == 1);
    client.call("invalidateblock", json!([former["hash"]]));
    let now = tip(&host);
    assert_eq!(now["height"], 5);
    assert_eq!(tip_of(call), now);
    check_answered(&host, &former, &now);
    // A tip that nobody knows differs from the current one, so the call returns.
    check_answered(&host, &json!({"hash": "77".repeat(32)}), &tip(&host));
    // Another node with another chain replaces this one.
    let former = tip(&host);
    let call = client.begin_call("waitfornewblock", json!([0, former["hash"]]));
    wait_until("it waits", || active(&mut client).len() == 1);
    host.bitcoind().restart(Bitcoind::lose_data);
    host.node_client().call("generatetodescriptor", json!([3, "raw(52)"]));
    let now = tip(&host);
    wait_until("the node is reached", || {
        client.try_call("getbestblockhash", json!([])).is_ok_and(|hash| hash == now["hash"])
    });
    check_answered(&host, &former, &now);
    // The call may have returned one of the first blocks of that chain.
    assert_ne!(tip_of(call)["hash"], former["hash"]);
}

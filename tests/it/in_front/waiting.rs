//! Calls that wait for a block or a template: they wait in the host, and hold no thread of the node.

use std::io::{Read, Write};
use std::net::Shutdown;

use outrigger_tests::{Client, Pending, wait_until};
use serde_json::{Value, json};

use super::start;

const ADDRESS: &str = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";

/// The methods of the calls that are being answered, without that which asks.
fn active(client: &mut Client) -> Vec<Value> {
    let info = client.call("getrpcinfo", json!([]));
    let methods = info["active_commands"].as_array().unwrap().iter().map(|call| call["method"].clone());
    methods.filter(|method| *method != "getrpcinfo").collect()
}

#[test]
fn hundreds_of_long_polls_hold_no_thread_of_a_small_node() {
    let Some(host) = start(&["-rpcthreads=4", "-rpcworkqueue=16"]) else { return };
    let (mut client, mut node) = (host.client(), host.node.as_ref().unwrap().client());
    // Out of initial download, without which there are no templates.
    client.call("generatetoaddress", json!([1, ADDRESS]));
    let template = client.call("getblocktemplate", json!([{"rules": ["segwit"]}]));
    let mut wallet = host.new_wallet("w");
    let polls: Vec<Pending> = (0..500)
        .map(|id| {
            let rules: Vec<String> = std::iter::once("segwit".to_owned()).chain([format!("r{id}")]).collect();
            let params = json!([{"rules": rules, "longpollid": template["longpollid"]}]);
            client.begin(&json!({"id": id, "method": "getblocktemplate", "params": params}).to_string())
        })
        .collect();
    let waits: Vec<Pending> = (0..100)
        .map(|id| client.begin(&json!({"id": id, "method": "waitfornewblock", "params": []}).to_string()))
        .collect();
    wait_until("all wait", || active(&mut client).len() == polls.len() + waits.len());
    // The node has none of them, at most one call of the host itself that waits, and serves others meanwhile, as the host does.
    for _ in 0..50 {
        assert_eq!(client.call("getblockcount", json!([])), json!(1));
        assert_eq!(wallet.call("getbalance", json!([])).as_f64(), Some(0.0));
        let at_node = active(&mut node);
        assert!(at_node.iter().all(|method| method != "getblocktemplate"), "{at_node:?}");
        assert!(at_node.iter().filter(|method| **method == "waitfornewblock").count() <= 1, "{at_node:?}");
    }
    let hash = node.call("generatetoaddress", json!([1, ADDRESS]))[0].clone();
    client.call("getbestblockhash", json!([]));
    for poll in polls {
        let reply = poll.finish();
        let answer: Value = serde_json::from_str(&reply.body).unwrap();
        assert_eq!(answer["result"]["previousblockhash"], hash, "{}", &reply.body[..200.min(reply.body.len())]);
    }
    for wait in waits {
        let answer: Value = serde_json::from_str(&wait.finish().body).unwrap();
        assert_eq!(answer["result"], json!({"hash": hash, "height": 2}));
    }
}

#[test]
fn passed_long_polls_end_when_their_clients_send_no_more() {
    let Some(host) = start(&[]) else { return };
    let mut client = host.client();
    let request = json!({"id": 1, "method": "waitfornewblock", "params": []}).to_string();
    let waiting = client.begin(&request);
    let [half_closed, closed] = [(); 2].map(|()| {
        let mut stream = client.connect();
        stream.write_all(client.request(&request).as_bytes()).unwrap();
        stream
    });
    wait_until("all wait", || active(&mut client).len() == 3);
    half_closed.shutdown(Shutdown::Write).unwrap();
    // In order, as of a process that is gone and has read all that it was sent.
    drop(closed);
    let mut answer = String::new();
    (&half_closed).read_to_string(&mut answer).unwrap();
    let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(body["error"]["code"], json!(-9), "{body}");
    wait_until("one is left", || active(&mut client).len() == 1);
    // One whose client may send more goes on.
    let hash = client.call("generatetoaddress", json!([1, ADDRESS]))[0].clone();
    let body: Value = serde_json::from_str(&waiting.finish().body).unwrap();
    assert_eq!(body["result"], json!({"hash": hash, "height": 1}));
}

#[test]
fn waitforblock_and_waitforblockheight_answer_as_the_node() {
    let Some(host) = start(&[]) else { return };
    let (mut client, mut node) = (host.client(), host.node.as_ref().unwrap().client());
    let hash = client.call("generatetoaddress", json!([3, ADDRESS]))[2].clone();
    for (method, params) in [
        ("waitforblock", json!([hash, 1000])),
        ("waitforblockheight", json!([2])),
        ("waitforblockheight", json!({"height": 3, "timeout": 100})),
        ("waitforblockheight", json!([4, 50])),
        ("waitfornewblock", json!([50])),
        ("waitforblock", json!(["x"])),
        ("waitfornewblock", json!(["x"])),
    ] {
        assert_eq!(client.try_call(method, params.clone()), node.try_call(method, params.clone()), "{method} {params}");
    }
}

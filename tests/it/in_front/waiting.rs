//! Calls that wait for a block or a template: they wait in the host, and hold no thread of the node.

use outrigger_tests::Pending;
use serde_json::{Value, json};

use super::start;

const ADDRESS: &str = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";

#[test]
fn hundreds_of_long_polls_hold_no_thread_of_a_small_node() {
    let Some(host) = start(&["-rpcthreads=4", "-rpcworkqueue=16"]) else { return };
    let (mut client, mut node) = (host.client(), host.node.as_ref().unwrap().client());
    // Out of initial download, without which there are no templates.
    client.call("generatetoaddress", json!([1, ADDRESS]));
    let template = client.call("getblocktemplate", json!([{"rules": ["segwit"]}]));
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
    // The node serves others meanwhile, with all that waits.
    for _ in 0..50 {
        assert_eq!(client.call("getblockcount", json!([])), json!(1));
        assert_eq!(node.call("getblockcount", json!([])), json!(1));
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

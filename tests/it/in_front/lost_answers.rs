//! If the answer of a call that the node may have executed is lost, the host does not ask the client to retry.

use std::io::Write;
use std::net::TcpStream;
use std::process::{Command, Stdio};

use outrigger_tests::{Client, Host, Point, Relay};
use serde_json::{Value, json};

use super::failures::until_answered;
use super::groups::MINING;
use super::{ADDRESS, start_behind_relay_with};

fn assert_told(answer: &Value, method: &str) {
    let told = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(answer["error"]["code"] == -4 && told.contains(&format!("it may have done '{method}'")), "{answer}");
}

fn refuse_credentials(host: &mut TcpStream) -> std::io::Result<()> {
    host.write_all(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
}

/// A signed payment of the node's wallet that is not sent.
fn payment(node: &mut Client) -> Value {
    let unsent = node.call("createrawtransaction", json!([[], [{ADDRESS: 1}]]));
    let funded = node.call("fundrawtransaction", json!([unsent, {"lockUnspents": true}]))["hex"].clone();
    node.call("signrawtransactionwithwallet", json!([funded]))["hex"].clone()
}

#[test]
fn lost_answer_of_a_call_with_effects_is_reported_as_4_and_of_others_as_28() {
    let set = ["backend.wallets=node", "plugins=[]", "rpc.shutdown_grace_seconds=5"];
    let Some((mut host, relay)) = start_behind_relay_with(&["-fallbackfee=0.0001"], &set) else { return };
    let mut node = host.node_client();
    node.call("createwallet", json!(["theirs"]));
    node.fund(8);
    check_lost_answers(&host, &relay);
    // The node has executed nothing if it refuses the credentials.
    let held = relay.hold("sendtoaddress", Point::Request);
    let pending = host.client().begin_call("sendtoaddress", json!([ADDRESS, 1]));
    held.recv().unwrap().answer(refuse_credentials);
    assert_eq!(pending.refused().0, -28);
    until_answered(&mut host.client(), "getblockcount");
    // Malformed and truncated replies.
    // The second reply would be streamed to the client if the method had no effects.
    for head in ["Content-Length: 6\r\n\r\n<html>", "Content-Length: 3000000\r\n\r\n{\"result\":["] {
        let held = relay.hold("generatetoaddress", Point::Reply);
        let pending = host.client().begin_call("generatetoaddress", json!([1, ADDRESS]));
        held.recv().unwrap().answer(move |host| {
            host.write_all(format!("HTTP/1.1 200 OK\r\n{head}").as_bytes())?;
            host.shutdown(std::net::Shutdown::Both)
        });
        assert_told(&pending.answer(), "generatetoaddress");
    }
    until_answered(&mut host.client(), "getblockcount");
    // curl pays once when a signal stops the host during the call on a keep-alive connection.
    let held = relay.hold("sendtoaddress", Point::Reply);
    let url = format!("http://{}/", host.address);
    let cookie = host.cookie();
    let mut curl = Command::new("curl");
    for (number, call) in
        [json!({"method": "getblockcount"}), json!({"method": "sendtoaddress", "params": [ADDRESS, 1]})]
            .iter()
            .enumerate()
    {
        curl.args(["--next"].iter().take(number));
        curl.args(["--silent", "--user", &cookie, "--data-binary", &call.to_string(), &url]);
    }
    let curl = curl.stdout(Stdio::piped()).spawn().unwrap();
    let held = held.recv().unwrap();
    assert!(host.terminate().success());
    let told = String::from_utf8(curl.wait_with_output().unwrap().stdout).unwrap();
    drop(held);
    let answers: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(answers.len() == 2 && answers[0]["error"].is_null(), "{told}");
    assert_told(&answers[1], "sendtoaddress");
    let mut node = host.node_client();
    assert_eq!(node.call("getrawmempool", json!([])).as_array().unwrap().len(), 1);
}

fn check_lost_answers(host: &Host, relay: &Relay) {
    let mut node = host.node_client();
    let mut blocks = node.call("getblockcount", json!([])).as_u64().unwrap();
    let calls: [(&'static str, Value); 6] = [
        ("sendrawtransaction", json!([payment(&mut node)])),
        ("submitpackage", json!([[payment(&mut node)]])),
        ("sendtoaddress", json!([ADDRESS, 1])),
        ("sendmany", json!(["", {ADDRESS: 1}])),
        ("prioritisetransaction", json!(["11".repeat(32), 0, 5])),
        ("generatetoaddress", json!([1, ADDRESS])),
    ];
    for (method, params) in calls {
        let held = relay.hold(method, Point::Reply);
        let pending = host.client().begin_call(method, params);
        drop(held.recv().unwrap());
        assert_told(&pending.answer(), method);
        if method == "sendmany" {
            // In a batch, each call fails by its method.
            let held = relay.hold("sendtoaddress", Point::Reply);
            let batch = json!([
                {"id": 1, "method": "getblockcount"},
                {"id": 2, "method": "sendtoaddress", "params": [ADDRESS, 1]},
                {"id": 3, "method": "getbalance"},
            ]);
            let pending = host.client().begin(&batch.to_string());
            drop(held.recv().unwrap());
            let answers = pending.answer();
            assert_eq!(answers[0]["result"], json!(blocks), "{answers}");
            assert_told(&answers[1], "sendtoaddress");
            assert!(answers[2]["error"].is_null(), "{answers}");
            // The node executed each call once.
            assert_eq!(node.call("getrawmempool", json!([])).as_array().unwrap().len(), 5);
        }
    }
    blocks += 1;
    assert_eq!(node.call("getblockcount", json!([])), json!(blocks));
    assert_eq!(node.call("getprioritisedtransactions", json!([]))["11".repeat(32)]["fee_delta"], json!(5));
    let held = relay.hold("getbalance", Point::Reply);
    let pending = host.client().begin_call("getbalance", json!([]));
    drop(held.recv().unwrap());
    let told = pending.answer();
    assert_eq!(told["error"]["code"], -28, "{told}");
}

#[test]
fn lost_answer_of_a_call_that_the_host_makes_for_a_group_is_reported_as_4() {
    // The errors for the mining group also pass from process to process.
    let mining = MINING.replace("trusted = true", "isolated = true, sandbox = \"best-effort\"");
    let plugins = format!("plugins=[{mining}]");
    let Some((host, relay)) = start_behind_relay_with(&[], &[&plugins]) else { return };
    let (mut client, mut node) = (host.client(), host.node_client());
    let tip = node.call("generatetoaddress", json!([1, ADDRESS]))[0].clone();
    let block = node.call("getblock", json!([tip, 0]));
    let calls: [(&'static str, Value); 5] = [
        ("preciousblock", json!([tip])),
        ("prioritisetransaction", json!(["11".repeat(32), 0, 5])),
        ("submitheader", json!([block.as_str().unwrap()[..160]])),
        ("submitblock", json!([block])),
        ("generatetoaddress", json!([1, ADDRESS])),
    ];
    for (method, params) in calls {
        // The group itself generates the blocks.
        let asked = if method == "generatetoaddress" { "submitblock" } else { method };
        let held = relay.hold(asked, Point::Request);
        let pending = client.begin_call(method, params);
        drop(held.recv().unwrap());
        assert_told(&pending.answer(), asked);
    }
    // The node has the first of three blocks. It refuses the second before it looks at it, or its answer is lost.
    for is_refused in [true, false] {
        let first = relay.hold("submitblock", Point::Reply);
        let pending = client.begin_call("generatetoaddress", json!([3, ADDRESS]));
        let first = first.recv().unwrap();
        let second = relay.hold("submitblock", Point::Request);
        first.pass();
        let second = second.recv().unwrap();
        if is_refused {
            second.answer(refuse_credentials);
        } else {
            drop(second);
        }
        let (code, told) = pending.refused();
        assert!(code == -4 && told.starts_with("1 of 3 blocks were mined, then: "), "{told}");
        until_answered(&mut client, "getmininginfo");
    }
    // The node has executed the call, but the host cannot read its answer.
    relay.change_answers(|method, answer| {
        if method == "submitblock" {
            answer["result"] = json!(7);
        }
    });
    assert_told(&client.begin_call("submitblock", json!([block])).answer(), "submitblock");
}

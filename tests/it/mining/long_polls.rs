use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::mpsc;

use outrigger_tests::{Client, Host, HostOptions, NOBODY, miner, wait_until};
use serde_json::{Value, json};

use super::{anyone, calls_of_mining, request};

const POLLS: u64 = 2_000;

/// The file descriptors left to the other tests, if the system allows fewer than the polls need.
const SPARE_FILES: u64 = 256;

#[test]
fn getblocktemplate_longpoll_returns_at_new_tip_without_its_client_and_at_stop() {
    let mut host = Host::start();
    let mut client = host.client();
    let longpollid = client.call("getblocktemplate", request())["longpollid"].clone();
    let poll = json!([{"rules": ["segwit"], "longpollid": longpollid}]);
    let (sender, answers) = mpsc::channel();
    for _ in 0..3 {
        let (mut waiting, poll, sender) = (host.client(), poll.clone(), sender.clone());
        std::thread::spawn(move || sender.send(waiting.try_call("getblocktemplate", poll)).unwrap());
    }
    until_calls(&mut client, 4);
    let template = client.call("getblocktemplate", request());
    let block = miner::build(&template, anyone());
    assert!(answers.try_recv().is_err(), "a long poll did not wait");
    assert_eq!(client.call("submitblock", json!([miner::hex(&block)])), Value::Null);
    for _ in 0..3 {
        let woken = answers.recv().unwrap().unwrap();
        assert_eq!(woken["previousblockhash"], json!(block.block_hash().to_string()));
    }
    // A poll with the id of another tip does not wait.
    assert_eq!(client.call("getblocktemplate", poll)["height"], json!(2));
    end_polls_whose_clients_send_no_more(&mut client);
    let longpollid = client.call("getblocktemplate", request())["longpollid"].clone();
    let mut waiting = host.client();
    let poll = json!([{"rules": ["segwit"], "longpollid": longpollid}]);
    let thread = std::thread::spawn(move || waiting.try_call("getblocktemplate", poll));
    until_calls(&mut client, 2);
    client.call("stop", json!([]));
    let error = thread.join().unwrap().unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (-9, "Shutting down"));
    assert!(host.wait().success());
}

#[test]
fn getblocktemplate_longpolls_by_thousands_share_one_template_and_block_no_other_call() {
    let polls = open_files().saturating_sub(SPARE_FILES).min(POLLS);
    let host = Host::start_with(HostOptions::with(&["rpc.threads=2", &format!("rpc.queue_depth={POLLS}")]));
    let mut client = host.client();
    let template = client.call("getblocktemplate", request());
    let poll = json!([{"rules": ["segwit"], "longpollid": template["longpollid"]}]);
    let body = json!({"id": 1, "method": "getblocktemplate", "params": poll}).to_string();
    let before = calls_of_mining(&mut client);
    let waiting: Vec<_> = (0..polls).map(|_| client.begin(&body)).collect();
    wait_until("the plugin has all long polls", || calls_of_mining(&mut client) >= before + polls);
    // Long polls occupy no thread: the host answers other calls while all of them wait.
    assert_eq!(client.call("getblocktemplate", request())["longpollid"], template["longpollid"]);
    let block = miner::build(&template, anyone());
    assert_eq!(client.call("submitblock", json!([miner::hex(&block)])), Value::Null);
    let answers: Vec<String> = waiting.into_iter().map(|poll| poll.finish().body).collect();
    let first: Value = serde_json::from_str(&answers[0]).unwrap();
    // A poll that had not waited would return the first height.
    assert_eq!(first["result"]["height"], json!(2));
    assert!(answers.iter().all(|answer| *answer == answers[0]), "not all were answered by the same template");
}

fn open_files() -> u64 {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

#[test]
fn getblocktemplate_longpoll_beyond_max_long_calls_is_refused() {
    let host = Host::start_with(HostOptions::with(&["rpc.max_long_calls=0"]));
    let mut client = host.client();
    let template = client.call("getblocktemplate", json!([{"rules": ["segwit"]}]));
    let poll = json!([{"rules": ["segwit"], "longpollid": template["longpollid"]}]);
    let reply = client.post(&json!({"id": 1, "method": "getblocktemplate", "params": poll}).to_string());
    assert_eq!((reply.status, reply.body.as_str()), (503, "Work queue depth exceeded"));
    // A call that does not wait is answered as always.
    let again = client.call("getblocktemplate", json!([{"rules": ["segwit"]}]));
    assert_eq!(again["longpollid"], template["longpollid"]);
    // The host never refuses a submitted block at this limit: it may already be accepted.
    let block = miner::build(&template, anyone());
    assert_eq!(client.call("submitblock", json!([miner::hex(&block)])), Value::Null);
}

fn calls(client: &mut Client) -> usize {
    client.call("getrpcinfo", json!([]))["active_commands"].as_array().unwrap().len()
}

/// Waits until this many calls are in progress, including the asking one.
#[track_caller]
fn until_calls(client: &mut Client, count: usize) {
    wait_until(&format!("{count} calls are being answered"), || calls(client) == count);
}

fn end_polls_whose_clients_send_no_more(client: &mut Client) {
    let template = client.call("getblocktemplate", request());
    let poll = json!([{"rules": ["segwit"], "longpollid": template["longpollid"]}]);
    let poll = json!({"method": "getblocktemplate", "params": poll, "id": 1}).to_string();
    let waiting = client.begin(&poll);
    until_calls(client, 2);
    let mut half_closed = client.connect();
    half_closed.write_all(client.request(&poll).as_bytes()).unwrap();
    half_closed.shutdown(Shutdown::Write).unwrap();
    // Closed in order, as by a process that ended after it had read everything.
    let mut closed = client.connect();
    closed.write_all(client.request(&poll).as_bytes()).unwrap();
    until_calls(client, 4);
    drop(closed);
    let mut answer = String::new();
    half_closed.read_to_string(&mut answer).unwrap();
    let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(body["error"]["code"], -9, "{body}");
    assert!(body["error"]["message"].as_str().unwrap().contains("long poll has ended"), "{body}");
    until_calls(client, 2);
    // The poll of a client that may still send continues.
    client.call("generatetoaddress", json!([1, NOBODY]));
    let reply = waiting.finish();
    assert_eq!(reply.status, 200, "{}", reply.body);
}

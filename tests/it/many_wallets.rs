//! Many loaded wallets at a time.

use outrigger_tests::{Host, HostOptions};
use serde_json::json;

/// How many wallets are loaded.
const WALLETS: usize = 300;
/// The most threads that the whole process may have, whatever the number of wallets.
const THREADS: usize = 64;

fn threads(host: &Host) -> usize {
    std::fs::read_dir(format!("/proc/{}/task", host.process_id())).unwrap().count()
}

#[test]
fn loadwallet_three_hundred_wallets_share_a_few_threads() {
    let set = vec!["wallet.keypool=1".to_owned()];
    let mut host = Host::start_with(HostOptions { set, ..HostOptions::default() });
    let mut client = host.client();
    for number in 0..WALLETS {
        // Only some have keys, for these take longer to make.
        let blank = number % 50 != 7;
        client.call("createwallet", json!([format!("w{number}"), false, blank, "", false, true, true]));
    }
    assert_eq!(client.call("listwallets", json!([])).as_array().unwrap().len(), WALLETS);
    assert!(threads(&host) <= THREADS, "{} threads for {WALLETS} wallets", threads(&host));

    // A block reaches the one that it pays; the others stand where it stands.
    let address = client.wallet("w7").call("getnewaddress", json!([]));
    let mut client = host.client();
    let block = client.call("generatetoaddress", json!([1, address]))[0].clone();
    assert_eq!(host.client().wallet("w7").call("getbalances", json!([]))["mine"]["immature"], 50.0);
    for number in [0, 57, WALLETS - 1] {
        let info = host.client().wallet(&format!("w{number}")).call("getwalletinfo", json!([]));
        assert_eq!((&info["lastprocessedblock"]["hash"], &info["txcount"]), (&block, &json!(0)));
    }

    // What was followed in memory is followed after a kill too.
    client.call("generatetoaddress", json!([3, "bcrt1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqdku202"]));
    host = host.kill_and_restart();
    let mut client = host.client();
    assert_eq!(client.call("listwallets", json!([])).as_array().unwrap().len(), WALLETS);
    assert!(threads(&host) <= THREADS, "{} threads for {WALLETS} wallets", threads(&host));
    let tip = client.call("getbestblockhash", json!([]));
    for number in [7, 57, WALLETS - 1] {
        let info = host.client().wallet(&format!("w{number}")).call("getwalletinfo", json!([]));
        assert_eq!(info["lastprocessedblock"]["hash"], tip);
    }
    assert_eq!(host.client().wallet("w7").call("getbalances", json!([]))["mine"]["immature"], 50.0);
}

#[test]
fn createwallet_is_refused_where_the_system_gives_no_more_files() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let host = Host::start_with(HostOptions {
        open_files: Some(280),
        log: Some(log.path().to_owned()),
        set: vec!["wallet.keypool=1".to_owned()],
        ..HostOptions::default()
    });
    let said = std::fs::read_to_string(log.path()).unwrap();
    assert!(said.contains("at most 210 connections are taken"), "{said}");
    let mut client = host.client();
    for number in 0..8 {
        client.call("createwallet", json!([format!("w{number}")]));
    }
    let (code, message) = client.refused("createwallet", json!(["w8"]));
    assert!(
        code == -4 && message.contains("The system lets this process open 280 files, of which 8 loaded"),
        "{message}"
    );
    client.call("unloadwallet", json!(["w0"]));
    client.call("createwallet", json!(["w8"]));
    assert_eq!(client.refused("loadwallet", json!(["w0"])).1, message);
    client.wallet("w8").call("getnewaddress", json!([]));
}

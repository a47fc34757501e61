//! The example `spending-guard`: its limit covers every way to spend, and survives crashes, reloads and restores.

use outrigger_tests::{Client, ELSEWHERE, Host, HostOptions, all_groups, built, wait_until};
use serde_json::{Value, json};

use crate::isolation::has_sandbox;
use crate::policies::{WALLET_ERROR, fund};

/// The limit, in satoshi.
const LIMIT: u64 = 1_000_000_000;

/// The groups, with the guard for wallets whose names begin with "hot", and a limit in two hours.
fn options(limit: u64, rest: &str) -> HostOptions {
    let rest = format!(
        "grants = [\"store/1\", \"chain/1\", \"wallet-read/1\"]\n{rest}\n\
         [plugins.options]\nlimit = {limit}\nhours = 2\nbackups = true\n\
         \n[[wallet.policies]]\nwallets = [\"hot*\"]\nplugin = \"spending-guard\"\n"
    );
    HostOptions::with_plugin(&all_groups(), built().library("outrigger_spending_guard"), &rest)
}

fn start(rest: &str) -> Host {
    Host::start_with(options(LIMIT, rest))
}

fn reserved(client: &mut Client) -> f64 {
    client.call("guardstatus", json!([]))["reserved"].as_f64().unwrap()
}

#[track_caller]
fn is_refused(wallet: &mut Client, method: &str, params: Value) {
    let (code, message) = wallet.refused(method, params);
    let is_limit = message.starts_with("The policy 'spending-guard' refuses: ")
        && message.ends_with("the limit is 10.00000000 BTC");
    assert!(code == WALLET_ERROR && is_limit, "{method}: {code} {message}");
}

/// Mines blocks that span `hours`.
fn pass(client: &mut Client, hours: u64) {
    let now = client.call("getblockchaininfo", json!([]))["mediantime"].as_u64().unwrap();
    client.call("setmocktime", json!([now + hours * 3600]));
    client.call("generatetoaddress", json!([12, ELSEWHERE]));
}

#[test]
fn spending_guard_counts_signed_amounts_until_they_are_buried_and_the_hours_are_over() {
    let host = start("");
    let mut wallet = host.new_wallet("hot");
    fund(&mut wallet, 1);
    assert_eq!(reserved(&mut wallet), 0.0);
    let txid = wallet.call("sendtoaddress", json!([ELSEWHERE, 6]));
    let first = reserved(&mut wallet);
    assert!((6.0..6.01).contains(&first), "{first}");
    is_refused(&mut wallet, "sendtoaddress", json!([ELSEWHERE, 4]));
    is_refused(&mut wallet, "sendmany", json!(["", {ELSEWHERE: 4}]));
    is_refused(&mut wallet, "send", json!([{ELSEWHERE: 4}]));
    is_refused(&mut wallet, "sendall", json!([[ELSEWHERE]]));
    // A replacement spends the same coin, so only its higher fee is added.
    wallet.call("bumpfee", json!([txid]));
    assert!(reserved(&mut wallet) - first < 0.01);
    // Abandoning a payment releases nothing, since its signature still exists.
    let before = reserved(&mut wallet);
    wallet.call("abandontransaction", json!([txid]));
    is_refused(&mut wallet, "sendtoaddress", json!([ELSEWHERE, 4]));
    assert_eq!(reserved(&mut wallet), before);
    // A payment to the wallet itself costs only the fee.
    let own = wallet.call("getnewaddress", json!([]));
    wallet.call("sendtoaddress", json!([own, 40]));
    wallet.call("sendtoaddress", json!([ELSEWHERE, 3]));
    // A raw transaction, and sighash types that commit to less.
    let raw = wallet.call("createrawtransaction", json!([[], [{ELSEWHERE: 0.5}]]));
    let funded = wallet.call("fundrawtransaction", json!([raw]))["hex"].clone();
    is_refused(&mut wallet, "signrawtransactionwithwallet", json!([funded, [], "NONE"]));
    let (code, message) = wallet.refused("signrawtransactionwithwallet", json!([funded, [], "ALL|ANYONECANPAY"]));
    assert!(
        code == WALLET_ERROR && message.ends_with("A signature with ANYONECANPAY outlives the transaction"),
        "{message}"
    );
    // An import does not make a foreign address the wallet's own.
    let import = json!([[{"scriptPubKey": {"address": ELSEWHERE}, "timestamp": "now"}]]);
    assert_eq!(wallet.refused("importmulti", import).0, WALLET_ERROR);
    let signed = wallet.call("signrawtransactionwithwallet", json!([funded]));
    assert_eq!(signed["complete"], json!(true));
    // Keys are not exported, and the limit resets after the hours.
    assert_eq!(wallet.refused("listdescriptors", json!([true])).0, WALLET_ERROR);
    wallet.call("generatetoaddress", json!([6, ELSEWHERE]));
    pass(&mut wallet, 1);
    is_refused(&mut wallet, "sendtoaddress", json!([ELSEWHERE, 4]));
    // They count from the block that made the spend six deep, not from this refusal.
    pass(&mut wallet, 1);
    wallet.call("sendtoaddress", json!([ELSEWHERE, 8]));
    // A payment of another wallet ends as well.
    let mut other = host.new_wallet("hot2");
    fund(&mut other, 1);
    pass(&mut wallet, 2);
    // A signature for a coin of a payment that is then replaced ends with the replacement.
    let own = wallet.call("getnewaddress", json!([]));
    let parent = wallet.call("sendtoaddress", json!([own, 5]));
    let coins = wallet.call("listunspent", json!([0, 0]));
    let of_parent = |coin: &&Value| coin["txid"] == parent && coin["amount"] == 5.0;
    let coin = coins.as_array().unwrap().iter().find(of_parent).unwrap();
    let coin = json!([{"txid": coin["txid"], "vout": coin["vout"]}]);
    let child = wallet.call("createrawtransaction", json!([coin, [{ELSEWHERE: 4.9}]]));
    assert_eq!(wallet.call("signrawtransactionwithwallet", json!([child]))["complete"], json!(true));
    is_refused(&mut other, "sendtoaddress", json!([ELSEWHERE, 8]));
    wallet.call("bumpfee", json!([parent]));
    wallet.call("generatetoaddress", json!([6, ELSEWHERE]));
    pass(&mut wallet, 2);
    other.call("sendtoaddress", json!([ELSEWHERE, 8]));
}

#[test]
fn spending_guard_keeps_the_limit_over_crashes_reloads_and_restores() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| json!([folder.path().join(name).display().to_string()]);
    let place = if has_sandbox() { "isolated = true" } else { "" };
    let host = start(place);
    // Two instances would each allow up to the limit.
    let told = Host::check(&options(LIMIT, "reload = \"beside\""));
    let told = (told.status.code(), String::from_utf8_lossy(&told.stderr).into_owned());
    assert!(told.0 == Some(2) && told.1.contains("plugins.reload: ") && told.1.contains("keeps a store"), "{told:?}");
    let mut wallet = host.new_wallet("hot");
    fund(&mut wallet, 1);
    wallet.call("backupwallet", file("before"));
    wallet.call("sendtoaddress", json!([ELSEWHERE, 6]));
    wallet.call("backupwallet", file("after"));
    let before = reserved(&mut wallet);
    wallet.call("reloadplugin", json!(["spending-guard"]));
    assert_eq!(reserved(&mut wallet), before);
    let host = host.kill_and_restart();
    let mut wallet = host.client().wallet("hot");
    wallet.call("loadwallet", json!(["hot"]));
    assert_eq!(reserved(&mut wallet), before);
    is_refused(&mut wallet, "sendtoaddress", json!([ELSEWHERE, 5]));
    // A restored copy spends the same coins under the same limit, even a copy from before the payment.
    for name in ["before", "after"] {
        wallet.call("restorewallet", json!([format!("copy-{name}"), file(name)[0]]));
        let mut copy = host.client().wallet(&format!("copy-{name}"));
        is_refused(&mut copy, "sendtoaddress", json!([ELSEWHERE, 5]));
        assert_eq!(copy.refused("listdescriptors", json!([true])).0, WALLET_ERROR);
    }
    assert_eq!(reserved(&mut wallet), before);
    if !place.is_empty() {
        kill_its_process(&mut wallet);
    }
    drop(host);
    // The guard of a new host has no state: the backup restores the reservations, even those above a lower limit.
    let host = Host::start_with(options(LIMIT / 2, place));
    let mut client = host.client();
    client.call("restorewallet", json!(["hot", file("after")[0]]));
    assert_eq!(reserved(&mut client), before);
}

/// Kills the guard's process, and checks that no payment passes meanwhile.
fn kill_its_process(wallet: &mut Client) {
    let mut given = reserved(wallet);
    for _ in 0..2 {
        wallet.kill_plugin("spending-guard");
        // The host asks the guard again once its new process is up, or refuses the payment.
        if wallet.try_call("sendtoaddress", json!([ELSEWHERE, 1])).is_ok() {
            given += 1.0;
        }
        wait_until("the guard is up again", || wallet.try_call("guardstatus", json!([])).is_ok());
        assert!(reserved(wallet) >= given);
    }
    is_refused(wallet, "sendtoaddress", json!([ELSEWHERE, 10]));
}

//! A node that lost blocks: the host rewinds as far as the operator allows.

use outrigger_tests::{Bitcoind, Client, Host, HostOptions, bitcoind, wait_until};
use serde_json::{Value, json};

use super::nodes::import;
use super::operators::checked;
use super::{ADDRESS, start_set};
use crate::metrics::ask;
use crate::operator::logged_with;

/// A host whose node has ten blocks that pay the wallet, the wallet, and the hashes and bytes of the blocks.
fn with_ten_blocks() -> Option<(Host, Client, Vec<Value>, Vec<Value>)> {
    // Longer than the node is behind in any of these tests.
    let set = ["backend.max_rewind=3", "backend.behind_seconds=3600", "metrics.listen=127.0.0.1:0"];
    let host = start_set(&[], &set)?;
    let (mut client, mut wallet) = (host.client(), host.new_wallet("w"));
    let mine = wallet.call("getnewaddress", json!([]));
    let hashes = client.call("generatetoaddress", json!([10, mine])).as_array().unwrap().clone();
    let blocks = hashes.iter().map(|hash| client.call("getblock", json!([hash, 0]))).collect();
    assert_eq!(wallet.call("getwalletinfo", json!([]))["lastprocessedblock"]["height"], 10);
    Some((host, wallet, hashes, blocks))
}

/// Replaces the blocks of the host's node by these. Returns a client of the node.
fn lose_all_but(host: &mut Host, blocks: &[Value]) -> Client {
    host.bitcoind().restart(Bitcoind::lose_data);
    let mut node = host.node_client();
    for block in blocks {
        assert_eq!(node.call("submitblock", json!([block])), json!(null));
    }
    node
}

#[test]
fn host_follows_a_deep_rewind_when_the_operator_allows_it() {
    let Some((mut host, mut wallet, hashes, blocks)) = with_ten_blocks() else { return };
    // The node loses all blocks, and gets half of them back.
    lose_all_but(&mut host, &blocks[..5]);
    let best = hashes[4].as_str().unwrap();
    let words = format!(
        "the node's best block {best} is 5 blocks before ours, and at most 3 are gone back (backend.max_rewind); if the node is right, \
         set backend.allow_rewind_to = \"{best}\" and restart"
    );
    wait_until("the host holds", || wallet.call("getwalletinfo", json!([]))["warnings"] == json!([words]));
    let metrics = host.metrics.unwrap();
    assert!(ask(metrics, "GET /metrics").contains("outrigger_node_blocks_behind 5.0"));
    assert!(!is_ready(&host));
    let info = wallet.call("getwalletinfo", json!([]));
    assert_eq!((&info["lastprocessedblock"]["height"], &info["txcount"]), (&json!(10), &json!(10)));
    // A restart that allows one block more and names a later block changes nothing.
    let later = format!("backend.allow_rewind_to={}", hashes[6].as_str().unwrap());
    host = host.restart_otherwise(|options| options.set.extend(["backend.max_rewind=4".to_owned(), later]));
    host.client().call("loadwallet", json!(["w"]));
    let info = host.client().wallet("w").call("getwalletinfo", json!([]));
    assert_eq!(info["lastprocessedblock"]["height"], 10);
    host = host.restart_with(format!("backend.allow_rewind_to={best}"));
    let loaded = host.client().call("loadwallet", json!(["w"]));
    assert_eq!(loaded, json!({"name": "w"}));
    let mut wallet = host.client().wallet("w");
    let info = wallet.call("getwalletinfo", json!([]));
    assert_eq!((&info["lastprocessedblock"]["height"], info.get("warnings")), (&json!(5), None));
    assert!(ask(host.metrics.unwrap(), "GET /metrics").contains("outrigger_node_blocks_behind 0.0"));
    // The node gets the other blocks back.
    for block in &blocks[5..] {
        assert_eq!(host.client().call("submitblock", json!([block])), json!(null));
    }
    assert_eq!(wallet.call("getwalletinfo", json!([]))["lastprocessedblock"]["height"], 10);
}

fn is_ready(host: &Host) -> bool {
    ask(host.metrics.unwrap(), "GET /readyz").starts_with("HTTP/1.1 200")
}

#[test]
fn host_halts_at_a_deep_rewind_to_a_branch_with_less_work() {
    let Some((mut host, mut wallet, hashes, blocks)) = with_ten_blocks() else { return };
    let mine_own = |mut node: Client| node.call("generatetoaddress", json!([1, ADDRESS]))[0].clone();
    // Two blocks back with one new block: the host follows.
    let own = mine_own(lose_all_but(&mut host, &blocks[..8]));
    wait_until("the host follows", || wallet.call("getwalletinfo", json!([]))["lastprocessedblock"]["hash"] == own);
    wait_until("the host is ready", || is_ready(&host));
    // Seven blocks back with one new block: the host halts.
    let best = mine_own(lose_all_but(&mut host, &blocks[..2]));
    let (best, fork) = (best.as_str().unwrap(), hashes[1].as_str().unwrap());
    let words = format!(
        "the node's best block {best} has less work than ours and leaves our chain 7 blocks before its end, and at most 3 are gone back \
         (backend.max_rewind); if the node is right, set backend.allow_rewind_to = \"{fork}\" and restart"
    );
    wait_until("the host holds", || wallet.call("getwalletinfo", json!([]))["warnings"] == json!([words]));
    assert_eq!(wallet.call("getwalletinfo", json!([]))["lastprocessedblock"]["hash"], own);
    assert!(!is_ready(&host));
    host = host.restart_with(format!("backend.allow_rewind_to={fork}"));
    assert_eq!(host.client().call("loadwallet", json!(["w"])), json!({"name": "w"}));
    let info = host.client().wallet("w").call("getwalletinfo", json!([]));
    assert_eq!((&info["lastprocessedblock"]["hash"], info.get("warnings")), (&json!(best), None));
    assert!(is_ready(&host));
}

#[test]
fn host_waits_for_a_node_that_has_the_headers_of_its_lost_blocks() {
    let Some((mut host, mut wallet, _, mut blocks)) = with_ten_blocks() else { return };
    host.new_wallet("late").call("unloadwallet", json!([]));
    // More blocks than the host keeps in memory for its wallets.
    let mined = host.client().call("generatetoaddress", json!([20, ADDRESS]));
    blocks.extend(mined.as_array().unwrap().iter().map(|hash| host.client().call("getblock", json!([hash, 0]))));
    wait_until("the wallet follows", || wallet.call("getwalletinfo", json!([]))["lastprocessedblock"]["height"] == 30);
    let (kept, lost) = blocks.split_at(5);
    let mut node = lose_all_but(&mut host, kept);
    for block in lost {
        node.call("submitheader", json!([&block.as_str().unwrap()[..160]]));
    }
    let words = "the node is 25 blocks behind, and is downloading the chain";
    wait_until("the host holds", || wallet.call("getwalletinfo", json!([]))["warnings"] == json!([words]));
    wait_until("the host is ready, since the node is not behind for long", || is_ready(&host));
    // The errors of calls that need a missing block say so, and a wallet waits for it.
    let until = "the node has no blocks after height 5 yet. getwalletinfo warns until it has them; try again then.";
    let refused = (-1, format!("Failed to rescan unavailable blocks: {until}"));
    assert_eq!(wallet.refused("rescanblockchain", json!([8])), refused);
    assert_eq!(wallet.call("rescanblockchain", json!([0, 3]))["stop_height"], 3);
    let (_, imported) = import(&mut host.client(), "imported", &json!(ADDRESS));
    let message = imported["error"]["message"].as_str().unwrap();
    assert!(message.ends_with(&format!("This error is likely temporary: {until}")), "{message}");
    host.client().call("loadwallet", json!(["late"]));
    let mut late = host.client().wallet("late");
    assert_eq!(late.call("getwalletinfo", json!([]))["lastprocessedblock"]["height"], 10);
    let told = checked(host.bitcoind()).1;
    assert!(told.contains("\ndownload: the node knows headers up to 30 and lacks the blocks after 5, "), "{told}");
    for block in lost {
        assert_eq!(node.call("submitblock", json!([block])), json!(null));
    }
    wait_until("the host follows", || wallet.call("getwalletinfo", json!([])).get("warnings").is_none());
    for mut wallet in [wallet, late] {
        wait_until("it follows", || wallet.call("getwalletinfo", json!([]))["lastprocessedblock"]["height"] == 30);
    }
}

#[test]
fn invalidateblock_of_many_blocks_is_logged_as_one_reorganisation() {
    if bitcoind::installed().is_none() {
        return;
    }
    let (host, log) = logged_with(HostOptions::in_front_of(&[]).and(&["metrics.listen=127.0.0.1:0"]));
    let mut wallet = host.new_wallet("w");
    let mut node = host.node_client();
    let first = node.call("generatetoaddress", json!([300, ADDRESS]))[0].clone();
    let height = |wallet: &mut Client, wanted: u32| {
        wait_until("the wallet follows", || {
            wallet.call("getwalletinfo", json!([]))["lastprocessedblock"]["height"] == wanted
        });
    };
    height(&mut wallet, 300);
    node.call("invalidateblock", json!([first]));
    height(&mut wallet, 0);
    // The wallet may have followed before the host logs the new tip.
    wait_until("it is told", || log().contains("a deep reorganisation"));
    let text = log();
    let told: Vec<&str> = text.lines().filter(|line| line.contains("a deep reorganisation")).collect();
    assert!(told.len() == 1 && told[0].contains("blocks=300 height=0"), "{told:#?}");
    let page = ask(host.metrics.unwrap(), "GET /metrics");
    assert!(page.contains("outrigger_deep_reorganisations_total 1.0\n"), "{page}");
}

#[test]
fn host_is_not_ready_while_its_node_has_headers_without_their_blocks() {
    let Some(path) = bitcoind::installed() else { return };
    let (other, _) = Bitcoind::start_with(path, &[]);
    let mut other = other.client();
    let hash = other.call("generatetoaddress", json!([1, ADDRESS]))[0].clone();
    let Some(host) = start_set(&[], &["backend.behind_seconds=0", "metrics.listen=127.0.0.1:0"]) else { return };
    let mut wallet = host.new_wallet("w");
    let mut node = host.node_client();
    assert!(is_ready(&host));
    node.call("submitheader", json!([other.call("getblockheader", json!([hash, false]))]));
    wait_until("the host is not ready", || !is_ready(&host));
    node.call("submitblock", json!([other.call("getblock", json!([hash, 0]))]));
    wait_until("the host is ready", || is_ready(&host));
    assert_eq!(wallet.call("getwalletinfo", json!([]))["lastprocessedblock"]["height"], 1);
}

#[test]
fn read_only_wallet_refuses_payments_with_the_reason() {
    let Some(host) = start_set(&[], &["backend.max_rewind=3"]) else { return };
    let (mut client, mut wallet) = (host.client(), host.new_wallet("w"));
    wallet.mine(105);
    assert_eq!(wallet.call("getwalletinfo", json!([]))["lastprocessedblock"]["height"], 105);
    let left = client.call("getblockhash", json!([98]));
    // A loaded wallet follows a heavier branch block by block. A wallet loaded later would have to rewind too far.
    wallet.call("unloadwallet", json!([]));
    let mut node = host.node_client();
    node.call("invalidateblock", json!([left]));
    node.call("generatetoaddress", json!([12, ADDRESS]));
    let host = host.restart();
    let mut client = host.client();
    client.call("loadwallet", json!(["w"]));
    let mut wallet = client.wallet("w");
    let reason = |warnings: &Value| {
        let warning = warnings.get(0).and_then(Value::as_str).unwrap_or_default();
        warning.starts_with("The wallet is read-only: ").then(|| warning.to_owned())
    };
    wait_until("the wallet stands still", || reason(&wallet.call("getwalletinfo", json!([]))["warnings"]).is_some());
    let reason = reason(&wallet.call("getwalletinfo", json!([]))["warnings"]).unwrap();
    let raw = client.call("createrawtransaction", json!([[], [{ADDRESS: 1}]]));
    for (method, params) in [
        ("sendtoaddress", json!([ADDRESS, 1])),
        ("sendmany", json!(["", {ADDRESS: 1}])),
        ("walletcreatefundedpsbt", json!([[], [{ADDRESS: 1}]])),
        ("fundrawtransaction", json!([raw])),
        ("send", json!([{ADDRESS: 1}])),
        ("getnewaddress", json!([])),
    ] {
        assert_eq!(wallet.refused(method, params), (-4, reason.clone()), "{method}");
    }
}

//! The test kills host or node at any instant, amid payments, blocks and reorganisations. A killed node loses its last blocks;
//! sometimes it restarts with old data or without data. The wallets keep everything they have acknowledged, and match fresh
//! wallets with the same descriptors that rescan the whole chain.
//!
//! `OUTRIGGER_KILLS` sets the number of kills, `OUTRIGGER_KILLS_SEED` their instants.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use outrigger_tests::{Client, Host, HostOptions, bitcoind, wait_until};
use serde_json::{Value, json};

use super::failures::until_answered;
use crate::kills::{Numbers, share};

/// The default number of kills, and the number of concurrent hosts, each in front of a separate node.
const KILLS: u64 = 8;
const HOSTS: u64 = 2;
const MAX_LIFE: u64 = 800_000;
/// The number of kills between comparisons with fresh wallets.
const COMPARED_EVERY: u64 = 10;
const WALLETS: [&str; 2] = ["one", "two"];
/// The node's wallet, which pays the host's wallets.
const FUNDS: &str = "funds";
/// A method that makes the node flush its blocks to disk: a kill loses only later blocks.
const FLUSH: &str = "gettxoutsetinfo";
/// The maximum depth of a reorganisation: deep enough to make spent coinbases immature.
const DEEP: u64 = 120;
/// The compared keys of entries and coins, without keys that differ if a wallet saw the transaction unconfirmed.
const ENTRY: &str =
    "txid vout category address label amount fee generated confirmations blockhash blockheight blockindex blocktime";
const COIN: &str = "txid vout address label amount scriptPubKey confirmations spendable solvable desc safe";
/// The time limit for the host to follow its node.
const PATIENCE: Duration = Duration::from_secs(60);

/// The wallets' acknowledged payments and addresses, which they must never lose.
#[derive(Default)]
struct Answered {
    /// Payments, each with its wallet.
    paid: BTreeSet<(&'static str, String)>,
    /// Addresses, each with its wallet.
    addresses: BTreeSet<(&'static str, String)>,
}

/// A client of the host: it uses the wallets until the host ends, or until one call after the node has ended.
fn use_wallets(mut client: Client, numbers: &mut Numbers, answered: &mut Answered, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) && use_wallet(&mut client, numbers, answered).is_some() {}
}

fn use_wallet(client: &mut Client, numbers: &mut Numbers, answered: &mut Answered) -> Option<()> {
    let mut any = || WALLETS[usize::from(numbers.below(2) == 0)];
    let (from, to) = (any(), any());
    // getnewaddress needs no node.
    let address = client.wallet(to).call_while_alive("getnewaddress", json!([]))?.unwrap();
    answered.addresses.insert((to, address.as_str().unwrap().to_owned()));
    let mut wallet = client.wallet(from);
    match numbers.below(6) {
        // The node may accept the block, refuse it or be away.
        0 => drop(wallet.call_while_alive("generatetoaddress", json!([1, address]))?),
        1 => drop(wallet.call_while_alive("listtransactions", json!([]))?),
        2 => drop(client.wallet(to).call_while_alive("setlabel", json!([address, "label"]))?.unwrap()),
        // The host refuses payments without coins, or after too many payments without a block.
        _ => {
            if let Ok(txid) = wallet.call_while_alive("sendtoaddress", json!([address, 0.01]))? {
                answered.paid.insert((from, txid.as_str().unwrap().to_owned()));
            }
        }
    }
    Some(())
}

/// A client of the node: it makes blocks and payments to these addresses until the node or the host ends.
fn use_node(mut node: Client, numbers: &mut Numbers, addresses: &[Value], over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) && change_node(&mut node, numbers, addresses).is_some() {}
}

fn change_node(node: &mut Client, numbers: &mut Numbers, addresses: &[Value]) -> Option<()> {
    let mut funds = node.wallet(FUNDS);
    let ours = addresses[usize::from(numbers.below(2) == 0)].clone();
    // Use a new address for each block, so that the node does not repeat an invalidated block.
    let theirs = funds.call_while_alive("getnewaddress", json!([]))?.ok()?;
    match numbers.below(9) {
        0..4 => {
            let paid = funds.call_while_alive("sendtoaddress", json!([ours, 0.1]))?;
            if let Ok(paid) = paid.as_ref()
                && numbers.below(3) == 0
            {
                drop(funds.call_while_alive("bumpfee", json!([paid]))?);
            }
        }
        4 => drop(node.call_while_alive("generatetoaddress", json!([1, ours]))?),
        5..7 => drop(node.call_while_alive("generatetoaddress", json!([1, theirs]))?),
        7 => drop(node.call_while_alive(FLUSH, json!([]))?),
        _ => {
            let height = node.call_while_alive("getblockcount", json!([]))?.ok()?.as_u64()?;
            let most = if numbers.below(6) == 0 { DEEP } else { 4 };
            let depth = 1 + numbers.below(most.min(height));
            let first = node.call_while_alive("getblockhash", json!([height + 1 - depth]))?.ok()?;
            node.call_while_alive("invalidateblock", json!([first]))?.ok()?;
            node.call_while_alive("generatetoaddress", json!([depth + 1, theirs]))?.ok()?;
        }
    }
    Some(())
}

/// Funds the node's wallet if it has lost its coins.
fn fund(node: &mut Client) {
    // After some kills, the wallet is already loaded.
    let _ = node.try_call("createwallet", json!({"wallet_name": FUNDS, "load_on_startup": true}));
    let _ = node.try_call("loadwallet", json!([FUNDS]));
    let mut funds = node.wallet(FUNDS);
    if funds.call("getbalance", json!([])).as_f64().unwrap() < 100.0 {
        funds.mine(110);
        node.call(FLUSH, json!([]));
    }
}

/// Drops a killed node's indexes; at random also saves, restores or deletes its data.
fn change_data(host: &Host, numbers: &mut Numbers, saved: &Path) {
    let node = host.node.as_ref().unwrap();
    node.lose_indexes();
    match numbers.below(12) {
        0..3 => {
            let _ = std::fs::remove_dir_all(saved);
            node.save_data(saved);
        }
        3 | 4 if saved.exists() => node.restore_data(saved),
        5 => node.lose_data(),
        _ => {}
    }
}

/// Lets clients work for some time, kills the host, the node or both, and restarts them.
fn cut_short(mut host: Host, numbers: &mut Numbers, answered: &mut Answered, saved: &Path) -> Host {
    let (client, mut node) = (host.client(), host.node_client());
    fund(&mut node);
    let addresses = WALLETS.map(|name| client.wallet(name).call("getnewaddress", json!([])));
    let life = Duration::from_micros(numbers.below(MAX_LIFE));
    let (kills_host, kills_node) = [(true, false), (false, true), (true, true)][numbers.below(3) as usize];
    let [mut one, mut two] = [0; 2].map(|_: i32| Numbers(numbers.below(1 << 31) + 1));
    let over = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(move || use_wallets(client, &mut one, answered, over));
        scope.spawn(move || use_node(node, &mut two, &addresses, over));
        // This sleep sets the instant of the kill.
        std::thread::sleep(life);
        if kills_host {
            host.kill();
        }
        if kills_node {
            host.bitcoind().kill();
        }
        over.store(true, Ordering::Relaxed);
    });
    if kills_node {
        change_data(&host, numbers, saved);
    }
    let host_first = kills_host && numbers.below(2) == 0;
    if host_first {
        host = host.start_again();
    }
    if kills_node {
        host.bitcoind().start_again();
    }
    if kills_host && !host_first {
        host = host.start_again();
    }
    host
}

/// A wallet's entries and coins in the chain or the mempool.
fn told(wallet: &mut Client, mempool: &Value) -> Vec<String> {
    let is_there = |entry: &&Value| {
        entry["confirmations"].as_i64().unwrap() > 0 || mempool.as_array().unwrap().contains(&entry["txid"])
    };
    let texts = |list: &Value, keys: &str| -> Vec<String> {
        let text = |entry: &Value| keys.split(' ').map(|key| format!("{key} {} ", entry[key])).collect();
        let mut texts: Vec<String> = list.as_array().unwrap().iter().filter(is_there).map(text).collect();
        texts.sort_unstable();
        texts
    };
    let listed = wallet.call("listtransactions", json!(["*", 1_000_000]));
    let since = wallet.call("listsinceblock", json!([]));
    let coins = wallet.call("listunspent", json!([0]));
    let balances = wallet.call("getbalances", json!([]));
    [
        vec![format!("balances {balances} lastblock {}", since["lastblock"])],
        texts(&listed, ENTRY),
        texts(&since["transactions"], ENTRY),
        texts(&coins, COIN),
    ]
    .concat()
}

/// A new wallet with another's descriptors, which rescans the whole chain.
fn fresh(client: &mut Client, name: &str, number: u64) -> Client {
    let listed = client.wallet(name).call("listdescriptors", json!([true]));
    let request =
        |one: &Value| json!({"desc": one["desc"], "timestamp": 0, "range": one["range"], "internal": one["internal"]});
    let requests: Value = listed["descriptors"].as_array().unwrap().iter().map(request).collect();
    let fresh = format!("{name} {number}");
    client.call("createwallet", json!({"wallet_name": fresh, "blank": true}));
    let mut wallet = client.wallet(&fresh.replace(' ', "%20"));
    wallet.import(&requests);
    // Without a label, an output to an own address counts as change.
    let mut known = client.wallet(name);
    for label in known.call("listlabels", json!([])).as_array().unwrap() {
        for address in known.call("getaddressesbylabel", json!([label])).as_object().unwrap().keys() {
            wallet.call("setlabel", json!([address, label]));
        }
    }
    wallet
}

fn compare(host: &Host, number: u64) {
    let mut client = host.client();
    for name in WALLETS {
        let (mut wallet, mut fresh) = (client.wallet(name), fresh(&mut client, name, number));
        let began = Instant::now();
        loop {
            let mempool = client.call("getrawmempool", json!([]));
            // Abandon payments that the node does not accept, since a fresh wallet cannot know of them.
            for entry in wallet.call("listtransactions", json!(["*", 1_000_000])).as_array().unwrap() {
                if entry["confirmations"] == 0 && entry["category"] == "send" {
                    let _ = wallet.try_call("abandontransaction", json!([entry["txid"]]));
                }
            }
            let (ours, expected) = (told(&mut wallet, &mempool), told(&mut fresh, &mempool));
            if ours == expected {
                break;
            }
            let differing = |one: &[String], other: &[String]| -> Vec<String> {
                one.iter().filter(|text| !other.contains(text)).cloned().collect()
            };
            let (more, less) = (differing(&ours, &expected), differing(&expected, &ours));
            assert!(began.elapsed() < PATIENCE, "{name} alone tells {more:#?}\nthe fresh one alone tells {less:#?}");
            std::thread::sleep(Duration::from_millis(50));
        }
        client.call("unloadwallet", json!([format!("{name} {number}")]));
    }
}

/// Waits until the wallets are loaded and have followed, and checks that they know all acknowledged data.
fn check(host: &Host, answered: &Answered) {
    let mut client = host.client();
    until_answered(&mut client, "getblockcount");
    wait_until("the wallets are loaded", || {
        let loaded = client.call("listwallets", json!([]));
        WALLETS.iter().all(|name| loaded.as_array().unwrap().contains(&json!(name)))
    });
    for name in WALLETS {
        let best = client.call("getbestblockhash", json!([]));
        assert_eq!(client.wallet(name).call("listsinceblock", json!([]))["lastblock"], best, "{name}");
    }
    for (name, txid) in &answered.paid {
        assert_eq!(client.wallet(name).call("gettransaction", json!([txid]))["txid"], json!(txid));
    }
    for (name, address) in &answered.addresses {
        assert_eq!(client.wallet(name).call("getaddressinfo", json!([address]))["ismine"], json!(true), "{address}");
    }
}

/// Runs one host and its node through this many kills.
fn kill_often(kills: u64, mut numbers: Numbers) {
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("saved");
    let indexes: &[_] = if numbers.0 >> 32 == 0 { &["-blockfilterindex=1", "-rest=1"] } else { &[] };
    let arguments = [indexes, &["-fastprune", "-fallbackfee=0.0001"]].concat();
    let mut host = Host::start_with(HostOptions::in_front_of(&arguments).and(&["wallet.keypool=5"]));
    for name in WALLETS {
        host.client().call("createwallet", json!({"wallet_name": name, "load_on_startup": true}));
    }
    let mut answered = Answered::default();
    let mut number = 0;
    // On a busy machine, a few lives may be too short for a payment.
    while number < kills || answered.paid.is_empty() {
        number += 1;
        assert!(number <= 10 * kills, "no life was long enough for a payment");
        let mut new = Answered::default();
        host = cut_short(host, &mut numbers, &mut new, &saved);
        check(&host, &new);
        answered.paid.extend(new.paid);
        answered.addresses.extend(new.addresses);
        if number % COMPARED_EVERY == 0 {
            compare(&host, number);
        }
    }
    if number % COMPARED_EVERY > 0 {
        compare(&host, number);
    }
    check(&host, &answered);
}

#[test]
fn wallets_match_the_chain_after_kills_of_host_and_node() {
    if bitcoind::installed().is_some() {
        share(HOSTS, KILLS, 0x6e6f_6465, kill_often);
    }
}

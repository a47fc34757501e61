//! The start of a host with many wallets in front of a bitcoind that has new blocks and transactions.

use std::time::Instant;

use bitcoin::consensus::encode::serialize_hex;
use bitcoin::{ScriptBuf, Transaction};
use outrigger_tests::{Bitcoind, Host, HostOptions, pair, wait_until};
use serde_json::{Value, json};

use super::systems::ARGUMENTS;
use crate::payments::{Funds, PER_BLOCK, output, script_of};

/// How many unused addresses each of a wallet's eight descriptors keeps.
const KEYPOOL: usize = 2;
/// The blocks that the host misses. Each wallet is paid in one of them.
const BLOCKS: usize = 40;
/// The transactions in the mempool. Each pays one wallet, while there are enough wallets.
const TRANSACTIONS: usize = 20_000;
/// The most wallets that one transaction pays: nearly as many outputs as relay allows.
const OUTPUTS: usize = 2_900;
/// The amount of each payment, in satoshi.
const PAID: u64 = 10_000;

pub fn run(path: &str, wallets: usize) {
    let node = Bitcoind::start_with(path, &ARGUMENTS).0;
    let mut funds = Funds::new(node.client());
    let options = HostOptions::with(&[&format!("wallet.keypool={KEYPOOL}")]);
    let mut host = Host::start_before(tempfile::tempdir().unwrap(), options, Some(node));
    let scripts = make_wallets(&host, wallets);
    let pending = prepare(&mut funds, &scripts);
    wait_for_wallets(&host, wallets, |_| true);
    println!("\n| the start of a host with {wallets} wallets in front of a bitcoind | seconds |\n|---|---|");
    let row = |what: &str, began: Instant| println!("| {what} | {:.2} |", began.elapsed().as_secs_f64());
    assert!(host.terminate().success(), "the host did not stop in order");
    let began = Instant::now();
    host = host.start_again();
    row("nothing was missed: until it is ready", began);
    wait_for_wallets(&host, wallets, |_| true);
    row("until each wallet has answered", began);
    assert!(host.terminate().success(), "the host did not stop in order");
    miss(&mut funds, &scripts, &pending);
    let began = Instant::now();
    host = host.start_again();
    row(&format!("{BLOCKS} blocks missed, {TRANSACTIONS} transactions in the mempool: until it is ready"), began);
    wait_for_wallets(&host, wallets, |balances| is_above(balances, "trusted", 0));
    row("until each wallet tells of its payment in a missed block", began);
    wait_for_wallets(&host, wallets.min(TRANSACTIONS), |balances| is_above(balances, "untrusted_pending", 0));
    row("until each wallet tells of its payment in the mempool", began);
    let paid = wallets.min(OUTPUTS);
    let paying = funds.pay(scripts.iter().take(paid).map(|to| output(PAID, to.clone())).collect());
    let began = Instant::now();
    funds.client.call("sendrawtransaction", json!([serialize_hex(&paying)]));
    wait_for_wallets(&host, paid, |balances| is_above(balances, "untrusted_pending", PAID));
    row(&format!("one transaction pays {paid} wallets: until each of them tells of it"), began);
    let began = Instant::now();
    funds.mine(&[paying]);
    wait_for_wallets(&host, paid, |balances| is_above(balances, "trusted", PAID));
    row("a block confirms it: until each of them tells of it", began);
}

fn name(number: usize) -> String {
    format!("w{number}")
}

fn make_wallets(host: &Host, wallets: usize) -> Vec<ScriptBuf> {
    let mut client = host.client();
    let mut make = |number| {
        client.call("createwallet", json!({"wallet_name": name(number), "load_on_startup": true}));
        script_of(&client.wallet(&name(number)).call("getnewaddress", json!(["", "bech32"])))
    };
    (0..wallets).map(&mut make).collect()
}

/// Makes the transactions for the mempool, and mines the coins that they spend.
fn prepare(funds: &mut Funds, scripts: &[ScriptBuf]) -> Vec<Transaction> {
    let to = |number| scripts.get(number).cloned().unwrap_or_else(pair::script);
    let payments: Vec<_> = (0..TRANSACTIONS).map(|number| (to(number), PAID)).collect();
    let mut pending = Vec::new();
    for some in payments.chunks(PER_BLOCK) {
        let mut made = funds.payments(some);
        pending.extend(made.split_off(1));
        funds.mine(&made);
    }
    pending
}

/// Mines the missed blocks, and fills the mempool.
fn miss(funds: &mut Funds, scripts: &[ScriptBuf], pending: &[Transaction]) {
    for block in 0..BLOCKS {
        let payments: Vec<_> = scripts.iter().skip(block).step_by(BLOCKS).map(|to| (to.clone(), PAID)).collect();
        let block = funds.payments(&payments);
        funds.mine(&block);
    }
    for transaction in pending {
        funds.client.call("sendrawtransaction", json!([serialize_hex(transaction)]));
    }
}

/// Waits until each wallet is loaded and `are_there` accepts its balances.
fn wait_for_wallets(host: &Host, wallets: usize, are_there: impl Fn(&Value) -> bool) {
    for number in 0..wallets {
        let mut wallet = host.client().wallet(&name(number));
        wait_until("the balances of a wallet", || {
            wallet.try_call("getbalances", json!([])).is_ok_and(|balances| are_there(&balances))
        });
    }
}

/// Whether a balance is above this many satoshi.
fn is_above(balances: &Value, kind: &str, satoshi: u64) -> bool {
    balances["mine"][kind].as_f64().is_some_and(|balance| balance * 1e8 > satoshi as f64 + 0.5)
}

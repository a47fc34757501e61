//! The speed at which a plugin follows the chain: the example `address-index`, from genesis to the tip, with spent outputs.

use std::time::{Duration, Instant};

use bitcoin::ScriptBuf;
use outrigger_tests::{Client, Host, HostOptions, all_groups, plugin_section};
use serde_json::json;

use crate::payments::Funds;
use crate::{median, print_row};

const BLOCKS: usize = 20_000;
/// The payments of a block, beside its coinbase and the transaction that makes the payments' coins.
const PAYMENTS: usize = 2;
const PAID: u64 = 10_000;
const SCRIPTS: usize = 1_000;
const TURNS: usize = 3;

pub fn run() {
    let text = all_groups();
    let mut host = Host::start_with(HostOptions::configured(&text));
    let script = make_chain(host.client());
    let mut times = [Vec::new(), Vec::new()];
    for turn in 0..2 * TURNS {
        let how = ["trusted = true", "isolated = true\nsandbox = \"best-effort\""][turn % 2];
        let grants = "grants = [\"chain/1\", \"store/1\", \"events/1\", \"log/1\"]";
        let plugin = plugin_section("outrigger_address_index", &format!("{how}\n{grants}\n"));
        std::fs::write(host.config_file().path(), format!("{text}\n{plugin}")).unwrap();
        assert!(host.terminate().success());
        // Removes the index.
        let _ = std::fs::remove_dir_all(host.network_folder().join("plugins").join("address-index"));
        let began = Instant::now();
        host = host.start_again();
        let mut client = host.client();
        let balance = loop {
            if let Ok(balance) = client.try_call("getscriptbalance", json!([script.to_hex_string()])) {
                break balance;
            }
        };
        times[turn % 2].push(began.elapsed());
        let expected = (BLOCKS * PAYMENTS).div_ceil(SCRIPTS) as u64 * PAID;
        assert_eq!((balance["balance"].as_f64().unwrap() * 1e8).round() as u64, expected);
    }
    println!("| what | outrigger | bitcoind | unit | ratio |\n|---|---|---|---|---|");
    for (how, times) in ["in the host's process", "in a process of its own"].into_iter().zip(times) {
        let what = format!("{BLOCKS} blocks of {} transactions followed by address-index, {how}", PAYMENTS + 2);
        let seconds = |time: Duration| time.as_secs_f64();
        print_row(&what, "s, with the host's start", seconds(median(times)), None);
    }
}

/// A script of the payments.
fn payee(number: usize) -> ScriptBuf {
    ScriptBuf::from_bytes([&[0, 20], &[0x17; 18][..], &(number as u16).to_be_bytes()].concat())
}

/// Mines blocks with payments, and returns the first payee's script.
fn make_chain(client: Client) -> ScriptBuf {
    let mut funds = Funds::new(client);
    for block in 0..BLOCKS {
        let payments: Vec<_> = (0..PAYMENTS).map(|line| (payee((block * PAYMENTS + line) % SCRIPTS), PAID)).collect();
        let block = funds.payments(&payments);
        funds.mine(&block);
    }
    payee(0)
}

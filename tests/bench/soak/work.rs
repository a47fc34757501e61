//! The load: kept and short-lived connections, blocks, and imports.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use outrigger_tests::NOBODY;
use serde_json::json;

use super::Load;
use super::calls::{Caller, Way};

/// The time between blocks, and between new wallets.
const BLOCK_EVERY: Duration = Duration::from_millis(500);
const WALLET_EVERY: Duration = Duration::from_secs(5);
/// The pause of each kept connection after a round of calls. The load is long, not heavy.
const PAUSE: Duration = Duration::from_millis(20);
const METHOD_NOT_FOUND: i64 = -32601;

impl Load {
    /// Makes all calls in turn over kept connections. A round ends early if one of its calls is lost.
    pub(super) fn keep_calling(&self, way: Way) {
        let (mut client, mut wallet) = (self.caller(way, ""), self.caller(way, "w"));
        while self.goes_on() {
            let _ = round(&mut client, &mut wallet);
            std::thread::sleep(PAUSE);
        }
    }

    /// Connects, begins calls, and disconnects before their answers.
    pub(super) fn come_and_go(&self) {
        let leaving = self.caller(Way::Tls, "");
        let Some(template) = self.caller(Way::Tls, "").call("getblocktemplate", json!([{"rules": ["segwit"]}])) else {
            return;
        };
        let poll = json!([{"rules": ["segwit"], "longpollid": template["longpollid"]}]);
        let bodies = [
            json!({"id": 1, "method": "getblocktemplate", "params": poll}).to_string(),
            json!({"id": 1, "method": "listsinceblock", "params": []}).to_string(),
            "{\"id\": 1, \"method\": \"getblockcount\"".to_owned(),
        ];
        while self.goes_on() {
            bodies.iter().for_each(|body| leaving.leave(body));
            self.caller(Way::Tls, "").call("getblockcount", json!([]));
            std::thread::sleep(PAUSE);
        }
    }

    /// Mines blocks. Each pays the wallet, which also pays itself, as long as the wallet is to grow.
    pub(super) fn mine(&self) {
        let (mut client, mut wallet) = (self.caller(Way::Tls, ""), self.caller(Way::Tls, "w"));
        while self.goes_on() {
            let grows = self.grows.load(Ordering::Relaxed);
            if grows {
                wallet.call("sendtoaddress", json!([self.address, "0.1"]));
            }
            let to = if grows { self.address.clone() } else { json!(NOBODY) };
            client.call("generatetoaddress", json!([1, to]));
            std::thread::sleep(BLOCK_EVERY);
        }
    }

    /// Makes a wallet, scans the chain for payments to the other one, and unloads it.
    pub(super) fn import(&self) {
        let (mut client, mut wallet) = (self.caller(Way::Socket, ""), self.caller(Way::Socket, "w"));
        let Some(info) = wallet.call("getaddressinfo", json!([self.address])) else { return };
        let mut number = 0;
        while self.goes_on() {
            number += 1;
            let name = format!("watch{number}");
            if client.call("createwallet", json!([name, true])).is_some() {
                let began = Instant::now();
                let request = json!([[{"desc": info["desc"], "timestamp": 0}]]);
                let outcome = self.caller(Way::Tls, &name).call("importdescriptors", request);
                if let Some(outcome) = outcome.filter(|outcome| outcome[0]["success"] != true) {
                    self.tally.lose("importdescriptors", &outcome.to_string(), began);
                }
                client.call("unloadwallet", json!([name]));
            }
            std::thread::sleep(WALLET_EVERY);
        }
    }

    /// Calls the plugin whose process is killed now and then.
    pub(super) fn call_plugin(&self) {
        let mut client = self.caller(Way::Socket, "");
        while self.goes_on() {
            client.call("faultwho", json!([]));
            std::thread::sleep(PAUSE / 4);
        }
    }
}

fn round(client: &mut Caller<'_>, wallet: &mut Caller<'_>) -> Option<()> {
    let tip = client.call("getbestblockhash", json!([]))?;
    client.call("getblock", json!([tip, 2]))?;
    client.call("getblocktemplate", json!([{"rules": ["segwit"]}]))?;
    wallet.call("listsinceblock", json!([tip]))?;
    let last = wallet.call("listtransactions", json!(["*", 1]))?;
    wallet.call("gettransaction", json!([last[0]["txid"]]))?;
    let coins = wallet.call("listtransactions", json!(["*", 20]))?;
    let inputs = json!([{"txid": coins[0]["txid"], "vout": coins[0]["vout"]}]);
    let unsigned = client.call("createrawtransaction", json!([inputs, [{"data": "00"}]]))?;
    wallet.call("signrawtransactionwithwallet", json!([unsigned]))?;
    client.refused("nosuchmethod", METHOD_NOT_FOUND);
    Some(())
}

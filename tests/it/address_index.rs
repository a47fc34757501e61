//! The example `address-index`: its balances match scantxoutset across reorganisations, kills and restarts.

use std::collections::{BTreeMap, HashMap};

use outrigger_tests::{Client, ELSEWHERE, Host, HostOptions, all_groups, built, wait_for};
use serde_json::{Value, json};

use crate::kills::Numbers;

/// The wallet's master key (BIP 32's first test vector), and the number of its addresses in use.
const MASTER: &str =
    "tprv8ZgxMBicQKsPeDgjzdC36fs6bMjGApWDNLR9erAXMs5skhMv36j9MV5ecvfavji5khqjWaWSFhN3YcCUUdiKH6isR4Pwy3U5y5egddBr16m";
const RECEIVING: usize = 1_000;
const CHANGE: usize = 200;

/// The number of blocks that a reorganisation disconnects.
const DEEP: u64 = 100;

/// The blocks that the index must process while the host is killed, and the number of kills.
const BEHIND: u64 = 4_000;
const KILLS: usize = 5;

/// The plugin's section of a configuration, with `separator` between its settings.
pub fn section(separator: &str) -> String {
    let library = built().library("outrigger_address_index").display().to_string();
    let grants = "grants = [\"chain/1\", \"store/1\", \"events/1\", \"log/1\"]";
    [&format!("file = {library:?}"), "sandbox = \"best-effort\"", grants].join(separator)
}

/// A wallet with known scripts and random payments between them.
pub struct World {
    pub client: Client,
    wallet: Client,
    descriptors: Vec<Value>,
    addresses: Vec<String>,
    numbers: Numbers,
}

impl World {
    pub fn new(host: &Host, seed: u64) -> Self {
        let mut client = host.client();
        let mut wallet = client.create_wallet("w", json!({"blank": true}));
        let (mut descriptors, mut addresses) = (Vec::new(), Vec::new());
        for (branch, count) in [(0, RECEIVING), (1, CHANGE)] {
            let private = format!("wpkh({MASTER}/{branch}/*)");
            let info = client.call("getdescriptorinfo", json!([private]));
            let desc = format!("{private}#{}", info["checksum"].as_str().unwrap());
            wallet.import(&json!([
                {"desc": desc, "timestamp": "now", "active": true, "internal": branch == 1, "range": count - 1}
            ]));
            descriptors.push(json!({"desc": info["descriptor"], "range": count - 1}));
            let derived = client.call("deriveaddresses", json!([info["descriptor"], [0, count - 1]]));
            addresses.extend(derived.as_array().unwrap().iter().map(|address| address.as_str().unwrap().to_owned()));
        }
        Self { client, wallet, descriptors, addresses, numbers: Numbers(seed) }
    }

    /// Connects to a restarted host.
    pub fn reconnect(&mut self, host: &Host) {
        self.client = host.client();
        self.client.call("loadwallet", json!(["w"]));
        self.wallet = self.client.wallet("w");
    }

    /// Mines blocks to the wallet's first address, through the host or its node.
    pub fn mine(&mut self, miner: &mut Client, blocks: u64) {
        miner.call("generatetoaddress", json!([blocks, self.addresses[0]]));
    }

    /// Makes and confirms payments, each to a hundred random addresses.
    pub fn pay(&mut self, miner: &mut Client, payments: usize) {
        // The wallet's answers are no older than the blocks that the host has passed on.
        self.client.call("getblockcount", json!([]));
        for _ in 0..payments {
            let amounts: BTreeMap<String, f64> = (0..100)
                .map(|_| {
                    let to = self.numbers.below(RECEIVING as u64);
                    (self.addresses[to as usize].clone(), (1 + self.numbers.below(1_000)) as f64 / 1e5)
                })
                .collect();
            self.wallet.call("sendmany", json!(["", amounts]));
            miner.call("generatetoaddress", json!([1, ELSEWHERE]));
        }
    }

    /// Compares the balances of all scripts with the UTXO set; returns the number of scripts with a balance.
    pub fn compare(&mut self) -> usize {
        let found = self.client.call("scantxoutset", json!(["start", self.descriptors]));
        let mut expected: HashMap<String, u64> = HashMap::new();
        for coin in found["unspents"].as_array().unwrap() {
            *expected.entry(coin["scriptPubKey"].as_str().unwrap().to_owned()).or_default() += satoshi(&coin["amount"]);
        }
        let paid = expected.len();
        for address in &self.addresses {
            // The index may take longer to catch up than one call waits.
            let balance = wait_for("the index", || match self.client.try_call("getscriptbalance", json!([address])) {
                Err(error) if error.code == -28 => None,
                balance => Some(balance.unwrap_or_else(|error| panic!("{error:?}"))),
            });
            let script = self.client.call("validateaddress", json!([address]))["scriptPubKey"].clone();
            let expected = expected.remove(script.as_str().unwrap()).unwrap_or_default();
            assert_eq!(satoshi(&balance["balance"]), expected, "{address}: {balance}");
        }
        assert!(expected.is_empty(), "{expected:?}");
        paid
    }

    /// Replaces the last `DEEP` blocks by a longer branch.
    pub fn reorganise(&mut self, miner: &mut Client) {
        let height = miner.call("getblockcount", json!([])).as_u64().unwrap();
        let first = miner.call("getblockhash", json!([height - DEEP + 1]));
        miner.call("invalidateblock", json!([first]));
        // A different address, since the blocks would be identical otherwise.
        miner.call("generatetoaddress", json!([DEEP + 1, self.addresses[1]]));
    }

    /// Checks that each script's history adds up to its balance.
    pub fn check_history(&mut self) {
        let history = self.client.call("getscripthistory", json!([self.addresses[0], 0, 1_000]));
        assert_eq!(history["more"], json!(false));
        let sum = |key: &str| -> u64 {
            let entries = history["entries"].as_array().unwrap().iter();
            entries.filter(|entry| entry.get(key).is_some()).map(|entry| satoshi(&entry["amount"])).sum()
        };
        let balance = self.client.call("getscriptbalance", json!([self.addresses[0]]));
        assert_eq!(["received", "spent"].map(|key| satoshi(&balance[key])), ["vout", "vin"].map(sum));
        assert!(sum("vin") > 0);
    }
}

fn satoshi(amount: &Value) -> u64 {
    (amount.as_f64().unwrap() * 1e8).round() as u64
}

#[test]
fn address_index_has_the_balances_of_scantxoutset_through_spends_reorganisations_and_kills() {
    let groups = all_groups();
    let host = Host::start_with(HostOptions::configured(&groups));
    let mut world = World::new(&host, 7);
    let mut miner = host.client();
    world.mine(&mut miner, 20);
    miner.call("generatetoaddress", json!([DEEP, ELSEWHERE]));
    world.pay(&mut miner, 8);
    miner.call("generatetoaddress", json!([BEHIND, ELSEWHERE]));
    world.pay(&mut miner, 4);
    // Add the plugin, and kill the host while the index catches up.
    std::fs::write(host.config_file().path(), groups + "\n[[plugins]]\n" + &section("\n")).unwrap();
    let host = (0..KILLS).fold(host, |host, _| host.kill_and_restart());
    world.reconnect(&host);
    let paid = world.compare();
    assert!(paid > 100, "{paid}");
    world.check_history();
    let mut miner = host.client();
    world.reorganise(&mut miner);
    world.compare();
    world.pay(&mut miner, 4);
    let host = host.kill_and_restart();
    world.reconnect(&host);
    world.compare();
    // A reloaded index continues where the previous instance stopped.
    let mut client = host.client();
    client.call("reloadplugin", json!(["address-index"]));
    world.pay(&mut host.client(), 1);
    world.compare();
    world.check_history();
}

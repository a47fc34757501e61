//! The same calls of a wallet of ours and of one of a real bitcoind that has the same descriptors, on the same blocks.

use outrigger_tests::bitcoind::{installed, twin};
use outrigger_tests::{Bitcoind, Client, Host};
use serde_json::{Value, json};

use crate::compared::told;

/// A script of nobody.
pub const FOREIGN: &str = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";

/// Two wallets that give the same addresses, each with a chain of its own that has the same blocks.
pub struct Pair {
    pub ours: Client,
    pub theirs: Client,
    _host: Host,
    _node: Bitcoind,
}

impl Pair {
    /// With these arguments of bitcoind; `None`, said aloud, where there is none here.
    pub fn start(arguments: &[&str]) -> Option<Self> {
        let host = Host::start();
        let arguments = [&["-addresstype=bech32", "-fallbackfee=0.00001"], arguments].concat();
        let (node, _) = Bitcoind::start_with(installed()?, &arguments);
        let mut ours = host.new_wallet("w");
        let theirs = twin(node.client(), &mut ours);
        Some(Self { ours, theirs, _host: host, _node: node })
    }

    /// The same call of both, which is answered.
    pub fn both(&mut self, method: &str, params: &Value) -> [Value; 2] {
        [&mut self.ours, &mut self.theirs].map(|client| client.call(method, params.clone()))
    }

    /// Mines blocks to an address, for both.
    pub fn mine(&mut self, blocks: u32, address: &Value) {
        let hashes = self.ours.call("generatetoaddress", json!([blocks, address]));
        for hash in hashes.as_array().unwrap() {
            let block = self.ours.call("getblock", json!([hash, 0]));
            assert_eq!(self.theirs.call("submitblock", json!([block])), Value::Null);
        }
    }

    /// Mines to the wallet, so that it has so many coins of 50 BTC.
    pub fn fund(&mut self, coins: u32) {
        for _ in 0..coins {
            let [address, same] = self.both("getnewaddress", &json!([]));
            assert_eq!(address, same);
            self.mine(1, &address);
        }
        self.mine(100, &json!(FOREIGN));
    }

    /// Both have the same answer or error.
    #[track_caller]
    pub fn check(&mut self, method: &str, params: Value) {
        let [ours, theirs] = [&mut self.ours, &mut self.theirs].map(|client| told(client, method, &params));
        assert_eq!(ours, theirs, "{method} {params}");
    }
}

#[test]
fn lockunspent_and_listlockunspent_answer_as_bitcoind() {
    let Some(mut pair) = Pair::start(&[]) else { return };
    pair.fund(3);
    let coins = pair.ours.call("listunspent", json!([]));
    let coin = |at: usize| json!({"txid": coins[at]["txid"], "vout": coins[at]["vout"]});
    let (one, other, none) = (coin(0), coin(1), "11".repeat(32));
    let calls = [
        json!([]),
        json!([true]),
        json!([false]),
        json!([Value::Null]),
        json!(["x", 5]),
        json!([false, {}]),
        json!([false, [5]]),
        json!([false, [{}]]),
        json!([false, [{"vout": 1}]]),
        json!([false, [{"txid": "ab", "vout": 0}]]),
        json!([false, [{"txid": "zz".repeat(32), "vout": 0}]]),
        json!([false, [{"txid": 5, "vout": 0}]]),
        json!([false, [{"txid": none, "vout": "0"}]]),
        json!([false, [{"txid": none}]]),
        json!([false, [{"txid": none, "vout": -1}]]),
        json!([false, [{"txid": none, "vout": 1.5}]]),
        json!([false, [{"txid": none, "vout": 8_589_934_592_u64}]]),
        json!([false, [{"txid": none, "vout": 0}, 5]]),
        json!([false, [one, 5]]),
        json!([false, [{"txid": one["txid"], "vout": 9}]]),
        json!([true, [one]]),
        json!([false, [one, other, other]]),
        json!([false, [other]]),
        json!([false, [other], true]),
        json!([false, [other], true]),
        json!([false, [other], false]),
        json!([false, [other], 5]),
        json!([true, []]),
    ];
    for params in calls {
        // Help texts are our own.
        if params != json!([]) {
            pair.check("lockunspent", params);
        }
        pair.check("listlockunspent", json!([]));
    }
    assert_eq!(pair.both("listunspent", &json!([])).map(|coins| coins.as_array().unwrap().len()), [1, 1]);
    pair.check("getbalances", json!([]));
    pair.check("sendtoaddress", json!([FOREIGN, 60]));
    for client in [&mut pair.ours, &mut pair.theirs] {
        client.call("unloadwallet", json!(["w"]));
        client.call("loadwallet", json!(["w"]));
    }
    pair.check("listlockunspent", json!([]));
    // A payment that spends a locked coin, and one that is given up.
    let raw = pair.ours.call("createrawtransaction", json!([[other], [{FOREIGN: 49.99}]]));
    let signed = pair.ours.call("signrawtransactionwithwallet", json!([raw]));
    pair.check("sendrawtransaction", json!([signed["hex"]]));
    pair.check("listlockunspent", json!([]));
    pair.check("lockunspent", json!([false, [other]]));
    let pays_others =
        json!({"txid": pair.ours.call("decoderawtransaction", json!([signed["hex"]]))["txid"], "vout": 0});
    pair.check("lockunspent", json!([false, [one, pays_others], true]));
    pair.check("listlockunspent", json!([]));
    pair.check("lockunspent", json!([true, [one]]));
    pair.check("listlockunspent", json!([]));
    pair.check("lockunspent", json!([true]));
    pair.check("listlockunspent", json!([]));
}

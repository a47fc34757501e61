//! Chains of unconfirmed payments beyond the mempool's limits, beside a real bitcoind with the same mempool.

use outrigger_tests::bitcoind::twin_named;
use outrigger_tests::{Client, Host, HostOptions, bitcoind};
use serde_json::{Value, json};

use super::compared::FOREIGN;

/// The most transactions of an unconfirmed chain.
const CHAIN: usize = 25;
/// The most transactions of a cluster since Bitcoin Core 31.
const CLUSTER: usize = 64;

/// A host's wallet and its bitcoind twin, with one coin of 50 BTC.
struct Twins {
    ours: Client,
    theirs: Client,
    has_clusters: bool,
    _host: Host,
}

impl Twins {
    fn start(arguments: &[&'static str], setting: &str) -> Option<Self> {
        bitcoind::installed()?;
        let mut options =
            HostOptions::in_front_of(&[&["-addresstype=bech32", "-fallbackfee=0.0001"], arguments].concat());
        options.set.extend([setting.to_owned(), "wallet.fallbackfee=0.0001".to_owned()]);
        let host = Host::start_with(options);
        let mut ours = host.new_wallet("w");
        let mut theirs = twin_named(&mut host.node.as_ref().unwrap().client(), &mut ours, "w");
        let [mine, same] = [&mut ours, &mut theirs].map(|client| client.call("getnewaddress", json!([])));
        assert_eq!(mine, same);
        host.client().call("generatetoaddress", json!([1, mine]));
        host.client().call("generatetoaddress", json!([100, FOREIGN]));
        let has_clusters = bitcoind::release(&mut theirs) >= 31;
        Some(Self { ours, theirs, has_clusters, _host: host })
    }

    /// Checks that both make a transaction with the same fee, or refuse it with the same text.
    #[track_caller]
    fn check(&mut self, method: &str, params: &Value) -> Value {
        let [ours, theirs] = [&mut self.ours, &mut self.theirs].map(|client| {
            client.try_call(method, params.clone()).map_or_else(
                |error| json!([error.code, error.message]),
                // The inputs' order is random, so only the fee is compared.
                |answer| json!(["made", answer["fee"]]),
            )
        });
        assert_eq!(ours, theirs, "{method} {params}");
        ours
    }

    fn coins(&mut self) -> Vec<Value> {
        let mut coins = self.ours.call("listunspent", json!([0])).as_array().unwrap().clone();
        coins.sort_by_key(|coin| coin["ancestorcount"].as_u64());
        coins
    }

    /// A chain of payments from each other's change, with fixed inputs: the wallet might choose other coins.
    fn build_chain(&mut self, address: &Value) {
        for _ in 0..if self.has_clusters { CLUSTER } else { CHAIN } {
            let change = self.coins().into_iter().max_by_key(|coin| coin["amount"].as_f64().map(f64::to_bits));
            let options = json!({"inputs": inputs(&[change.unwrap()]), "add_inputs": false});
            self.ours.call("send", json!([[{ address.as_str().unwrap(): 0.6 }], null, "unset", null, options]));
        }
    }
}

fn inputs(coins: &[Value]) -> Value {
    coins.iter().map(|coin| json!({"txid": coin["txid"], "vout": coin["vout"]})).collect()
}

#[test]
fn wallet_refuses_payments_on_long_chains_as_bitcoind_does() {
    let Some(mut twins) = Twins::start(&[], "wallet.walletrejectlongchains=true") else { return };
    let mine = twins.ours.call("getnewaddress", json!([]));
    twins.build_chain(&mine);
    let coins = twins.coins();
    let (first, last) = (&coins[..1], &coins[coins.len() - 1..]);
    let only = json!({"add_inputs": false, "change_type": "bech32"});
    let several = [&coins[..1], last].concat();
    let mut refused = Vec::new();
    for preset in [first, last, &several] {
        let told = twins.check("walletcreatefundedpsbt", &json!([inputs(preset), [{FOREIGN: 0.5}], 0, only]));
        refused.push(told[1].as_str().unwrap_or_default().split(" for tx").next().unwrap().to_owned());
        twins.check("send", &json!([[{FOREIGN: 0.5}], null, "unset", null, {"inputs": inputs(preset), "psbt": true}]));
    }
    let expected = if twins.has_clusters {
        ["too many unconfirmed transactions in cluster"; 2]
    } else {
        ["possibly too many descendants", "possibly too many unconfirmed ancestors [limit: 25]"]
    };
    assert_eq!(refused[..2], expected);
    // The order of the parents' ids determines which text comes first.
    assert!(expected.contains(&&*refused[2]), "{}", refused[2]);
    for (method, params) in [
        ("sendtoaddress", json!([FOREIGN, 0.5])),
        ("sendtoaddress", json!([FOREIGN, 500])),
        ("sendmany", json!(["", {FOREIGN: 0.5}])),
        ("walletcreatefundedpsbt", json!([[], [{FOREIGN: 0.5}], 0, {"change_type": "bech32"}])),
    ] {
        assert_ne!(twins.check(method, &params)[0], "made", "{method}");
    }
}

#[test]
fn wallet_pays_on_long_chains_if_the_operator_allows_it_as_bitcoind_does() {
    let Some(mut twins) = Twins::start(&["-walletrejectlongchains=0"], "wallet.walletrejectlongchains=false") else {
        return;
    };
    for _ in 0..CHAIN {
        twins.ours.call("sendtoaddress", json!([FOREIGN, 1]));
    }
    let coins = twins.coins();
    let options = json!({"add_inputs": false, "change_type": "bech32"});
    for preset in [json!([]), inputs(&coins)] {
        let mut options = options.clone();
        options["add_inputs"] = json!(preset == json!([]));
        let told = twins.check("walletcreatefundedpsbt", &json!([preset, [{FOREIGN: 0.5}], 0, options]));
        assert_eq!(told[0], "made");
    }
}

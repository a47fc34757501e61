//! Payments of random wallets, funded by the host and by the bitcoind, whose wallets have the same descriptors and coins.
//!
//! `OUTRIGGER_SELECTIONS` sets how many wallets, `OUTRIGGER_SELECTIONS_SEED` seeds them. Each payment locks some of the coins first, so that
//! none has the same coins to choose from as another.

use outrigger_tests::Client;
use outrigger_tests::bitcoind::twin_named;
use serde_json::{Map, Value, json};

use super::{ADDRESS, start};
use crate::kills::{Numbers, setting};

const PAYMENTS: u64 = 50;
/// From this number of payments on, the mean fees may differ by 1 % instead of 10 %.
const MANY: u64 = 5_000;
const TYPES: [&str; 4] = ["legacy", "p2sh-segwit", "bech32", "bech32m"];
/// Feerates in satoshi per virtual byte, below and above the rate at which wallets consolidate coins, and three times that.
const FEERATES: [u64; 6] = [1, 3, 8, 15, 35, 80];

fn btc(satoshi: u64) -> String {
    format!("{}.{:08}", satoshi / 100_000_000, satoshi % 100_000_000)
}

/// A random amount in satoshi with a random number of digits, so that small amounts are as frequent as large ones.
fn amount(numbers: &mut Numbers, digits: u64) -> u64 {
    let bound = 10_u64.pow(4 + u32::try_from(numbers.below(digits)).unwrap());
    1_000 + numbers.below(bound)
}

/// A wallet of ours and one of the node with the same descriptors and coins.
struct Pair {
    ours: Client,
    theirs: Client,
}

impl Pair {
    /// A wallet with up to 40 coins, of one type or of several, some of them with the same address.
    fn make(host: &mut Client, node: &mut Client, payer: &mut Client, number: u64, numbers: &mut Numbers) -> Self {
        let name = format!("w{number}");
        let mut ours = host.create_wallet(&name, json!({}));
        let mut theirs = twin_named(node, &mut ours, &name);
        let types: Vec<&str> = TYPES.into_iter().filter(|_| numbers.below(2) == 0).collect();
        let types = if types.is_empty() { vec!["bech32"] } else { types };
        let mut paid = Map::new();
        let mut fresh = |numbers: &mut Numbers| {
            let kind = types[usize::try_from(numbers.below(types.len() as u64)).unwrap()];
            let [address, same] =
                [&mut ours, &mut theirs].map(|client| client.call("getnewaddress", json!(["", kind])));
            assert_eq!(address, same);
            address.as_str().unwrap().to_owned()
        };
        for _ in 0..1 + numbers.below(20) {
            paid.insert(fresh(numbers), json!(btc(amount(numbers, 5))));
        }
        payer.call("sendmany", json!(["", paid]));
        // The host passes this call on, and so learns of the blocks at once.
        host.call("generatetoaddress", json!([1 + numbers.below(6), ADDRESS]));
        // Pays some addresses again.
        let again: Map<String, Value> = paid.into_iter().filter(|_| numbers.below(3) == 0).collect();
        if !again.is_empty() {
            payer.call("sendmany", json!(["", again]));
            host.call("generatetoaddress", json!([1, ADDRESS]));
        }
        Self { ours, theirs }
    }

    /// Locks a random part of the coins, and unlocks the others. Returns the others' value in satoshi.
    fn draw(&mut self, numbers: &mut Numbers) -> u64 {
        let both = |pair: &mut Self, params: &Value| {
            for client in [&mut pair.ours, &mut pair.theirs] {
                client.call("lockunspent", params.clone());
            }
        };
        both(self, &json!([true]));
        let coins = self.ours.call("listunspent", json!([]));
        let share = 1 + numbers.below(8);
        let (locked, free): (Vec<&Value>, Vec<&Value>) =
            coins.as_array().unwrap().iter().partition(|_| numbers.below(8) >= share);
        let locked: Vec<Value> =
            locked.into_iter().map(|coin| json!({"txid": coin["txid"], "vout": coin["vout"]})).collect();
        if !locked.is_empty() {
            both(self, &json!([false, locked]));
        }
        let satoshi = |coin: &Value| (coin["amount"].as_f64().unwrap() * 1e8).round() as u64;
        free.into_iter().map(satoshi).sum()
    }

    /// The fees of a payment by host and node. None if the node refuses it. Where the node pays, the host must pay too.
    fn pay(&mut self, strangers: &[String], numbers: &mut Numbers) -> Option<[f64; 2]> {
        let value = self.draw(numbers);
        let mut outputs = Map::new();
        let recipients = 1 + numbers.below(3);
        for _ in 0..recipients {
            let to = strangers[usize::try_from(numbers.below(strangers.len() as u64)).unwrap()].clone();
            let satoshi = value * (1 + numbers.below(90)) / 100 / recipients;
            outputs.insert(to, json!(btc(satoshi.max(600))));
        }
        let feerate = FEERATES[usize::try_from(numbers.below(FEERATES.len() as u64)).unwrap()];
        let payers: &[u64] = if numbers.below(5) == 0 { &[0] } else { &[] };
        // Bitcoin Knots chooses change of other types than release 29.
        let kind = TYPES[usize::try_from(numbers.below(4)).unwrap()];
        let options = json!({"fee_rate": feerate, "subtractFeeFromOutputs": payers, "change_type": kind});
        let params = json!([[], outputs, 0, options]);
        let [ours, theirs] =
            [&mut self.ours, &mut self.theirs].map(|client| client.try_call("walletcreatefundedpsbt", params.clone()));
        let theirs = theirs.ok()?;
        let ours = ours.unwrap_or_else(|error| panic!("{params}: {error:?}, the node's {}", theirs["fee"]));
        let fee = |answer: &Value| answer["fee"].to_string().parse::<f64>().unwrap();
        Some([fee(&ours), fee(&theirs)])
    }
}

#[test]
fn walletcreatefundedpsbt_of_random_wallets_pays_as_much_as_bitcoind() {
    let Some(host) = start(&["-addresstype=bech32", "-fallbackfee=0.0001"]) else { return };
    let seed = setting("OUTRIGGER_SELECTIONS_SEED", 7);
    let wallets = setting("OUTRIGGER_SELECTIONS", 6);
    let mut numbers = Numbers(seed);
    let (mut node, mut front) = (host.node_client(), host.client());
    let mut payer = node.create_wallet("payer", json!({}));
    payer.mine(150);
    let stranger = |kind| payer.call("getnewaddress", json!(["", kind])).as_str().unwrap().to_owned();
    let strangers: Vec<String> = TYPES.into_iter().map(stranger).collect();
    let (mut fees, mut payments) = ([0.0, 0.0], 0);
    for number in 0..wallets {
        let mut pair = Pair::make(&mut front, &mut node, &mut payer, number, &mut numbers);
        for _ in 0..PAYMENTS {
            if let Some(paid) = pair.pay(&strangers, &mut numbers) {
                fees = [fees[0] + paid[0], fees[1] + paid[1]];
                payments += 1;
            }
        }
        for client in [&mut pair.ours, &mut pair.theirs] {
            client.call("unloadwallet", json!([format!("w{number}")]));
        }
    }
    let ratio = fees[0] / fees[1];
    println!("{payments} payments of {wallets} wallets: our fees are {ratio:.4} of bitcoind's");
    // Both choose at random, so the means of few payments differ by more.
    let slack = if payments >= MANY { 0.01 } else { 0.1 };
    assert!((1.0 - slack..=1.0 + slack).contains(&ratio), "{ratio}, with OUTRIGGER_SELECTIONS_SEED={seed}");
}

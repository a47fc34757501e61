//! submitpackage and testmempoolaccept answer as bitcoind on packages: package rules, version 3 (TRUC) and ephemeral dust.

use bitcoin::consensus::encode::serialize_hex;
use bitcoin::transaction::Version;
use bitcoin::{Amount, OutPoint, ScriptBuf, Transaction, TxOut};
use outrigger_tests::HostOptions;
use outrigger_tests::pair::{COIN, Pair, script, spend};
use serde_json::{Value, json};

/// The packages offered, and the coins for them.
const PACKAGES: usize = 400;
const COINS: usize = 200;

const VALUE: Amount = Amount::from_sat(10_000_000);

/// An unspent output, and its value.
type Output = (OutPoint, Amount);

struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        // Xorshift.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).unwrap()
    }

    fn one_in(&mut self, some: usize) -> bool {
        self.below(some) == 0
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    /// A transaction that spends `inputs`, with a random fee and maybe dust or many outputs.
    fn transaction(&mut self, inputs: &[Output], version: i32) -> Transaction {
        let value: Amount = inputs.iter().map(|(_, value)| *value).sum();
        let dust = self.one_in(6).then(|| Amount::from_sat(self.of(&[0, 100, 329])));
        let fee = if dust.is_some() && !self.one_in(4) {
            0
        } else {
            self.of(&[0, 0, 60, 110, 200, 500, 2_000, 9_000, 40_000])
        };
        let count = if self.one_in(12) { 30 } else { 1 + self.below(3) };
        let rest = value.checked_sub(Amount::from_sat(fee)).unwrap_or(Amount::ZERO);
        let mut values = vec![rest / count as u64; count];
        values.extend(dust);
        let mut transaction = spend(&inputs.iter().map(|(outpoint, _)| *outpoint).collect::<Vec<_>>(), &values);
        transaction.version = Version(version);
        transaction
    }

    /// Parents and last their child, or the transactions in another order.
    fn package(&mut self, confirmed: &[Output], unconfirmed: &[Output]) -> Vec<Transaction> {
        let usual = self.of(&[2, 3]);
        let mut outputs: Vec<Output> = Vec::new();
        let mut package = Vec::new();
        for _ in 0..self.below(3) {
            let version = if self.one_in(8) { 5 - usual } else { usual };
            let mut inputs = vec![self.of(confirmed)];
            if self.one_in(4) && !unconfirmed.is_empty() {
                inputs = vec![self.of(unconfirmed)];
            }
            let parent = self.transaction(&inputs, version);
            outputs.extend(outputs_of(&parent));
            package.push(parent);
        }
        let mut inputs: Vec<Output> = outputs.iter().filter(|_| !self.one_in(5)).copied().collect();
        if inputs.is_empty() || self.one_in(6) {
            let from = if unconfirmed.is_empty() || self.one_in(2) { confirmed } else { unconfirmed };
            inputs.push(self.of(from));
        }
        let version = if self.one_in(8) { 5 - usual } else { usual };
        package.push(self.transaction(&inputs, version));
        if self.one_in(20) {
            package.reverse();
        }
        package
    }
}

fn outputs_of(transaction: &Transaction) -> impl Iterator<Item = Output> {
    let txid = transaction.compute_txid();
    transaction.output.iter().zip(0..).map(move |(output, vout)| (OutPoint::new(txid, vout), output.value))
}

/// Confirmed coins that anyone can spend.
fn coins(pair: &mut Pair) -> Vec<Output> {
    let many = spend(&[pair.coin()], &vec![VALUE; COINS]);
    let change = COIN - VALUE * COINS as u64 - Amount::from_sat(20_000);
    let mut many = many;
    many.output.push(TxOut { value: change, script_pubkey: script() });
    pair.send(&many);
    pair.mine();
    pair.same_mempool();
    outputs_of(&many).take(COINS).collect()
}

#[test]
fn submitpackage_and_testmempoolaccept_answer_as_bitcoind() {
    let Some(mut pair) = Pair::start(HostOptions::default(), &[], 101) else { return };
    if !pair.is_later() {
        offer_random_packages(&mut pair);
        offer_bad_packages(&mut pair);
    }
}

fn offer_random_packages(pair: &mut Pair) {
    let mut confirmed = coins(pair);
    let (mut numbers, mut unconfirmed) = (Numbers(0x9e37_79b9_7f4a_7c15), Vec::new());
    let mut taken = 0;
    for number in 0..PACKAGES {
        let package = numbers.package(&confirmed, &unconfirmed);
        let raw: Vec<String> = package.iter().map(serialize_hex).collect();
        if numbers.one_in(2) {
            pair.same("testmempoolaccept", &json!([raw, 0]));
            pair.same("testmempoolaccept", &json!([raw]));
        }
        let answer = match (&package[..], numbers.one_in(2)) {
            ([alone], true) => pair.send(alone),
            _ => pair.send_package(&package),
        };
        taken += usize::from(answer["package_msg"] == "success");
        let mempool = pair.same_mempool();
        unconfirmed.extend(package.iter().flat_map(outputs_of));
        unconfirmed.retain(|(outpoint, _)| mempool.contains(&outpoint.txid.to_string()));
        if number % 40 == 39 {
            pair.mine();
            assert_eq!(pair.same_mempool(), Vec::<String>::new());
            confirmed.extend(unconfirmed.drain(..).filter(|(_, value)| *value > Amount::from_sat(100_000)));
        }
    }
    assert!(taken > PACKAGES / 20, "{taken} packages were taken");
}

/// All random packages are confirmed before these. The miner knows none of these.
fn offer_bad_packages(pair: &mut Pair) {
    let coins = coins(pair);
    let of = |list: &[Output], fee: u64| {
        let value: Amount = list.iter().map(|(_, value)| *value).sum();
        spend(&list.iter().map(|(outpoint, _)| *outpoint).collect::<Vec<_>>(), &[value - Amount::from_sat(fee)])
    };
    let parent = of(&coins[..1], 0);
    let child = of(&outputs_of(&parent).collect::<Vec<_>>(), 5_000);
    let grandchild = of(&outputs_of(&child).collect::<Vec<_>>(), 5_000);
    let mut burning = of(&coins[1..2], 1_000);
    burning.output.push(TxOut { value: Amount::from_sat(5), script_pubkey: ScriptBuf::from_bytes(vec![0x6a]) });
    let [parent, child, grandchild, burning] = [parent, child, grandchild, burning].map(|one| serialize_hex(&one));
    let cases: Vec<Value> = vec![
        json!([[]]),
        json!([vec![&parent; 26]]),
        json!(["zz"]),
        json!([["zz"]]),
        json!([[5]]),
        json!([[parent], 1]),
        json!([[parent], "x"]),
        json!([[parent], 0, -1]),
        json!([[parent, parent]]),
        json!([[child, parent]]),
        json!([[parent, child, grandchild]]),
        json!([[parent]]),
        json!([[burning]]),
        json!([[burning], 0, "0.00000004"]),
        // The package's feerate is above this limit.
        json!([[parent, child], "0.00001"]),
        json!([[parent, child], "0.0001"]),
        json!([[parent, child]]),
        json!([[parent, child]]),
        json!([[child, grandchild]]),
        json!([[grandchild]]),
        json!([[burning], 0, "0.00000005"]),
    ];
    for params in cases {
        pair.same("submitpackage", &params);
        pair.same_mempool();
    }
}

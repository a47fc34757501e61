//! Signing: the same transactions of the same chain, signed by the same keys in this host and in bitcoind.
//!
//! The time is that of a call over one kept-alive connection, to the last byte of its answer. The answers of both are compared byte for
//! byte. bitcoind's wallet has only the descriptors of these coins, which suits it best: it tries all descriptors of a wallet one after
//! another.

use std::time::{Duration, Instant};

use outrigger_tests::{Client, Host, XPRV};
use serde_json::{Value, json};

use crate::{median, milliseconds, print_row};
use outrigger_tests::bitcoind::Bitcoind;

const MANY: usize = 1_000;
const REPEATS: usize = 15;
const ROUNDS: usize = 5;
/// The blocks until the first coinbases are mature.
const BLOCKS_BEFORE: usize = 110;

/// The private key 1, compressed, and the address that the coinbases pay to.
pub const MINER_KEY: &str = "cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87JcbXMTcA";
pub const MINER_ADDRESS: &str = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";

/// The measured kinds of coins: descriptor function, derivation path, and name.
const KINDS: [(&str, &str, &str); 2] = [("wpkh", "84h/1h/0h/0", "P2WPKH"), ("pkh", "44h/1h/0h/0", "P2PKH")];

pub fn run(bitcoind: Option<&str>) {
    println!("| what | outrigger | bitcoind | unit | ratio |\n|---|---|---|---|---|");
    let host = Host::start();
    let theirs = bitcoind.map(|path| Bitcoind::start(path).0);
    let clients = std::iter::once(host.client()).chain(theirs.as_ref().map(Bitcoind::client)).collect();
    let mut bench = Bench { clients, wallets: Vec::new() };
    mine(&mut bench.clients, BLOCKS_BEFORE);
    let kinds: Vec<(String, &str)> =
        KINDS.iter().map(|(form, path, name)| (bench.descriptor(form, path), *name)).collect();
    bench.wallets = bench.new_wallets("w", &kinds, MANY as u32);
    for (at, (descriptor, name)) in kinds.iter().enumerate() {
        let coins = bench.fund(descriptor, at);
        bench.large(&coins, name);
        bench.partially(&coins, name);
        bench.small(&coins, name);
    }
}

/// Mines with our host, the first client, and submits the blocks to bitcoind.
pub fn mine(clients: &mut [Client], blocks: usize) {
    let hashes = clients[0].call("generatetoaddress", json!([blocks, MINER_ADDRESS]));
    for hash in hashes.as_array().unwrap() {
        let block = clients[0].call("getblock", json!([hash, 0]));
        for other in &mut clients[1..] {
            assert_eq!(other.call("submitblock", json!([block])), Value::Null);
        }
    }
}

struct Coins {
    txid: Value,
    value: f64,
}

struct Bench {
    clients: Vec<Client>,
    wallets: Vec<Client>,
}

impl Bench {
    fn ours(&mut self) -> &mut Client {
        &mut self.clients[0]
    }

    fn descriptor(&mut self, form: &str, path: &str) -> String {
        self.ours().with_checksum(&format!("{form}({XPRV}/{path}/*)"))
    }

    /// Makes a wallet with this name in each node, with these descriptors and `scripts` scripts of each.
    fn new_wallets(&mut self, name: &str, descriptors: &[(String, &str)], scripts: u32) -> Vec<Client> {
        let request = |(descriptor, _): &(String, &str)| json!({"desc": descriptor, "range": [0, scripts - 1], "timestamp": "now"});
        let requests: Vec<Value> = descriptors.iter().map(request).collect();
        let create = |client: &mut Client| {
            let mut wallet = client.create_wallet(name, json!({"blank": true}));
            wallet.import(&json!(requests));
            wallet
        };
        self.clients.iter_mut().map(create).collect()
    }

    /// Pays to the first scripts of a descriptor, and confirms the payments.
    fn fund(&mut self, descriptor: &str, coinbase: usize) -> Coins {
        let addresses = self.ours().call("deriveaddresses", json!([descriptor, [0, MANY - 1]]));
        let hash = self.ours().call("getblockhash", json!([coinbase + 1]));
        let source = self.ours().call("getblock", json!([hash]))["tx"][0].clone();
        let value = 0.01;
        let outputs: Vec<Value> =
            addresses.as_array().unwrap().iter().map(|address| json!({address.as_str().unwrap(): value})).collect();
        let raw = self.ours().call("createrawtransaction", json!([[{"txid": source, "vout": 0}], outputs]));
        let signed = self.ours().call("signrawtransactionwithkey", json!([raw, [MINER_KEY]]));
        assert_eq!(signed["complete"], json!(true), "{signed}");
        let txid = self.ours().call("sendrawtransaction", json!([signed["hex"], 0]));
        mine(&mut self.clients, 1);
        Coins { txid, value }
    }

    fn spend(&mut self, coins: &Coins, outputs: std::ops::Range<usize>) -> Value {
        let value = coins.value * outputs.len() as f64 - 0.001;
        let inputs: Vec<Value> = outputs.map(|vout| json!({"txid": coins.txid, "vout": vout})).collect();
        let value = format!("{value:.8}");
        self.ours().call("createrawtransaction", json!([inputs, [{MINER_ADDRESS: value}]]))
    }

    /// Times one transaction with many inputs.
    fn large(&mut self, coins: &Coins, name: &str) {
        let raw = self.spend(coins, 0..MANY);
        let body = request(&raw);
        let mut first = Vec::new();
        let mut times = vec![Vec::new(); self.wallets.len()];
        let mut answers = Vec::new();
        for wallet in &mut self.wallets {
            let (took, answer) = sign(wallet, &body);
            first.push(took);
            answers.push(answer);
        }
        for _ in 0..REPEATS {
            for (wallet, times) in self.wallets.iter_mut().zip(&mut times) {
                times.push(sign(wallet, &body).0);
            }
        }
        same(&answers);
        report(&format!("{MANY} {name} inputs, the first time"), &first);
        let medians: Vec<Duration> = times.into_iter().map(median).collect();
        report(&format!("{MANY} {name} inputs, again"), &medians);
    }

    /// Times one PSBT with many inputs, of which only the outpoints are known.
    fn partially(&mut self, coins: &Coins, name: &str) {
        let raw = self.spend(coins, 0..MANY);
        let psbt = self.ours().call("converttopsbt", json!([raw]));
        let body = json!({"id": 1, "method": "walletprocesspsbt", "params": [psbt]}).to_string();
        let mut times = vec![Vec::new(); self.wallets.len()];
        let mut answers = vec![String::new(); self.wallets.len()];
        for _ in 0..ROUNDS {
            for (at, wallet) in self.wallets.iter_mut().enumerate() {
                let (took, answer) = sign(wallet, &body);
                times[at].push(took);
                answers[at] = answer;
            }
        }
        same(&answers);
        let medians: Vec<Duration> = times.into_iter().map(median).collect();
        report(&format!("walletprocesspsbt of {MANY} {name} inputs"), &medians);
    }

    /// Times many transactions with one input each.
    fn small(&mut self, coins: &Coins, name: &str) {
        let bodies: Vec<String> = (0..MANY).map(|vout| request(&self.spend(coins, vout..vout + 1))).collect();
        let mut rates = vec![Vec::new(); self.wallets.len()];
        let mut answers = vec![Vec::new(); self.wallets.len()];
        for _ in 0..ROUNDS {
            for (at, wallet) in self.wallets.iter_mut().enumerate() {
                answers[at].clear();
                let began = Instant::now();
                for body in &bodies {
                    answers[at].push(sign(wallet, body).1);
                }
                rates[at].push(began.elapsed() / u32::try_from(MANY).unwrap());
            }
        }
        for number in 0..MANY {
            same(&answers.iter().map(|answers| answers[number].clone()).collect::<Vec<_>>());
        }
        let each: Vec<Duration> = rates.into_iter().map(median).collect();
        report(&format!("one {name} input, each of {MANY} transactions"), &each);
    }
}

fn request(raw: &Value) -> String {
    json!({"id": 1, "method": "signrawtransactionwithwallet", "params": [raw]}).to_string()
}

fn sign(wallet: &mut Client, body: &str) -> (Duration, String) {
    let began = Instant::now();
    let reply = wallet.post(body);
    let took = began.elapsed();
    assert!(reply.body.contains("\"complete\":true"), "{}", reply.body);
    (took, reply.body)
}

/// Checks that both answers have the same transaction.
fn same(answers: &[String]) {
    let hex = |answer: &String| -> Value {
        let answer: Value = serde_json::from_str(answer).unwrap();
        answer["result"]["hex"].clone()
    };
    for pair in answers.windows(2) {
        assert_eq!(hex(&pair[0]), hex(&pair[1]));
    }
}

fn report(what: &str, times: &[Duration]) {
    let time = |index: usize| times.get(index).copied().map(milliseconds);
    print_row(what, "ms", time(0).unwrap(), time(1));
}

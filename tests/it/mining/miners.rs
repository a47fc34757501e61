//! Two miners that use templates alone. They know BIPs 22, 23, 141 and 145 and nothing else: they build the coinbase, the commitment,
//! the merkle root and the block's bytes from the template, without a library.

use bitcoin::absolute::LockTime;
use bitcoin::consensus::encode::{VarInt, serialize};
use bitcoin::hashes::{Hash, sha256d};
use bitcoin::hex::{DisplayHex, FromHex};
use bitcoin::script::{Builder, PushBytesBuf};
use bitcoin::{Amount, OutPoint, ScriptBuf, Sequence, Transaction, TxIn, TxOut, Witness, transaction};
use outrigger_tests::{Client, Host, wait_until};
use serde_json::{Value, json};
use std::collections::BTreeSet;

use super::calls_of_mining;

/// Each of the two miners wins once.
const ROUNDS: u64 = 2;

/// The witness of the coinbase, with which the commitment is made (BIP 141).
const RESERVED: [u8; 32] = [7; 32];

fn bytes(hex: &Value) -> Vec<u8> {
    Vec::from_hex(hex.as_str().unwrap()).unwrap()
}

/// The bytes of hexadecimal text in reverse order, as JSON shows hashes, targets and bits.
fn reversed(hex: &Value) -> Vec<u8> {
    bytes(hex).into_iter().rev().collect()
}

fn double_sha256(bytes: &[u8]) -> [u8; 32] {
    sha256d::Hash::hash(bytes).to_byte_array()
}

fn merkle_root(mut level: Vec<[u8; 32]>) -> [u8; 32] {
    while level.len() > 1 {
        level = level.chunks(2).map(|pair| double_sha256(&[pair[0], pair[pair.len() - 1]].concat())).collect();
    }
    level[0]
}

struct Work {
    header: Vec<u8>,
    /// The bytes after the header.
    body: Vec<u8>,
    /// The largest valid hash, as in the template: the most significant byte first.
    target: Vec<u8>,
}

impl Work {
    /// A block of all transactions in the template, with `tag` in the coinbase.
    fn on(template: &Value, tag: u32) -> Self {
        let number = |key: &str| template[key].as_u64().unwrap_or_else(|| panic!("{key} in {template}"));
        let others = template["transactions"].as_array().unwrap();
        let hashes =
            |key: &str| others.iter().map(|other| reversed(&other[key]).try_into().unwrap()).collect::<Vec<[u8; 32]>>();
        let witnesses = merkle_root([vec![[0_u8; 32]], hashes("hash")].concat());
        let commitment = double_sha256(&[witnesses, RESERVED].concat());
        let coinbase = coinbase(template, tag, &commitment);
        let root = merkle_root([vec![coinbase.compute_txid().to_byte_array()], hashes("txid")].concat());
        assert!(number("mintime") <= number("curtime"));
        let mut header = i32::try_from(template["version"].as_i64().unwrap()).unwrap().to_le_bytes().to_vec();
        header.extend(reversed(&template["previousblockhash"]));
        header.extend(root);
        header.extend(u32::try_from(number("curtime")).unwrap().to_le_bytes());
        header.extend(reversed(&template["bits"]));
        header.extend(0_u32.to_le_bytes());
        let mut body = serialize(&VarInt::from(others.len() + 1));
        body.extend(serialize(&coinbase));
        others.iter().for_each(|other| body.extend(bytes(&other["data"])));
        assert!((header.len() + body.len()) as u64 <= number("sizelimit"));
        Self { header, body, target: bytes(&template["target"]) }
    }

    /// Looks for a nonce in the range that the template allows.
    fn solve(mut self, template: &Value) -> Self {
        let range = bytes(&template["noncerange"]);
        let bound = |at: usize| u32::from_be_bytes(range[at..at + 4].try_into().unwrap());
        let found = (bound(0)..=bound(4)).find(|nonce| {
            self.header[76..].copy_from_slice(&nonce.to_le_bytes());
            double_sha256(&self.header).iter().rev().le(&self.target)
        });
        assert!(found.is_some(), "no nonce will do");
        self
    }

    fn hex(&self) -> String {
        [&self.header[..], &self.body].concat().to_lower_hex_string()
    }

    /// The block's hash as in JSON.
    fn hash(&self) -> Value {
        let mut hash = double_sha256(&self.header);
        hash.reverse();
        json!(hash.to_lower_hex_string())
    }
}

/// A coinbase that pays the full value and commits to the witnesses (BIPs 34 and 141).
fn coinbase(template: &Value, tag: u32, commitment: &[u8]) -> Transaction {
    let mut script = Builder::new().push_int(template["height"].as_i64().unwrap()).push_slice(tag.to_le_bytes());
    for flags in template["coinbaseaux"].as_object().unwrap().values() {
        script = script.push_slice(PushBytesBuf::try_from(bytes(flags)).unwrap());
    }
    let committing = [&[0x6a, 0x24, 0xaa, 0x21, 0xa9, 0xed][..], commitment].concat();
    Transaction {
        version: transaction::Version::TWO,
        lock_time: LockTime::ZERO,
        input: vec![TxIn {
            previous_output: OutPoint::null(),
            script_sig: script.into_script(),
            sequence: Sequence::MAX,
            witness: Witness::from_slice(&[RESERVED]),
        }],
        output: vec![
            TxOut {
                value: Amount::from_sat(template["coinbasevalue"].as_u64().unwrap()),
                script_pubkey: ScriptBuf::from_bytes(vec![0x51]),
            },
            TxOut { value: Amount::ZERO, script_pubkey: ScriptBuf::from_bytes(committing) },
        ],
    }
}

/// A miner with a connection of its own.
struct Miner {
    client: Client,
    template: Value,
}

impl Miner {
    fn new(host: &Host) -> Self {
        Self { client: host.client(), template: Value::Null }
    }

    fn request(extra: Value) -> Value {
        let mut request = json!({"rules": ["segwit"], "capabilities": ["coinbasevalue", "longpoll", "proposal"]});
        request.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        json!([request])
    }

    /// Takes a template as new work, and checks that this miner understands it.
    fn take(&mut self, template: Value) {
        let rules = template["rules"].as_array().unwrap().iter().map(|rule| rule.as_str().unwrap());
        assert!(rules.filter_map(|rule| rule.strip_prefix('!')).all(|rule| rule == "segwit"), "{template}");
        let may: BTreeSet<_> =
            template["mutable"].as_array().unwrap().iter().map(|key| key.as_str().unwrap()).collect();
        assert!(["time", "transactions", "prevblock"].iter().all(|key| may.contains(key)), "{template}");
        assert!(template["capabilities"].as_array().unwrap().contains(&json!("proposal")));
        assert_eq!(template["vbrequired"], json!(0));
        self.template = template;
    }

    fn ask(&mut self) {
        let template = self.client.call("getblocktemplate", Self::request(json!({})));
        self.take(template);
    }

    fn propose(&mut self, work: &Work) -> Value {
        self.client.call("getblocktemplate", json!([{"mode": "proposal", "data": work.hex()}]))
    }

    fn submit(&mut self, work: &Work) -> Value {
        self.client.call("submitblock", json!([work.hex()]))
    }
}

#[test]
fn getblocktemplate_lets_two_miners_compete_by_longpolls_and_proposals() {
    let host = Host::start();
    let mut wallet = host.new_wallet("w");
    let address = wallet.mine(101);
    let mut miners = [Miner::new(&host), Miner::new(&host)];
    let tip = wallet.call("getbestblockhash", json!([]));
    let now = wallet.call("getblockheader", json!([tip]))["time"].as_u64().unwrap();
    for (round, tag) in (0..ROUNDS).zip(1..) {
        // The host makes a new template for a changed mempool once the last one is five seconds old.
        wallet.call("setmocktime", json!([now + 60 * (u64::from(tag))]));
        for amount in [1, 2] {
            wallet.call("sendtoaddress", json!([address, amount]));
        }
        miners.iter_mut().for_each(Miner::ask);
        let [first, second] = &mut miners;
        let (winner, loser) = if round % 2 == 0 { (first, second) } else { (second, first) };
        assert_eq!(winner.template["transactions"].as_array().unwrap().len(), 2);
        let calls = calls_of_mining(&mut winner.client);
        let poll = Miner::request(json!({"longpollid": loser.template["longpollid"]}));
        let waiting = loser.client.begin_call("getblocktemplate", poll);
        wait_until("the long poll waits", || calls_of_mining(&mut winner.client) > calls);
        // A proposed block need not be solved but must be valid, and the host does not keep it.
        let mut work = Work::on(&winner.template, tag);
        work.header[40] ^= 1;
        assert_eq!(winner.propose(&work), json!("bad-txnmrklroot"));
        work.header[40] ^= 1;
        assert_eq!(winner.propose(&work), Value::Null);
        let work = work.solve(&winner.template);
        assert_eq!(winner.submit(&work), Value::Null);
        assert_eq!(winner.submit(&work), json!("duplicate"));
        // The long poll of the other miner returns. Its own block comes too late now.
        let woken = waiting.answer();
        let late = Work::on(&loser.template, tag + 100);
        assert_eq!(loser.propose(&late), json!("inconclusive-not-best-prevblk"));
        let late = late.solve(&loser.template);
        assert_eq!(loser.submit(&late), json!("inconclusive"));
        loser.take(woken["result"].clone());
        assert_eq!(loser.template["previousblockhash"], work.hash());
        assert_eq!((&loser.template["height"], &loser.template["transactions"]), (&json!(103 + round), &json!([])));
        let block = wallet.call("getblock", json!([work.hash(), 2]));
        assert_eq!(block["tx"].as_array().unwrap().len(), 3);
        assert_eq!(block["tx"][0]["vout"][0]["value"].to_string().parse(), Ok(paid(&winner.template)));
    }
    assert_eq!(wallet.call("getblockcount", json!([])), json!(101 + ROUNDS));
    let tips = wallet.call("getchaintips", json!([]));
    assert_eq!(tips.as_array().unwrap().len() as u64, 1 + ROUNDS);
}

/// The value that a template allows the coinbase, in bitcoin.
fn paid(template: &Value) -> f64 {
    let satoshi = template["coinbasevalue"].as_u64().unwrap();
    format!("{}.{:08}", satoshi / 100_000_000, satoshi % 100_000_000).parse().unwrap()
}

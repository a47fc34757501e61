//! The parsers with a fixed corpus and its mutations. The tried bytes depend only on this file and the corpus.

use std::path::PathBuf;

use bitcoin::consensus::deserialize;
use bitcoin::{Amount, ScriptBuf, Transaction, TxOut, Witness};
use outrigger_kit::psbt::{MuSig2Key, Origin, Psbt, VersionTwo};
use outrigger_sdk::Plugin;
use outrigger_sdk::params::decode_hex;
use serde_json::Value;

use super::{TARGETS, rules, run};

const MUTATIONS: usize = 3_000;
/// The largest corpus file that is mutated, in bytes.
const MAX_SEED: usize = 90_000;

struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.0;
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ (number >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

/// Pieces that tend to reach limits.
const PIECES: [&[u8]; 12] = [
    b"\xff\xff\xff\xff",
    b"\0\0\0\0",
    b"\xfd\xff\xff",
    b"\xfe\xff\xff\xff\x7f",
    b"[[[[[[[[",
    b"{\"",
    b"\\ud800",
    b"1e99999",
    b"-0",
    b"null",
    b"/2147483648h/*",
    b"and_v(v:",
];

/// Changes, removes or doubles some bytes, or inserts a piece.
fn mutate(seed: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(bytes.len() + 1);
        let end = (at + numbers.below(16)).min(bytes.len());
        match numbers.below(6) {
            0 if at < bytes.len() => bytes[at] ^= 1 << numbers.below(8),
            1 if at < bytes.len() => bytes[at] = numbers.next() as u8,
            2 => drop(bytes.drain(at..end)),
            3 => bytes.truncate(at),
            4 => {
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
            _ => drop(bytes.splice(at..at, PIECES[numbers.below(PIECES.len())].iter().copied())),
        }
    }
    bytes
}

fn file(path: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A few recorded signing requests of each kind.
fn requests() -> Vec<Value> {
    let recorded: Value = serde_json::from_slice(&file("tests/data/signing.json")).unwrap();
    let rows = recorded["rows"].as_array().unwrap().iter().step_by(13);
    rows.map(|row| row["params"].clone()).collect()
}

/// The recorded transactions as PSBTs without data, and one PSBT with fields of many kinds.
fn psbts() -> Vec<Vec<u8>> {
    let mut transactions: Vec<Transaction> = requests()
        .iter()
        .filter_map(|params| deserialize::<Transaction>(&decode_hex(params[0].as_str()?)?).ok())
        .filter(|transaction| !transaction.input.is_empty())
        .collect();
    for input in transactions.iter_mut().flat_map(|transaction| &mut transaction.input) {
        (input.script_sig, input.witness) = (ScriptBuf::new(), Witness::new());
    }
    let mut rich = Psbt::new(transactions[0].clone());
    let key = decode_hex("0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798").unwrap();
    let x_only: [u8; 32] = key[1..].try_into().unwrap();
    let key_of_musig2: MuSig2Key = key[..].try_into().unwrap();
    let origin = Origin { fingerprint: [1, 2, 3, 4], path: vec![0x8000_0054, 7] };
    rich.unknown.insert(vec![0xaa, 1], vec![2]);
    rich.proprietary.insert(vec![0xfc, 3, 1, 2, 3, 4], vec![5]);
    let input = &mut rich.inputs[0];
    input.witness_utxo = Some(TxOut { value: Amount::from_sat(9), script_pubkey: ScriptBuf::from_bytes(vec![0x51]) });
    input.sighash_type = Some(1);
    input.redeem_script = ScriptBuf::from_bytes(vec![0x52]);
    input.witness_script = ScriptBuf::from_bytes(vec![0x53]);
    input.origins.insert(key.clone(), origin.clone());
    input.preimages[1].insert(vec![6; 32], vec![7; 9]);
    input.final_witness = Witness::from_slice(&[&[1_u8][..], &[]]);
    input.tap_key_sig = vec![8; 64];
    input.tap_internal_key = Some(x_only);
    input.tap_merkle_root = Some([9; 32]);
    input.tap_origins.insert(x_only, ([[3; 32]].into(), origin.clone()));
    input.unknown.insert(vec![0xbb], Vec::new());
    let output = &mut rich.outputs[0];
    output.origins.insert(key, origin);
    output.tap_internal_key = Some(x_only);
    output.tap_tree = vec![(1, 0xc0, vec![0x51]), (1, 0xc0, vec![0x52])];
    let mut second = rich.clone();
    second.inputs[0].final_witness = Witness::new();
    second.inputs[0].musig2_nonces.insert((key_of_musig2, None, key_of_musig2), [4; 66]);
    second.v2 = Some(VersionTwo { fallback_lock_time: Some(5), modifiable: Some(3) });
    second.inputs[0].height_lock = Some(6);
    let plain = transactions.into_iter().take(8).map(Psbt::new);
    let all: Vec<Vec<u8>> = plain.chain([rich, second]).map(|psbt| psbt.to_bytes()).collect();
    all.iter().for_each(|bytes| assert!(Psbt::from_bytes(bytes, &rules(Some(super::LAST))).is_ok()));
    all
}

/// Valid or nearly valid input of the parser with this name.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let texts = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    match name {
        "signing" => {
            let requests = requests();
            let transactions = requests.iter().filter_map(|params| decode_hex(params[0].as_str()?)).collect::<Vec<_>>();
            requests.iter().map(|params| params.to_string().into_bytes()).chain(transactions).collect()
        }
        "transaction" => requests().iter().filter_map(|params| decode_hex(params[0].as_str()?)).collect(),
        "block" => {
            let chain = String::from_utf8(file("tests/data/chain.hex")).unwrap();
            chain.lines().step_by(37).filter_map(decode_hex).collect()
        }
        "descriptor" => texts(&[
            "wpkh(cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87K7XCyj5v)#pdry7alk",
            "wpkh(tprv8ZgxMBicQKsPd7Uf69XL1XwhmjHopUGep8GuEiJDZmbQz6o58LninorQAfcKZWARbtRtfnLcJ5MQ2AtHcQJCCRUcMRvmDUjyEmNUWwx8UbK/84h/1h/0h/<0;1>/*)",
            "tr(79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798,{pk(c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5),multi_a(1,c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5)})",
            "sh(wsh(sortedmulti(1,0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798,02c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5)))",
            "wsh(andor(pk(0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798),older(10),and_v(v:pk(02c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5),after(100))))",
            "addr(bcrt1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqdku202)",
            "raw(512079be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798)",
            "combo([00112233/44h]0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798)",
        ]),
        "messages" => (0..16).map(|kind| [vec![kind], vec![1; 200]].concat()).chain([vec![], vec![5; 4]]).collect(),
        "envelope" => texts(&[
            r#"{"jsonrpc":"2.0","id":1,"method":"getblockcount","params":[]}"#,
            r#"[{"id":null,"method":"help"},{"jsonrpc":"1.0","id":"x","method":"m","params":{"a":1,"args":["b"]}}]"#,
            r#"{"method":"signrawtransactionwithkey","params":["00","[\"k\"]",[{"txid":"\u00e4","vout":1e3}]],"id":[1]}"#,
            "  [ ] ",
        ]),
        "manifest" => {
            vec![outrigger_signing::SigningPlugin::MANIFEST.into(), file("tests/plugins/faulty/manifest.json")]
        }
        "database" => ["both", "legacy"].map(|name| file(&format!("tests/data/former/{name}/data.mdb"))).into(),
        "node_reply" => texts(&[
            "{\"result\":{\"a\":[1,\"é\"]},\"error\":null,\"id\":1}\n",
            r#"{"result":null,"error":{"code":-8,"message":"Block height out of range"},"id":1}"#,
            r#"[{"result":1,"error":null,"id":1},{"result":null,"error":{"code":-5,"message":"x"},"id":1}]"#,
            "== Blockchain ==\ngetblock \"blockhash\" ( verbosity )\n\n== Wallet ==\nsend [{}]\n",
        ]),
        "node_result" => {
            let hash = "11".repeat(32);
            let script = r#"{"hex":"0014751e76e8199196d454941c45d1b3a323f1433bd6"}"#;
            let results = [
                r#"{"chain":"signet","blocks":7,"headers":8,"signet_challenge":"51","warnings":["a"]}"#,
                r#"{"size":1,"bytes":2,"usage":3,"total_fee":0.00000001,"maxmempool":4,"mempoolminfee":1e-8,"minrelaytxfee":0.00001}"#,
                r#"{"bestblock":"HASH","confirmations":3,"value":49.99999999,"scriptPubKey":SCRIPT,"coinbase":true}"#,
                r#"{"tx":[{"vin":[{}]},{"vin":[{"prevout":{"generated":false,"height":5,"value":0.1,"scriptPubKey":SCRIPT}}]}]}"#,
                r#"{"version":536870912,"rules":["csv","!segwit"],"vbavailable":{"testdummy":28},"previousblockhash":"HASH",
                    "transactions":[{"data":"00ff","txid":"HASH","hash":"HASH","depends":[],"fee":7,"sigops":4,"weight":400}],
                    "coinbasevalue":5000000007,"longpollid":"HASH1","mintime":11,"curtime":12,"bits":"207fffff"}"#,
                r#"{"height":7,"deployments":{"segwit":{"height":0},"testdummy":{"bip9":{"bit":28,"start_time":0,"timeout":9,
                    "min_activation_height":0,"status":"started","since":144,"status_next":"locked_in",
                    "statistics":{"period":144,"threshold":108},"signalling":"-#"}}}}"#,
                r#"{"feerate":0.00012345,"blocks":6}"#,
                r#"{"vsize":141,"time":9,"height":7,"ancestorcount":1,"ancestorsize":141,"descendantcount":1,"descendantsize":141,
                    "wtxid":"HASH","fees":{"base":0.1,"modified":-0.1,"ancestor":0.1,"descendant":0.1},"depends":["HASH"]}"#,
                r#"[{"height":7,"hash":"HASH","branchlen":0,"status":"active"}]"#,
                r#"[{"spendingtxid":"HASH"},{}]"#,
                r#"[{"txid":"HASH","allowed":false,"reject-reason":"missing-inputs"}]"#,
                r#"["HASH"]"#,
            ];
            results.map(|text| text.replace("HASH", &hash).replace("SCRIPT", script).into_bytes()).into()
        }
        "zmq" => {
            let mut greeting = vec![0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 1];
            greeting.extend_from_slice(b"NULL");
            greeting.resize(64, 0);
            greeting.extend_from_slice(b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03PUB");
            let message = |rest: &[u8]| {
                let length = u8::try_from(32 + rest.len()).unwrap();
                [b"\x01\x08sequence\x01", &[length][..], &[9; 32], rest, b"\0\x04\x01\x02\x03\x04"].concat()
            };
            let added = message(b"A\x01\0\0\0\0\0\0\0");
            vec![[&greeting[..], &message(b"C"), &added, &message(b"D")].concat(), [&greeting[..], &added].concat()]
        }
        "node_wallet" => {
            let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
            let record = |key: &[Vec<u8>], value: &[Vec<u8>]| {
                let key = key.concat();
                [vec![u8::try_from(key.len()).unwrap()], key, value.concat()].concat()
            };
            let transaction = bitcoin::constants::genesis_block(bitcoin::Network::Regtest).txdata.remove(0);
            let noted = [vec![0; 32], vec![0], vec![0; 4], vec![0], vec![1], text("comment"), text("rent")].concat();
            let indexes = [9_u64.to_le_bytes().to_vec(), vec![0; 12]].concat();
            let secret = [&[0x30, 0x81, 0xd3, 2, 1, 1, 4, 0x20][..], &[5; 32], &[0xa0]].concat();
            vec![
                record(&[text("flags")], &[vec![1; 8]]),
                record(&[text("walletdescriptor"), vec![7; 32]], &[text("raw(51)#abcdefgh"), indexes]),
                record(&[text("walletdescriptorkey"), vec![7; 32], vec![33], vec![2; 33]], &[vec![41], secret]),
                record(&[text("mkey"), vec![1, 0, 0, 0]], &[vec![48], vec![1; 48], vec![8], vec![2; 8], vec![0; 8]]),
                record(&[text("name"), text("bcrt1q")], &[text("rent")]),
                record(&[text("tx"), vec![3; 32]], &[bitcoin::consensus::serialize(&transaction), noted]),
                record(&[text("lockedutxo"), vec![3; 32], vec![0; 4]], &[vec![1]]),
            ]
        }
        "psbt" => psbts(),
        "forwarded" => texts(&[
            "for=192.0.2.43, For=\"[2001:db8:cafe::17]:4711\";proto=http;by=203.0.113.43;host=\"a\\\"b\"",
            "198.51.100.7, 192.0.2.1:80, ::ffff:127.0.0.1",
        ]),
        "proxy_header" => [(0x11, 12), (0x21, 36), (0x31, 216), (0, 0)]
            .map(|(family, length)| {
                [b"\r\n\r\n\0\r\nQUIT\n\x21", &[family, 0, length][..], &vec![9; length.into()], b"POST /"].concat()
            })
            .into(),
        "runner_message" => {
            let head = |kind: u8, len: u8| {
                let mut head = [0_u8; 32];
                (head[0], head[4], head[8], head[28]) = (kind, 0xff, 7, len);
                head.to_vec()
            };
            (1..=15).map(|kind| [head(kind, 0), head(kind, 9)].concat()).collect()
        }
        "zmq_subscriber" => {
            let mut greeting = vec![0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0];
            greeting.extend_from_slice(b"NULL");
            greeting.resize(64, 0);
            greeting.extend_from_slice(b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03SUB");
            let wants = b"\0\x09\x01rawblock\0\x05\x01hash\0\x05\0hash\0\x01\x01";
            let heartbeat = b"\x04\x0b\x04PING\0\x0ahere";
            vec![[&greeting[..], wants, heartbeat].concat(), [&greeting[..], heartbeat, heartbeat, wants].concat()]
        }
        "amount" => texts(&["0.00000001", "\"21000000\"", "1e-8", "[0,999999]", "-1.5", "123456789.123456789"]),
        other => panic!("no corpus for {other}"),
    }
}

fn hash(name: &str) -> u64 {
    name.bytes().fold(7, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()))
}

#[track_caller]
fn check(name: &str) {
    let corpus = corpus(name);
    assert!(!corpus.is_empty());
    let work = || {
        corpus.iter().for_each(|seed| run(name, seed));
        let seeds: Vec<_> = corpus.iter().filter(|seed| seed.len() <= MAX_SEED).collect();
        let mut numbers = Numbers(hash(name));
        for _ in 0..MUTATIONS {
            run(name, &mutate(seeds[numbers.below(seeds.len())], &mut numbers));
        }
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(8 << 20).spawn_scoped(scope, work).unwrap();
        thread.join().unwrap();
    });
}

macro_rules! tests {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            check(stringify!($name));
        })*

        #[test]
        fn parsers_are_all_tested_and_fuzzed() {
            let names = TARGETS.map(|(name, _)| name);
            assert_eq!(names, [$(stringify!($name)),*]);
            let manifest = String::from_utf8(file("tests/fuzz/Cargo.toml")).unwrap();
            for name in names {
                assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
                let source = String::from_utf8(file(&format!("tests/fuzz/fuzz_targets/{name}.rs"))).unwrap();
                assert!(source.contains(&format!("\"{name}\"")), "{name}");
            }
        }
    };
}

tests! { signing descriptor transaction block messages envelope manifest amount database zmq node_reply node_result node_wallet psbt zmq_subscriber runner_message forwarded proxy_header }

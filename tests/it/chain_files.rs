//! savemempool, importmempool and dumptxoutset: the files go from a real bitcoind to the host and back, or are the same.

use std::path::Path;

use bitcoin::consensus::encode::serialize_hex;
use bitcoin::{Amount, OutPoint, ScriptBuf, Transaction};
use outrigger_tests::pair::{COIN, Pair, spend};
use outrigger_tests::{Client, HostOptions};
use serde_json::{Value, json};

/// How many blocks make enough coins mature.
const BLOCKS: u64 = 110;
/// The bytes of a file before what is combined with its key: its version, the length of the key, the key.
const PREFIX: usize = 8 + 1 + 8;

/// Transactions that pay a coin on, each spending the one before it.
fn chain_of(pair: &mut Pair, length: u64, fee: u64) -> Vec<Transaction> {
    let mut transactions: Vec<Transaction> = Vec::new();
    let coin = pair.coin();
    for number in 1..=length {
        let last = transactions.last().map_or(coin, |last| OutPoint::new(last.compute_txid(), 0));
        transactions.push(spend(&[last], &[COIN - Amount::from_sat(fee * number)]));
    }
    transactions
}

fn send_all(client: &mut Client, transactions: &[Transaction]) {
    for transaction in transactions {
        client.call("sendrawtransaction", json!([serialize_hex(transaction), 0]));
    }
}

/// What the node tells beside what Bitcoin Core does.
const NODES_OWN: [&str; 4] = ["startingpriority", "currentpriority", "hash", "priority_delta"];

/// The entries of a mempool, and what was added to fees.
fn contents(client: &mut Client) -> (Value, Value) {
    let mut told = |method: &str, params: Value| {
        let mut told = client.call(method, params);
        for entry in told.as_object_mut().unwrap().values_mut().filter_map(Value::as_object_mut) {
            NODES_OWN.iter().for_each(|name| drop(entry.shift_remove(*name)));
        }
        told
    };
    (told("getrawmempool", json!([true])), told("getprioritisedtransactions", json!([])))
}

fn save(client: &mut Client) -> String {
    client.call("savemempool", json!([]))["filename"].as_str().unwrap().to_owned()
}

/// What a file holds, without its key.
fn unmasked(path: &str) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap();
    assert_eq!(bytes[..9], [2, 0, 0, 0, 0, 0, 0, 0, 8]);
    let key = &bytes[9..PREFIX];
    bytes.iter().enumerate().skip(PREFIX).map(|(position, byte)| byte ^ key[position % key.len()]).collect()
}

/// The entry of a transaction.
fn entry(client: &mut Client, transaction: &Transaction) -> Value {
    client.call("getmempoolentry", json!([transaction.compute_txid()]))
}

#[test]
fn mempool_file_goes_from_bitcoind_to_the_host_and_back() {
    let Some(mut pair) = Pair::start(HostOptions::default(), &[], BLOCKS) else { return };
    let [mut host, mut node] = pair.clients();
    let (theirs, ours) = (chain_of(&mut pair, 5, 3_000), chain_of(&mut pair, 3, 1_000));
    send_all(&mut node, &theirs);
    send_all(&mut node, &chain_of(&mut pair, 1, 20_000));
    for (transaction, delta) in [(&theirs[2], 500), (&theirs[0], -40), (&ours[1], 77)] {
        node.call("prioritisetransaction", json!([transaction.compute_txid(), 0, delta]));
    }
    let file = save(&mut node);
    pair.pass(100);
    // What stands before the end of a file is taken in.
    let folder = tempfile::tempdir().unwrap();
    let cut = folder.path().join("cut.dat");
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    let refused = host.refused("importmempool", json!([cut, {"use_current_time": false}]));
    assert_eq!(refused, (-1, "Unable to import mempool file, see debug log for details.".into()));
    let some = host.call("getrawmempool", json!([])).as_array().unwrap().len();
    assert!((1..6).contains(&some), "{some}");
    let everything =
        json!({"use_current_time": false, "apply_fee_delta_priority": true, "apply_unbroadcast_set": true});
    assert_eq!(host.call("importmempool", json!([file, everything])), json!({}));
    assert_eq!(contents(&mut host), contents(&mut node));
    // The other way round, with more.
    send_all(&mut host, &ours);
    pair.pass(100);
    let saved = save(&mut host);
    assert_eq!(Path::new(&saved), pair.host.network_folder().canonicalize().unwrap().join("mempool.dat"));
    let options = json!({"use_current_time": false, "apply_unbroadcast_set": true});
    assert_eq!(node.call("importmempool", json!([saved, options])), json!({}));
    assert_eq!(contents(&mut host), contents(&mut node));
    let files = [save(&mut host), save(&mut node)];
    assert_eq!(unmasked(&files[0]), unmasked(&files[1]));
    // Without options they count as coming now, and as known to others; what is there already stays as it is.
    let late = [chain_of(&mut pair, 1, 5_000), chain_of(&mut pair, 1, 6_000)].map(|mut one| one.remove(0));
    send_all(&mut host, &late[..1]);
    send_all(&mut node, &late[1..]);
    pair.pass(100);
    let files = [save(&mut host), save(&mut node)];
    for (client, file) in [(&mut host, &files[1]), (&mut node, &files[0])] {
        assert_eq!(client.call("importmempool", json!([file])), json!({}));
    }
    for transaction in &late {
        let entries = [&mut host, &mut node].map(|client| entry(client, transaction));
        let first = entries.iter().position(|entry| entry["unbroadcast"] == true).unwrap();
        let (first, came) = (&entries[first], &entries[1 - first]);
        assert_eq!(came["time"].as_u64().unwrap(), first["time"].as_u64().unwrap() + 100);
        assert_eq!(came["unbroadcast"], json!(false));
    }
    // A host takes its own file, too.
    assert_eq!(host.call("importmempool", json!([files[0]])), json!({}));
    // Transactions that are too old stay out.
    pair.pass(400 * 3_600);
    pair.mine_only(&[]);
    assert_eq!(host.call("getrawmempool", json!([])), json!([]));
    assert_eq!(host.call("importmempool", json!([files[0], everything])), json!({}));
    assert_eq!(host.call("getrawmempool", json!([])), json!([]));
    assert_eq!(host.call("importmempool", json!([files[0]])), json!({}));
    assert_eq!(host.call("getrawmempool", json!([])).as_array().unwrap().len(), 6 + 3 + 1);
}

#[test]
fn importmempool_refuses_as_bitcoind() {
    let Some(mut pair) = Pair::start(HostOptions::default(), &[], 0) else { return };
    pair.same("importmempool", &json!(["/nonexistent"]));
    pair.mine();
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other");
    std::fs::write(&other, "no mempool").unwrap();
    let file = save(&mut pair.node.client());
    for params in [
        json!(["/nonexistent"]),
        json!([""]),
        json!([folder.path()]),
        json!([other]),
        json!([file, {"use_current_time": 1}]),
        json!([file, {"apply_unbroadcast_set": "a"}]),
        json!([file, {"apply_fee_delta_priority": null}]),
        json!([file, 3]),
        json!([file, {"bogus": 1}]),
        json!([file]),
        json!([5]),
    ] {
        pair.same("importmempool", &params);
    }
    // What the rule for clients' files forbids is refused alike.
    let refused = (-1, "Unable to import mempool file, see debug log for details.".to_owned());
    let mut host = pair.host.client();
    for name in [".cookie", "wallets/load.json", "../regtest/chain/data.mdb"] {
        assert_eq!(host.refused("importmempool", json!([pair.host.network_folder().join(name)])), refused, "{name}");
    }
}

/// Makes the same file of both, and compares what is told of it, but for its path.
fn same_dump(pair: &Pair, name: &str, options: &[Value]) -> Value {
    let params = [&[json!(name)], options].concat();
    let [(ours, our_file), (theirs, their_file)] = pair.clients().map(|mut client| {
        let mut told = client.call("dumptxoutset", json!(params));
        let path = told["path"].take();
        (told, std::fs::read(path.as_str().unwrap()).unwrap())
    });
    assert_eq!(ours.to_string(), theirs.to_string(), "{params:?}");
    assert!(our_file == their_file, "{params:?}");
    ours
}

#[test]
fn dumptxoutset_writes_the_same_file_as_bitcoind() {
    let Some(mut pair) = Pair::start(HostOptions::default(), &[], BLOCKS) else { return };
    // Scripts of all kinds, amounts of many lengths, more outputs than one byte of an index counts, and outputs that cannot be spent.
    let key = "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
    let rest = "483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8";
    let hash = "11".repeat(20);
    let scripts = [
        format!("76a914{hash}88ac"),
        format!("a914{hash}87"),
        format!("2102{key}ac"),
        format!("2103{}ac", "ff".repeat(32)),
        format!("4104{key}{rest}ac"),
        format!("4106{key}{rest}ac"),
        format!("4104{key}{key}ac"),
        format!("0014{hash}"),
        format!("5120{key}"),
        "51".repeat(9_000),
        String::new(),
        "6a0548656c6c6f".to_owned(),
    ];
    let mut large = spend(&[pair.coin()], &[Amount::ZERO; 400]);
    for (number, output) in large.output.iter_mut().enumerate() {
        output.script_pubkey = ScriptBuf::from_hex(&scripts[number % scripts.len()]).unwrap();
        output.value = Amount::from_sat([0, 1, 9, 10, 12_345, 600, 7_000_000, 23_456_789][number % 8]);
    }
    let funded = pair.mine_only(&[large]);
    let first = chain_of(&mut pair, 3, 1_000);
    pair.mine_only(&first);
    // The last of that chain is spent in another block.
    let last = spend(&[OutPoint::new(first[2].compute_txid(), 0)], &[Amount::from_sat(5_000); 3]);
    let tip = pair.mine_only(&[last]);
    let told = same_dump(&pair, "latest.dat", &[json!("latest")]);
    assert_eq!((&told["base_hash"], &told["base_height"]), (&json!(tip), &json!(BLOCKS + 3)));
    assert_eq!(told["txoutset_hash"], pair.host.client().call("gettxoutsetinfo", json!([]))["hash_serialized_3"]);
    for (name, rollback) in [("a", json!(BLOCKS + 2)), ("b", json!(funded)), ("c", json!(50)), ("d", json!(0))] {
        same_dump(&pair, &format!("{name}.dat"), &[json!("rollback"), json!({"rollback": rollback})]);
    }
    same_dump(&pair, "e.dat", &[Value::Null, json!({"rollback": tip})]);
    // The chain stayed where it was.
    assert_eq!(pair.host.client().call("getbestblockhash", json!([])), json!(tip));
}

#[test]
fn dumptxoutset_refuses_as_bitcoind() {
    let Some(pair) = Pair::start(HostOptions::default(), &[], 5) else { return };
    for params in [
        json!(["u.dat"]),
        json!(["u.dat", ""]),
        json!(["u.dat", "rollback"]),
        json!(["u.dat", "bogus"]),
        json!(["u.dat", "latest", {"rollback": 2}]),
        json!(["u.dat", "rollback", {"rollback": 6}]),
        json!(["u.dat", "rollback", {"rollback": -1}]),
        json!(["u.dat", "rollback", {"rollback": "00"}]),
        json!(["u.dat", "rollback", {"rollback": "00".repeat(32)}]),
        json!(["u.dat", "rollback", {"rollback": null}]),
        json!(["u.dat", "rollback", {"rollback": {}}]),
        json!(["u.dat", "rollback", {"bogus": 1}]),
        json!(["/nonexistent/x", "latest"]),
        json!(["/tmp", "latest"]),
        json!([5, "latest"]),
    ] {
        pair.same("dumptxoutset", &params);
    }
    let mut host = pair.host.client();
    let folder = pair.host.network_folder().canonicalize().unwrap();
    for name in ["", "u.dat"] {
        let path = folder.join(name).display().to_string();
        let path = path.trim_end_matches('/');
        let _ = host.try_call("dumptxoutset", json!(["u.dat", "latest"]));
        let again =
            (-8, format!("{path} already exists. If you are sure this is what you want, move it out of the way first"));
        assert_eq!(host.refused("dumptxoutset", json!([name, "latest"])), again);
    }
    // The rule for clients' files: no other names in the data directory.
    for name in ["u", "wallets/u.dat", "../u.dat", ".u.dat"] {
        let path = folder.join(name).display().to_string();
        let refused = (-8, format!("Couldn't open file {path}.incomplete for writing."));
        assert_eq!(host.refused("dumptxoutset", json!([name, "latest"])), refused);
    }
}

//! Files of the layout before this one, kept as a host wrote them (`tests/data/former`): they are written anew in this layout,
//! and say the same.

use std::fs;
use std::path::Path;

use outrigger_tests::{Client, Host, HostOptions, copy_folder, data_json};
use serde_json::{Value, json};
use tempfile::TempDir;

/// What must be the same: what a transaction, an output, a descriptor or a block is.
const SAME: [&str; 14] = [
    "txid",
    "vout",
    "amount",
    "category",
    "confirmations",
    "address",
    "desc",
    "hash",
    "height",
    "bestblock",
    "value",
    "txouts",
    "merkleroot",
    "hash_serialized_3",
];

/// The files were written with so few addresses ahead.
fn options() -> HostOptions {
    HostOptions { set: vec!["wallet.keypool=3".to_owned()], ..HostOptions::default() }
}

/// Puts the kept files where a host looks for them.
fn unpack() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    copy_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("data/former"), &folder.path().join("regtest"));
    folder
}

/// The fields that must be the same, in their order, wherever they stand. Amounts are kept as texts.
fn fields(value: &Value, found: &mut Vec<(String, String)>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| fields(item, found)),
        Value::Object(items) => {
            for (key, value) in items {
                match value {
                    // Results had these beside the keys of Bitcoin Core 29.
                    Value::Array(_) | Value::Object(_) if ["addresses", "softforks"].contains(&key.as_str()) => {}
                    Value::Array(_) | Value::Object(_) => fields(value, found),
                    Value::String(text) if SAME.contains(&key.as_str()) => found.push((key.clone(), text.clone())),
                    other if SAME.contains(&key.as_str()) => found.push((key.clone(), other.to_string())),
                    _ => {}
                }
            }
        }
        Value::String(text) => found.push((String::new(), text.clone())),
        other => found.push((String::new(), other.to_string())),
    }
    found.sort();
}

/// Asks again what was asked of the host that wrote the files.
fn check(client: &mut Client) {
    for asked in data_json("former/answers.json").as_array().unwrap() {
        let method = asked["method"].as_str().unwrap();
        // What waits in the mempool is too old by now.
        if ["getrawmempool", "listunspent", "getbalances", "getaddressinfo", "getaddressesbylabel"].contains(&method) {
            continue;
        }
        let mut of = asked["wallet"].as_str().map_or_else(|| client.wallet(""), |wallet| client.wallet(wallet));
        let client = if asked["wallet"].is_null() { &mut *client } else { &mut of };
        let answer = client.call(method, asked["params"].clone());
        let [mut before, mut after] = [Vec::new(), Vec::new()];
        fields(&asked["result"], &mut before);
        fields(&answer, &mut after);
        assert!(!before.is_empty(), "{method}");
        assert_eq!(before, after, "{method} {}", asked["params"]);
    }
}

#[test]
fn former_layout_of_chain_and_wallets_is_migrated_and_says_the_same() {
    let host = Host::start_in(unpack(), options());
    let mut client = host.client();
    assert_eq!(client.call("listwallets", json!([])), json!(["plain", "sealed"]));
    check(&mut client);
    // Keys and labels came along, and the wallets take writes.
    let mut sealed = client.wallet("sealed");
    sealed.call("walletpassphrase", json!(["a passphrase", 600]));
    let theirs = sealed.call("getaddressesbylabel", json!(["theirs"]));
    assert_eq!(theirs.as_object().unwrap().len(), 1);
    let address = sealed.call("getnewaddress", json!(["fresh"]));
    let mut plain = client.wallet("plain");
    plain.call("generatetoaddress", json!([1, address]));
    assert_eq!(sealed.call("getwalletinfo", json!([]))["txcount"], json!(3));
    // A second start finds this layout.
    let host = host.restart();
    assert_eq!(host.client().wallet("sealed").call("getwalletinfo", json!([]))["txcount"], json!(3));
    assert_eq!(host.client().call("getblockcount", json!([])), json!(104));
}

#[test]
fn former_layout_migration_that_was_killed_begins_anew() {
    let folder = unpack();
    let wallets = folder.path().join("regtest/wallets");
    // What a kill leaves: the new file half-way, in its place beside the former one.
    for place in [folder.path().join("regtest/chain"), wallets.join("plain")] {
        let making = place.join("data.mdb.making");
        fs::create_dir(&making).unwrap();
        fs::write(making.join("data.mdb"), [7; 20_000]).unwrap();
        // Or the former file under its second name, and the new one not yet in its place.
        fs::hard_link(place.join("data.mdb"), place.join("data.mdb.former")).unwrap();
    }
    // A kill after that leaves the former file, whose keys must not stay.
    let kept = wallets.join("sealed/data.mdb.former");
    fs::write(&kept, b"a former key").unwrap();
    let open = fs::File::open(&kept).unwrap();
    let host = Host::start_in(folder, options());
    check(&mut host.client());
    assert_eq!(host.client().call("listwalletdir", json!([]))["wallets"].as_array().unwrap().len(), 3);
    for left in [
        "chain/data.mdb.making",
        "chain/data.mdb.former",
        "wallets/plain/data.mdb.making",
        "wallets/plain/data.mdb.former",
    ] {
        assert!(!host.network_folder().join(left).exists(), "{left}");
    }
    assert!(!host.network_folder().join("wallets/sealed/data.mdb.former").exists());
    assert_eq!(std::io::read_to_string(open).unwrap(), "\0".repeat("a former key".len()));
}

#[test]
fn restorewallet_takes_a_backup_of_the_former_layout() {
    let host = Host::start();
    let mut client = host.client();
    let folder = tempfile::tempdir().unwrap();
    let backup = folder.path().join("backup");
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/former/wallets/sealed/data.mdb");
    fs::write(&backup, fs::read(kept).unwrap()).unwrap();
    client.call("restorewallet", json!(["back", backup]));
    assert_eq!(client.wallet("back").call("getaddressesbylabel", json!(["theirs"])).as_object().unwrap().len(), 1);
}

/// How many descriptors a wallet has, and how many of them give addresses.
fn descriptors(wallet: &mut Client) -> (usize, usize) {
    let listed = wallet.call("listdescriptors", json!([]));
    let listed = listed["descriptors"].as_array().unwrap();
    (listed.len(), listed.iter().filter(|descriptor| descriptor["active"] == json!(true)).count())
}

#[test]
fn encryptwallet_of_a_former_wallet_without_keys_of_its_own_adds_none() {
    let host = Host::start_in(unpack(), options());
    let mut client = host.client();
    client.call("loadwallet", json!(["imported"]));
    let (mut imported, mut plain) = (client.wallet("imported"), client.wallet("plain"));
    assert_eq!((descriptors(&mut imported), descriptors(&mut plain)), ((1, 1), (8, 8)));
    // A label that is as long as labels were allowed to be is told as it was.
    let label = "L".repeat(3000);
    assert_eq!(imported.call("listlabels", json!([])), json!([label]));
    for wallet in [&mut imported, &mut plain] {
        wallet.call("encryptwallet", json!(["a passphrase"]));
    }
    assert_eq!((descriptors(&mut imported), descriptors(&mut plain)), ((1, 1), (16, 8)));
}

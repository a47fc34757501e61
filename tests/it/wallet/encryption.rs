//! Passphrases, and copies of keys in the host's memory after walletlock.

use bitcoin::bip32::{ChildNumber, Xpriv};
use bitcoin::secp256k1::Secp256k1;
use memchr::memmem;
use outrigger_tests::{ELSEWHERE, Host, XPRV, wait_until};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::str::FromStr as _;
use std::time::{Duration, Instant};

/// How long the host may take to notice a closed connection.
const PATIENCE: Duration = Duration::from_secs(20);

const PASSPHRASE: &str = "correct horse battery staple";

#[test]
fn passphrases_seal_and_open_the_keys_and_walletlock_leaves_no_copy_in_memory() {
    let host = Host::start();
    let mut wallet = host.new_wallet("w");
    assert_eq!(wallet.refused("walletlock", json!([])).0, -15);
    wallet.call("encryptwallet", json!(["correct horse"]));
    assert_eq!(wallet.refused("encryptwallet", json!(["again"])).0, -15);
    assert_eq!(wallet.call("getwalletinfo", json!([]))["unlocked_until"], json!(0));
    assert_eq!(wallet.refused("listdescriptors", json!([true])).0, -13);
    wallet.call("walletpassphrase", json!(["correct horse", 1000]));
    assert!(wallet.call("getwalletinfo", json!([]))["unlocked_until"].as_u64().unwrap() > 1_000_000_000);
    // Encryption makes new keys. The former unencrypted ones stay, but give no new addresses.
    let listed = wallet.call("listdescriptors", json!([true]));
    let active: Vec<&Value> = listed["descriptors"].as_array().unwrap().iter().map(|d| &d["active"]).collect();
    assert_eq!((active.len(), active.iter().filter(|active| **active == &json!(true)).count()), (16, 8));
    // A wrong old passphrase in walletpassphrasechange locks the wallet.
    assert_eq!(wallet.refused("walletpassphrasechange", json!(["wrong", "battery staple"])).0, -14);
    assert_eq!(wallet.call("getwalletinfo", json!([]))["unlocked_until"], json!(0));
    wallet.call("walletpassphrasechange", json!(["correct horse", "battery staple"]));
    wallet.call("walletlock", json!([]));
    assert_eq!(wallet.refused("walletpassphrase", json!(["correct horse", 10])).0, -14);
    // A locked wallet still derives addresses.
    let first = wallet.call("getnewaddress", json!([]));
    assert_ne!(wallet.call("getnewaddress", json!([])), first);
    // A killed host leaves this file, by which the next start finds a former key in a wallet that it does not load.
    let note = host.network_folder().join("wallets/w/former-key");
    File::create(&note).unwrap();
    let host = host.restart();
    wait_until("the start has searched the wallet's file", || !note.exists());
    let mut client = host.client();
    client.call("loadwallet", json!(["w"]));
    let mut wallet = client.wallet("w");
    assert_eq!(wallet.call("getaddressinfo", json!([first]))["ismine"], json!(true));
    wallet.call("walletpassphrase", json!(["battery staple", 10]));
    check_memory(&host);
}

/// The copies of these bytes in the writable memory of a process, by the kind of memory.
fn copies(process: u32, secrets: &[(&str, Vec<u8>)]) -> Vec<String> {
    let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap();
    let mut memory = File::open(format!("/proc/{process}/mem")).unwrap();
    let mut found = Vec::new();
    for line in maps.lines() {
        let mut fields = line.split_whitespace();
        let (range, rights) = (fields.next().unwrap(), fields.next().unwrap());
        let name = fields.nth(3).unwrap_or("anonymous");
        // A wallet's map is its file, which other tests search.
        if !rights.starts_with("rw") || name.ends_with(".mdb") {
            continue;
        }
        let (begin, end) = range.split_once('-').unwrap();
        let [begin, end] = [begin, end].map(|bound| u64::from_str_radix(bound, 16).unwrap());
        let mut bytes = vec![0; usize::try_from(end - begin).unwrap()];
        memory.seek(SeekFrom::Start(begin)).unwrap();
        // Memory that was unmapped meanwhile has no copies.
        let Ok(()) = memory.read_exact(&mut bytes) else { continue };
        for (what, secret) in secrets {
            let places = memmem::find_iter(&bytes, secret);
            found.extend(places.map(|at| format!("{what} at {at:#x} of {range} ({name})")));
        }
    }
    found
}

fn call(host: &Host, method: &str, arguments: Value) -> Value {
    host.client().wallet("imported").call(method, arguments)
}

/// walletlock leaves no copy of an imported key.
fn check_memory(host: &Host) {
    host.client().call("createwallet", json!({"wallet_name": "imported", "passphrase": PASSPHRASE}));
    call(host, "walletpassphrase", json!([PASSPHRASE, 1000]));
    let text = host.client().with_checksum(&format!("wpkh({XPRV}/0/*)"));
    let import = json!([[{"desc": text, "timestamp": "now", "range": 9, "active": true}]]);
    assert_eq!(call(host, "importdescriptors", import)[0]["success"], json!(true));
    let address = call(host, "getnewaddress", json!([]));
    call(host, "generatetoaddress", json!([101, address]));
    call(host, "sendtoaddress", json!([ELSEWHERE, 1]));
    assert!(call(host, "listdescriptors", json!([true])).to_string().contains(XPRV));

    let master = Xpriv::from_str(XPRV).unwrap();
    let path = [0, 0].map(|index| ChildNumber::from_normal_idx(index).unwrap());
    let child = master.derive_priv(&Secp256k1::new(), &path).unwrap();
    // The chain code is no secret, since the wallet's extended public key contains it.
    let secrets = [
        ("the text of the key", XPRV.as_bytes().to_vec()),
        ("the key", master.private_key.secret_bytes().to_vec()),
        ("the key backwards", master.private_key.secret_bytes().iter().rev().copied().collect()),
        ("the key that signed", child.private_key.secret_bytes().to_vec()),
        ("the passphrase", PASSPHRASE.as_bytes().to_vec()),
    ];
    call(host, "walletlock", json!([]));
    let deadline = Instant::now() + PATIENCE;
    loop {
        let left = copies(host.process_id(), &secrets);
        if left.is_empty() {
            break;
        }
        assert!(Instant::now() < deadline, "{} copies:\n{}", left.len(), left.join("\n"));
        std::thread::sleep(Duration::from_millis(200));
    }
}

//! Files damaged while the host was stopped: its answers equal the earlier ones, or are errors that name the
//! file. No signal ends the host, and one damaged wallet does not block the others.

use std::fs::{self, OpenOptions};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;

use bitcoin::hex::FromHex as _;
use outrigger_tests::{Client, Host, HostOptions, copy_folder, files_below};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::kills::{Numbers, setting};

/// The number of damaged files to try. The long tier sets 2,000.
const DAMAGES: &str = "OUTRIGGER_DAMAGES";
const FEW: u64 = 20;

/// A small keypool keeps the files small.
fn options() -> HostOptions {
    HostOptions::with(&["wallet.keypool=3"])
}

/// A stopped host's data: a chain, and two wallets that are loaded at every start.
fn lived() -> TempDir {
    let mut host = Host::start_with(options());
    let mut client = host.client();
    let [mut one, mut two] = ["one", "two"].map(|name| client.create_wallet(name, json!({"load_on_startup": true})));
    let mine = one.call("getnewaddress", json!(["mined"]));
    one.call("generatetoaddress", json!([103, mine]));
    for number in 0..3 {
        let theirs = two.call("getnewaddress", json!([format!("payment {number}")]));
        one.call("sendtoaddress", json!([theirs, 1 + number]));
        one.call("generatetoaddress", json!([1, mine]));
    }
    assert!(host.terminate().success());
    let folder = tempfile::tempdir().unwrap();
    copy_folder(host.datadir(), folder.path());
    folder
}

/// Reads the chain and the wallets with all relevant methods.
fn ask(client: &mut Client) -> Vec<Result<Value, String>> {
    let mut answers = Vec::new();
    let mut asked = |client: &mut Client, method: &str, params: Value| {
        let answer = client.try_call(method, params).map_err(|failure| failure.message);
        answers.push(answer.clone());
        answer
    };
    for (method, params) in
        [("getbestblockhash", json!([])), ("getblockcount", json!([])), ("gettxoutsetinfo", json!([]))]
    {
        let _ = asked(client, method, params);
    }
    for height in [0, 1, 2, 50, 103, 104, 106] {
        if let Ok(hash) = asked(client, "getblockhash", json!([height])) {
            let _ = asked(client, "getblock", json!([hash, 0]));
            let _ = asked(client, "getblock", json!([hash, 2]));
            let _ = asked(client, "getblockstats", json!([height]));
        }
    }
    for name in ["one", "two"] {
        let mut wallet = client.wallet(name);
        for (method, params) in [
            ("listtransactions", json!(["*", 1000])),
            ("listsinceblock", json!([])),
            ("listunspent", json!([])),
            ("getbalances", json!([])),
            ("listdescriptors", json!([true])),
            ("listlabels", json!([])),
        ] {
            let _ = asked(&mut wallet, method, params);
        }
    }
    answers
}

/// Flips a bit of a file, overwrites a range or truncates it. Returns a description.
fn damage(file: &Path, mut below: impl FnMut(usize) -> usize) -> String {
    let mut bytes = fs::read(file).unwrap();
    let what = match (bytes.len(), below(20)) {
        (0, _) => "nothing to damage".to_owned(),
        (length, 0..=13) => {
            let bit = below(length * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            format!("bit {bit}")
        }
        (length, 14..=16) => {
            let from = below(length);
            let to = (from + 1 + below(6_000)).min(length);
            bytes[from..to].iter_mut().for_each(|byte| *byte = below(256) as u8);
            format!("bytes {from}..{to}")
        }
        (length, _) => {
            bytes.truncate(below(length));
            format!("cut to {} of {length}", bytes.len())
        }
    };
    fs::write(file, bytes).unwrap();
    what
}

#[test]
fn damage_to_closed_files_is_reported_and_never_returned_as_data() {
    let whole = lived();
    check_damaged_wallet(copied(&whole));
    check_emptied_chain(&copied(&whole));
    let host = Host::start_in(copied(&whole), options());
    let before = ask(&mut host.client());
    assert!(before.iter().all(Result::is_ok), "{before:?}");
    drop(host);
    let log = tempfile::NamedTempFile::new().unwrap();
    for seed in 1..=setting(DAMAGES, FEW) {
        let folder = copied(&whole);
        let mut found = files_below(folder.path(), &["plugins"]);
        found.retain(|file| !file.file_name().unwrap().to_string_lossy().starts_with('.'));
        let mut numbers = Numbers(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let mut below = |end: usize| numbers.below(end as u64) as usize;
        let file = found[below(found.len())].clone();
        let what = format!("seed {seed}: {} {}", damage(&file, below), file.display());
        let options = HostOptions { log: Some(log.path().to_owned()), ..options() };
        match Host::try_start_in(folder, &options) {
            Err((_, status)) => {
                assert_eq!(status.signal(), None, "{what}: the host ended by a signal");
                let said = fs::read_to_string(log.path()).unwrap();
                assert!(
                    said.contains(file.file_name().unwrap().to_str().unwrap()) || said.contains("damaged"),
                    "{what}: {said}"
                );
            }
            Ok(mut host) => {
                let after = ask(&mut host.client());
                let status = host.terminate();
                assert_eq!(status.signal(), None, "{what}: the host ended by a signal");
                compare(&before, &after, &what);
            }
        }
    }
}

fn copied(whole: &TempDir) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    copy_folder(whole.path(), folder.path());
    folder
}

/// Checks that each answer is unchanged, or an error that reports the damaged file or the wallet that was not loaded
/// because of it.
fn compare(before: &[Result<Value, String>], after: &[Result<Value, String>], what: &str) {
    for error in after.iter().filter_map(|answer| answer.as_ref().err()) {
        let is_clear = error.contains("is damaged") || error.contains("does not exist or is not loaded");
        assert!(is_clear, "{what}: {error}");
    }
    let mut before = before.iter();
    // `ask` skips blocks whose hash was refused.
    for after in after.iter().flatten() {
        assert!(before.by_ref().any(|before| before.as_ref() == Ok(after)), "{what} gives {after}");
    }
}

/// The host reports a damaged wallet of the load list and skips it.
fn check_damaged_wallet(folder: TempDir) {
    let file = folder.path().join("regtest/wallets/one/data.mdb");
    let length = fs::metadata(&file).unwrap().len();
    OpenOptions::new().write(true).open(&file).unwrap().set_len(length / 2).unwrap();
    let log = tempfile::NamedTempFile::new().unwrap();
    let host = Host::start_in(folder, HostOptions { log: Some(log.path().to_owned()), ..options() });
    let mut client = host.client();
    assert_eq!(client.call("listwallets", json!([])), json!(["two"]));
    let said = fs::read_to_string(log.path()).unwrap();
    assert!(said.contains("wallets/one/data.mdb is damaged"), "{said}");
    let (code, message) = client.refused("loadwallet", json!(["one"]));
    assert_eq!(code, -18, "{message}");
    assert!(message.contains("wallets/one/data.mdb is damaged: page "), "{message}");
    assert_eq!(client.wallet("two").call("getwalletinfo", json!([]))["txcount"], json!(3));
}

/// The host refuses an empty file and creates no new chain.
fn check_emptied_chain(folder: &TempDir) {
    fs::write(folder.path().join("regtest/chain/data.mdb"), []).unwrap();
    let output = Host::fail_in(folder.path(), &options());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("chain/data.mdb is damaged: it is empty"), "{said}");
    assert_eq!(fs::metadata(folder.path().join("regtest/chain/data.mdb")).unwrap().len(), 0);
}

/// Flips a bit in the middle of each occurrence of `text` in a file.
fn spoil(file: &Path, text: &[u8]) {
    let mut bytes = fs::read(file).unwrap();
    let places: Vec<_> = bytes.windows(text.len()).enumerate().filter(|(_, piece)| *piece == text).collect();
    let places: Vec<_> = places.into_iter().map(|(at, _)| at + text.len() / 2).collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at] ^= 1;
        let file = OpenOptions::new().write(true).open(file).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &bytes[at..=at], at as u64).unwrap();
    }
}

#[test]
fn damage_at_run_time_is_reported_in_warnings_and_a_truncated_file_ends_the_host() {
    let mut host = Host::start_with(options());
    let mut wallet = host.new_wallet("w");
    let mut cut = host.new_wallet("cut");
    cut.call("getnewaddress", json!([]));
    let address = wallet.call("getnewaddress", json!(["a label to be spoiled"]));
    wallet.mine(1);
    let hash = wallet.call("getbestblockhash", json!([]));
    let block = wallet.call("getblock", json!([hash, 0]));
    let block = Vec::from_hex(block.as_str().unwrap()).unwrap();
    assert_eq!(wallet.call("getwalletinfo", json!([])).get("warnings"), None);
    assert_eq!(wallet.call("getblockchaininfo", json!([]))["warnings"], json!([]));

    let folder = tempfile::tempdir().unwrap();
    let backup = folder.path().join("backup");
    wallet.call("backupwallet", json!([backup]));
    let former = fs::read(&backup).unwrap();
    spoil(&host.network_folder().join("wallets/w/data.mdb"), b"a label to be spoiled");
    // A failed backup of a damaged wallet replaces no earlier backup, whether the damage was known or not.
    assert_eq!(wallet.refused("backupwallet", json!([backup])).1, "Error: Wallet backup failed!");
    let (_, message) = wallet.refused("listlabels", json!([]));
    assert!(message.contains("w/data.mdb is damaged: table \"labels\""), "{message}");
    for (method, params) in [("setlabel", json!([address, "new"])), ("backupwallet", json!([backup]))] {
        let (_, message) = wallet.refused(method, params);
        assert!(message.contains("w/data.mdb is damaged"), "{method}: {message}");
    }
    assert!(fs::read(&backup).unwrap() == former && fs::read_dir(folder.path()).unwrap().count() == 1);
    let info = wallet.call("getwalletinfo", json!([]));
    assert!(info["warnings"][0].as_str().unwrap().contains("w/data.mdb is damaged"), "{info}");

    spoil(&host.network_folder().join("chain/data.mdb"), &block);
    let (_, message) = wallet.refused("getblock", json!([hash, 0]));
    assert!(message.contains("chain/data.mdb is damaged"), "{message}");
    for method in ["getblockchaininfo", "getmininginfo", "getnetworkinfo"] {
        let info = wallet.call(method, json!([]));
        assert!(info["warnings"][0].as_str().unwrap().contains("chain/data.mdb is damaged"), "{method}: {info}");
    }

    let file = host.network_folder().join("wallets/cut/data.mdb");
    OpenOptions::new().write(true).open(&file).unwrap().set_len(8192).unwrap();
    assert_eq!(cut.call_while_alive("listdescriptors", json!([])), None);
    assert_eq!(host.wait().signal(), Some(libc::SIGBUS));
}

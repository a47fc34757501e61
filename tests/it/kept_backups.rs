//! Automatic backups of a host: their content, their check, and that a failed backup loses nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use age::secrecy::ExposeSecret;
use outrigger_tests::{Client, Host, HostOptions, XPRV, built, wait_for, wait_until};
use serde_json::{Value, json};

use super::full_disk::SmallDisk;
use super::kills::{Numbers, setting};
use super::metrics::ask;

const KILLS: u64 = 8;
/// The longest time from a start to the kill, in microseconds.
const MAX_LIFE: u64 = 400_000;

/// A host that makes backups in this folder.
fn options(folder: &Path, more: &[&str]) -> HostOptions {
    let folder = format!("backup.folder={}", folder.display());
    HostOptions::with(&["metrics.listen=127.0.0.1:0", &folder]).and(more)
}

/// The backups of a wallet, the oldest first.
fn backups(folder: &Path, wallet: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder.join("regtest/wallets").join(wallet)) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| !file.to_str().unwrap().ends_with(".unfinished"));
    files.sort();
    files
}

/// Waits for a backup that is not in `former`, and returns it.
fn next(folder: &Path, wallet: &str, former: &[PathBuf]) -> PathBuf {
    wait_for("a new backup", || backups(folder, wallet).pop().filter(|newest| !former.contains(newest)))
}

fn restore(arguments: &[&str]) -> Output {
    Command::new(&built().binary).args(["wallet", "restore"]).args(arguments).output().unwrap()
}

/// The content of a backup as text.
#[track_caller]
fn content_of(file: &Path, more: &[&str]) -> String {
    let output = restore(&[&["--dry-run", file.to_str().unwrap()], more].concat());
    let (told, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{told}{error}");
    told.into_owned()
}

/// Imports a descriptor with private keys.
fn import(wallet: &mut Client, number: u64) -> String {
    let text = wallet.with_checksum(&format!("wpkh({XPRV}/{number}/*)"));
    wallet.import(&json!([{"desc": text, "timestamp": "now", "range": [0, 4]}]));
    text
}

/// The metric does not exist until the host has looked at the wallet once.
fn metric(host: &Host, name: &str) -> f64 {
    let page = ask(host.metrics.unwrap(), "GET /metrics");
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix("{wallet=\"w\"} "));
    line.map_or(f64::NAN, |value| value.parse().unwrap())
}

#[test]
fn host_backs_up_new_keys_at_once_and_keeps_the_newest_backups() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::start_with(options(folder.path(), &["backup.keep=3", "wallet.keypool=5"]));
    let mut wallet = host.new_wallet("w");
    let mut made = vec![next(folder.path(), "w", &[])];
    assert_eq!(fs::metadata(&made[0]).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(made[0].parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    let first = content_of(&made[0], &[]);
    for line in
        ["name: w", "network: regtest", "descriptors: 8", "transactions: 0", "private keys: yes", "damage: none"]
    {
        assert!(first.lines().any(|found| found == line), "{line}\n{first}");
    }
    assert!(!first.contains("tprv"), "{first}");
    let address = wallet.call("getnewaddress", json!(["rent"]));
    wallet.call("generatetoaddress", json!([2, address]));
    for number in 0..4 {
        import(&mut wallet, number);
        made.push(next(folder.path(), "w", &made));
    }
    wait_until("older ones are removed", || backups(folder.path(), "w") == made[2..]);
    let newest = content_of(&made[4], &[]);
    assert!(newest.contains("\ndescriptors: 12\n") && newest.contains("\ntransactions: 2\n"), "{newest}");
    wait_until("the backup is noted", || {
        wallet.call("getwalletbackupinfo", json!([]))["backup_needed"] == json!(false)
    });
    assert!(metric(&host, "outrigger_wallet_last_backup_time_seconds") > 1e9);
    assert_eq!(metric(&host, "outrigger_wallet_backup_failures_total"), 0.0);
    // The newest backup restores the same wallet, also with the command.
    let file = made[4].to_str().unwrap();
    let restored = restore(&[file, "--as", "copy", "--datadir", host.datadir().to_str().unwrap()]);
    assert!(restored.status.success(), "{}", String::from_utf8_lossy(&restored.stderr));
    let mut copy = host.client().wallet("copy");
    assert_eq!(
        copy.call("listdescriptors", json!([true]))["descriptors"],
        wallet.call("listdescriptors", json!([true]))["descriptors"]
    );
    assert_eq!(copy.call("getbalances", json!([])), wallet.call("getbalances", json!([])));
    assert_eq!(copy.call("getaddressesbylabel", json!(["rent"])), wallet.call("getaddressesbylabel", json!(["rent"])));
    // A restart makes no further backup: nothing has changed, and the last one is recent.
    let host = host.restart();
    host.client().call("loadwallet", json!(["w"]));
    // The host backs up wallets in the order in which they were loaded.
    host.new_wallet("later");
    next(folder.path(), "later", &[]);
    assert_eq!(backups(folder.path(), "w"), made[2..]);
}

#[test]
fn backups_of_a_locked_wallet_come_in_time_and_are_encrypted_to_a_recipient() {
    let (folder, identity) = (tempfile::tempdir().unwrap(), age::x25519::Identity::generate());
    let key = folder.path().join("identity");
    fs::write(&key, identity.to_string().expose_secret()).unwrap();
    let recipient = format!("backup.recipient={}", identity.to_public());
    let host = Host::start_with(options(folder.path(), &["backup.every=1s", &recipient, "wallet.keypool=5"]));
    let mut client = host.client();
    client.call("createwallet", json!({"wallet_name": "w", "passphrase": "a passphrase"}));
    let first = next(folder.path(), "w", &[]);
    let second = next(folder.path(), "w", std::slice::from_ref(&first));
    assert!(second.to_str().unwrap().ends_with(".mdb.age"));
    let sealed = fs::read(&second).unwrap();
    assert!(sealed.starts_with(b"age-encryption.org/v1"), "it is not encrypted");
    let none = restore(&["--dry-run", second.to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&none.stderr).contains("name the file with the identity"), "{none:?}");
    let key = key.to_str().unwrap();
    let contents = content_of(&second, &["--identity", key]);
    for line in ["encrypted with a passphrase: yes", "encrypted with age: yes", "damage: none"] {
        assert!(contents.lines().any(|found| found == line), "{line}\n{contents}");
    }
    // The check detects a flipped bit, and no unencrypted file is left anywhere.
    let damaged = folder.path().join("damaged");
    let mut bytes = sealed;
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&damaged, bytes).unwrap();
    assert_eq!(restore(&["--dry-run", damaged.to_str().unwrap(), "--identity", key]).status.code(), Some(1));
    let datadir = host.datadir().to_str().unwrap();
    let restored = restore(&[second.to_str().unwrap(), "--as", "copy", "--identity", key, "--datadir", datadir]);
    assert!(restored.status.success(), "{}", String::from_utf8_lossy(&restored.stderr));
    let mut copy = client.wallet("copy");
    copy.call("walletpassphrase", json!(["a passphrase", 60]));
    assert!(backups(folder.path(), "w").iter().all(|file| file.to_str().unwrap().ends_with(".age")));
}

#[test]
fn host_reports_a_missing_backup_folder_and_writes_nothing_in_its_place() {
    let place = tempfile::tempdir().unwrap();
    let (folder, away) = (place.path().join("backups"), place.path().join("away"));
    fs::create_dir(&folder).unwrap();
    let host = Host::start_with(options(&folder, &["wallet.keypool=5"]));
    let mut wallet = host.new_wallet("w");
    let first = next(&folder, "w", &[]);
    wait_until("the backup is told", || metric(&host, "outrigger_wallet_last_backup_time_seconds") > 0.0);
    fs::rename(&folder, &away).unwrap();
    import(&mut wallet, 1);
    wait_until("the failure is told", || metric(&host, "outrigger_wallet_backup_failures_total") >= 1.0);
    assert_eq!(metric(&host, "outrigger_wallet_last_backup_time_seconds"), 0.0, "none can be found");
    assert!(!folder.exists());
    fs::rename(&away, &folder).unwrap();
    import(&mut wallet, 2);
    let second = next(&folder, "w", &[first]);
    assert!(content_of(&second, &[]).contains("\ndescriptors: 10\n"));
    // The host refuses to start without the folder, with the folder of another host, and with a folder in the data directory.
    for (folder, why) in [
        (&place.path().join("none"), "the folder must exist"),
        (&backups(&folder, "w")[0], "it is not a folder"),
        (&folder, "another host makes its backups in"),
    ] {
        let error = Host::refused(&options(folder, &[]));
        assert!(error.contains("backup.folder") && error.contains(why), "{error}");
    }
    let datadir = tempfile::tempdir().unwrap();
    let failed = Host::fail_in(datadir.path(), &options(datadir.path(), &[]));
    assert!(String::from_utf8_lossy(&failed.stderr).contains("it is in the data directory"), "{failed:?}");
}

#[test]
fn host_backs_up_new_and_unloaded_wallets_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::start_with(options(folder.path(), &["wallet.keypool=5"]));
    check_former_name(&host, folder.path());
    check_incomplete_copies(&backups(folder.path(), "w")[0]);
    check_unloaded(&host, folder.path());
}

/// A new wallet with the name of a deleted one is backed up at once.
fn check_former_name(host: &Host, folder: &Path) {
    host.new_wallet("w");
    let first = next(folder, "w", &[]);
    wait_until("the backup is noted", || {
        host.client().wallet("w").call("getwalletbackupinfo", json!([]))["backup_needed"] == json!(false)
    });
    host.client().call("unloadwallet", json!(["w"]));
    fs::remove_dir_all(host.network_folder().join("wallets/w")).unwrap();
    // The new wallet has as many changes as the former one.
    host.new_wallet("w");
    let second = next(folder, "w", std::slice::from_ref(&first));
    let keys = |file: &Path| content_of(file, &[]).lines().find(|line| line.contains("pub")).unwrap().to_owned();
    assert_ne!(keys(&first), keys(&second));
}

/// Wallets that are unloaded at once are backed up.
fn check_unloaded(host: &Host, folder: &Path) {
    let mut client = host.client();
    client.call("unloadwallet", json!(["w"]));
    for name in ["a", "b", "c", "d"] {
        let mut wallet = host.new_wallet(name);
        import(&mut wallet, 0);
        client.call("unloadwallet", json!([name]));
    }
    // The wallet is loaded again while its backup may still be pending.
    client.call("loadwallet", json!(["d"]));
    for name in ["a", "b", "c", "d"] {
        wait_until("the backup has the imported keys", || {
            backups(folder, name).last().is_some_and(|newest| content_of(newest, &[]).contains("\ndescriptors: 9\n"))
        });
    }
    assert_eq!(client.call("listwallets", json!([])), json!(["d"]));
}

/// A truncated or changed copy does not pass the check.
fn check_incomplete_copies(backup: &Path) {
    let bytes = fs::read(backup).unwrap();
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("copy");
    let check = |bytes: &[u8]| {
        fs::write(&file, bytes).unwrap();
        let mut command = Command::new(&built().binary);
        let command = command.args(["__check-copy", "wallet"]).stdin(fs::File::open(&file).unwrap());
        let output = command.stdout(Stdio::piped()).output().unwrap();
        output.status.success().then(|| serde_json::from_slice::<Value>(&output.stdout).unwrap())
    };
    let whole = check(&bytes).unwrap();
    assert_eq!(whole["descriptors"].as_array().unwrap().len(), 8);
    assert_eq!(whole["chain"], json!("regtest"));
    assert!(!whole.to_string().contains("tprv"), "{whole}");
    let mut numbers = Numbers(77);
    for _ in 0..20 {
        let cut = usize::try_from(numbers.below(bytes.len() as u64)).unwrap();
        assert_eq!(check(&bytes[..cut]), None, "cut at {cut}");
        let mut flipped = bytes.clone();
        flipped[cut] ^= 1;
        // Bytes that nothing reads may differ.
        assert!(check(&flipped).is_none_or(|contents| contents == whole), "flipped at {cut}");
    }
    let dry = restore(&["--dry-run", file.to_str().unwrap()]);
    assert!(dry.status.success() || String::from_utf8_lossy(&dry.stderr).contains("damage: "), "{dry:?}");
}

#[test]
fn a_full_disk_leaves_the_last_backup_and_no_partial_one() {
    let Some(disk) = SmallDisk::in_memory(32 << 20) else { return };
    let host = Host::start_with(options(disk.path(), &["wallet.keypool=5", "backup.keep=1"]));
    let mut wallet = host.new_wallet("w");
    let first = next(disk.path(), "w", &[]);
    disk.filled_but(8 << 10, || {
        import(&mut wallet, 1);
        wait_until("the failure is told", || metric(&host, "outrigger_wallet_backup_failures_total") >= 1.0);
        assert_eq!(fs::read_dir(first.parent().unwrap()).unwrap().count(), 1, "nothing unfinished is left");
        assert!(content_of(&first, &[]).contains("\ndescriptors: 8\n"));
    });
    import(&mut wallet, 2);
    next(disk.path(), "w", &[first]);
}

#[test]
fn a_kill_at_any_instant_leaves_no_partial_backup_and_the_last_keys_are_backed_up_later() {
    let folder = tempfile::tempdir().unwrap();
    let mut numbers = Numbers(setting("OUTRIGGER_KILLS_SEED", 0x5eed) | 1);
    let mut host = Host::start_with(options(folder.path(), &["backup.every=1s", "wallet.keypool=5", "backup.keep=5"]));
    host.client().call("createwallet", json!({"wallet_name": "w", "load_on_startup": true}));
    let mut imported = 0;
    for kill in 0..setting("OUTRIGGER_KILLS", KILLS) {
        let mut wallet = host.client().wallet("w");
        for _ in 0..numbers.below(3) {
            import(&mut wallet, imported);
            imported += 1;
        }
        std::thread::sleep(std::time::Duration::from_micros(numbers.below(MAX_LIFE)));
        host.kill();
        for backup in backups(folder.path(), "w") {
            assert!(content_of(&backup, &[]).ends_with("damage: none\n"), "kill {kill}: {}", backup.display());
        }
        host = host.start_again();
    }
    let expected = format!("\ndescriptors: {}\n", 8 + imported);
    wait_until("the last keys are backed up", || {
        backups(folder.path(), "w").last().is_some_and(|newest| content_of(newest, &[]).contains(&expected))
    });
    let all = || fs::read_dir(folder.path().join("regtest/wallets/w")).unwrap().map(|entry| entry.unwrap().file_name());
    wait_until("nothing unfinished is left", || all().all(|name| !name.to_str().unwrap().ends_with(".unfinished")));
}

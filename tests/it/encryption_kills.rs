//! If the host is killed between the commit of encryptwallet or walletpassphrasechange and the answer, the next load of the
//! wallet erases all data that would reveal the keys.
//!
//! `OUTRIGGER_KILLS` sets the number of kills: this test makes a fifth of them, and at least 500 from 1,000 on.

use std::path::Path;
use std::time::{Duration, Instant};

use memchr::memmem;
use outrigger_tests::{Client, Host, HostOptions, XPRV, files_below};
use serde_json::{Value, json};

use crate::kills::{Numbers, setting};

const KILLS: u64 = 12;
/// From this value of `OUTRIGGER_KILLS` on, this test makes at least [`MANY`] kills.
const MANY_FROM: u64 = 1000;
const MANY: u64 = 500;

/// LMDB's page size. The first two pages are its meta pages, which describe the newest commit.
const PAGE: usize = 4096;
/// The flag of an overflow page, which holds one value, and the offset of a page's flags.
const OVERFLOW: u8 = 4;
const FLAGS_AT: usize = 10;

/// The passphrases, which no file may contain either.
const FIRST: &str = "correct horse battery staple";
const SECOND: &str = "tr0ub4dor and three more words";

type Secret = (String, Vec<u8>);

/// Parts of the values on overflow pages that are otherwise zero: the encryption key, in plaintext or encrypted.
fn values_alone(data: &[u8], part: std::ops::Range<usize>) -> Vec<Secret> {
    let alone = |page: &&[u8]| page[FLAGS_AT] & OVERFLOW != 0 && page[PAGE / 2..].iter().all(|byte| *byte == 0);
    let parts = data.chunks_exact(PAGE).filter(alone).map(|page| page[part.clone()].to_vec());
    parts.filter(|part| part.iter().any(|byte| *byte != 0)).map(|part| ("a former key".to_owned(), part)).collect()
}

/// The secrets found in the files below a folder, except in copies of the plugins' libraries.
fn found(folder: &Path, secrets: &[Secret]) -> Vec<String> {
    let mut names = Vec::new();
    for path in files_below(folder, &["plugins"]) {
        let bytes = std::fs::read(&path).unwrap();
        for (name, secret) in secrets {
            if memmem::find(&bytes, secret).is_some() {
                names.push(format!("{name} in {}", path.display()));
            }
        }
    }
    names
}

/// LMDB's meta pages, which change with each commit.
fn commit(data: &Path) -> Vec<u8> {
    use std::io::Read;
    let mut begin = Vec::new();
    std::fs::File::open(data).unwrap().take(2 * PAGE as u64).read_to_end(&mut begin).unwrap();
    begin
}

/// A wallet to encrypt, or to give a new passphrase.
struct Trial {
    name: String,
    /// Whether the wallet is encrypted already, so that the call changes its passphrase.
    encrypted: bool,
    secrets: Vec<Secret>,
}

impl Trial {
    fn prepare(host: &Host, number: u64) -> Self {
        let (name, encrypted) = (format!("w{number}"), number % 2 == 1);
        let mut client = host.client();
        let passphrase = if encrypted { FIRST } else { "" };
        let mut wallet = client.create_wallet(&name, json!({"passphrase": passphrase, "load_on_startup": true}));
        if encrypted {
            wallet.call("walletpassphrase", json!([FIRST, 1000]));
        }
        let text = client.with_checksum(&format!("wpkh({XPRV}/{number}/*)"));
        wallet.import(&json!([{"desc": text, "timestamp": "now", "range": 5}]));
        let listed = wallet.call("listdescriptors", json!([true]));
        let mut trial = Self { name, encrypted, secrets: Vec::new() };
        for descriptor in listed["descriptors"].as_array().unwrap() {
            let text = descriptor["desc"].as_str().unwrap();
            let key = &text[text.find("tprv").unwrap()..][..111];
            trial.secrets.push(("a private key".to_owned(), key.as_bytes().to_vec()));
        }
        for passphrase in [FIRST, SECOND] {
            trial.secrets.push(("a passphrase".to_owned(), passphrase.as_bytes().to_vec()));
        }
        // The key, or the row with the encrypted key, starts a few bytes into its page.
        let part = if encrypted { 60..108 } else { 24..48 };
        let former = values_alone(&std::fs::read(trial.data(host)).unwrap(), part);
        assert!(!former.is_empty(), "the key that is to go is not found");
        trial.secrets.extend(former);
        trial
    }

    fn data(&self, host: &Host) -> std::path::PathBuf {
        host.network_folder().join("wallets").join(&self.name).join("data.mdb")
    }

    /// Makes the call; `None` if the host was killed before it answered.
    fn run(&self, client: &mut Client) -> Option<()> {
        let (method, arguments) = match self.encrypted {
            false => ("encryptwallet", json!([FIRST])),
            true => ("walletpassphrasechange", json!([FIRST, SECOND])),
        };
        client.call_while_alive(method, arguments)?.unwrap();
        Some(())
    }

    /// The time from the commit to the answer.
    fn measure(&self, host: &Host) -> Duration {
        let (data, before) = (self.data(host), commit(&self.data(host)));
        std::thread::scope(|scope| {
            let mut client = host.client().wallet(&self.name);
            let call = scope.spawn(move || {
                self.run(&mut client).unwrap();
                Instant::now()
            });
            let committed = wait_for_commit(&data, &before, || call.is_finished());
            call.join().unwrap().saturating_duration_since(committed)
        })
    }

    /// Kills the host this long after the commit.
    fn kill(&self, host: &mut Host, after: Duration) {
        let (data, before) = (self.data(host), commit(&self.data(host)));
        std::thread::scope(|scope| {
            let mut client = host.client().wallet(&self.name);
            let call = scope.spawn(move || self.run(&mut client));
            wait_for_commit(&data, &before, || call.is_finished());
            // This sleep sets the instant of the kill.
            std::thread::sleep(after);
            host.kill();
        });
    }

    /// Loads the wallet in the restarted host; returns whether the call was committed before the kill. If so, no file may
    /// contain a former secret.
    fn check(&self, host: &Host) -> bool {
        let mut wallet = host.client().wallet(&self.name);
        let info = wallet.call("getwalletinfo", json!([]));
        let encrypted = match self.encrypted {
            false => info["unlocked_until"] == json!(0),
            true => wallet.try_call("walletpassphrase", json!([SECOND, 1000])).is_ok(),
        };
        if encrypted {
            assert_eq!(info["warnings"], Value::Null);
            assert_eq!(found(host.datadir(), &self.secrets), [""; 0]);
            let passphrase = if self.encrypted { SECOND } else { FIRST };
            // The files contain the current key only in encrypted form.
            let key = outrigger_wallet_engine::encryption_key(&self.data(host), passphrase).expect("the wallet's key");
            assert_eq!(found(host.datadir(), &[("the key in use".to_owned(), key.to_vec())]), [""; 0]);
            wallet.call("walletpassphrase", json!([passphrase, 1000]));
            let kept = wallet.call("listdescriptors", json!([true])).to_string();
            let keys = self.secrets.iter().filter(|(name, _)| name == "a private key");
            for (_, key) in keys {
                assert!(kept.contains(std::str::from_utf8(key).unwrap()), "a private key was lost");
            }
        }
        wallet.call("unloadwallet", json!([self.name, false]));
        std::fs::remove_dir_all(self.data(host).parent().unwrap()).unwrap();
        encrypted
    }
}

/// Waits until LMDB's meta pages change or `ended` returns true.
fn wait_for_commit(data: &Path, before: &[u8], ended: impl Fn() -> bool) -> Instant {
    while commit(data) == before && !ended() {
        std::hint::spin_loop();
    }
    Instant::now()
}

#[test]
fn encryptwallet_and_walletpassphrasechange_leave_no_former_key_after_a_kill() {
    let asked = setting("OUTRIGGER_KILLS", 0);
    let kills = if asked == 0 {
        KILLS
    } else if asked >= MANY_FROM {
        MANY.max(asked / 5)
    } else {
        (asked / 5).max(1)
    };
    let mut numbers = Numbers(setting("OUTRIGGER_KILLS_SEED", 0x5ec2_e75e));
    let mut host = Host::start_with(HostOptions::with(&["wallet.keypool=5"]));
    let windows = [0, 1].map(|number| {
        let trial = Trial::prepare(&host, number);
        let window = trial.measure(&host);
        assert!(trial.check(&host));
        window
    });
    let (mut encrypted, mut due) = (0, 0);
    for number in 2..kills + 2 {
        let trial = Trial::prepare(&host, number);
        let window = u64::try_from(windows[usize::from(trial.encrypted)].as_micros()).unwrap().max(1);
        trial.kill(&mut host, Duration::from_micros(numbers.below(window)));
        due += u64::from(!found(&host.network_folder().join("wallets"), &trial.secrets).is_empty());
        host = host.start_again();
        encrypted += u64::from(trial.check(&host));
    }
    eprintln!(
        "{kills} kills within {windows:?}: {encrypted} after the commit, {due} with a former key in the file until the load"
    );
    assert!(encrypted > 0, "no kill came after a commit");
    // With few kills, all may miss the window.
    assert!(due > 0 || kills < 100, "no kill came before the former key was overwritten");
}

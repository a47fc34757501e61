//! A host is killed at random instants while wallets are made, imported into, labelled, paid from, encrypted, backed up, loaded and
//! unloaded. It loses nothing that it has acknowledged, and its wallets agree with the chain.
//!
//! `OUTRIGGER_KILLS` sets how often hosts are killed in total, `OUTRIGGER_KILLS_SEED` seeds the instants.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use outrigger_tests::{Client, Host, HostOptions, XPRV};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::kills::{Numbers, cut_short, share};

/// The default number of kills, and the number of hosts at the same time.
const KILLS: u64 = 20;
const HOSTS: u64 = 2;
const MAX_LIFE: u64 = 600_000;
/// The wallet with coins from the beginning.
const RICH: &str = "rich";
/// The most wallets that are made: each start loads them all.
const MAX_WALLETS: usize = 12;
const PASSPHRASE: &str = "a passphrase";

/// The acknowledged state of a wallet.
#[derive(Default)]
struct Owned {
    labels: BTreeMap<String, String>,
    /// Payments, with their comments.
    paid: BTreeMap<String, String>,
    imported: BTreeSet<String>,
    /// Addresses and payments since the last start.
    fresh: BTreeSet<String>,
    encrypted: bool,
    /// A label or an encryption without an answer: the wallet may have it or not.
    asked: Option<(String, String)>,
    encrypting: bool,
}

#[derive(Default)]
struct Answered {
    wallets: BTreeMap<String, Owned>,
    /// Backups, each with the labels of which one must be in it: several if a later backup to the same file got no answer.
    backups: BTreeMap<PathBuf, Vec<Option<String>>>,
    made: u64,
}

struct Life<'a> {
    client: Client,
    numbers: &'a mut Numbers,
    answered: &'a mut Answered,
    folder: &'a TempDir,
}

impl Life<'_> {
    fn run(mut self) {
        while self.step().is_some() {}
    }

    fn any(&mut self) -> String {
        let at = self.numbers.below(self.answered.wallets.len() as u64);
        self.answered.wallets.keys().nth(usize::try_from(at).unwrap()).unwrap().clone()
    }

    /// Makes a call of a wallet that must not fail.
    fn ask(&mut self, wallet: &str, method: &str, params: Value) -> Option<Value> {
        let answer = self.client.wallet(wallet).call_while_alive(method, params.clone())?;
        Some(answer.unwrap_or_else(|failure| panic!("{wallet}: {method} {params}: {}", failure.message)))
    }

    fn step(&mut self) -> Option<()> {
        match self.numbers.below(16) {
            0..3 => self.label(),
            3..7 => self.pay(),
            7..9 => self.mine(),
            9..11 => self.create(),
            11..13 => self.import(),
            13 => self.encrypt(),
            14 => self.back_up(),
            _ => self.reload(),
        }
    }

    fn create(&mut self) -> Option<()> {
        if self.answered.wallets.len() >= MAX_WALLETS {
            return Some(());
        }
        self.answered.made += 1;
        let name = format!("w{}", self.answered.made);
        let options = json!({"wallet_name": name, "load_on_startup": true});
        self.client.call_while_alive("createwallet", options)?.unwrap();
        self.answered.wallets.insert(name, Owned::default());
        Some(())
    }

    fn label(&mut self) -> Option<()> {
        let wallet = self.any();
        let label = format!("label {}", self.numbers.below(1 << 30));
        let address = match self.answered.wallets[&wallet].labels.keys().next().cloned() {
            Some(address) if self.numbers.below(2) == 0 => {
                let owned = self.answered.wallets.get_mut(&wallet).unwrap();
                owned.asked = Some((address.clone(), label.clone()));
                self.ask(&wallet, "setlabel", json!([address, label]))?;
                address
            }
            _ => self.ask(&wallet, "getnewaddress", json!([label]))?.as_str().unwrap().to_owned(),
        };
        let owned = self.answered.wallets.get_mut(&wallet).unwrap();
        owned.asked = None;
        owned.fresh.insert(address.clone());
        owned.labels.insert(address, label);
        Some(())
    }

    fn pay(&mut self) -> Option<()> {
        let to = self.any();
        let address = self.ask(&to, "getnewaddress", json!([]))?;
        let comment = format!("comment {}", self.numbers.below(1 << 30));
        let paid = self.client.wallet(RICH).call_while_alive("sendtoaddress", json!([address, "0.01", comment]))?;
        // A long chain of unconfirmed payments is refused.
        if let Ok(txid) = paid {
            let rich = self.answered.wallets.get_mut(RICH).unwrap();
            let txid = txid.as_str().unwrap().to_owned();
            rich.fresh.insert(txid.clone());
            rich.paid.insert(txid, comment);
        }
        Some(())
    }

    fn mine(&mut self) -> Option<()> {
        let wallet = self.any();
        let address = self.ask(&wallet, "getnewaddress", json!([]))?;
        self.ask(RICH, "generatetoaddress", json!([1, address])).map(drop)
    }

    fn import(&mut self) -> Option<()> {
        let wallet = self.any();
        if self.answered.wallets[&wallet].encrypted {
            self.ask(&wallet, "walletpassphrase", json!([PASSPHRASE, 600]))?;
        }
        let text = format!("wpkh({XPRV}/{}/*)", self.numbers.below(1 << 30));
        let info = self.ask(&wallet, "getdescriptorinfo", json!([text]))?;
        let text = format!("{text}#{}", info["checksum"].as_str().unwrap());
        let timestamp = self.numbers.below(2) * 2_000_000_000;
        let request = json!([[{"desc": text, "timestamp": timestamp, "range": 3}]]);
        let answer = self.ask(&wallet, "importdescriptors", request)?;
        assert_eq!(answer[0]["success"], json!(true), "{answer}");
        let public = info["descriptor"].as_str().unwrap().to_owned();
        self.answered.wallets.get_mut(&wallet).unwrap().imported.insert(public);
        Some(())
    }

    fn encrypt(&mut self) -> Option<()> {
        let wallet = self.any();
        // Unlocking it for each payment would leave little time for other work.
        if wallet != RICH && !self.answered.wallets[&wallet].encrypted {
            self.answered.wallets.get_mut(&wallet).unwrap().encrypting = true;
            self.ask(&wallet, "encryptwallet", json!([PASSPHRASE]))?;
            let owned = self.answered.wallets.get_mut(&wallet).unwrap();
            (owned.encrypted, owned.encrypting) = (true, false);
        }
        Some(())
    }

    fn back_up(&mut self) -> Option<()> {
        let wallet = self.any();
        let label = self.answered.wallets[&wallet].labels.values().next().cloned();
        let file = self.folder.path().join(format!("{wallet}.backup"));
        if let Some(labels) = self.answered.backups.get_mut(&file) {
            labels.push(label.clone());
        }
        self.ask(&wallet, "backupwallet", json!([file]))?;
        self.answered.backups.insert(file, vec![label]);
        Some(())
    }

    fn reload(&mut self) -> Option<()> {
        let wallet = self.any();
        self.client.call_while_alive("unloadwallet", json!([wallet]))?.unwrap();
        self.client.call_while_alive("loadwallet", json!([wallet]))?.unwrap();
        Some(())
    }
}

/// Loads the wallets that were unloaded at the kill, and resolves requests without an answer.
fn settle(client: &mut Client, answered: &mut Answered) {
    for (name, owned) in &mut answered.wallets {
        let loaded = client.call("listwallets", json!([]));
        if !loaded.as_array().unwrap().contains(&json!(name)) {
            client.call("loadwallet", json!([name]));
        }
        let mut wallet = client.wallet(name);
        if std::mem::take(&mut owned.encrypting) {
            owned.encrypted = wallet.call("getwalletinfo", json!([])).get("unlocked_until").is_some();
        }
        if let Some((address, label)) = owned.asked.take() {
            let told = wallet.call("getaddressinfo", json!([address]))["labels"][0].clone();
            assert!(told == json!(label) || told == json!(owned.labels[&address]), "{name} {address}: {told}");
            owned.labels.insert(address, told.as_str().unwrap().to_owned());
        }
    }
}

/// Checks that all of `answered` is there: `everything`, or the changes of the last life and the quick checks.
fn check(client: &mut Client, answered: &mut Answered, everything: bool) {
    for (name, owned) in &mut answered.wallets {
        let mut wallet = client.wallet(name);
        let fresh = std::mem::take(&mut owned.fresh);
        let asked = |known: &&String| everything || fresh.contains(*known);
        for (address, label) in owned.labels.iter().filter(|(address, _)| asked(address)) {
            let info = wallet.call("getaddressinfo", json!([address]));
            assert_eq!((&info["ismine"], &info["labels"]), (&json!(true), &json!([label])), "{name} {address}");
        }
        for (txid, comment) in owned.paid.iter().filter(|(txid, _)| asked(txid)) {
            assert_eq!(wallet.call("gettransaction", json!([txid]))["comment"], json!(comment), "{name} {txid}");
        }
        let listed = wallet.call("listdescriptors", json!([]));
        let listed: BTreeSet<_> =
            listed["descriptors"].as_array().unwrap().iter().filter_map(|listed| listed["desc"].as_str()).collect();
        assert!(owned.imported.iter().all(|text| listed.contains(text.as_str())), "{name}: {:?}", owned.imported);
        assert!(listed.len() >= 8, "{name} has been made with fewer descriptors than it needs: {}", listed.len());
        check_log(&mut wallet, name);
        // The chain has each coin.
        let coins = if everything { wallet.call("listunspent", json!([1])) } else { json!([]) };
        for coin in coins.as_array().unwrap() {
            let out = client.call("gettxout", json!([coin["txid"], coin["vout"], false]));
            assert_eq!(out["value"], coin["amount"], "{name}: {coin}");
        }
    }
}

/// Checks that the log's last entry for each transaction matches its state, and that deep ones are logged once.
fn check_log(wallet: &mut Client, name: &str) {
    let (mut told, mut since) = (BTreeMap::<String, Value>::new(), json!(0));
    loop {
        let answer = wallet.call("waitevents", json!([since, 1]));
        let events = answer["events"].as_array().unwrap();
        if events.is_empty() {
            break;
        }
        for event in events {
            assert!(event["number"].as_u64() > since.as_u64(), "{name}: {event}");
            since = event["number"].clone();
            let before = told.insert(event["txid"].as_str().unwrap().to_owned(), event.clone());
            let follows =
                before.is_some_and(|before| before["kind"] == "confirmed" && before["blockhash"] == event["blockhash"]);
            assert!(event["kind"] != "deep" || follows, "{name}: {event}");
        }
    }
    for listed in wallet.call("listsinceblock", json!([]))["transactions"].as_array().unwrap() {
        let last = &told[listed["txid"].as_str().unwrap()];
        let kinds: &[&str] = match listed["confirmations"].as_i64().unwrap() {
            6.. => &["deep"],
            1.. => &["confirmed"],
            0 => &["seen", "replaced", "abandoned", "reorganised"],
            _ => &["conflicted"],
        };
        assert!(kinds.iter().any(|kind| last["kind"] == *kind), "{name}: {last} of {listed}");
    }
}

/// A new wallet from the wallet's descriptors finds the same confirmed coins in a scan of the whole chain.
fn compare(client: &mut Client, name: &str, encrypted: bool) {
    let mut wallet = client.wallet(name);
    if encrypted {
        wallet.call("walletpassphrase", json!([PASSPHRASE, 600]));
    }
    let listed = wallet.call("listdescriptors", json!([true]));
    let requests: Vec<Value> = listed["descriptors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|listed| {
            let mut request = json!({"desc": listed["desc"], "timestamp": 0});
            if let Some(range) = listed.get("range") {
                request["range"] = range.clone();
            }
            request
        })
        .collect();
    let mut twin = client.create_wallet(&format!("twin-of-{name}"), json!({"blank": true}));
    twin.import(&json!(requests));
    let coins = |wallet: &mut Client| -> BTreeSet<String> {
        let coins = wallet.call("listunspent", json!([1]));
        let coin = |coin: &Value| format!("{} {} {}", coin["txid"], coin["vout"], coin["amount"]);
        coins.as_array().unwrap().iter().map(coin).collect()
    };
    assert_eq!(coins(&mut client.wallet(name)), coins(&mut twin), "{name}");
    client.call("unloadwallet", json!([format!("twin-of-{name}")]));
}

/// Kills one host this many times, with a client that works meanwhile.
fn kill_often(kills: u64, mut numbers: Numbers) {
    let folder = tempfile::tempdir().unwrap();
    let mut host = Host::start_with(HostOptions::with(&["wallet.keypool=5"]));
    let mut answered = Answered::default();
    host.client().create_wallet(RICH, json!({"load_on_startup": true})).mine(110);
    answered.wallets.insert(RICH.to_owned(), Owned::default());
    let has_worked = |answered: &Answered| answered.wallets.len() > 1 && !answered.wallets[RICH].paid.is_empty();
    let mut number = 0;
    // On a busy machine, a few lives may be too short for a wallet and a payment.
    while number < kills || !has_worked(&answered) {
        number += 1;
        assert!(number <= 10 * kills, "no life was long enough");
        let life = Duration::from_micros(numbers.below(MAX_LIFE));
        let (numbers, answered_by, folder) = (&mut numbers, &mut answered, &folder);
        host = cut_short(host, life, |client| Life { client, numbers, answered: answered_by, folder }.run());
        settle(&mut host.client(), &mut answered);
        check(&mut host.client(), &mut answered, false);
    }
    let mut client = host.client();
    check(&mut client, &mut answered, true);
    for (name, owned) in &answered.wallets {
        compare(&mut client, name, owned.encrypted);
    }
    for (number, (file, expected)) in answered.backups.iter().enumerate() {
        let name = format!("restored-{number}");
        client.call("restorewallet", json!([name, file]));
        let labels = client.wallet(&name).call("listlabels", json!([]));
        let is_there = |label: &Option<String>| {
            label.as_ref().is_none_or(|label| labels.as_array().unwrap().contains(&json!(label)))
        };
        assert!(expected.iter().any(is_there), "none of {expected:?} in {labels}");
    }
}

#[test]
fn wallets_keep_every_answered_change_through_kills_at_any_instant() {
    share(HOSTS, KILLS, 0x7761_6c6c, kill_often);
}

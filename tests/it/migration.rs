//! migratewallet: a wallet of keys and scripts becomes one of descriptors, with nothing lost.

use std::collections::BTreeMap;
use std::time::Duration;

use outrigger_tests::bitcoind::installed;
use outrigger_tests::{Bitcoind, Client, Host, HostOptions};
use serde_json::{Value, json};

use crate::kills::{Numbers, setting};

/// A P2WPKH address of regtest that nobody has a key of.
const ADDRESS: &str = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";
/// A private key of regtest.
const WIF: &str = "cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87K7XCyj5v";
const PASSPHRASE: &str = "a passphrase";
/// How often the host is killed unless told otherwise: a fifth of what `OUTRIGGER_KILLS` says.
const KILLS: u64 = 10;

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value}")).to_owned()
}

/// A wallet with keys of this name.
fn legacy(host: &Host, name: &str, passphrase: &str) -> Client {
    host.client().call("createwallet", json!([name, false, false, passphrase, false, false]));
    host.client().wallet(name)
}

/// The wallets and what they have before: mature coins of their own addresses, of an imported key, of a multisig of their keys, and
/// of an address that they watch.
struct Story {
    /// Addresses with coins of the wallet's keys, and what each received.
    own: Vec<String>,
    watched: String,
    /// A multisig of which the wallet has one key.
    shared: String,
    comment: String,
    locked: [Value; 2],
}

impl Story {
    fn begin(host: &Host, wallet: &mut Client, passphrase: &str) -> Self {
        let mut client = host.client();
        if !passphrase.is_empty() {
            wallet.call("walletpassphrase", json!([passphrase, 600]));
        }
        let mut own: Vec<String> = ["legacy", "p2sh-segwit", "bech32"]
            .map(|kind| text(&wallet.call("getnewaddress", json!([format!("a {kind} address"), kind]))))
            .into();
        wallet.call("importprivkey", json!([WIF, "imported", false]));
        own.extend(["legacy", "bech32"].map(|kind| text(&imported(&mut client, kind))));
        let both = wallet.call("addmultisigaddress", json!([2, [own[0], own[2]], "both keys", "bech32"]));
        own.push(text(&both["address"]));
        let other = "02f9308a019258c31049344f85f89d5229b531c845836f99b08601f113bce036f9";
        let one = wallet.call("addmultisigaddress", json!([2, [own[0], other], "one key", "legacy"]));
        let shared = text(&one["address"]);
        let mut others = host.new_wallet("others");
        let watched = text(&others.call("getnewaddress", json!([])));
        wallet.call("importaddress", json!([watched, "watched", false]));
        wallet.call("setlabel", json!([ADDRESS, "somebody"]));
        for address in own.iter().chain([&watched, &watched]) {
            client.call("generatetoaddress", json!([1, address]));
        }
        client.call("generatetoaddress", json!([100, ADDRESS]));
        let pays = json!([ADDRESS, 1, "for the roof", "the roofer"]);
        let comment = text(&wallet.call("sendtoaddress", pays));
        client.call("generatetoaddress", json!([1, ADDRESS]));
        let coins = wallet.call("listunspent", json!([1, 9_999_999, [own[1], watched]]));
        let coin = |address: &str| {
            let coin = coins.as_array().unwrap().iter().find(|coin| coin["address"] == address).unwrap();
            json!({"txid": coin["txid"], "vout": coin["vout"]})
        };
        let locked = [coin(&own[1]), coin(&watched)];
        wallet.call("lockunspent", json!([false, locked, true]));
        Self { own, watched, shared, comment, locked }
    }
}

/// An address of the imported key.
fn imported(client: &mut Client, kind: &str) -> Value {
    let text = match kind {
        "legacy" => format!("pkh({WIF})"),
        _ => format!("wpkh({WIF})"),
    };
    let info = client.call("getdescriptorinfo", json!([text]));
    client.call("deriveaddresses", json!([info["descriptor"]]))[0].clone()
}

/// What a wallet tells of its history with `watch` or without, by txid, vout and category.
fn history(wallet: &mut Client, watch: bool) -> BTreeMap<String, Value> {
    let listed = wallet.call("listtransactions", json!(["*", 1000, 0, watch]));
    let told = |entry: &Value| {
        let mut kept = entry.clone();
        let object = kept.as_object_mut().unwrap();
        // What a wallet of descriptors tells beside it, or tells no more.
        for key in ["involvesWatchonly", "parent_descs", "walletconflicts", "mempoolconflicts", "abandoned"] {
            object.remove(key);
        }
        (format!("{} {} {}", entry["txid"], entry["vout"], entry["category"]), kept)
    };
    listed.as_array().unwrap().iter().map(told).collect()
}

fn balances(wallet: &mut Client) -> Value {
    let mut balances = wallet.call("getbalances", json!([]));
    balances.as_object_mut().unwrap().remove("lastprocessedblock");
    balances
}

fn migrate_and_compare(passphrase: &str, loaded: bool) {
    let host = Host::start();
    let mut wallet = legacy(&host, "old", passphrase);
    let story = Story::begin(&host, &mut wallet, passphrase);
    let before = (balances(&mut wallet), history(&mut wallet, false), history(&mut wallet, true));
    let next = wallet.call("getaddressinfo", json!([story.own[2]]))["hdkeypath"].clone();
    if !loaded {
        host.client().call("unloadwallet", json!(["old"]));
    }
    if !passphrase.is_empty() {
        let message = "Error: Wallet decryption failed, the wallet passphrase was not provided or was incorrect.";
        for given in [json!(["old"]), json!(["old", ""])] {
            assert_eq!(host.client().refused("migratewallet", given), (-4, message.to_owned()));
        }
        let listed = host.client().call("listwallets", json!([]));
        assert_eq!(listed.as_array().unwrap().contains(&json!("old")), loaded, "{listed}");
    }
    let mut client = if loaded { host.client().wallet("old") } else { host.client() };
    let arguments = match (loaded, passphrase) {
        (true, "") => json!([]),
        (true, given) => json!([null, given]),
        (false, given) => json!(["old", given]),
    };
    let answer = client.call("migratewallet", arguments);
    let keys: Vec<&String> = answer.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["wallet_name", "watchonly_name", "solvables_name", "backup_path"]);
    assert_eq!((&answer["wallet_name"], &answer["watchonly_name"]), (&json!("old"), &json!("old_watchonly")));
    assert_eq!(answer["solvables_name"], "old_solvables");
    check_main(&host, &story, &before, passphrase, &next);
    check_sides(&host, &story, &before);
    check_backup(&host, &text(&answer["backup_path"]), &before);
    let already = (-4, "Error: This wallet is already a descriptor wallet".to_owned());
    assert_eq!(host.client().refused("migratewallet", json!(["old"])), already);
    assert_eq!(host.client().refused("migratewallet", json!(["old_watchonly"])), already);
    // The wallets beside it are loaded at the next start, too.
    let host = host.restart();
    let loaded = host.client().call("listwallets", json!([]));
    for name in ["old_watchonly", "old_solvables"] {
        assert!(loaded.as_array().unwrap().contains(&json!(name)), "{loaded}");
    }
}

type Before = (Value, BTreeMap<String, Value>, BTreeMap<String, Value>);

/// The wallet has all that it had keys for.
fn check_main(host: &Host, story: &Story, before: &Before, passphrase: &str, path: &Value) {
    let mut wallet = host.client().wallet("old");
    let info = wallet.call("getwalletinfo", json!([]));
    assert_eq!((&info["descriptors"], &info["private_keys_enabled"]), (&json!(true), &json!(true)));
    assert_eq!(info.get("unlocked_until"), (!passphrase.is_empty()).then_some(&json!(0)));
    assert_eq!(balances(&mut wallet), json!({"mine": before.0["mine"]}));
    assert_eq!(history(&mut wallet, false), before.1);
    let sent = wallet.call("gettransaction", json!([story.comment]));
    assert_eq!((&sent["comment"], &sent["to"]), (&json!("for the roof"), &json!("the roofer")));
    assert_eq!(wallet.call("listlockunspent", json!([])), json!([story.locked[0]]));
    let labels = wallet.call("listlabels", json!([]));
    // Others' addresses, which those of a multisig with others count for, are in all wallets.
    let wanted = [
        "a bech32 address",
        "a legacy address",
        "a p2sh-segwit address",
        "both keys",
        "imported",
        "one key",
        "somebody",
    ];
    let labels: Vec<&Value> = labels.as_array().unwrap().iter().filter(|label| **label != "").collect();
    assert_eq!(labels, wanted);
    for address in &story.own {
        assert_eq!(wallet.call("getaddressinfo", json!([address]))["ismine"], true, "{address}");
    }
    for (address, labels) in [(&story.watched, json!([])), (&story.shared, json!(["one key"]))] {
        let info = wallet.call("getaddressinfo", json!([address]));
        assert_eq!((&info["ismine"], &info["iswatchonly"], &info["labels"]), (&json!(false), &json!(false), &labels));
    }
    if !passphrase.is_empty() {
        assert_eq!(wallet.refused("listdescriptors", json!([true])).0, -13);
        wallet.call("walletpassphrase", json!([passphrase, 600]));
    }
    let listed = wallet.call("listdescriptors", json!([true]));
    let texts: Vec<String> = listed["descriptors"].as_array().unwrap().iter().map(|one| text(&one["desc"])).collect();
    assert!(texts.iter().any(|text| text.starts_with("combo([") && text.contains(WIF)), "{texts:?}");
    let active = listed["descriptors"].as_array().unwrap().iter().filter(|one| one["active"] == true).count();
    assert_eq!(active, 8, "{texts:?}");
    // Addresses go on where they were.
    let address = wallet.call("getnewaddress", json!(["", "bech32"]));
    let hd_path = text(&wallet.call("getaddressinfo", json!([address]))["hdkeypath"]);
    assert_eq!(hd_path.strip_suffix("1"), text(path).replace('\'', "h").strip_suffix("0"), "{hd_path}");
    wallet.call("getnewaddress", json!(["", "bech32m"]));
    // All of it can be spent.
    wallet.call("lockunspent", json!([true]));
    let swept = wallet.call("sendall", json!([[ADDRESS]]));
    assert_eq!(swept["complete"], true, "{swept}");
    let inputs = wallet.call("getrawtransaction", json!([swept["txid"], 1]))["vin"].as_array().unwrap().len();
    assert_eq!(inputs, story.own.len());
}

/// The wallets beside it have what it only watched, and what it could help to spend.
fn check_sides(host: &Host, story: &Story, before: &Before) {
    let mut watching = host.client().wallet("old_watchonly");
    let info = watching.call("getwalletinfo", json!([]));
    assert_eq!((&info["descriptors"], &info["private_keys_enabled"]), (&json!(true), &json!(false)));
    assert_eq!(balances(&mut watching)["mine"], before.0["watchonly"]);
    let mut only_watched = before.2.clone();
    only_watched.retain(|place, _| !before.1.contains_key(place));
    assert!(!only_watched.is_empty());
    assert_eq!(history(&mut watching, false), only_watched);
    assert_eq!(watching.call("listlockunspent", json!([])), json!([story.locked[1]]));
    let info = watching.call("getaddressinfo", json!([story.watched]));
    assert_eq!((&info["ismine"], &info["labels"]), (&json!(true), &json!(["watched"])));
    let mut solvables = host.client().wallet("old_solvables");
    let info = solvables.call("getaddressinfo", json!([story.shared]));
    let expected = (&json!(true), &json!(true), &json!(["one key"]));
    assert_eq!((&info["ismine"], &info["solvable"], &info["labels"]), expected, "{info}");
    assert!(text(&info["desc"]).starts_with("sh(multi(2,"));
    assert_eq!(solvables.call("getwalletinfo", json!([]))["txcount"], 0);
}

/// The copy of the wallet as it was becomes such a wallet again.
fn check_backup(host: &Host, file: &str, before: &Before) {
    assert!(file.ends_with(".legacy.bak") && file.contains("/old/old_"), "{file}");
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.mdb");
    std::fs::copy(file, &copy).unwrap();
    host.client().call("restorewallet", json!(["restored", copy]));
    let mut restored = host.client().wallet("restored");
    assert_eq!(restored.call("getwalletinfo", json!([]))["descriptors"], false);
    let kept: Vec<String> = history(&mut restored, true).into_keys().collect();
    assert!(before.2.keys().all(|place| kept.contains(place)));
}

#[test]
fn migratewallet_keeps_addresses_balances_history_labels_and_locks() {
    migrate_and_compare("", true);
}

#[test]
fn migratewallet_of_an_encrypted_wallet_needs_its_passphrase() {
    migrate_and_compare(PASSPHRASE, true);
}

#[test]
fn migratewallet_of_a_wallet_that_is_not_loaded_loads_it() {
    migrate_and_compare("", false);
}

#[test]
fn migratewallet_of_what_has_only_keys_makes_no_other_wallet() {
    let host = Host::start();
    let mut wallet = legacy(&host, "w", "");
    let address = wallet.call("getnewaddress", json!([]));
    let answer = wallet.call("migratewallet", json!([]));
    assert_eq!(answer.as_object().unwrap().keys().collect::<Vec<_>>(), ["wallet_name", "backup_path"]);
    assert_eq!(wallet.call("getaddressinfo", json!([address]))["ismine"], true);
    // A wallet without private keys stays one that watches.
    host.client().call("createwallet", json!(["eyes", true, false, "", false, false]));
    let mut eyes = host.client().wallet("eyes");
    eyes.call("importaddress", json!([address, "seen", false]));
    let answer = eyes.call("migratewallet", json!(["eyes"]));
    assert_eq!(answer.as_object().unwrap().keys().collect::<Vec<_>>(), ["wallet_name", "backup_path"]);
    let info = eyes.call("getaddressinfo", json!([address]));
    assert_eq!((&info["ismine"], &info["labels"]), (&json!(true), &json!(["seen"])));
    let listed = eyes.call("listdescriptors", json!([]));
    assert_eq!(text(&listed["descriptors"][0]["desc"]).split('#').next(), Some(&*format!("addr({})", text(&address))));
    // One without anything is one of descriptors, and blank.
    host.client().call("createwallet", json!(["nothing", false, true, "", false, false]));
    host.client().call("migratewallet", json!(["nothing"]));
    let info = host.client().wallet("nothing").call("getwalletinfo", json!([]));
    assert_eq!((&info["descriptors"], &info["blank"], &info["keypoolsize"]), (&json!(true), &json!(true), &json!(0)));
}

#[test]
fn migratewallet_after_sethdseed_goes_on_with_the_descriptors_of_the_seed() {
    let host = Host::start();
    let mut wallet = legacy(&host, "w", "");
    let seed = "cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87JcbXMTcA";
    wallet.call("sethdseed", json!([true, seed]));
    let before = wallet.call("getnewaddress", json!(["", "bech32"]));
    wallet.call("migratewallet", json!([]));
    assert_eq!(wallet.call("getaddressinfo", json!([before]))["ismine"], true);
    let after = wallet.call("getnewaddress", json!(["", "bech32"]));
    let secret = bitcoin::PrivateKey::from_wif(seed).unwrap().inner.secret_bytes();
    let master = bitcoin::bip32::Xpriv::new_master(bitcoin::Network::Regtest, &secret).unwrap();
    let info = wallet.call("getdescriptorinfo", json!([format!("wpkh({master}/84h/1h/0h/0/0)")]));
    let expected = format!("wpkh({master}/84h/1h/0h/0/0)#{}", text(&info["checksum"]));
    assert_eq!(wallet.call("deriveaddresses", json!([expected]))[0], after);
    assert_eq!(wallet.call("gethdkeys", json!([{"active_only": true}])).as_array().unwrap().len(), 1);
}

#[test]
fn migratewallet_that_cannot_make_its_other_wallets_leaves_all_as_it_was() {
    let host = Host::start();
    let mut wallet = legacy(&host, "w", "");
    wallet.call("importaddress", json!([ADDRESS, "watched", false]));
    host.client().call("createwallet", json!(["w_watchonly"]));
    let (code, message) = wallet.refused("migratewallet", json!([]));
    assert!(code == -4 && message.starts_with("Wallet file creation failed: "), "{code} {message}");
    assert_eq!(wallet.call("getwalletinfo", json!([]))["descriptors"], false);
    assert_eq!(wallet.call("getaddressinfo", json!([ADDRESS]))["iswatchonly"], true);
}

#[test]
fn migratewallet_refuses_as_bitcoind() {
    let Some(program) = installed() else { return };
    let (node, _) = Bitcoind::start_with(program, &[]);
    let host = Host::start();
    for client in [&mut host.client(), &mut node.client()] {
        for name in ["a", "b", "c"] {
            client.call("createwallet", json!({"wallet_name": name, "descriptors": true}));
        }
        client.call("unloadwallet", json!(["c"]));
    }
    for (path, params) in [
        (None, json!([])),
        (None, json!(["a"])),
        (None, json!(["none"])),
        (None, json!(["c"])),
        (None, json!(["c", "wrong"])),
        (Some("a"), json!([])),
        (Some("a"), json!(["b"])),
        (Some("c"), json!([])),
        (Some("none"), json!([])),
        (None, json!([5])),
        (None, json!(["a", 5])),
        (None, json!(["a", "b", "c"])),
    ] {
        let refused = |mut client: Client| match path {
            Some(path) => client.wallet(path).refused("migratewallet", params.clone()),
            None => client.refused("migratewallet", params.clone()),
        };
        let (ours, theirs) = (refused(host.client()), refused(node.client()));
        // What a help says is each program's own.
        if theirs.1.starts_with("migratewallet") {
            assert_eq!(ours.0, theirs.0, "{path:?} {params}");
        } else {
            assert_eq!(ours, theirs, "{path:?} {params}");
        }
    }
}

#[test]
fn migratewallet_that_is_killed_has_happened_or_has_not() {
    let asked = setting("OUTRIGGER_KILLS", 0);
    let kills = if asked == 0 { KILLS } else { (asked / 5).max(1) };
    let mut numbers = Numbers(setting("OUTRIGGER_KILLS_SEED", 0x6d69_6772));
    let mut host = Host::start_with(HostOptions { set: vec!["wallet.keypool=50".into()], ..HostOptions::default() });
    let watched = "bcrt1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqdku202";
    let mut window = None;
    let (mut migrated, mut unchanged) = (0, 0);
    for number in 0..kills {
        let name = format!("w{number}");
        let mut wallet = legacy(&host, &name, "");
        let own = text(&wallet.call("getnewaddress", json!(["mine"])));
        wallet.call("importaddress", json!([watched, "watched", false]));
        for address in [&own, &watched.to_owned()] {
            host.client().call("generatetoaddress", json!([1, address]));
        }
        let received = (wallet.call("getwalletinfo", json!([]))["txcount"].clone(), balances(&mut wallet));
        let begun = std::time::Instant::now();
        let Some(window) = window else {
            wallet.call("migratewallet", json!([]));
            window = Some(begun.elapsed());
            continue;
        };
        let life = u64::try_from(Duration::as_micros(&window)).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| wallet.call_while_alive("migratewallet", json!([])));
            // Not a wait for anything: this is the instant of the kill.
            std::thread::sleep(Duration::from_micros(numbers.below(life)));
            host.kill();
        });
        host = host.start_again();
        if check_after_kill(&host, &name, &own, watched, &received) {
            migrated += 1;
        } else {
            unchanged += 1;
        }
    }
    eprintln!("{kills} kills: {migrated} wallets were migrated, {unchanged} were as before");
    assert!(unchanged > 0, "no kill came before the commit");
}

/// Whether the wallet was migrated before the kill; it has all that it had, alone or with the other one.
fn check_after_kill(host: &Host, name: &str, own: &str, watched: &str, before: &(Value, Value)) -> bool {
    let mut client = host.client();
    let on_disk = client.call("listwalletdir", json!([]));
    let side = format!("{name}_watchonly");
    let there = on_disk["wallets"].as_array().unwrap().iter().any(|wallet| wallet["name"] == json!(side));
    if !client.call("listwallets", json!([])).as_array().unwrap().contains(&json!(name)) {
        client.call("loadwallet", json!([name]));
    }
    let mut wallet = client.wallet(name);
    let info = wallet.call("getwalletinfo", json!([]));
    let migrated = info["descriptors"] == true;
    assert_eq!(there, migrated, "{name}: {on_disk}");
    assert_eq!(wallet.call("getaddressinfo", json!([own]))["labels"], json!(["mine"]));
    if !migrated {
        assert_eq!((&info["txcount"], &balances(&mut wallet)), (&before.0, &before.1));
        // Nothing is in its way.
        wallet.call("migratewallet", json!([]));
    }
    let mut side = client.wallet(&side);
    assert_eq!(side.call("getaddressinfo", json!([watched]))["labels"], json!(["watched"]));
    assert_eq!(balances(&mut wallet)["mine"], before.1["mine"]);
    assert_eq!(balances(&mut side)["mine"], before.1["watchonly"]);
    for name in [name.to_owned(), format!("{name}_watchonly")] {
        client.call("unloadwallet", json!([name, false]));
    }
    migrated
}

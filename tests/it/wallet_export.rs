//! Wallets as text files: our own, those of Sparrow and Specter, and labels.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use outrigger_tests::{Client, Host, NOBODY, built};
use serde_json::{Value, json};

const PASSPHRASE: &str = "a passphrase";

/// Runs a subcommand of `wallet` for the host, with a passphrase on its standard input.
pub fn run(host: &Host, arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(&built().binary);
    command.arg("wallet").args(arguments).arg("--datadir").arg(host.datadir());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A command without a passphrase reads nothing, and may have ended.
    let _ = std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes());
    child.wait_with_output().unwrap()
}

#[track_caller]
fn done(output: &Output) -> String {
    let (told, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{told}\n{error}");
    told.into_owned()
}

#[track_caller]
pub fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/descriptors").join(name)
}

/// A wallet with coins, own and foreign labels, a payment with comments, a locked coin, and an imported address.
fn used_wallet(host: &Host, options: &Value) -> Client {
    let mut client = host.client();
    client.call("createwallet", options.clone());
    let mut wallet = client.wallet(options["wallet_name"].as_str().unwrap());
    if options["passphrase"].is_string() {
        wallet.call("walletpassphrase", json!([PASSPHRASE, 600]));
    }
    for label in ["rent", "", "shop \"α\""] {
        let address = wallet.call("getnewaddress", json!([label]));
        wallet.call("generatetoaddress", json!([2, address]));
    }
    wallet.call("setlabel", json!([NOBODY, "the landlord"]));
    wallet.call("generatetoaddress", json!([101, NOBODY]));
    wallet.call("sendtoaddress", json!([NOBODY, 1, "rent of May", "the landlord"]));
    wallet.call("generatetoaddress", json!([1, NOBODY]));
    let coin = &wallet.call("listunspent", json!([]))[0];
    let coin = json!([{"txid": coin["txid"], "vout": coin["vout"]}]);
    wallet.call("lockunspent", json!([false, coin, true]));
    wallet
}

/// The answers in which equal wallets agree.
fn answers(wallet: &mut Client) -> Vec<Value> {
    let mut comments: Vec<Value> = Vec::new();
    for entry in wallet.call("listtransactions", json!(["*", 1000])).as_array().unwrap() {
        comments.push(json!([entry["txid"], entry["category"], entry["amount"], entry["comment"], entry["to"]]));
    }
    let mut all = vec![json!(comments)];
    for method in ["getbalances", "listlockunspent", "listlabels"] {
        all.push(wallet.call(method, json!([])));
    }
    for label in ["rent", "", "shop \"α\"", "the landlord"] {
        all.push(wallet.call("getaddressesbylabel", json!([label])));
    }
    // Asked before the next addresses are taken.
    for kind in ["legacy", "p2sh-segwit", "bech32", "bech32m"] {
        all.push(wallet.call("getnewaddress", json!(["", kind])));
        all.push(wallet.call("getrawchangeaddress", json!([kind])));
    }
    all
}

#[test]
fn export_and_import_make_the_same_wallet_and_a_wrong_file_makes_none() {
    let host = Host::start();
    // This check comes first, since the first blocks pay 50 BTC.
    check_wide_range(&host);
    check_same_wallets(&host);
    check_wrong_files(&host);
    check_hidden_keys(&host);
    check_other_programs(&host);
    check_labels(&host);
    check_used_descriptors(&host);
}

/// Leaves the wallets `public`, `private` and `sealed` loaded.
fn check_same_wallets(host: &Host) {
    let place = tempfile::tempdir().unwrap();
    for (name, options, flags, input) in [
        ("public", json!({}), &[][..], ""),
        ("private", json!({"avoid_reuse": true}), &["--private"][..], ""),
        ("sealed", json!({"passphrase": PASSPHRASE}), &["--private"][..], "a passphrase\n"),
    ] {
        let mut create = options.clone();
        create["wallet_name"] = json!(name);
        let mut original = used_wallet(host, &create);
        let file = place.path().join(name);
        let path = file.to_str().unwrap();
        done(&run(host, &[&["export", name, "--to", path], flags].concat(), input));
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text.contains("tprv"), !flags.is_empty(), "private keys only where they are asked for");
        assert!(refused(&run(host, &["export", name, "--to", path], "")).contains("exists"), "no file is replaced");
        let copy = format!("{name}-copy");
        let told = done(&run(host, &["import", path, "--as", &copy], input));
        assert!(told.lines().skip(1).all(|line| line.ends_with(" equal, 0 different")), "{told}");
        assert!(told.contains("\nbalances: 4 equal") || told.contains("\nbalances: 3 equal"), "{told}");
        let mut copy = host.client().wallet(&copy);
        let info = copy.call("getwalletinfo", json!([]));
        assert_eq!(info["private_keys_enabled"], json!(!flags.is_empty()));
        assert_eq!(info["avoid_reuse"], json!(options["avoid_reuse"] == true));
        if options["passphrase"].is_string() {
            copy.call("walletpassphrase", json!([PASSPHRASE, 600]));
            // The original is unlocked, so only the passphrase itself reveals a mistake.
            let unlocked = original.call("getwalletinfo", json!([]))["unlocked_until"].clone();
            let other = place.path().join("other");
            let export = ["export", name, "--private", "--to", other.to_str().unwrap()];
            assert!(refused(&run(host, &export, "another\n")).contains("passphrase entered was incorrect"));
            assert_eq!(original.call("getwalletinfo", json!([]))["unlocked_until"], unlocked);
        }
        assert_eq!(answers(&mut copy), answers(&mut original), "{name}");
        // Label lines follow BIP 329.
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(lines.contains(&json!({"type": "addr", "ref": NOBODY, "label": "the landlord"})), "{text}");
        let kinds = ["descriptor", "addr", "tx", "output", "end"];
        assert!(lines[1..].iter().all(|line| kinds.iter().any(|kind| line["type"] == *kind)), "{text}");
    }
}

/// A wrong file is refused, and leaves no wallet.
fn check_wrong_files(host: &Host) {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("file");
    let path = file.to_str().unwrap();
    done(&run(host, &["export", "public", "--to", path], ""));
    let whole = fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let wallets = host.client().call("listwallets", json!([]));
    let folders = || fs::read_dir(host.network_folder().join("wallets")).unwrap().count();
    let before = folders();
    let without = |number: usize| [&lines[..number], &lines[number + 1..]].concat().join("\n");
    let head: Value = serde_json::from_str(lines[0]).unwrap();
    let genesis = head["genesis"].as_str().unwrap();
    let sparrow = fs::read_to_string(sample("sparrow.txt")).unwrap();
    let both = sparrow.lines().find(|line| line.contains('<')).unwrap().split_once('#').unwrap().0;
    let two_accounts = format!("{both}\n{}\n", both.replace("84h/1h/0h", "84h/1h/1h"));
    let cases = [
        (String::new(), "the file is empty"),
        ("no descriptor at all".to_owned(), "a descriptor cannot be used"),
        ("{\"a\": 1}".to_owned(), "no file of a known format"),
        (lines[..lines.len() - 1].join("\n"), "the file is cut off"),
        (whole[..whole.len() / 2].to_owned(), "line "),
        (without(2), "lines are missing"),
        (format!("{whole}{}\n", lines[1]), "it follows the last line"),
        (whole.replace("\"version\":1", "\"version\":2"), "this program reads version 1"),
        (
            whole.replace("\"chain\":\"regtest\"", "\"chain\":\"main\""),
            "it is a wallet of main, and the host is on regtest",
        ),
        (whole.replace(genesis, &genesis.replace('0', "1")), "the host is on regtest"),
        (whole.replace(NOBODY, "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"), "is no address of the host's network"),
        (whole.replacen("/0/*)#", "/0/*)#x", 1), "cannot be imported"),
        (fs::read_to_string(sample("sparrow-main.txt")).unwrap(), "a descriptor cannot be used"),
        (fs::read_to_string(sample("sparrow.txt")).unwrap().replace("<0;1>", "<0;1"), "'<' without '>'"),
        (two_accounts, "it has other descriptors beside one for both sides"),
    ];
    for (text, why) in cases {
        fs::write(&file, &text).unwrap();
        let told = refused(&run(host, &["import", path, "--as", "new"], ""));
        assert!(told.contains(why), "{why}: {told}");
        assert_eq!((host.client().call("listwallets", json!([])), folders()), (wallets.clone(), before), "{why}");
    }
}

/// The import reads descriptors of Sparrow and Specter.
fn check_other_programs(host: &Host) {
    let mut client = host.client();
    let (sparrow, specter) = (sample("sparrow.txt"), sample("specter.json"));
    client.call("generatetoaddress", json!([1, NOBODY]));
    let told = done(&run(host, &["import", sparrow.to_str().unwrap(), "--as", "sparrow"], ""));
    assert!(told.contains("\"sparrow\": 2 descriptors"), "{told}");
    done(&run(host, &["import", specter.to_str().unwrap()], ""));
    for (name, kind) in [("sparrow", "bech32"), ("Two of us", "bech32")] {
        let mut wallet = client.wallet(&name.replace(' ', "%20"));
        let listed = wallet.call("listdescriptors", json!([]));
        let descriptors = listed["descriptors"].as_array().unwrap();
        let sides: Vec<(bool, &Value)> =
            descriptors.iter().map(|one| (one["active"] == true, &one["internal"])).collect();
        assert_eq!(sides, [(true, &json!(false)), (true, &json!(true))], "{listed}");
        assert_eq!(wallet.call("getwalletinfo", json!([]))["private_keys_enabled"], json!(false));
        let [receiving, change] = [0, 1].map(|at| descriptors[at]["desc"].as_str().unwrap().to_owned());
        assert!(receiving.contains("/0/*") && change.contains("/1/*") && !change.contains("/0/*"), "{listed}");
        let first = |client: &mut Client, text: &str| client.call("deriveaddresses", json!([text, [0, 0]]))[0].clone();
        assert_eq!(wallet.call("getnewaddress", json!(["", kind])), first(&mut client, &receiving));
        assert_eq!(wallet.call("getrawchangeaddress", json!([kind])), first(&mut client, &change));
    }
}

/// Labels are imported into an existing wallet.
fn check_labels(host: &Host) {
    let mut wallet = host.client().wallet("public");
    let before = wallet.call("listlockunspent", json!([]));
    let coin = wallet.call("listunspent", json!([]))[0].clone();
    let [txid, vout] = [coin["txid"].as_str().unwrap(), &coin["vout"].to_string()];
    let text = fs::read_to_string(sample("labels.jsonl")).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), text.replace("%TXID%", txid).replace("%VOUT%", vout)).unwrap();
    let path = file.path().to_str().unwrap();
    let alone = refused(&run(host, &["import", path, "--as", "public"], ""));
    assert!(alone.contains("labels alone"), "{alone}");
    let told = done(&run(host, &["import", path, "--as", "public", "--into-existing"], ""));
    assert!(told.contains("4 labels are left out"), "{told}");
    assert_eq!(wallet.call("gettransaction", json!([txid]))["comment"], json!("rent"));
    let locked = wallet.call("listlockunspent", json!([]));
    assert!(locked.as_array().unwrap().contains(&json!({"txid": txid, "vout": coin["vout"]})), "{locked}");
    assert!(locked.as_array().unwrap().contains(&before[0]), "a former lock stays: {locked}");
    assert!(wallet.call("getaddressesbylabel", json!(["the landlord"])).as_object().unwrap().contains_key(NOBODY));
}

/// The lines of an export, with `more` before the last one.
fn with_lines(text: &str, more: &[Value]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.pop();
    lines.extend(more.iter().map(Value::to_string));
    let end = json!({"type": "end", "lines": lines.len()}).to_string();
    lines.join("\n") + "\n" + &end + "\n"
}

/// A failed import shows no private keys.
fn check_hidden_keys(host: &Host) {
    host.new_wallet("w");
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("file");
    let path = file.to_str().unwrap();
    done(&run(host, &["export", "w", "--private", "--to", path], ""));
    let text = fs::read_to_string(&file).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_bech32 = |line: &&Value| line["active"] == "receiving" && line["ref"].as_str().unwrap().starts_with("wpkh(");
    let first = lines.iter().find(of_bech32).unwrap();
    // A second active descriptor replaces the first.
    let body = first["ref"].as_str().unwrap().split_once('#').unwrap().0.replace("/0/*", "/7/*");
    let mut second = first.clone();
    second["ref"] = json!(host.client().with_checksum(&body));
    fs::write(&file, with_lines(&text, &[second])).unwrap();
    let told = refused(&run(host, &["import", path, "--as", "differing"], ""));
    let checksum = first["ref"].as_str().unwrap().split_once('#').unwrap().1;
    assert!(told.contains("the wallet differs from the file"), "{told}");
    assert!(told.contains(&format!("only in the original: wpkh(...)#{checksum} active: true")), "{told}");
    assert!(!told.contains("tprv"), "{told}");
}

/// Used descriptors of another program are equal after the import.
fn check_used_descriptors(host: &Host) {
    let mut client = host.client();
    let sparrow = fs::read_to_string(sample("sparrow.txt")).unwrap();
    let receiving = sparrow.lines().find(|line| line.contains("/0/*")).unwrap();
    let used = client.call("deriveaddresses", json!([receiving, [3, 3]]))[0].clone();
    client.call("generatetoaddress", json!([1, used]));
    let told = done(&run(host, &["import", sample("sparrow.txt").to_str().unwrap(), "--as", "used"], ""));
    assert!(told.contains("\ndescriptors: 2 equal, 0 different"), "{told}");
    let listed = client.wallet("used").call("listdescriptors", json!([]));
    assert_eq!(listed["descriptors"][0]["next_index"], json!(4), "{listed}");
}

/// Export and import preserve a wide range, and find its late payments.
fn check_wide_range(host: &Host) {
    let mut client = host.client();
    let sparrow = fs::read_to_string(sample("sparrow.txt")).unwrap();
    let receiving = sparrow.lines().find(|line| line.contains("/0/*")).unwrap();
    let mut original = client.create_wallet("far", json!({"disable_private_keys": true, "blank": true}));
    original.import(&json!([{"desc": receiving, "range": [0, 5000], "active": true, "timestamp": 0}]));
    // Beyond the range that a wallet derives by itself.
    let paid = client.call("deriveaddresses", json!([receiving, [4500, 4500]]))[0].clone();
    client.call("generatetoaddress", json!([1, paid]));
    client.call("generatetoaddress", json!([100, NOBODY]));
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("file");
    let path = file.to_str().unwrap();
    done(&run(host, &["export", "far", "--to", path], ""));
    let told = done(&run(host, &["import", path, "--as", "copy"], ""));
    assert!(told.contains("\ndescriptors: 1 equal, 0 different"), "{told}");
    let mut copy = client.wallet("copy");
    let listed = |wallet: &mut Client| wallet.call("listdescriptors", json!([]))["descriptors"].clone();
    let ranges = listed(&mut copy);
    assert_eq!(ranges, listed(&mut original));
    let last = ranges[0]["range"][1].as_u64().unwrap();
    assert!(last >= 5000 && ranges[0]["next_index"] == 4501, "{ranges}");
    let balances = copy.call("getbalances", json!([]));
    assert_eq!(balances, original.call("getbalances", json!([])));
    assert_eq!(balances["mine"]["trusted"].to_string(), "50.00000000");
}

#[test]
fn version_with_formats_lists_the_layout_of_each_file() {
    let told = |arguments: &[&str]| Command::new(&built().binary).args(arguments).output().unwrap();
    let plain = told(&["--version"]);
    assert_eq!(plain.stdout, told(&["-V"]).stdout);
    let first = String::from_utf8(plain.stdout).unwrap();
    assert_eq!(first, format!("outrigger {}\n", env!("CARGO_PKG_VERSION")));
    let formats = String::from_utf8(told(&["--version", "--formats"]).stdout).unwrap();
    assert!(formats.starts_with(&first), "{formats}");
    let wallet = format!("\nwallet {}  ", outrigger_wallet_engine::LAYOUT);
    for line in
        [&wallet, "\nstore 1  ", "\nchain 2  ", "\nheaders 2  ", "\nfilters 1  ", "\nexport 1  ", "\nplugins 1."]
    {
        assert!(formats.contains(line), "{line}\n{formats}");
    }
    let alone = told(&["--formats"]);
    assert_eq!((alone.status.code(), alone.stdout.len()), (Some(2), 0));
    assert_eq!(told(&[]).status.code(), Some(2));
}

//! Wallet policies (`policy/1`): no method, batch, wrapper or plugin bypasses them, and nothing is signed without a policy's answer.

use std::collections::BTreeSet;

use outrigger_tests::{Client, ELSEWHERE, Host, HostOptions, all_groups, plugin_section, wait_until};
use serde_json::{Value, json};

/// A key that no wallet here has.
const OTHER_KEY: &str = "wpkh(cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87JcbXMTcA)";

/// bitcoind's error code for wallet errors.
pub const WALLET_ERROR: i64 = -4;

const REFUSED: &str = "The policy 'judge' refuses: It is Sunday";

/// Configures the groups, with a policy for wallets whose names begin with "hot". `options` and `rest` are added to its plugin's section.
fn text(plugin: &str, options: &str, rest: &str) -> String {
    let groups = all_groups();
    let id = plugin.replace('_', "-");
    let policy = format!("[[wallet.policies]]\nwallets = [\"hot*\"]\nplugin = {id:?}\n");
    let rest = format!("{rest}\noptions = {{ {options} }}\n\n{policy}");
    format!("{groups}\n{}", plugin_section(&format!("outrigger_{plugin}"), &rest))
}

fn host(text: &str) -> Host {
    Host::start_with(HostOptions::configured(text))
}

/// Gives the wallet `coins` mature coins of 50 BTC of each type.
pub fn fund(wallet: &mut Client, coins: u32) {
    for kind in ["bech32", "bech32m", "legacy", "p2sh-segwit"] {
        let address = wallet.call("getnewaddress", json!(["", kind]));
        wallet.call("generatetoaddress", json!([coins, address]));
    }
    wallet.call("generatetoaddress", json!([100, ELSEWHERE]));
}

/// The acts and methods that the policy was asked about since the last call.
fn judged(client: &mut Client) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let judged = client.call("judged", json!([]));
    judged.as_array().unwrap().iter().map(|one| (text(&one["act"]), text(&one["method"]))).collect()
}

/// The methods that ask a policy, with the acts that it sees. `arguments` has their arguments.
const ASKING: [(&str, &[&str]); 17] = [
    ("signrawtransactionwithwallet", &["Sign"]),
    ("signmessage", &["SignMessage"]),
    ("walletprocesspsbt", &["Sign"]),
    ("send", &["Sign", "Send"]),
    ("sendall", &["Sign", "Send"]),
    ("sendtoaddress", &["Sign", "Send"]),
    ("sendmany", &["Sign", "Send"]),
    ("bumpfee", &["Sign", "Send"]),
    ("listdescriptors", &["GiveKeys"]),
    ("gethdkeys", &["GiveKeys"]),
    ("derivehdkey", &["GiveKeys"]),
    ("createwalletdescriptor", &["GiveKeys"]),
    ("dumpprivkey", &["GiveKeys"]),
    ("backupwallet", &["Backup"]),
    ("exportwatchonlywallet", &["Export"]),
    ("importdescriptors", &["Import"]),
    ("importmulti", &["Import"]),
];

/// The other methods of plugins with a grant that policies guard. They neither sign with a wallet's keys nor reveal them, or are hard
/// to set up in a test: importprunedfunds and the imports of single keys and addresses use the same functions as the other imports.
const HARMLESS: &str = "abandontransaction abortrescan addhdkey analyzepsbt combinepsbt combinerawtransaction converttopsbt createpsbt createwallet \
    decodepsbt descriptorprocesspsbt encryptwallet finalizepsbt fundrawtransaction getaddressesbylabel getaddressinfo getbalance \
    getbalances getnewaddress getrawchangeaddress getreceivedbyaddress getreceivedbylabel gettransaction getunconfirmedbalance \
    getwalletbackupinfo getwalletinfo importaddress importprivkey importprunedfunds importpubkey joinpsbts keypoolrefill listaddressgroupings listlabels listlockunspent listreceivedbyaddress \
    listreceivedbylabel listsinceblock listtransactions listunspent listwalletdir listwallets loadwallet lockunspent psbtbumpfee removeprunedfunds rescanblockchain \
    restorewallet setcomment setlabel settxfee setwalletflag signmessagewithprivkey signrawtransactionwithkey simulaterawtransaction \
    unloadwallet upgradewallet utxoupdatepsbt waitevents walletcreatefundedpsbt walletlock walletpassphrase walletpassphrasechange";

/// The arguments of a call of each method in [`ASKING`].
fn arguments(wallet: &mut Client, folder: &std::path::Path, round: &str) -> Vec<Value> {
    let legacy = wallet.call("getnewaddress", json!(["", "legacy"]));
    let funded = wallet.call("walletcreatefundedpsbt", json!([[], [{ELSEWHERE: 2}]]));
    let raw = wallet.call("createrawtransaction", json!([[], [{ELSEWHERE: 1}]]));
    let raw = wallet.call("fundrawtransaction", json!([raw]))["hex"].clone();
    let recent = wallet.call("listtransactions", json!(["*", 1])).as_array().unwrap().last().cloned();
    let other = wallet.with_checksum(OTHER_KEY);
    let file = |name: &str| folder.join(format!("{name}-{round}")).display().to_string();
    let xpub = wallet.call("gethdkeys", json!([]))[0]["xpub"].clone();
    vec![
        json!([raw]),
        json!([legacy, "text"]),
        json!([funded["psbt"]]),
        json!([{ELSEWHERE: 1}]),
        json!([[ELSEWHERE]]),
        json!([ELSEWHERE, 1]),
        json!(["", {ELSEWHERE: 1}]),
        json!([recent.map(|one| one["txid"].clone())]),
        json!([true]),
        json!([{"private": true}]),
        json!(["m/1h", {"private": true, "hdkey": xpub}]),
        json!(["bech32m", {"hdkey": xpub}]),
        json!([legacy]),
        json!([file("backup")]),
        json!([file("export")]),
        json!([[{"desc": other, "timestamp": "now"}]]),
        json!([[{"scriptPubKey": {"address": ELSEWHERE}, "timestamp": "now"}]]),
    ]
}

#[test]
fn policies_are_asked_by_every_method_that_signs_sends_or_gives_keys_out() {
    let text = text("judge", "", "grants = []");
    let host = host(&text);
    let config = host.config_file();
    let mut wallet = host.new_wallet("hot");
    let folder = tempfile::tempdir().unwrap();
    fund(&mut wallet, 2);
    let plugins = wallet.call("listplugins", json!([]));
    let guarded = ["wallet-pay/1", "wallet-import/1", "wallet-admin/1", "wallet-keys/1", "signer/1"];
    let is_granted = |plugin: &&Value| {
        plugin["grants"].as_array().unwrap().iter().any(|one| guarded.contains(&one.as_str().unwrap()))
    };
    let methods =
        plugins.as_array().unwrap().iter().filter(is_granted).flat_map(|plugin| plugin["methods"].as_array().unwrap());
    let found: BTreeSet<&str> = methods.map(|method| method.as_str().unwrap()).collect();
    let known = HARMLESS.split_whitespace().chain(ASKING.map(|(method, _)| method));
    assert_eq!(found, known.collect::<BTreeSet<_>>(), "each method of these plugins is in one of the lists");

    wallet.call("sendtoaddress", json!([ELSEWHERE, 1]));
    judged(&mut wallet);
    std::fs::write(
        config.path(),
        text.replace(
            "options = {  }",
            "options = { refuse = [\"Sign\", \"SignMessage\", \"Send\", \"GiveKeys\", \"Backup\", \"Export\", \"Import\"] }",
        ),
    )
    .unwrap();
    wallet.call("reloadplugin", json!(["judge"]));
    let state = |wallet: &mut Client| {
        let methods = ["getbalances", "getrawmempool", "listlockunspent", "listunspent"];
        methods.map(|method| wallet.call(method, json!([])))
    };
    let before = state(&mut wallet);
    let refused = arguments(&mut wallet, folder.path(), "refused");
    for ((method, acts), params) in ASKING.iter().zip(refused) {
        assert_eq!(wallet.refused(method, params), (WALLET_ERROR, REFUSED.to_owned()), "{method}");
        assert_eq!(judged(&mut wallet), [(acts[0].to_owned(), (*method).to_owned())], "{method}");
    }
    assert_eq!(state(&mut wallet), before);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);

    std::fs::write(config.path(), &text).unwrap();
    wallet.call("reloadplugin", json!(["judge"]));
    for (at, (method, acts)) in ASKING.iter().enumerate() {
        let params = arguments(&mut wallet, folder.path(), method).swap_remove(at);
        judged(&mut wallet);
        if let Err(error) = wallet.try_call(method, params) {
            assert_eq!(*method, "createwalletdescriptor", "{error:?}");
        }
        let seen: Vec<String> = judged(&mut wallet).into_iter().map(|(act, _)| act).collect();
        assert_eq!(seen, *acts, "{method}");
        wallet.call("generatetoaddress", json!([1, ELSEWHERE]));
        if *method == "sendall" || *method == "sendmany" {
            fund(&mut wallet, 2);
            wallet.call("sendtoaddress", json!([ELSEWHERE, 1]));
        }
    }
    // A wallet without a policy asks no plugin.
    let mut cold = host.new_wallet("cold");
    cold.call("listdescriptors", json!([true]));
    assert_eq!(judged(&mut cold), []);
}

#[test]
fn policies_cannot_be_bypassed_by_batches_wrappers_or_plugins() {
    let grants = "grants = [\"wallet-read/1\", \"signer/1\", { service = \"rpc/1\", methods = [\"sendtoaddress\", \"dumpprivkey\"] }]";
    let wrap = "grants = [\"rpc/1\"]\noptions = { ask = [\"sendmany\"] }\n\n[routes]\nwrap = [\"chained\"]\n";
    let judge = text("judge", "refuse = [\"Sign\", \"GiveKeys\", \"SignMessage\"]", grants);
    let host = host(&format!("{judge}\n{}", plugin_section("outrigger_chained", wrap)));
    let mut wallet = host.new_wallet("hot");
    fund(&mut wallet, 2);
    let refused = (WALLET_ERROR, REFUSED.to_owned());
    assert_eq!(wallet.refused("sendmany", json!(["", {ELSEWHERE: 1}])), refused);
    let call = |id: u32| json!({"id": id, "method": "sendtoaddress", "params": {"address": ELSEWHERE, "amount": id}});
    let batch = wallet.post(&json!([call(1), call(2), {"id": 3, "method": "getbalance"}]).to_string());
    assert_eq!(batch.body.matches(REFUSED).count(), 2, "{}", batch.body);
    // A client without the wallet's path, which uses the only loaded wallet, and the policy plugin itself.
    let mut unnamed = host.client();
    assert_eq!(unnamed.refused("sendtoaddress", json!([ELSEWHERE, 1])), refused);
    judged(&mut wallet);
    assert_eq!(wallet.refused("asjudge", json!(["sendtoaddress", [ELSEWHERE, 1]])), refused);
    let seen = wallet.call("judged", json!([]));
    assert_eq!((&seen[0]["user"], &seen[0]["method"]), (&json!("plugin:judge"), &json!("sendtoaddress")));
    assert_eq!(wallet.refused("signasjudge", json!([])), refused);
    assert_eq!(wallet.call("getrawmempool", json!([])), json!([]));
}

#[test]
fn policies_that_pay_while_they_are_replaced_judge_that_payment_themselves() {
    let grants = "grants = [\"wallet-read/1\", \"signer/1\", { service = \"rpc/1\", methods = [\"sendtoaddress\"] }]";
    let rest = format!("reload = \"after\"\ndeadline_seconds = 60\n{grants}");
    let host = host(&text("judge", "hang = [\"Sign\"]", &rest));
    let mut wallet = host.new_wallet("hot");
    fund(&mut wallet, 1);
    let paying = wallet.begin_call("asjudge", json!(["sendtoaddress", [ELSEWHERE, 1]]));
    wait_until("the policy judges its own payment", || wallet.plugin("judge")["waiting"] == json!(2));
    // The reload ends the wait in `Sign`. The host then asks about `Send`, for which the old instance's `asjudge` waits.
    wallet.call("reloadplugin", json!(["judge"]));
    let answer = paying.answer();
    assert!(answer["result"].is_string(), "{answer}");
    assert_eq!(judged(&mut wallet), []);
}

#[test]
fn policies_judge_while_other_payments_of_their_wallets_wait_on_all_threads() {
    let host = host(&text("judge", "", "grants = []"));
    let mut wallets = ["hot", "hotter"].map(|name| host.new_wallet(name));
    wallets.iter_mut().for_each(|wallet| fund(wallet, 5));
    let pay = |at: usize| wallets[at % 2].begin_call("sendtoaddress", json!([ELSEWHERE, 1]));
    let waiting: Vec<_> = (0..40).map(pay).collect();
    for call in waiting {
        let answer = call.answer();
        assert!(answer["result"].is_string(), "{answer}");
    }
}

#[test]
fn policies_that_do_not_return_refuse_at_their_deadline_and_block_no_reads() {
    for trusted in [true, false] {
        let rest = format!("trusted = {trusted}\ndeadline_seconds = 6\ngrants = []");
        let host = host(&text("judge", "hang = [\"Sign\"]", &rest));
        let mut wallet = host.new_wallet("hot");
        fund(&mut wallet, 1);
        let pay = || host.client().wallet("hot").begin_call("sendtoaddress", json!([ELSEWHERE, 1]));
        let first = pay();
        wait_until("the policy judges", || wallet.plugin("judge")["waiting"] == json!(1));
        let others: Vec<_> = (0..7).map(|_| pay()).collect();
        wait_until("all payments wait", || wallet.plugin("wallet")["waiting"] == json!(8));
        wallet.call("getbalances", json!([]));
        assert_eq!(wallet.plugin("judge")["timeouts"], json!(0));
        let (code, message) = first.refused();
        assert!(code == WALLET_ERROR && message.contains("was not answered within 6 s"), "{message}");
        drop(others);
    }
}

#[test]
fn policies_without_an_answer_prevent_all_signing() {
    let options = "hang = [\"SignMessage\"], panic = [\"GiveKeys\"]";
    let text = text("judge", options, "grants = []");
    let host = host(&text.replacen("file = \"signing\"\n", "file = \"signing\"\ndeadline_seconds = 4\n", 1));
    let mut wallet = host.new_wallet("hot");
    fund(&mut wallet, 2);
    let address = wallet.call("getnewaddress", json!(["", "legacy"]));
    let away = |wallet: &mut Client, method: &str, params: Value, reason: &str| {
        let (code, message) = wallet.refused(method, params);
        let begin = "The plugin 'judge', which judges for the wallet, failed: ";
        assert!(code == WALLET_ERROR && message.starts_with(begin) && message.contains(reason), "{method} {message}");
    };
    away(&mut wallet, "signmessage", json!([address, "text"]), "it did not answer in time");
    away(&mut wallet, "listdescriptors", json!([true]), "");
    wallet.call("stopplugin", json!(["judge"]));
    away(&mut wallet, "sendtoaddress", json!([ELSEWHERE, 1]), "it does not run");
    assert_eq!(wallet.call("getrawmempool", json!([])), json!([]));
    assert_eq!(wallet.call("listlockunspent", json!([])), json!([]));
    wallet.call("startplugin", json!(["judge"]));
    wallet.call("sendtoaddress", json!([ELSEWHERE, 1]));
    let (code, _) = wallet.refused("policy/1.judge", json!([{}]));
    assert_eq!(code, -32601);
}

#[test]
fn policies_read_only_their_wallet_and_the_audit_log_has_their_verdicts() {
    let grants = "grants = [\"wallet-read/1\", \"wallet-book/1\", \"wallet-pay/1\", \"wallet-admin/1\", \"wallet-keys/1\", \"signer/1\", \
                  { service = \"rpc/1\", methods = [\"getblockcount\"] }]";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit");
    let text = text("judge", "reach = [\"Sign\"], refuse = [\"GiveKeys\"]", grants);
    let audit = format!("[audit]\nfile = {:?}\n", file.display().to_string());
    let host = host(&text.replace("[audit]\n", &audit));
    let mut wallet = host.new_wallet("hot");
    fund(&mut wallet, 2);
    wallet.refused("listdescriptors", json!([true]));
    judged(&mut wallet);
    let txid = wallet.call("sendtoaddress", json!([ELSEWHERE, 1]));
    let seen = wallet.call("judged", json!([]));
    let reached: Vec<&str> = seen[0]["reached"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
    assert_eq!((reached.len(), &reached[..3]), (22, &["allowed"; 3][..]));
    for refused in &reached[3..] {
        assert_eq!(*refused, "Refused: A policy that judges may only read wallets, the chain and the mempool");
    }
    let of_policy = || {
        let lines = std::fs::read_to_string(&file).unwrap();
        let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line["policy"] == "judge").collect::<Vec<_>>()
    };
    let verdicts = of_policy();
    assert_eq!((&verdicts[0]["outcome"], &verdicts[0]["reason"]), (&json!("refused"), &json!(REFUSED)));
    assert_eq!(
        (&verdicts[2]["outcome"], &verdicts[2]["txid"][0], &verdicts[2]["wallet"]),
        (&json!("ok"), &txid, &json!("hot"))
    );
    let host = host.restart_with("wallet.policies=[{ wallets = ['hot'], plugin = 'judge', remove = true }]".to_owned());
    host.client().call("loadwallet", json!(["hot"]));
    let removed = of_policy().pop().unwrap();
    assert_eq!((&removed["method"], &removed["user"]), (&json!("wallet.policies"), &json!("host")));
    assert_eq!((&removed["wallet"], of_policy().len()), (&json!("hot"), verdicts.len() + 1));
}

#[test]
fn wallet_policies_must_name_a_plugin_that_judges() {
    let text = text("judge", "", "grants = []\nenabled = false");
    let output = Host::check(&HostOptions::configured(&text));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("wallet.policies") && told.contains("no enabled plugin 'judge' provides policy/1"), "{told}");
}

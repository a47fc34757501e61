//! The configuration switches groups on and off, and a third party's plugin can replace one of ours.

use outrigger_tests::{Host, HostOptions, all_groups, built, groups};
use serde_json::json;

use crate::users::ALICE;

fn with_config(name: &str) -> Host {
    Host::start_with(HostOptions { config: Some(groups(name)), ..HostOptions::default() })
}

#[track_caller]
fn check_methods(host: &Host, there: &[&str], absent: &[&str]) {
    let mut client = host.client();
    let help = client.call("help", json!([]));
    let help = help.as_str().unwrap();
    let listed = |method: &str| help.lines().any(|line| line.split(' ').next() == Some(method));
    for method in there {
        assert!(listed(method), "{method} is not in help");
        let answer = client.try_call(method, json!([]));
        assert!(answer.err().is_none_or(|error| error.code != -32601), "{method} is not found");
    }
    for method in absent {
        assert!(!listed(method), "{method} is in help");
        let error = client.try_call(method, json!([])).unwrap_err();
        assert_eq!((error.code, error.message.as_str(), error.status), (-32601, "Method not found", 404), "{method}");
    }
}

const SIGNING: [&str; 2] = ["signrawtransactionwithkey", "signrawtransactionwithwallet"];
const IMPORT: [&str; 2] = ["importmulti", "importdescriptors"];
const MINING: [&str; 3] = ["getblocktemplate", "submitblock", "generatetoaddress"];
const HISTORY: [&str; 2] = ["gettransaction", "listsinceblock"];
const CHAIN: [&str; 2] = ["getblockcount", "getblock"];
const WALLET: [&str; 2] = ["createwallet", "sendtoaddress"];

/// Checks that all groups answer on a host with the default configuration.
pub fn check_all(host: &Host) {
    check_methods(host, &[&SIGNING[..], &IMPORT, &MINING, &HISTORY, &CHAIN, &WALLET].concat(), &[]);
}

#[test]
fn groups_of_mining_only_answer_mining_and_chain_alone() {
    let host = with_config("mining-only.toml");
    check_methods(&host, &[&MINING[..], &CHAIN].concat(), &[&SIGNING[..], &IMPORT, &HISTORY, &WALLET].concat());
    let template = host.client().call("getblocktemplate", json!([{"rules": ["segwit"]}]));
    assert_eq!(template["height"], json!(1));
}

#[test]
fn groups_of_signing_only_answer_signing_alone() {
    let host = with_config("signing-only.toml");
    check_methods(&host, &SIGNING, &[&IMPORT[..], &MINING, &HISTORY, &CHAIN, &WALLET].concat());
}

#[test]
fn groups_of_read_only_answer_history_and_chain_alone() {
    let host = with_config("read-only.toml");
    check_methods(&host, &[&HISTORY[..], &CHAIN].concat(), &[&SIGNING[..], &IMPORT, &MINING, &WALLET].concat());
}

#[test]
fn groups_that_are_disabled_are_gone() {
    let text = all_groups().replace("file = \"signing\"", "file = \"signing\"\nenabled = false");
    let host = Host::start_with(HostOptions::configured(&text));
    check_methods(&host, &[&IMPORT[..], &MINING, &HISTORY, &CHAIN, &WALLET].concat(), &SIGNING);
}

#[test]
fn users_lists_may_name_all_methods_of_groups_that_are_off() {
    let groups = ["chain", "history", "import", "mining", "psbt", "signing", "wallet", "webhooks"];
    let methods: Vec<String> = groups
        .iter()
        .flat_map(|group| {
            let mut inspect = std::process::Command::new(&built().binary);
            inspect.args(["plugin", "inspect"]).arg(built().library(&format!("outrigger_{group}")));
            let text = String::from_utf8(inspect.output().unwrap().stdout).unwrap();
            let (_, methods) = text.split_once("\nmethods\n").unwrap();
            let lines = methods.lines().take_while(|line| line.starts_with("  "));
            lines.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect::<Vec<_>>()
        })
        .collect();
    assert!(methods.len() > 140, "{methods:?}");
    let user = format!("[[rpc.users]]\nrpcauth = \"{ALICE}\"\nmethods = {methods:?}\n");
    drop(Host::start_with(HostOptions::configured(&user)));
    Host::refused(&HostOptions::configured(&user.replace("\"getblock\"", "\"getblok\"")));
}

/// A configuration with the chain, Acme's mining plugin, and our mining group if `ours`.
pub fn acme_config(ours: bool, rest: &str) -> HostOptions {
    let mut text = String::from("[[plugins]]\nfile = \"chain\"\ngrants = [\"chain/1\", \"mempool/1\", \"log/1\"]\n");
    if ours {
        text += "[[plugins]]\nfile = \"mining\"\ngrants = [\"chain/1\", \"mempool/1\", \"events/1\", \"log/1\"]\n";
    }
    let rest = format!("grants = [\"chain/1\", \"mempool/1\"]\n{rest}");
    HostOptions::with_plugin(text.trim_end(), built().library("outrigger_acme_mining"), &rest)
}

#[test]
fn groups_can_be_replaced_by_a_third_partys_plugin() {
    let host = Host::start_with(acme_config(false, "[plugins.options]\nmin_feerate = 9000\n"));
    let mut client = host.client();
    assert_eq!(client.call("getblocktemplate", json!([{"rules": ["segwit"]}]))["acme"], json!(true));
    assert_eq!(client.call("getacmepolicy", json!([])), json!({"min_feerate": 9000}));
    assert_eq!(client.refused("submitblock", json!(["00"])).0, -32601);
}

#[test]
fn routes_replace_a_single_method_of_a_group_and_stopplugin_gives_it_to_no_other_plugin() {
    let host = Host::start_with(acme_config(true, "[routes]\ngetblocktemplate = \"acme-mining\"\n"));
    let mut client = host.client();
    assert_eq!(client.call("getblocktemplate", json!([]))["acme"], json!(true));
    assert_eq!(client.refused("submitblock", json!(["00"])), (-22, "Block decode failed".into()));
    let acme = client.plugin("acme-mining");
    assert_eq!((&acme["version"], &acme["methods"]), (&json!("2.1.0"), &json!(["getacmepolicy", "getblocktemplate"])));
    client.call("stopplugin", json!(["acme-mining"]));
    assert_eq!(client.refused("getblocktemplate", json!([{"rules": ["segwit"]}])).0, -32603);
    assert_eq!(client.call("getmininginfo", json!([]))["blocks"], json!(0));
    client.call("startplugin", json!(["acme-mining"]));
    assert_eq!(client.call("getblocktemplate", json!([]))["acme"], json!(true));
}

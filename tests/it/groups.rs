//! The configuration switches groups on and off, and a third party's plugin can replace one of ours.

use outrigger_tests::{Host, HostOptions, all_groups, built, groups};
use serde_json::json;

use crate::users::ALICE;

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

/// Methods of each group.
const GROUPS: [(&str, &[&str]); 6] = [
    ("signing", &["signrawtransactionwithkey", "signrawtransactionwithwallet"]),
    ("import", &["importmulti", "importdescriptors"]),
    ("mining", &["getblocktemplate", "submitblock", "generatetoaddress"]),
    ("history", &["gettransaction", "listsinceblock"]),
    ("chain", &["getblockcount", "getblock"]),
    ("wallet", &["createwallet", "sendtoaddress"]),
];

/// Checks that the groups for which `runs` holds answer on a host, and that the others are absent.
fn check_groups(host: &Host, runs: impl Fn(&str) -> bool) {
    let methods = |running: bool| -> Vec<&str> {
        GROUPS.iter().filter(|(group, _)| runs(group) == running).flat_map(|(_, methods)| *methods).copied().collect()
    };
    check_methods(host, &methods(true), &methods(false));
}

/// Checks that all groups answer on a host with the default configuration.
pub fn check_all(host: &Host) {
    check_groups(host, |_| true);
}

#[test]
fn groups_of_a_shipped_configuration_answer_and_the_others_are_gone() {
    for (name, running) in [
        ("mining-only.toml", &["mining", "chain"][..]),
        ("signing-only.toml", &["signing"]),
        ("read-only.toml", &["history", "chain"]),
    ] {
        let host = Host::start_with(HostOptions { config: Some(groups(name)), ..HostOptions::default() });
        check_groups(&host, |group| running.contains(&group));
        if running.contains(&"mining") {
            let template = host.client().call("getblocktemplate", json!([{"rules": ["segwit"]}]));
            assert_eq!(template["height"], json!(1));
        }
    }
    let text = all_groups().replace("file = \"signing\"", "file = \"signing\"\nenabled = false");
    check_groups(&Host::start_with(HostOptions::configured(&text)), |group| group != "signing");
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

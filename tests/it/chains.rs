//! Chains of calls: wrappers around methods of plugins, the host and the node, and plugins that call the next plugin of a route.

use outrigger_tests::{Client, ELSEWHERE, Host, HostOptions, NOBODY, all_groups, built, plugin_section, wait_until};
use serde_json::{Value, json};

use crate::operator::logged_with;
use crate::policies::{WALLET_ERROR, fund};
use crate::users::ALICE;

/// The section of the plugin `chained` with these options and grants.
fn chained(options: &str, grants: &str) -> String {
    // Other calls are awaited, however busy the machine is.
    let deadline =
        if ["hang", "late"].iter().any(|word| options.contains(word)) { "deadline_seconds = 2\n" } else { "" };
    let rest = format!("{deadline}grants = [{grants}]\noptions = {{ {options} }}\n");
    plugin_section("outrigger_chained", &rest)
}

/// The section of the plugin `gatekeeper`, which also has a method of the chain group.
fn gatekeeper() -> String {
    plugin_section("outrigger_gatekeeper", "grants = [\"rpc/1\"]\n")
}

fn start(options: &str, grants: &str, more: &str) -> Host {
    Host::start_with(HostOptions::with_groups(&format!("{}{more}", chained(options, grants))))
}

const REFUSED: (i64, &str) = (-77, "Refused on the way");

#[track_caller]
fn is_refused(client: &mut Client, method: &str, params: Value) {
    let (code, message) = client.refused(method, params);
    assert_eq!((code, message.as_str()), REFUSED, "{method}");
}

#[test]
fn wrappers_pass_or_refuse_calls_of_every_dialect_except_the_cookie_users_management() {
    let options = "refuse = [\"uptime\", \"getbestblockhash\", \"listplugins\", \"stop\"], change = [\"getblockhash\"]";
    let user = format!("[[rpc.users]]\nrpcauth = \"{ALICE}\"\n");
    let host = start(options, "", &(user + "[routes]\nwrap = [\"chained\"]\n"));
    let mut client = host.client();
    see_calls_of_plugins_and_of_the_host_by_position(&mut client);
    let calls =
        ["getbestblockhash", "getdifficulty", "getbestblockhash"].map(|method| json!({"method": method, "id": method}));
    let answers: Value = serde_json::from_str(&client.post(&json!(calls).to_string()).body).unwrap();
    for (answer, refused) in answers.as_array().unwrap().iter().zip([true, false, true]) {
        assert_eq!(answer["error"]["code"] == json!(-77), refused, "{answer}");
    }
    for version in ["1.0", "1.1", "2.0"] {
        let call = json!({"jsonrpc": version, "method": "getbestblockhash", "params": [], "id": 1});
        assert!(client.post(&call.to_string()).body.contains("Refused on the way"), "{version}");
    }
    let mut socket = client.websocket();
    assert_eq!(socket.call("getbestblockhash", json!([])), Err(-77));
    // The wrapper is a keys provider, whose functions only the host may call.
    let query = json!([{"wallet": "w", "keys": []}]);
    for method in ["keys-provider/1.available", "keys-provider/1.sign", "keys-provider/1.message", "a/b"] {
        assert_eq!(client.refused(method, query.clone()), (-32601, "Method not found".to_owned()), "{method}");
    }
    let batch = json!([{"id": 1, "method": "keys-provider/1.available", "params": query}]).to_string();
    assert!(client.post(&batch).body.contains("-32601"));
    is_refused(&mut Client::new(host.address, "alice:pass:word"), "listplugins", json!([]));
    client.call("listplugins", json!([]));
    client.call("stop", json!([]));
}

fn see_calls_of_plugins_and_of_the_host_by_position(client: &mut Client) {
    is_refused(client, "uptime", json!([]));
    is_refused(client, "getbestblockhash", json!([]));
    let hashes = client.call("generatetoaddress", json!([2, "bcrt1qs758ursh4q9z627kt3pp5yysm78ddny6txaqgw"]));
    // The wrapper changes the height to 1.
    assert_eq!(client.call("getblockhash", json!([2])), hashes[0]);
    assert_eq!(client.call("getblockhash", json!({"height": 2})), hashes[0]);
    client.call("getblock", json!({"verbosity": 0, "blockhash": hashes[1]}));
    // The host refuses unknown names and wrong types before it asks the wrapper.
    assert_eq!(client.refused("getblock", json!({"hash": "00"})).0, -8);
    assert_eq!(client.refused("getblock", json!([1])).0, -3);
    assert_eq!(client.refused("nosuchmethod", json!({"a": 1})), (-32601, "Method not found".to_owned()));
    let seen = client.call("listseen", json!([]));
    let seen: Vec<&str> = seen.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let expected = [
        "uptime []",
        "getbestblockhash []",
        "generatetoaddress [2,\"bcrt1qs758ursh4q9z627kt3pp5yysm78ddny6txaqgw\"]",
        "getblockhash [2]",
        "getblockhash [2]",
        &format!("getblock [{},0]", hashes[1]),
        "nosuchmethod [] {\"a\":1}",
    ];
    assert_eq!(seen, expected);
    // The last plugin of the route defines parameter names and help.
    assert!(client.call("help", json!(["getblockhash"])).as_str().unwrap().starts_with("getblockhash height"));
}

#[test]
fn next_asks_the_next_plugin_and_the_wrapper_may_change_its_answer() {
    // A single name replaces the plugin that has the method, and that plugin comes next.
    let routes = "[routes]\nwrap = [\"chained\"]\ngetblockcount = \"gatekeeper\"\n";
    let asking = chained("ask = [\"getblockhash\", \"uptime\", \"getbestblockhash\"]", "\"rpc/1\"");
    let options = HostOptions::with_groups(&(asking + &gatekeeper() + routes));
    options.change("threads = 8 ", "threads = 2 ");
    let host = Host::start_with(options);
    std::thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| {
                let mut client = host.client();
                for _ in 0..4 {
                    assert_eq!(client.call("getblockcount", json!([])), json!(1));
                    assert!(client.call("getbestblockhash", json!([]))["next"].is_string());
                }
            });
        }
    });
    let mut client = host.client();
    assert_eq!(client.call("getblockcount", json!([])), json!(1), "the block count of the chain, and one");
    let genesis = client.call("getblockhash", json!([0]));
    assert_eq!(genesis["next"].as_str().unwrap().len(), 64);
    assert!(client.call("uptime", json!([]))["next"].is_u64());
    // The client gets the next plugin's error.
    assert_eq!(client.refused("getblockhash", json!([7])), (-8, "Block height out of range".to_owned()));
    // The route has no next plugin.
    assert_eq!(client.refused("asknext", json!([])), (-32601, "Method not found".to_owned()));
    let own = client.plugin("gatekeeper");
    assert_eq!(own["methods"], json!(["getblockcount"]));
    // The host refuses the call if a plugin of the route does not run, and skips none.
    client.call("stopplugin", json!(["gatekeeper"]));
    let expected = "The plugin 'gatekeeper', which this call goes through, does not run";
    assert_eq!(client.refused("getblockcount", json!([])), (-32603, expected.to_owned()));
}

#[test]
fn wrappers_see_the_calls_of_other_plugins_and_not_their_own() {
    let grant = "{ service = \"rpc/1\", methods = [\"getdifficulty\", \"callmethod\", \"listseen\", \"whocalls\"] }";
    let grants = "[{ service = \"rpc/1\", methods = [\"getblocktemplate\", \"getbestblockhash\", \"getdifficulty\"] }]";
    let rest = format!("grants = {grants}\n[routes]\nwrap = [\"chained\"]\ngetblocktemplate = \"mining\"\n");
    let more = plugin_section("outrigger_node_policy", &rest);
    let host = start("again = [\"getdifficulty\"], refuse = [\"getbestblockhash\"]", grant, &more);
    let mut client = host.client();
    assert!(client.call("getdifficulty", json!([])).is_number());
    // A plugin does not receive its own calls, and no other plugin has this method.
    assert_eq!(client.refused("callmethod", json!(["whocalls", [], true])).0, -32601);
    assert!(client.call("asknode", json!(["getdifficulty"])).is_number());
    is_refused(&mut client, "asknode", json!(["getbestblockhash"]));
}

#[test]
fn a_call_that_a_plugin_makes_outside_of_calls_ends_when_the_plugin_is_told_to_end() {
    let methods = "{ service = \"rpc/1\", methods = [\"getblocktemplate\", \"waitfornewblock\"] }";
    for isolated in [false, true] {
        let rest = format!(
            "isolated = {isolated}\nsandbox = \"best-effort\"\nreload = \"after\"\ndeadline_seconds = 5\ngrants = [{methods}]\n"
        );
        let options = HostOptions::with_groups(&plugin_section("outrigger_node_policy", &rest));
        let (host, log) = logged_with(options);
        let mut client = host.client();
        client.call("watchblocks", json!([]));
        let waits = |told: &Value| told["active_commands"].to_string().contains("waitfornewblock");
        wait_until("the plugin waits for a block", || waits(&client.call("getrpcinfo", json!([]))));
        client.call("reloadplugin", json!(["node-policy"]));
        let log = log();
        assert!(!log.contains(" ERROR "), "{log}");
        assert!(!waits(&client.call("getrpcinfo", json!([]))));
    }
}

#[test]
fn calls_that_go_on_without_their_wrapper_are_logged_with_the_reason_and_rarely() {
    let wrap = "[routes]\nwrap = [{ plugin = \"chained\", on_failure = \"pass\" }]\n";
    let (host, log) = logged_with(HostOptions::with_groups(&(chained("", "") + wrap)));
    let mut client = host.client();
    client.call("stopplugin", json!(["chained"]));
    for _ in 0..50 {
        client.call("getblockcount", json!([]));
    }
    let log = log();
    let told: Vec<&str> = log.lines().filter(|line| line.contains("a call goes on without its wrapper")).collect();
    assert!(!told.is_empty() && told.len() < 50, "{log}");
    assert!(told[0].contains("reason=\"The plugin 'chained', which this call goes through, does not run\""), "{log}");
}

#[test]
fn plugins_call_methods_with_the_callers_rights_or_their_own() {
    let grant = "{ service = \"rpc/1\", methods = [\"getblockcount\", \"createwallet\", \"getbestblockhash\"] }, \"wallet-read/1\"";
    let user =
        format!("[[rpc.users]]\nrpcauth = \"{ALICE}\"\nmethods = [\"callmethod\", \"getblockcount\", \"whocalls\"]\n");
    let audit = tempfile::NamedTempFile::new().unwrap();
    let options = HostOptions::with_groups(&(chained("", grant) + &user + "[routes]\n"));
    options.change("[audit]\n", &format!("[audit]\nfile = {:?}\n", audit.path()));
    let host = Host::start_with(options);
    let mut alice = Client::new(host.address, "alice:pass:word");
    assert_eq!(alice.call("whocalls", json!([])), json!({"user": "alice", "wallet": null, "through": []}));
    assert_eq!(alice.call("callmethod", json!(["getblockcount", [], false])), json!(0));
    assert_eq!(alice.call("callmethod", json!(["getblockcount", [], true])), json!(0));
    // The plugin may call the method; the user may not.
    let (_, message) = alice.refused("callmethod", json!(["getbestblockhash", [], false]));
    assert!(message.contains("The user may not call the method 'getbestblockhash'"), "{message}");
    assert_eq!(alice.call("callmethod", json!(["getbestblockhash", [], true])).as_str().unwrap().len(), 64);
    // The plugin lacks the grant, so no user can make it call the method.
    let (_, message) = host.client().refused("callmethod", json!(["getblockhash", [0], false]));
    assert!(message.contains("'getblockhash'") && message.contains("grant of rpc/1"), "{message}");
    // The audit log names the plugin for calls with the plugin's own rights.
    alice.call("callmethod", json!(["createwallet", ["made"], true]));
    let lines = std::fs::read_to_string(audit.path()).unwrap();
    let line = lines.lines().find(|line| line.contains("createwallet")).unwrap_or_else(|| panic!("{lines}"));
    assert!(line.contains("plugin:chained"), "{line}");
    // The client gets the method's errors.
    assert_eq!(alice.refused("callmethod", json!(["getblockcount", [1], true])).0, -1);
}

#[test]
fn a_failing_wrapper_refuses_or_passes_the_call_as_its_route_says() {
    for (on_failure, passes) in [("refuse", false), ("pass", true)] {
        let methods = "[\"get*\", \"uptime\", \"generatetoaddress\"]";
        let wrapper = format!("plugin = \"chained\", methods = {methods}, on_failure = \"{on_failure}\"");
        let wrap = format!("[routes]\nwrap = [{{ {wrapper} }}]\n");
        // Without a grant of rpc/1, the wrapper cannot ask the next plugin before it fails.
        let options = "hang = [\"getdifficulty\"], panic = [\"uptime\"], ask_and_fail = [\"generatetoaddress\"]";
        let host = start(options, "", &wrap);
        let mut client = host.client();
        for (method, params) in
            [("getdifficulty", json!([])), ("generatetoaddress", json!([1, NOBODY])), ("uptime", json!([]))]
        {
            let answer = client.try_call(method, params);
            match (passes, answer) {
                (true, answer) => assert!(answer.is_ok(), "{method}: {answer:?}"),
                (false, answer) => assert_eq!(answer.unwrap_err().code, -32603, "{method}"),
            }
        }
        // A stopped plugin counts as failed. The cookie user's management calls bypass it.
        client.call("stopplugin", json!(["chained"]));
        let answer = client.try_call("getbestblockhash", json!([]));
        match answer {
            Ok(_) => assert!(passes),
            Err(error) => {
                let expected = "The plugin 'chained', which this call goes through, does not run";
                assert_eq!((passes, error.code, error.message.as_str()), (false, -32603, expected));
            }
        }
        // Methods outside the route are unaffected.
        client.call("help", json!([]));
        client.call("startplugin", json!(["chained"]));
        assert_eq!(client.call("getblockcount", json!([])), json!(u32::from(passes)));
    }
}

#[test]
fn invalid_routes_are_refused_with_the_reason() {
    for (routes, expected) in [
        ("wrap = [\"other\"]", "no such plugin is enabled"),
        ("wrap = [{ plugin = \"chained\", on_failure = \"ignore\" }]", "the id of a plugin, or a table"),
        ("getblockcount = []", "the route of getblockcount names no plugin"),
        ("getblockcount = [\"chain\", \"chain\"]", "a plugin can be in a route once"),
        ("wrap = [\"chained\", \"chained\"]", "an earlier entry puts 'chained' before every method"),
        ("uptime = \"chained\"", "that method is reserved for the host"),
        ("wrap = [{ plugin = \"chained\", methods = [\"get*info\"] }]", "a '*' stands at the end"),
        ("wrap = [\"gatekeeper\"]", "that plugin is put before the method and has it"),
    ] {
        let of_count = if routes.starts_with("getblockcount") { "" } else { "getblockcount = \"chain\"\n" };
        let text = format!("{}{}[routes]\n{routes}\n{of_count}", chained("", ""), gatekeeper());
        let error = Host::refused(&HostOptions::with_groups(&text));
        assert!(error.contains(expected), "{routes}: {error}");
    }
}

#[test]
fn an_observer_sees_finished_calls_and_is_in_no_chain() {
    let plugin = chained("ask = [\"getbestblockhash\"]", "\"rpc/1\"")
        + &plugin_section("outrigger_observer", "grants = [\"log/1\"]\nlog = \"debug\"\n");
    let wrap = "[routes]\nwrap = [{ plugin = \"chained\", methods = [\"getbestblockhash\"] }, \
                { plugin = \"observer\", methods = [\"get*\", \"uptime\", \"createwallet\"] }]\n";
    let (host, log) = logged_with(HostOptions::with_groups(&(plugin + wrap)));
    let mut client = host.client();
    client.call("uptime", json!([]));
    client.refused("getblockhash", json!([7]));
    client.call("help", json!([]));
    // The wrapper's `next` is no further call.
    client.call("getbestblockhash", json!([]));
    client.create_wallet("w", json!({})).call("getbalance", json!([]));
    let expected = json!([
        ["uptime", "__cookie__", null, 0],
        ["getblockhash", "__cookie__", null, -8],
        ["getbestblockhash", "__cookie__", null, 0],
        ["createwallet", "__cookie__", null, 0],
        ["getbalance", "__cookie__", "w", 0],
    ]);
    wait_until("the observer heard of all calls", || client.call("listheard", json!([])) == expected);
    client.call("stopplugin", json!(["observer"]));
    client.call("uptime", json!([]));
    // A start of a plugin applies the changed section.
    host.change("\"createwallet\"]", "\"stop\"]");
    client.call("startplugin", json!(["observer"]));
    assert!(log().contains("section [routes] has changed"));
    // The host logs at level info; the plugin's lines have a separate level.
    let text = log();
    assert!(text.contains("DEBUG outrigger_plugin: ready to observe plugin=\"observer\""), "{text}");
}

#[test]
fn a_host_without_third_parties_starts_the_bundled_groups_alone() {
    // A group by its path, a plugin of others, which judges and signs, and routes to a plugin that is not there.
    let groups = all_groups().replace("file = \"chain\"", &format!("file = {:?}", built().library("outrigger_chain")));
    let judge =
        plugin_section("outrigger_judge", "grants = []\n[[wallet.policies]]\nplugin = \"judge\"\nwallets = [\"*\"]\n");
    let more = "[[plugins]]\nfile = \"/nonexistent.so\"\n[routes]\n\
                wrap = [\"acme-firewall\"]\ngetblockcount = [\"acme\", \"chain\"]\n";
    let options = HostOptions::configured(&format!("{groups}\n{judge}{more}")).and(&["wallet.signer=judge"]);
    let options = HostOptions { program: Some(built().binary.clone()), ..options };
    assert_eq!(Host::check(&options).status.code(), Some(2));
    let options = HostOptions { arguments: vec!["--without-third-parties"], ..options };
    let output = Host::check(&options);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let host = Host::start_with(HostOptions { log: Some(log.clone()), ..options.clone() });
    assert_eq!(host.client().call("getblockcount", json!([])), json!(0));
    let mut wallet = host.new_wallet("w");
    fund(&mut wallet, 1);
    let (code, message) = wallet.refused("sendtoaddress", json!([ELSEWHERE, 1]));
    assert!(code == WALLET_ERROR && message.contains("it does not run"), "{message}");
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.contains("wallet.policies.plugin: the plugin is left out"), "{log}");
    // A library of others with the name of a group's is none of the installation's.
    std::fs::copy(built().library("outrigger_gatekeeper"), folder.path().join("liboutrigger_history.so")).unwrap();
    let config = "[[plugins]]\nfile = \"history\"\ngrants = [\"rpc/1\"]\n";
    let foreign = HostOptions { plugin_dirs: vec![folder.path().to_owned()], ..HostOptions::configured(config) };
    let plugins = |options: &HostOptions| String::from_utf8(Host::check(options).stdout).unwrap();
    assert!(plugins(&foreign).contains("valid: 1 plugins"));
    let foreign = HostOptions { arguments: options.arguments, ..foreign };
    assert!(plugins(&foreign).contains("valid: 0 plugins"));
}

#[test]
fn template_filter_asks_the_mining_group_and_removes_low_fee_transactions() {
    let rest = "grants = [\"rpc/1\"]\noptions = { min_feerate = 100000000 }\n\
                [routes]\ngetblocktemplate = [\"template-filter\", \"mining\"]\n";
    let host = Host::start_with(HostOptions::with_groups(&plugin_section("outrigger_template_filter", rest)));
    let mut wallet = host.new_wallet("w");
    let address = wallet.mine(101);
    wallet.call("sendtoaddress", json!([address, 1]));
    let template = wallet.call("getblocktemplate", json!([{"rules": ["segwit"]}]));
    assert_eq!((&template["transactions"], &template["coinbasevalue"]), (&json!([]), &json!(5_000_000_000_u64)));
    assert!(template.get("default_witness_commitment").is_none(), "{template}");
    // Errors and proposal verdicts come from the mining group.
    let (code, message) = wallet.refused("getblocktemplate", json!([{}]));
    assert!(code == -8 && message.contains("segwit"), "{message}");
}

#[test]
fn rpc_firewall_limits_methods_parameters_and_calls_of_a_user() {
    let rule = "{ user = \"alice\", methods = [\"get*\"], calls_per_minute = 3, max_param_bytes = 80 }";
    let rest = format!(
        "grants = [{{ service = \"rpc/1\", methods = [\"getpeerinfo\", \"getblockfrompeer\"] }}]\n\
         options = {{ rules = [{rule}] }}\n[routes]\nwrap = [\"rpc-firewall\"]\n"
    );
    let user = format!("[[rpc.users]]\nrpcauth = \"{ALICE}\"\n");
    let host = Host::start_with(HostOptions::with_groups(&(user + &plugin_section("outrigger_rpc_firewall", &rest))));
    let mut alice = Client::new(host.address, "alice:pass:word");
    assert_eq!(alice.refused("stop", json!([])).1, "The firewall does not allow this method");
    let hash = alice.call("getbestblockhash", json!([]));
    assert!(alice.call("getblock", json!([hash, 0])).is_string());
    let long = alice.refused("getblockhash", json!(["1".repeat(100)]));
    assert_eq!(long.1.lines().next().unwrap(), "Wrong type passed:");
    let long = alice.refused("getdescriptorinfo", json!(["1".repeat(100)]));
    assert_eq!(long, (-8, "The firewall does not allow parameters of this length".to_owned()));
    alice.call("getblockcount", json!([]));
    assert_eq!(alice.refused("getblockcount", json!([])).1, "The firewall does not allow so many calls a minute");
    for _ in 0..5 {
        host.client().call("getblockcount", json!([]));
    }
    assert_eq!(host.client().call("getfirewallinfo", json!([])), json!({"alice": 4}));
}

#[test]
fn a_wrapper_that_fails_after_asking_the_next_plugin_causes_no_second_call() {
    let wrap = "[routes]\nwrap = [{ plugin = \"chained\", on_failure = \"pass\" }]\n";
    let host = start("ask_and_fail = [\"generatetoaddress\"]", "\"rpc/1\"", wrap);
    let mut client = host.client();
    assert!(client.try_call("generatetoaddress", json!([1, NOBODY])).is_err());
    assert_eq!(client.call("getblockcount", json!([])), json!(1));

    // At the deadline, the call goes on without the wrapper, which asks too late.
    let options = chained("ask_late = [\"generatetoaddress\"]", "\"rpc/1\"") + wrap;
    let (host, log) = logged_with(HostOptions::with_groups(&options));
    let mut client = host.client();
    client.call("generatetoaddress", json!([1, NOBODY]));
    wait_until("the wrapper's code has returned", || client.plugin("chained")["stuck"] == json!(0));
    assert_eq!(client.call("getblockcount", json!([])), json!(1));
    let text = log();
    let is_told = |line: &str| line.contains("an answer came late") && line.contains("method=\"generatetoaddress\"");
    assert!(text.lines().any(is_told), "{text}");
}

#[test]
fn a_wrapper_of_a_long_running_method_has_its_deadline_until_it_asks_the_next_plugin() {
    for (on_failure, passes) in [("refuse", false), ("pass", true)] {
        let wrap = format!("[routes]\nwrap = [{{ plugin = \"chained\", on_failure = \"{on_failure}\" }}]\n");
        let host = start("hang = [\"waitforblockheight\"], ask = [\"waitfornewblock\"]", "\"rpc/1\"", &wrap);
        let mut client = host.client();
        let waiting = client.begin_call("waitfornewblock", json!([]));
        wait_until("a call waits", || client.plugin("chained")["waiting"] == json!(1));
        match client.try_call("waitforblockheight", json!([0])) {
            Ok(_) => assert!(passes),
            Err(error) => {
                assert_eq!((passes, &*error.message), (false, "waitforblockheight was not answered within 2 s"))
            }
        }
        // The deadline of this call has passed as well.
        client.call("generatetoaddress", json!([1, NOBODY]));
        assert_eq!(waiting.answer()["result"]["next"]["height"], json!(1));
    }
}

#[test]
fn long_running_calls_in_an_isolated_wrapper_are_bounded_and_leave_places_to_others() {
    let wrap = "wrap = [{ plugin = \"chained\", methods = [\"waitfor*\", \"getblockcount\"] }]\n";
    let options = "options = { ask = [\"waitfornewblock\", \"getblockcount\"] }\n";
    let place = "isolated = true\nsandbox = \"best-effort\"\ndeadline_seconds = 5\ngrants = [\"rpc/1\"]\n";
    let rest = format!("{place}{options}[routes]\n{wrap}");
    let host = Host::start_with(HostOptions::with_groups(&plugin_section("outrigger_chained", &rest)));
    let mut client = host.client();
    let waiting: Vec<_> = (0..128).map(|_| client.begin_call("waitfornewblock", json!([]))).collect();
    wait_until("all calls wait", || client.plugin("chained")["waiting"] == json!(128));
    assert_eq!(client.call("getblockcount", json!([])), json!({"next": 0}));
    let (_, message) = client.refused("waitfornewblock", json!([]));
    assert!(message.starts_with("The isolated plugin 'chained' has 128 long-running calls"), "{message}");
    client.call("generatetoaddress", json!([1, NOBODY]));
    for call in waiting {
        assert_eq!(call.answer()["result"]["next"]["height"], json!(1));
    }
}

#[test]
fn calls_that_wait_for_a_wrappers_successor_find_it_at_another_place_of_the_chain() {
    let rest = "reload = \"after\"\ngrants = [\"rpc/1\"]\noptions = { ask = [\"waitfornewblock\"] }\n";
    let routes = "[routes]\nwrap = [{ plugin = \"chained\", methods = [\"getblockhash\", \"waitfornewblock\"] }]\n";
    let plugins = plugin_section("outrigger_chained", rest) + &gatekeeper();
    let host = Host::start_with(HostOptions::with_groups(&(plugins + routes + "getblockcount = \"chain\"\n")));
    let mut client = host.client();
    let _holding = client.begin_call("waitfornewblock", json!([]));
    wait_until("the old instance has a call", || client.plugin("chained")["waiting"] == json!(1));
    host.change("wrap = [", "wrap = [{ plugin = \"gatekeeper\", methods = [\"getblockhash\"] }, ");
    let reload = client.begin_call("reloadplugin", json!(["chained"]));
    for _ in 0..20 {
        client.call("uptime", json!([]));
    }
    let waiting: Vec<_> = (0..4).map(|_| client.begin_call("getblockhash", json!([0]))).collect();
    client.call("generatetoaddress", json!([1, NOBODY]));
    assert_eq!(reload.answer()["error"], Value::Null);
    for call in waiting {
        let answer = call.answer();
        assert!(answer["result"].is_string(), "{answer}");
    }
}

#[test]
fn calls_of_one_wallet_through_an_isolated_wrapper_do_not_wait_for_each_other() {
    let rest = "isolated = true\nsandbox = \"best-effort\"\ngrants = [\"rpc/1\"]\noptions = { ask = [\"getnewaddress\"] }\n\
                [routes]\nwrap = [{ plugin = \"chained\", methods = [\"getnewaddress\"] }]\n";
    let host = Host::start_with(HostOptions::with_groups(&plugin_section("outrigger_chained", rest)));
    let wallet = host.new_wallet("w");
    let calls: Vec<_> = (0..180).map(|_| wallet.begin_call("getnewaddress", json!([]))).collect();
    for call in calls {
        let answer = call.answer();
        assert!(answer["result"]["next"].is_string(), "{answer}");
    }
}

#[test]
fn a_plugin_reaches_by_calls_only_the_wallets_of_its_grants() {
    let methods = "{ service = \"rpc/1\", methods = [\"getbalance\", \"getblockcount\", \"createwallet\"] }";
    let ask = json!(["getbalance", [], true]);
    let audit = tempfile::NamedTempFile::new().unwrap();
    let options = HostOptions::with_groups(&chained("", methods));
    options.change("[audit]\n", &format!("[audit]\nfile = {:?}\n", audit.path()));
    let host = Host::start_with(options);
    let mut wallet = host.new_wallet("cold");
    assert_eq!(wallet.refused("callmethod", ask.clone()).0, -18);
    assert_eq!(host.client().refused("callmethod", ask.clone()).0, -18);
    // Methods without a wallet ignore the named wallet, and the caller's rights do not depend on the grants.
    assert_eq!(wallet.call("callmethod", json!(["getblockcount", [], true])), json!(0));
    assert_eq!(wallet.call("callmethod", json!(["getbalance", [], false])).to_string(), "0.00000000");
    let _ = host.client().try_call("callmethod", json!(["createwallet", ["made"], true]));
    let lines = std::fs::read_to_string(audit.path()).unwrap();
    let line = lines.lines().find(|line| line.contains("plugin:chained")).unwrap_or_else(|| panic!("{lines}"));
    assert_eq!(serde_json::from_str::<Value>(line).unwrap()["wallet"], Value::Null, "{line}");

    let host = start("", &format!("{methods}, {{ service = \"wallet-read/1\", wallets = [\"hot\"] }}"), "");
    let (mut hot, mut cold) = (host.new_wallet("hot"), host.new_wallet("cold"));
    assert_eq!(hot.call("callmethod", ask.clone()).to_string(), "0.00000000");
    assert_eq!(host.client().call("callmethod", ask.clone()).to_string(), "0.00000000");
    // The call names a wallet that the plugin may not use, so the plugin uses its granted wallet.
    assert_eq!(cold.call("callmethod", ask).to_string(), "0.00000000");
}

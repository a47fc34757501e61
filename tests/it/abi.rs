//! The ABI is stable: a C plugin can do everything a plugin can do, and a plugin built against an older or newer minor version
//! runs unless it needs a newer one than the host's.

use std::process::Command;

use outrigger_header::{FILE, header};
use outrigger_tests::{CPlugin, Client, Host, HostOptions, all_groups, built, c_plugin, c_sample, wait_for};
use serde_json::{Value, json};

const GRANTS: &str = "grants = [\"chain/1\", \"wallet-read/1\", \"log/1\"]\n";

/// A host with all groups and the plugin.
fn start(plugin: &CPlugin) -> Host {
    Host::start_with(plugin.options(&all_groups(), GRANTS))
}

fn minor(header: &str) -> u32 {
    let (_, rest) = header.split_once("#define OUTRIGGER_ABI_MINOR ").unwrap();
    rest.split_once('u').unwrap().0.parse().unwrap()
}

#[track_caller]
fn replaced(text: &str, old: &str, new: &str) -> String {
    assert_eq!(text.matches(old).count(), 1, "{old}");
    text.replace(old, new)
}

/// The header with an eight-byte field appended to a struct.
fn with_field(header: &str, name: &str, field: &str) -> String {
    let size = format!("OUTRIGGER_SIZE_IS({name}, ");
    let (_, rest) = header.split_once(&size).unwrap();
    let bytes = rest.split_once(')').unwrap().0;
    let larger = bytes.parse::<usize>().unwrap() + 8;
    let header = replaced(header, &format!("{size}{bytes})"), &format!("{size}{larger})"));
    replaced(&header, &format!("}} {name};\n"), &format!("    {field};\n}} {name};\n"))
}

/// The header of the next minor version, in which both tables have a further field.
fn next_minor_header() -> String {
    let header = with_field(&header(), "outrigger_plugin_t", "int32_t (*future)(void *instance)");
    let header = with_field(&header, "outrigger_host_t", "uint64_t future");
    let minor = minor(&header);
    let define = |minor: u32| format!("#define OUTRIGGER_ABI_MINOR {minor}u");
    replaced(&header, &define(minor), &define(minor + 1))
}

/// A fresh wallet with coinbases, which leaves the chain at height 3.
fn mine(host: &Host) -> Client {
    let mut wallet = host.new_wallet("w\"1");
    wallet.mine(3);
    wallet
}

/// Checks the methods, which work with every supported version.
fn check_methods(host: &Host) {
    let mut wallet = mine(host);
    let best = wallet.call("getbestblockhash", json!([]));
    assert_eq!(wallet.call("ctip", json!([])), json!({"height": 3, "hash": best}));
    let second = wallet.call("getblockhash", json!([2]));
    let header = wallet.call("getblockheader", json!([second, false]));
    let expected = json!({"height": 2, "header": header, "next": best});
    assert_eq!(wallet.call("cblockheader", json!([2])), expected);
    assert_eq!(wallet.call("cblockheader", json!([second])), expected);
    assert_eq!(wallet.call("cblockheader", json!([3]))["next"], Value::Null);
    let info = json!({"name": "w\"1", "height": 3, "transactions": 3, "locked": false});
    assert_eq!(wallet.call("cwalletinfo", json!([])), info);
    let block = wallet.call("getblock", json!([best]));
    let newest = json!({"txid": block["tx"][0], "coinbase": true, "received": 5_000_000_000_u64});
    let history = wallet.call("chistory", json!([2]));
    assert_eq!((history.as_array().unwrap().len(), &history[0]), (2, &newest));
}

/// Checks refusals on a chain without blocks and without a loaded wallet.
fn check_refusals(client: &mut Client) {
    for (method, params, code, message) in [
        ("cblockheader", json!([1.5]), -3, "Expected a whole number"),
        ("cblockheader", json!([null]), -3, "Expected a whole number"),
        ("cblockheader", json!([-1]), -8, "Number out of range"),
        ("cblockheader", json!([7]), -5, "Block not found"),
        ("cblockheader", json!(["00ff"]), -8, "Not a block hash"),
        ("cblockheader", json!(["00".repeat(32)]), -5, "Block not found"),
        ("chistory", json!([0]), -8, "Count out of range"),
        ("chistory", json!([101]), -8, "Count out of range"),
        ("chistory", json!(["1"]), -3, "Expected a whole number"),
        ("cfail", json!([-4711, "say \"no\" \u{1f600}\n"]), -4711, "say \"no\" \u{1f600}\n"),
        ("cfail", json!([0, "none"]), -3, "Expected an error code"),
        ("cfail", json!([-1, ""]), -3, "Expected a message"),
        (
            "cwalletinfo",
            json!([]),
            -18,
            "No wallet is loaded. Load a wallet using loadwallet or create a new one with createwallet. (Note: A default wallet is no longer automatically created)",
        ),
    ] {
        assert_eq!(client.refused(method, params.clone()), (code, message.to_owned()), "{method} {params}");
    }
    // The host checks the number of arguments against the manifest.
    assert_eq!(client.refused("cblockheader", json!([])).0, -1);
}

#[test]
fn c_plugin_answers_from_services_refuses_with_codes_and_cannot_exceed_its_grants() {
    let plugin = c_sample(&header(), &[]);
    let host = start(&plugin);
    let mut client = host.client();
    check_refusals(&mut client);
    check_methods(&host);
    // Restart the plugin with fewer grants.
    client.call("stopplugin", json!(["c-sample"]));
    host.change(GRANTS, "grants = [\"chain/1\", \"log/1\"]\n");
    client.call("startplugin", json!(["c-sample"]));
    let refusal = (-32603, "The plugin's grants lack wallet-read/1".to_owned());
    assert_eq!(client.refused("cwalletinfo", json!([])), refusal);
}

#[test]
fn c_plugin_acts_as_a_policy_through_json_messages() {
    let plugin = c_sample(&header(), &[]);
    let policy = "[[wallet.policies]]\nwallets = [\"*\"]\nplugin = \"c-sample\"\n";
    let host = Host::start_with(plugin.options(&all_groups(), &format!("{GRANTS}{policy}")));
    let mut wallet = mine(&host);
    let address = wallet.call("getnewaddress", json!(["", "legacy"]));
    wallet.call("signmessage", json!([address, "text"]));
    let refusal = (-4, "The policy 'c-sample' refuses: Keys stay here".to_owned());
    assert_eq!(wallet.refused("listdescriptors", json!([true])), refusal);
    let copy = tempfile::tempdir().unwrap();
    wallet.call("backupwallet", json!([copy.path().join("copy")]));
}

/// Waits until `calls` calls wait in the plugin; returns its `cevents` answer.
fn until_waiting(client: &mut Client, calls: u64) -> Value {
    wait_for(&format!("{calls} calls wait"), || {
        let events = client.call("cevents", json!([]));
        (events["waiting"] == json!(calls)).then_some(events)
    })
}

#[test]
fn c_plugin_answers_later_from_its_own_thread() {
    let plugin = c_sample(&header(), &[]);
    let mut host = start(&plugin);
    let mut wallet = mine(&host);
    assert_eq!(wallet.call("cwaitforheight", json!([3])), json!({"height": 3, "late": false}));
    let wait = |height: u32| host.client().begin_call("cwaitforheight", json!([height]));
    let (next, never) = (wait(4), wait(1000));
    until_waiting(&mut wallet, 2);
    wallet.mine(1);
    assert_eq!(next.answer()["result"], json!({"height": 4, "late": true}));
    let events = until_waiting(&mut wallet, 1);
    assert_eq!((&events["height"], &events["cancelled"]), (&json!(4), &json!(0)));
    assert!(events["heard"].as_u64().unwrap() >= 1);

    // A call is cancelled when its client disconnects.
    let leaving = host.client().post_and_stay(&json!({"method": "cwaitforheight", "params": [1000]}).to_string());
    until_waiting(&mut wallet, 2);
    drop(leaving);
    assert_eq!(until_waiting(&mut wallet, 1)["cancelled"], json!(1));

    // A stopped plugin answers its waiting calls and ends its thread, so it can start again.
    wallet.call("stopplugin", json!(["c-sample"]));
    assert_eq!(never.refused().1, "Shutting down");
    wallet.call("startplugin", json!(["c-sample"]));
    let never = wait(1000);
    until_waiting(&mut wallet, 1);

    // Waiting calls are also answered when the host stops.
    wallet.call("stop", json!([]));
    assert_eq!(never.refused(), (-9, "Shutting down".to_owned()));
    assert!(host.wait().success());
}

#[test]
fn c_plugin_writes_to_the_log_and_reads_its_options() {
    let plugin = c_sample(&header(), &[]);
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let rest = format!("{GRANTS}options = {{ most_transactions = 1 }}\n");
    let host = Host::start_with(HostOptions { log: Some(log.clone()), ..plugin.options(&all_groups(), &rest) });
    let mut wallet = mine(&host);
    assert_eq!(wallet.call("clog", json!(["a line from C"])), json!(true));
    assert_eq!(wallet.refused("clog", json!([5])), (-3, "Expected a text".into()));
    assert_eq!(wallet.refused("chistory", json!([2])), (-8, "Count out of range".into()));
    drop(host);
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.lines().any(|line| line.contains("a line from C") && line.contains("c-sample")), "{log}");

    let rest = format!("{GRANTS}options = {{ most_transactions = 0 }}\n");
    let error = Host::refused(&plugin.options("", &rest));
    let expected = "plugin 'c-sample' refused to start: most_transactions must be at least 1";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn c_plugin_built_against_an_older_minor_version_runs() {
    let minor = minor(&header());
    let own = format!("#define OUTRIGGER_ABI_MINOR {minor}u");
    let header = replaced(&header(), &own, "#define OUTRIGGER_ABI_MINOR 0u");
    let host = start(&c_sample(&header, &[]));
    check_methods(&host);
    let versions = json!({"built": "1.0", "host": format!("1.{minor}")});
    assert_eq!(host.client().call("cversions", json!([])), versions);
}

#[test]
fn c_plugin_built_against_a_newer_minor_version_runs_unless_it_needs_that_version() {
    let (header, own) = (next_minor_header(), minor(&header()));
    let plugin = c_sample(&header, &["SAMPLE_OF_THE_FUTURE", &format!("SAMPLE_MINOR_NEEDED={own}")]);
    let host = start(&plugin);
    check_methods(&host);
    let versions = host.client().call("cversions", json!([]));
    let (built, host) = (format!("1.{}", own + 1), format!("1.{own}"));
    assert_eq!(versions, json!({"built": built, "host": host, "wanted": true, "deadline": true, "future": false}));
}

#[test]
fn c_plugin_of_a_newer_abi_or_with_a_truncated_table_is_refused() {
    let own = minor(&header());
    let needed = format!("SAMPLE_MINOR_NEEDED={}", own + 1);
    let changed = |old: &str, new: &str| replaced(&header(), old, new);
    let major = changed("#define OUTRIGGER_ABI_MAJOR 1u", "#define OUTRIGGER_ABI_MAJOR 2u");
    let truncated = changed("OUTRIGGER_PLUGIN_MAGIC, sizeof(outrigger_plugin_t)", "OUTRIGGER_PLUGIN_MAGIC, 96");
    for (header, defines, expected) in [
        (
            next_minor_header(),
            &["SAMPLE_OF_THE_FUTURE", &needed][..],
            format!("needs plugin ABI 1.{}, this host has 1.{own}", own + 1),
        ),
        (major, &[], format!("needs plugin ABI 2.0, this host has 1.{own}")),
        (truncated, &[], "its function table does not begin as one, or is cut short".to_owned()),
    ] {
        let error = Host::refused(&c_sample(&header, defines).options("", GRANTS));
        assert!(error.contains(&expected), "{error}");
    }
}

fn outrigger(arguments: &[&str]) -> (bool, String) {
    let output = Command::new(&built().binary).args(arguments).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[test]
fn c_plugin_passes_plugin_check() {
    let plugin = c_sample(&header(), &[]);
    let library = plugin.library().display().to_string();
    let (good, report) = outrigger(&["plugin", "check", &library]);
    assert!(good, "{report}");
    let (good, text) = outrigger(&["plugin", "inspect", &library]);
    assert!(good && text.starts_with("c-sample 1.0.0: A plugin in C."), "{text}");
}

#[test]
fn plugin_header_writes_the_header() {
    let folder = tempfile::tempdir().unwrap();
    let include = folder.path().join("include");
    let (good, said) = outrigger(&["plugin", "header", include.to_str().unwrap()]);
    assert!(good, "{said}");
    let file = include.join(FILE);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), header());
    let (good, error) = outrigger(&["plugin", "header", file.to_str().unwrap()]);
    assert!(!good && error.contains("outrigger.h: "), "{error}");
}

#[test]
fn plugin_services_prints_the_page_and_the_schema() {
    let (good, page) = outrigger(&["plugin", "services"]);
    assert!(good && page.contains("\n## chain/1\n") && page.contains("\n### SignRequest\n"), "{page}");
    let (good, schema) = outrigger(&["plugin", "services", "--json"]);
    let schema: Value = serde_json::from_str(&schema).unwrap();
    assert_eq!((good, &schema["$schema"]), (true, &json!("https://json-schema.org/draft/2020-12/schema")));
    assert_eq!(schema["$defs"]["Tip"]["properties"]["height"]["maximum"], json!(u32::MAX));
}

/// The source of the plugin in `sdk/C.md`.
pub fn source_of_the_c_page() -> String {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../sdk/C.md")).unwrap();
    page.split("```c\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap().to_owned()
}

#[test]
fn c_page_shows_a_working_plugin() {
    let source = source_of_the_c_page();
    assert!(source.lines().count() <= 52, "the page is about how little it takes");
    let plugin = c_plugin(&source);
    let library = plugin.library().display().to_string();
    let (good, report) = outrigger(&["plugin", "check", &library]);
    assert!(good, "{report}");
    let host = Host::start_with(plugin.options(&all_groups(), "grants = [\"chain/1\"]\n"));
    let mut client = host.client();
    assert_eq!(client.call("hello", json!(["C"])), json!("Hello, C! The chain has 0 blocks."));
    assert_eq!(client.refused("hello", json!([5])), (-3, "Expected a name".into()));
}

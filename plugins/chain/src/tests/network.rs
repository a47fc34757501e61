use outrigger_sdk::testing::StubHost;
use serde_json::{Value, json};

use super::{check, keys, start};

#[test]
fn network_rpcs_have_the_keys_of_the_release() {
    let host = StubHost::new();
    let plugin = start(&host);
    let network = plugin.call("getnetworkinfo", json!([])).unwrap();
    assert_eq!((&network["version"], network["relayfee"].to_string()), (&json!(290_000), "0.00001000".into()));
    let agent = format!("/Satoshi:29.0.0(Outrigger:{})/", env!("CARGO_PKG_VERSION"));
    assert_eq!(network["subversion"], json!(agent));
    let expected = "version subversion protocolversion localservices localservicesnames localrelay timeoffset networkactive \
        connections connections_in connections_out networks relayfee incrementalfee localaddresses warnings";
    assert_eq!(keys(&network), expected.split_whitespace().collect::<Vec<_>>());
    assert_eq!((&network["localservices"], &network["warnings"]), (&json!("0000000000000c09"), &json!([])));
    assert_eq!(network["localservicesnames"], json!(["NETWORK", "WITNESS", "NETWORK_LIMITED", "P2P_V2"]));
    let listed = |name: &str, limited: bool| json!({"name": name, "limited": limited, "reachable": !limited, "proxy": "", "proxy_randomize_credentials": false});
    let networks = [("ipv4", false), ("ipv6", false), ("onion", true), ("i2p", true), ("cjdns", true)];
    assert_eq!(
        network["networks"],
        networks.map(|(name, limited)| listed(name, limited)).into_iter().collect::<Value>()
    );
    plugin.set_release(32, &[]);
    let newer = plugin.call("getnetworkinfo", json!([])).unwrap();
    assert_eq!((&newer["version"], &newer["protocolversion"]), (&json!(320_000), &json!(70_017)));
    assert_eq!(newer["inv_buckets"]["inbound"], json!({"backlog": 0, "count_tok": 420, "size_tok": 12_000_000}));
    assert_eq!(keys(&newer)[7..9], ["tx_send_rate", "inv_buckets"]);
    // Clients refuse a node where either is false.
    assert_eq!((&network["localrelay"], &network["networkactive"]), (&json!(true), &json!(true)));
    check(&plugin, "getconnectioncount", &[(json!([]), json!(0))]);
    check(&plugin, "ping", &[(json!([]), Value::Null)]);
    check(&plugin, "getzmqnotifications", &[(json!([]), json!([]))]);
    check(&plugin, "getpeerinfo", &[(json!([]), json!([]))]);
    check(&plugin, "listbanned", &[(json!([]), json!([]))]);
    let none = [json!([]), json!([0]), json!([8, "IPv6"]), json!([null, null])];
    check(&plugin, "getnodeaddresses", &none.map(|arguments| (arguments, json!([]))));
    plugin.refuses(
        "getnodeaddresses",
        &[
            (json!([-1]), -8, "Address count out of range"),
            (json!([5, "foo"]), -8, "Network not recognized: foo"),
            (json!([1.5]), -1, "JSON integer out of range"),
        ],
    );
    let totals = plugin.call("getnettotals", json!([])).unwrap();
    assert_eq!(keys(&totals), ["totalbytesrecv", "totalbytessent", "timemillis", "uploadtarget"]);
    let target = "timeframe target target_reached serve_historical_blocks bytes_left_in_cycle time_left_in_cycle";
    assert_eq!(keys(&totals["uploadtarget"]), target.split(' ').collect::<Vec<_>>());
    assert!(totals["timemillis"].as_u64().unwrap() > 1_600_000_000_000);
}

#[test]
fn estimatesmartfee_has_no_estimate_and_checks_its_arguments() {
    let host = StubHost::new();
    let plugin = start(&host);
    let answer = json!({"errors": ["Insufficient data or no feerate found"], "blocks": 0});
    let good = [json!([6]), json!([1008, "ECONOMICAL"]), json!([1, Value::Null])];
    check(&plugin, "estimatesmartfee", &good.map(|arguments| (arguments, answer.clone())));
    let mode = "Invalid estimate_mode parameter, must be one of: \"unset\", \"economical\", \"conservative\"";
    plugin.refuses(
        "estimatesmartfee",
        &[
            (json!([0]), -8, "Invalid conf_target, must be between 1 and 1008"),
            (json!([1009]), -8, "Invalid conf_target, must be between 1 and 1008"),
            (json!([6, "foo"]), -8, mode),
        ],
    );
}

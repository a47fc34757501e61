//! The errors of scans and block filters. `tests/it/compared.rs` compares their results with a bitcoind.

use outrigger_sdk::testing::StubHost;
use serde_json::{Value, json};

use super::{check, start};

#[test]
fn scan_and_filter_rpcs_refuse_bad_arguments() {
    const TPUB: &str = "tpubD6NzVbkrYhZ4WaWSyoBvQwbpLkojyoTZPRsgXELWz3Popb3qkjcJyJUGLnL4qHHoQvao8ESaAstxYSnhyswJ76uZPStJRJCTKvosUCJZL5B";
    let host = StubHost::new();
    let plugin = start(&host);
    let hardened = format!("wpkh({TPUB}/0h/*)");
    let underivable = format!("Cannot derive script without private keys: '{hardened}'");
    let objects = [
        (json!([5]), -8, "Scan object needs to be either a string or an object"),
        (json!([{}]), -8, "Descriptor needs to be provided in scan object"),
        (json!([{"desc": 5}]), -3, "JSON value of type number is not of expected type string"),
        (json!([{"desc": "raw(51)", "range": "x"}]), -8, "Range must be specified as end or as [begin,end]"),
        (
            json!([{"desc": "raw(51)", "range": [2, 1]}]),
            -8,
            "Range specified as [begin,end] must not have begin after end",
        ),
        (json!([hardened]), -5, &underivable),
    ];
    for (objects, code, message) in objects {
        plugin.refuses("scantxoutset", &[(json!(["start", objects]), code, message)]);
        plugin.refuses("scanblocks", &[(json!(["start", objects]), code, message)]);
        plugin.refuses("getdescriptoractivity", &[(json!([[], objects]), code, message)]);
    }
    for method in ["scantxoutset", "scanblocks"] {
        plugin.refuses(method, &[(json!(["foo"]), -8, "Invalid action 'foo'")]);
        // A scan that failed does not stay running.
        check(&plugin, method, &[(json!(["status"]), Value::Null), (json!(["abort"]), json!(false))]);
    }
    let no_objects = "scanobjects argument is required for the start action";
    plugin.refuses("scantxoutset", &[(json!(["start"]), -1, no_objects)]);
    plugin.refuses(
        "scanblocks",
        &[
            (json!(["start", [], 0, 0, "foo"]), -5, "Unknown filtertype"),
            (json!(["start", [], 1]), -1, "Invalid start_height"),
            (json!(["start", [], -1]), -1, "Invalid start_height"),
            (json!(["start", [], 0, 1]), -1, "Invalid stop_height"),
        ],
    );
    plugin.refuses(
        "getblockfilter",
        &[
            (json!(["aa", "foo"]), -8, "blockhash must be of length 64 (not 2, for 'aa')"),
            (json!(["11".repeat(32), "foo"]), -5, "Unknown filtertype"),
            (json!(["11".repeat(32)]), -5, "Block not found"),
        ],
    );
    // A disconnected block keeps its filter.
    let hash = host.chain.mine(vec![]);
    host.chain.disconnect();
    assert!(plugin.call("getblockfilter", json!([hash])).is_ok());
}

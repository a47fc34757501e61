//! The control group, which the host answers itself: help, echo, getrpcinfo, rpc.discover, and errors for removed methods.
//! `plugin_control.rs` tests the methods that start and stop plugins, `startup.rs` tests `stop`.

use outrigger_tests::{Client, Host, NOBODY, wait_until};
use serde_json::{Value, json};

#[test]
fn help_and_rpc_discover_list_all_methods_and_generate_names_its_replacement() {
    let host = Host::start();
    let mut client = host.client();
    let null = (-3, "JSON value of type null is not of expected type string".to_owned());
    assert_eq!(client.refused("help", json!([null])), null);
    assert_eq!(client.call("help", json!([])), client.call("help", json!([""])));
    let help = client.call("help", json!(["getblock"]));
    assert!(help.as_str().unwrap().contains("\n1. blockhash    (string, required) "), "{help}");
    let curl = "\n> curl --user myusername --data-binary '{\"jsonrpc\": \"2.0\", \"id\": \"curltest\", \"method\": \"getblock\", \"params\": [\"";
    assert!(help.as_str().unwrap().contains(curl), "{help}");
    let conversions = client.call("help", json!(["dump_all_command_conversions"]));
    let of_getblock: Vec<&Value> = conversions.as_array().unwrap().iter().filter(|row| row[0] == "getblock").collect();
    let expected = [
        json!(["getblock", 0, "blockhash", true]),
        json!(["getblock", 1, "verbosity", false]),
        json!(["getblock", 1, "verbose", false]),
    ];
    assert_eq!(of_getblock, expected.iter().collect::<Vec<_>>());
    // `rpc.discover` lists all methods with their parameters.
    let document = client.call("rpc.discover", json!([]));
    let methods = document["methods"].as_array().unwrap();
    let help = client.call("help", json!([]));
    let listed = help.as_str().unwrap().lines().filter(|line| !line.is_empty() && !line.starts_with("==")).count();
    assert_eq!(methods.len(), listed);
    let sign = methods.iter().find(|method| method["name"] == "signrawtransactionwithkey").unwrap();
    let names: Vec<_> = sign["params"].as_array().unwrap().iter().map(|param| param["name"].clone()).collect();
    assert_eq!(json!(names), json!(["hexstring", "privkeys", "prevtxs", "sighashtype"]));
    assert_eq!(sign["result"]["schema"], json!({"type": "object"}));
    let block = methods.iter().find(|method| method["name"] == "getblock").unwrap();
    assert_eq!(block["result"]["schema"], json!({"type": ["object", "string"]}));
    assert_eq!(block["params"][1]["schema"]["default"], json!(1));
    let untyped: Vec<&Value> =
        methods.iter().filter(|method| method["result"]["schema"] == json!({})).map(|method| &method["name"]).collect();
    assert_eq!(untyped, Vec::<&Value>::new());
    // `generate` and its help say that it was replaced.
    let text = "generate\n\nhas been replaced by the -generate cli option. Refer to -help for more information.\n";
    let counted = [json!([1]), json!([[]]), json!([1, "x", 3])].map(|params| (params, -1));
    for (params, code) in [(json!([]), -32601), (json!({}), -32601)].into_iter().chain(counted) {
        assert_eq!(client.refused("generate", params.clone()), (code, text.to_owned()), "{params}");
    }
    assert_eq!(client.refused("generate", json!({"x": 1})), (-8, "Unknown named parameter x".into()));
    let reply = client.post(r#"{"method":"generate","id":1}"#);
    assert_eq!(reply.status, 404);
    assert_eq!(client.call("help", json!(["generate"])), json!(text));
    assert!(!client.call("help", json!([])).as_str().unwrap().contains("generate\n"));
    crate::groups::check_all(&host);
    for method in ["getinfo", "addwitnessaddress", "estimatefee", "getaccount", "signrawtransaction"] {
        assert_eq!(client.refused(method, json!([1])), (-32601, "Method not found".into()), "{method}");
    }
}

#[test]
fn echo_and_echojson_return_arguments_and_getrpcinfo_lists_calls_in_order() {
    let host = Host::start();
    let mut client = host.client();
    for method in ["echo", "echojson"] {
        let mut check = |params: &str, result: &str| {
            let reply = client.post(&format!(r#"{{"method":"{method}","params":{params},"id":1}}"#));
            assert_eq!(reply.body, format!("{{\"result\":{result},\"error\":null,\"id\":1}}\n"), "{params}");
        };
        check(r#"["a",null, {"b":[1.50,-0]} ,true]"#, r#"["a",null,{"b":[1.50,-0]},true]"#);
        check(
            r#"[1.10000000000000000000001,123456789012345678901234567890]"#,
            "[1.10000000000000000000001,123456789012345678901234567890]",
        );
        check("null", "[]");
        check("[null,null]", "[null,null]");
        check(r#"{"arg2":"x","args":[1]}"#, r#"[1,null,"x"]"#);
        let unknown = (-8, "Unknown named parameter arg10".to_owned());
        assert_eq!(client.refused(method, json!({"arg10": 1})), unknown);
        let (code, help) = client.refused(method, json!([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]));
        assert!(code == -1 && help.starts_with(method), "{help}");
    }
    // Active calls are listed in the order of their start.
    assert_eq!(commands(&mut client), ["getrpcinfo"]);
    let template = client.call("getblocktemplate", json!([{"rules": ["segwit"]}]));
    let poll = json!({"rules": ["segwit"], "longpollid": template["longpollid"]});
    let waiting = client.begin_call("getblocktemplate", json!([poll]));
    // The long poll may start after the first getrpcinfo, which is listed first then.
    wait_until("the call that waits is listed first", || commands(&mut client) == ["getblocktemplate", "getrpcinfo"]);
    client.call("generatetoaddress", json!([1, NOBODY]));
    assert_eq!(waiting.finish().status, 200);
    assert_eq!(commands(&mut client), ["getrpcinfo"]);
    let info = client.call("getrpcinfo", json!([]));
    let keys: Vec<&String> = info.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["active_commands", "logpath"]);
    assert_eq!(info["logpath"], json!(""), "there is no log file");
}

/// The methods of the active calls.
fn commands(client: &mut Client) -> Vec<String> {
    let info = client.call("getrpcinfo", json!([]));
    let commands = info["active_commands"].as_array().unwrap();
    assert!(commands.iter().all(|command| command["duration"].is_u64()), "{info}");
    commands.iter().map(|command| command["method"].as_str().unwrap().to_owned()).collect()
}

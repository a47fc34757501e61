//! PSBTs by release: the versions and fields that the host reads, and the version that it makes.

use outrigger_tests::{Client, Host, HostOptions, NOBODY};
use serde_json::{Value, json};

const INPUT: &str = "1111111111111111111111111111111111111111111111111111111111111111";
/// Version 2, with a fallback locktime of 7, inputs modifiable, a SIGHASH_SINGLE signature, and one input with a sequence and both
/// required locktimes.
const TWO: &str = "cHNidP8BAgQCAAAAAQMEBwAAAAEEAQEBBQEBAQYBBQH7BAIAAAAAAQ4gEREREREREREREREREREREREREREREREREREREREREREBDwQAAAAAARAE/f///wERBADKmjsBEgQFAAAAAAEDCOgDAAAAAAAAAQQBUQA=";

#[test]
fn psbts_are_read_and_made_in_the_versions_and_with_the_fields_of_the_release() {
    for release in [29, 30, 31, 32] {
        let host = Host::start_with(HostOptions::of_release(release));
        let mut client = host.client();
        check_made_version(&mut client, release);
        check_musig2_fields(&mut client, release);
        if [29, 32].contains(&release) {
            check_psbts_of_a_wallet(&mut host.new_wallet("w"), release);
        }
        if release == 32 {
            check_shown_version_2(&mut client);
            check_impossible_lock_times(&mut client.wallet("w"));
        }
    }
}

fn version(client: &mut Client, psbt: &Value) -> Value {
    client.call("decodepsbt", json!([psbt]))["psbt_version"].clone()
}

/// Since release 32, PSBTs are made in version 2.
fn check_made_version(client: &mut Client, release: u32) {
    let made = if release >= 32 { 2 } else { 0 };
    let outputs = json!([{"data": "aa"}]);
    let psbt = client.call("createpsbt", json!([[], outputs]));
    assert_eq!(version(client, &psbt), made, "{release}");
    let raw = client.call("createrawtransaction", json!([[], outputs]));
    assert_eq!(client.call("converttopsbt", json!([raw])), psbt, "{release}");
    let named = json!({"inputs": [], "outputs": outputs, "psbt_version": 0});
    if made == 0 {
        assert_eq!(client.refused("createpsbt", named), (-8, "Unknown named parameter psbt_version".into()));
        let text = "TX decode failed Unsupported version number: iostream error";
        assert_eq!(client.refused("decodepsbt", json!([TWO])), (-22, text.into()));
        return;
    }
    let params = json!([[], outputs, 0, true, 4]);
    let text = "Invalid parameter, version out of range(1~3)";
    assert_eq!(client.refused("createpsbt", params), (-8, text.into()));
    let zero = client.call("createpsbt", named);
    assert_eq!(version(client, &zero), 0);
    for number in [1, 3] {
        let text = "The PSBT version can only be 2 or 0";
        let params = json!([raw, false, null, number]);
        assert_eq!(client.refused("converttopsbt", params), (-8, text.into()));
    }
    let text = "joinpsbts only operates on version 0 PSBTs";
    assert_eq!(client.refused("joinpsbts", json!([[zero, TWO]])), (-8, text.into()));
}

/// The answers recorded from a node 31.99.
fn check_shown_version_2(client: &mut Client) {
    let decoded = client.call("decodepsbt", json!([TWO]));
    let expected = r#"{"global_xpubs":[],"tx_version":2,"fallback_locktime":7,"input_count":1,"output_count":1,"inputs_modifiable":true,"outputs_modifiable":false,"has_sighash_single":true,"psbt_version":2,"proprietary":[],"unknown":{},"inputs":[{"previous_txid":"INPUT","previous_vout":0,"sequence":4294967293,"time_locktime":1000000000,"height_locktime":5}],"outputs":[{"amount":0.00001000,"script":{"asm":"1","desc":"raw(51)#8lvh9jxk","hex":"51","type":"nonstandard"}}]}"#;
    assert_eq!(
        decoded.to_string(),
        serde_json::from_str::<Value>(&expected.replace("INPUT", INPUT)).unwrap().to_string()
    );
    assert_eq!(client.call("combinepsbt", json!([[TWO, TWO]])), TWO);
}

/// Lock times that no transaction can satisfy.
fn check_impossible_lock_times(client: &mut Client) {
    // The first input requires a time, the second one a height.
    const IMPOSSIBLE: &str = "cHNidP8BAgQCAAAAAQQBAgEFAQEB+wQCAAAAAAEOIBERERERERERERERERERERERERERERERERERERERERERAQ8EAAAAAAERBADKmjsAAQ4gMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMBDwQBAAAAARIEBQAAAAABAwjoAwAAAAAAAAEEAVEA";
    for (method, params) in [
        ("utxoupdatepsbt", json!([IMPOSSIBLE])),
        ("descriptorprocesspsbt", json!([IMPOSSIBLE, []])),
        ("walletprocesspsbt", json!([IMPOSSIBLE])),
    ] {
        assert_eq!(client.refused(method, params), (-25, "The transaction cannot be valid".into()), "{method}");
    }
    let analysis = client.call("analyzepsbt", json!([IMPOSSIBLE]));
    assert_eq!(analysis, json!({"next": "creator", "error": "PSBT cannot be made into a valid transaction"}));
    assert_eq!(client.call("finalizepsbt", json!([IMPOSSIBLE])), json!({"psbt": IMPOSSIBLE, "complete": false}));
}

/// A wallet makes PSBTs of the release's version, and signs both versions.
fn check_psbts_of_a_wallet(client: &mut Client, release: u32) {
    client.mine(101);
    let default = if release == 32 { 2 } else { 0 };
    let mut versions = vec![(json!({"outputs": [{NOBODY: 1}], "fee_rate": 2}), default)];
    if release == 32 {
        versions.push((json!({"outputs": [{NOBODY: 1}], "fee_rate": 2, "psbt_version": 0}), 0));
        // A refused call leaves no coin locked.
        for lock in ["lockUnspents", "lock_unspents"] {
            let wrong = json!({"outputs": [{NOBODY: 1}], "psbt_version": 1, "options": {"fee_rate": 2, lock: true}});
            let refusal = (-8, "The PSBT version can only be 2 or 0".to_owned());
            assert_eq!(client.refused("walletcreatefundedpsbt", wrong), refusal);
            assert_eq!(client.call("listlockunspent", json!([])), json!([]));
        }
    }
    for (params, expected) in versions {
        let funded = client.call("walletcreatefundedpsbt", params)["psbt"].clone();
        assert_eq!(version(client, &funded), expected, "{release}");
        let signed = client.call("walletprocesspsbt", json!([funded]));
        let accepted = client.call("testmempoolaccept", json!([[signed["hex"]]]));
        assert_eq!(accepted[0]["allowed"], true, "{release} {accepted}");
    }
    let txid = client.call("sendtoaddress", json!([NOBODY, 1]));
    let bumped = client.call("psbtbumpfee", json!([txid, {"fee_rate": 50}]))["psbt"].clone();
    assert_eq!(version(client, &bumped), default);
    let zero = client.try_call("psbtbumpfee", json!([txid, {"fee_rate": 50, "psbt_version": 0}]));
    match zero {
        Ok(bumped) => assert_eq!((version(client, &bumped["psbt"]), release), (json!(0), 32)),
        Err(failure) => assert_eq!((&*failure.message, release), ("Unexpected key psbt_version", 29)),
    }
}

/// The fields of MuSig2 are shown since release 30.
fn check_musig2_fields(client: &mut Client, release: u32) {
    const KEY: &str = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
    // Participants and a partial signature of an input, and participants of the output.
    const MUSIG2: &str = "cHNidP8BAD0CAAAAARERERERERERERERERERERERERERERERERERERERERERAAAAAAD/////AegDAAAAAAAAAVEAAAAAACIaAnm+Zn753LusVaBilc6HCwcCm/zbLc4o2VnygVsW+BeYIQJ5vmZ++dy7rFWgYpXOhwsHApv82y3OKNlZ8oFbFvgXmEMcAnm+Zn753LusVaBilc6HCwcCm/zbLc4o2VnygVsW+BeYAnm+Zn753LusVaBilc6HCwcCm/zbLc4o2VnygVsW+BeYIDMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzACIIAnm+Zn753LusVaBilc6HCwcCm/zbLc4o2VnygVsW+BeYIQJ5vmZ++dy7rFWgYpXOhwsHApv82y3OKNlZ8oFbFvgXmAA=";
    let participants = json!([{"aggregate_pubkey": KEY, "participant_pubkeys": [KEY]}]);
    let sigs = json!([{"participant_pubkey": KEY, "aggregate_pubkey": KEY, "partial_sig": "33".repeat(32)}]);
    let decoded = client.call("decodepsbt", json!([MUSIG2]));
    let (input, output) = (&decoded["inputs"][0], &decoded["outputs"][0]);
    if release == 29 {
        assert_eq!(input["unknown"].as_object().unwrap().len(), 2, "{input}");
        assert!(input.get("musig2_partial_sigs").is_none() && output["unknown"].is_object());
    } else {
        assert_eq!(input, &json!({"musig2_participant_pubkeys": participants, "musig2_partial_sigs": sigs}));
        assert_eq!(output, &json!({"musig2_participant_pubkeys": participants}));
    }
    // The fields stay, and the host does not sign with them.
    assert_eq!(client.call("combinepsbt", json!([[MUSIG2]])), MUSIG2);
    let signed = client.call("descriptorprocesspsbt", json!([MUSIG2, []]));
    assert_eq!(signed, json!({"psbt": MUSIG2, "complete": false}));
}

use super::*;

const NO_RANGE: &str = "Range not given, using default keypool range";
const NOT_ALL: &str = "Not all private keys provided. Some wallet functionality may return unexpected errors";

#[track_caller]
fn check(harness: &Harness, request: Value, expected: &str) {
    assert_eq!(harness.descriptor(request.clone()), expected, "{request}");
}

#[track_caller]
fn refused(harness: &Harness, request: Value, code: i32, message: &str, warnings: &[&str]) {
    let before = harness.stored_count();
    check(harness, request, &failure(code, message, warnings));
    assert_eq!(harness.stored_count(), before);
}

fn desc(payload: &str) -> String {
    with_checksum(&payload.replace("TPUB", TPUB).replace("TPRV", TPRV).replace("WIF", K_WIF).replace("KEY", K))
}

#[test]
fn importdescriptors_checks_requests_in_order() {
    let harness = Harness::watch_only();
    let (ranged, plain) = (desc("wpkh(TPUB/*)"), desc("wpkh(KEY)"));
    refused(&harness, json!({"active": 1}), -8, "Descriptor not found.", &[]);
    // A field of a wrong type fails the call.
    let ends = |request: Value, code: i32, message: &str| {
        let mut request = request;
        request["timestamp"] = json!(5);
        harness.refused("importdescriptors", json!([[request]]), code, message);
    };
    let wrong = |got: &str, wanted: &str| format!("JSON value of type {got} is not of expected type {wanted}");
    ends(json!({"desc": 1}), -3, &wrong("number", "string"));
    ends(json!({"desc": "x", "active": null}), -3, &wrong("null", "bool"));
    ends(json!({"desc": "x", "label": 5}), -3, &wrong("number", "string"));
    ends(json!({"desc": plain, "internal": 5}), -3, &wrong("number", "bool"));
    ends(json!({"desc": ranged, "next_index": "x"}), -3, &wrong("string", "number"));
    ends(json!({"desc": ranged, "next_index": 1.5}), -1, "JSON integer out of range");
    refused(&harness, json!({"desc": "x", "label": "*"}), -11, "Invalid label name", &[]);
    refused(&harness, json!({"desc": "wpkh()", "range": 1}), -5, "Missing checksum", &[]);
    refused(
        &harness,
        json!({"desc": plain, "range": "x"}),
        -8,
        "Range should not be specified for an un-ranged descriptor",
        &[],
    );
    refused(&harness, json!({"desc": ranged, "range": [0, 1_000_001]}), -8, "Range is too large", &[]);
    refused(
        &harness,
        json!({"desc": ranged, "range": "x"}),
        -8,
        "Range must be specified as end or as [begin,end]",
        &[],
    );
    for next in [json!(-1), json!(4), json!(11), json!(1_u64 << 40)] {
        refused(
            &harness,
            json!({"desc": ranged, "range": [5, 10], "next_index": next}),
            -8,
            "next_index is out of range",
            &[],
        );
    }
    refused(
        &harness,
        json!({"desc": plain, "active": true, "label": "x"}),
        -8,
        "Active descriptors must be ranged",
        &[],
    );
    let label = "Ranged descriptors should not have a label";
    refused(&harness, json!({"desc": ranged, "range": 1, "label": "", "internal": true}), -8, label, &[]);
    refused(&harness, json!({"desc": ranged, "label": null}), -8, label, &[NO_RANGE]);
    refused(
        &harness,
        json!({"desc": plain, "label": "", "internal": true}),
        -8,
        "Internal addresses should not have a label",
        &[],
    );
    let combo = "Combo descriptors cannot be set to active";
    refused(&harness, json!({"desc": desc("combo(TPRV/*)"), "range": 1, "active": true}), -4, combo, &[]);
}

#[test]
fn importdescriptors_stores_the_fields_of_the_request() {
    let harness = Harness::new();
    let request = json!({"desc": desc("wpkh(TPRV/84h/*)"), "range": [5, 10], "next_index": 7, "active": true, "internal": true, "timestamp": -3});
    check(&harness, request, &success(&[]));
    let stored = harness.stored_descriptor();
    assert_eq!(stored.text.expose(), desc("wpkh(TPRV/84h/*)"));
    assert_eq!((stored.range, stored.next_index), (Some((5, 10)), Some(7)));
    assert_eq!((stored.active, stored.internal, stored.label, stored.timestamp), (true, Some(true), None, 1));

    check(&harness, json!({"desc": desc("wpkh(WIF)"), "label": "mine", "next_index": "ignored"}), &success(&[]));
    let stored = harness.stored_descriptor();
    assert_eq!((stored.range, stored.next_index, stored.internal), (None, None, None));
    assert_eq!(stored.label.as_deref(), Some("mine"));

    check(&harness, json!({"desc": desc("wpkh(TPRV/*)")}), &success(&[NO_RANGE]));
    let stored = harness.stored_descriptor();
    assert_eq!((stored.range, stored.next_index, stored.label), (Some((0, 999)), Some(0), None));

    check(&harness, json!({"desc": desc("wpkh(TPRV/*)"), "range": 3}), &success(&[]));
    assert_eq!(harness.stored_descriptor().range, Some((0, 3)));
}

#[test]
fn importdescriptors_warns_of_missing_private_keys() {
    let harness = Harness::new();
    let request = json!({"desc": desc("wsh(multi(1,TPRV/1,KEY))")});
    harness.answers([ImportOutcome::Imported { missing_private_keys: true, unknown_output_type: false }]);
    check(&harness, request, &success(&[NOT_ALL]));
}

#[test]
fn importdescriptors_reports_the_errors_of_the_wallet() {
    let harness = Harness::new();
    let text = desc("pk(TPRV/*)");
    let request = json!({"desc": text, "range": 3, "active": true});
    harness.answers([ImportOutcome::Imported { missing_private_keys: false, unknown_output_type: true }]);
    check(&harness, request.clone(), &success(&["Unknown output type, cannot set descriptor to active."]));
    // The message shows the descriptor without its private keys.
    let shown = outrigger_kit::descriptor::without_private_keys(&text);
    assert!(shown != text && shown.contains("tpub"));
    for (answer, code, message) in [
        (
            ImportOutcome::RangeShrinks { begin: 0, end: 20 },
            -8,
            "new range must include current range = [0,20]".to_owned(),
        ),
        (ImportOutcome::NotStored, -4, format!("Could not add descriptor '{shown}'")),
        (ImportOutcome::BadDescriptor { reason: "why".to_owned() }, -5, "why".to_owned()),
        (
            ImportOutcome::NotExpandable,
            -4,
            "Cannot expand descriptor. Probably because of hardened derivations without private keys provided"
                .to_owned(),
        ),
        (
            ImportOutcome::NoPrivateKeys,
            -4,
            "Cannot import descriptor without private keys to a wallet with private keys enabled".to_owned(),
        ),
        (
            ImportOutcome::PrivateKeysDisabled,
            -4,
            "Cannot import private keys to a wallet with private keys disabled".to_owned(),
        ),
    ] {
        harness.answers([answer]);
        check(&harness, request.clone(), &failure(code, &message, &[]));
    }
}

#[test]
fn importdescriptors_stores_a_multipath_descriptor_unsplit() {
    let harness = Harness::new();
    let request = json!({"desc": desc("wpkh(TPRV/<0;1>/*)"), "range": 2, "active": true});
    check(&harness, request, &success(&[]));
    // The wallet gets the descriptor unsplit, so that it stores all paths or none.
    let texts: Vec<(String, Option<bool>)> = harness.wallet(|wallet| {
        let text = |import: &Import| match import {
            Import::Descriptor { descriptor } => (descriptor.text.expose().to_owned(), descriptor.internal),
            _ => panic!("descriptors"),
        };
        wallet.imports.iter().map(text).collect()
    });
    assert_eq!(texts, [(desc("wpkh(TPRV/<0;1>/*)"), None)]);
    let multipath = desc("wpkh(TPRV/<0;1>/*)");
    let internal = "Cannot have multipath descriptor while also specifying 'internal'";
    refused(&harness, json!({"desc": multipath, "range": 2, "internal": false}), -5, internal, &[]);
    let label = "Multipath descriptors should not have a label";
    refused(&harness, json!({"desc": multipath, "range": 2, "label": ""}), -8, label, &[]);
    let three = desc("wpkh(TPRV/<0;1;2>/*)");
    check(&harness, json!({"desc": three, "range": 2}), &success(&[]));
    assert_eq!(harness.stored_descriptor().internal, None);
}

#[test]
fn importdescriptors_range_defaults_to_the_wallets_keypool() {
    for (keypool, last) in [(20, 19), (1, 0), (0, 999)] {
        let harness = Harness::watch_only();
        harness.wallet(|wallet| wallet.info.keypool = keypool);
        let warnings = ["Range not given, using default keypool range"];
        check(&harness, json!({"desc": desc("wpkh(TPUB/*)"), "active": true}), &success(&warnings));
        assert_eq!(harness.stored_descriptor().range, Some((0, last)));
        let beyond = json!({"desc": desc("wpkh(TPUB/*)"), "next_index": last + 1});
        refused(&harness, beyond, -8, "next_index is out of range", &warnings);
    }
}

#[test]
fn importdescriptors_limits_the_number_of_keys_of_a_range() {
    let harness = Harness::watch_only();
    let last = (1_u32 << 31) - 1;
    for range in [[last - 10, last], [5_000_000, 5_000_010]] {
        check(&harness, json!({"desc": desc("wpkh(TPUB/*)"), "range": range}), &success(&[]));
        assert_eq!(harness.stored_descriptor().range, Some((range[0], range[1])));
    }
    let keys = |count: usize| vec!["TPUB/*"; count].join(",");
    let twenty = desc(&format!("wsh(multi(2,{}))", keys(20)));
    check(&harness, json!({"desc": twenty, "range": 999_999}), &success(&[]));
    let more = desc(&format!("tr(TPUB,multi_a(2,{}))", keys(20)));
    refused(&harness, json!({"desc": more, "range": 999_999}), -8, "Range is too large", &[]);
}

#[test]
fn importdescriptors_range_of_non_integers_is_a_wrong_type() {
    let harness = Harness::watch_only();
    for range in [json!(1.5), json!([0, 1.5]), json!(1e30)] {
        let request = json!({"desc": desc("wpkh(TPUB/*)"), "range": range, "timestamp": 5});
        harness.refused("importdescriptors", json!([[request]]), -1, "JSON integer out of range");
    }
}

#[test]
fn importdescriptors_accepts_the_descriptors_of_the_release() {
    let harness = Harness::new();
    for (release, text, reason) in [
        (29, "tr(musig(WIF))", Some("tr(): key 'musig(")),
        (30, "tr(musig(WIF))", None),
        (31, "unused(TPRV)", Some("'unused(tpub")),
        (32, "unused(TPRV)", None),
    ] {
        harness.plugin.set_release(release, &[]);
        harness.answers([ImportOutcome::Imported { missing_private_keys: false, unknown_output_type: false }]);
        let outcome = harness.descriptor(json!({"desc": desc(text)}));
        match reason {
            Some(reason) => assert!(outcome.contains(&format!(r#""message":"{reason}"#)), "{outcome}"),
            None => assert_eq!(outcome, r#"{"success":true}"#),
        }
    }
}

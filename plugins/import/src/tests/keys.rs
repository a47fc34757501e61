use super::*;

#[track_caller]
fn check(harness: &Harness, request: Value, expected: &str) {
    assert_eq!(harness.multi(request.clone()), expected, "{request}");
}

#[track_caller]
fn refused(request: Value, code: i32, message: &str) {
    let harness = Harness::new();
    check(&harness, request, &failure(code, message, &[]));
    assert_eq!(harness.stored_count(), 0);
}

fn hex(keys: &KeysImport) -> Vec<String> {
    keys.scripts.iter().map(|script| script.to_hex_string()).collect()
}

fn p2sh(script: &str) -> String {
    bitcoin::ScriptBuf::from_hex(script).unwrap().to_p2sh().to_hex_string()
}

fn p2wsh(script: &str) -> String {
    bitcoin::ScriptBuf::from_hex(script).unwrap().to_p2wsh().to_hex_string()
}

/// The script of a 1-of-2 multisig with [`K`] and [`K2`].
fn multisig() -> String {
    format!("5121{K}21{K2}52ae")
}

#[test]
fn importmulti_common_fields_are_checked_first_and_in_order() {
    refused(json!({"internal": 1, "label": 1}), -1, MALFORMED);
    refused(json!({"internal": true, "label": ""}), -8, "Internal addresses should not have a label");
    refused(json!({"label": 1, "keypool": true}), -1, MALFORMED);
    refused(json!({"keypool": null}), -1, MALFORMED);
    let keypool = "Keys can only be imported to the keypool when private keys are disabled";
    refused(json!({"keypool": true, "desc": 1, "scriptPubKey": 1}), -8, keypool);
    let both = "Both a descriptor and a scriptPubKey should not be provided.";
    refused(json!({"desc": 1, "scriptPubKey": 1}), -8, both);
    refused(json!({"label": "*"}), -8, "Either a descriptor or scriptPubKey must be provided.");
}

#[test]
fn importmulti_scripts_are_checked_in_order() {
    let form = "scriptPubKey must be string with script or JSON with address string";
    refused(json!({"scriptPubKey": 1, "redeemscript": 1}), -8, form);
    refused(json!({"scriptPubKey": {"x": 1}}), -8, form);
    refused(json!({"scriptPubKey": {"address": 1}}), -1, MALFORMED);
    for (field, value) in [
        ("redeemscript", json!(1)),
        ("witnessscript", json!(1)),
        ("pubkeys", json!({})),
        ("keys", json!("x")),
        ("watchonly", json!(1)),
    ] {
        refused(json!({"scriptPubKey": "zz", field: value, "range": 1}), -1, MALFORMED);
    }
    let range = "Range should not be specified for a non-descriptor import";
    refused(json!({"scriptPubKey": "zz", "range": 1}), -8, range);
    refused(json!({"scriptPubKey": {"address": "zz"}}), -5, "Invalid address \"zz\"");
    refused(json!({"scriptPubKey": "zz"}), -5, "Invalid scriptPubKey \"zz\"");
    refused(json!({"scriptPubKey": ""}), -5, "Invalid scriptPubKey \"\"");
    let internal = "Internal must be set to true for nonstandard scriptPubKey imports.";
    for script in ["6a", "51", &multisig()] {
        refused(json!({"scriptPubKey": script, "redeemscript": "zz"}), -8, internal);
    }
    refused(
        json!({"scriptPubKey": K_PKH, "redeemscript": "zz", "witnessscript": "zz"}),
        -5,
        "Invalid redeem script \"zz\": must be hex string",
    );
    refused(
        json!({"scriptPubKey": K_PKH, "witnessscript": "zz", "pubkeys": ["zz"]}),
        -5,
        "Invalid witness script \"zz\": must be hex string",
    );
    refused(
        json!({"scriptPubKey": K_PKH, "pubkeys": ["zz"], "keys": ["zz"]}),
        -5,
        "Pubkey \"zz\" must be a hex string",
    );
    refused(
        json!({"scriptPubKey": K_PKH, "pubkeys": ["02"], "keys": ["zz"]}),
        -5,
        "Pubkey \"02\" is not a valid public key",
    );
    refused(json!({"scriptPubKey": K_PKH, "keys": ["zz"]}), -5, "Invalid private key encoding");
    refused(json!({"scriptPubKey": K_PKH, "keys": [1]}), -1, MALFORMED);
    refused(json!({"scriptPubKey": K_PKH, "pubkeys": [1]}), -1, MALFORMED);
}

fn non_solvable(reason: &str) -> String {
    format!(
        "Importing as non-solvable: {reason}. If this is intentional, don't provide any keys, pubkeys, witnessscript, or redeemscript."
    )
}

#[test]
fn importmulti_unsolvable_script_is_watched_without_its_keys() {
    let harness = Harness::new();
    let sh_wpkh = p2sh(K_WPKH);
    let wsh = p2wsh(&multisig());
    for (request, first, reason) in [
        (json!({"scriptPubKey": sh_wpkh, "keys": [K_WIF]}), None, "missing redeemscript"),
        (json!({"scriptPubKey": sh_wpkh, "keys": [K_WIF], "watchonly": true}), Some(COMPLETE), "missing redeemscript"),
        (json!({"scriptPubKey": sh_wpkh, "redeemscript": K_PKH}), None, "redeemScript does not match the scriptPubKey"),
        (json!({"scriptPubKey": wsh, "keys": [K_WIF]}), None, "missing witnessscript"),
        (
            json!({"scriptPubKey": wsh, "witnessscript": K_PKH}),
            None,
            "witnessScript does not match the scriptPubKey or redeemScript",
        ),
        (json!({"scriptPubKey": p2sh(&wsh), "redeemscript": wsh}), None, "missing witnessscript"),
        (json!({"scriptPubKey": "6a", "internal": true, "keys": [K_WIF]}), None, "unspendable script"),
        (json!({"scriptPubKey": "51", "internal": true, "keys": [K_WIF]}), None, "unrecognized script"),
        (json!({"scriptPubKey": K_PKH, "pubkeys": [K2]}), Some(MISSING), "some required keys are missing"),
    ] {
        let reason = non_solvable(reason);
        let warnings: Vec<&str> = first.into_iter().chain([reason.as_str()]).collect();
        check(&harness, request.clone(), &success(&warnings));
        let keys = harness.stored_keys();
        assert!(
            !keys.solving_data
                && keys.private_keys.is_empty()
                && keys.public_keys.is_empty()
                && keys.scripts.is_empty(),
            "{request}"
        );
        assert_eq!(keys.script_pubkeys.len(), 1);
    }
}

#[test]
fn importmulti_invalid_nesting_is_an_error() {
    let inner = p2sh(K_PKH);
    refused(
        json!({"scriptPubKey": p2sh(&inner), "redeemscript": inner}),
        -5,
        "Trying to nest P2SH inside another P2SH",
    );
    refused(json!({"scriptPubKey": p2wsh(&inner), "witnessscript": inner}), -5, "Trying to nest P2SH inside a P2WSH");
    let inner = p2wsh(K_PKH);
    refused(
        json!({"scriptPubKey": p2wsh(&inner), "witnessscript": inner}),
        -5,
        "Trying to nest P2WSH inside another P2WSH",
    );
    refused(json!({"scriptPubKey": p2wsh(K_WPKH), "witnessscript": K_WPKH}), -5, "Trying to nest P2WPKH inside P2WSH");
}

#[test]
fn importmulti_unneeded_parts_are_ignored_with_a_warning() {
    let harness = Harness::new();
    let request = json!({"scriptPubKey": K_PKH, "keys": [K_WIF, K2_WIF], "redeemscript": "51", "witnessscript": "51"});
    let warnings = [
        "Ignoring redeemscript as this is not a P2SH script.",
        "Ignoring witnessscript as this is not a (P2SH-)P2WSH script.",
        IRRELEVANT,
    ];
    check(&harness, request, &success(&warnings));
    assert_eq!(harness.stored_keys().private_keys.len(), 1);
    // A multisig script holds its public keys: the warnings show their hashes, and the wallet does not import them.
    let multisig = multisig();
    let request =
        json!({"scriptPubKey": p2sh(&multisig), "redeemscript": multisig, "pubkeys": [K, K2], "watchonly": true});
    let warnings = [
        "Ignoring public key \"06afd46bcdfd22ef94ac122aa11f241244a37ecc\" as it doesn't appear inside P2PKH or P2WPKH.",
        "Ignoring public key \"751e76e8199196d454941c45d1b3a323f1433bd6\" as it doesn't appear inside P2PKH or P2WPKH.",
    ];
    check(&harness, request, &success(&warnings));
    assert!(harness.stored_keys().solving_data);
    let pk = format!("21{K}ac");
    check(&harness, json!({"scriptPubKey": pk, "keys": [K_WIF]}), &success(&[]));
}

#[test]
fn importmulti_reports_the_errors_of_the_wallet() {
    let harness = Harness::new();
    let script = bitcoin::ScriptBuf::from_hex(K_PKH).unwrap();
    harness.answers([ImportOutcome::AlreadyOwned { script }]);
    let owned = format!("The wallet already contains the private key for this address or script (\"{K_PKH}\")");
    check(&harness, json!({"scriptPubKey": K_PKH, "pubkeys": [K]}), &failure(-4, &owned, &[MISSING]));
    for (request, message, warnings) in [
        (json!({"scriptPubKey": K_PKH}), "Error adding address to wallet", vec![]),
        (json!({"scriptPubKey": K_PKH, "keys": [K_WIF]}), "Error adding key to wallet", vec![]),
        (json!({"scriptPubKey": K_WPKH, "keys": [K_WIF]}), "Error adding script to wallet", vec![]),
    ] {
        harness.answers([ImportOutcome::NotStored]);
        check(&harness, request, &failure(-4, message, &warnings));
    }
}

#[test]
fn importmulti_descriptors_are_checked_in_order() {
    let (ranged, plain) = (with_checksum(&format!("wpkh({TPUB}/*)")), with_checksum(&format!("wpkh({K})")));
    refused(json!({"desc": 1}), -1, MALFORMED);
    refused(json!({"desc": format!("wpkh({K})"), "watchonly": 1}), -5, "Missing checksum");
    refused(json!({"desc": with_checksum("wpkh()"), "watchonly": 1}), -5, "wpkh(): No key provided");
    refused(json!({"desc": plain, "watchonly": 1, "range": 1}), -1, MALFORMED);
    refused(
        json!({"desc": plain, "range": 1, "keys": 1}),
        -8,
        "Range should not be specified for an un-ranged descriptor",
    );
    refused(json!({"desc": ranged, "keys": 1}), -8, "Descriptor is ranged, please specify the range");
    refused(json!({"desc": ranged, "range": -1, "keys": 1}), -8, "End of range is too high");
    refused(json!({"desc": ranged, "range": [-1, 10]}), -8, "Range should be greater or equal than 0");
    refused(json!({"desc": ranged, "range": [0, 1_000_000]}), -8, "Range is too large");
    refused(
        json!({"desc": ranged, "range": [2, 1]}),
        -8,
        "Range specified as [begin,end] must not have begin after end",
    );
    refused(json!({"desc": plain, "keys": 1}), -1, MALFORMED);
    refused(json!({"desc": plain, "keys": [1]}), -1, MALFORMED);
    refused(json!({"desc": plain, "keys": ["zz"]}), -5, "Invalid private key encoding");
    let taproot = with_checksum(&format!("tr({K})"));
    refused(json!({"desc": taproot}), -5, "Bech32m descriptors cannot be imported into legacy wallets");
    let many = with_checksum(&format!("sh(multi(1,{TPUB}/*,{TPUB}/1/*,{TPUB}/2/*))"));
    refused(json!({"desc": many, "range": [0, 999_999]}), -8, "Range is too large");
}

#[test]
fn importmulti_descriptors_import_keys_scripts_and_origins() {
    let harness = Harness::new();
    let desc = with_checksum(&format!("wpkh([d34db33f/84h]{TPUB}/*)"));
    check(&harness, json!({"desc": desc, "range": [3, 5]}), &success(&[MISSING]));
    let keys = harness.stored_keys();
    assert_eq!((keys.script_pubkeys.len(), keys.public_keys.len(), keys.origins.len()), (3, 3, 3));
    assert!(
        keys.origins.iter().any(|origin| origin.path == "m/84h/5" && origin.fingerprint == [0xd3, 0x4d, 0xb3, 0x3f])
    );
    check(&harness, json!({"desc": desc, "range": [3, 5], "watchonly": true}), &success(&[]));

    let desc = with_checksum(&format!("wpkh({TPRV}/0h/*)"));
    check(&harness, json!({"desc": desc, "range": 1}), &success(&[]));
    let keys = harness.stored_keys();
    assert_eq!((keys.private_keys.len(), keys.solving_data), (2, true));

    let desc = with_checksum(&format!("combo({K})"));
    check(&harness, json!({"desc": desc, "keys": [K_WIF], "watchonly": true}), &success(&[COMPLETE]));
    let keys = harness.stored_keys();
    let lengths: Vec<usize> = keys.script_pubkeys.iter().map(|script| script.len()).collect();
    assert_eq!(lengths, [22, 23, 25, 35], "shortest first");
    assert_eq!(hex(&keys), [K_WPKH]);
    assert_eq!(keys.private_keys.len(), 1);
}

#[test]
fn importmulti_keys_in_a_descriptor_are_not_matched_by_private_ones() {
    let harness = Harness::new();
    for payload in [format!("pk({K})"), format!("sh(multi(1,{K},{K2}))")] {
        let desc = with_checksum(&payload);
        check(&harness, json!({"desc": desc, "keys": [K_WIF]}), &success(&[IRRELEVANT, MISSING]));
        let keys = harness.stored_keys();
        assert!(keys.private_keys.is_empty() && keys.public_keys.is_empty() && keys.solving_data);
    }
    let desc = with_checksum(&format!("sh(multi(1,{K_WIF},{K2_WIF}))"));
    check(&harness, json!({"desc": desc}), &success(&[]));
    assert_eq!(harness.stored_keys().private_keys.len(), 2);
}

#[test]
fn importmulti_addresses_and_raw_scripts_have_all_their_keys() {
    let harness = Harness::new();
    let desc = with_checksum(&format!("raw({K_PKH})"));
    check(&harness, json!({"desc": desc}), &success(&[]));
    assert!(!harness.stored_keys().solving_data);
    check(&harness, json!({"desc": desc, "watchonly": true, "redeemscript": 5}), &success(&[COMPLETE]));
}

#[test]
fn importmulti_hardened_steps_without_private_keys_import_nothing_and_succeed() {
    let harness = Harness::new();
    let desc = with_checksum(&format!("wpkh({TPUB}/1h/*)"));
    check(&harness, json!({"desc": desc, "range": 2}), &success(&[]));
    assert!(harness.stored_keys().script_pubkeys.is_empty());
}

#[test]
fn importmulti_multipath_imports_both_paths() {
    let harness = Harness::new();
    let desc = with_checksum(&format!("wpkh({TPUB}/<0;1>/*)"));
    check(&harness, json!({"desc": desc, "range": 0, "watchonly": true}), &success(&[]));
    // The wallet stores both paths or neither.
    let sides: Vec<bool> = harness.wallet(|wallet| match wallet.imports.as_slice() {
        [Import::Keys { parts }] => parts.iter().map(|part| part.internal).collect(),
        other => panic!("{other:?}"),
    });
    assert_eq!(sides, [false, true]);
    refused(
        json!({"desc": desc, "range": 0, "internal": true}),
        -5,
        "Cannot have multipath descriptor while also specifying 'internal'",
    );
    refused(json!({"desc": desc, "range": 0, "label": "x"}), -8, "Multipath descriptors should not have a label");
}

#[test]
fn importmulti_one_request_does_not_affect_another() {
    let harness = Harness::new();
    let script = bitcoin::ScriptBuf::from_hex(K_PKH).unwrap();
    let imported = ImportOutcome::Imported { missing_private_keys: false, unknown_output_type: false };
    harness.answers([ImportOutcome::AlreadyOwned { script }, imported]);
    let desc = with_checksum(&format!("wpkh({TPUB}/<0;1>/*)"));
    let requests = json!([
        {"scriptPubKey": "zz", "timestamp": 1},
        {"desc": desc, "range": 0, "timestamp": 1, "watchonly": true},
        {"scriptPubKey": K_WPKH, "timestamp": 1},
    ]);
    let answer = harness.plugin.call("importmulti", json!([requests, {"rescan": false}])).unwrap();
    let codes: Vec<&Value> = answer.as_array().unwrap().iter().map(|one| &one["error"]["code"]).collect();
    assert_eq!(codes, [&json!(-5), &json!(-4), &Value::Null]);
}

#[test]
fn importmulti_range_of_non_integers_is_a_wrong_type() {
    for range in [json!(1.5), json!([0, 1.5])] {
        let desc = with_checksum(&format!("wpkh({TPUB}/*)"));
        refused(json!({"desc": desc, "range": range}), -1, "Missing required fields");
    }
}

#[test]
fn importmulti_errors_show_no_private_key() {
    for field in ["scriptPubKey", "pubkeys", "redeemscript", "desc"] {
        let mut request = json!({"scriptPubKey": K_PKH, "timestamp": 1});
        request[field] = if field == "pubkeys" { json!([K_WIF]) } else { json!(K_WIF) };
        if field == "desc" {
            request = json!({"desc": with_checksum(K_WIF), "timestamp": 1});
        }
        let answer = Harness::new().plugin.call("importmulti", json!([[request], {"rescan": false}])).unwrap();
        let message = answer[0]["error"]["message"].as_str().unwrap();
        assert!(message.contains(K) && !message.contains(K_WIF), "{message}");
    }
}

#[test]
fn importmulti_range_imports_its_keys_in_order() {
    let harness = Harness::new();
    let desc = with_checksum(&format!("wpkh({TPRV}/*)"));
    check(&harness, json!({"desc": desc, "range": [0, 299]}), &success(&[]));
    let stored = harness.stored_keys();
    let secp = bitcoin::secp256k1::Secp256k1::new();
    let master: bitcoin::bip32::Xpub =
        bitcoin::bip32::Xpub::from_priv(&secp, &TPRV.parse::<bitcoin::bip32::Xpriv>().unwrap());
    let child = |index: u32| master.derive_pub(&secp, &[index.into()]).unwrap().public_key.serialize().to_vec();
    let expected: Vec<Vec<u8>> = (0..300).map(child).collect();
    let public: Vec<Vec<u8>> = stored.public_keys.iter().map(|key| key.0.clone()).collect();
    assert_eq!(public, expected);
    let held: std::collections::BTreeSet<Vec<u8>> = stored
        .private_keys
        .iter()
        .map(|wif| bitcoin::PrivateKey::from_wif(wif.expose()).unwrap().public_key(&secp).to_bytes())
        .collect();
    assert_eq!(held, expected.into_iter().collect());
}

#[test]
fn importmulti_long_range_is_aborted_when_the_host_stops() {
    let harness = Harness::new();
    harness.plugin.tell(Event::ShuttingDown);
    let desc = with_checksum(&format!("pk({TPUB}/*)"));
    let request = |last: u32| json!([[{"desc": desc, "range": last, "timestamp": 1}], {"rescan": false}]);
    let error = harness.plugin.call("importmulti", request(10_000)).unwrap_err();
    assert_eq!((error.code.0, error.message.as_str(), harness.stored_count()), (-9, "Shutting down", 0));
    harness.plugin.call("importmulti", request(9_999)).unwrap();
    assert_eq!(harness.stored_count(), 1);
}

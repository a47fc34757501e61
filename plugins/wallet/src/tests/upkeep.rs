use super::*;

#[test]
fn backupwallet_and_restorewallet_reach_the_host() {
    let test = Fixture::new();
    test.info(|info| (info.backup_needed, info.last_backup) = (true, 17));
    let told = r#"{"walletname":"w","backup_needed":true,"last_backup":17}"#;
    test.check("getwalletbackupinfo", json!([]), told);
    test.check("backupwallet", json!(["/backups/w.mdb"]), "null");
    test.info(|info| assert!(!info.backup_needed));
    let told = r#"{"walletname":"w","backup_needed":false,"last_backup":17}"#;
    test.check("getwalletbackupinfo", json!([]), told);
    test.check("restorewallet", json!(["again", "/backups/w.mdb", true]), r#"{"name":"again"}"#);
    test.check("listwallets", json!([]), r#"["again"]"#);
    test.refuse("restorewallet", json!(["third", "/backups/none.mdb"]), -8, "Backup file does not exist");
}

#[test]
fn listlabels_and_getaddressesbylabel_list_by_purpose_and_label() {
    let test = Fixture::new();
    let keys: Vec<TestKey> = (1..=5).map(TestKey::new).collect();
    let labelled = [(0, "rent", true), (1, "food", true), (2, "rent", true), (3, "rent", false)];
    for (key, label, ours) in labelled {
        let script = test.own(&keys[key], Form::Wpkh);
        test.wallet(|state| {
            let info = state.scripts.get_mut(&script).unwrap();
            info.label = Some(label.into());
            info.ownership = if ours { Ownership::Spendable } else { Ownership::None };
        });
    }
    test.own(&keys[4], Form::Wpkh);
    test.check("listlabels", json!([]), r#"["food","rent"]"#);
    test.check("listlabels", json!([""]), r#"["food","rent"]"#);
    test.check("listlabels", json!(["receive"]), r#"["food","rent"]"#);
    test.check("listlabels", json!(["send"]), r#"["rent"]"#);
    test.check("listlabels", json!(["refund"]), "[]");
    let message = "Invalid 'purpose' argument, must be a known purpose string, typically 'send', or 'receive'.";
    test.refuse("listlabels", json!(["foo"]), -8, message);
    let of = |key: usize, purpose: &str| (address(&keys[key].script(Form::Wpkh)), json!({"purpose": purpose}));
    let found = test.call("getaddressesbylabel", json!(["rent"])).unwrap();
    let expected: serde_json::Map<String, Value> =
        [of(0, "receive"), of(2, "receive"), of(3, "send")].into_iter().collect();
    assert_eq!(found.as_object().unwrap(), &expected);
    test.refuse("getaddressesbylabel", json!(["none"]), -11, "No addresses with label none");
    test.refuse("getaddressesbylabel", json!(["*"]), -11, "Invalid label name");
}

#[test]
fn keypoolrefill_needs_an_unlocked_wallet() {
    let test = Fixture::new();
    test.check("keypoolrefill", json!([1200]), "null");
    test.info(|info| assert_eq!(info.keypool_external, 1200));
    test.check("keypoolrefill", json!([]), "null");
    test.check("keypoolrefill", json!([0]), "null");
    test.refuse("keypoolrefill", json!([-1]), -8, "Invalid parameter, expected valid size.");
    test.refuse("keypoolrefill", json!([4_294_967_296_u64]), -1, "JSON integer out of range");
    test.info(|info| info.locked = true);
    let message = "Error: Please enter the wallet passphrase with walletpassphrase first.";
    test.refuse("keypoolrefill", json!([]), -13, message);

    // A blank one has nothing to derive from, and only who names a number hears of it.
    let test = Fixture::new();
    test.info(|info| info.blank = true);
    test.refuse("keypoolrefill", json!([5]), -4, "Error refreshing keypool.");
    for all in [json!([]), json!([0])] {
        test.check("keypoolrefill", all, "null");
    }
}

#[test]
fn setwalletflag_changes_avoid_reuse_alone() {
    let test = Fixture::new();
    let set = test.call("setwalletflag", json!(["avoid_reuse"])).unwrap();
    assert_eq!((&set["flag_name"], &set["flag_state"]), (&json!("avoid_reuse"), &json!(true)));
    assert!(set["warnings"].as_str().unwrap().starts_with("You need to rescan the blockchain"));
    test.refuse("setwalletflag", json!(["avoid_reuse", true]), -8, "Wallet flag is already set to true: avoid_reuse");
    let unset = r#"{"flag_name":"avoid_reuse","flag_state":false}"#;
    test.check("setwalletflag", json!(["avoid_reuse", false]), unset);
    test.refuse("setwalletflag", json!(["descriptors"]), -8, "Unknown wallet flag: descriptors");
    for flag in ["blank", "descriptor_wallet", "key_origin_metadata", "last_hardened_xpub_cached"] {
        test.refuse("setwalletflag", json!([flag]), -8, &format!("Wallet flag is immutable: {flag}"));
    }
}

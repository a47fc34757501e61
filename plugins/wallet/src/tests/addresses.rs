use super::*;

#[test]
fn getnewaddress_and_getrawchangeaddress_give_fresh_addresses_with_their_label() {
    let test = Fixture::new();
    let scripts: Vec<ScriptBuf> = FORMS.into_iter().map(|form| test.own(&TestKey::new(1), form)).collect();
    test.wallet(|state| state.addresses.extend(scripts.clone()));
    for (name, script) in ["legacy", "p2sh-segwit", "bech32", "bech32m"].into_iter().zip(&scripts) {
        let expect = format!("\"{}\"", address(script));
        if name == "bech32" {
            test.check("getrawchangeaddress", json!([name]), &expect);
        } else {
            test.check("getnewaddress", json!(["mine", name]), &expect);
        }
    }
    let label = |script| test.wallet(|state| state.scripts[script].label.clone());
    assert_eq!(label(&scripts[0]).as_deref(), Some("mine"));
    assert_eq!(label(&scripts[2]), None);
}

#[test]
fn getnewaddress_and_getrawchangeaddress_refuse_what_cannot_be_derived() {
    let test = Fixture::new();
    let message = "Error: Keypool ran out, please call keypoolrefill first";
    test.refuse("getnewaddress", json!([]), -12, message);
    test.refuse("getrawchangeaddress", json!([]), -12, message);
    test.refuse("getnewaddress", json!(["*"]), -11, "Invalid label name");
    test.refuse("getnewaddress", json!(["", "nosuch"]), -5, "Unknown address type 'nosuch'");
    // That no source of the side has anything to give comes before the arguments.
    let sources = test.wallet(|state| state.info.sources.clone());
    let message = "Error: This wallet has no available keys";
    for method in ["getnewaddress", "getrawchangeaddress"] {
        let internal = method == "getrawchangeaddress";
        test.info(|info| info.sources.retain(|source| source.internal != internal));
        test.refuse(method, json!(["*"]), -4, message);
        test.info(|info| {
            info.sources = sources.clone();
            info.sources.iter_mut().for_each(|source| source.available = source.internal != internal);
        });
        test.refuse(method, json!(["nosuch"]), -4, message);
        test.info(|info| info.sources = sources.clone());
    }
}

#[test]
fn setlabel_sets_labels() {
    let test = Fixture::new();
    let script = test.own(&TestKey::new(1), Form::Wpkh);
    test.check("setlabel", json!([address(&script), "rent"]), "null");
    assert_eq!(test.wallet(|state| state.scripts[&script].label.clone()).as_deref(), Some("rent"));
    test.refuse("setlabel", json!(["garbage", "x"]), -5, "Invalid Bitcoin address");
    test.refuse("setlabel", json!([address(&script), "*"]), -11, "Invalid label name");
}

/// The answer for the script that the first test key has in a form.
fn info_of(form: Form) -> String {
    let test = Fixture::new();
    let script = test.own(&TestKey::new(1), form);
    test.wallet(|state| {
        if let Some(info) = state.scripts.get_mut(&script) {
            info.label = Some("l".into());
        }
    });
    test.plugin.call_json("getaddressinfo", json!([address(&script)])).unwrap()
}

const KEY: &str = "031b84c5567b126440995d3ed5aaba0565d71e1834604819ff9c17f5e9d5dd078f";
const MINE: &str =
    r#""ismine":true,"solvable":true,"desc":"desc#checksum","parent_desc":"parent#checksum","iswatchonly":false"#;
const TAIL: &str = r#""ischange":false,"timestamp":1700000000,"hdkeypath":"m/84h/1h/0h/0/1","hdseedid":"0000000000000000000000000000000000000000","hdmasterfingerprint":"de78d933","labels":["l"]}"#;

#[test]
fn getaddressinfo_describes_addresses_of_single_keys() {
    let test_key = TestKey::new(1);
    let hex = |form| outrigger_sdk::params::encode_hex(test_key.script(form).as_bytes());
    let head =
        |form| format!(r#"{{"address":"{}","scriptPubKey":"{}",{MINE},"#, address(&test_key.script(form)), hex(form));
    let wpkh = hex(Form::Wpkh);
    let program = &wpkh[4..];
    let witness = format!(
        r#""isscript":false,"iswitness":true,"witness_version":0,"witness_program":"{program}","pubkey":"{KEY}""#
    );
    assert_eq!(
        info_of(Form::Pkh),
        format!(r#"{}"isscript":false,"iswitness":false,"pubkey":"{KEY}","iscompressed":true,{TAIL}"#, head(Form::Pkh))
    );
    assert_eq!(info_of(Form::Wpkh), format!("{}{witness},{TAIL}", head(Form::Wpkh)));
    let embedded =
        format!(r#"{{{witness},"address":"{}","scriptPubKey":"{wpkh}"}}"#, address(&test_key.script(Form::Wpkh)));
    assert_eq!(
        info_of(Form::ShWpkh),
        format!(
            r#"{}"isscript":true,"iswitness":false,"script":"witness_v0_keyhash","hex":"{wpkh}","pubkey":"{KEY}","embedded":{embedded},{TAIL}"#,
            head(Form::ShWpkh)
        )
    );
    assert_eq!(
        info_of(Form::Tr),
        format!(
            r#"{}"isscript":true,"iswitness":true,"witness_version":1,"witness_program":"{}",{TAIL}"#,
            head(Form::Tr),
            &hex(Form::Tr)[4..]
        )
    );
}

#[test]
fn getaddressinfo_has_no_key_of_a_taproot_output_that_a_script_can_spend() {
    let test = Fixture::new();
    let script = test.own(&TestKey::new(1), Form::Tr);
    let told = |test: &Fixture| test.call("getaddressinfo", json!([address(&script)])).unwrap();
    assert_eq!(told(&test)["hdkeypath"], json!("m/84h/1h/0h/0/1"));
    test.wallet(|state| {
        let data = state.scripts.get_mut(&script).and_then(|info| info.solving.taproot.as_mut());
        data.unwrap().merkle_root = Some([1; 32]);
    });
    for key in ["hdkeypath", "hdseedid", "hdmasterfingerprint"] {
        assert_eq!(told(&test).get(key), None, "{key}");
    }
}

#[test]
fn getaddressinfo_of_an_anchor_has_neither_version_nor_program() {
    let test = Fixture::new();
    let told = test.plugin.call_json("getaddressinfo", json!(["bcrt1pfeesnyr2tx"])).unwrap();
    let witness = r#""iswatchonly":false,"isscript":true,"iswitness":true,"ischange":false,"#;
    assert!(told.contains(witness), "{told}");
}

#[test]
fn getaddressinfo_describes_multisig_behind_two_hashes() {
    let test = Fixture::new();
    let key = TestKey::new(1).public.serialize();
    let multisig = ScriptBuf::from_bytes([&[0x51, 33][..], &key, &[0x51, 0xae]].concat());
    let wsh = multisig.to_p2wsh();
    let script = wsh.to_p2sh();
    let mut info = TestKey::new(1).info(Form::Wpkh);
    info.solving.scripts = vec![multisig.clone(), wsh.clone()];
    info.ownership = Ownership::WatchOnly;
    test.wallet(|state| state.scripts.insert(script.clone(), info));
    let answer = test.call("getaddressinfo", json!([address(&script)])).unwrap();
    assert_eq!((&answer["ismine"], &answer["iswatchonly"]), (&json!(false), &json!(true)));
    assert_eq!((&answer["script"], answer.get("hdkeypath")), (&json!("witness_v0_scripthash"), None));
    let embedded = &answer["embedded"];
    assert_eq!(embedded["address"], json!(address(&wsh)));
    assert_eq!((&embedded["script"], &embedded["sigsrequired"]), (&json!("multisig"), &json!(1)));
    assert_eq!(embedded["pubkeys"], json!([KEY]));
    assert_eq!(embedded["hex"], json!(outrigger_sdk::params::encode_hex(multisig.as_bytes())));
}

#[test]
fn getaddressinfo_describes_what_is_not_ours_by_its_text() {
    let test = Fixture::new();
    test.check(
        "getaddressinfo",
        json!(["bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080"]),
        r#"{"address":"bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080","scriptPubKey":"0014751e76e8199196d454941c45d1b3a323f1433bd6","ismine":false,"solvable":false,"iswatchonly":false,"isscript":false,"iswitness":true,"witness_version":0,"witness_program":"751e76e8199196d454941c45d1b3a323f1433bd6","ischange":false,"labels":[]}"#,
    );
    let reason = "Invalid checksum or length of Base58 address (P2PKH or P2SH)";
    test.refuse("getaddressinfo", json!(["garbage"]), -5, reason);
    test.host.wallet.set(None);
    let message = "No wallet is loaded. Load a wallet using loadwallet or create a new one with createwallet. (Note: A default wallet is no longer automatically created)";
    test.refuse("getaddressinfo", json!(["garbage"]), -18, message);
}

use outrigger_sdk::service::wallet::{HdKey, Import};

use super::*;

const TPRV: &str =
    "tprv8ZgxMBicQKsPd7Uf69XL1XwhmjHopUGep8GuEiJDZmbQz6o58LninorQAfcKZWARbtRtfnLcJ5MQ2AtHcQJCCRUcMRvmDUjyEmNUWwx8UbK";
const TPUB: &str =
    "tpubD6NzVbkrYhZ4WaWSyoBvQwbpLkojyoTZPRsgXELWz3Popb3qkjcJyJUGLnL4qHHoQvao8ESaAstxYSnhyswJ76uZPStJRJCTKvosUCJZL5B";

/// A wallet with a master key of these descriptors.
fn with_key(descriptors: &[(&str, bool)]) -> Fixture {
    let test = Fixture::new();
    let descriptors = descriptors.iter().map(|(text, active)| ((*text).to_owned(), *active)).collect();
    let (xpub, xprv) = (TPUB.to_owned(), Some(Secret::new(TPRV.into())));
    test.wallet(|state| state.hd_keys.push(HdKey { xpub, has_private: true, xprv, descriptors }));
    test
}

#[test]
fn gethdkeys_tells_private_keys_only_where_asked() {
    let test = with_key(&[("b", true), ("a", false)]);
    let all = r#""descriptors":[{"desc":"a","active":false},{"desc":"b","active":true}]"#;
    test.check("gethdkeys", json!([]), &format!(r#"[{{"xpub":"{TPUB}","has_private":true,{all}}}]"#));
    let active = r#""descriptors":[{"desc":"b","active":true}]"#;
    let told = format!(r#"[{{"xpub":"{TPUB}","has_private":true,"xprv":"{TPRV}",{active}}}]"#);
    test.check("gethdkeys", json!([{"active_only": true, "private": true}]), &told);
    test.refuse("gethdkeys", json!([{"private": 1}]), -3, "JSON value of type number is not of expected type bool");
    test.info(|info| info.locked = true);
    let message = "Error: Please enter the wallet passphrase with walletpassphrase first.";
    test.refuse("gethdkeys", json!([{"private": true}]), -13, message);
    let test = with_key(&[("a", false)]);
    test.check("gethdkeys", json!([{"active_only": true}]), "[]");
}

#[test]
fn createwalletdescriptor_adds_what_the_wallet_lacks() {
    let test = with_key(&[("a", true)]);
    test.info(|info| info.blank = true);
    let added = test.call("createwalletdescriptor", json!(["bech32m"])).unwrap();
    test.info(|info| assert!(!info.blank));
    let added: Vec<String> = serde_json::from_value(added["descs"].clone()).unwrap();
    assert!(added[0].starts_with("tr([0c5f9a1e/86h/1h/0h]tpub") && added[0].contains("/0/*)#"), "{added:?}");
    assert!(added[1].contains("/1/*)#"), "{added:?}");
    let imports = test.wallet(|state| std::mem::take(&mut state.imports));
    let imported = |import: &Import| match import {
        Import::Descriptor { descriptor } => {
            (descriptor.text.expose().to_owned(), descriptor.active, descriptor.internal)
        }
        _ => panic!("a descriptor"),
    };
    let expected = |side: u8| (format!("tr({TPRV}/86h/1h/0h/{side}/*)"), true, Some(side == 1));
    assert_eq!(imports.iter().map(imported).collect::<Vec<_>>(), [expected(0), expected(1)]);
    test.wallet(|state| state.descriptors = added.iter().map(|text| descriptor(text, Some(false))).collect());
    test.refuse("createwalletdescriptor", json!(["bech32m"]), -4, "Descriptor already exists");
    let one = test.call("createwalletdescriptor", json!(["legacy", {"internal": true, "hdkey": TPUB}])).unwrap();
    assert_eq!(one["descs"].as_array().unwrap().len(), 1);
    test.refuse("createwalletdescriptor", json!(["x"]), -5, "Unknown address type 'x'");
    let message = "Unable to parse HD key. Please provide a valid xpub";
    test.refuse("createwalletdescriptor", json!(["legacy", {"hdkey": "x"}]), -5, message);
    test.wallet(|state| state.hd_keys[0].xprv = None);
    let message = format!("Private key for {TPUB} is not known");
    test.refuse("createwalletdescriptor", json!(["legacy", {"hdkey": TPUB}]), -5, &message);
    test.wallet(|state| state.hd_keys.clear());
    let message = "Unable to determine which HD key to use from active descriptors. Please specify with 'hdkey'";
    test.refuse("createwalletdescriptor", json!(["legacy"]), -5, message);
}

#[test]
fn upgradewallet_changes_nothing() {
    let test = Fixture::new();
    let versions = r#""wallet_name":"w","previous_version":169900,"current_version":169900"#;
    let latest = format!(r#"{{{versions},"result":"Already at latest version. Wallet version unchanged."}}"#);
    for version in [json!([]), json!([0]), json!([170_000])] {
        test.check("upgradewallet", version, &latest);
    }
    let message = "Cannot downgrade wallet from version 169900 to version 7. Wallet version unchanged.";
    test.check("upgradewallet", json!([7]), &format!(r#"{{{versions},"error":"{message}"}}"#));
}

#[test]
fn dumpprivkey_finds_the_key_of_each_form() {
    let test = Fixture::new();
    let key = TestKey::new(1);
    let wif = "cMceqPhYTG9BHtGmCP9tDWVzdPzQ79tuQuXz4Q7ehGZTnHShTdMU";
    for form in [Form::Pkh, Form::ShWpkh, Form::Wpkh] {
        let script = test.own(&key, form);
        let told = test.call("dumpprivkey", json!([address(&script)])).unwrap();
        let parsed = bitcoin::PrivateKey::from_wif(told.as_str().unwrap()).unwrap();
        assert_eq!((parsed.inner, told.as_str().unwrap().len()), (key.secret, wif.len()), "{form:?}");
    }
    let taproot = address(&test.own(&key, Form::Tr));
    test.refuse("dumpprivkey", json!([taproot]), -3, "Address does not refer to a key");
    let other = address(&TestKey::new(2).script(Form::ShWpkh));
    test.refuse("dumpprivkey", json!([other]), -3, "Address does not refer to a key");
    let other = address(&TestKey::new(2).script(Form::Pkh));
    test.refuse("dumpprivkey", json!([other]), -4, &format!("Private key for address {other} is not known"));
    test.refuse("dumpprivkey", json!(["x"]), -5, "Invalid Bitcoin address");
    test.info(|info| info.locked = true);
    let message = "Error: Please enter the wallet passphrase with walletpassphrase first.";
    test.refuse("dumpprivkey", json!(["x"]), -13, message);
}

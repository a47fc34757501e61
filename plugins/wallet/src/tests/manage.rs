use super::*;

const EMPTY: &str = "Empty string given as passphrase, wallet will not be encrypted.";

#[test]
fn createwallet_loadwallet_and_unloadwallet_have_no_warning_key() {
    let test = Fixture::new();
    test.check("createwallet", json!(["fresh"]), r#"{"name":"fresh"}"#);
    test.check("listwallets", json!([]), r#"["fresh"]"#);
    test.check("listwalletdir", json!([]), r#"{"wallets":[{"name":"fresh"}]}"#);
    test.check("unloadwallet", json!(["fresh", false]), r#"{}"#);
    test.check("listwallets", json!([]), "[]");
    test.check("loadwallet", json!(["fresh", true]), r#"{"name":"fresh"}"#);
    test.check("unloadwallet", json!([]), r#"{}"#);
}

#[test]
fn createwallet_options_reach_the_host() {
    let test = Fixture::new();
    test.call("createwallet", json!(["pub", true, true, null, true, null, null, false])).unwrap();
    test.info(|info| assert!(!info.private_keys_enabled && info.blank));
}

#[test]
fn createwallet_warns_of_an_empty_passphrase_in_warnings() {
    let test = Fixture::new();
    let expect = format!(r#"{{"name":"a","warnings":["{EMPTY}"]}}"#);
    test.check("createwallet", json!(["a", false, false, ""]), &expect);
    test.check("createwallet", json!(["b", false, false, "secret"]), r#"{"name":"b"}"#);
    // Without private keys an empty passphrase is no passphrase.
    test.check("createwallet", json!(["a", true, false, ""]), &expect);
}

#[test]
fn createwallet_refuses_options_that_no_wallet_can_have() {
    let test = Fixture::new();
    let message = "Passphrase provided but private keys are disabled. A passphrase is only used to encrypt private keys, so cannot be used for wallets with private keys disabled.";
    test.refuse("createwallet", json!(["a", true, false, "pw"]), -4, message);
    let message = "Compiled without external signing support (required for external signing)";
    test.refuse("createwallet", json!(["a", true, false, null, null, true, null, true]), -4, message);
    test.check("listwallets", json!([]), r#"["w"]"#);
}

#[test]
fn unloadwallet_needs_a_name() {
    let test = Fixture::new();
    test.host.wallet.set(None);
    let message = "Either the RPC endpoint wallet or the wallet name parameter must be provided";
    test.refuse("unloadwallet", json!([]), -8, message);
}

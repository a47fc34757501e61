//! Messages that are signed with a given key, as recorded from bitcoind, and with a wallet's.

use bitcoin::hashes::Hash;
use bitcoin::secp256k1::Secp256k1;
use bitcoin::{Network, PrivateKey, PubkeyHash, ScriptBuf};
use outrigger_sdk::service::wallet::{Ownership, ScriptInfo, SolvingData};
use outrigger_sdk::standard::from_script;
use outrigger_sdk::testing::{StubHost, TestPlugin, WalletState};
use outrigger_sdk::wire::Blob;
use serde_json::json;

use super::{MANIFEST, WIF};
use crate::SigningPlugin;

#[test]
fn signmessagewithprivkey_answers_as_recorded() {
    let plugin: TestPlugin<SigningPlugin> = StubHost::new().start(MANIFEST, json!({}));
    let uncompressed = "91avARGdfge8E4tZfYLoxeJ5sGBdNJQH4kvjJoQFacbgwmaKkrx";
    let signed = "Bi1zgUhc9Vx29ybrszSStIpQXDCHd5pSWObPGIilIzWA5nzHe1nlRbKWKKbmyfu4ZuLrgt8oTMpOypC40TwA14=";
    for (key, first) in [(WIF, "I"), (uncompressed, "H")] {
        let answer = plugin.call("signmessagewithprivkey", json!([key, "h\u{e9}llo\n"]));
        assert_eq!(answer, Ok(json!(format!("{first}{signed}"))));
    }
    // Neither is the key of another network one.
    for key in ["xx", "5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ"] {
        let error = plugin.call("signmessagewithprivkey", json!([key, "hello"])).unwrap_err();
        assert_eq!((error.code.0, &*error.message), (-5, "Invalid private key"));
    }
}

#[test]
fn signmessage_signs_with_the_wallets_key_as_signmessagewithprivkey_does() {
    let host = StubHost::new();
    let key = PrivateKey::from_wif(WIF).unwrap();
    let public_key = key.public_key(&Secp256k1::new());
    let script = ScriptBuf::new_p2pkh(&public_key.pubkey_hash());
    let info = ScriptInfo {
        ownership: Ownership::Spendable,
        solvable: true,
        label: None,
        change: false,
        internal: false,
        timestamp: 0,
        descriptor: String::new(),
        parents: Vec::new(),
        solving: SolvingData { public_keys: vec![Blob(public_key.to_bytes())], ..SolvingData::default() },
        origins: Vec::new(),
    };
    let mut wallet = WalletState::empty("w");
    wallet.scripts.insert(script.clone(), info.clone());
    wallet.keys.push(key.inner);
    let watched = ScriptBuf::new_p2pkh(&PubkeyHash::from_byte_array([7; 20]));
    wallet.scripts.insert(watched.clone(), info);
    host.wallet.set(Some(wallet));
    let plugin: TestPlugin<SigningPlugin> = host.start(MANIFEST, json!({}));
    let address = |script: &ScriptBuf| from_script(script, Network::Regtest).unwrap();
    let signed = plugin.call("signmessage", json!([address(&script), "hello"]));
    assert_eq!(signed, plugin.call("signmessagewithprivkey", json!([WIF, "hello"])));
    let refused = |address: String, code: i32, message: &str| {
        let error = plugin.call("signmessage", json!([address, "hello"])).unwrap_err();
        assert_eq!((error.code.0, error.message.as_str()), (code, message));
    };
    refused("x".into(), -5, "Invalid address");
    refused(address(&script.to_p2sh()), -3, "Address does not refer to key");
    refused(address(&watched), -4, "Private key not available");
    host.wallet.with(|wallet| wallet.info.locked = true).unwrap();
    refused("x".into(), -13, "Error: Please enter the wallet passphrase with walletpassphrase first.");
}

//! Signing by keys of the plugin's own, as a hardware signer does.
#![allow(clippy::unwrap_used, reason = "an example says what it expects by failing")]

use outrigger_sdk::script::TxContext;
use outrigger_sdk::serde_json::{Map, Value, json};
use outrigger_sdk::service::signer::{SignRequest, Signed};
use outrigger_sdk::service::{ErrorKind, ServiceError};
use outrigger_sdk::sign::{KeySource, methods};
use outrigger_sdk::testing::{StubHost, WalletState};
use outrigger_sdk::wire::Blob;
use outrigger_sdk::{Call, Host, Plugin, Reply};

/// A device that is not plugged in.
struct Device;

impl KeySource for Device {
    fn available(&self, public_keys: Vec<Blob>) -> Result<Vec<bool>, ServiceError> {
        Ok(vec![false; public_keys.len()])
    }

    fn sign(&self, _: &TxContext<'_>, _: Vec<SignRequest>) -> Result<Vec<Option<Signed>>, ServiceError> {
        Err(ServiceError::new(ErrorKind::Refused, "The device is not there"))
    }
}

struct DeviceSigning(Host);

impl Plugin for DeviceSigning {
    fn new(host: Host, _: Map<String, Value>) -> Result<Self, String> {
        Ok(Self(host))
    }

    fn call(&self, call: Call<'_>, reply: Reply) {
        let wanted = || reply.is_wanted();
        let answer = match call.method {
            "signrawtransactionwithwallet" => {
                methods::with_wallet(&self.0, call.scope, &call.params, |_| Device, &wanted)
            }
            _ => methods::with_key(&self.0, call.scope, call.params, &wanted),
        };
        reply.send(answer);
    }
}

const MANIFEST: &str = r#"{"id": "device", "version": "1.0.0", "summary": "Signs", "services": ["chain/1", "wallet-read/1"],
    "methods": [{"name": "signrawtransactionwithwallet", "category": "Wallet", "help": "Signs."}]}"#;

fn main() {
    let host = StubHost::new();
    host.wallet.set(Some(WalletState::empty("hot")));
    let plugin = host.start::<DeviceSigning>(MANIFEST, json!({}));

    // One input that spends 50 coins of the key 1, P2PK.
    let key = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
    let tx = format!("0200000001{}0000000000ffffffff0000000000", "11".repeat(32));
    let prevtx = json!({"txid": "11".repeat(32), "vout": 0, "scriptPubKey": format!("21{key}ac")});
    let error = plugin.call("signrawtransactionwithwallet", json!([tx, [prevtx]])).unwrap_err();
    assert_eq!((error.code.0, error.message.as_str()), (-4, "The device is not there"));
}

#[test]
fn example_device_does_what_it_says() {
    main();
}

//! Signing with the plugin's own keys, as a hardware signer does.
#![allow(clippy::unwrap_used, reason = "a broken expectation fails the example")]

use outrigger_sdk::options::NoOptions;
use outrigger_sdk::script::TxContext;
use outrigger_sdk::serde_json::{Value, json};
use outrigger_sdk::service::signer::{SignRequest, Signed};
use outrigger_sdk::service::{ErrorKind, ServiceError};
use outrigger_sdk::sign::KeySource;
use outrigger_sdk::sign::methods::{SigningResult, Unsigned, with_wallet};
use outrigger_sdk::testing::{StubHost, WalletState};
use outrigger_sdk::wire::Blob;
use outrigger_sdk::{Call, Host, Plugin, RpcError, methods, plugin};

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

struct DeviceSigning;

#[plugin(id = "device", summary = "Signs", services = ["chain/1", "wallet-read/1"])]
impl Plugin for DeviceSigning {
    fn new(_: Host, _: NoOptions) -> Result<Self, String> {
        Ok(Self)
    }
}

#[methods(category = "Wallet")]
impl DeviceSigning {
    /// Signs the inputs of a raw transaction with the keys of the device.
    ///
    /// * `hexstring` - The transaction.
    /// * `prevtxs` - Outputs that it spends.
    /// * `sighashtype` - The signature hash type.
    #[method]
    fn signrawtransactionwithwallet(
        call: &Call<'_>,
        #[arg(kind = "hex")] hexstring: &str,
        prevtxs: Option<&[Value]>,
        sighashtype: Option<&str>,
    ) -> Result<SigningResult, RpcError> {
        let unsigned = Unsigned { transaction: hexstring, prevtxs, sighash: sighashtype };
        with_wallet(call.host, call.scope, &unsigned, |_| Device, &|| call.is_wanted())
    }
}

fn main() {
    let host = StubHost::new();
    host.wallet.set(Some(WalletState::empty("hot")));
    let plugin = host.start::<DeviceSigning>(json!({}));

    // One input, which spends a P2PK output of the private key 1.
    let key = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
    let tx = format!("0200000001{}0000000000ffffffff0000000000", "11".repeat(32));
    let prevtx = json!({"txid": "11".repeat(32), "vout": 0, "scriptPubKey": format!("21{key}ac")});
    let error = plugin.call("signrawtransactionwithwallet", json!([tx, [prevtx]])).unwrap_err();
    assert_eq!((error.code.0, error.message.as_str()), (-4, "The device is not there"));
}

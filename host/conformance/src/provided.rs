//! The functions of the services that a plugin provides. They are called as its methods are.

use bitcoin::{Amount, ScriptBuf, TxOut};
use outrigger_sdk::manifest::{Manifest, MethodSpec, ParamSpec, ParamType};
use outrigger_service::json::to_json;
use outrigger_service::provider::{self, KEYS_PROVIDER, KeysQuery, MessageQuery, ProviderBatch, ProviderRequest};
use outrigger_service::signer::{Scheme, SignRequest};
use outrigger_service::wallet::KeyOrigin;
use outrigger_service::wire::{Blob, FunctionShape, Wire};
use serde_json::Value;

use super::protocol::ExtraCall;

/// The generator of secp256k1 as a public key.
const PUBLIC_KEY: [u8; 33] = [
    2, 0x79, 0xbe, 0x66, 0x7e, 0xf9, 0xdc, 0xbb, 0xac, 0x55, 0xa0, 0x62, 0x95, 0xce, 0x87, 0x0b, 0x07, 0x02, 0x9b,
    0xfc, 0xdb, 0x2d, 0xce, 0x28, 0xd9, 0x59, 0xf2, 0x81, 0x5b, 0x16, 0xf8, 0x17, 0x98,
];

/// The functions as methods with one argument.
pub fn methods(manifest: &Manifest) -> Vec<MethodSpec> {
    let argument = ParamSpec {
        name: "message".into(),
        aliases: Vec::new(),
        kind: ParamType::Any,
        required: true,
        default: String::new(),
        help: "wallet keys public_key fingerprint path transaction spent requests key request digest message".into(),
        members: Vec::new(),
    };
    let method = |function: &str| MethodSpec {
        name: format!("{KEYS_PROVIDER}.{function}"),
        params: vec![argument.clone()],
        private_keys: true,
        ..MethodSpec::default()
    };
    let functions = if manifest.provides.is_empty() { &[][..] } else { provider::SHAPE.functions };
    functions.iter().map(|function| method(function.name)).collect()
}

/// A call of each function with a valid message.
pub fn calls(manifest: &Manifest) -> Vec<ExtraCall> {
    if manifest.provides.is_empty() {
        return Vec::new();
    }
    let wallet = || "check".to_owned();
    let key = || KeyOrigin {
        public_key: Blob(PUBLIC_KEY.to_vec()),
        fingerprint: [1, 2, 3, 4],
        path: "m/84h/1h/0h/0/0".into(),
    };
    let scheme = Scheme::SegwitV0 { script_code: ScriptBuf::new() };
    let request = SignRequest { input: 0, public_key: key().public_key, scheme, sighash: 1, annex: None };
    let spent = vec![Some(TxOut { value: Amount::ONE_BTC, script_pubkey: ScriptBuf::new() })];
    let requests = vec![ProviderRequest { key: key(), request, digest: [7; 32] }];
    fn argument(message: &impl Wire) -> Value {
        to_json(message).unwrap_or_default()
    }
    let arguments = [
        argument(&KeysQuery { wallet: wallet(), keys: vec![key()] }),
        argument(&ProviderBatch { wallet: wallet(), transaction: Blob(vec![2, 0, 0, 0]), spent, requests }),
        argument(&MessageQuery { wallet: wallet(), key: key(), message: "a message".into(), digest: [7; 32] }),
    ];
    let call = |(function, argument): (&FunctionShape, Value)| ExtraCall {
        method: format!("{KEYS_PROVIDER}.{}", function.name),
        arguments: Value::Array(vec![argument]).to_string(),
    };
    provider::SHAPE.functions.iter().zip(arguments).map(call).collect()
}

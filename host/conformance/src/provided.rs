//! Presents further calls that a plugin answers as methods, so that the checks make them: the functions of its provided services,
//! and methods that it wraps.

use bitcoin::hex::DisplayHex;
use bitcoin::{Amount, OutPoint, ScriptBuf, TxOut};
use outrigger_sdk::manifest::{Manifest, MethodSpec, ParamSpec, ParamType, WrapperKind};
use outrigger_service::PROVIDED;
use outrigger_service::json::provided_request;
use outrigger_service::policy::{
    Act, JudgedInput, JudgedOutput, JudgedTransaction, Owner, POLICY, PolicyQuery, SavedPolicy,
};
use outrigger_service::provider::{KeysQuery, MessageQuery, ProviderBatch, ProviderRequest};
use outrigger_service::signer::{Scheme, SignRequest};
use outrigger_service::wallet::KeyOrigin;
use outrigger_service::wire::{Blob, ServiceShape, to_bytes};
use serde_json::Value;

use super::protocol::ExtraCall;

/// The generator of secp256k1 as a public key.
const PUBLIC_KEY: [u8; 33] = [
    2, 0x79, 0xbe, 0x66, 0x7e, 0xf9, 0xdc, 0xbb, 0xac, 0x55, 0xa0, 0x62, 0x95, 0xce, 0x87, 0x0b, 0x07, 0x02, 0x9b,
    0xfc, 0xdb, 0x2d, 0xce, 0x28, 0xd9, 0x59, 0xf2, 0x81, 0x5b, 0x16, 0xf8, 0x17, 0x98,
];

fn provided(manifest: &Manifest) -> impl Iterator<Item = &'static ServiceShape> {
    PROVIDED.into_iter().filter(|service| manifest.provides.iter().any(|name| name == service.name))
}

/// The functions of the provided services, as methods with one argument, and methods that the plugin wraps.
pub fn methods(manifest: &Manifest) -> Vec<MethodSpec> {
    let help =
        "wallet keys public_key fingerprint path transaction spent requests key request digest message act user method";
    let method = |name, params| MethodSpec { name, params, private_keys: true, ..MethodSpec::default() };
    let provided = provided(manifest).flat_map(names).map(|name| method(name, vec![argument("message", help)]));
    let wraps = matches!(manifest.wrapper, Some(WrapperKind::Pooled | WrapperKind::Inline));
    let wrapped = [
        ("getblockcount", vec![]),
        ("getblock", vec![argument("blockhash", "The block's hash."), argument("verbosity", "0, 1, 2 or 3.")]),
    ];
    let wrapped = wrapped.into_iter().filter(|_| wraps).map(|(name, params)| method(name.to_owned(), params));
    provided.chain(wrapped).collect()
}

fn argument(name: &str, help: &str) -> ParamSpec {
    ParamSpec {
        name: name.to_owned(),
        aliases: Vec::new(),
        kind: ParamType::Any,
        required: true,
        default: String::new(),
        help: help.to_owned(),
        members: Vec::new(),
    }
}

/// The method names of a service's functions.
fn names(service: &'static ServiceShape) -> impl Iterator<Item = String> {
    service.functions.iter().map(|function| format!("{}.{}", service.name, function.name))
}

/// A call of each function with a valid message.
pub fn calls(manifest: &Manifest) -> Vec<ExtraCall> {
    let of_service = |service: &'static ServiceShape| {
        let messages = if service.name == POLICY { judgements() } else { signatures() };
        let call = |(method, message): (String, Vec<u8>)| {
            let argument = match manifest.binary_messages {
                true => message.to_lower_hex_string().into(),
                false => provided_request(&method, &message).unwrap_or_default(),
            };
            ExtraCall { method, arguments: Value::Array(vec![argument]).to_string() }
        };
        names(service).zip(messages).map(call)
    };
    provided(manifest).flat_map(of_service).collect()
}

fn wallet() -> String {
    "check".into()
}

/// The messages of `keys-provider/1`.
fn signatures() -> [Vec<u8>; 3] {
    let key = || KeyOrigin {
        public_key: Blob(PUBLIC_KEY.to_vec()),
        fingerprint: [1, 2, 3, 4],
        path: "m/84h/1h/0h/0/0".into(),
    };
    let scheme = Scheme::SegwitV0 { script_code: ScriptBuf::new() };
    let request = SignRequest { input: 0, public_key: key().public_key, scheme, sighash: 1, annex: None };
    let requests = vec![ProviderRequest { key: key(), request, digest: [7; 32] }];
    let transaction = Blob(vec![2, 0, 0, 0]);
    [
        to_bytes(&KeysQuery { wallet: wallet(), keys: vec![key()] }),
        to_bytes(&ProviderBatch { wallet: wallet(), transaction, spent: vec![Some(output())], requests }),
        to_bytes(&MessageQuery { wallet: wallet(), key: key(), message: "a message".into(), digest: [7; 32] }),
    ]
}

fn output() -> TxOut {
    TxOut { value: Amount::ONE_BTC, script_pubkey: ScriptBuf::new() }
}

/// The messages of `policy/1`.
fn judgements() -> [Vec<u8>; 3] {
    let input = JudgedInput {
        outpoint: OutPoint::null(),
        output: Some(output()),
        verified: true,
        own: true,
        sighashes: Blob(vec![1]),
    };
    let outputs = vec![JudgedOutput { output: output(), owner: Owner::Foreign, committed: true }];
    let (transaction, gives) = (Blob(vec![2, 0, 0, 0]), Some(Amount::ONE_BTC));
    let act = Act::Sign { transaction: JudgedTransaction { transaction, inputs: vec![input], outputs, gives } };
    [
        to_bytes(&PolicyQuery { wallet: wallet(), user: "check".into(), method: "sendtoaddress".into(), act }),
        to_bytes(&wallet()),
        to_bytes(&SavedPolicy { wallet: wallet(), state: Blob::default() }),
    ]
}

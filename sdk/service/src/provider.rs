//! `keys-provider/1`: keys of wallets that a plugin has, for example in a hardware security module.
//!
//! A plugin implements this service, and the host calls it. The plugin's manifest lists the service under
//! `provides`, the host's setting `wallet.signer` names the plugin, and createwallet with `external_signer` makes a wallet for
//! it. Such a wallet has the descriptors' public keys alone. All methods that sign with the wallet's keys use the plugin.
//!
//! The host asks by calls of methods that no client can call: `keys-provider/1.available`, `.sign` and `.message`. The only
//! argument and the result are messages of this module as JSON ([`crate::json`]).
//!
//! The host verifies each signature. It asks from a thread that waits, holds no lock meanwhile, and gives up at the plugin's
//! deadline. The call is then refused with -4 and the plugin's name.
//!
//! The example `hsm-signer` of the SDK implements it.

use bitcoin::TxOut;
use outrigger_values::{KeyOrigin, RpcError};
use serde_json::Value;

use crate::json::{from_json, to_json};
use crate::signer::SignRequest;
use crate::wire::{Blob, FieldShape, FunctionShape, ServiceShape, Shape, Wire, wire_struct};

/// The service's name in manifests.
pub const KEYS_PROVIDER: &str = "keys-provider/1";

wire_struct! {
    /// Keys that a wallet's descriptors derive.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct KeysQuery {
        /// The wallet's name.
        pub wallet: String,
        /// The keys, each with the fingerprint of its master key and the path from there, such as `m/84h/1h/0h/0/5`.
        pub keys: Vec<KeyOrigin>,
    }
}

wire_struct! {
    /// Signatures that are wanted of one transaction.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct ProviderBatch {
        /// The wallet's name.
        pub wallet: String,
        /// The transaction, without scriptSigs and witnesses.
        pub transaction: Blob,
        /// The outputs that it spends, in the order of its inputs; none where one is not known.
        pub spent: Vec<Option<TxOut>>,
        /// What to sign.
        pub requests: Vec<ProviderRequest>,
    }
}

wire_struct! {
    /// A signature that is wanted.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct ProviderRequest {
        /// The key.
        pub key: KeyOrigin,
        /// The input, the scheme and the sighash byte. The public key is the one in the script.
        pub request: SignRequest,
        /// The digest, as the host computed it from the transaction.
        pub digest: [u8; 32],
    }
}

wire_struct! {
    /// A message to be signed (signmessage).
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct MessageQuery {
        /// The wallet's name.
        pub wallet: String,
        /// The key.
        pub key: KeyOrigin,
        /// The message.
        pub message: String,
        /// The digest, as the host computed it from the message.
        pub digest: [u8; 32],
    }
}

/// The service as its documentation shows it. Each function has one argument.
pub const SHAPE: ServiceShape = {
    const fn function(
        name: &'static str,
        docs: &'static [&'static str],
        request: &'static [FieldShape],
        response: &'static Shape,
    ) -> FunctionShape {
        FunctionShape { name, docs, since: 0, request, response }
    }
    const fn argument(shape: &'static Shape) -> FieldShape {
        FieldShape { name: "message", docs: &[], since: 0, shape }
    }
    ServiceShape {
        name: KEYS_PROVIDER,
        docs: &[
            " Keys of wallets that a plugin has. The host calls the plugin's method `keys-provider/1.FUNCTION`. The message is the only parameter, by position.",
        ],
        functions: &[
            function(
                "available",
                &[" Which of these keys the plugin has."],
                &[argument(KeysQuery::SHAPE)],
                <Vec<bool>>::SHAPE,
            ),
            function(
                "sign",
                &[
                    " Signs each request; null for a key that the plugin does not have. ECDSA: DER with low S; Schnorr: 64 bytes; without the sighash byte. For `taproot_key`, the key is tweaked (BIP 341).",
                ],
                &[argument(ProviderBatch::SHAPE)],
                <Vec<Option<Blob>>>::SHAPE,
            ),
            function(
                "message",
                &[
                    " Signs a message: the recovery id (0 to 3), then the 64 bytes of the compact form; null without the key.",
                ],
                &[argument(MessageQuery::SHAPE)],
                <Option<Blob>>::SHAPE,
            ),
        ],
    }
};

/// The keys of wallets, in a plugin.
pub trait KeysProvider {
    /// Which of these keys it has, in their order.
    ///
    /// # Errors
    /// The client's call is refused with -4 and the message.
    fn available(&self, query: &KeysQuery) -> Result<Vec<bool>, RpcError>;

    /// Signs each request, in their order; none for a key that it does not have. ECDSA signatures are DER with low S, Schnorr signatures
    /// have 64 bytes, both without the sighash byte. For [`crate::signer::Scheme::TaprootKey`] the key is tweaked (BIP 341).
    ///
    /// # Errors
    /// As [`Self::available`].
    fn sign(&self, batch: &ProviderBatch) -> Result<Vec<Option<Blob>>, RpcError>;

    /// Signs a message: the recovery id (0 to 3), then the 64 bytes of the compact form. None without the key.
    ///
    /// # Errors
    /// As [`Self::available`].
    fn message(&self, query: &MessageQuery) -> Result<Option<Blob>, RpcError>;
}

/// Answers a call of the host: the function's name, and its only argument.
///
/// # Errors
/// An unknown function, an argument that is no such message, and the errors of the plugin.
pub fn provide(provider: &dyn KeysProvider, function: &str, argument: &Value) -> Result<Value, RpcError> {
    fn read<T: Wire>(argument: &Value) -> Result<T, RpcError> {
        from_json(argument).map_err(|error| RpcError::internal(error.to_string()))
    }
    Ok(match function {
        "available" => to_json(&provider.available(&read(argument)?)?)?,
        "sign" => to_json(&provider.sign(&read(argument)?)?)?,
        "message" => to_json(&provider.message(&read(argument)?)?)?,
        _ => return Err(RpcError::no_method(function)),
    })
}

//! `verifymessage` and `createmultisig`, which need no wallet.

use bitcoin::hashes::Hash;
use outrigger_sdk::service::wallet::AddressType;
use outrigger_sdk::sign::message_signer;
use outrigger_sdk::standard::{ScriptKind, classify, multisig, to_script};
use outrigger_sdk::{Call, RpcError, methods, typed};
use serde_json::Value;

use crate::ChainPlugin;

#[methods(category = "Util", inline)]
impl ChainPlugin {
    /// Tells whether the key of a P2PKH address signed a message.
    ///
    /// * `address` - The address.
    /// * `signature` - The signature from signmessage, in Base64.
    /// * `message` - The message.
    ///
    /// # Result
    /// true|false    (boolean)
    ///
    /// # Example
    /// "mpQnSsk7PVuTePkLVuukdtzPtqkhFBRhEW" "signature" "message"
    #[method]
    fn verifymessage(call: &Call<'_>, address: &str, signature: &str, message: &str) -> Result<bool, RpcError> {
        let script = to_script(address, call.network()?).map_err(|_| RpcError::not_found("Invalid address"))?;
        let ScriptKind::PubKeyHash { hash } = classify(&script) else {
            return Err(RpcError::type_error("Address does not refer to key"));
        };
        let signer = message_signer(signature, message)?;
        Ok(signer.is_some_and(|signer| signer.to_byte_array() == *hash))
    }

    /// Makes the script, the address and the descriptor of a multisig output.
    ///
    /// * `nrequired` - The number of required signatures.
    /// * `keys` - The public keys in hexadecimal.
    /// * `address_type` - legacy, p2sh-segwit or bech32.
    ///
    /// # Result
    /// {"address": "address", "redeemScript": "hex", "descriptor": "descriptor", "warnings": ["text", ...]}    (json
    /// object) warnings are present if an uncompressed key rules out the address type.
    ///
    /// # Example
    /// 2 '["03789ed0bb717d88f7d321a368d905e7430207ebbd82bd342cf11ae157a7ace5fd","03dbc6764b8884a92e871274b87583e6d5c2a58819473e17e107ef3f6aa5a61626"]'
    #[method]
    fn createmultisig(
        call: &Call<'_>,
        nrequired: i32,
        keys: &[Value],
        #[arg(default = "legacy")] address_type: &str,
    ) -> Result<Value, RpcError> {
        let key = |value| multisig::public_key(typed::text(value)?);
        let keys: Vec<Vec<u8>> = keys.iter().map(key).collect::<Result<_, _>>()?;
        multisig::multisig(nrequired, &keys, self::address_type(address_type)?, call.network()?)
    }
}

fn address_type(name: &str) -> Result<AddressType, RpcError> {
    match AddressType::named(name) {
        Some(AddressType::Bech32m) => {
            Err(RpcError::not_found("createmultisig cannot create bech32m multisig addresses"))
        }
        Some(kind) => Ok(kind),
        None => Err(RpcError::not_found(format!("Unknown address type '{name}'"))),
    }
}

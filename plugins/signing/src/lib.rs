//! The operation group `signing`: signs raw transactions and messages with the keys of a request or of the host's
//! wallets.
//!
//! Invariants: keys never appear in answers or in the log. The SDK implements the methods for raw transactions
//! ([`outrigger_sdk::sign::methods`]), so that a plugin with another key store needs only its own key source.

#[cfg(test)]
mod tests;

use bitcoin::hashes::{Hash, hash160};
use bitcoin::secp256k1::constants::PUBLIC_KEY_SIZE;
use outrigger_sdk::methods::SecretTexts;
use outrigger_sdk::options::NoOptions;
use outrigger_sdk::sign::methods::{SigningResult, Unsigned, combine, with_key, with_wallet};
use outrigger_sdk::sign::{WalletKeys, WifKey, message_signature, sign_message};
use outrigger_sdk::standard::{ScriptKind, address, classify};
use outrigger_sdk::wire::Secret;
use outrigger_sdk::{Call, Host, Plugin, RpcError, RpcErrorCode, methods, plugin};
use serde_json::Value;

pub struct SigningPlugin;

#[plugin(
    id = "signing",
    summary = "Signs raw transactions and messages, with the keys in a request or with a wallet's keys.",
    services = ["chain/1"],
    optional = ["mempool/1", "wallet-read/1", "signer/1", "log/1"],
    restartable
)]
impl Plugin for SigningPlugin {
    fn new(_: Host, _: NoOptions) -> Result<Self, String> {
        Ok(Self)
    }
}

#[methods(inline)]
impl SigningPlugin {
    /// Signs the inputs of a raw transaction with the given private keys only.
    ///
    /// The spent outputs come from the mempool and the chain. prevtxs adds other outputs, and the scripts of script hashes.
    /// Existing signatures stay if they verify.
    ///
    /// * `hexstring` - The transaction.
    /// * `privkeys` - Private keys in wallet import format.
    /// * `prevtxs` (default: null) - Spent outputs, each an object with txid, vout, scriptPubKey, redeemScript (for P2SH),
    ///   witnessScript (for P2WSH, also in P2SH) and amount (for witness inputs).
    /// * `sighashtype` (default: DEFAULT for taproot inputs, ALL for others) - The signature hash type: DEFAULT, ALL, NONE, SINGLE,
    ///   ALL|ANYONECANPAY, NONE|ANYONECANPAY or SINGLE|ANYONECANPAY.
    ///
    /// # Result
    /// {"hex": "hex", "complete": true|false, "errors": [{...}, ...]}    (json object) hex: the transaction with its signatures. complete:
    /// whether every input verifies. errors: an object for each input that does not verify, with txid, vout, witness, scriptSig,
    /// sequence and error.
    ///
    /// # Example
    /// "020000000001..." "[\"cSfcV...\"]"
    #[method(category = "Rawtransactions", private_keys)]
    fn signrawtransactionwithkey(
        call: &Call<'_>,
        #[arg(kind = "hex")] hexstring: &str,
        privkeys: SecretTexts<'_>,
        prevtxs: Option<&[Value]>,
        sighashtype: Option<&str>,
    ) -> Result<SigningResult, RpcError> {
        let unsigned = Unsigned { transaction: hexstring, prevtxs, sighash: sighashtype };
        with_key(call.host, call.scope, &unsigned, &privkeys, &|| call.is_wanted())
    }

    /// Signs the inputs of a raw transaction with the wallet's keys. An encrypted wallet must be unlocked with walletpassphrase
    /// first.
    ///
    /// The spent outputs come from the mempool and the chain. prevtxs adds other outputs. Existing signatures stay if they verify.
    ///
    /// * `hexstring` - The transaction.
    /// * `prevtxs` (default: null) - Spent outputs, each an object with txid, vout, scriptPubKey and amount (for witness inputs).
    ///   The scripts of script hashes come from the wallet.
    /// * `sighashtype` (default: DEFAULT for taproot inputs, ALL for others) - The signature hash type: DEFAULT, ALL, NONE, SINGLE,
    ///   ALL|ANYONECANPAY, NONE|ANYONECANPAY or SINGLE|ANYONECANPAY.
    ///
    /// # Result
    /// {"hex": "hex", "complete": true|false, "errors": [{...}, ...]}    (json object) hex: the transaction with its signatures. complete:
    /// whether every input verifies. errors: an object for each input that does not verify, with txid, vout, witness, scriptSig,
    /// sequence and error.
    ///
    /// # Example
    /// "020000000001..."
    #[method(category = "Wallet", private_keys)]
    fn signrawtransactionwithwallet(
        call: &Call<'_>,
        #[arg(kind = "hex")] hexstring: &str,
        prevtxs: Option<&[Value]>,
        sighashtype: Option<&str>,
    ) -> Result<SigningResult, RpcError> {
        let unsigned = Unsigned { transaction: hexstring, prevtxs, sighash: sighashtype };
        let keys = |scripts| WalletKeys::new(&*call.host.signer, call.scope, scripts);
        with_wallet(call.host, call.scope, &unsigned, keys, &|| call.is_wanted())
    }

    /// Combines the signatures of several copies of a transaction.
    ///
    /// The spent outputs come from the mempool and the chain.
    ///
    /// * `txs` - The copies in hexadecimal. Everything except the signatures comes from the first copy.
    ///
    /// # Result
    /// "hex"    (string) The transaction with all signatures.
    ///
    /// # Example
    /// "[\"0200...\", \"0200...\"]"
    #[method(category = "Rawtransactions")]
    fn combinerawtransaction(call: &Call<'_>, txs: &[Value]) -> Result<String, RpcError> {
        combine(call.host, call.scope, txs, &call.rules, &|| call.is_wanted())
    }

    /// Signs a message with a private key. The signature verifies against the P2PKH address of the key.
    ///
    /// * `privkey` - The private key in wallet import format.
    /// * `message` - The message.
    ///
    /// # Result
    /// "signature"    (string) The signature in Base64, for verifymessage.
    ///
    /// # Example
    /// "cSfcV..." "my message"
    #[method(category = "Util", private_keys)]
    fn signmessagewithprivkey(call: &Call<'_>, privkey: Secret, message: &str) -> Result<String, RpcError> {
        let key = WifKey::parse(privkey.expose(), call.network()?.into());
        let key = key.map_err(|error| RpcError::not_found(error.to_string()))?;
        sign_message(&key, message).ok_or_else(|| RpcError::not_found("Sign failed"))
    }

    /// Signs a message with the private key of an address of the wallet (P2PKH). An encrypted wallet must be unlocked with
    /// walletpassphrase first.
    ///
    /// * `address` - The address.
    /// * `message` - The message.
    ///
    /// # Result
    /// "signature"    (string) The signature in Base64, for verifymessage.
    ///
    /// # Example
    /// "mrX9vMRYLfVy1BnZbc5gZjuyaqH3ZW2ZHz" "my message"
    #[method(category = "Wallet", private_keys)]
    fn signmessage(call: &Call<'_>, address: &str, message: String) -> Result<String, RpcError> {
        let (host, scope) = (call.host, call.scope);
        call.wallet()?.check_unlocked()?;
        let script = address::to_script(address, call.network()?);
        let script = script.map_err(|_| RpcError::not_found("Invalid address"))?;
        let ScriptKind::PubKeyHash { hash } = classify(&script) else {
            return Err(RpcError::type_error("Address does not refer to key"));
        };
        let known = host.wallet.scripts(scope, vec![script.clone()])?.pop().flatten();
        let keys = known.map(|known| known.solving.public_keys).unwrap_or_default();
        let key = keys.into_iter().find(|key| hash160::Hash::hash(key).as_byte_array() == hash);
        let unavailable = || RpcError::new(RpcErrorCode::WALLET, "Private key not available");
        let public_key = key.ok_or_else(unavailable)?;
        let compressed = public_key.len() == PUBLIC_KEY_SIZE;
        let signature = host.signer.sign_message(scope, script, public_key, message)?.ok_or_else(unavailable)?;
        message_signature(&signature, compressed).ok_or_else(|| RpcError::not_found("Sign failed"))
    }
}

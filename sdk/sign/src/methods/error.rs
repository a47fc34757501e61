//! The errors of signing requests, with bitcoind's codes and messages.

use crate::{InputError, SighashNameError, SignError, WifError};
use bitcoin::{Script, ScriptBuf, TxOut};
use outrigger_service::{ErrorKind, ServiceError};
use outrigger_standard::asm;
use outrigger_values::RpcError;
use outrigger_values::RpcErrorCode;
use outrigger_values::amount;
use outrigger_values::params;

/// The number of hex digits of a script that an error shows.
const SHOWN_SCRIPT_DIGITS: usize = 30;

/// Why a request is refused.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum SigningError {
    /// An argument, or a member of `prevtxs`, has a wrong type or form.
    #[error("{0}")]
    Argument(RpcError),
    /// The text is no transaction.
    #[error("TX decode failed. Make sure the tx has at least one input.")]
    Transaction,
    /// The text at this index is no transaction.
    #[error("TX decode failed for tx {0}. Make sure the tx has at least one input.")]
    Undecodable(usize),
    /// There are no transactions to combine.
    #[error("Missing transactions")]
    NothingToCombine,
    /// A transaction to combine spends an unknown output.
    #[error("{}", InputError::NotFound)]
    UnknownInput,
    /// A private key is invalid, or for another network.
    #[error("{0}")]
    PrivateKey(#[from] WifError),
    /// The signature hash type is unknown.
    #[error("{0}")]
    Sighash(#[from] SighashNameError),
    /// An element of `prevtxs` is not an object.
    #[error("expected object with {{\"txid'\",\"vout\",\"scriptPubKey\"}}")]
    PrevoutNotObject,
    /// A `vout` is negative.
    #[error("vout cannot be negative")]
    NegativeVout,
    /// The node knows the output with another script.
    #[error("Previous output scriptPubKey mismatch:\n{}\nvs:\n{}", asm(.known), asm(.given))]
    ScriptPubKeyMismatch {
        /// The node's script.
        known: ScriptBuf,
        /// The request's script.
        given: ScriptBuf,
    },
    /// A P2SH or P2WSH output has no script.
    #[error("Missing redeemScript/witnessScript")]
    MissingScript,
    /// The redeem script is not that of the witness script.
    #[error("redeemScript does not correspond to witnessScript")]
    RedeemScriptMismatch,
    /// The script does not hash to the output's.
    #[error("redeemScript/witnessScript does not match scriptPubKey")]
    ScriptMismatch,
    /// An input has a witness, but the amount that it spends is unknown.
    #[error("Missing amount for {}", show_output(.0))]
    MissingAmount(TxOut),
    /// The solver refused, or the client stopped waiting.
    #[error("{0}")]
    Sign(SignError),
    /// A service failed.
    #[error("{0}")]
    Service(#[from] ServiceError),
}

impl From<RpcError> for SigningError {
    fn from(error: RpcError) -> Self {
        Self::Argument(error)
    }
}

impl From<SignError> for SigningError {
    fn from(error: SignError) -> Self {
        match error {
            SignError::Keys(error) => Self::Service(error),
            other => Self::Sign(other),
        }
    }
}

impl From<ErrorKind> for SigningError {
    fn from(kind: ErrorKind) -> Self {
        Self::Service(kind.into())
    }
}

impl From<SigningError> for RpcError {
    fn from(error: SigningError) -> Self {
        let message = error.to_string();
        match error {
            SigningError::Argument(error) => error,
            SigningError::Service(error) => error.into(),
            SigningError::Sighash(error) => error.into(),
            SigningError::UnknownInput => Self::new(RpcErrorCode::VERIFY, message),
            SigningError::Transaction
            | SigningError::Undecodable(_)
            | SigningError::NothingToCombine
            | SigningError::PrevoutNotObject
            | SigningError::NegativeVout
            | SigningError::ScriptPubKeyMismatch { .. } => Self::new(RpcErrorCode::DESERIALIZATION, message),
            SigningError::PrivateKey(_) => Self::new(RpcErrorCode::INVALID_ADDRESS_OR_KEY, message),
            SigningError::MissingScript
            | SigningError::RedeemScriptMismatch
            | SigningError::ScriptMismatch
            | SigningError::Sign(_) => Self::invalid_parameter(message),
            SigningError::MissingAmount(_) => Self::type_error(message),
        }
    }
}

/// An output as in bitcoind's message (`CTxOut::ToString`).
fn show_output(output: &TxOut) -> String {
    let value = amount::to_text(output.value);
    format!("CTxOut(nValue={value}, scriptPubKey={})", script_start(&output.script_pubkey))
}

fn script_start(script: &Script) -> String {
    let mut digits = params::encode_hex(script.as_bytes());
    digits.truncate(SHOWN_SCRIPT_DIGITS);
    digits
}

#[cfg(test)]
mod tests {
    use super::*;
    use bitcoin::Amount;

    #[track_caller]
    fn reads(error: impl Into<SigningError>, code: i32, message: &str) {
        assert_eq!(RpcError::from(error.into()), RpcError::new(RpcErrorCode(code), message));
    }

    #[test]
    fn each_rule_has_its_code_and_message() {
        reads(RpcError::type_error("Missing vout"), -3, "Missing vout");
        reads(SigningError::Transaction, -22, "TX decode failed. Make sure the tx has at least one input.");
        reads(WifError, -5, "Invalid private key");
        reads(SighashNameError("all".to_owned()), -8, "'all' is not a valid sighash parameter.");
        reads(SigningError::PrevoutNotObject, -22, r#"expected object with {"txid'","vout","scriptPubKey"}"#);
        reads(SigningError::NegativeVout, -22, "vout cannot be negative");
        let known = ScriptBuf::from_hex("76a9").unwrap();
        let given = ScriptBuf::from_hex("51").unwrap();
        let mismatch = SigningError::ScriptPubKeyMismatch { known, given };
        reads(mismatch, -22, "Previous output scriptPubKey mismatch:\nOP_DUP OP_HASH160\nvs:\n1");
        reads(SigningError::MissingScript, -8, "Missing redeemScript/witnessScript");
        reads(SigningError::RedeemScriptMismatch, -8, "redeemScript does not correspond to witnessScript");
        reads(SigningError::ScriptMismatch, -8, "redeemScript/witnessScript does not match scriptPubKey");
        reads(SignError::TooLarge, -8, "The transaction is too large to sign");
        reads(ErrorKind::WalletLocked, -13, "Error: Please enter the wallet passphrase with walletpassphrase first.");
        reads(ErrorKind::WalletNotLoaded, -18, "Requested wallet does not exist or is not loaded");
    }

    #[test]
    fn a_missing_amount_shows_the_start_of_the_script() {
        let script_pubkey = ScriptBuf::from_hex("00148573f6fb498f33d94d583f6f1f7f1501d5cc42bc").unwrap();
        let output = TxOut { value: Amount::MAX_MONEY, script_pubkey };
        let shown = "CTxOut(nValue=21000000.00000000, scriptPubKey=00148573f6fb498f33d94d583f6f1f)";
        reads(SigningError::MissingAmount(output), -3, &format!("Missing amount for {shown}"));
        let output = TxOut { value: Amount::from_sat(1), script_pubkey: ScriptBuf::from_hex("51").unwrap() };
        reads(SigningError::MissingAmount(output), -3, "Missing amount for CTxOut(nValue=0.00000001, scriptPubKey=51)");
    }
}

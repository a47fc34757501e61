//! The result of signing methods.

use crate::InputError;
use bitcoin::{Transaction, TxIn, TxOut};
use outrigger_service::signer::UNKNOWN_AMOUNT;
use outrigger_standard::transaction_to_bytes;
use outrigger_values::params::encode_hex;
use outrigger_values::{RpcError, amount};
use serde::Serialize;

/// The number of hex digits of a script that an error shows.
const SHOWN_SCRIPT_DIGITS: usize = 30;

/// The result, with members in bitcoind's order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SigningResult {
    hex: String,
    complete: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<IncompleteInput>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
struct IncompleteInput {
    txid: String,
    vout: u32,
    witness: Vec<String>,
    #[serde(rename = "scriptSig")]
    script_sig: String,
    sequence: u32,
    error: String,
}

impl IncompleteInput {
    fn new(input: &TxIn, error: InputError) -> Self {
        Self {
            txid: input.previous_output.txid.to_string(),
            vout: input.previous_output.vout,
            witness: input.witness.iter().map(encode_hex).collect(),
            script_sig: encode_hex(input.script_sig.as_bytes()),
            sequence: input.sequence.to_consensus_u32(),
            error: error.to_string(),
        }
    }
}

impl SigningResult {
    /// The result for a transaction after signing. `errors` are those of its inputs. Fails if an input has a witness and its spent
    /// amount is unknown: its signatures cannot be valid, even if they were there before.
    pub fn new(tx: &Transaction, spent: &[Option<TxOut>], errors: Vec<Option<InputError>>) -> Result<Self, RpcError> {
        let lacks_amount = tx.input.iter().zip(spent).find_map(|(input, spent)| {
            let spent = spent.as_ref()?;
            (!input.witness.is_empty() && spent.value == UNKNOWN_AMOUNT).then_some(spent)
        });
        if let Some(spent) = lacks_amount {
            return Err(missing_amount(spent));
        }
        let incomplete = tx.input.iter().zip(errors);
        let errors: Vec<IncompleteInput> =
            incomplete.filter_map(|(input, error)| Some(IncompleteInput::new(input, error?))).collect();
        Ok(Self { hex: encode_hex(&transaction_to_bytes(tx)), complete: errors.is_empty(), errors })
    }
}

/// The error for an input with a witness that spends an unknown amount. It shows the output as bitcoind's log does.
fn missing_amount(output: &TxOut) -> RpcError {
    let value = amount::to_text(output.value);
    let mut script = encode_hex(output.script_pubkey.as_bytes());
    script.truncate(SHOWN_SCRIPT_DIGITS);
    RpcError::type_error(format!("Missing amount for CTxOut(nValue={value}, scriptPubKey={script})"))
}

//! Blocks and headers of miners: proposals and submissions.

use outrigger_sdk::params::decode_hex;
use outrigger_sdk::service::chain::Verdict;
use outrigger_sdk::service::{ErrorKind, ServiceError};
use outrigger_sdk::{Call, RpcError, RpcErrorCode, methods};
use serde_json::{Value, json};

use crate::MiningPlugin;

/// The size of a header, in bytes.
const HEADER_SIZE: usize = 80;

/// The bytes of a hexadecimal text; `None` for the empty text and for other text.
fn bytes(hex: &str) -> Option<Vec<u8>> {
    decode_hex(hex).filter(|bytes| !bytes.is_empty())
}

/// Reports an internal failure of the validation as a failed verification.
fn validation_failed(error: ServiceError) -> RpcError {
    match error.kind {
        ErrorKind::Internal | ErrorKind::Storage => RpcError::new(RpcErrorCode::VERIFY, error.to_string()),
        _ => error.into(),
    }
}

/// The result of BIP 22: null for a valid block, otherwise the reason.
fn verdict_json(verdict: Verdict) -> Result<Value, RpcError> {
    Ok(json!(match verdict {
        Verdict::Valid => return Ok(Value::Null),
        Verdict::Duplicate => "duplicate",
        Verdict::DuplicateInvalid => "duplicate-invalid",
        Verdict::DuplicateInconclusive => "duplicate-inconclusive",
        Verdict::Inconclusive => "inconclusive",
        Verdict::NotBestPrevious => "inconclusive-not-best-prevblk",
        Verdict::Invalid { reason, .. } if !reason.is_empty() => return Ok(json!(reason)),
        Verdict::Invalid { .. } => "rejected",
        Verdict::Undecodable => return Err(undecodable_block()),
        Verdict::NoCoinbase => "bad-cb-missing",
    }))
}

/// Checks a proposed block on the tip (BIP 23) by all rules except proof of work. The host does not keep the block.
pub fn propose(call: &Call<'_>, data: &str) -> Result<Value, RpcError> {
    let raw = bytes(data).ok_or_else(undecodable_block)?;
    verdict_json(call.host.chain.check_block(call.scope, raw.into()).map_err(validation_failed)?)
}

#[methods(category = "Mining")]
impl MiningPlugin {
    /// Submits a block (BIP 22).
    ///
    /// * `hexdata` - The block. If its coinbase commits to witnesses without a witness reserved value, the host adds
    ///   32 zero bytes.
    /// * `dummy` (default: ignored) - Ignored, for compatibility with BIP 22.
    ///
    /// # Result
    /// null for a valid, connected block, otherwise the reason (string)
    #[method(long_running)]
    fn submitblock(
        call: &Call<'_>,
        #[arg(kind = "hex")] hexdata: &str,
        _dummy: Option<&Value>,
    ) -> Result<Value, RpcError> {
        let raw = bytes(hexdata).ok_or_else(undecodable_block)?;
        verdict_json(call.host.chain.submit_block(call.scope, raw.into()).map_err(validation_failed)?)
    }

    /// Submits a header with a known previous block.
    ///
    /// * `hexdata` - The header.
    #[method]
    fn submitheader(call: &Call<'_>, #[arg(kind = "hex")] hexdata: &str) -> Result<(), RpcError> {
        let raw = bytes(hexdata).ok_or_else(undecodable_header)?;
        // Bytes after the header are ignored.
        let raw = raw.get(..HEADER_SIZE).ok_or_else(undecodable_header)?.to_vec();
        let verdict = call.host.chain.submit_header(call.scope, raw.into()).map_err(validation_failed)?;
        let reason = match verdict {
            Verdict::Valid | Verdict::Duplicate | Verdict::DuplicateInconclusive | Verdict::Inconclusive => {
                return Ok(());
            }
            Verdict::Undecodable => return Err(undecodable_header()),
            Verdict::Invalid { reason, .. } => reason,
            Verdict::DuplicateInvalid | Verdict::NotBestPrevious | Verdict::NoCoinbase => {
                "duplicate-invalid".to_owned()
            }
        };
        Err(RpcError::new(RpcErrorCode::VERIFY, reason))
    }
}

fn undecodable_block() -> RpcError {
    RpcError::undecodable("Block decode failed")
}

fn undecodable_header() -> RpcError {
    RpcError::undecodable("Block header decode failed")
}

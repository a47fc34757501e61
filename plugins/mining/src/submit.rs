//! Blocks and headers from miners: proposals and submissions.

use bitcoin::BlockHash;
use bitcoin::block::Header;
use bitcoin::consensus::deserialize_partial;
use outrigger_sdk::params::{decode_hex, text};
use outrigger_sdk::service::chain::{BlockRef, Verdict};
use outrigger_sdk::service::{ErrorKind, ServiceError};
use serde_json::{Value, json};

use crate::error::MiningError;
use crate::{Context, Outcome};

/// The bytes of a header.
const HEADER_SIZE: usize = 80;

/// The bytes of a hexadecimal text that is not empty.
fn bytes(hex: &str) -> Option<Vec<u8>> {
    decode_hex(hex).filter(|bytes| !bytes.is_empty())
}

/// What went wrong inside while a block was judged is told as a failed verification.
fn judging_failed(error: ServiceError) -> MiningError {
    match error.kind {
        ErrorKind::Internal | ErrorKind::Storage => MiningError::Validation(error.to_string()),
        _ => error.into(),
    }
}

/// A verdict in BIP 22's words: null for a valid block, else why it is none.
fn verdict_json(verdict: Verdict) -> Outcome {
    let reason = match verdict {
        Verdict::Valid => return Ok(Value::Null),
        Verdict::Duplicate => "duplicate".to_owned(),
        Verdict::DuplicateInvalid => "duplicate-invalid".to_owned(),
        Verdict::DuplicateInconclusive => "duplicate-inconclusive".to_owned(),
        Verdict::Inconclusive => "inconclusive".to_owned(),
        Verdict::NotBestPrevious => "inconclusive-not-best-prevblk".to_owned(),
        Verdict::Invalid { reason, .. } if reason.is_empty() => "rejected".to_owned(),
        Verdict::Invalid { reason, .. } => reason,
        Verdict::Undecodable => return Err(MiningError::BlockUndecodable),
        Verdict::NoCoinbase => "bad-cb-missing".to_owned(),
    };
    Ok(json!(reason))
}

/// Judges a proposed block (BIP 23): all rules but proof of work, on the tip only, and nothing is kept.
pub fn propose(context: &Context<'_>, data: &str) -> Outcome {
    let raw = bytes(data).ok_or(MiningError::BlockUndecodable)?;
    verdict_json(context.host.chain.check_block(context.scope, raw.into()).map_err(judging_failed)?)
}

pub fn submit_block(context: &Context<'_>) -> Outcome {
    let raw = bytes(text(context.params.get(0))?).ok_or(MiningError::BlockUndecodable)?;
    verdict_json(context.host.chain.submit_block(context.scope, raw.into()).map_err(judging_failed)?)
}

pub fn submit_header(context: &Context<'_>) -> Outcome {
    let raw = bytes(text(context.params.get(0))?).ok_or(MiningError::HeaderUndecodable)?;
    let header: Header = deserialize_partial(&raw).map_err(|_| MiningError::HeaderUndecodable)?.0;
    let hash: BlockHash = header.prev_blockhash;
    if context.host.chain.block_info(context.scope, BlockRef::Hash { hash })?.is_none() {
        return Err(MiningError::PreviousHeader(hash));
    }
    let raw = raw.get(..HEADER_SIZE).unwrap_or_default().to_vec();
    match context.host.chain.submit_header(context.scope, raw.into()).map_err(judging_failed)? {
        Verdict::Valid | Verdict::Duplicate | Verdict::DuplicateInconclusive | Verdict::Inconclusive => Ok(Value::Null),
        Verdict::Undecodable => Err(MiningError::HeaderUndecodable),
        Verdict::Invalid { reason, .. } => Err(MiningError::HeaderRefused(reason)),
        Verdict::DuplicateInvalid | Verdict::NotBestPrevious | Verdict::NoCoinbase => {
            Err(MiningError::HeaderRefused("duplicate-invalid".into()))
        }
    }
}

//! What the wallets promise at the traits [`Wallet`] and [`Signer`], each promise with wallets of its own on a scripted node.
//!
//! Not checked here is what only a medium can break (a full disk, a crash between two writes), what takes a clock to pass (that an
//! unlocked wallet locks itself), a rescan that is still under way, the limits of large answers, and of imported keys and
//! scripts the ones that contradict each other: uncompressed keys in witness scripts, and scripts nested deeper than
//! pay-to-script-hash around a witness script.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what it expects by failing")]

mod addresses;
mod coins;
mod history;
mod imports;
mod keys;
mod rescans;
mod sending;
mod states;
mod tester;
mod wallets;

use outrigger_service::ServiceError;
use outrigger_service::wire::WireError;
#[cfg(doc)]
use outrigger_service::{Signer, Wallet};

/// Why a promise counts as broken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure(pub String);

impl From<ServiceError> for Failure {
    fn from(error: ServiceError) -> Self {
        Self(format!("refused with {error}"))
    }
}

impl From<WireError> for Failure {
    fn from(error: WireError) -> Self {
        Self(format!("an answer is damaged: {error}"))
    }
}

impl From<secp256k1::Error> for Failure {
    fn from(error: secp256k1::Error) -> Self {
        Self(format!("a key or signature is none: {error}"))
    }
}

pub type Outcome = Result<(), Failure>;

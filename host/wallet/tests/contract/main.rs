//! The contracts of the traits [`Wallet`] and [`Signer`], each case with its own wallets on a scripted node.
//!
//! Not checked here: a full disk, a crash between two writes, the timed lock of an unlocked wallet, a running rescan,
//! the limits of large answers, and contradictory imports (uncompressed keys in witness scripts, scripts nested deeper
//! than P2SH around a witness script).
#![allow(clippy::unwrap_used, clippy::panic, reason = "a broken expectation fails the test")]

mod addresses;
mod coins;
mod history;
mod imports;
mod keys;
mod made;
mod rescans;
mod sending;
mod states;
mod tester;
mod wallets;

use outrigger_service::ServiceError;
use outrigger_service::wire::WireError;
#[cfg(doc)]
use outrigger_service::{Signer, Wallet};

/// Names the violated rule.
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
        Self(format!("a key or signature is malformed: {error}"))
    }
}

pub type Outcome = Result<(), Failure>;

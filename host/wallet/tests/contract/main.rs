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
mod rescans;
mod sending;
mod states;
mod tester;
mod wallets;

#[cfg(doc)]
use outrigger_service::{Signer, Wallet};

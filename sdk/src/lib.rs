//! Everything that a plugin of Outrigger needs, and what host and plugins share.
//!
//! A plugin is a `cdylib` that implements [`Plugin`] and exports it with [`export_plugin!`]; `manifest.json` beside it says
//! which methods it answers and which services it needs. [`testing`] has a host of canned answers for its unit tests.
//!
//! ```
//! use outrigger_sdk::{Call, Host, Plugin, Reply, RpcError};
//! use serde_json::{Map, Value};
//!
//! struct Greeter {
//!     greeting: String,
//! }
//!
//! impl Plugin for Greeter {
//!     fn new(_host: Host, options: Map<String, Value>) -> Result<Self, String> {
//!         Ok(Self { greeting: options["greeting"].as_str().unwrap_or_default().to_owned() })
//!     }
//!
//!     fn call(&self, call: Call<'_>, reply: Reply) {
//!         let answer = call.params.text(0).map(|name| format!("{}, {name}", self.greeting));
//!         reply.send(answer);
//!     }
//! }
//! ```
//!
//! # What stands where
//!
//! - [`plugin`], [`manifest`], [`params`], [`typed`], [`amount`], [`FeeRate`], [`error`]: writing a plugin.
//! - [`service`]: what the host offers, each service one trait. [`wire`]: how its messages are encoded.
//! - [`script`], [`standard`], [`descriptor`], [`sign`]: Bitcoin's scripts: the engine, their kinds and texts, descriptors,
//!   and the solver that makes scriptSigs and witnesses.
//! - [`psbt`]: partially signed transactions.
//! - [`spend`]: coin selection, fees, and transactions that a wallet's coins pay for.
//! - [`memory`]: wiping of memory that may have held secrets. [`parallel`]: work on all processors. [`testing`]: a host of canned
//!   answers. [`text`]: text of others, made fit for a terminal or a log.
//! - [`abi`]: the C interface between the two.
//!
//! This crate is what plugins depend on, and is little more than the face of the crates beside it, each of one subject. It never
//! depends on the host.

#![warn(missing_docs)]

#[doc(hidden)]
pub mod context;
pub mod entry;
pub mod manifest;
#[doc(hidden)]
pub mod outline;
pub mod plugin;
pub mod testing;

pub use context::{CallContext, descriptor_syntax};
#[doc(inline)]
pub use outrigger_abi as abi;
#[doc(inline)]
pub use outrigger_descriptor as descriptor;
#[doc(inline)]
pub use outrigger_memory::{self as memory, parallel, wipe_freed_memory};
#[doc(inline)]
pub use outrigger_psbt_format as psbt;
#[doc(inline)]
pub use outrigger_script as script;
#[doc(inline)]
pub use outrigger_service::{self as service, Host, wire};
#[doc(inline)]
pub use outrigger_sign as sign;
pub use outrigger_spend as spend;
#[doc(inline)]
pub use outrigger_standard as standard;
#[doc(inline)]
pub use outrigger_values::{FeeRate, RpcError, RpcErrorCode, amount, error, params, text, typed};
pub use plugin::{Call, Plugin, Reply};
// What the SDK's own signatures are made of, so that a plugin meets it in the version that the SDK was built with.
pub use {bitcoin, serde_json};

/// The tutorial, whose examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

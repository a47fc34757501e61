//! Everything that a plugin of Outrigger needs, and what host and plugins share.
//!
//! A plugin is a `cdylib` that implements [`Plugin`] and exports it with [`export_plugin!`]; `manifest.json` beside it says
//! which methods it answers and which services it needs. [`testing`] has a host in memory for its unit tests.
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
//! - [`plugin`], [`manifest`], [`params`], [`amount`], [`error`]: writing a plugin.
//! - [`service`]: what the host offers, each service one trait. [`wire`]: how its messages are encoded.
//! - [`abi`]: the C interface between the two; with the allocator of [`memory`] the only unsafe code of this crate.
//! - [`script`], [`standard`], [`descriptor`], [`sign`]: Bitcoin's scripts: the engine, their kinds and texts, descriptors,
//!   and the solver that makes scriptSigs and witnesses.
//! - [`memory`]: wiping of memory that may have held secrets. [`parallel`]: work on all processors. [`testing`]: a host in memory.
//!   [`text`]: text of others, made fit for a terminal or a log.

pub mod abi;
pub mod amount;
pub mod descriptor;
pub mod error;
pub mod header;
mod json_words;
pub mod manifest;
pub mod memory;
#[doc(hidden)]
pub mod outline;
pub mod parallel;
pub mod params;
pub mod plugin;
pub mod service;
pub mod sign;
pub mod standard;
pub mod testing;
pub mod text;
pub mod wire;

pub use error::{RpcError, RpcErrorCode};
pub use plugin::{Call, Host, Plugin, Reply};
// What the SDK's own signatures are made of, so that a plugin meets it in the version that the SDK was built with.
#[doc(inline)]
pub use outrigger_script as script;
pub use {bitcoin, serde_json};

/// The tutorial, whose examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

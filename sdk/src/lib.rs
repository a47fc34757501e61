//! Everything that a plugin of Outrigger needs, and the types that host and plugins share.
//!
//! A plugin is a `cdylib` that implements [`Plugin`] and exports it with [`export_plugin!`]. [`mod@methods`] describes how its methods are
//! declared, and has an example. [`testing`] has a host of canned answers for its unit tests.
//!
//! # Modules
//!
//! - [`mod@plugin`], [`mod@methods`], [`options`], [`manifest`], [`params`], [`typed`], [`amount`], [`FeeRate`], [`error`]: plugins.
//! - [`service`]: what the host offers, each service one trait. [`wire`]: how its messages are encoded.
//! - [`script`], [`standard`], [`sign`]: Bitcoin's scripts: the engine, their kinds and texts, and the solver that makes scriptSigs
//!   and witnesses.
//! - [`store`]: keeping state. [`mod@net`]: connections that the host makes.
//! - [`wipe_freed_memory!`]: for a plugin that handles private keys or passphrases.
//! - [`testing`]: a host of canned answers. [`text`]: untrusted text, made safe for a terminal or a log.
//! - [`abi`]: the C interface between host and plugin.
//!
//! Plugins depend on this crate. It re-exports crates of one subject each, and never depends on the host.

#![warn(missing_docs)]

// The macros' output names this crate.
extern crate self as outrigger_sdk;

pub mod entry;
pub mod follow;
pub mod manifest;
pub mod methods;
#[cfg(unix)]
pub mod net;
pub mod options;
pub mod plugin;
pub mod reservations;
pub mod store;
pub mod testing;

#[doc(inline)]
pub use outrigger_abi as abi;
#[doc(inline)]
pub use outrigger_macros::{methods, plugin};
#[doc(inline)]
pub use outrigger_memory::wipe_freed_memory;
#[doc(inline)]
pub use outrigger_script as script;
#[doc(inline)]
pub use outrigger_service::{self as service, Host, wire};
#[doc(inline)]
pub use outrigger_sign as sign;
#[doc(inline)]
pub use outrigger_standard as standard;
#[doc(inline)]
pub use outrigger_values::{FeeRate, RpcError, RpcErrorCode, amount, error, params, text, typed};
pub use plugin::{Call, Plugin, Reply};
// Types of these crates are in the SDK's signatures, so plugins must use the SDK's versions of them.
pub use {bitcoin, serde_json};

/// The tutorial, whose examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

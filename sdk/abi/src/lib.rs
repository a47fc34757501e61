//! The binary interface between the host and a plugin: C structs and C functions, and nothing of Rust's layout.
//!
//! Rules that hold for everything here:
//!
//! - Structs only ever grow at their end. A field is read only where it lies within the `struct_size` that the other side
//!   wrote, and a function only where its pointer is not null.
//! - Memory is freed by the side that allocated it: [`OwnedBytes`] carries its own release function.
//! - No panic crosses: every function that the other side calls runs in [`caught`] and answers a status instead.
//! - The host's table, the tables of services and the library stay where they are for the life of the process. After `stop` has
//!   returned the host answers [`ErrorKind::Stale`], and this SDK does not call it any more.
//! - [`Bytes`] that are passed to a function are valid until it returns.
//!
//! This crate is the bottom of the SDK: it moves bytes and knows neither the services and their messages nor what a plugin
//! in Rust looks like. It depends on no other crate of the project; the services' traits stand on it, and so does the host.
//! Beside it only the host's loader and the wiping allocator have `unsafe` code.
#![allow(unsafe_code)]
#![warn(missing_docs)]

mod bytes;
mod entry;
mod forward;
mod host;
pub mod layout;
mod manifest;
mod panics;
mod plugin;
mod serve;
mod service;
mod status;
mod used;

use layout::{Declaration, Layout};

pub use bytes::{Bytes, OwnedBytes, ReleaseFn};
pub use entry::{HostHandle, PluginCode, RawCall, plugin_table};
pub use forward::{Forward, ForwardedService};
pub use host::{HostTable, ReplyFn, ServiceLookupFn, WantedFn};
pub use manifest::{MANIFEST_HEADER_LEN, MANIFEST_MAGIC, ManifestHeader, manifest_bytes};
pub use panics::caught;
pub use plugin::{
    CallFn, CallFrame, CancelFn, CreateFn, DestroyFn, EventFn, InitFn, Instance, PLUGIN_MAGIC, PluginTable, QuiesceFn,
    StartFn, StopFn,
};
pub use serve::{HostCode, host_table};
pub use service::{
    ExportedService, Method, RawService, Response, Service, ServiceFn, ServiceTable, function_index, shim,
};
pub use status::ErrorKind;
pub use used::UsedPlugin;

/// The major version of the interface. Host and plugin must have the same.
pub const ABI_MAJOR: u32 = 1;

/// The minor version of this SDK: what has been added since the major version began.
///
/// - 1 added [`HostTable::wanted`] and [`CallFrame::deadline_ms`].
pub const ABI_MINOR: u32 = 1;

/// Everything that is declared here, each after what it is made of, for the C header.
pub const DECLARATIONS: [Declaration; 10] = [
    Declaration::Struct(Bytes::LAYOUT),
    Declaration::Functions(bytes::FUNCTIONS),
    Declaration::Struct(OwnedBytes::LAYOUT),
    Declaration::Functions(service::FUNCTIONS),
    Declaration::Struct(ServiceTable::LAYOUT),
    Declaration::Functions(host::FUNCTIONS),
    Declaration::Struct(HostTable::LAYOUT),
    Declaration::Struct(CallFrame::LAYOUT),
    Declaration::Functions(plugin::FUNCTIONS),
    Declaration::Struct(PluginTable::LAYOUT),
];

/// The status of success; every other value is a [`ErrorKind`].
pub const STATUS_OK: i32 = 0;

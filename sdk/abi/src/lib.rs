//! The binary interface between host and plugin: C structs and C functions.
//!
//! The rules:
//!
//! - Structs grow only at the end. A field is read only within the other side's `struct_size`, and a function is called
//!   only if its pointer is not null.
//! - The side that allocated memory frees it: [`OwnedBytes`] have their release function.
//! - No panic crosses the boundary: each function that the other side calls runs in [`caught`] and returns a status.
//! - The host's table, the service tables and the library stay in place for the life of the process. After `stop` the
//!   host refuses with [`ErrorKind::Stale`], and this SDK no longer calls it.
//! - [`Bytes`] are valid until the function that gets them returns.
//!
//! This is the lowest crate of the SDK: it passes bytes, and knows neither the services' messages nor the plugin traits. It
//! depends on no other crate of the SDK. ARCHITECTURE.md lists the other files with `unsafe` code.
#![allow(unsafe_code)]
#![warn(missing_docs)]

mod bytes;
mod entry;
mod host;
pub mod layout;
mod manifest;
mod panics;
mod plugin;
mod serve;
mod service;
mod status;
mod used;

use layout::Declaration;

pub use bytes::{Bytes, OwnedBytes, ReleaseFn};
pub use entry::{HostHandle, PluginCode, RawCall, plugin_table};
pub use host::{AskJsonFn, EventJsonFn, HostTable, ReplyFn, ServiceLookupFn, WantedFn};
pub use manifest::{MANIFEST_HEADER_LEN, MANIFEST_MAGIC, ManifestHeader, manifest_bytes};
pub use panics::{caught, keep_panic_hook};
pub use plugin::{
    CallFn, CallFrame, CancelFn, CreateFn, DestroyFn, EventFn, InitFn, Instance, PLUGIN_MAGIC, PluginTable, QuiesceFn,
    StartFn, StopFn,
};
pub use serve::{HostCode, JsonCode, host_table};
pub use service::{ExportedService, RawService, Response, Service, ServiceFn, ServiceTable};
pub use status::{ErrorKind, FAILED, PASS_ON};
pub use used::UsedPlugin;

/// The major version of the interface. Host and plugin must have the same.
pub const ABI_MAJOR: u32 = 1;

/// The minor version of this SDK.
///
/// - 1 added [`HostTable::wanted`], [`HostTable::ask_json`], [`HostTable::event_json`], [`CallFrame::deadline_ms`] and
///   [`CallFrame::release`].
pub const ABI_MINOR: u32 = 1;

/// The declarations for the C header, in order of dependency. C uses `ask_json` instead of a `ServiceTable`.
pub const DECLARATIONS: [Declaration; 8] = [
    Declaration::Struct(Bytes::LAYOUT),
    Declaration::Functions(bytes::FUNCTIONS),
    Declaration::Struct(OwnedBytes::LAYOUT),
    Declaration::Functions(host::FUNCTIONS),
    Declaration::Struct(HostTable::LAYOUT),
    Declaration::Struct(CallFrame::LAYOUT),
    Declaration::Functions(plugin::FUNCTIONS),
    Declaration::Struct(PluginTable::LAYOUT),
];

/// The status of success; every other value is an [`ErrorKind`].
pub const STATUS_OK: i32 = 0;

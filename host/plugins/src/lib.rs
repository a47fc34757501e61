//! Plugins: their files, instances, calls and events.
//!
//! Invariants:
//! - A file is checked before it is opened (`file`, `trust`). The manifest is read from its bytes. The host opens a copy named by the
//!   content's hash, and never unmaps it.
//! - Plugins and routes are one value, which is replaced as a whole (`registry`). A failed change leaves the old value in place.
//! - An instance is destroyed only when no thread is inside it. Its leases keep it alive until its last call has ended.
//! - A token is never reused. A second or late answer is dropped (`calls`). The host answers a call whose plugin drops the reply, faults
//!   or stops.
//! - A plugin gets a share of the pool's threads and queue, one wallet at most half of the threads (`pool`). Code that does not return
//!   costs its thread, which the pool replaces.

mod about;
pub mod answer;
pub mod calls;
pub mod events;
pub mod file;
pub mod grants;
pub mod health;
pub mod instance;
pub mod lane;
pub mod latency;
pub mod linked;
pub mod log;
pub mod memory;
pub mod metrics;
pub mod pool;
pub mod registry;
pub mod secrets;
mod settings;
pub mod trust;

pub use settings::{Isolation, LogLevel, MAX_LINKS, PluginConfig, Reload, Routes, Wrap, seconds};

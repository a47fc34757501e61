//! Plugins: their files, instances, calls and events.

pub mod answer;
pub mod calls;
pub mod events;
pub mod file;
pub mod grants;
pub mod health;
pub mod instance;
pub mod lane;
pub mod latency;
pub mod log;
pub mod memory;
pub mod pool;
pub mod registry;
mod settings;
pub mod trust;

pub use settings::{Isolation, PluginConfig, Sandbox, seconds};

//! Everything a plugin of Outrigger needs.
pub mod abi;
pub mod amount;
pub mod error;
pub mod manifest;
pub mod params;
pub mod plugin;
pub mod service;
pub mod testing;
pub mod wire;

pub use error::{Code, RpcError};
pub use plugin::{Call, Host, Plugin, Reply};

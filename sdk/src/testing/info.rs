//! The host's description of itself for a plugin.

use std::sync::Mutex;

use bitcoin::Network;
use outrigger_service::about::About;
use outrigger_service::{HostInfo, Result, Scope};
use outrigger_standard::release::PRESENT;

use super::lock;

/// Describes a plugin `test` on regtest, without a folder or limits, unless a test changes it.
pub struct StubInfo(Mutex<About>);

impl Default for StubInfo {
    fn default() -> Self {
        let (plugin, network, release) = ("test".to_owned(), Network::Regtest, PRESENT);
        let (folder, deadline_seconds, max_answer_bytes, sockets) = (None, None, None, None);
        let about = About { plugin, network, release, folder, deadline_seconds, max_answer_bytes, sockets };
        Self(Mutex::new(about))
    }
}

impl StubInfo {
    /// Changes the description.
    pub fn set(&self, change: impl FnOnce(&mut About)) {
        change(&mut lock(&self.0));
    }
}

impl HostInfo for StubInfo {
    fn about(&self, _: Scope) -> Result<About> {
        Ok(lock(&self.0).clone())
    }
}

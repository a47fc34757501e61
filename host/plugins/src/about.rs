//! `host/1` of one instance.

use std::sync::Arc;

use outrigger_sdk::standard::release::Rules;
use outrigger_service::about::About;
use outrigger_service::{HostInfo, Result, Scope};

use crate::calls::Calls;
use crate::instance::ReleaseSource;

pub struct AboutService {
    /// Without the release, which `about` adds to each answer.
    pub about: About,
    pub release: ReleaseSource,
    pub calls: Arc<Calls>,
    pub instance: u64,
}

impl HostInfo for AboutService {
    fn about(&self, _: Scope) -> Result<About> {
        Ok(About { release: Rules::of_call((self.release)()).release, ..self.about.clone() })
    }

    fn progress(&self, _: Scope, token: u64, done: u64, total: u64) -> Result<()> {
        self.calls.progressed(self.instance, token, done, total);
        Ok(())
    }
}

//! `host/1` of one instance.

use outrigger_sdk::standard::release::Rules;
use outrigger_service::about::About;
use outrigger_service::{HostInfo, Result, Scope};

use crate::instance::ReleaseSource;

pub struct AboutService {
    /// The release in it is that of the start.
    pub about: About,
    pub release: ReleaseSource,
}

impl HostInfo for AboutService {
    fn about(&self, _: Scope) -> Result<About> {
        Ok(About { release: Rules::of_call((self.release)()).release, ..self.about.clone() })
    }
}

//! Log lines about calls of methods whose group or plugin is off.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::groups;
use outrigger_plugins::registry::{Plugin, Registry};

/// The least time between two log lines about a method.
const SILENCE: Duration = Duration::from_secs(60);

#[derive(Default)]
pub struct Absent {
    /// Methods of manifests only, so their number is limited.
    told: Mutex<HashMap<String, Instant>>,
}

impl Absent {
    pub fn called(&self, method: &str, registry: &Registry) {
        let serving = registry.serving();
        let has = |plugin: &&Plugin| {
            let manifest = plugin.code.as_ref().map(|code| &code.manifest);
            plugin.instance.is_none()
                && manifest.is_some_and(|manifest| manifest.methods.iter().any(|m| m.name == method))
        };
        if let Some(plugin) = serving.plugins.iter().find(has) {
            if self.is_news(method, Instant::now()) {
                tracing::warn!(method, plugin = plugin.id(), "a call of a method whose plugin is stopped");
            }
        } else if let Some(group) = groups::group_of(method)
            && self.is_news(method, Instant::now())
        {
            tracing::warn!(method, group, "a call of a method whose group is off");
        }
    }

    /// Whether the method was not logged recently.
    fn is_news(&self, method: &str, now: Instant) -> bool {
        let mut told = self.told.lock();
        let is_news = told.get(method).is_none_or(|at| now.saturating_duration_since(*at) >= SILENCE);
        if is_news {
            told.insert(method.to_owned(), now);
        }
        is_news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_method_is_logged_once_in_a_while() {
        let (absent, now) = (Absent::default(), Instant::now());
        assert!(absent.is_news("submitblock", now));
        // A repeated call does not extend the silence.
        assert!(!absent.is_news("submitblock", now + SILENCE / 2));
        assert!(absent.is_news("getblock", now + SILENCE / 2));
        assert!(absent.is_news("submitblock", now + SILENCE));
    }
}

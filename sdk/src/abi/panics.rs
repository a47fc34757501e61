//! Panics of a plugin: the host's log hears where one happened, and not what it said, which may hold a secret.

use std::panic::{PanicHookInfo, set_hook};

use crate::service::Scope;
use crate::service::log::{Level, Log, LogClient};

/// From now on panics of this library are written to `log`, and no more to the standard error of the process.
///
/// Every library has a copy of the standard library, and so a hook, of its own.
pub(super) fn report_to(log: LogClient) {
    set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
        let place = info.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
        // A plugin without the log keeps its panics to itself; the host notes the fault all the same.
        let _ = log.write(Scope::NONE, Level::Error, format!("panic at {place}"));
    }));
}

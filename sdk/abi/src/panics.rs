//! Panics of a plugin: it is told where one happened and what it said, which may hold a secret and is copied by nobody here.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook};
use std::sync::{Arc, Mutex, Once, PoisonError};

/// Who is told where a panic happened and, if that is a text, what it said.
pub(super) type Reporter = Arc<dyn Fn(String, Option<&str>) + Send + Sync>;

/// The reporters of this library's instances that have not ended, by the instances' addresses, which are only compared.
static REPORTERS: Mutex<Vec<(usize, Reporter)>> = Mutex::new(Vec::new());

thread_local! {
    /// The instance in which this thread is; 0 for none, as on a thread of the plugin's own.
    static INSIDE: Cell<usize> = const { Cell::new(0) };
}

fn with_reporters<T>(body: impl FnOnce(&mut Vec<(usize, Reporter)>) -> T) -> T {
    // Nothing panics under the lock.
    body(&mut REPORTERS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// From now on panics of this library are told to the reporter of the instance in which they happen, and no more to the
/// standard error of the process.
///
/// Every library has a copy of the standard library, and so a hook, of its own.
pub(super) fn report_to(instance: usize, reporter: Reporter) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| set_hook(Box::new(report)));
    with_reporters(|reporters| reporters.push((instance, reporter)));
}

/// The instance's reporter may not be called any more.
pub(super) fn forget(instance: usize) {
    with_reporters(|reporters| reporters.retain(|(known, _)| *known != instance));
}

/// Runs code that may panic; none when it did. Every function that the other side of the interface calls runs its code in
/// this: a panic that leaves such a function ends the process.
///
/// What the panic carried is never dropped: its own `drop` may panic as well, outside of everything that catches it, and end
/// the process.
pub fn caught<T>(body: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(body)).map_err(std::mem::forget).ok()
}

/// Runs code of an instance on this thread.
pub(super) fn inside<T>(instance: usize, body: impl FnOnce() -> T) -> T {
    struct Outside(usize);
    impl Drop for Outside {
        fn drop(&mut self) {
            INSIDE.set(self.0);
        }
    }
    let _outside = Outside(INSIDE.replace(instance));
    body()
}

fn report(info: &PanicHookInfo<'_>) {
    // A thread of the plugin's own does not say whose it is; any instance's reporter will do. Without one the panic is not told;
    // the host notes the fault all the same.
    let inside = INSIDE.get();
    let reporter = with_reporters(|reporters| {
        let own = reporters.iter().find(|(instance, _)| *instance == inside);
        let any = || reporters.last().filter(|_| inside == 0);
        own.or_else(any).map(|(_, reporter)| reporter.clone())
    });
    let place = info.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
    if let Some(report) = reporter {
        let (text, owned) = (info.payload().downcast_ref::<&str>(), info.payload().downcast_ref::<String>());
        report(format!("panic at {place}"), text.copied().or(owned.map(String::as_str)));
    }
}

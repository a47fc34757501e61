//! Reports a plugin's panics: the place and the text, which may contain a secret and is not copied here.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook};
use std::sync::{Arc, Mutex, Once, PoisonError};

/// Receives the place of a panic and its text, if it has one.
pub(super) type Reporter = Arc<dyn Fn(String, Option<&str>) + Send + Sync>;

/// The reporters of this library's live instances, by address. Addresses are only compared.
static REPORTERS: Mutex<Vec<(usize, Reporter)>> = Mutex::new(Vec::new());

thread_local! {
    /// The instance that this thread runs; 0 if none, as on a thread that the plugin started.
    static INSIDE: Cell<usize> = const { Cell::new(0) };
}

fn with_reporters<T>(body: impl FnOnce(&mut Vec<(usize, Reporter)>) -> T) -> T {
    // Nothing panics under the lock.
    body(&mut REPORTERS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Sends panics in an instance to its reporter, instead of to standard error.
///
/// Each library has its own copy of the standard library, and so its own panic hook.
pub(super) fn report_to(instance: usize, reporter: Reporter) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| set_hook(Box::new(report)));
    with_reporters(|reporters| reporters.push((instance, reporter)));
}

/// Drops an instance's reporter.
pub(super) fn forget(instance: usize) {
    with_reporters(|reporters| reporters.retain(|(known, _)| *known != instance));
}

/// Runs code that may panic; `None` if it did. Each function that the other side calls runs its code in this, since a
/// panic that leaves such a function aborts the process.
///
/// The panic's payload is leaked: its `drop` might panic, too, where nothing catches that.
pub fn caught<T>(body: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(body)).map_err(std::mem::forget).ok()
}

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
    // A thread that the plugin started belongs to no known instance, so any reporter gets its panics. Without a
    // reporter the panic is not shown; the host still notices the fault.
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

//! Reports a plugin's panics: the location, and the text, which may contain a secret and is not copied here.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};

/// Receives the location of a panic and its text, if it has one.
pub(super) type Reporter = Arc<dyn Fn(String, Option<&str>) + Send + Sync>;

/// The reporters of this library's live instances, by address. Addresses are only compared.
static REPORTERS: Mutex<Vec<(usize, Reporter)>> = Mutex::new(Vec::new());

/// Whether panics without a reporter go to the previous panic hook.
static KEEPS_HOOK: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The instance whose code this thread runs; 0 if none, as on a thread that the plugin started.
    static INSIDE: Cell<usize> = const { Cell::new(0) };
}

fn with_reporters<T>(body: impl FnOnce(&mut Vec<(usize, Reporter)>) -> T) -> T {
    // Nothing panics under the lock.
    body(&mut REPORTERS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Sends panics in an instance to its reporter, instead of to standard error.
///
/// Each library has its own copy of the standard library, and so its own panic hook. A host that links plugins shares
/// its hook with them.
pub(super) fn report_to(instance: usize, reporter: Reporter) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let former = take_hook();
        set_hook(Box::new(move |info| {
            let keeps = KEEPS_HOOK.load(Ordering::Relaxed);
            if !report(place_of(info), text_of(info), keeps) && keeps {
                former(info);
            }
        }));
    });
    with_reporters(|reporters| reporters.push((instance, reporter)));
}

/// Leaves panics outside of instances to the current hook. A host that links plugins calls this, so that no plugin's
/// reporter gets the host's panics.
pub fn keep_panic_hook() {
    KEEPS_HOOK.store(true, Ordering::Relaxed);
}

/// Drops an instance's reporter.
pub(super) fn forget(instance: usize) {
    with_reporters(|reporters| reporters.retain(|(known, _)| *known != instance));
}

/// Runs code that may panic; `None` if it did. Each function that the other side calls must run its code in this: a panic
/// that leaves such a function aborts the process.
///
/// The panic's payload is leaked: its `drop` might panic as well, which nothing would catch.
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

/// Passes a panic to the instance's reporter, or to any outside of instances unless `own_only`. Returns whether one got it.
fn report(place: String, text: Option<&str>, own_only: bool) -> bool {
    // A thread that the plugin started belongs to no known instance, so any reporter gets its panics. Without a
    // reporter the panic is not shown; the host still notices the fault.
    let inside = INSIDE.get();
    let reporter = with_reporters(|reporters| {
        let own = reporters.iter().find(|(instance, _)| *instance == inside);
        let any = || reporters.last().filter(|_| inside == 0 && !own_only);
        own.or_else(any).map(|(_, reporter)| reporter.clone())
    });
    reporter.inspect(|report| report(place, text)).is_some()
}

fn place_of(info: &PanicHookInfo<'_>) -> String {
    info.location().map_or_else(|| "panic at an unknown place".to_owned(), |place| format!("panic at {place}"))
}

fn text_of<'a>(info: &'a PanicHookInfo<'_>) -> Option<&'a str> {
    let (text, owned) = (info.payload().downcast_ref::<&str>(), info.payload().downcast_ref::<String>());
    text.copied().or(owned.map(String::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This test raises no panic: hook and reporters are process-wide, so panics of other tests reach them.
    #[test]
    fn an_instance_gets_its_own_panics_and_others_only_where_no_hook_is_kept() {
        const INSTANCE: usize = 7;
        let reported = Arc::new(Mutex::new(Vec::new()));
        let reporter = reported.clone();
        let record = move |_, text: Option<&str>| reporter.lock().unwrap().extend(text.map(str::to_owned));
        with_reporters(|reporters| reporters.push((INSTANCE, Arc::new(record))));
        let panics = |text, own_only| report("panic at a place".to_owned(), Some(text), own_only);
        assert!(!panics("of the host", true));
        assert!(inside(INSTANCE, || panics("of the plugin", true)));
        assert!(inside(INSTANCE, || !inside(0, || panics("of a service", true))));
        assert!(!inside(8, || panics("of a proxy", true)));
        assert!(!inside(8, || panics("of another instance", false)));
        assert!(inside(INSTANCE, || panics("of the plugin again", false)));
        forget(INSTANCE);
        assert!(!inside(INSTANCE, || panics("of a plugin that ended", false)));
        assert_eq!(*reported.lock().unwrap(), ["of the plugin", "of the plugin again"]);
    }

    /// The sources of all functions that plugins call.
    const SOURCES: [(&str, &str); 4] = [
        ("serve.rs", include_str!("serve.rs")),
        ("bytes.rs", include_str!("bytes.rs")),
        ("service.rs", include_str!("service.rs")),
        ("entry.rs", include_str!("entry.rs")),
    ];

    #[test]
    fn every_function_of_the_interface_contains_panics() {
        let mut found = 0;
        for (file, source) in SOURCES {
            let code = source.split("#[cfg(test)]").next().unwrap();
            // The first part precedes the first such function.
            for function in code.split("extern \"C\" fn ").skip(1) {
                let Some((head, body)) = function.split_once(" {\n") else { continue };
                let name = head.split(['(', '<']).next().unwrap();
                // Skips function types and their declaration.
                if name.is_empty() {
                    continue;
                }
                let body = body.split("\n}\n").next().unwrap();
                let contained =
                    ["caught(", "respond(", "guarded(", "with::<P>("].iter().any(|word| body.contains(word));
                assert!(contained, "{file}: {name} lets panics out");
                found += 1;
            }
        }
        assert!(found >= 17, "only {found} functions were found");
    }
}

//! Services as tables of C functions of a single type: scope and request in, status and response out.
//!
//! The single type keeps the unsafe code small, lets tables grow, and lets calls cross a process boundary.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::ErrorKind;
use super::bytes::{Bytes, OwnedBytes};
use super::panics::{caught, inside};

/// A function of a service.
///
/// `scope` is the token of the call that the caller serves, or 0. If the status is 0, `response` has the encoded
/// result; otherwise the status is an [`ErrorKind`], and `response` has the detail as UTF-8.
///
/// Threads: any, from `init` until `stop` returns; one thread at a time per scope. Later the status is
/// [`ErrorKind::Stale`].
///
/// Ownership: `request` stays the caller's. `response` is written, not read; the caller always releases it.
///
/// Lifetime: `request` is read until the function returns; `response` stays valid until it is released. A scope
/// ends when `call` returns for its token.
pub type ServiceFn =
    unsafe extern "C" fn(ctx: *const c_void, scope: u64, request: Bytes, response: *mut OwnedBytes) -> i32;

/// The head of a service's table. Its functions follow, one pointer each, as many as `struct_size` covers.
///
/// The table stays valid for the life of the process, even after the instance that found it has ended.
#[repr(C)]
pub struct ServiceTable {
    /// The size of the table in bytes, functions included.
    pub struct_size: usize,
    /// The first argument of each function.
    pub ctx: *const c_void,
    /// The first function.
    functions: [Option<ServiceFn>; 0],
}

/// A service.
pub trait Service: Send + Sync + 'static {
    /// The number of its functions, at most 128.
    const FUNCTIONS: usize;

    /// Runs the function at `index` of the table for the call with the token `scope`; 0 outside of calls.
    fn run(&self, index: usize, scope: u64, request: &[u8]) -> Response;
}

/// The response of a service's function.
pub struct Response {
    /// 0, or the status of an [`ErrorKind`].
    pub status: i32,
    /// The encoded result, or the detail as UTF-8.
    pub bytes: OwnedBytes,
}

impl From<ErrorKind> for Response {
    fn from(kind: ErrorKind) -> Self {
        Self { status: kind as i32, bytes: OwnedBytes::EMPTY }
    }
}

/// Runs the code of a C function, writes its response and returns its status: after a panic, [`ErrorKind::Internal`].
///
/// # Safety
/// `response` is writable. It has nothing to release yet.
pub(crate) unsafe fn respond(response: *mut OwnedBytes, run: impl FnOnce() -> Result<Response, ErrorKind>) -> i32 {
    // The thread runs a plugin, but `run` is the host's code.
    let answer = inside(0, || caught(run)).unwrap_or(Err(ErrorKind::Internal));
    let Response { status, bytes } = answer.unwrap_or_else(Response::from);
    // SAFETY: the caller's promise.
    unsafe { response.write(bytes) };
    status
}

/// The most functions of a service.
const MAX_FUNCTIONS: usize = 128;

/// The C function at one index of an exported table.
///
/// # Safety
/// `ctx` is of a live [`ExportedService`] with this function; `request` is readable; `response` is writable.
unsafe extern "C" fn function<const INDEX: usize>(
    ctx: *const c_void,
    scope: u64,
    request: Bytes,
    response: *mut OwnedBytes,
) -> i32 {
    // SAFETY: `ctx` points to the implementation that the `ExportedService` keeps, the request is readable until this
    // function returns, and `response` is writable, as the caller promises.
    unsafe {
        respond(response, || {
            let Implementation { run, ended } = &*ctx.cast::<Implementation>();
            if ended.load(Ordering::Acquire) {
                return Err(ErrorKind::Stale);
            }
            Ok(run(INDEX, scope, request.as_slice()))
        })
    }
}

/// A C function for each possible index of a table.
static TABLE_FUNCTIONS: [ServiceFn; MAX_FUNCTIONS] = {
    macro_rules! sixteen {
        ($($base:literal)*) => {
            [$(
                function::<{ $base }>, function::<{ $base + 1 }>, function::<{ $base + 2 }>, function::<{ $base + 3 }>,
                function::<{ $base + 4 }>, function::<{ $base + 5 }>, function::<{ $base + 6 }>,
                function::<{ $base + 7 }>, function::<{ $base + 8 }>, function::<{ $base + 9 }>,
                function::<{ $base + 10 }>, function::<{ $base + 11 }>, function::<{ $base + 12 }>,
                function::<{ $base + 13 }>, function::<{ $base + 14 }>, function::<{ $base + 15 }>,
            )*]
        };
    }
    sixteen!(0 16 32 48 64 80 96 112)
};

/// A table on the heap, at a fixed address: the words of a [`ServiceTable`] with all its functions.
struct TableBox(NonNull<[*const c_void]>);

// SAFETY: the table is never written after `new`, and the target of its `ctx` is `Send + Sync`.
unsafe impl Send for TableBox {}
// SAFETY: as above.
unsafe impl Sync for TableBox {}

impl TableBox {
    fn new(ctx: *const Implementation, functions: usize) -> Self {
        let functions = TABLE_FUNCTIONS.iter().take(functions);
        let struct_size = size_of::<ServiceTable>() + functions.len() * size_of::<Option<ServiceFn>>();
        let head = [std::ptr::without_provenance(struct_size), ctx.cast()];
        let words = head.into_iter().chain(functions.map(|function| *function as *const c_void)).collect();
        // A raw pointer, since moving a `Box` would invalidate pointers derived from it.
        Self(NonNull::from(Box::leak(words)))
    }
}

impl Drop for TableBox {
    fn drop(&mut self) {
        // SAFETY: the pointer is from the box in `new`, and is freed once.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// Runs the function at an index for the call with a token, with the bytes of a request.
type Run = dyn Fn(usize, u64, &[u8]) -> Response + Send + Sync;

/// The target of an exported table's `ctx`.
struct Implementation {
    run: Box<Run>,
    ended: AtomicBool,
}

/// A service that this side implements. Its table is valid as long as this value.
pub struct ExportedService {
    table: TableBox,
    implementation: Arc<Implementation>,
}

impl ExportedService {
    /// Builds the table of `service`.
    pub fn new<S: ?Sized + Service>(service: Arc<S>) -> Self {
        const { assert!(S::FUNCTIONS <= MAX_FUNCTIONS, "MAX_FUNCTIONS must cover the longest service") };
        Self::of(S::FUNCTIONS, move |index, scope, request| service.run(index, scope, request))
    }

    /// Builds a table of `functions` functions, at most 128. Each calls `run` with its index, the token of the call
    /// (0 outside of calls) and the request.
    pub fn of(functions: usize, run: impl Fn(usize, u64, &[u8]) -> Response + Send + Sync + 'static) -> Self {
        let implementation = Arc::new(Implementation { run: Box::new(run), ended: AtomicBool::new(false) });
        Self { table: TableBox::new(Arc::as_ptr(&implementation), functions), implementation }
    }

    /// The table, valid as long as `self`.
    pub fn table(&self) -> *const ServiceTable {
        self.table.0.as_ptr().cast_const().cast()
    }

    /// Ends the service when the instance that uses it ends: from then on, each function fails with [`ErrorKind::Stale`].
    pub fn end(&self) {
        self.implementation.ended.store(true, Ordering::Release);
    }
}

/// A service that the other side implements.
#[derive(Clone)]
pub struct RawService {
    table: *const ServiceTable,
    /// Set once the instance has ended. From then on, no function calls the host.
    ended: Option<Arc<AtomicBool>>,
}

// SAFETY: any thread may call a service's functions.
unsafe impl Send for RawService {}
// SAFETY: as above.
unsafe impl Sync for RawService {}

impl RawService {
    /// A service that is not granted: each function fails with [`ErrorKind::NotGranted`].
    pub const NOT_GRANTED: RawService = RawService { table: std::ptr::null(), ended: None };

    /// The service of a table.
    ///
    /// # Safety
    /// `table` is null, or a host's service table that is valid as long as the result is used.
    pub unsafe fn new(table: *const ServiceTable) -> Self {
        Self { table, ended: None }
    }

    /// The service for an instance. Once `ended` is set, each function fails at once with [`ErrorKind::Stale`].
    pub fn until(self, ended: Arc<AtomicBool>) -> Self {
        Self { ended: Some(ended), ..self }
    }

    /// The number of functions in the host's table; 0 if the service is not granted.
    pub fn function_count(&self) -> usize {
        if self.table.is_null() {
            return 0;
        }
        // SAFETY: `new` promises a table.
        let size = unsafe { (*self.table).struct_size };
        size.saturating_sub(size_of::<ServiceTable>()) / size_of::<Option<ServiceFn>>()
    }

    fn function(&self, index: usize) -> Result<(ServiceFn, *const c_void), ErrorKind> {
        if self.table.is_null() {
            return Err(ErrorKind::NotGranted);
        }
        if self.ended.as_ref().is_some_and(|ended| ended.load(Ordering::Acquire)) {
            return Err(ErrorKind::Stale);
        }
        let end = size_of::<ServiceTable>() + (index + 1) * size_of::<Option<ServiceFn>>();
        // SAFETY: `new` promises a table; nothing beyond `struct_size` is read.
        unsafe {
            if (*self.table).struct_size < end {
                return Err(ErrorKind::Unsupported);
            }
            let functions = self.table.add(1).cast::<Option<ServiceFn>>();
            let function = functions.add(index).read().ok_or(ErrorKind::Unsupported)?;
            Ok((function, (*self.table).ctx))
        }
    }

    /// Calls the function at `index` for the call with the token `scope`; 0 outside of calls.
    pub fn call(&self, index: usize, scope: u64, request: &[u8]) -> Response {
        let (function, ctx) = match self.function(index) {
            Ok(found) => found,
            Err(kind) => return kind.into(),
        };
        let mut bytes = OwnedBytes::EMPTY;
        // SAFETY: function and `ctx` are from one table; the request outlives the call; the response is writable.
        let status = unsafe { function(ctx, scope, Bytes::lend(request), &mut bytes) };
        Response { status, bytes }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::STATUS_OK;

    /// Stores lines, and answers with their lengths.
    #[derive(Default)]
    struct Lines(Mutex<Vec<Vec<u8>>>);

    impl Service for Lines {
        const FUNCTIONS: usize = 1;

        fn run(&self, _: usize, scope: u64, line: &[u8]) -> Response {
            assert!(line != b"panic", "asked for");
            if scope == 7 {
                return Response { status: ErrorKind::Refused as i32, bytes: b"not for seven".to_vec().into() };
            }
            self.0.lock().unwrap().push(line.to_vec());
            Response { status: STATUS_OK, bytes: vec![line.len() as u8].into() }
        }
    }

    fn write(client: &RawService, scope: u64, line: &[u8]) -> (i32, Vec<u8>) {
        let Response { status, bytes } = client.call(0, scope, line);
        (status, bytes.to_vec())
    }

    fn failed(kind: ErrorKind) -> (i32, Vec<u8>) {
        (kind as i32, Vec::new())
    }

    #[test]
    fn a_service_is_reached_through_its_table() {
        let lines = Arc::new(Lines::default());
        let exported = ExportedService::new(lines.clone());
        // SAFETY: `exported` outlives the client.
        let client = unsafe { RawService::new(exported.table()) };
        assert_eq!(write(&client, 0, b"hello"), (STATUS_OK, vec![5]));
        assert_eq!(*lines.0.lock().unwrap(), [b"hello"]);
        assert_eq!(write(&client, 7, b"hello"), (ErrorKind::Refused as i32, b"not for seven".to_vec()));
        assert_eq!(write(&client, 0, b"panic"), failed(ErrorKind::Internal));
    }

    #[test]
    fn a_table_is_reached_wherever_its_owner_is_moved() {
        let lines = Arc::new(Lines::default());
        let exported = ExportedService::new(lines.clone());
        // SAFETY: the exported service outlives the client.
        let client = unsafe { RawService::new(exported.table()) };
        let moved = Box::new(exported);
        assert_eq!(write(&client, 0, b"moved").0, STATUS_OK);
        let on_another_thread = std::thread::spawn(move || assert_eq!(write(&client, 0, b"elsewhere").0, STATUS_OK));
        on_another_thread.join().unwrap();
        drop(moved);
        assert_eq!(*lines.0.lock().unwrap(), [&b"moved"[..], b"elsewhere"]);
        assert_eq!(Arc::strong_count(&lines), 1, "the table keeps the service no longer than it lives itself");
    }

    #[test]
    fn after_the_end_of_its_instance_a_service_answers_stale() {
        let lines = Arc::new(Lines::default());
        let exported = ExportedService::new(lines.clone());
        // SAFETY: `exported` outlives the client.
        let client = unsafe { RawService::new(exported.table()) };
        exported.end();
        assert_eq!(write(&client, 0, b"late"), failed(ErrorKind::Stale));
        assert!(lines.0.lock().unwrap().is_empty());
    }

    #[test]
    fn each_function_of_a_table_passes_its_own_index_on() {
        let echo = |index, scope, request: &[u8]| {
            let bytes = [&[index as u8, scope as u8], request].concat();
            Response { status: STATUS_OK, bytes: bytes.into() }
        };
        let service = ExportedService::of(MAX_FUNCTIONS, echo);
        // SAFETY: the service outlives its client.
        let client = unsafe { RawService::new(service.table()) };
        assert_eq!(client.function_count(), MAX_FUNCTIONS);
        for index in 0..MAX_FUNCTIONS {
            assert_eq!(&*client.call(index, 7, b"x").bytes, [index as u8, 7, b'x']);
        }
        let short = ExportedService::of(2, echo);
        // SAFETY: as above.
        let client = unsafe { RawService::new(short.table()) };
        assert_eq!((client.function_count(), client.call(2, 0, b"").status), (2, ErrorKind::Unsupported as i32));
    }
}

//! Services as tables of C functions that all have one type: scope and request in, status and response out.
//!
//! One type for all functions keeps the unsafe part small, lets a table grow, and lets a call cross a process later.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use zeroize::Zeroize;

use super::bytes::{Bytes, OwnedBytes};
use super::layout::{abi_functions, abi_struct};
use super::panics::caught;
use super::{ABI_MINOR, STATUS_OK};
use crate::service::{ErrorKind, Result, Scope, ServiceError};
use crate::wire::{self, ServiceShape, Wire};

abi_functions! {
    const FUNCTIONS;
    /// A function of a service.
    ///
    /// `scope` is the token of the call on whose behalf it is asked, or 0. On success the status is 0 and `response` holds the
    /// encoded result; otherwise the status is an [`ErrorKind`] and `response` holds the detail as UTF-8.
    ///
    /// Threads: any, from `init` until `stop` has returned; of one scope, one thread at a time. Later the status is
    /// [`ErrorKind::Stale`].
    ///
    /// Ownership: `request` stays the caller's. `response` is written without being read, and the caller releases it, whatever
    /// the status is.
    ///
    /// Lifetime: `request` is read until the function returns; `response` stays valid until it is released. A scope ends when
    /// the `call` function returns for its token.
    pub type ServiceFn = fn(ctx: *const c_void, scope: u64, request: Bytes, response: *mut OwnedBytes) -> i32;
}

abi_struct! {
    /// The beginning of every service's table; its functions follow, one pointer each, as many as `struct_size` covers.
    ///
    /// The table stays valid for the life of the process, also when the instance that asked for it has ended.
    pub struct ServiceTable {
        /// The bytes of the table, its functions included.
        pub struct_size: usize,
        /// To be passed to each function.
        pub ctx: *const c_void,
        /// The first of the functions.
        functions: [Option<ServiceFn>; 0],
    }
}

/// A service trait: its name in the ABI and its functions in the order of the table.
pub trait Service: Send + Sync {
    /// Name and revision, as `chain/1`.
    const NAME: &'static str;
    /// The functions with their names.
    const FUNCTIONS: &'static [(&'static str, ServiceFn)];
    /// The functions, described, in the same order.
    const SHAPE: &'static ServiceShape;
}

/// One function of a service, as a type.
pub trait Method {
    /// The service's trait object.
    type Service: ?Sized + Service;
    /// Its arguments.
    type Request: Wire;
    /// Its result.
    type Response: Wire;
    /// Runs it.
    fn run(service: &Self::Service, scope: Scope, request: Self::Request) -> Result<Self::Response>;
}

/// The position of a function in its table, for the clients' constants.
#[allow(clippy::panic, reason = "it would be met while compiling")]
pub(crate) const fn function_index(functions: &[(&str, ServiceFn)], name: &str) -> usize {
    let mut index = 0;
    while index < functions.len() {
        if same(functions[index].0.as_bytes(), name.as_bytes()) {
            return index;
        }
        index += 1;
    }
    panic!("the client and the table come from one declaration")
}

const fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut index = 0;
    while index < a.len() {
        if a[index] != b[index] {
            return false;
        }
        index += 1;
    }
    true
}

/// The C function of a method, on the side that implements the service.
///
/// # Safety
/// `ctx` is the one of the [`ExportedService`] whose table held this function, and that is still alive; `request` holds
/// readable bytes; `response` points to memory that can be written.
pub unsafe extern "C" fn shim<M: Method>(
    ctx: *const c_void,
    scope: u64,
    request: Bytes,
    response: *mut OwnedBytes,
) -> i32 {
    // The encoding of the answer is code of the service's types, and may panic as the service itself.
    let answer = caught(|| {
        // SAFETY: `ctx` is the implementation that `ExportedService` keeps, as the caller promises.
        let Implementation { service, ended } = unsafe { &*ctx.cast::<Implementation<M::Service>>() };
        if ended.load(Ordering::Acquire) {
            return (ErrorKind::Stale as i32, OwnedBytes::EMPTY);
        }
        // SAFETY: the caller promises that the request is readable until we return.
        let request = unsafe { request.as_slice() };
        let request = wire::from_bytes::<M::Request>(request)
            .map_err(|error| ServiceError::new(ErrorKind::Malformed, error.to_string()));
        match request.and_then(|request| M::run(service, Scope(scope), request)) {
            Ok(value) => (STATUS_OK, value.into_message()),
            Err(error) => (error.kind as i32, error.detail.into_bytes().into()),
        }
    });
    let (status, bytes) = answer.unwrap_or((ErrorKind::Internal as i32, OwnedBytes::EMPTY));
    // SAFETY: the caller promises that `response` can be written; it holds nothing yet that must be released.
    unsafe { response.write(bytes) };
    status
}

/// The most functions of a service.
const MAX_FUNCTIONS: usize = 128;

/// A table as it lies in memory, with room for the functions of any service.
#[repr(C)]
struct WholeTable {
    head: ServiceTable,
    functions: [Option<ServiceFn>; MAX_FUNCTIONS],
}

/// A table on the heap, at a place of its own that does not change.
pub struct TableBox(NonNull<WholeTable>);

// SAFETY: the table is never written after it was built, and what its `ctx` points to is the builder's concern.
unsafe impl Send for TableBox {}
// SAFETY: as above.
unsafe impl Sync for TableBox {}

impl TableBox {
    /// A table of these functions, of which there are at most 128.
    pub fn new(ctx: *const c_void, functions: impl IntoIterator<Item = ServiceFn>) -> Self {
        let mut table = [None; MAX_FUNCTIONS];
        let mut count = 0;
        for (place, function) in table.iter_mut().zip(functions) {
            *place = Some(function);
            count += 1;
        }
        let struct_size = size_of::<ServiceTable>() + count * size_of::<Option<ServiceFn>>();
        let head = ServiceTable { struct_size, ctx, functions: [] };
        // Kept as a pointer: one that was handed out would not survive that a `Box` is moved.
        Self(NonNull::from(Box::leak(Box::new(WholeTable { head, functions: table }))))
    }

    /// The table. It is valid as long as `self`.
    pub fn as_ptr(&self) -> *const ServiceTable {
        self.0.as_ptr().cast_const().cast()
    }
}

impl Drop for TableBox {
    fn drop(&mut self) {
        // SAFETY: the pointer came from a box in `new`, and is given back once.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// What the `ctx` of an exported service's table points to.
struct Implementation<S: ?Sized> {
    service: Arc<S>,
    /// The instance that has the table has ended.
    ended: Arc<AtomicBool>,
}

/// A service on the side that implements it: the table to hand out, which lives as long as this.
pub struct ExportedService {
    table: TableBox,
    /// What `ctx` points to; freed by `drop_implementation`.
    implementation: *mut c_void,
    drop_implementation: unsafe fn(*mut c_void),
    ended: Arc<AtomicBool>,
}

// SAFETY: the table is never written after it was built, and the service behind it is `Send + Sync`.
unsafe impl Send for ExportedService {}
// SAFETY: as above.
unsafe impl Sync for ExportedService {}

impl ExportedService {
    /// Lays out the table of `service`.
    pub fn new<S: ?Sized + Service + 'static>(service: Arc<S>) -> Self {
        unsafe fn drop_implementation<S: ?Sized>(implementation: *mut c_void) {
            // SAFETY: called once, from `Drop`, with the pointer that `Box::into_raw` gave below.
            drop(unsafe { Box::from_raw(implementation.cast::<Implementation<S>>()) });
        }
        const { assert!(S::FUNCTIONS.len() <= MAX_FUNCTIONS, "MAX_FUNCTIONS must cover the longest service") };
        let ended = Arc::new(AtomicBool::new(false));
        let implementation = Implementation { service, ended: ended.clone() };
        let implementation: *mut c_void = Box::into_raw(Box::new(implementation)).cast();
        let table = TableBox::new(implementation, S::FUNCTIONS.iter().map(|(_, function)| *function));
        Self { table, implementation, drop_implementation: drop_implementation::<S>, ended }
    }

    /// The table. It is valid as long as `self`.
    pub fn table(&self) -> *const ServiceTable {
        self.table.as_ptr()
    }

    /// The instance that has the table has ended: from now on each function answers [`ErrorKind::Stale`].
    pub fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }
}

impl Drop for ExportedService {
    fn drop(&mut self) {
        // SAFETY: the pointer is the one `new` made for this very function.
        unsafe { (self.drop_implementation)(self.implementation) }
    }
}

/// A service on the side that uses it.
#[derive(Clone)]
pub struct RawService {
    table: *const ServiceTable,
    /// Set when the instance has ended: from then on the host is not called.
    ended: Option<Arc<AtomicBool>>,
}

// SAFETY: every function of a service may be called from any thread.
unsafe impl Send for RawService {}
// SAFETY: as above.
unsafe impl Sync for RawService {}

impl RawService {
    /// A service that was not granted: each function fails with [`ErrorKind::NotGranted`].
    pub const NOT_GRANTED: RawService = RawService { table: std::ptr::null(), ended: None };

    /// The service behind `table`.
    ///
    /// # Safety
    /// `table` is null, or a host's service table that stays valid as long as the result is used.
    pub unsafe fn new(table: *const ServiceTable) -> Self {
        Self { table, ended: None }
    }

    /// The same service for an instance: once `ended` is set each function fails with [`ErrorKind::Stale`], without a call of
    /// the host.
    pub fn until(self, ended: Arc<AtomicBool>) -> Self {
        Self { ended: Some(ended), ..self }
    }

    /// Whether the host gave the service.
    pub fn is_granted(&self) -> bool {
        !self.table.is_null()
    }

    /// The function at `index`, where the table is long enough to have it.
    fn function(&self, index: usize) -> Result<(ServiceFn, *const c_void)> {
        if self.table.is_null() {
            return Err(ErrorKind::NotGranted.into());
        }
        if self.ended.as_ref().is_some_and(|ended| ended.load(Ordering::Acquire)) {
            return Err(ErrorKind::Stale.into());
        }
        let end = size_of::<ServiceTable>() + (index + 1) * size_of::<Option<ServiceFn>>();
        // SAFETY: `new` promises a table; the pointer is read only where `struct_size` covers it.
        unsafe {
            if (*self.table).struct_size < end {
                return Err(ErrorKind::Unsupported.into());
            }
            let functions = self.table.add(1).cast::<Option<ServiceFn>>();
            let function = functions.add(index).read().ok_or(ErrorKind::Unsupported)?;
            Ok((function, (*self.table).ctx))
        }
    }

    /// Asks the function at `index` of the table.
    pub(crate) fn call<M: Method>(&self, index: usize, scope: Scope, request: M::Request) -> Result<M::Response> {
        let (function, ctx) = self.function(index)?;
        let mut request_bytes = wire::to_bytes(&request);
        let mut response = OwnedBytes::EMPTY;
        // SAFETY: the function and its `ctx` stand in one table of the host; the request outlives the call and the
        // response can be written.
        let status = unsafe { function(ctx, scope.0, Bytes::lend(&request_bytes), &mut response) };
        if M::Request::SECRET {
            request_bytes.zeroize();
        }
        if status != STATUS_OK {
            let detail = String::from_utf8_lossy(&response).into_owned();
            return Err(ServiceError::new(ErrorKind::from_status(status), detail));
        }
        M::Response::from_message(response)
            .map_err(|error| ServiceError::new(ErrorKind::Malformed, format!("{error} (ABI minor {ABI_MINOR})")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::log::{Level, Log, LogClient};
    use std::sync::Mutex;

    #[derive(Default)]
    struct Lines(Mutex<Vec<String>>);
    impl Log for Lines {
        fn write(&self, _: Scope, level: Level, message: String) -> Result<()> {
            assert!(message != "panic", "asked for");
            if level == Level::Error {
                return Err(ServiceError::new(ErrorKind::Refused, "no errors here"));
            }
            self.0.lock().unwrap().push(message);
            Ok(())
        }
    }

    #[test]
    fn a_service_is_reached_through_its_table() {
        let lines = Arc::new(Lines::default());
        let exported = ExportedService::new::<dyn Log>(lines.clone());
        // SAFETY: `exported` outlives the client.
        let client = LogClient::new(unsafe { RawService::new(exported.table()) });
        client.write(Scope::NONE, Level::Info, "hello".into()).unwrap();
        assert_eq!(*lines.0.lock().unwrap(), ["hello"]);
        let refused = client.write(Scope::NONE, Level::Error, String::new()).unwrap_err();
        assert_eq!(refused, ServiceError::new(ErrorKind::Refused, "no errors here"));
        assert_eq!(client.write(Scope::NONE, Level::Info, "panic".into()).unwrap_err().kind, ErrorKind::Internal);
    }

    #[test]
    fn a_table_is_reached_wherever_its_owner_is_moved() {
        let lines = Arc::new(Lines::default());
        let exported = ExportedService::new::<dyn Log>(lines.clone());
        // SAFETY: the exported service outlives the client.
        let client = LogClient::new(unsafe { RawService::new(exported.table()) });
        let moved = Box::new(exported);
        client.write(Scope::NONE, Level::Info, "moved".into()).unwrap();
        let on_another_thread = std::thread::spawn(move || {
            client.write(Scope::NONE, Level::Info, "elsewhere".into()).unwrap();
        });
        on_another_thread.join().unwrap();
        drop(moved);
        assert_eq!(*lines.0.lock().unwrap(), ["moved", "elsewhere"]);
        assert_eq!(Arc::strong_count(&lines), 1, "the table keeps the service no longer than it lives itself");
    }

    #[test]
    fn after_the_end_of_its_instance_a_service_answers_stale() {
        let lines = Arc::new(Lines::default());
        let exported = ExportedService::new::<dyn Log>(lines.clone());
        // SAFETY: `exported` outlives the client.
        let client = LogClient::new(unsafe { RawService::new(exported.table()) });
        exported.end();
        let late = client.write(Scope::NONE, Level::Info, "late".into()).unwrap_err();
        assert_eq!((late.kind, lines.0.lock().unwrap().len()), (ErrorKind::Stale, 0));
    }

    #[test]
    fn a_client_whose_instance_has_ended_does_not_call_the_host() {
        unsafe extern "C" fn never(_: *const c_void, _: u64, _: Bytes, _: *mut OwnedBytes) -> i32 {
            unreachable!("the host is called")
        }
        let table = TableBox::new(std::ptr::null(), [never as ServiceFn]);
        let ended = Arc::new(AtomicBool::new(true));
        // SAFETY: `table` outlives the client.
        let client = LogClient::new(unsafe { RawService::new(table.as_ptr()) }.until(ended));
        assert_eq!(client.write(Scope::NONE, Level::Info, "late".into()).unwrap_err().kind, ErrorKind::Stale);
    }

    /// An answer whose encoding panics.
    #[derive(Debug)]
    struct Unwritable;

    impl Wire for Unwritable {
        const SHAPE: &'static wire::Shape = &wire::Shape::Tuple(&[]);
        fn put(&self, _: &mut wire::Writer) {
            unreachable!("asked for");
        }
        fn get(_: &mut wire::Reader<'_>) -> std::result::Result<Self, wire::WireError> {
            Ok(Self)
        }
    }

    struct Unwritten;

    impl Method for Unwritten {
        type Service = dyn Log;
        type Request = ();
        type Response = Unwritable;
        fn run(_: &dyn Log, _: Scope, (): ()) -> Result<Unwritable> {
            Ok(Unwritable)
        }
    }

    #[test]
    fn a_panic_while_an_answer_is_encoded_is_an_internal_error() {
        let exported = ExportedService::new::<dyn Log>(Arc::new(Lines::default()));
        let mut response = OwnedBytes::EMPTY;
        // SAFETY: the context is that of the service, which outlives the call.
        let status = unsafe { shim::<Unwritten>((*exported.table()).ctx, 0, Bytes::lend(&[]), &mut response) };
        assert_eq!((status, response.len()), (ErrorKind::Internal as i32, 0));
    }

    #[test]
    fn what_a_table_lacks_is_unsupported_and_what_is_not_granted_says_so() {
        let short = TableBox::new(std::ptr::null(), []);
        // SAFETY: the table has no functions and outlives its use.
        let service = unsafe { RawService::new(short.as_ptr()) };
        let error = LogClient::new(service).write(Scope::NONE, Level::Info, String::new()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unsupported);
        let none = LogClient::new(RawService::NOT_GRANTED);
        assert_eq!(none.write(Scope::NONE, Level::Info, String::new()).unwrap_err().kind, ErrorKind::NotGranted);
    }
}

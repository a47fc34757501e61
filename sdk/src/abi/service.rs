//! Services as tables of C functions that all have one type: scope and request in, status and response out.
//!
//! One type for all functions keeps the unsafe part small, lets a table grow, and lets a call cross a process later.

use std::ffi::c_void;
use std::sync::Arc;

use zeroize::Zeroize;

use super::bytes::{Bytes, OwnedBytes};
use super::layout::{abi_functions, abi_struct};
use super::{ABI_MINOR, STATUS_OK, panics};
use crate::service::{ErrorKind, Result, Scope, ServiceError};
use crate::wire::{self, ServiceShape, Wire};

abi_functions! {
    const FUNCTIONS;
    /// A function of a service.
    ///
    /// `scope` is the token of the call on whose behalf it is asked, or 0. On success the status is 0 and `response` holds the
    /// encoded result; otherwise the status is an [`ErrorKind`] and `response` holds the detail as UTF-8.
    ///
    /// Threads: any, from `init` until `stop` has returned; of one scope, one thread at a time.
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
    // SAFETY: `ctx` is the `Arc<M::Service>` that `ExportedService` keeps, as the caller promises.
    let service = unsafe { &*ctx.cast::<Arc<M::Service>>() };
    // SAFETY: the caller promises that the request is readable until we return.
    let request = unsafe { request.as_slice() };
    let outcome = panics::caught(|| {
        let request: M::Request =
            wire::from_bytes(request).map_err(|error| ServiceError::new(ErrorKind::Malformed, error.to_string()))?;
        M::run(service, Scope(scope), request)
    })
    .unwrap_or_else(|| Err(ErrorKind::Internal.into()));
    let (status, bytes) = match outcome {
        Ok(value) => (STATUS_OK, value.into_message()),
        Err(error) => (error.kind as i32, error.detail.into_bytes().into()),
    };
    // SAFETY: the caller promises that `response` can be written; it holds nothing yet that must be released.
    unsafe { response.write(bytes) };
    status
}

/// A service on the side that implements it: the table to hand out, which lives as long as this.
pub struct ExportedService {
    /// Header and functions as words, laid out as `ServiceTable` says.
    words: Box<[usize]>,
    /// What `ctx` points to; freed by `drop_service`.
    service: *mut c_void,
    drop_service: unsafe fn(*mut c_void),
}

// SAFETY: the table is never written after it was built, and the service behind it is `Send + Sync`.
unsafe impl Send for ExportedService {}
// SAFETY: as above.
unsafe impl Sync for ExportedService {}

impl ExportedService {
    /// Lays out the table of `service`.
    pub fn new<S: ?Sized + Service + 'static>(service: Arc<S>) -> Self {
        unsafe fn drop_service<S: ?Sized>(service: *mut c_void) {
            // SAFETY: called once, from `Drop`, with the pointer that `Box::into_raw` gave below.
            drop(unsafe { Box::from_raw(service.cast::<Arc<S>>()) });
        }
        let service: *mut c_void = Box::into_raw(Box::new(service)).cast();
        let mut words = vec![(2 + S::FUNCTIONS.len()) * size_of::<usize>(), service as usize];
        words.extend(S::FUNCTIONS.iter().map(|(_, function)| *function as usize));
        Self { words: words.into_boxed_slice(), service, drop_service: drop_service::<S> }
    }

    /// The table. It is valid as long as `self`.
    pub fn table(&self) -> *const ServiceTable {
        self.words.as_ptr().cast()
    }
}

impl Drop for ExportedService {
    fn drop(&mut self) {
        // SAFETY: the pointer is the one `new` made for this very function.
        unsafe { (self.drop_service)(self.service) }
    }
}

/// A service on the side that uses it.
#[derive(Clone, Copy)]
pub struct RawService {
    table: *const ServiceTable,
}

// SAFETY: every function of a service may be called from any thread.
unsafe impl Send for RawService {}
// SAFETY: as above.
unsafe impl Sync for RawService {}

impl RawService {
    /// A service that was not granted: each function fails with [`ErrorKind::NotGranted`].
    pub const NOT_GRANTED: RawService = RawService { table: std::ptr::null() };

    /// The service behind `table`.
    ///
    /// # Safety
    /// `table` is null, or a host's service table that stays valid as long as the result is used.
    pub unsafe fn new(table: *const ServiceTable) -> Self {
        Self { table }
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
        let end = size_of::<ServiceTable>() + (index + 1) * size_of::<Option<ServiceFn>>();
        // SAFETY: `new` promises a table; the pointer is read only where `struct_size` covers it.
        unsafe {
            let table = &*self.table;
            if table.struct_size < end {
                return Err(ErrorKind::Unsupported.into());
            }
            let functions = self.table.add(1).cast::<Option<ServiceFn>>();
            let function = functions.add(index).read().ok_or(ErrorKind::Unsupported)?;
            Ok((function, table.ctx))
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
    fn what_a_table_lacks_is_unsupported_and_what_is_not_granted_says_so() {
        let short = [2 * size_of::<usize>(), 0];
        // SAFETY: the array is a table without functions and outlives its use.
        let service = unsafe { RawService::new(short.as_ptr().cast()) };
        let error = LogClient::new(service).write(Scope::NONE, Level::Info, String::new()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unsupported);
        let none = LogClient::new(RawService::NOT_GRANTED);
        assert_eq!(none.write(Scope::NONE, Level::Info, String::new()).unwrap_err().kind, ErrorKind::NotGranted);
    }
}

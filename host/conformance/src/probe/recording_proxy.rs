//! Services behind proxies that record who calls them: each function of a service is reached through one of ours.

use std::ffi::c_void;
use std::sync::Arc;

use outrigger_abi::{
    Bytes, ExportedService, OwnedBytes, STATUS_OK, Service, ServiceFn, ServiceTable, TableBox, caught,
};
use outrigger_service::ErrorKind;

/// Who is told of the calls that a plugin makes to services.
pub trait Recorder: Sync {
    /// A plugin calls a function of a service for a scope. An error is the plugin's answer.
    ///
    /// # Errors
    /// Why the call is refused.
    fn enter_service(&self, function: &str, scope: u64) -> Result<(), ErrorKind>;

    /// The function has returned.
    fn leave_service(&self, scope: u64);

    /// The plugin gets these bytes, which it has to release. Gives what it gets in their place.
    fn give(&'static self, bytes: OwnedBytes) -> OwnedBytes;
}

/// A service to be offered.
pub struct Offer {
    /// Name and revision, as `chain/1`.
    pub name: &'static str,
    service: ExportedService,
    functions: &'static [(&'static str, ServiceFn)],
    /// How many of its functions the table has.
    len: usize,
}

impl Offer {
    /// Offers a service whole.
    pub fn new<S: ?Sized + Service + 'static>(service: Arc<S>) -> Self {
        const { assert!(S::FUNCTIONS.len() <= FORWARDS.len(), "FORWARDS must be as long as the longest service") };
        let (functions, len) = (S::FUNCTIONS, S::FUNCTIONS.len());
        Self { name: S::NAME, service: ExportedService::new(service), functions, len }
    }

    /// The same service without any function, as a host that has none of them yet.
    pub fn empty(self) -> Self {
        Self { len: 0, ..self }
    }
}

/// A service behind its proxy.
pub struct RecordingProxy {
    table: TableBox,
}

/// What the `ctx` of a proxy's table points to; it is never freed.
struct ProxyContext {
    host: &'static dyn Recorder,
    offer: Offer,
}

impl RecordingProxy {
    /// Puts a proxy of a host before a service.
    pub fn new(host: &'static dyn Recorder, offer: Offer) -> Self {
        let len = offer.len;
        let context: &ProxyContext = Box::leak(Box::new(ProxyContext { host, offer }));
        Self { table: TableBox::new((&raw const *context).cast(), FORWARDS.into_iter().take(len)) }
    }

    /// The table. It is valid as long as `self`.
    pub fn table(&self) -> *const ServiceTable {
        self.table.as_ptr()
    }
}

unsafe extern "C" fn forward<const N: usize>(
    ctx: *const c_void,
    scope: u64,
    request: Bytes,
    response: *mut OwnedBytes,
) -> i32 {
    let answered = caught(|| {
        // SAFETY: `ctx` is the context of the proxy whose table held this function.
        let context = unsafe { &*ctx.cast::<ProxyContext>() };
        // SAFETY: the request is the plugin's, which lends it until we return.
        unsafe { context.ask(N, scope, request) }
    });
    let (status, bytes) = answered.unwrap_or((ErrorKind::Internal as i32, OwnedBytes::EMPTY));
    // SAFETY: the plugin passes memory that can be written and holds nothing to release.
    unsafe { response.write(bytes) };
    status
}

impl ProxyContext {
    /// Asks a function of the service behind the proxy.
    ///
    /// # Safety
    /// `request` holds readable bytes.
    unsafe fn ask(&self, function: usize, scope: u64, request: Bytes) -> (i32, OwnedBytes) {
        let Self { host, offer } = self;
        let Some((name, function)) = offer.functions.get(function) else { return (STATUS_OK, OwnedBytes::EMPTY) };
        let function_name = format!("{} {name}", offer.name);
        let mut inner = OwnedBytes::EMPTY;
        let status = match host.enter_service(&function_name, scope) {
            Err(kind) => kind as i32,
            Ok(()) => {
                // SAFETY: the service is kept by the context and never freed, so its table may be read.
                let service = unsafe { (*offer.service.table()).ctx };
                // SAFETY: the function stands in the service's table; the request is readable, and `inner` can be written.
                let status = unsafe { function(service, scope, request, &mut inner) };
                host.leave_service(scope);
                status
            }
        };
        (status, host.give(inner))
    }
}

macro_rules! forwards {
    ($($n:literal)*) => { [$(forward::<$n>),*] };
}

/// One function for each place in a table.
const FORWARDS: [ServiceFn; 64] = forwards!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29
    30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62
    63);

//! A service table whose functions all call one [`Forward`], with their index and the bytes of the request.

use std::ffi::c_void;
use std::sync::Arc;

use super::bytes::{Bytes, OwnedBytes};
use super::service::{MAX_FUNCTIONS, Response, ServiceFn, ServiceTable, TableBox, respond};

/// The implementation behind a forwarded service.
pub trait Forward: Send + Sync + 'static {
    /// Answers a request to the function at `index` of the table. `scope` is the token of the call that makes the request; 0 if none does.
    fn ask(&self, index: usize, scope: u64, request: &[u8]) -> Response;
}

/// A table whose functions call a [`Forward`]. It is valid as long as this value.
pub struct ForwardedService<F: Forward> {
    table: TableBox,
    /// Keeps the target of the table's `ctx` alive.
    _forward: Arc<F>,
}

impl<F: Forward> ForwardedService<F> {
    /// A table of `functions` functions, at most 128.
    pub fn new(forward: Arc<F>, functions: usize) -> Self {
        let table = TableBox::new(Arc::as_ptr(&forward).cast(), functions_of::<F>().into_iter().take(functions));
        Self { table, _forward: forward }
    }

    /// The table, valid as long as `self`.
    pub fn table(&self) -> *const ServiceTable {
        self.table.as_ptr()
    }
}

/// The C function at one index of a forwarded table.
///
/// # Safety
/// `ctx` is of a live [`ForwardedService`] with this function; `request` is readable; `response` is writable.
unsafe extern "C" fn forward<F: Forward, const INDEX: usize>(
    ctx: *const c_void,
    scope: u64,
    request: Bytes,
    response: *mut OwnedBytes,
) -> i32 {
    // SAFETY: `ctx` points into the `ForwardedService`, the request is readable until this function returns, and
    // `response` is writable, as the caller promises.
    unsafe { respond(response, || Ok((*ctx.cast::<F>()).ask(INDEX, scope, request.as_slice()))) }
}

/// A C function for each possible index of a table.
fn functions_of<F: Forward>() -> [ServiceFn; MAX_FUNCTIONS] {
    macro_rules! sixteen {
        ($($base:literal)*) => {
            [$(
                forward::<F, { $base }>, forward::<F, { $base + 1 }>, forward::<F, { $base + 2 }>,
                forward::<F, { $base + 3 }>, forward::<F, { $base + 4 }>, forward::<F, { $base + 5 }>,
                forward::<F, { $base + 6 }>, forward::<F, { $base + 7 }>, forward::<F, { $base + 8 }>,
                forward::<F, { $base + 9 }>, forward::<F, { $base + 10 }>, forward::<F, { $base + 11 }>,
                forward::<F, { $base + 12 }>, forward::<F, { $base + 13 }>, forward::<F, { $base + 14 }>,
                forward::<F, { $base + 15 }>,
            )*]
        };
    }
    sixteen!(0 16 32 48 64 80 96 112)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ErrorKind, RawService, STATUS_OK};

    struct Echo;

    impl Forward for Echo {
        fn ask(&self, index: usize, scope: u64, request: &[u8]) -> Response {
            let bytes = [&[index as u8, scope as u8], request].concat();
            Response { status: STATUS_OK, bytes: bytes.into() }
        }
    }

    #[test]
    fn each_function_of_a_forwarded_table_passes_its_own_index_on() {
        let service = ForwardedService::new(Arc::new(Echo), MAX_FUNCTIONS);
        // SAFETY: the service outlives its client.
        let client = unsafe { RawService::new(service.table()) };
        assert_eq!(client.function_count(), MAX_FUNCTIONS);
        for index in 0..MAX_FUNCTIONS {
            assert_eq!(&*client.call(index, 7, b"x").bytes, [index as u8, 7, b'x']);
        }
        let short = ForwardedService::new(Arc::new(Echo), 2);
        // SAFETY: as above.
        let client = unsafe { RawService::new(short.table()) };
        assert_eq!((client.function_count(), client.call(2, 0, b"").status), (2, ErrorKind::Unsupported as i32));
    }
}

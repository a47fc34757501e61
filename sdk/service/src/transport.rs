//! Encodes requests and answers of services for the plugin ABI.

use std::marker::PhantomData;
use std::sync::Arc;

use outrigger_abi::{ABI_MINOR, ErrorKind, OwnedBytes, RawService, Response, STATUS_OK};

use crate::wire::{self, Wire, WireError};
use crate::{Described, Result, Scope, ServiceError};

/// Decodes a request, runs the function and encodes its answer, on the side that implements the service.
pub(crate) fn answer<Q: Wire, R: Wire>(request: &[u8], run: impl FnOnce(Q) -> Result<R>) -> Response {
    match wire::from_bytes(request).map_err(ServiceError::from).and_then(run) {
        Ok(value) => Response { status: STATUS_OK, bytes: value.into_message() },
        Err(error) => Response { status: error.kind as i32, bytes: error.detail.into_bytes().into() },
    }
}

/// Calls the functions of a host's service `S`.
pub(crate) struct Client<S: ?Sized> {
    table: RawService,
    service: PhantomData<fn(&S)>,
}

impl<S: Described + ?Sized> Client<S> {
    /// A client of the service. `table` returns the table of a service by name and revision.
    pub fn new(table: &dyn Fn(&str) -> RawService) -> Arc<Self> {
        Arc::new(Self { table: table(S::SHAPE.name), service: PhantomData })
    }

    /// Calls the function at `index` of the table, with an encoded request and a decoded answer.
    pub fn ask<Q: Wire, R: Wire>(&self, index: usize, scope: Scope, request: Q) -> Result<R> {
        let answer = call(S::SHAPE.name, &self.table, index, scope, &request.into_message())?;
        R::from_message(answer).map_err(damaged)
    }
}

/// Calls the function at `index` of a service's table with the bytes of a request.
pub(crate) fn call(name: &str, service: &RawService, index: usize, scope: Scope, request: &[u8]) -> Result<OwnedBytes> {
    let Response { status, bytes } = service.call(index, scope.0, request);
    if status == STATUS_OK {
        return Ok(bytes);
    }
    match ErrorKind::from_status(status) {
        ErrorKind::NotGranted if bytes.is_empty() => {
            Err(ServiceError::new(ErrorKind::NotGranted, format!("The plugin's grants lack {name}")))
        }
        kind => Err(ServiceError::new(kind, String::from_utf8_lossy(&bytes))),
    }
}

/// The error for an answer that does not decode.
pub(crate) fn damaged(error: WireError) -> ServiceError {
    ServiceError::new(ErrorKind::Malformed, format!("{error} (ABI minor {ABI_MINOR})"))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use outrigger_abi::ExportedService;

    use super::*;
    use crate::log::{Level, Log};

    #[derive(Default)]
    struct Lines(Mutex<Vec<String>>);

    impl Log for Lines {
        fn write(&self, _: Scope, level: Level, message: String) -> Result<()> {
            if level == Level::Error {
                return Err(ServiceError::new(ErrorKind::Refused, "no errors here"));
            }
            self.0.lock().unwrap().push(message);
            Ok(())
        }
    }

    #[test]
    #[allow(unsafe_code)]
    fn a_client_speaks_to_its_service() {
        let lines = Arc::new(Lines::default());
        let exported = ExportedService::new::<dyn Log>(lines.clone());
        // SAFETY: `exported` outlives the client.
        let client = Client::<dyn Log>::new(&|_| unsafe { RawService::new(exported.table()) });
        client.write(Scope::NONE, Level::Info, "hello".into()).unwrap();
        assert_eq!(*lines.0.lock().unwrap(), ["hello"]);
        let refused = client.write(Scope::NONE, Level::Error, String::new()).unwrap_err();
        assert_eq!(refused, ServiceError::new(ErrorKind::Refused, "no errors here"));
        let none = Client::<dyn Log>::new(&|_| RawService::NOT_GRANTED);
        let refused = none.write(Scope::NONE, Level::Info, String::new()).unwrap_err();
        assert_eq!(refused, ServiceError::new(ErrorKind::NotGranted, "The plugin's grants lack log/1"));
    }

    #[test]
    fn a_request_that_does_not_decode_is_malformed() {
        let Response { status, bytes } = answer(&[1], |_: u32| Ok(()));
        assert_eq!((status, &*bytes), (ErrorKind::Malformed as i32, &b"message is damaged at byte 0 of 1"[..]));
    }
}

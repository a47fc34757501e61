//! Encodes requests and answers of services for the plugin ABI.

use outrigger_abi::{ABI_MINOR, ErrorKind, OwnedBytes, RawService, Response, STATUS_OK};

use crate::wire::{self, Wire, WireError};
use crate::{Result, Scope, ServiceError};

/// Decodes a request, runs the function and encodes its answer, on the side that implements the service.
pub(crate) fn answer<Q: Wire, R: Wire>(request: &[u8], run: impl FnOnce(Q) -> Result<R>) -> Response {
    match wire::from_bytes(request).map_err(ServiceError::from).and_then(run) {
        Ok(value) => Response { status: STATUS_OK, bytes: value.into_message() },
        Err(error) => Response { status: error.kind as i32, bytes: error.detail.into_bytes().into() },
    }
}

/// Calls the function at `index` of a service's table, with an encoded request and a decoded answer.
pub(crate) fn ask<Q: Wire, R: Wire>(
    name: &str,
    service: &RawService,
    index: usize,
    scope: Scope,
    request: Q,
) -> Result<R> {
    R::from_message(call(name, service, index, scope, &request.into_message())?).map_err(damaged)
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
    use std::sync::{Arc, Mutex};

    use outrigger_abi::ExportedService;

    use super::*;
    use crate::log::{Level, Log, LogClient};

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
        let client = LogClient::new(unsafe { RawService::new(exported.table()) });
        client.write(Scope::NONE, Level::Info, "hello".into()).unwrap();
        assert_eq!(*lines.0.lock().unwrap(), ["hello"]);
        let refused = client.write(Scope::NONE, Level::Error, String::new()).unwrap_err();
        assert_eq!(refused, ServiceError::new(ErrorKind::Refused, "no errors here"));
        let none = LogClient::new(RawService::NOT_GRANTED).write(Scope::NONE, Level::Info, String::new());
        assert_eq!(none.unwrap_err(), ServiceError::new(ErrorKind::NotGranted, "The plugin's grants lack log/1"));
    }

    #[test]
    fn a_request_that_does_not_decode_is_malformed() {
        let Response { status, bytes } = answer(&[1], |_: u32| Ok(()));
        assert_eq!((status, &*bytes), (ErrorKind::Malformed as i32, &b"message is damaged at byte 0 of 1"[..]));
    }
}

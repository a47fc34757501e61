//! Waits for a host that is not running yet.

use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::connection::CallError;

/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(250);

/// The error code of a host that is starting.
const IN_WARMUP: i64 = -28;

/// Attempts a call until a started host answers it, for at most `seconds`; 0 for no limit.
///
/// A call that a host may have received is not repeated: an interrupted answer is an error.
///
/// # Errors
/// An error of an attempt, unless no host is running; [`CallError::Waited`] after the time limit.
pub fn until_answered(seconds: u64, mut attempt: impl FnMut() -> Result<Value, CallError>) -> Result<Value, CallError> {
    let began = Instant::now();
    loop {
        let last = match attempt() {
            Ok(reply) if reply["error"]["code"] == IN_WARMUP => {
                format!("the host starts: {}", reply["error"]["message"].as_str().unwrap_or_default())
            }
            Err(error @ (CallError::Connect { .. } | CallError::Cookie { .. })) => error.to_string(),
            outcome => return outcome,
        };
        if seconds > 0 && began.elapsed() >= Duration::from_secs(seconds) {
            return Err(CallError::Waited { seconds, last });
        }
        sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind};

    use serde_json::json;

    use super::*;

    fn refused() -> Result<Value, CallError> {
        Err(CallError::Connect { address: "here".to_owned(), source: Error::from(ErrorKind::ConnectionRefused) })
    }

    #[test]
    fn call_wait_ends_at_any_other_failure() {
        let mut attempts = 0;
        let outcome = until_answered(0, || {
            attempts += 1;
            Err(CallError::Io(Error::from(ErrorKind::ConnectionReset)))
        });
        assert!(matches!(outcome, Err(CallError::Io(_))) && attempts == 1);
        let failed = until_answered(0, || Ok(json!({"error": {"code": -8}}))).unwrap();
        assert_eq!(failed["error"]["code"], -8);
    }

    #[test]
    fn call_wait_ends_at_its_timeout() {
        let error = until_answered(1, refused).unwrap_err().to_string();
        assert!(error.starts_with("waited 1 seconds: cannot reach the host at here"), "{error}");
    }
}

//! The greatest lengths of a wallet's name, and of labels, texts and scripts that a wallet stores.

use crate::{ErrorKind, Result, ServiceError};

/// The longest name of a wallet, in bytes.
pub const MAX_NAME_LEN: usize = 1024;

/// The longest label of an address, in bytes.
pub const MAX_LABEL_LEN: usize = 4096;

/// The longest text that is stored with a transaction (`comment`, `to`), in bytes.
pub const MAX_TEXT_LEN: usize = 16_384;

/// The longest script that a wallet imports, in bytes: a longer one cannot be spent (MAX_SCRIPT_SIZE of the consensus rules).
pub const MAX_SCRIPT_LEN: usize = 10_000;

/// Checks the length of a wallet's name.
///
/// # Errors
/// `Refused` beyond [`MAX_NAME_LEN`]. The name is not quoted: it may be as long as a request.
pub fn check_name(name: &str) -> Result<()> {
    let len = name.len();
    if len <= MAX_NAME_LEN {
        return Ok(());
    }
    let why = format!("The wallet name has {len} bytes, at most {MAX_NAME_LEN} are allowed.");
    Err(ServiceError::new(ErrorKind::Refused, format!("Wallet file verification failed. {why}")))
}

/// Checks that a label can be stored.
///
/// # Errors
/// `Refused` beyond [`MAX_LABEL_LEN`].
pub fn check_label(label: &str) -> Result<()> {
    check_length("label", label, MAX_LABEL_LEN)
}

/// Checks that a text or a script can be stored. `what` names it in the error.
///
/// # Errors
/// `Refused` beyond `longest` bytes.
pub fn check_length(what: &str, stored: impl AsRef<[u8]>, longest: usize) -> Result<()> {
    let len = stored.as_ref().len();
    if len <= longest {
        return Ok(());
    }
    let detail = format!("The {what} has {len} bytes, and at most {longest} are stored");
    Err(ServiceError::new(ErrorKind::Refused, detail))
}

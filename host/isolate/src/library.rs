//! Loads a plugin's library: in a runner, or in the host if the plugin is not isolated.
#![allow(unsafe_code)]

use std::path::Path;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use outrigger_abi::PluginTable;

const TABLE_SYMBOL: &[u8] = b"outrigger_plugin\0";

#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// The dynamic linker's message.
    #[error("{0}")]
    Open(String),
    #[error("{0}")]
    NoPlugin(&'static str),
}

/// Loads a library, which runs its constructors, and returns a copy of its function table. All mandatory functions are
/// present. The library is never closed: threads may still run destructors of its thread-locals.
pub fn open(path: &Path) -> Result<PluginTable, LibraryError> {
    // SAFETY: opening runs the library's constructors, and the operator configured this file. It shares no symbols with the
    // host (RTLD_LOCAL, and the program exports none).
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| failed(&error))?;
    // SAFETY: the ABI defines the symbol as a static table. The code below checks its contents.
    let symbol = unsafe { library.get::<*const PluginTable>(TABLE_SYMBOL) };
    let table = symbol.map_err(|error| failed(&error))?.into_raw();
    std::mem::forget(library);
    // SAFETY: the library stays open, and `read` checks the magic number by which a plugin declares a table.
    let table = unsafe { PluginTable::read(table.cast()) };
    let table = table.ok_or(LibraryError::NoPlugin("its function table does not begin as one, or is cut short"))?;
    let is_whole = table.create.is_some()
        && table.init.is_some()
        && table.start.is_some()
        && table.call.is_some()
        && table.destroy.is_some();
    if is_whole { Ok(table) } else { Err(LibraryError::NoPlugin("its function table lacks a function")) }
}

/// The dynamic linker's message, such as `undefined symbol: frobnicate`. The error itself names only `dlopen` or `dlsym`.
fn failed(error: &libloading::Error) -> LibraryError {
    LibraryError::Open(std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string))
}

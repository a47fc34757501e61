//! Loading a plugin's library: in a runner, or in the host if the plugin is not isolated.
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

/// Loads a library, which runs its constructors, and returns a copy of its table, in which all mandatory functions are
/// present. The library is never closed: threads may still have to run destructors of its thread-locals.
pub fn open(path: &Path) -> Result<PluginTable, LibraryError> {
    // SAFETY: opening runs the library's constructors: the operator configured this file. It is bound to nothing of ours
    // (RTLD_LOCAL, and the program exports no symbols).
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| failed(&error))?;
    // SAFETY: the symbol is the static that the ABI names, a table; what it holds is checked below.
    let symbol = unsafe { library.get::<*const PluginTable>(TABLE_SYMBOL) };
    let table = symbol.map_err(|error| failed(&error))?.into_raw();
    std::mem::forget(library);
    // SAFETY: a symbol of a library that stays open; a plugin promises with the magic number that a table is there.
    let table = unsafe { PluginTable::read(table.cast()) };
    let table = table.ok_or(LibraryError::NoPlugin("its function table does not begin as one, or is cut short"))?;
    let is_whole = table.create.is_some()
        && table.init.is_some()
        && table.start.is_some()
        && table.call.is_some()
        && table.destroy.is_some();
    if is_whole { Ok(table) } else { Err(LibraryError::NoPlugin("its function table lacks a function")) }
}

/// The linker's message, such as `undefined symbol: frobnicate`: the error itself names only the function that failed.
fn failed(error: &libloading::Error) -> LibraryError {
    LibraryError::Open(std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string))
}

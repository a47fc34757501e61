//! The exports, written by hand, with a `create` that can be held up and an `init` that keeps the host's table. The SDK's
//! `Reply` cannot answer twice, answer another plugin's call, or send bytes with its own release function, so this plugin
//! uses the C interface.
#![allow(unsafe_code, reason = "the rules of the interface can be broken only at the interface")]

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::{Mutex, Once};

use outrigger_sdk::abi::{Bytes, HostTable, Instance, MANIFEST_HEADER_LEN, OwnedBytes, PluginTable, manifest_bytes};
use outrigger_sdk::entry::plugin_table;

use crate::gate::{self, lock};
use crate::{Faulty, MANIFEST};

/// The environment variable with the gate at which the first `create` of a process waits.
const CREATE_GATE: &str = "FAULTY_CREATE_GATE";

/// The gate at which each `create` from now on waits. It is global: an instance has no options before `create` returns.
static NEXT_CREATE: Mutex<Option<String>> = Mutex::new(None);

thread_local! {
    /// The host of the instance that is being made on this thread.
    static HOST: Cell<*const HostTable> = const { Cell::new(std::ptr::null()) };
}

/// The host's reply function.
pub struct RawHost(*const HostTable);

// SAFETY: the host's functions may be called from any thread, and its table outlives the instance.
unsafe impl Send for RawHost {}
// SAFETY: as above.
unsafe impl Sync for RawHost {}

impl RawHost {
    pub fn current() -> Self {
        Self(HOST.get())
    }

    /// Answers any call. Returns the host's status; none without a host.
    pub fn reply(&self, token: u64, code: i32, body: &[u8]) -> Option<i32> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: the table is the host's and valid until the instance is destroyed, and `self` is part of the instance.
        Some(unsafe { ((*self.0).reply)((*self.0).ctx, token, code, body.to_vec().into()) })
    }

    /// Answers 1, in bytes whose release function waits at a gate, or never returns without one.
    pub fn reply_unreleased(&self, token: u64, gate: Option<String>) {
        let owner = Box::into_raw(Box::new(gate)).cast();
        let bytes = RawBytes { ptr: b"1".as_ptr(), len: 1, owner, release: Some(release_slowly) };
        // SAFETY: both are the same struct of the interface, and the bytes are static.
        let bytes = unsafe { std::mem::transmute::<RawBytes, OwnedBytes>(bytes) };
        if !self.0.is_null() {
            // SAFETY: as in `reply`.
            unsafe { ((*self.0).reply)((*self.0).ctx, token, 0, bytes) };
        }
    }
}

/// The layout of [`OwnedBytes`]: the SDK creates them with its own release functions only.
#[repr(C)]
struct RawBytes {
    ptr: *const u8,
    len: usize,
    owner: *mut c_void,
    release: Option<unsafe extern "C" fn(*mut c_void)>,
}

unsafe extern "C" fn release_slowly(owner: *mut c_void) {
    // SAFETY: `owner` came from `Box::into_raw` in `reply_unreleased`, and is released once.
    let gate = *unsafe { Box::from_raw(owner.cast::<Option<String>>()) };
    match gate {
        Some(gate) => gate::pass(&gate),
        None => gate::block_for_ever(),
    }
}

/// Makes `create` wait at this gate from now on; none ends that.
pub fn slow_create(gate: Option<String>) {
    *lock(&NEXT_CREATE) = gate;
}

const SDK: PluginTable = plugin_table::<Faulty>(0);

unsafe extern "C" fn create() -> Instance {
    static FIRST: Once = Once::new();
    FIRST.call_once(|| {
        if let Ok(gate) = std::env::var(CREATE_GATE) {
            gate::pass(&gate);
        }
    });
    let gate = lock(&NEXT_CREATE).clone();
    if let Some(gate) = gate {
        gate::pass(&gate);
    }
    // SAFETY: it takes nothing.
    SDK.create.map_or(std::ptr::null_mut(), |create| unsafe { create() })
}

unsafe extern "C" fn init(instance: Instance, host: *const HostTable, options: Bytes, error: *mut OwnedBytes) -> i32 {
    HOST.set(host);
    // SAFETY: the host's guarantees for `init` are those that the SDK's function needs.
    let status = SDK.init.map_or(-1, |init| unsafe { init(instance, host, options, error) });
    HOST.set(std::ptr::null());
    status
}

#[doc(hidden)]
#[allow(non_upper_case_globals, reason = "the name is the interface's")]
// SAFETY: the name is the interface's, and no other symbol of this library has it.
#[unsafe(no_mangle)]
pub static outrigger_plugin: PluginTable = PluginTable { create: Some(create), init: Some(init), ..SDK };

#[doc(hidden)]
#[allow(non_upper_case_globals, reason = "the name is the interface's")]
// SAFETY: as above.
#[unsafe(no_mangle)]
pub static outrigger_manifest: [u8; MANIFEST_HEADER_LEN + MANIFEST.len()] = manifest_bytes(MANIFEST, 0);

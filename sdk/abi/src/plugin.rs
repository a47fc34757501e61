//! A plugin's table of functions, and the frame of a call.

use std::ffi::c_void;

#[cfg(doc)]
use super::ErrorKind;
use super::bytes::{Bytes, OwnedBytes};
use super::host::HostTable;
use super::layout::{abi_functions, abi_struct};
use super::{ABI_MAJOR, ABI_MINOR};

/// The first bytes of [`PluginTable`]: `OUTRIGPL`.
pub const PLUGIN_MAGIC: u64 = u64::from_le_bytes(*b"OUTRIGPL");

/// A pointer to a plugin's instance, opaque to the host.
pub type Instance = *mut c_void;

abi_struct! {
    /// A call, valid until the `call` function returns.
    pub struct CallFrame {
        /// The size of this struct in bytes.
        pub struct_size: usize,
        /// The call's identifier, for its reply and as the scope of services. Never 0.
        pub token: u64,
        /// The method's name.
        pub method: Bytes,
        /// The arguments: a JSON array in the manifest's order, with `null` for omitted ones.
        pub params: Bytes,
        /// The milliseconds until the host answers in the plugin's place; 0 for never.
        #[since(1)]
        pub deadline_ms: u64,
        /// The low 16 bits: the major release of Bitcoin Core that the answer follows, for example 29; 0 if the host
        /// gives none. Each higher bit is a deprecated feature that the operator enabled: 16 removeprunedfunds, 17 bip125.
        #[since(1)]
        pub release: u64,
    }
}

abi_functions! {
    const FUNCTIONS;
    /// Makes an instance; null on failure.
    ///
    /// A host may have several instances of a library at a time, for example while it reloads a plugin. So an instance
    /// keeps its state in itself, not in static variables.
    ///
    /// Threads: any; called before every other function, and may not call the host.
    ///
    /// Ownership: the instance is the plugin's. The host only passes it on, and returns it to `destroy`.
    ///
    /// Lifetime: the instance lives until `destroy`.
    pub type CreateFn = fn() -> Instance;
    /// Passes an instance its host and its options, a JSON object with a value for each option of the manifest.
    ///
    /// A status other than 0 is a refusal, with its reason in `error` as UTF-8; `stop` and `destroy` follow.
    ///
    /// Threads: one, while no other function of the instance runs. Services may be used, but no calls come yet.
    ///
    /// Ownership: `host` and `options` stay the host's; bytes written to `error` become the host's.
    ///
    /// Lifetime: `host` stays valid for the life of the process, `options` until this function returns.
    pub type InitFn = fn(instance: Instance, host: *const HostTable, options: Bytes, error: *mut OwnedBytes) -> i32;
    /// Starts the instance: all services are ready. If the status is 0, calls follow; a refusal is as for `init`.
    ///
    /// Threads: one, while no other function of the instance runs. The plugin may start its own threads here.
    ///
    /// Ownership: bytes written to `error` become the host's.
    ///
    /// Lifetime: `error` is writable until the function returns.
    pub type StartFn = fn(instance: Instance, error: *mut OwnedBytes) -> i32;
    /// Runs a call. The plugin answers it once, before or after this returns. A status other than 0 is a fault of the
    /// plugin; then the host answers the call unless it was answered.
    ///
    /// Threads: several at a time, each with a different call.
    ///
    /// Ownership: the frame and the bytes in it stay the host's.
    ///
    /// Lifetime: the frame is valid until this function returns. A plugin that answers later must copy the parameters.
    /// The scope of the token ends then, too; for the reply the token stays valid.
    pub type CallFn = fn(instance: Instance, frame: *const CallFrame) -> i32;
    /// Notifies the plugin that a call's client is gone or its time is over, so that no answer is needed. If the host
    /// calls this while `call` runs, it repeats it when `call` returns without an answer, so that a plugin that stores
    /// tokens cannot miss it.
    ///
    /// Threads: any, beside `call`, `event` and `quiesce`.
    ///
    /// Ownership: nothing changes hands.
    ///
    /// Lifetime: the token needs no answer; an answer is refused as stale.
    pub type CancelFn = fn(instance: Instance, token: u64) -> i32;
    /// Handles an event that the manifest subscribes to. A status other than 0 is a fault of the plugin.
    ///
    /// Threads: one per instance, so events come one at a time and in order, beside all other functions.
    ///
    /// Ownership: the event's bytes stay the host's.
    ///
    /// Lifetime: the bytes are valid until this function returns.
    pub type EventFn = fn(instance: Instance, event: Bytes) -> i32;
    /// Notifies the plugin that no calls follow, and that it should answer open calls. The host later answers the rest.
    ///
    /// Threads: any, once, while calls, cancels and events may still run.
    ///
    /// Ownership: nothing changes hands.
    ///
    /// Lifetime: the host may be called until `stop` returns.
    pub type QuiesceFn = fn(instance: Instance) -> i32;
    /// Ends the instance's work, including its threads. After it returns, the plugin may not call the host.
    ///
    /// Threads: one, while no other function of the instance runs.
    ///
    /// Ownership: nothing changes hands.
    ///
    /// Lifetime: the host's table and the service tables stay valid for the life of the process. A later call of the
    /// host is refused with [`ErrorKind::Stale`].
    pub type StopFn = fn(instance: Instance) -> i32;
    /// Frees the instance.
    ///
    /// Threads: one, once, while no other function of the instance runs; may not call the host.
    ///
    /// Ownership: returns the instance to the plugin.
    ///
    /// Lifetime: replies whose bytes the host has not released outlive the instance.
    pub type DestroyFn = fn(instance: Instance);
}

abi_struct! {
    /// The table that a plugin exports as `outrigger_plugin`.
    ///
    /// The host calls, in this order: `create`, `init` and `start` once each; then `call`, `cancel` and `event` on
    /// several threads at a time; then `quiesce`, `stop` and `destroy` once each. `create`, `init`, `start`, `call` and
    /// `destroy` must be present; the others may be null.
    pub struct PluginTable {
        /// [`PLUGIN_MAGIC`].
        pub magic: u64,
        /// The size of this struct in bytes.
        pub struct_size: usize,
        /// The major version of the interface that the plugin was built for.
        pub abi_major: u32,
        /// The least minor version of a host on which the plugin runs.
        pub abi_minor_needed: u32,
        /// The minor version that the plugin was built with.
        pub abi_minor_built: u32,
        /// Zero.
        pub reserved: u32,
        /// Makes an instance.
        pub create: Option<CreateFn>,
        /// Passes the host and the options.
        pub init: Option<InitFn>,
        /// Starts the instance: calls follow.
        pub start: Option<StartFn>,
        /// Runs a call.
        pub call: Option<CallFn>,
        /// Notifies the plugin that a call no longer needs an answer.
        pub cancel: Option<CancelFn>,
        /// Handles an event.
        pub event: Option<EventFn>,
        /// Notifies the plugin that no calls follow.
        pub quiesce: Option<QuiesceFn>,
        /// Ends the instance's work.
        pub stop: Option<StopFn>,
        /// Frees the instance.
        pub destroy: Option<DestroyFn>,
    }
}

impl PluginTable {
    /// The size of a table of minor 0, in bytes. No table is shorter.
    pub const MIN_SIZE: usize = Self::LAYOUT.size_at(0);

    pub(super) const EMPTY: Self = Self {
        magic: PLUGIN_MAGIC,
        struct_size: size_of::<Self>(),
        abi_major: ABI_MAJOR,
        abi_minor_needed: 0,
        abi_minor_built: ABI_MINOR,
        reserved: 0,
        create: None,
        init: None,
        start: None,
        call: None,
        cancel: None,
        event: None,
        quiesce: None,
        stop: None,
        destroy: None,
    };

    /// Copies a plugin's table of an older or a newer minor version. Missing functions become `None`, and functions
    /// unknown to this host are ignored. Returns `None` if `table` is not a plugin's table.
    ///
    /// # Safety
    /// `table` is null, or points to a magic number and a `struct_size`. With the right magic number, `struct_size`
    /// bytes are readable there, in which each function is null or of its type.
    pub unsafe fn read(table: *const Self) -> Option<Self> {
        if table.is_null() {
            return None;
        }
        // SAFETY: all versions begin with these fields.
        let (magic, size) = unsafe { ((*table).magic, (*table).struct_size) };
        if magic != PLUGIN_MAGIC || size < Self::MIN_SIZE {
            return None;
        }
        let mut copy = Self::EMPTY;
        let whole = Self::LAYOUT.whole_fields(size);
        // SAFETY: the table has `size` readable bytes; `whole` exceeds neither that nor `copy`, and splits no field.
        unsafe { std::ptr::copy_nonoverlapping(table.cast::<u8>(), (&raw mut copy).cast(), whole) };
        Some(copy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" fn start(_: Instance, _: *mut OwnedBytes) -> i32 {
        0
    }

    /// Reads a table with this `struct_size`. Reading beyond it would change the result.
    fn read(size: usize, magic: u64) -> Option<PluginTable> {
        let mut words = vec![usize::MAX; size_of::<PluginTable>() / size_of::<usize>() + 4];
        let table: *mut PluginTable = words.as_mut_ptr().cast();
        // SAFETY: the words are longer than a table, and aligned as one.
        unsafe {
            table.write(PluginTable { magic, struct_size: size, start: Some(start), ..PluginTable::EMPTY });
            PluginTable::read(table)
        }
    }

    #[test]
    fn tables_of_other_minor_versions_are_read_as_far_as_both_know() {
        let own = size_of::<PluginTable>();
        for size in [PluginTable::MIN_SIZE, own, own + 8, own + 4096] {
            let table = read(size, PLUGIN_MAGIC).unwrap();
            assert!(table.start.is_some() && table.create.is_none() && table.destroy.is_none(), "{size}");
            assert_eq!(table.struct_size, size);
        }
        for size in [0, 16, PluginTable::MIN_SIZE - 1] {
            assert!(read(size, PLUGIN_MAGIC).is_none(), "{size}");
        }
        assert!(read(own, PLUGIN_MAGIC + 1).is_none());
        // SAFETY: null is allowed.
        assert!(unsafe { PluginTable::read(std::ptr::null()) }.is_none());
    }

    #[test]
    fn fields_are_taken_whole_or_not_at_all() {
        let whole = |size| PluginTable::LAYOUT.whole_fields(size);
        assert_eq!((whole(104), whole(103), whole(96), whole(9), whole(0)), (104, 96, 96, 8, 0));
        assert_eq!(whole(4096), size_of::<PluginTable>());
    }
}

//! What a plugin is to the host: its table of functions, and the frame in which a call comes.

use std::ffi::c_void;

use super::bytes::{Bytes, OwnedBytes};
use super::host::HostTable;
use super::layout::{Layout, abi_functions, abi_struct};
use super::{ABI_MAJOR, ABI_MINOR};

/// Begins [`PluginTable`]: `OUTRIGPL`.
pub const PLUGIN_MAGIC: u64 = u64::from_le_bytes(*b"OUTRIGPL");

/// A plugin's instance, as the host passes it around.
pub type Instance = *mut c_void;

abi_struct! {
    /// A call, valid until the `call` function returns.
    pub struct CallFrame {
        /// The bytes of this struct.
        pub struct_size: usize,
        /// Names the call: for its reply, and as the scope of services. Never 0.
        pub token: u64,
        /// The method's name.
        pub method: Bytes,
        /// Its arguments: a JSON array in the order of the manifest, `null` where one was left out.
        pub params: Bytes,
        /// When the host answers in the plugin's place, in milliseconds from now; 0 for never.
        #[since(1)]
        pub deadline_ms: u64,
    }
}

abi_functions! {
    const FUNCTIONS;
    /// Makes an instance; null is a failure.
    ///
    /// A host may have several instances of one library at a time, as while it reloads a plugin: what an instance keeps belongs
    /// into it, and not into static variables.
    ///
    /// Threads: any; called before every other function, and may not call the host.
    ///
    /// Ownership: the instance is the plugin's own. The host only passes it on, and gives it back to `destroy`.
    ///
    /// Lifetime: the instance lives until `destroy`.
    pub type CreateFn = fn() -> Instance;
    /// Gives an instance the host and its options, a JSON object in which each option of the manifest is there with its type.
    ///
    /// A status other than 0 is a refusal, whose reason is written to `error` as UTF-8; `stop` and `destroy` follow it.
    ///
    /// Threads: one, while no other function of the instance runs. Services may be asked, but calls do not come yet.
    ///
    /// Ownership: `host` and `options` stay the host's; what is written to `error` becomes the host's.
    ///
    /// Lifetime: `host` stays valid for the life of the process, `options` until this function returns.
    pub type InitFn = fn(instance: Instance, host: *const HostTable, options: Bytes, error: *mut OwnedBytes) -> i32;
    /// All services are ready: calls follow once this has returned 0. A refusal is told as by `init`.
    ///
    /// Threads: one, while no other function of the instance runs. The plugin may begin threads of its own here.
    ///
    /// Ownership: what is written to `error` becomes the host's.
    ///
    /// Lifetime: `error` can be written until the function returns.
    pub type StartFn = fn(instance: Instance, error: *mut OwnedBytes) -> i32;
    /// Runs a call. It may be answered before or after this returns, and is answered once. A status other than 0 is a fault of
    /// the plugin, after which the host answers the call if nothing else did.
    ///
    /// Threads: several at a time, each with a call of its own.
    ///
    /// Ownership: the frame and what it points to stay the host's.
    ///
    /// Lifetime: the frame is valid until this function returns: a plugin that answers later copies what it needs. The
    /// scope that the token names ends then, too; for the reply the token stays good.
    pub type CallFn = fn(instance: Instance, frame: *const CallFrame) -> i32;
    /// A call's client is gone or its time is over: an answer will not be read. May come while `call` still runs, and then comes
    /// again when `call` has returned without an answer, so that a plugin that keeps tokens cannot miss it.
    ///
    /// Threads: any, beside `call`, `event` and `quiesce`.
    ///
    /// Ownership: nothing changes hands.
    ///
    /// Lifetime: the token need not be answered any more; an answer is refused as stale.
    pub type CancelFn = fn(instance: Instance, token: u64) -> i32;
    /// Something happened that the manifest asks to hear of. A status other than 0 is a fault of the plugin.
    ///
    /// Threads: one of the instance's own, so events come one at a time and in their order, beside everything else.
    ///
    /// Ownership: the event's bytes stay the host's.
    ///
    /// Lifetime: the bytes are valid until this function returns.
    pub type EventFn = fn(instance: Instance, event: Bytes) -> i32;
    /// No call will follow: tokens that are still kept should be answered now. The host answers for what is left after a while.
    ///
    /// Threads: any, once, while calls, cancels and events may still run.
    ///
    /// Ownership: nothing changes hands.
    ///
    /// Lifetime: the host may be called until `stop` has returned.
    pub type QuiesceFn = fn(instance: Instance) -> i32;
    /// Ends what the instance has begun: its threads, above all. No function of the host may be called after this has returned.
    ///
    /// Threads: one, while no other function of the instance runs.
    ///
    /// Ownership: nothing changes hands.
    ///
    /// Lifetime: the host's table and the services' tables stay valid for the life of the process. A function of the host that
    /// is called later all the same answers [`crate::ErrorKind::Stale`].
    pub type StopFn = fn(instance: Instance) -> i32;
    /// Frees the instance.
    ///
    /// Threads: one, once, while no other function of the instance runs; may not call the host.
    ///
    /// Ownership: gives the instance back.
    ///
    /// Lifetime: replies whose bytes the host has not released yet outlive the instance.
    pub type DestroyFn = fn(instance: Instance);
}

abi_struct! {
    /// What a plugin exports as `outrigger_plugin`.
    ///
    /// The host calls, in this order: `create` once, `init` once, `start` once; then `call`, `cancel` and `event` from several
    /// threads at a time; then `quiesce`, `stop` and `destroy` once each. `create`, `init`, `start`, `call` and `destroy` must
    /// be there; the others may be null.
    pub struct PluginTable {
        /// [`PLUGIN_MAGIC`].
        pub magic: u64,
        /// The bytes of this struct.
        pub struct_size: usize,
        /// The major version of the interface it was built for.
        pub abi_major: u32,
        /// The least minor version of a host that it runs on.
        pub abi_minor_needed: u32,
        /// The minor version it was built with.
        pub abi_minor_built: u32,
        /// Zero.
        pub reserved: u32,
        /// Makes an instance.
        pub create: Option<CreateFn>,
        /// Gives it the host and its options.
        pub init: Option<InitFn>,
        /// Calls follow.
        pub start: Option<StartFn>,
        /// Runs a call.
        pub call: Option<CallFn>,
        /// A call's answer is not wanted any more.
        pub cancel: Option<CancelFn>,
        /// Something happened; the bytes are an encoded `Event`.
        pub event: Option<EventFn>,
        /// No call will follow.
        pub quiesce: Option<QuiesceFn>,
        /// The last word to the instance.
        pub stop: Option<StopFn>,
        /// Frees the instance.
        pub destroy: Option<DestroyFn>,
    }
}

impl PluginTable {
    /// The bytes of a table of minor 0. No table is shorter.
    pub const MIN_SIZE: usize = Self::LAYOUT.size_at(0);

    /// A table without any function.
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

    /// A copy of a plugin's table, which may be of an older or a newer minor version: functions that it does not have are none,
    /// and those that this host does not know are left out. None when what stands there is no table.
    ///
    /// # Safety
    /// `table` is null, or points to a magic number and a `struct_size`, and with the right magic number to as many readable
    /// bytes as `struct_size` says, in which each function is null or one of its type.
    pub unsafe fn read(table: *const Self) -> Option<Self> {
        if table.is_null() {
            return None;
        }
        // SAFETY: the beginning is common to all versions; whatever is there can be read.
        let (magic, size) = unsafe { ((*table).magic, (*table).struct_size) };
        if magic != PLUGIN_MAGIC || size < Self::MIN_SIZE {
            return None;
        }
        let mut copy = Self::EMPTY;
        let whole = Self::LAYOUT.whole_fields(size);
        // SAFETY: the table has `size` readable bytes; `whole` is at most that and at most what `copy` has, and does not
        // cut a field in two.
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

    /// Reads a table of which only so many bytes are there. What lies beyond them would be noticed.
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
        // SAFETY: null is no table.
        assert!(unsafe { PluginTable::read(std::ptr::null()) }.is_none());
    }

    #[test]
    fn fields_are_taken_whole_or_not_at_all() {
        let whole = |size| PluginTable::LAYOUT.whole_fields(size);
        assert_eq!((whole(104), whole(103), whole(96), whole(9), whole(0)), (104, 96, 96, 8, 0));
        assert_eq!(whole(4096), size_of::<PluginTable>());
    }
}

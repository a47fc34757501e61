//! A plugin's instance, for the host to call through the plugin's table.

use super::bytes::{Bytes, OwnedBytes};
use super::entry::{PluginCode, RawCall, instance_of, plugin_table};
use super::host::HostTable;
use super::plugin::{CallFrame, Instance, PluginTable};
use super::{ErrorKind, STATUS_OK};

/// An instance and its table.
///
/// Any thread may call the methods. The caller is responsible for the order that [`PluginTable`] prescribes.
#[derive(Clone, Copy)]
pub struct UsedPlugin {
    table: &'static PluginTable,
    instance: Instance,
}

// SAFETY: any thread may call a plugin's functions, by the interface; the table is only read.
unsafe impl Send for UsedPlugin {}
// SAFETY: as above.
unsafe impl Sync for UsedPlugin {}

impl UsedPlugin {
    /// Makes an instance; `None` if the plugin fails.
    ///
    /// # Safety
    /// The table is a plugin's, whose library stays open for the life of the process.
    pub unsafe fn create(table: &'static PluginTable) -> Option<Self> {
        // SAFETY: `create` has no argument and may be called on any thread.
        let instance = table.create.map_or(std::ptr::null_mut(), |create| unsafe { create() });
        (!instance.is_null()).then_some(Self { table, instance })
    }

    /// Makes an instance of a plugin that the host implements itself; `None` without memory.
    pub fn implemented<P: PluginCode>(seed: P::Seed) -> Option<Self> {
        let table = const { &plugin_table::<P>(0) };
        let instance = instance_of::<P>(seed);
        (!instance.is_null()).then_some(Self { table, instance })
    }

    /// Passes the host and the options to the instance. The error is the status of a refusal and its reason.
    pub fn init(&self, host: &'static HostTable, options: &[u8]) -> Result<(), (i32, OwnedBytes)> {
        let mut error = OwnedBytes::EMPTY;
        // SAFETY: an instance of this table; host table and options outlive the call, and `error` is writable.
        let status = self.table.init.map_or(ErrorKind::Unsupported as i32, |init| unsafe {
            init(self.instance, host, Bytes::lend(options), &mut error)
        });
        if status == STATUS_OK { Ok(()) } else { Err((status, error)) }
    }

    /// Starts the instance: calls follow. The error is as for [`Self::init`].
    pub fn start(&self) -> Result<(), (i32, OwnedBytes)> {
        let mut error = OwnedBytes::EMPTY;
        // SAFETY: as above, after `init`.
        let status =
            self.table.start.map_or(ErrorKind::Unsupported as i32, |start| unsafe { start(self.instance, &mut error) });
        if status == STATUS_OK { Ok(()) } else { Err((status, error)) }
    }

    /// Runs a call. A status other than 0 is a fault.
    pub fn call(&self, call: &RawCall<'_>) -> i32 {
        let frame = CallFrame {
            struct_size: size_of::<CallFrame>(),
            token: call.token,
            method: Bytes::lend(call.method),
            params: Bytes::lend(call.params),
            deadline_ms: call.deadline_ms.unwrap_or(0),
            release: call.release.map_or(0, u64::from),
        };
        // SAFETY: the instance is started and not destroyed; the frame outlives the call.
        self.table.call.map_or(ErrorKind::Unsupported as i32, |call| unsafe { call(self.instance, &frame) })
    }

    /// Notifies the instance that a call no longer needs an answer.
    pub fn cancel(&self, token: u64) -> i32 {
        // SAFETY: as above.
        self.table.cancel.map_or(STATUS_OK, |cancel| unsafe { cancel(self.instance, token) })
    }

    /// Sends an event.
    pub fn event(&self, event: &[u8]) -> i32 {
        // SAFETY: as above; the bytes outlive the call.
        self.table.event.map_or(STATUS_OK, |handle| unsafe { handle(self.instance, Bytes::lend(event)) })
    }

    /// Notifies the instance that no calls follow.
    pub fn quiesce(&self) -> i32 {
        // SAFETY: as above.
        self.table.quiesce.map_or(STATUS_OK, |quiesce| unsafe { quiesce(self.instance) })
    }

    /// Ends the instance. No other thread may run in it.
    pub fn stop(&self) -> i32 {
        // SAFETY: as above.
        self.table.stop.map_or(STATUS_OK, |stop| unsafe { stop(self.instance) })
    }

    /// Frees the instance. No other thread may run in it, and no call may follow.
    pub fn destroy(&self) {
        if let Some(destroy) = self.table.destroy {
            // SAFETY: as above, once.
            unsafe { destroy(self.instance) };
        }
    }
}

//! Calls the functions of the plugin's instance in a runner, as the host's messages request.
#![allow(unsafe_code)]

use outrigger_abi::{ErrorKind, OwnedBytes, RawCall, STATUS_OK, UsedPlugin};

use super::host::{Inside, UNKNOWN};
use crate::frame::{Head, Kind, RELEASE_SHIFT};
use crate::greeting::Begin;

impl Inside {
    /// Executes a message. Returns the status and a reason.
    pub(super) fn run(&'static self, head: &Head, body: &[u8]) -> (i32, OwnedBytes) {
        if head.kind == Kind::Init {
            return self.init(body);
        }
        let Some(instance) = self.instance.get() else { return (ErrorKind::Stale as i32, OwnedBytes::EMPTY) };
        let status = match head.kind {
            Kind::Start => match instance.start() {
                Ok(()) => STATUS_OK,
                Err(refusal) => return refusal,
            },
            Kind::Call => self.call(instance, head, body),
            Kind::Cancel => {
                self.close(head.token);
                instance.cancel(head.token)
            }
            Kind::Event => instance.event(body),
            Kind::Quiesce => instance.quiesce(),
            Kind::Stop => instance.stop(),
            Kind::Destroy => {
                instance.destroy();
                STATUS_OK
            }
            _ => UNKNOWN,
        };
        (status, OwnedBytes::EMPTY)
    }

    fn init(&'static self, begin: &[u8]) -> (i32, OwnedBytes) {
        let Ok(begin) = serde_json::from_slice::<Begin>(begin) else {
            return (ErrorKind::Malformed as i32, OwnedBytes::EMPTY);
        };
        let host = self.host(&begin);
        // SAFETY: the table is a plugin's, and its library is never closed or is this program.
        let Some(instance) = (unsafe { UsedPlugin::create(self.table) }) else {
            let reason = b"its create function returned null".to_vec();
            return (ErrorKind::Internal as i32, reason.into());
        };
        // Stored before `init`: the host sends `stop` and `destroy` after a refusal, too.
        match self.instance.get_or_init(|| instance).init(host, &begin.options) {
            Ok(()) => (STATUS_OK, OwnedBytes::EMPTY),
            Err(refusal) => refusal,
        }
    }

    fn call(&self, instance: &UsedPlugin, head: &Head, body: &[u8]) -> i32 {
        let Some((method, params)) = body.split_at_checked(head.place as usize) else { return UNKNOWN };
        self.open(head.token);
        let deadline_ms = Some(head.extra).filter(|deadline| *deadline > 0);
        let release = u32::try_from(head.code >> RELEASE_SHIFT).ok().filter(|release| *release > 0);
        let status = instance.call(&RawCall { token: head.token, method, params, deadline_ms, release });
        if status != STATUS_OK {
            // The host answers the call, unless the plugin already has.
            self.close(head.token);
        }
        status
    }
}

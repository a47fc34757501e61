//! Adapts a [`Plugin`] to the plugin ABI: decodes the host's bytes and encodes the plugin's answers.

use std::sync::Arc;
use std::time::Duration;

use outrigger_abi::{ErrorKind, HostHandle, OwnedBytes, PluginCode, PluginTable, RawCall};
use outrigger_service::log::Level;
use outrigger_service::{Host, HostInfo, Scope, wire};
use outrigger_standard::release::Rules;

use crate::options::PluginOptions;
use crate::params::Params;
use crate::plugin::{Call, Plugin, Reply, ReplySink};
use crate::{RpcError, RpcErrorCode};

/// The most bytes of a panic's text that are logged.
const PANIC_TEXT_BYTES: usize = 200;

/// The table of a Rust plugin that needs at least this minor version of the interface.
///
/// # Panics
/// At compile time, if this SDK does not know the minor version.
pub const fn plugin_table<P: Plugin>(minor_needed: u32) -> PluginTable {
    outrigger_abi::plugin_table::<Running<P>>(minor_needed)
}

/// A plugin, with the host that its replies go to.
struct Running<P> {
    plugin: P,
    host: Host,
    replies: Arc<HostReplies>,
}

/// Sends replies to the host.
struct HostReplies {
    handle: HostHandle,
    info: Arc<dyn HostInfo>,
}

impl ReplySink for HostReplies {
    fn reply(&self, token: u64, code: i32, body: OwnedBytes) -> bool {
        self.handle.reply(token, code, body)
    }

    fn wanted(&self, token: u64) -> bool {
        self.handle.is_wanted(token)
    }

    fn progress(&self, token: u64, done: u64, total: u64) {
        // Older hosts do not show progress.
        let _ = self.info.progress(Scope::NONE, token, done, total);
    }
}

/// The start of a panic's text, cut between characters.
fn cut(text: &str) -> &str {
    let end = (0..=PANIC_TEXT_BYTES.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    text.get(..end.unwrap_or(0)).unwrap_or_default()
}

impl<P: Plugin> PluginCode for Running<P> {
    type Seed = ();

    fn init((): (), host: HostHandle, options: &[u8]) -> Result<Self, String> {
        let services = Host::reached_by(&|name| host.service(name));
        let log = services.log.clone();
        host.report_panics(move |place, text| {
            // A host without `tells_panics`, or one that does not grant the log, gets no text.
            let text = text.filter(|_| log.tells_panics(Scope::NONE).unwrap_or(false));
            let text = text.map(|text| format!(": {}", cut(text))).unwrap_or_default();
            let _ = log.write(Scope::NONE, Level::Error, place + &text);
        });
        let options = serde_json::from_slice(options).map_err(|error| error.to_string())?;
        let plugin = P::new(services.clone(), P::Options::read(options)?)?;
        let replies = Arc::new(HostReplies { info: services.info.clone(), handle: host });
        Ok(Self { plugin, host: services, replies })
    }

    fn start(&self) -> Result<(), String> {
        self.plugin.start()
    }

    fn call(&self, call: RawCall<'_>) -> Result<(), ErrorKind> {
        let reply = Reply::new(call.token, self.replies.clone());
        let method = std::str::from_utf8(call.method).map_err(|_| ErrorKind::Malformed)?;
        let params = match call.params.first() {
            Some(b'{') => serde_json::from_slice(call.params).map(|named| (Params::default(), Some(named))),
            _ => serde_json::from_slice(call.params).map(|params| (params, None)),
        };
        match params {
            Ok((params, named)) => {
                let deadline = call.deadline_ms.map(Duration::from_millis);
                let word = call.release.unwrap_or(outrigger_standard::release::PRESENT);
                let rules = Rules::of_call(word);
                let scope = Scope(call.token);
                let given = params.0.len();
                let (host, replies) = (&self.host, &*self.replies);
                self.plugin.call(Call { method, params, named, host, scope, deadline, rules, given, replies }, reply);
            }
            Err(error) => {
                // A client causes this with values nested too deeply or half of a surrogate pair, so the client gets the
                // error. The plugin is not at fault.
                reply.fail(RpcError::new(RpcErrorCode::PARSE, format!("Parse error: {error}")));
            }
        }
        Ok(())
    }

    fn cancel(&self, token: u64) -> Result<(), ErrorKind> {
        self.plugin.cancel(token);
        Ok(())
    }

    fn event(&self, event: &[u8]) -> Result<(), ErrorKind> {
        // A newer host may send an event that this SDK does not know; the plugin does not get it.
        if let Ok(event) = wire::from_bytes(event) {
            self.plugin.event(event);
        }
        Ok(())
    }

    fn quiesce(&self) -> Result<(), ErrorKind> {
        self.plugin.quiesce();
        Ok(())
    }

    fn stop(&self) -> Result<(), ErrorKind> {
        self.plugin.stop();
        Ok(())
    }
}

#[cfg(test)]
mod tests;

/// Exports a [`Plugin`] and its manifest from a `cdylib`.
///
/// A second argument is the least minor version of the interface ([`outrigger_abi::ABI_MINOR`]) that a host must have. Without
/// it the plugin runs on hosts of every minor version, and the SDK treats features that an older host lacks as absent.
#[macro_export]
macro_rules! export_plugin {
    ($plugin:ty) => {
        $crate::export_plugin!($plugin, 0);
    };
    ($plugin:ty, $minor_needed:expr) => {
        const OUTRIGGER_MANIFEST: &str = <$plugin as $crate::Plugin>::MANIFEST;

        #[doc(hidden)]
        #[allow(unsafe_code, non_upper_case_globals)]
        // SAFETY: the two names are the ABI's, and no other symbol of a plugin has them.
        #[unsafe(no_mangle)]
        pub static outrigger_plugin: $crate::abi::PluginTable = $crate::entry::plugin_table::<$plugin>($minor_needed);

        #[doc(hidden)]
        #[allow(unsafe_code, non_upper_case_globals)]
        // SAFETY: as above.
        #[unsafe(no_mangle)]
        pub static outrigger_manifest: [u8; $crate::abi::MANIFEST_HEADER_LEN + OUTRIGGER_MANIFEST.len()] =
            $crate::abi::manifest_bytes(OUTRIGGER_MANIFEST, $minor_needed);
    };
}

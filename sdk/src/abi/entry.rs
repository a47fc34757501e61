//! The two symbols a plugin exports, `outrigger_plugin` and `outrigger_manifest`, and the trampolines behind the first.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::bytes::{Bytes, OwnedBytes};
use super::host::HostTable;
use super::panics;
use super::plugin::{CallFrame, Instance, PluginTable};
use super::service::RawService;
use super::{ABI_MAJOR, ABI_MINOR, STATUS_OK};
use crate::error::{Code, RpcError};
use crate::plugin::{Call, Host, Plugin, Reply, ReplySink};
use crate::service::{ErrorKind, Scope, chain, events, log, mempool, signer, wallet};
use crate::wire;

/// Begins the manifest's bytes.
pub const MANIFEST_MAGIC: [u8; 8] = *b"OUTRIGMF";

/// The bytes before the manifest's JSON: magic, ABI major, minor needed, minor built with, length; integers little-endian.
pub const MANIFEST_HEADER_LEN: usize = 8 + 4 + 4 + 4 + 4;

/// The header before a manifest's JSON.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ManifestHeader {
    /// The major version of the interface.
    pub abi_major: u32,
    /// The least minor version of a host.
    pub abi_minor_needed: u32,
    /// The minor version it was built with.
    pub abi_minor_built: u32,
    /// The bytes of the JSON that follows.
    pub len: u32,
}

impl ManifestHeader {
    /// Reads the header; none when the bytes do not begin with [`MANIFEST_MAGIC`] or are too few.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(&MANIFEST_MAGIC)?;
        let word = |at: usize| Some(u32::from_le_bytes(rest.get(at..at + 4)?.try_into().ok()?));
        Some(Self { abi_major: word(0)?, abi_minor_needed: word(4)?, abi_minor_built: word(8)?, len: word(12)? })
    }
}

/// The bytes of `outrigger_manifest` for a manifest's JSON, and the least minor version of a host that the plugin runs on;
/// `N` is [`MANIFEST_HEADER_LEN`] plus the JSON's length.
///
/// # Panics
/// When another length is asked for, or a minor version that this SDK does not know: while compiling.
pub const fn manifest_bytes<const N: usize>(json: &str, minor_needed: u32) -> [u8; N] {
    let json = json.as_bytes();
    assert!(N == MANIFEST_HEADER_LEN + json.len(), "N must be the header and the JSON");
    assert!(minor_needed <= ABI_MINOR, "this SDK has no such minor version of the plugin ABI");
    let mut out = [0; N];
    let words = [ABI_MAJOR, minor_needed, ABI_MINOR, json.len() as u32];
    let mut at = 0;
    while at < N {
        out[at] = if at < MANIFEST_MAGIC.len() {
            MANIFEST_MAGIC[at]
        } else if at < MANIFEST_HEADER_LEN {
            let word = words[(at - MANIFEST_MAGIC.len()) / 4];
            word.to_le_bytes()[at % 4]
        } else {
            json[at - MANIFEST_HEADER_LEN]
        };
        at += 1;
    }
    out
}

/// The table of a Rust plugin that runs on hosts of this minor version and later.
///
/// # Panics
/// As [`manifest_bytes`].
pub const fn plugin_table<P: Plugin>(minor_needed: u32) -> PluginTable {
    assert!(minor_needed <= ABI_MINOR, "this SDK has no such minor version of the plugin ABI");
    PluginTable {
        abi_minor_needed: minor_needed,
        create: Some(create::<P>),
        init: Some(init::<P>),
        start: Some(start::<P>),
        call: Some(call::<P>),
        cancel: Some(cancel::<P>),
        event: Some(event::<P>),
        quiesce: Some(quiesce::<P>),
        stop: Some(stop::<P>),
        destroy: Some(destroy::<P>),
        ..PluginTable::EMPTY
    }
}

/// What stands behind an [`Instance`] of a Rust plugin.
struct Slot<P> {
    plugin: Option<P>,
    sink: Option<Arc<HostReplies>>,
}

/// Sends replies to the host, until the instance has ended.
struct HostReplies {
    host: *const HostTable,
    /// Set when `stop` has returned: safe code may keep a reply or a service for longer, and the host is not to be called then.
    /// Who passes a moment before it is set finds the host's tables in their place, and a host that answers nothing.
    ended: Arc<AtomicBool>,
}

impl HostReplies {
    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}

// SAFETY: the host's functions may be called from any thread, and its table is valid for the life of the process.
unsafe impl Send for HostReplies {}
// SAFETY: as above.
unsafe impl Sync for HostReplies {}

impl ReplySink for HostReplies {
    fn reply(&self, token: u64, outcome: Result<Vec<u8>, RpcError>) -> bool {
        if self.has_ended() {
            return false;
        }
        let (code, body) = match outcome {
            Ok(json) => (0, json),
            // 0 would read as success; a plugin that answers an error of code 0 means an unnamed one.
            Err(error) if error.code.0 == 0 => (Code::MISC.0, error.message.into_bytes()),
            Err(error) => (error.code.0, error.message.into_bytes()),
        };
        // SAFETY: the table is the host's and valid for the life of the process.
        unsafe { ((*self.host).reply)((*self.host).ctx, token, code, body.into()) == STATUS_OK }
    }

    fn reply_shared(&self, token: u64, json: Arc<Vec<u8>>) -> bool {
        if self.has_ended() {
            return false;
        }
        // SAFETY: as above.
        unsafe { ((*self.host).reply)((*self.host).ctx, token, 0, json.into()) == STATUS_OK }
    }

    fn wanted(&self, token: u64) -> bool {
        if self.has_ended() {
            return false;
        }
        // SAFETY: as above; a host of minor 0 has no such function.
        unsafe { HostTable::wanted(self.host).is_none_or(|wanted| wanted((*self.host).ctx, token) != 0) }
    }
}

/// Runs code of an instance, turning a panic into the status of an internal error.
fn guarded(instance: Instance, body: impl FnOnce() -> i32) -> i32 {
    panics::inside(instance, || panics::caught(body)).unwrap_or(ErrorKind::Internal as i32)
}

unsafe extern "C" fn create<P: Plugin>() -> Instance {
    panics::caught(|| Box::into_raw(Box::new(Slot::<P> { plugin: None, sink: None })).cast())
        .unwrap_or(std::ptr::null_mut())
}

unsafe extern "C" fn init<P: Plugin>(
    instance: Instance,
    host: *const HostTable,
    options: Bytes,
    error: *mut OwnedBytes,
) -> i32 {
    guarded(instance, || {
        // SAFETY: the host passes what `create` made, and from one thread only during `init`.
        let slot = unsafe { &mut *instance.cast::<Slot<P>>() };
        // SAFETY: the options are readable until we return.
        let options = unsafe { options.as_slice() };
        let ended = Arc::new(AtomicBool::new(false));
        let service = |name: &str| {
            // SAFETY: the host's table is valid for the life of the process, and so are the service tables it gives.
            let service = unsafe { RawService::new(((*host).service)((*host).ctx, Bytes::lend(name.as_bytes()))) };
            service.until(ended.clone())
        };
        panics::report_to(instance, log::LogClient::new(service("log/1")));
        let handle = Host {
            chain: Arc::new(chain::ChainClient::new(service("chain/1"))),
            mempool: Arc::new(mempool::MempoolClient::new(service("mempool/1"))),
            wallet: Arc::new(wallet::WalletClient::new(service("wallet/1"))),
            signer: Arc::new(signer::SignerClient::new(service("signer/1"))),
            events: Arc::new(events::EventsClient::new(service("events/1"))),
            log: Arc::new(log::LogClient::new(service("log/1"))),
        };
        slot.sink = Some(Arc::new(HostReplies { host, ended: ended.clone() }));
        let options = serde_json::from_slice(options).map_err(|error| error.to_string());
        match options.and_then(|options| P::new(handle, options)) {
            Ok(plugin) => {
                slot.plugin = Some(plugin);
                STATUS_OK
            }
            Err(reason) => refuse(reason, error),
        }
    })
}

/// Writes the reason of a refusal.
fn refuse(reason: String, error: *mut OwnedBytes) -> i32 {
    // SAFETY: the host passes memory that can be written and holds nothing to release.
    unsafe { error.write(reason.into_bytes().into()) };
    ErrorKind::Refused as i32
}

/// Runs `body` on the plugin of an instance whose `init` succeeded.
///
/// # Safety
/// `instance` came from `create::<P>` and was not destroyed.
unsafe fn with<P: Plugin>(instance: Instance, body: impl FnOnce(&P, &Arc<HostReplies>) -> i32) -> i32 {
    guarded(instance, || {
        // SAFETY: the caller's promise; after `init` the slot is only read.
        let slot = unsafe { &*instance.cast::<Slot<P>>() };
        match (&slot.plugin, &slot.sink) {
            (Some(plugin), Some(sink)) => body(plugin, sink),
            _ => ErrorKind::Stale as i32,
        }
    })
}

unsafe extern "C" fn start<P: Plugin>(instance: Instance, error: *mut OwnedBytes) -> i32 {
    // SAFETY: the host passes a live instance.
    unsafe {
        with::<P>(instance, |plugin, _| match plugin.start() {
            Ok(()) => STATUS_OK,
            Err(reason) => refuse(reason, error),
        })
    }
}

unsafe extern "C" fn call<P: Plugin>(instance: Instance, frame: *const CallFrame) -> i32 {
    // SAFETY: the host passes a live instance and a frame that is valid until we return.
    unsafe {
        // A reference to the frame would claim more than an older host's is long.
        let (token, method, params) = ((*frame).token, (*frame).method.as_slice(), (*frame).params.as_slice());
        let deadline = CallFrame::deadline_ms(frame).filter(|ms| *ms > 0).map(Duration::from_millis);
        with::<P>(instance, |plugin, sink| {
            let reply = Reply::new(token, sink.clone());
            let Ok(method) = std::str::from_utf8(method) else { return ErrorKind::Malformed as i32 };
            let params = match serde_json::from_slice(params) {
                Ok(params) => params,
                Err(error) => {
                    // A client can make this happen, with values that nest too deeply or half of a surrogate pair: it is told,
                    // and the plugin is not at fault.
                    reply.send::<()>(Err(RpcError::new(Code::PARSE, format!("Parse error: {error}"))));
                    return STATUS_OK;
                }
            };
            plugin.call(Call { method, params, scope: Scope(token), deadline }, reply);
            STATUS_OK
        })
    }
}

unsafe extern "C" fn cancel<P: Plugin>(instance: Instance, token: u64) -> i32 {
    // SAFETY: the host passes a live instance.
    unsafe {
        with::<P>(instance, |plugin, _| {
            plugin.cancel(token);
            STATUS_OK
        })
    }
}

unsafe extern "C" fn event<P: Plugin>(instance: Instance, event: Bytes) -> i32 {
    // SAFETY: the host passes a live instance and bytes that are readable until we return.
    unsafe {
        let bytes = event.as_slice();
        with::<P>(instance, |plugin, _| {
            // An event of a newer host that this SDK does not know is none of the plugin's concern.
            if let Ok(event) = wire::from_bytes(bytes) {
                plugin.event(event);
            }
            STATUS_OK
        })
    }
}

unsafe extern "C" fn quiesce<P: Plugin>(instance: Instance) -> i32 {
    // SAFETY: the host passes a live instance.
    unsafe {
        with::<P>(instance, |plugin, _| {
            plugin.quiesce();
            STATUS_OK
        })
    }
}

unsafe extern "C" fn stop<P: Plugin>(instance: Instance) -> i32 {
    // SAFETY: the host passes a live instance, and nobody else is inside.
    let status = unsafe {
        with::<P>(instance, |plugin, _| {
            plugin.stop();
            STATUS_OK
        })
    };
    // After this the host may not be called any more, also not by what safe code has kept.
    let closed = guarded(instance, || {
        panics::forget(instance);
        // SAFETY: as above; after `init` the slot is only read.
        let slot = unsafe { &*instance.cast::<Slot<P>>() };
        if let Some(sink) = &slot.sink {
            sink.ended.store(true, Ordering::Release);
        }
        STATUS_OK
    });
    if status == STATUS_OK { closed } else { status }
}

unsafe extern "C" fn destroy<P: Plugin>(instance: Instance) {
    // A panic of the plugin's own `drop` is nobody's concern any more.
    let _ = panics::caught(|| {
        // SAFETY: the host destroys an instance once, when no thread is inside it.
        let slot = unsafe { Box::from_raw(instance.cast::<Slot<P>>()) };
        // A reply that is dropped with the plugin must not reach the host, whether it has called `stop` or not.
        if let Some(sink) = &slot.sink {
            sink.ended.store(true, Ordering::Release);
        }
        drop(slot);
    });
}

#[cfg(test)]
mod tests {
    use std::ffi::c_void;
    use std::sync::Mutex;

    use serde_json::{Map, Value, json};

    use super::*;
    use crate::abi::ServiceTable;
    use crate::abi::layout::Layout;

    /// Answers what it is told of deadline and wish.
    struct Mirror;

    impl Plugin for Mirror {
        fn new(_: Host, _: Map<String, Value>) -> Result<Self, String> {
            Ok(Self)
        }

        fn call(&self, call: Call<'_>, reply: Reply) {
            let answer = json!({"deadline": call.deadline.map(|time| time.as_millis()), "wanted": reply.is_wanted()});
            reply.send(Ok(answer));
        }
    }

    const MANIFEST: &str = r#"{"id": "mirror", "version": "1", "summary": "", "methods": []}"#;

    #[test]
    fn a_plugin_says_which_host_it_needs() {
        let bytes: [u8; MANIFEST_HEADER_LEN + MANIFEST.len()] = manifest_bytes(MANIFEST, 1);
        let header = ManifestHeader::parse(&bytes).unwrap();
        let len = u32::try_from(MANIFEST.len()).unwrap();
        let expected = ManifestHeader { abi_major: ABI_MAJOR, abi_minor_needed: 1, abi_minor_built: ABI_MINOR, len };
        assert_eq!((header, &bytes[MANIFEST_HEADER_LEN..]), (expected, MANIFEST.as_bytes()));
        assert_eq!(plugin_table::<Mirror>(1).abi_minor_needed, 1);
        assert_eq!(plugin_table::<Mirror>(0).abi_minor_needed, 0);
    }

    /// What a host was answered.
    type Answers = Mutex<Vec<(i32, String)>>;

    unsafe extern "C" fn no_service(_: *const c_void, _: Bytes) -> *const ServiceTable {
        std::ptr::null()
    }

    unsafe extern "C" fn keep(ctx: *const c_void, _: u64, code: i32, body: OwnedBytes) -> i32 {
        // SAFETY: the context is the one that `ask` passes.
        let answers = unsafe { &*ctx.cast::<Answers>() };
        answers.lock().unwrap().push((code, String::from_utf8(body.to_vec()).unwrap()));
        STATUS_OK
    }

    unsafe extern "C" fn unwanted(_: *const c_void, _: u64) -> i32 {
        0
    }

    /// Makes a call with a host table and a frame of these sizes. What lies beyond them is damage that would show.
    fn ask(host_size: usize, frame_size: usize) -> String {
        let answers = Answers::default();
        let host = HostTable {
            struct_size: host_size,
            abi_major: ABI_MAJOR,
            abi_minor: 0,
            ctx: (&raw const answers).cast(),
            service: no_service,
            reply: keep,
            wanted: unwanted,
        };
        let frame = CallFrame {
            struct_size: frame_size,
            token: 1,
            method: Bytes::lend(b"mirror"),
            params: Bytes::lend(b"[]"),
            deadline_ms: 250,
        };
        // SAFETY: the table is that of a Rust plugin, and its functions are called in their order with what lives on.
        unsafe {
            let instance = create::<Mirror>();
            let mut error = OwnedBytes::EMPTY;
            assert_eq!(init::<Mirror>(instance, &host, Bytes::lend(b"{}"), &mut error), STATUS_OK);
            assert_eq!(start::<Mirror>(instance, &mut error), STATUS_OK);
            assert_eq!(call::<Mirror>(instance, &frame), STATUS_OK);
            assert_eq!(stop::<Mirror>(instance), STATUS_OK);
            destroy::<Mirror>(instance);
        }
        let answers = answers.into_inner().unwrap();
        assert_eq!((answers.len(), answers[0].0), (1, 0));
        answers[0].1.clone()
    }

    /// What a panic carries here: its `drop` panics as well.
    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            std::panic::panic_any(Bomb);
        }
    }

    /// Panics in each of its functions.
    struct Explosive;

    impl Drop for Explosive {
        fn drop(&mut self) {
            std::panic::panic_any(Bomb);
        }
    }

    impl Plugin for Explosive {
        fn new(_: Host, _: Map<String, Value>) -> Result<Self, String> {
            Ok(Self)
        }

        fn start(&self) -> Result<(), String> {
            std::panic::panic_any(Bomb)
        }

        fn call(&self, _: Call<'_>, _: Reply) {
            std::panic::panic_any(Bomb)
        }

        fn cancel(&self, _: u64) {
            std::panic::panic_any(Bomb)
        }

        fn event(&self, _: events::Event) {
            std::panic::panic_any(Bomb)
        }

        fn quiesce(&self) {
            std::panic::panic_any(Bomb)
        }

        fn stop(&self) {
            std::panic::panic_any(Bomb)
        }
    }

    #[test]
    fn a_panic_that_panics_again_when_it_is_dropped_ends_nothing() {
        let answers = Answers::default();
        let host = HostTable {
            struct_size: size_of::<HostTable>(),
            abi_major: ABI_MAJOR,
            abi_minor: ABI_MINOR,
            ctx: (&raw const answers).cast(),
            service: no_service,
            reply: keep,
            wanted: unwanted,
        };
        let frame = CallFrame {
            struct_size: size_of::<CallFrame>(),
            token: 1,
            method: Bytes::lend(b"explosive"),
            params: Bytes::lend(b"[]"),
            deadline_ms: 0,
        };
        let event_bytes = wire::to_bytes(&events::Event::ShuttingDown);
        const FAULT: i32 = ErrorKind::Internal as i32;
        // SAFETY: as in `ask`.
        unsafe {
            let instance = create::<Explosive>();
            let mut error = OwnedBytes::EMPTY;
            assert_eq!(init::<Explosive>(instance, &host, Bytes::lend(b"{}"), &mut error), STATUS_OK);
            assert_eq!(start::<Explosive>(instance, &mut error), FAULT);
            assert_eq!(call::<Explosive>(instance, &frame), FAULT);
            assert_eq!(cancel::<Explosive>(instance, 1), FAULT);
            assert_eq!(event::<Explosive>(instance, Bytes::lend(&event_bytes)), FAULT);
            assert_eq!(quiesce::<Explosive>(instance), FAULT);
            assert_eq!(stop::<Explosive>(instance), FAULT);
            destroy::<Explosive>(instance);
        }
        // The reply that was dropped on the way out.
        assert_eq!(answers.into_inner().unwrap().len(), 1);
    }

    /// What was kept of an instance, by itself or by code that outlives it.
    #[derive(Default)]
    struct Kept {
        host: Mutex<Option<Host>>,
        replies: Mutex<Vec<Reply>>,
    }

    /// Keeps its replies and its host: some dropped with it, some handed to what outlives it.
    struct Keeper {
        _own: Mutex<Vec<Reply>>,
        outliving: Arc<Kept>,
    }

    thread_local! {
        /// Where the keeper that is made on this thread leaves what it keeps.
        static OUTLIVING: Arc<Kept> = Arc::default();
    }

    impl Plugin for Keeper {
        fn new(host: Host, _: Map<String, Value>) -> Result<Self, String> {
            let outliving = OUTLIVING.with(Arc::clone);
            *outliving.host.lock().unwrap() = Some(host);
            Ok(Self { _own: Mutex::default(), outliving })
        }

        fn call(&self, call: Call<'_>, reply: Reply) {
            let kept = if call.method == "own" { &self._own } else { &self.outliving.replies };
            kept.lock().unwrap().push(reply);
        }
    }

    /// A host that must not be called once its instance has ended.
    #[derive(Default)]
    struct Strict {
        answers: Answers,
        calls: std::sync::atomic::AtomicU64,
        log: Option<crate::abi::ExportedService>,
    }

    unsafe extern "C" fn find(ctx: *const c_void, name: Bytes) -> *const ServiceTable {
        // SAFETY: the context is the one of the test, and the name is readable.
        let (strict, name) = unsafe { (&*ctx.cast::<Strict>(), name.as_slice()) };
        strict.calls.fetch_add(1, Ordering::SeqCst);
        let log = strict.log.as_ref().filter(|_| name == b"log/1");
        log.map_or(std::ptr::null(), crate::abi::ExportedService::table)
    }

    unsafe extern "C" fn answered(ctx: *const c_void, token: u64, code: i32, body: OwnedBytes) -> i32 {
        // SAFETY: as above.
        let strict = unsafe { &*ctx.cast::<Strict>() };
        strict.calls.fetch_add(1, Ordering::SeqCst);
        // SAFETY: as above.
        unsafe { keep((&raw const strict.answers).cast(), token, code, body) }
    }

    unsafe extern "C" fn asked(ctx: *const c_void, _: u64) -> i32 {
        // SAFETY: as above.
        unsafe { &*ctx.cast::<Strict>() }.calls.fetch_add(1, Ordering::SeqCst);
        1
    }

    #[test]
    fn what_is_kept_beyond_destroy_does_not_call_the_host() {
        let lines = Arc::new(crate::testing::MemoryLog::default());
        let log = Some(crate::abi::ExportedService::new::<dyn crate::service::Log>(lines.clone()));
        let strict = Strict { log, ..Strict::default() };
        let host = HostTable {
            struct_size: size_of::<HostTable>(),
            abi_major: ABI_MAJOR,
            abi_minor: ABI_MINOR,
            ctx: (&raw const strict).cast(),
            service: find,
            reply: answered,
            wanted: asked,
        };
        let frame = |token, method: &'static str| CallFrame {
            struct_size: size_of::<CallFrame>(),
            token,
            method: Bytes::lend(method.as_bytes()),
            params: Bytes::lend(b"[]"),
            deadline_ms: 0,
        };
        let kept = OUTLIVING.with(Arc::clone);
        let calls = || strict.calls.load(Ordering::SeqCst);
        // SAFETY: as in `ask`.
        unsafe {
            let instance = create::<Keeper>();
            let mut error = OwnedBytes::EMPTY;
            assert_eq!(init::<Keeper>(instance, &host, Bytes::lend(b"{}"), &mut error), STATUS_OK);
            assert_eq!(start::<Keeper>(instance, &mut error), STATUS_OK);
            for (token, method) in [(1, "own"), (2, "outliving"), (3, "outliving"), (4, "outliving")] {
                assert_eq!(call::<Keeper>(instance, &frame(token, method)), STATUS_OK);
            }
            let handle = kept.host.lock().unwrap().clone().unwrap();
            handle.log(log::Level::Info, "in time");
            assert!(kept.replies.lock().unwrap()[0].is_wanted());
            let before = calls();
            assert_eq!(stop::<Keeper>(instance), STATUS_OK);
            destroy::<Keeper>(instance);
            assert_eq!(calls(), before, "the reply that is dropped with the plugin reaches the host");
        }
        let before = calls();
        let kept = std::thread::spawn(move || {
            let host = kept.host.lock().unwrap().take().unwrap();
            let late = host.log.write(Scope::NONE, log::Level::Info, "late".into()).unwrap_err();
            assert_eq!(late.kind, ErrorKind::Stale);
            let mut replies = std::mem::take(&mut *kept.replies.lock().unwrap());
            assert!(!replies[0].is_wanted());
            assert!(!replies.remove(0).send(Ok(1)) && !replies.remove(0).send_shared(Ok(Arc::new(b"1".to_vec()))));
            drop(replies);
        });
        kept.join().unwrap();
        assert_eq!((calls(), strict.answers.lock().unwrap().len()), (before, 0));
        assert_eq!(lines.lines(), [(log::Level::Info, "in time".to_owned())]);
    }

    #[test]
    fn what_an_older_host_does_not_have_is_not_read() {
        let (host, frame) = (size_of::<HostTable>(), size_of::<CallFrame>());
        assert_eq!(ask(host, frame), r#"{"deadline":250,"wanted":false}"#);
        assert_eq!(ask(host + 64, frame + 64), r#"{"deadline":250,"wanted":false}"#);
        assert_eq!(
            ask(HostTable::LAYOUT.size_at(0), CallFrame::LAYOUT.size_at(0)),
            r#"{"deadline":null,"wanted":true}"#
        );
        assert_eq!(ask(HostTable::LAYOUT.size_at(0) + 7, frame), r#"{"deadline":250,"wanted":true}"#);
    }
}

//! The functions of an entry when the host or the plugin misbehaves.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use outrigger_abi::{
    ABI_MAJOR, ABI_MINOR, Bytes, CallFrame, ExportedService, HostTable, MANIFEST_HEADER_LEN, ManifestHeader,
    OwnedBytes, STATUS_OK, ServiceTable, manifest_bytes,
};
use outrigger_service::Log;
use outrigger_service::events::Event;
use serde_json::json;

use super::*;
use crate::options::NoOptions;

/// Answers with the deadline of a call, and whether the host still wants the answer.
struct Mirror;

impl Plugin for Mirror {
    const MANIFEST: &'static str = MANIFEST;

    type Options = NoOptions;

    fn new(_: Host, _: NoOptions) -> Result<Self, String> {
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

unsafe extern "C" fn no_json(_: *const c_void, _: Bytes, _: Bytes, _: u64, _: Bytes, _: *mut OwnedBytes) -> i32 {
    unreachable!("a plugin in Rust asks in binary")
}

unsafe extern "C" fn no_event(_: *const c_void, _: Bytes, _: *mut OwnedBytes) -> i32 {
    unreachable!("a plugin in Rust reads events in binary")
}

/// A host that stores the plugin's replies in `answers`.
fn keeping(answers: &Answers) -> HostTable {
    HostTable {
        struct_size: size_of::<HostTable>(),
        abi_major: ABI_MAJOR,
        abi_minor: ABI_MINOR,
        ctx: (&raw const *answers).cast(),
        service: no_service,
        reply: keep,
        wanted: unwanted,
        ask_json: no_json,
        event_json: no_event,
    }
}

fn frame(token: u64, method: &'static str) -> CallFrame {
    CallFrame {
        struct_size: size_of::<CallFrame>(),
        token,
        method: Bytes::lend(method.as_bytes()),
        params: Bytes::lend(b"[]"),
        deadline_ms: 0,
        release: 0,
    }
}

/// Makes a call with a host table and a frame of these sizes. A read beyond them would change the answer.
fn ask(host_size: usize, frame_size: usize) -> String {
    let answers = Answers::default();
    let host = HostTable { struct_size: host_size, abi_minor: 0, ..keeping(&answers) };
    let frame = CallFrame { struct_size: frame_size, deadline_ms: 250, release: 30, ..frame(1, "mirror") };
    // SAFETY: the table is a Rust plugin's. Its functions are called in order, and the arguments outlive the calls.
    unsafe {
        let table = plugin_table::<Mirror>(0);
        let instance = (table.create.unwrap())();
        let mut error = OwnedBytes::EMPTY;
        assert_eq!((table.init.unwrap())(instance, &host, Bytes::lend(b"{}"), &mut error), STATUS_OK);
        assert_eq!((table.start.unwrap())(instance, &mut error), STATUS_OK);
        assert_eq!((table.call.unwrap())(instance, &frame), STATUS_OK);
        assert_eq!((table.stop.unwrap())(instance), STATUS_OK);
        (table.destroy.unwrap())(instance);
    }
    let answers = answers.into_inner().unwrap();
    assert_eq!((answers.len(), answers[0].0), (1, 0));
    answers[0].1.clone()
}

/// A panic payload whose `drop` panics too.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        std::panic::panic_any(Bomb);
    }
}

struct Explosive;

impl Drop for Explosive {
    fn drop(&mut self) {
        std::panic::panic_any(Bomb);
    }
}

impl Plugin for Explosive {
    const MANIFEST: &'static str = MANIFEST;

    type Options = NoOptions;

    fn new(_: Host, _: NoOptions) -> Result<Self, String> {
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

    fn event(&self, _: Event) {
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
    let host = keeping(&answers);
    let frame = frame(1, "explosive");
    let event_bytes = wire::to_bytes(&Event::ShuttingDown);
    const FAULT: i32 = ErrorKind::Internal as i32;
    // SAFETY: as in `ask`.
    unsafe {
        let table = plugin_table::<Explosive>(0);
        let instance = (table.create.unwrap())();
        let mut error = OwnedBytes::EMPTY;
        assert_eq!((table.init.unwrap())(instance, &host, Bytes::lend(b"{}"), &mut error), STATUS_OK);
        assert_eq!((table.start.unwrap())(instance, &mut error), FAULT);
        assert_eq!((table.call.unwrap())(instance, &frame), FAULT);
        assert_eq!((table.cancel.unwrap())(instance, 1), FAULT);
        assert_eq!((table.event.unwrap())(instance, Bytes::lend(&event_bytes)), FAULT);
        assert_eq!((table.quiesce.unwrap())(instance), FAULT);
        assert_eq!((table.stop.unwrap())(instance), FAULT);
        (table.destroy.unwrap())(instance);
    }
    // The panic in `call` dropped its reply, which answers the host.
    assert_eq!(answers.into_inner().unwrap().len(), 1);
}

/// Handles of an instance that outlive it.
#[derive(Default)]
struct Kept {
    host: Mutex<Option<Host>>,
    replies: Mutex<Vec<Reply>>,
}

/// Keeps its host and its replies: in itself, or in `outliving` beyond its end.
struct Keeper {
    _own: Mutex<Vec<Reply>>,
    outliving: Arc<Kept>,
}

thread_local! {
    /// The handles that a keeper made on this thread leaves behind.
    static OUTLIVING: Arc<Kept> = Arc::default();
}

impl Plugin for Keeper {
    const MANIFEST: &'static str = MANIFEST;

    type Options = NoOptions;

    fn new(host: Host, _: NoOptions) -> Result<Self, String> {
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
    calls: AtomicU64,
    log: Option<ExportedService>,
}

unsafe extern "C" fn find(ctx: *const c_void, name: Bytes) -> *const ServiceTable {
    // SAFETY: the context is the one of the test, and the name is readable.
    let (strict, name) = unsafe { (&*ctx.cast::<Strict>(), name.as_slice()) };
    strict.calls.fetch_add(1, Ordering::SeqCst);
    let log = strict.log.as_ref().filter(|_| name == b"log/1");
    log.map_or(std::ptr::null(), ExportedService::table)
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
fn entry_handles_kept_beyond_destroy_do_not_call_the_host() {
    let lines = Arc::new(crate::testing::StubLog::default());
    let log = Some(ExportedService::new::<dyn Log>(lines.clone()));
    let strict = Strict { log, ..Strict::default() };
    let ctx = (&raw const strict).cast();
    let host = HostTable { ctx, service: find, reply: answered, wanted: asked, ..keeping(&strict.answers) };
    let kept = OUTLIVING.with(Arc::clone);
    let calls = || strict.calls.load(Ordering::SeqCst);
    // SAFETY: as in `ask`.
    unsafe {
        let table = plugin_table::<Keeper>(0);
        let instance = (table.create.unwrap())();
        let mut error = OwnedBytes::EMPTY;
        assert_eq!((table.init.unwrap())(instance, &host, Bytes::lend(b"{}"), &mut error), STATUS_OK);
        assert_eq!((table.start.unwrap())(instance, &mut error), STATUS_OK);
        for (token, method) in [(1, "own"), (2, "outliving"), (3, "outliving"), (4, "outliving")] {
            assert_eq!((table.call.unwrap())(instance, &frame(token, method)), STATUS_OK);
        }
        let handle = kept.host.lock().unwrap().clone().unwrap();
        handle.log(Level::Info, "in time");
        assert!(kept.replies.lock().unwrap()[0].is_wanted());
        // Another instance of the library, whose `drop` panics: the first instance does not log it.
        let other = plugin_table::<Explosive>(0);
        let explosive = (other.create.unwrap())();
        assert_eq!((other.init.unwrap())(explosive, &host, Bytes::lend(b"{}"), &mut error), STATUS_OK);
        (other.destroy.unwrap())(explosive);
        let before = calls();
        assert_eq!((table.stop.unwrap())(instance), STATUS_OK);
        (table.destroy.unwrap())(instance);
        assert_eq!(calls(), before, "the reply that is dropped with the plugin reaches the host");
    }
    let before = calls();
    let kept = std::thread::spawn(move || {
        let host = kept.host.lock().unwrap().take().unwrap();
        let late = host.log.write(Scope::NONE, Level::Info, "late".into()).unwrap_err();
        assert_eq!(late.kind, ErrorKind::Stale);
        let mut replies = std::mem::take(&mut *kept.replies.lock().unwrap());
        assert!(!replies[0].is_wanted());
        assert!(!replies.remove(0).send(Ok(1)) && !replies.remove(0).send_json(Ok(Arc::new(b"1".to_vec()))));
        drop(replies);
    });
    kept.join().unwrap();
    assert_eq!((calls(), strict.answers.lock().unwrap().len()), (before, 0));
    assert_eq!(lines.lines(), [(Level::Info, "in time".to_owned())]);
}

#[test]
fn panic_texts_are_cut_to_200_bytes_between_characters() {
    let long = "é".repeat(200);
    assert_eq!((cut(""), cut("short"), cut(&long)), ("", "short", &long[..200]));
    assert_eq!(cut(&format!("x{long}")), format!("x{}", &long[..198]));
}

#[test]
fn entry_does_not_read_what_an_older_host_does_not_have() {
    let (host, frame) = (size_of::<HostTable>(), size_of::<CallFrame>());
    assert_eq!(ask(host, frame), r#"{"deadline":250,"wanted":false}"#);
    assert_eq!(ask(host + 64, frame + 64), r#"{"deadline":250,"wanted":false}"#);
    assert_eq!(ask(HostTable::LAYOUT.size_at(0), CallFrame::LAYOUT.size_at(0)), r#"{"deadline":null,"wanted":true}"#);
    assert_eq!(ask(HostTable::LAYOUT.size_at(0) + 7, frame), r#"{"deadline":250,"wanted":true}"#);
}

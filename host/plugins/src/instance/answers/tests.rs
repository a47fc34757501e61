#![allow(unsafe_code)]

use std::pin::pin;
use std::task::{Context as TaskContext, Poll, Wake, Waker};

use outrigger_abi::{Bytes, RawService};
use outrigger_sdk::manifest::Manifest;
use outrigger_service::events::Event;
use outrigger_service::log::Level;
use outrigger_service::{Log, Scope, wire};
use parking_lot::Mutex;

use super::*;
use crate::instance::{Code, LoadedLibrary};

#[derive(Default)]
struct Lines(Mutex<Vec<String>>);

impl Log for Lines {
    fn write(&self, _: Scope, _: Level, message: String) -> outrigger_service::Result<()> {
        self.0.lock().push(message);
        Ok(())
    }

    fn tells_panics(&self, _: Scope) -> outrigger_service::Result<bool> {
        Ok(false)
    }
}

/// A library for tests, which is in the program and loads no file.
fn test_library() -> Arc<LoadedLibrary> {
    use outrigger_sdk::options::NoOptions;
    use outrigger_sdk::{Call, Host, Plugin, Reply};

    struct Idle;

    impl Plugin for Idle {
        const MANIFEST: &'static str = "";

        type Options = NoOptions;

        fn new(_: Host, _: NoOptions) -> Result<Self, String> {
            Ok(Self)
        }
        fn call(&self, _: Call<'_>, _: Reply) {}
    }

    let manifest = br#"{"id": "idle", "version": "1", "summary": "", "methods": []}"#;
    Arc::new(LoadedLibrary {
        file: None,
        hash: None,
        abi_minor: 0,
        manifest: Manifest::parse(manifest).unwrap(),
        code: Code::InProcess(Box::leak(Box::new(outrigger_sdk::entry::plugin_table::<Idle>(0)))),
    })
}

fn context(lines: &Arc<Lines>) -> &'static Context {
    let log = Arc::new(ExportedService::new::<dyn Log>(lines.clone()));
    Box::leak(Box::new(Context {
        id: 7,
        code: test_library(),
        calls: Arc::default(),
        health: Arc::default(),
        recovery: Recovery::default(),
        rules: AnswerRules::Bounded(1 << 20),
        services: HashMap::from([("log/1".to_owned(), log)]),
        life: Life::new().into(),
        notes: Rate::per_second(NOTES_PER_SECOND),
    }))
}

#[test]
fn after_the_end_of_an_instance_the_hosts_functions_answer_stale_and_change_nothing() {
    let lines = Arc::new(Lines::default());
    let context = context(&lines);
    let (token, receiver) = context.calls.open(7, 0);
    let table = outrigger_abi::host_table(context);
    // SAFETY: the table and its context are never freed; the functions borrow their arguments.
    let find = |name: &[u8]| unsafe { (table.service)(table.ctx, Bytes::lend(name)) };
    // SAFETY: as above.
    let wanted = || unsafe { (table.wanted)(table.ctx, token) };
    let event = wire::to_bytes(&Event::ShuttingDown);
    // SAFETY: as above.
    let shown = || unsafe {
        let mut response = OwnedBytes::EMPTY;
        let status = (table.event_json)(table.ctx, Bytes::lend(&event), &mut response);
        (status, String::from_utf8(response.to_vec()).unwrap())
    };
    let log_json = || {
        let (mut response, request) = (OwnedBytes::EMPTY, br#"{"level": "info", "message": "json"}"#);
        let [service, function, request] = [b"log/1", &b"write"[..], request].map(Bytes::lend);
        // SAFETY: as above.
        unsafe { (table.ask_json)(table.ctx, service, function, 0, request, &mut response) }
    };
    let log = find(b"log/1");
    assert!(!log.is_null() && find(b"chain/1").is_null());
    // SAFETY: as above.
    let log = unsafe { RawService::new(log) };
    let call_log = || log.call(0, 0, &[]).status;
    assert_eq!((wanted(), call_log()), (1, ErrorKind::Malformed as i32));
    assert_eq!((log_json(), lines.0.lock().as_slice()), (STATUS_OK, &["json".to_owned()][..]));
    assert_eq!(shown(), (STATUS_OK, "\"shutting_down\"".to_owned()));
    context.end(Stage::Stopped);
    assert!(find(b"log/1").is_null());
    assert_eq!((wanted(), log_json(), shown().0), (0, ErrorKind::Stale as i32, ErrorKind::Stale as i32));
    // SAFETY: as above; the bytes are the host's from here on.
    let status = unsafe { (table.reply)(table.ctx, token, 0, OwnedBytes::from(b"1".to_vec())) };
    assert_eq!((status, receiver.is_empty()), (ErrorKind::Stale as i32, true));
    // The service table that the plugin already has stays valid and does nothing. The SDK's client no longer calls it,
    // but a plugin in C may.
    assert_eq!((call_log(), lines.0.lock().len()), (ErrorKind::Stale as i32, 1));
}

struct Bomb;

impl Wake for Bomb {
    fn wake(self: Arc<Self>) {
        unreachable!("requested by the test");
    }
}

#[test]
fn a_panic_in_the_hosts_reply_is_a_status() {
    let context = context(&Arc::default());
    let table = outrigger_abi::host_table(context);
    let (token, receiver) = context.calls.open(7, 0);
    let mut receiver = pin!(receiver);
    let waker = Waker::from(Arc::new(Bomb));
    assert!(matches!(receiver.as_mut().poll(&mut TaskContext::from_waker(&waker)), Poll::Pending));
    // SAFETY: the table's context is never freed; the bytes are the host's from here on.
    let status = unsafe { (table.reply)(table.ctx, token, 0, OwnedBytes::from(b"1".to_vec())) };
    assert_eq!(status, ErrorKind::Internal as i32);
}

//! A plugin that breaks each rule of the plugin ABI on demand: one method or option per fault.
//!
//! The methods that block take the address of a *gate*: they connect to it, and continue when the other end closes the
//! connection. `manifest.json` says what each method does.

mod gate;
mod heard;
mod raw;

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use outrigger_sdk::params::int64;
use outrigger_sdk::service::Scope;
use outrigger_sdk::service::events::Event;
use outrigger_sdk::service::rpc::As;
use outrigger_sdk::wire::Blob;
use outrigger_sdk::{Call, Host, Plugin, Reply, RpcError, RpcErrorCode};
use serde_json::{Map, Value, json};

use crate::gate::{Release, lock};
use crate::heard::Heard;
use crate::raw::RawHost;

pub const MANIFEST: &str = include_str!("../manifest.json");

/// The interval at which an endless call checks whether the host still wants its answer.
const LOOK: Duration = Duration::from_millis(1);

/// The bytes of an answer that is too long to be searched for its end.
const LONG_ANSWER: usize = 70_000;

const FORGED: &str = r#"1,"error":{"code":-1,"message":"forged"},"id":"other""#;

/// How long faultslow takes: far longer than an inline method may.
const SLOW: Duration = Duration::from_millis(50);

static INSTANCES: AtomicU64 = AtomicU64::new(0);

/// What blocks the event handler.
#[derive(Clone)]
enum Slow {
    Release,
    Gate(String),
}

pub struct Faulty {
    host: Host,
    raw: RawHost,
    options: Map<String, Value>,
    instance: u64,
    calls: AtomicU64,
    release: Release,
    slow: Mutex<Option<Slow>>,
    heard: Heard,
    late: Mutex<Late>,
}

/// The calls of faultlate that wait for their release.
#[derive(Default)]
struct Late {
    waiting: Vec<Reply>,
    /// The plugin keeps no more calls.
    closed: bool,
}

impl Plugin for Faulty {
    const MANIFEST: &'static str = MANIFEST;

    type Options = Map<String, Value>;

    fn new(host: Host, options: Map<String, Value>) -> Result<Self, String> {
        let plugin = Self {
            raw: RawHost::current(),
            options,
            instance: INSTANCES.fetch_add(1, Ordering::Relaxed) + 1,
            calls: AtomicU64::new(0),
            release: Release::default(),
            slow: Mutex::default(),
            heard: Heard::default(),
            late: Mutex::default(),
            host,
        };
        plugin.panic_if("panic_init");
        plugin.abort_if("abort_init");
        if let Some(needed) = plugin.text("need").filter(|needed| !Path::new(needed).exists()) {
            return Err(format!("{needed} is not there"));
        }
        if plugin.has("block_init") {
            gate::block_for_ever();
        }
        if let Some(gate) = plugin.text("gate_init") {
            gate::wait(gate::connect(gate).map_err(|error| error.message)?);
        }
        if plugin.has("rely_on_mempool") {
            let mempool = plugin.host.mempool.info(Scope::NONE);
            assert!(mempool.is_ok(), "rely_on_mempool was asked for, and the mempool answers {mempool:?}");
        }
        if plugin.has("refuse_init") { Err("refuse_init was asked for".to_owned()) } else { Ok(plugin) }
    }

    fn start(&self) -> Result<(), String> {
        self.panic_if("panic_start");
        if self.has("refuse_start") { Err("refuse_start was asked for".to_owned()) } else { Ok(()) }
    }

    fn call(&self, call: Call<'_>, reply: Reply) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        match call.method {
            "faultendless" => endless(&call, reply),
            "faultlate" => self.answer_late(&call, reply),
            "faultsilent" => std::mem::forget(reply),
            "faultdrop" => drop(reply),
            "faulttwice" => {
                self.raw.reply(reply.token(), 0, b"1");
                self.raw.reply(reply.token(), 0, b"2");
                std::mem::forget(reply);
            }
            "faultthread" => {
                let thread = std::thread::spawn(move || {
                    assert!(reply.token() == 0, "faultthread was called");
                    reply.send(Ok("no panic"));
                });
                // The thread's reply reports its outcome.
                let _ = thread.join();
            }
            "faultgarbage" => {
                reply.send_json(Ok(b"{\"half\":".to_vec()));
            }
            "faultnewline" => {
                reply.send_json(Ok(b"[1,\n2]".to_vec()));
            }
            "faultbraces" => {
                reply.send_json(Ok(vec![b'{'; LONG_ANSWER]));
            }
            "faultinject" => {
                let mut bytes = FORGED.as_bytes().to_vec();
                bytes.resize(LONG_ANSWER, b' ');
                reply.send_json(Ok(bytes));
            }
            "faultunreleased" => match gate_of(&call) {
                Ok(gate) => {
                    self.raw.reply_unreleased(reply.token(), gate.map(str::to_owned));
                    std::mem::forget(reply);
                }
                Err(error) => {
                    reply.send::<()>(Err(error));
                }
            },
            "faultempty" => {
                reply.send::<()>(Err(RpcError::misc("")));
            }
            "faultbadtext" => {
                self.raw.reply(reply.token(), RpcErrorCode::MISC.0, b"\xff\xfe");
                std::mem::forget(reply);
            }
            "faultevents" => match count(&call) {
                Ok(count) => self.heard.list(count, reply),
                Err(error) => {
                    reply.send::<()>(Err(error));
                }
            },
            method => {
                let outcome = self.answer(method, &call);
                reply.send(outcome);
            }
        }
    }

    fn cancel(&self, token: u64) {
        self.panic_if("panic_cancel");
        if let Some(gate) = self.text("gate_cancel") {
            gate::pass(gate);
        }
        self.heard.cancel(token);
        let forgotten: Vec<_> = lock(&self.late).waiting.extract_if(.., |reply| reply.token() == token).collect();
        drop(forgotten);
    }

    fn event(&self, event: Event) {
        self.heard.add(&event);
        self.panic_if("panic_event");
        self.abort_if("abort_event");
        let slow = lock(&self.slow).clone();
        match slow {
            Some(Slow::Release) => self.release.wait(),
            Some(Slow::Gate(address)) => gate::pass(&address),
            None => {}
        }
    }

    fn quiesce(&self) {
        self.panic_if("panic_quiesce");
        self.heard.close();
        lock(&self.late).closed = true;
        self.answer_all_late();
    }

    fn stop(&self) {
        self.panic_if("panic_stop");
        self.abort_if("abort_stop");
        if self.has("block_stop") {
            gate::block_for_ever();
        }
    }
}

impl Faulty {
    fn has(&self, option: &str) -> bool {
        self.options.get(option) == Some(&Value::Bool(true))
    }

    /// The gate or file that an option names.
    fn text(&self, option: &str) -> Option<&str> {
        self.options.get(option).and_then(Value::as_str).filter(|gate| !gate.is_empty())
    }

    fn panic_if(&self, option: &str) {
        assert!(!self.has(option), "{option} was asked for");
    }

    fn abort_if(&self, option: &str) {
        if self.has(option) {
            std::process::abort();
        }
    }

    /// Answers a method at once, or after it has blocked the thread.
    #[allow(clippy::panic, reason = "that is what faultpanic is for")]
    fn answer(&self, method: &str, call: &Call<'_>) -> Result<Value, RpcError> {
        match method {
            "faultpanic" => panic!("faultpanic was called"),
            "faultabort" => std::process::abort(),
            "faultexit" => std::process::exit(3),
            "faultblocked" => match gate_of(call)? {
                Some(address) => gate::wait(gate::connect(address)?),
                None => self.release.wait(),
            },
            "faultquick" | "faultlong" => gate::wait(gate::connect(call.params.text(0)?)?),
            "faultslow" => std::thread::sleep(SLOW),
            "faultslowcreate" => raw::slow_create(gate_of(call)?.map(str::to_owned)),
            "faultforge" => {
                let token = int64(call.params.get(0))?.cast_unsigned();
                return Ok(json!(self.raw.reply(token, 0, b"\"forged\"")));
            }
            "faultask" => {
                for _ in 0..3 {
                    self.host.chain.tip(call.scope)?;
                }
            }
            "faultnode" => {
                let ask = |method: &str| -> Result<Blob, RpcError> {
                    self.host.rpc.call(call.scope, method.to_owned(), Blob(b"[]".to_vec()), As::Plugin)?.into_result()
                };
                let count = ask("getblockcount");
                assert!(count.is_ok(), "faultnode relies on the node, which answers {count:?}");
                // The node of `plugin check` does not know this method.
                ask("getpeerinfo")?;
            }
            "faultslowevents" => {
                *lock(&self.slow) = Some(gate_of(call)?.map_or(Slow::Release, |gate| Slow::Gate(gate.to_owned())));
            }
            "faultrelease" => {
                *lock(&self.slow) = None;
                self.release.release();
                self.answer_all_late();
            }
            "faultwho" => {
                let calls = self.calls.load(Ordering::Relaxed);
                return Ok(json!({"label": self.options["label"], "instance": self.instance, "calls": calls}));
            }
            _ => return Err(RpcError::new(RpcErrorCode::METHOD_NOT_FOUND, "Method not found")),
        }
        Ok(Value::Null)
    }

    fn answer_late(&self, call: &Call<'_>, reply: Reply) {
        let gate = gate_of(call).and_then(|gate| gate.map(gate::connect).transpose());
        match gate {
            Err(error) => {
                reply.send::<()>(Err(error));
            }
            Ok(None) => {
                let mut late = lock(&self.late);
                late.waiting.push(reply);
                let closed = late.closed;
                drop(late);
                if closed {
                    self.answer_all_late();
                }
            }
            Ok(Some(gate)) => {
                std::thread::spawn(move || {
                    gate::wait(gate);
                    reply.send(Ok("late"));
                });
            }
        }
    }

    fn answer_all_late(&self) {
        let late = std::mem::take(&mut lock(&self.late).waiting);
        for reply in late {
            reply.send(Ok("late"));
        }
    }
}

/// The gate of a call, if any.
fn gate_of<'a>(call: &'a Call<'_>) -> Result<Option<&'a str>, RpcError> {
    call.params.given(0).map(outrigger_sdk::params::text).transpose()
}

fn count(call: &Call<'_>) -> Result<usize, RpcError> {
    usize::try_from(call.params.given(0).map_or(Ok(0), int64)?)
        .map_err(|_| RpcError::invalid_parameter("count is below 0"))
}

/// Runs until nobody waits for the answer. The gate is open as long as it runs.
fn endless(call: &Call<'_>, reply: Reply) {
    let gate = match gate_of(call).and_then(|gate| gate.map(gate::connect).transpose()) {
        Ok(gate) => gate,
        Err(error) => {
            reply.send::<()>(Err(error));
            return;
        }
    };
    while reply.is_wanted() {
        std::thread::sleep(LOOK);
    }
    reply.send(Ok("too late"));
    drop(gate);
}

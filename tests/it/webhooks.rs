//! The group `webhooks`: each receiver gets every event of a wallet with its signature, despite failures.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bitcoin::hashes::{Hash, HashEngine, Hmac, HmacEngine, sha256};
use outrigger_tests::{
    Authority, Client, Host, HostOptions, accept_tls, all_groups, built, comes_within, isolated, wait_until,
};
use rustix::net::{AddressFamily, SocketType, bind, listen, socket};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::isolation::has_sandbox;

const SECRET: &str = "a shared secret";

/// On a busy machine a hook may have failed so often that it pauses for minutes.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Takes,
    Refuses,
    NeverAnswers,
}

struct State {
    mode: Mode,
    /// The bodies that were accepted, by idempotency key, and how often.
    taken: BTreeMap<String, (Value, u32)>,
    /// The number of requests read.
    asked: u32,
    /// Connections that get no answer.
    held: Vec<TcpStream>,
}

/// A server that receives a hook's requests.
#[derive(Clone)]
struct Receiver {
    port: u16,
    state: Arc<Mutex<State>>,
}

impl Receiver {
    /// Serves TLS if there is an authority for the certificate of `localhost`.
    fn start(mode: Mode, authority: Option<&Authority>) -> Self {
        Self::serve(TcpListener::bind("127.0.0.1:0").unwrap(), mode, authority)
    }

    fn serve(listener: TcpListener, mode: Mode, authority: Option<&Authority>) -> Self {
        let state = State { mode, taken: BTreeMap::new(), asked: 0, held: Vec::new() };
        let receiver = Self { port: listener.local_addr().unwrap().port(), state: Arc::new(Mutex::new(state)) };
        let (serving, config) = (receiver.clone(), authority.map(|authority| authority.server("localhost", false)));
        std::thread::spawn(move || {
            for stream in listener.incoming().map(Result::unwrap) {
                let (serving, config) = (serving.clone(), config.clone());
                std::thread::spawn(move || match config {
                    Some(config) => serving.answer(stream.try_clone().unwrap(), accept_tls(&config, stream)),
                    None => serving.answer(stream.try_clone().unwrap(), stream),
                });
            }
        });
        receiver
    }

    fn url(&self, scheme: &str) -> String {
        format!("{scheme}://localhost:{}/hook?a=b", self.port)
    }

    /// Answers one request, unless the connection ends first, as when the plugin is killed.
    fn answer(&self, connection: TcpStream, mut stream: impl Read + Write) {
        let Some((headers, body)) = request(&mut stream) else { return };
        assert_eq!(headers["outrigger-signature"], signature(&headers["outrigger-time"], &body));
        let mut state = self.state.lock().unwrap();
        state.asked += 1;
        match state.mode {
            Mode::NeverAnswers => state.held.push(connection),
            Mode::Refuses => drop(stream.write_all(b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n")),
            Mode::Takes => {
                let body: Value = serde_json::from_str(&body).unwrap();
                let taken = state.taken.entry(headers["idempotency-key"].clone()).or_insert((body.clone(), 0));
                assert_eq!(taken.0["number"], body["number"], "an idempotency key of two events");
                taken.1 += 1;
                let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n");
            }
        }
        drop(state);
        let _ = stream.flush();
    }

    fn set(&self, mode: Mode) {
        let mut state = self.state.lock().unwrap();
        state.mode = mode;
        for held in state.held.drain(..) {
            let _ = held.shutdown(Shutdown::Both);
        }
    }

    fn asked(&self) -> u32 {
        self.state.lock().unwrap().asked
    }

    /// The number and kind of each accepted event.
    fn taken(&self) -> Vec<(u64, String)> {
        let state = self.state.lock().unwrap();
        let event =
            |(body, _): &(Value, u32)| (body["number"].as_u64().unwrap(), body["kind"].as_str().unwrap().to_owned());
        let mut taken: Vec<_> = state.taken.values().map(event).collect();
        taken.sort();
        taken
    }

    /// The most times that one event was accepted.
    fn repetitions(&self) -> u32 {
        self.state.lock().unwrap().taken.values().map(|(_, count)| *count).max().unwrap_or(0)
    }
}

/// The headers, with names in lower case, and the body.
fn request(stream: &mut impl Read) -> Option<(BTreeMap<String, String>, String)> {
    let mut stream = BufReader::new(stream);
    let (mut line, mut headers) = (String::new(), BTreeMap::new());
    stream.read_line(&mut line).ok().filter(|length| *length > 0)?;
    assert_eq!(line, "POST /hook?a=b HTTP/1.1\r\n");
    loop {
        line.clear();
        stream.read_line(&mut line).ok().filter(|length| *length > 0)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let mut body = vec![0; headers["content-length"].parse().unwrap()];
    stream.read_exact(&mut body).ok()?;
    Some((headers, String::from_utf8(body).unwrap()))
}

fn signature(time: &str, body: &str) -> String {
    let mut engine = HmacEngine::<sha256::Hash>::new(SECRET.as_bytes());
    engine.input(format!("{time}.{body}").as_bytes());
    Hmac::from_engine(engine).to_string()
}

/// A host with all groups and hooks for these URLs.
fn start(folder: &TempDir, urls: &[String], isolated: bool) -> Host {
    let secrets = folder.path().join("secrets");
    std::fs::write(&secrets, format!("other abc\nshop {SECRET}\n")).unwrap();
    let hooks: Vec<String> = urls.iter().map(|url| format!("{{ url = \"{url}\", secret = \"shop\" }}")).collect();
    let reach: Vec<String> = urls
        .iter()
        .map(|url| {
            let kind = if url.starts_with("https") { "tls" } else { "tcp" };
            format!("connect:{kind}:{}", url.split('/').nth(2).unwrap())
        })
        .collect();
    let rest = format!(
        "isolated = {isolated}\nreload = \"after\"\n\
         grants = [\"wallet-read/1\", \"store/1\", \"log/1\", \"metrics/1\"]\nreach = {}\n\
         options = {{ hooks = [{}], secrets = {{ file = {:?} }} }}\n",
        json!(reach),
        hooks.join(", "),
        secrets.display().to_string()
    );
    let options = HostOptions::with_plugin(&all_groups(), built().library("outrigger_webhooks"), &rest);
    let roots = folder.path().join("roots.pem").display().to_string();
    let environment = vec![("SSL_CERT_FILE".to_owned(), roots)];
    Host::start_with(HostOptions { environment, ..options })
}

/// The number and the kind of each event of the wallet.
fn logged(wallet: &mut Client) -> Vec<(u64, String)> {
    // Waits until the wallet has the last block. `waitevents` itself does not.
    wallet.call("getbalances", json!([]));
    let events = wallet.call("waitevents", json!([0]))["events"].as_array().unwrap().clone();
    events.iter().map(|event| (event["number"].as_u64().unwrap(), event["kind"].as_str().unwrap().to_owned())).collect()
}

/// Mines coins to the wallet, and pays from it to itself.
fn pay(wallet: &mut Client, payments: u32) {
    let mine = wallet.call("getnewaddress", json!([]));
    for _ in 0..payments {
        wallet.call("sendtoaddress", json!([mine, 0.1]));
    }
    wallet.call("generatetoaddress", json!([1, mine]));
}

fn funded(host: &Host) -> Client {
    let mut wallet = host.new_wallet("w");
    wallet.mine(101);
    wallet
}

fn hook(host: &Host, at: usize) -> Value {
    host.client().call("listwebhooks", json!([]))[at].clone()
}

/// A metric of a hook, as in listplugins.
fn measured(host: &Host, name: &str, hook: usize) -> Value {
    let webhooks = host.client().plugin("webhooks");
    let series = webhooks["metrics"][name].as_array().unwrap();
    let of_hook = series.iter().find(|one| one["labels"]["hook"] == json!(hook.to_string()));
    of_hook.map_or(Value::Null, |one| one["value"].clone())
}

#[test]
fn webhooks_deliver_each_event_over_tls_with_its_signature_and_reload_a_changed_secret() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(Mode::Takes, Some(&Authority::new(&folder.path().join("roots.pem"))));
    let host = start(&folder, &[receiver.url("https")], isolated());
    let mut wallet = funded(&host);
    pay(&mut wallet, 3);
    wait_until("all events", || receiver.taken() == logged(&mut wallet));
    let events = wallet.call("waitevents", json!([0]))["events"].clone();
    let seen = events.as_array().unwrap().iter().find(|event| event["kind"] == "seen").unwrap();
    let taken =
        receiver.state.lock().unwrap().taken.values().find(|(body, _)| body["number"] == seen["number"]).cloned();
    assert_eq!(taken.unwrap().0, *seen);
    assert_eq!(receiver.repetitions(), 1);
    wait_until("the count", || hook(&host, 0)["delivered"] == json!(logged(&mut wallet).len()));
    // A reload delivers nothing twice.
    host.client().call("reloadplugin", json!(["webhooks"]));
    pay(&mut wallet, 1);
    wait_until("later events", || receiver.taken() == logged(&mut wallet));
    assert_eq!(receiver.repetitions(), 1);
    change_the_secret(&mut host.client(), &folder);
}

fn change_the_secret(client: &mut Client, folder: &TempDir) {
    assert_eq!(client.call("reload", json!([]))["changes"], json!([]));
    std::fs::write(folder.path().join("secrets"), "shop another\n").unwrap();
    let changed = json!(["plugins.options: the plugin 'webhooks' was reloaded"]);
    assert_eq!(client.call("reload", json!([]))["changes"], changed);
    assert_eq!(client.call("reload", json!([]))["changes"], json!([]));
    // A secret that cannot be read changes nothing.
    std::fs::remove_file(folder.path().join("secrets")).unwrap();
    assert!(client.try_call("reload", json!([])).is_err());
    assert_eq!(client.call("listwebhooks", json!([])).as_array().unwrap().len(), 1);
}

#[test]
fn webhooks_of_other_receivers_do_not_wait_for_one_that_fails() {
    let folder = tempfile::tempdir().unwrap();
    let [good, refusing, silent] =
        [Mode::Takes, Mode::Refuses, Mode::NeverAnswers].map(|mode| Receiver::start(mode, None));
    // The socket has its port, and refuses connections until it listens.
    let away = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&away, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let away = TcpListener::from(away);
    let port = away.local_addr().unwrap().port();
    let urls = [&good, &refusing, &silent].map(|receiver| receiver.url("http"));
    let urls = [&urls[..], &[format!("http://localhost:{port}/hook?a=b")]].concat();
    let host = start(&folder, &urls, isolated());
    let mut wallet = funded(&host);
    pay(&mut wallet, 2);
    let all = logged(&mut wallet);
    wait_until("the good receiver has all events", || good.taken() == all);
    wait_until("a receiver that never answers was asked", || silent.asked() > 0);
    wait_until("refusals are counted", || hook(&host, 1)["waiting"] == json!(all.len()));
    assert_eq!(hook(&host, 1)["last_error"], json!("the receiver answered 500"));
    wait_until("listplugins tells what waits", || measured(&host, "waiting", 1) == json!(all.len()));
    assert_eq!(measured(&host, "dead_letters", 1), json!(0));
    wait_until("a failed connection is told", || hook(&host, 3)["last_error"].is_string());
    let told = hook(&host, 3)["last_error"].clone();
    assert!(told.as_str().unwrap().starts_with("Connection refused"), "{told}");
    assert_eq!((silent.taken(), refusing.taken()), (vec![], vec![]));
    // All receivers work again.
    for receiver in [&refusing, &silent] {
        receiver.set(Mode::Takes);
    }
    listen(&away, 16).unwrap();
    let away = Receiver::serve(away, Mode::Takes, None);
    // One after another: each has its own pauses, and the silent one also a request that must time out.
    for (receiver, at) in [(&refusing, 1), (&away, 3), (&silent, 2)] {
        let has_all = comes_within(LONGEST_PAUSE, || receiver.taken() == all);
        assert!(has_all, "{} of {} events: {}", receiver.taken().len(), all.len(), hook(&host, at));
    }
    assert_eq!(hook(&host, 1)["dead"], json!(0));
}

#[test]
fn webhooks_lose_no_event_through_kills_of_host_and_plugin() {
    // In a process of its own, the plugin can be killed without the host.
    let isolated = has_sandbox();
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(Mode::Refuses, None);
    let mut host = start(&folder, &[receiver.url("http")], isolated);
    let mut wallet = funded(&host);
    for round in 0..2 {
        let asked = receiver.asked();
        pay(&mut wallet, 3);
        if isolated {
            wait_until("a process", || host.client().plugin("webhooks")["pid"].is_u64());
            host.client().kill_plugin("webhooks");
            pay(&mut wallet, 1);
        }
        // The first kill follows refused deliveries, the second happens during deliveries.
        wait_until("an attempt", || receiver.asked() > asked);
        host = host.kill_and_restart();
        host.client().call("loadwallet", json!(["w"]));
        wallet = host.client().wallet("w");
        if round == 0 {
            receiver.set(Mode::Takes);
        }
    }
    wait_until("all events", || receiver.taken() == logged(&mut wallet));
}

//! A storm of wrong passwords through nginx, HAProxy and Caddy, and its cost for a client with the right password behind the same
//! proxy: with `rpc.trusted_proxies`, and without it as a comparison.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use outrigger_tests::proxy::{Proxy, certified_folder};
use outrigger_tests::{Client, Host, HostOptions, exchange};

use crate::milliseconds;

const PROXIES: [&str; 3] = ["nginx", "haproxy", "caddy"];
/// The guessing threads, each from its own address: 127.0.0.N from FIRST_ADDRESS on.
const GUESSERS: u8 = 30;
const FIRST_ADDRESS: u8 = 10;
/// The address of the client with the right password.
const GOOD: u8 = 5;
/// How long each row is measured, and how long the storm lasts before that.
const MEASURED: Duration = Duration::from_secs(10);
const WARM_UP: Duration = Duration::from_secs(2);
/// The pause of the good client after a call.
const PAUSE: Duration = Duration::from_millis(5);
/// The upper limit of the good client's 99th percentile in a storm behind trusted proxies.
const PROMISED: Duration = Duration::from_millis(50);

/// The calls during the measurement.
struct Measured {
    /// The times of the good client's answered calls, in ascending order.
    times: Vec<Duration>,
    /// The good client's other calls: 429 from the host, 502 from the proxy, or no answer.
    refused: usize,
    /// The storm's calls with the answers 401 and 429.
    wrong: u64,
    held_off: u64,
}

pub fn run() {
    println!("| proxy | trusted_proxies | storm | calls | refused | p50, ms | p99, ms | 401 a second | 429 a second |");
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut kept = true;
    for word in PROXIES {
        for (trusted, storms) in [(true, false), (true, true), (false, true)] {
            let set = trusted.then(|| "rpc.trusted_proxies=['127.0.0.1']".to_owned()).into_iter().collect();
            // A storm's cost includes the log of each wrong password, but nobody reads it here.
            let log = Some("/dev/null".into());
            let host = Host::start_with(HostOptions { set, log, ..HostOptions::default() });
            let Some(proxy) = Proxy::start(word, &host, certified_folder()) else { break };
            let measured = measure(&proxy, &host, if storms { GUESSERS } else { 0 });
            measured.print(word, trusted, storms);
            kept &= !trusted || measured.refused == 0 && measured.percentile(99) < PROMISED;
        }
    }
    let word = if kept { "kept" } else { "BROKEN" };
    println!("\np99 below {PROMISED:?} and no call refused, behind trusted proxies: {word}");
}

fn measure(proxy: &Proxy, host: &Host, guessers: u8) -> Measured {
    const BODY: &str = r#"{"method":"getblockcount","id":1}"#;
    let right = host.client().request(BODY);
    let wrong = Client::new(host.address, "__cookie__:wrong").request(BODY);
    let (done, answered, held_off) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for last in FIRST_ADDRESS..FIRST_ADDRESS + guessers {
            let (wrong, done, answered, held_off) = (&wrong, &done, &answered, &held_off);
            scope.spawn(move || {
                let mut kept = None;
                while !done.load(Ordering::Relaxed) {
                    match status(&mut kept, || proxy.connect(last), wrong) {
                        Some(401) => answered.fetch_add(1, Ordering::Relaxed),
                        Some(429) => held_off.fetch_add(1, Ordering::Relaxed),
                        // The host closes connections that send no right password for long, and the proxy reports that with 502.
                        Some(502) | None => continue,
                        Some(other) => panic!("a wrong password was answered {other}"),
                    };
                }
            });
        }
        std::thread::sleep(WARM_UP);
        let before = (answered.load(Ordering::Relaxed), held_off.load(Ordering::Relaxed));
        let (mut times, mut refused, mut kept) = (Vec::new(), 0, None);
        let start = Instant::now();
        while start.elapsed() < MEASURED {
            let began = Instant::now();
            match status(&mut kept, || proxy.connect(GOOD), &right) {
                Some(200) => times.push(began.elapsed()),
                _ => refused += 1,
            }
            std::thread::sleep(PAUSE);
        }
        let seconds = start.elapsed().as_secs().max(1);
        let rate = |counter: &AtomicU64, before| (counter.load(Ordering::Relaxed) - before) / seconds;
        let (wrong, held_off) = (rate(&answered, before.0), rate(&held_off, before.1));
        done.store(true, Ordering::Relaxed);
        times.sort_unstable();
        Measured { times, refused, wrong, held_off }
    })
}

/// The status of a call over a kept connection, which is opened if there is none. None if the connection ended without an answer.
fn status<S: Read + Write>(
    kept: &mut Option<std::io::BufReader<S>>,
    connect: impl FnOnce() -> std::io::Result<std::io::BufReader<S>>,
    request: &str,
) -> Option<u16> {
    let mut stream = kept.take().map_or_else(connect, Ok).ok()?;
    let reply = exchange(&mut stream, request).ok()?;
    let closes = reply.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
    *kept = (!closes).then_some(stream);
    Some(reply.status)
}

impl Measured {
    fn percentile(&self, percent: usize) -> Duration {
        self.times.get(self.times.len() * percent / 100).copied().unwrap_or(Duration::MAX)
    }

    fn print(&self, word: &str, trusted: bool, storms: bool) {
        let yes = |is| if is { "yes" } else { "no" };
        let time = |percent| match self.percentile(percent) {
            Duration::MAX => "-".to_owned(),
            time => format!("{:.2}", milliseconds(time)),
        };
        let Self { times, refused, wrong, held_off } = self;
        let (trusted, storms, calls) = (yes(trusted), yes(storms), times.len());
        let (p50, p99) = (time(50), time(99));
        println!("| {word} | {trusted} | {storms} | {calls} | {refused} | {p50} | {p99} | {wrong} | {held_off} |");
    }
}

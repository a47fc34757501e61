use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use outrigger_sdk::bitcoin::Txid;
use outrigger_sdk::bitcoin::hashes::Hash;
use outrigger_sdk::options::PluginOptions;
use outrigger_sdk::service::wallet::{LogEntry, LogKind};
use outrigger_sdk::testing::{StubHost, WalletState};
use serde_json::{Value, json};

use crate::deliver::{Delivery, Failure, Round, idempotency_key, signature};
use crate::http::{Url, post};
use crate::options::{Hook, Options};
use crate::queue::{Letter, MAX_DEAD, PATIENCE, Queue, remove_others};

fn hooks(options: Value) -> Result<Vec<Hook>, String> {
    Options::read(options.as_object().unwrap().clone())?.hooks()
}

fn one(hook: Value) -> Result<Hook, String> {
    hooks(json!({"hooks": [hook], "secrets": "shop abc\n other  d e f \n"})).map(|mut hooks| hooks.remove(0))
}

#[test]
fn hooks_are_read_or_refused_with_the_reason() {
    let hook = one(json!({"url": "https://hooks.example.com/a?b", "secret": "other", "kinds": ["deep"]})).unwrap();
    assert_eq!((&*hook.url.entry, hook.secret.expose()), ("tls:hooks.example.com:443", "d e f"));
    assert_eq!((hook.kinds, hook.wallets), (Some(vec![LogKind::Deep]), None));
    for (url, entry) in [
        ("http://localhost:8080", "tcp:localhost:8080"),
        ("http://127.0.0.1/", "tcp:127.0.0.1:80"),
        ("http://[::1]:81/", "tcp:[::1]:81"),
        ("https://[::1]/", "tls:[::1]:443"),
    ] {
        assert_eq!(Url::parse(url).map(|url| url.entry), Ok(entry.to_owned()));
    }
    for (hook, reason) in [
        (json!({"url": "http://example.com", "secret": "shop"}), "http is for this machine only"),
        (json!({"url": "http://localhost.example.com", "secret": "shop"}), "http is for this machine only"),
        (json!({"url": "ftp://localhost/", "secret": "shop"}), "a URL begins with https:// or http://"),
        (json!({"url": "https://user@localhost/", "secret": "shop"}), "a URL has a host, and no user"),
        (json!({"url": "/path", "secret": "shop"}), "a URL has a host, and no user"),
        (json!({"url": "https://a b/", "secret": "shop"}), "no URL"),
        (json!({"url": "https://a/", "secret": "nothing"}), "the secret 'nothing' is not among the secrets"),
        (json!({"url": "https://a/", "secret": "shop", "kinds": ["lost"]}), "there is no kind 'lost'"),
    ] {
        let error = one(hook).err().unwrap();
        assert!(error.contains(reason), "{error}");
    }
    let twice = json!({"url": "https://a/", "secret": "shop"});
    let error = hooks(json!({"hooks": [twice, twice], "secrets": "shop abc"})).err().unwrap();
    assert_eq!(error, "two hooks have the URL 'https://a/'");
}

#[test]
fn the_signature_equals_that_of_openssl() {
    // printf '1700000000.{"number":1}' | openssl dgst -sha256 -hmac secret
    let expected = "265b800f779e7205487cd8cfa6fca6734b15c2ce711d3888eca194e64c4d3e8d";
    assert_eq!(signature("secret", "1700000000", "{\"number\":1}"), expected);
    let keys = ["a", "b"].map(|wallet| idempotency_key(&(7, wallet.to_owned())));
    assert!(keys.iter().all(|key| key.starts_with("7-")) && keys[0] != keys[1]);
}

/// The status that `post` reads from a receiver's bytes.
fn status(answer: &[u8], time: Duration) -> std::io::Result<u16> {
    let (mut stream, mut receiver) = UnixStream::pair().unwrap();
    receiver.write_all(answer).unwrap();
    if time > Duration::from_secs(1) {
        receiver.shutdown(Shutdown::Write).unwrap();
    }
    let url = Url::parse("https://hooks.example.com:8443/a?b=c").unwrap();
    let answered = post(&mut stream, &url, &[("Name", "value")], b"body", Instant::now() + time);
    let expected = "POST /a?b=c HTTP/1.1\r\nHost: hooks.example.com:8443\r\nConnection: close\r\nName: value\r\n\
                    Content-Type: application/json\r\nContent-Length: 4\r\n\r\nbody";
    let mut request = vec![0; expected.len()];
    receiver.read_exact(&mut request).unwrap();
    assert_eq!(String::from_utf8(request).unwrap(), expected);
    answered
}

#[test]
fn an_answer_is_read_to_the_end_of_its_head() {
    let long = Duration::from_secs(600);
    assert_eq!(status(b"HTTP/1.1 204 No Content\r\n\r\n", long).unwrap(), 204);
    assert_eq!(status(b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 500\r\n\r\n", long).unwrap(), 500);
    for wrong in [&b""[..], b"HTTP/1.1 200 OK\r\n", b"SSH-2.0-OpenSSH\r\n\r\n"] {
        assert!(status(wrong, long).is_err());
    }
    let endless = [&b"HTTP/1.1 200 OK\r\nA: "[..], &[b'a'; 20_000]].concat();
    assert_eq!(status(&endless, long).unwrap_err().to_string(), "the head of the answer is too long");
    let silent = status(b"HTTP/1.1 200 OK\r\n", Duration::from_millis(20)).unwrap_err();
    assert_eq!(silent.kind(), std::io::ErrorKind::TimedOut);
}

fn entry(number: u64, kind: LogKind) -> LogEntry {
    let (block, height, fee, payments) = (None, None, None, Vec::new());
    LogEntry { number, kind, txid: Txid::all_zeros(), block, height, time: 0, fee, payments }
}

fn with_log(log: Vec<LogEntry>) -> WalletState {
    let mut state = WalletState::empty("w");
    state.log = log;
    state
}

/// A hook on a host with one wallet. The test decides how the receiver answers.
struct Setup {
    host: StubHost,
    delivery: Delivery,
    /// The numbers of the posted entries.
    posted: Mutex<Vec<u64>>,
}

impl Setup {
    fn new(numbers: impl Iterator<Item = u64>) -> Self {
        let host = StubHost::new();
        let log = numbers.map(|number| entry(number, LogKind::Seen)).chain([entry(1000, LogKind::Deep)]).collect();
        host.wallet.set(Some(with_log(log)));
        let hook = one(json!({"url": "https://a/", "secret": "shop", "kinds": ["seen"]})).unwrap();
        let delivery = Delivery::new(host.handle(), hook);
        Self { host, delivery, posted: Mutex::default() }
    }

    /// The state that a killed process would restart from.
    fn round(&self) -> Round {
        Round::new(Queue::open(&self.host.handle(), "https://a/").unwrap())
    }

    /// Steps until there is nothing to post at this time.
    fn steps(&self, round: &mut Round, now: u64, answer: impl Fn(u64) -> Result<(), Failure>) {
        let post = |letter: &Letter| {
            let body: Value = serde_json::from_str(&letter.body).unwrap();
            assert_eq!((&body["number"], &body["wallet"]), (&json!(letter.key.0), &json!("w")));
            self.posted.lock().unwrap().push(letter.key.0);
            answer(letter.key.0)
        };
        while self.delivery.step(round, post, now).unwrap() {}
    }

    fn posted(&self) -> Vec<u64> {
        std::mem::take(&mut self.posted.lock().unwrap())
    }
}

#[test]
fn entries_are_delivered_once_in_order_if_the_receiver_takes_them() {
    let setup = Setup::new(1..=20);
    let mut round = setup.round();
    setup.steps(&mut round, 0, |_| Ok(()));
    assert_eq!(setup.posted(), (1..=20).collect::<Vec<_>>());
    // The position has passed the entries of other kinds, and is stored.
    assert_eq!(round.queue.positions["w"], 1000);
    setup.steps(&mut setup.round(), 0, |_| Ok(()));
    assert!(setup.posted().is_empty());
}

#[test]
fn many_entries_of_other_kinds_delay_no_entry_until_a_later_attempt() {
    let setup = Setup::new(std::iter::empty());
    let log = (1..=400).map(|number| entry(number, LogKind::Deep)).chain([entry(401, LogKind::Seen)]);
    setup.host.wallet.set(Some(with_log(log.collect())));
    let mut round = setup.round();
    setup.steps(&mut round, 0, |_| Ok(()));
    assert_eq!(setup.posted(), [401]);
    setup.delivery.quiesce();
    setup.host.wallet.set(Some(with_log(vec![entry(402, LogKind::Seen)])));
    setup.steps(&mut round, 0, |_| Ok(()));
    assert!(setup.posted().is_empty(), "the plugin stops");
}

#[test]
fn a_refused_entry_waits_alone_until_it_is_a_dead_letter() {
    let setup = Setup::new(1..=3);
    let mut round = setup.round();
    let refuse_2 = |number| if number == 2 { Err(Failure::Refused("500".into())) } else { Ok(()) };
    setup.steps(&mut round, 0, refuse_2);
    assert_eq!(setup.posted(), [1, 2, 3]);
    // The retries come after one second, then two, four and so on, even if the process is killed in between.
    let mut attempts = 1;
    let mut at = 0;
    while round.queue.dead_count == 0 {
        at = round.queue.waiting[&(2, "w".to_owned())].next;
        setup.steps(&mut round, at - 1, refuse_2);
        assert!(setup.posted().is_empty(), "at {at}");
        round = setup.round();
        setup.steps(&mut round, at, refuse_2);
        assert_eq!(setup.posted(), [2]);
        attempts += 1;
    }
    // The first twelve pauses double up to 2048 seconds. Each later pause is an hour.
    assert_eq!(attempts, 1 + 12 + (PATIENCE - 4095).div_ceil(3600));
    assert!((PATIENCE..PATIENCE + 3600).contains(&at));
    let (queue, now) = (setup.round().queue, at + 7200);
    assert_eq!((queue.dead_count, queue.dead.len(), queue.waiting.len()), (1, 1, 0));
    assert_eq!(queue.dead[&(2, "w".to_owned())].error, "500");
    setup.steps(&mut setup.round(), now, |_| Ok(()));
    assert!(setup.posted().is_empty());
}

#[test]
fn new_entries_alternate_with_retries() {
    let setup = Setup::new(1..=20);
    let mut round = setup.round();
    let post = |letter: &Letter| {
        setup.posted.lock().unwrap().push(letter.key.0);
        Err(Failure::Refused("500".into()))
    };
    // At each step, a refused entry is due for a retry.
    for now in 0..40 {
        assert!(setup.delivery.step(&mut round, post, now).unwrap());
    }
    let posted = setup.posted();
    assert!((1..=20).all(|number| posted.contains(&number)), "{posted:?}");
}

#[test]
fn a_receiver_without_an_answer_pauses_its_hook_and_gets_everything_later() {
    let setup = Setup::new(1..=5);
    let mut round = setup.round();
    let mut now = 0;
    for pause in [1, 2, 4, 8] {
        setup.steps(&mut round, now, |_| Err(Failure::Unreachable("no route".into())));
        assert_eq!(setup.posted(), [1], "one attempt at {now}");
        now += pause;
    }
    setup.steps(&mut round, now, |_| Ok(()));
    assert_eq!(setup.posted(), [1, 2, 3, 4, 5]);
    assert_eq!((round.queue.waiting.len(), round.queue.dead_count), (0, 0));
}

#[test]
fn dead_letters_are_bounded_and_counted() {
    let count = MAX_DEAD as u64 + 5;
    let setup = Setup::new(1..=count);
    let mut round = setup.round();
    for now in [0, PATIENCE] {
        setup.steps(&mut round, now, |_| Err(Failure::Refused("410".into())));
    }
    let queue = setup.round().queue;
    assert_eq!((queue.dead_count, queue.dead.len()), (count, MAX_DEAD));
    assert_eq!(queue.dead.first_key_value().unwrap().0.0, 6);
}

#[test]
fn an_entry_of_a_wallet_with_a_long_name_is_retried() {
    let host = StubHost::new();
    let name = "n".repeat(600);
    let mut state = WalletState::empty(&name);
    state.log = vec![entry(1, LogKind::Seen)];
    host.wallet.set(Some(state));
    let delivery = Delivery::new(host.handle(), one(json!({"url": "https://a/", "secret": "shop"})).unwrap());
    let open = || Round::new(Queue::open(&host.handle(), "https://a/").unwrap());
    assert!(delivery.step(&mut open(), |_| Err(Failure::Refused("500".into())), 0).unwrap());
    assert!(host.store.rows().keys().all(|key| key.len() < 100));
    let mut round = open();
    assert_eq!(round.queue.positions[&name], 1);
    let post = |letter: &Letter| {
        assert_eq!(letter.key, (1, name.clone()));
        Ok(())
    };
    assert!(delivery.step(&mut round, post, 1).unwrap());
    assert!(open().queue.waiting.is_empty());
}

#[test]
fn a_hook_continues_at_the_end_of_a_log_that_ends_before_its_position() {
    let setup = Setup::new(1..=3);
    setup.steps(&mut setup.round(), 0, |_| Ok(()));
    assert_eq!(setup.posted(), [1, 2, 3]);
    setup.host.wallet.set(Some(with_log(vec![entry(2, LogKind::Seen)])));
    let mut round = setup.round();
    setup.steps(&mut round, 0, |_| Ok(()));
    setup.host.wallet.set(Some(with_log(vec![entry(2, LogKind::Seen), entry(3, LogKind::Seen)])));
    setup.steps(&mut round, 0, |_| Ok(()));
    assert_eq!(setup.posted(), [3]);
}

#[test]
fn a_wallet_that_is_not_loaded_is_logged_once() {
    let host = StubHost::new();
    host.wallet.set(Some(WalletState::empty("w")));
    let hook = one(json!({"url": "https://a/", "secret": "shop", "wallets": ["other", "w"]})).unwrap();
    let delivery = Delivery::new(host.handle(), hook);
    let mut round = Round::new(Queue::open(&host.handle(), "https://a/").unwrap());
    for now in 0..3 {
        assert!(!delivery.step(&mut round, |_| Ok(()), now).unwrap());
    }
    assert_eq!(host.log.lines().len(), 1);
}

#[test]
fn a_clock_that_is_set_back_delays_no_retry() {
    let setup = Setup::new(1..=1);
    let (mut round, later) = (setup.round(), PATIENCE - 1);
    setup.steps(&mut round, later, |_| Err(Failure::Refused("500".into())));
    setup.steps(&mut round, 5, |_| Err(Failure::Unreachable("no route".into())));
    setup.steps(&mut round, later, |_| Err(Failure::Unreachable("no route".into())));
    setup.steps(&mut round, 5, |_| Ok(()));
    assert_eq!(setup.posted(), [1; 4]);
    assert!(round.queue.waiting.is_empty());
}

#[test]
fn news_ends_a_wait_for_news_but_no_pause_after_a_failure_of_the_store() {
    let setup = Setup::new(1..=1);
    let (pause, began) = (Duration::from_millis(30), Instant::now());
    setup.delivery.wake();
    setup.delivery.wait(pause, false);
    assert!(began.elapsed() >= pause);
    setup.delivery.wake();
    setup.delivery.wait(Duration::MAX, true);
}

#[test]
fn a_hook_whose_store_fails_pauses_despite_news() {
    let setup = Setup::new(1..=1);
    setup.host.store.set_bound(0);
    let pauses = || setup.host.log.lines().iter().filter(|(_, line)| line.contains("pauses")).count();
    std::thread::scope(|scope| {
        scope.spawn(|| setup.delivery.run());
        while pauses() == 0 {
            std::thread::yield_now();
        }
        (0..50).for_each(|_| setup.delivery.wake());
        setup.delivery.stop();
    });
    assert_eq!(pauses(), 1);
}

#[test]
fn a_start_removes_the_rows_of_removed_hooks() {
    let setup = Setup::new(1..=3);
    setup.steps(&mut setup.round(), 0, |_| Ok(()));
    let urls = |urls: &[&'static str]| remove_others(&setup.host.handle(), urls.iter().copied()).unwrap();
    urls(&["https://b/", "https://a/", "https://c/"]);
    assert_eq!(setup.round().queue.positions["w"], 1000);
    urls(&["https://b/", "https://c/"]);
    assert!(setup.host.store.rows().is_empty());
}

#[test]
#[should_panic(expected = "the plugin's reach has no \"connect:tls:a:443\"")]
fn hook_outside_of_the_reach_refuses_the_start() {
    let options = json!({"hooks": [{"url": "https://a/", "secret": "shop"}], "secrets": "shop abc"});
    StubHost::new().start::<crate::WebhooksPlugin>(options);
}

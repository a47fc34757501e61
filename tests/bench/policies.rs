//! The cost of wallet policies: signrawtransactionwithwallet of two P2WPKH inputs with and without policies.

use std::path::Path;
use std::time::{Duration, Instant};

use outrigger_tests::{Client, ELSEWHERE, Host, HostOptions, built};
use serde_json::{Value, json};

use crate::median;

/// Rounds of the cases, which take turns so that the machine's noise affects all alike.
const ROUNDS: usize = 300;
/// Calls of a case in a round.
const CALLS: usize = 10;
/// How many signed transactions need a new reservation.
const RESERVED: usize = 300;

/// The policies of a wallet: their plugin's library, a line for each section, and their number.
type Policies = (&'static str, &'static str, usize);

/// Several policies, since one costs less than the difference between two runs of the same host.
const SEVERAL: usize = 10;

const TRUSTED: &str = "trusted = true";
const ISOLATED: &str = "isolated = true";

pub fn run() {
    let copies = tempfile::tempdir().unwrap();
    // A wallet with a policy signs on a thread of the pool.
    let cases: [(&str, &[Policies]); 5] = [
        ("two inputs signed without a policy, on a network thread", &[]),
        ("with a policy that keeps nothing, on a thread of the pool", &[("judge", TRUSTED, 1)]),
        ("with the spending guard that has reserved enough", &[("spending_guard", TRUSTED, 1)]),
        ("with ten more policies that keep nothing", &[("judge", TRUSTED, 1 + SEVERAL)]),
        ("with ten more in processes of their own", &[("judge", TRUSTED, 1), ("judge", ISOLATED, SEVERAL)]),
    ];
    let mut started: Vec<Case> = cases.iter().map(|(_, policies)| Case::start(policies, copies.path())).collect();
    let mut times = vec![Vec::new(); cases.len()];
    for _ in 0..ROUNDS {
        for (case, times) in started.iter_mut().zip(&mut times) {
            let raw = case.raw(0);
            times.extend((0..CALLS).map(|_| case.sign(&raw)));
        }
    }
    println!("| what | us | for each policy |\n|---|---|---|");
    let micros = |times: Vec<Duration>| median(times).as_secs_f64() * 1e6;
    let medians: Vec<f64> = times.into_iter().map(micros).collect();
    for ((what, policies), median) in cases.iter().zip(&medians) {
        let count: usize = policies.iter().map(|(_, _, count)| count).sum();
        let each = if count > 1 { format!("{:.1}", (median - medians[1]) / SEVERAL as f64) } else { String::new() };
        println!("| {what} | {median:.1} | {each} |");
    }
    for (what, section) in [("", TRUSTED), (" in a process of its own", ISOLATED)] {
        let mut case = Case::start(&[("spending_guard", section, 1)], copies.path());
        let raws: Vec<Value> = (0..RESERVED).map(|more| case.raw(more)).collect();
        let reserving = micros(raws.iter().map(|raw| case.sign(raw)).collect());
        println!("| with the spending guard{what} that makes a reservation, on disk | {reserving:.1} | |");
    }
}

/// The section of a policy. Each copy of a library has its own id.
fn configured(library: &str, section: &str, number: usize, copies: &Path) -> String {
    let original = built().library(&format!("outrigger_{library}"));
    let (grants, options) = match library {
        "judge" => ("", "silent = true"),
        _ => ("\"store/1\", \"chain/1\", \"wallet-read/1\"", "limit = 2_000_000_000_000_000"),
    };
    let (file, id) = match library {
        "judge" => {
            let id = format!("jud{number:02}");
            let file = copies.join(format!("{id}.so"));
            let bytes = std::fs::read(original).unwrap();
            std::fs::write(&file, renamed(bytes, b"\"id\":\"judge\"", format!("\"id\":\"{id}\"").as_bytes())).unwrap();
            (file, id)
        }
        _ => (original.to_owned(), library.replace('_', "-")),
    };
    let file = file.display().to_string();
    format!(
        "[[plugins]]\nfile = {file:?}\nsandbox = \"best-effort\"\ngrants = [{grants}]\n{section}\noptions = {{ {options} }}\n\
         [[wallet.policies]]\nwallets = [\"hot\"]\nplugin = {id:?}\n"
    )
}

fn renamed(mut bytes: Vec<u8>, old: &[u8], new: &[u8]) -> Vec<u8> {
    assert_eq!(old.len(), new.len());
    let places: Vec<usize> =
        bytes.windows(old.len()).enumerate().filter(|(_, at)| *at == old).map(|(at, _)| at).collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at..at + new.len()].copy_from_slice(new);
    }
    bytes
}

/// A host with a wallet that has two coins.
struct Case {
    _host: Host,
    wallet: Client,
}

impl Case {
    fn start(policies: &[Policies], copies: &Path) -> Self {
        let sections =
            policies.iter().flat_map(|(library, section, count)| (0..*count).map(move |_| (*library, *section)));
        let policies: String =
            (0..).zip(sections).map(|(at, (library, section))| configured(library, section, at, copies)).collect();
        let methods = ["asjudge", "endwork", "judged", "signasjudge", "timers", "work"];
        let several =
            policies.contains("jud01").then(|| methods.map(|method| format!("{method} = \"jud00\"\n")).concat());
        let routes = several.map(|routes| format!("[routes]\n{routes}")).unwrap_or_default();
        let host = Host::start_with(HostOptions::with_groups(&format!("{policies}{routes}")));
        let mut wallet = host.new_wallet("hot");
        wallet.fund(2);
        Self { _host: host, wallet }
    }

    fn sign(&mut self, raw: &Value) -> Duration {
        let request = json!({"id": 1, "method": "signrawtransactionwithwallet", "params": [raw]}).to_string();
        let began = Instant::now();
        let reply = self.wallet.post(&request);
        assert_eq!(reply.status, 200, "{}", reply.body);
        began.elapsed()
    }

    /// A transaction that spends the two coins and pays `more` satoshi more.
    fn raw(&mut self, more: usize) -> Value {
        let coins = self.wallet.call("listunspent", json!([]));
        let input = |coin: &Value| json!({"txid": coin["txid"], "vout": coin["vout"]});
        let inputs: Vec<Value> = coins.as_array().unwrap().iter().map(input).collect();
        assert_eq!(inputs.len(), 2);
        let (given, own) = (1.0 + more as f64 / 1e6, coins[0]["address"].as_str().unwrap());
        let outputs = json!([{ELSEWHERE: format!("{given:.8}")}, {own: format!("{:.8}", 98.9 - given)}]);
        self.wallet.call("createrawtransaction", json!([inputs, outputs]))
    }
}

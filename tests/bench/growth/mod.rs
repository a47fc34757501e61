//! How the cost of wallet calls grows with the wallet: of a host on the embedded chain, of one in front of a bitcoind, and of a
//! bitcoind with a descriptor wallet of the same content.
//!
//! `--largest`: the largest wallet, in payments that it received, for a short run. `--wallets`: how many wallets the host has whose
//! start is measured at the end; 0 leaves that out.
//!
//! Each size has fresh systems, and each system a chain of its own. One client makes the calls, one after the other, over one
//! kept-alive connection. A time is the median of calls, each to the last byte of its answer, which is not parsed. A system that
//! refuses a call has `skipped: ` and its reason in place of a time. All wallets wait for the disk when they write.
//!
//! The exponent is the logarithm of the ratio of the times at the largest and the smallest size, over that of the sizes. It is 0
//! where the size does not matter, and 1 where the time grows as the size does. ` (!)` marks a call that bitcoind answers sooner,
//! and an exponent of this host's that is steep where bitcoind's is not.

mod rows;
mod start;
pub mod systems;

use std::collections::HashMap;

/// The sizes of the wallet, in payments that it received: it has as many transactions and as many coins.
const SIZES: [usize; 3] = [1_000, 10_000, 100_000];
const LARGEST: usize = 100_000;
/// How many wallets the host has whose start is measured, unless it is said.
const WALLETS: usize = 1_000;
const STEEP: f64 = 1.2;
const MARK: &str = " (!)";

/// What something took on the embedded chain, in front of a bitcoind and in a bitcoind, in milliseconds, or why it was refused.
type Measured = [Result<f64, String>; 3];

pub fn run(bitcoind: Option<&str>, largest: Option<usize>, wallets: Option<usize>) {
    let Some(path) = bitcoind else {
        println!("growth needs a node: --bitcoind PATH");
        return;
    };
    let largest = largest.unwrap_or(LARGEST).max(1);
    let sizes: Vec<usize> = SIZES.into_iter().filter(|size| *size < largest).chain([largest]).collect();
    let mut table = Table::new(sizes[0], largest);
    for size in sizes {
        rows::run(path, size, &mut table);
    }
    let wallets = wallets.unwrap_or(WALLETS);
    if wallets > 0 {
        start::run(path, wallets);
    }
}

/// Prints a line for each call and size.
struct Table {
    smallest: usize,
    largest: usize,
    /// What each call took at the smallest size.
    first: HashMap<String, [Option<f64>; 3]>,
}

impl Table {
    fn new(smallest: usize, largest: usize) -> Self {
        println!(
            "| call | size | embedded, ms | in front, ms | bitcoind, ms | bitcoind / embedded | bitcoind / in front \
             | exponents: embedded; in front; bitcoind |\n|---|---|---|---|---|---|---|---|"
        );
        Self { smallest, largest, first: HashMap::new() }
    }

    fn print(&mut self, call: &str, size: usize, measured: &Measured) {
        let times = measured.each_ref().map(|time| time.as_ref().ok().copied());
        let cells = measured.each_ref().map(|time| match time {
            Ok(time) => format!("{time:.3}"),
            Err(why) => format!("skipped: {}", why.replace(['|', '\n'], " ")),
        });
        if size == self.smallest {
            self.first.insert(call.to_owned(), times);
        }
        let ratios = [ratio(times[0], times[2]), ratio(times[1], times[2])];
        let exponents = if size == self.largest { self.exponents(call, times) } else { String::new() };
        println!("| {call} | {size} | {} | {} | {exponents} |", cells.join(" | "), ratios.join(" | "));
    }

    /// How steeply each of the times grew since the smallest size.
    fn exponents(&self, call: &str, times: [Option<f64>; 3]) -> String {
        let (Some(first), true) = (self.first.get(call), self.smallest < self.largest) else { return String::new() };
        let sizes = (self.largest as f64 / self.smallest as f64).ln();
        let exponent = |at: usize| Some((times[at]? / first[at]?).ln() / sizes);
        let bitcoind = exponent(2);
        let shown = |at: usize| {
            let Some(value) = exponent(at) else { return "-".to_owned() };
            let is_marked = at < 2 && value > STEEP && bitcoind.is_some_and(|bitcoind| bitcoind < STEEP);
            format!("{value:.2}{}", if is_marked { MARK } else { "" })
        };
        [0, 1, 2].map(shown).join("; ")
    }
}

/// How many times as long bitcoind takes.
fn ratio(ours: Option<f64>, bitcoind: Option<f64>) -> String {
    let (Some(ours), Some(bitcoind)) = (ours, bitcoind) else { return "-".to_owned() };
    let ratio = bitcoind / ours;
    format!("{ratio:.2}x{}", if ratio < 1.0 { MARK } else { "" })
}

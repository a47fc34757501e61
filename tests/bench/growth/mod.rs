//! How the cost of wallet calls grows with the wallet: in a host on the embedded chain, in a host in front of a bitcoind, and in a
//! bitcoind with a descriptor wallet of the same content.
//!
//! `--largest` sets the largest wallet, in received payments, for a short run. `--wallets` sets the number of wallets of the host whose
//! start is measured at the end; 0 skips this part.
//!
//! Each size has new systems, and each system its own chain. One client makes the calls one after another over one kept-alive
//! connection. A time is the median of calls, each to the last byte of its answer, which is not parsed. If a system refuses a call, its
//! time is `skipped: ` and the reason. All wallets sync their writes to disk.
//!
//! The exponent is the logarithm of the ratio of the times at the largest and the smallest size, divided by that of the sizes: 0 if the
//! size does not matter, 1 if the time grows in proportion. ` (!)` marks a call that bitcoind answers faster, and an exponent of this
//! host that is steep while bitcoind's is not.

mod rows;
mod start;
mod systems;

use std::collections::HashMap;

/// The sizes of the wallet, in received payments. It has as many transactions and as many coins.
const SIZES: [usize; 3] = [1_000, 10_000, 100_000];
const LARGEST: usize = 100_000;
/// The default number of wallets of the host whose start is measured.
const WALLETS: usize = 1_000;
const STEEP: f64 = 1.2;
const MARK: &str = " (!)";

/// The times on the embedded chain, in front of a bitcoind and in a bitcoind, in milliseconds, or the reasons of refusals.
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
    /// The times of each call at the smallest size.
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

    /// The exponent of each of the times since the smallest size.
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

/// bitcoind's time divided by ours.
fn ratio(ours: Option<f64>, bitcoind: Option<f64>) -> String {
    let (Some(ours), Some(bitcoind)) = (ours, bitcoind) else { return "-".to_owned() };
    let ratio = bitcoind / ours;
    format!("{ratio:.2}x{}", if ratio < 1.0 { MARK } else { "" })
}

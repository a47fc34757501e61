//! Periodically checks the resources of a runner's process. The system's limits (setrlimit(2)) cover address space but not
//! used memory, and do not limit the threads of root. Used memory is resident and swapped pages, and page tables, which
//! even a read-only mapping fills.

use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Pid, setpriority_process};

pub const INTERVAL: Duration = Duration::from_millis(500);

/// A process that used more than this share of all CPU time in each of several intervals is reniced.
const GREEDY_SHARE: f64 = 0.5;
const GREEDY_INTERVALS: u32 = 4;
const GREEDY_NICE: i32 = 15;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// In bytes.
    pub memory: u64,
    pub threads: u64,
}

impl Bounds {
    pub const NONE: Self = Self { memory: u64::MAX, threads: u64::MAX };
}

/// Why the host kills a process that exceeds a limit.
pub const TOO_MUCH_MEMORY: &str = "it used more memory than max_memory_mib";
const TOO_MANY_THREADS: &str = "it started more threads than max_threads";

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Usage {
    memory: u64,
    threads: u64,
    /// The CPU time used, in the system's ticks.
    ticks: u64,
}

pub struct Watch {
    pid: u32,
    bounds: Bounds,
    ticks: u64,
    greedy: u32,
    is_reniced: bool,
}

impl Watch {
    pub fn new(pid: u32, bounds: Bounds) -> Self {
        Self { pid, bounds, ticks: 0, greedy: 0, is_reniced: false }
    }

    /// Checks the process; call it every [`INTERVAL`]. Returns the reason to kill the process if it exceeds a limit.
    pub fn look(&mut self) -> Option<&'static str> {
        let usage = read(self.pid)?;
        if usage.memory > self.bounds.memory {
            return Some(TOO_MUCH_MEMORY);
        }
        if usage.threads > self.bounds.threads {
            return Some(TOO_MANY_THREADS);
        }
        self.weigh(usage.ticks);
        None
    }

    /// Renices a process that keeps the CPUs busy, so that the host and other plugins come first.
    fn weigh(&mut self, ticks: u64) {
        let used = ticks.saturating_sub(std::mem::replace(&mut self.ticks, ticks)) as f64;
        let cores = std::thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64);
        let all = INTERVAL.as_secs_f64() * rustix::param::clock_ticks_per_second() as f64 * cores;
        self.greedy = if used > all * GREEDY_SHARE { self.greedy + 1 } else { 0 };
        let is_reniced = match self.greedy {
            0 => false,
            GREEDY_INTERVALS.. => true,
            _ => self.is_reniced,
        };
        // Without the right to lower the nice value, the host cannot undo this.
        if is_reniced != self.is_reniced && set_nice(self.pid, if is_reniced { GREEDY_NICE } else { 0 }) {
            self.is_reniced = is_reniced;
        }
    }
}

/// Sets the nice value of all threads of a process. Returns whether it succeeded for all of them.
fn set_nice(pid: u32, nice: i32) -> bool {
    let folder: PathBuf = format!("/proc/{pid}/task").into();
    let threads = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let threads = threads.filter_map(|thread| Pid::from_raw(thread.file_name().to_str()?.parse().ok()?));
    let refused = threads.filter(|thread| setpriority_process(Some(*thread), nice).is_err()).count();
    refused == 0
}

/// The usage of a process; `None` if it has ended.
fn read(pid: u32) -> Option<Usage> {
    let (threads, ticks) = parse_stat(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?;
    let memory = read_memory(format!("/proc/{pid}/status").into()).or_else(|| {
        // The main thread may have ended before the others.
        let others = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
        others.into_iter().find_map(|thread| read_memory(thread.path().join("status")))
    });
    Some(Usage { memory: memory?, threads, ticks })
}

fn read_memory(status: PathBuf) -> Option<u64> {
    parse_status(&std::fs::read_to_string(status).ok()?)
}

/// The memory used, in bytes, from `/proc/PID/status`. A process that is ending has none of these lines.
fn parse_status(text: &str) -> Option<u64> {
    let kib = |name: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        value.split_whitespace().next()?.parse::<u64>().ok()
    };
    let parts = ["VmSwap", "VmPTE"].map(|name| kib(name).unwrap_or(0));
    Some(parts.iter().fold(kib("VmRSS")?, |sum, part| sum.saturating_add(*part)).saturating_mul(1024))
}

/// The number of threads and the ticks used, from `/proc/PID/stat`. The name in parentheses may contain any character.
fn parse_stat(line: &str) -> Option<(u64, u64)> {
    let fields: Vec<&str> = line.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |place: usize| fields.get(place)?.parse::<u64>().ok();
    // Index 0 here is field 3 of proc(5).
    Some((number(17)?, number(11)? + number(12)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_process_is_read() {
        let usage = read(std::process::id()).unwrap();
        assert!(usage.memory > 100 << 10 && usage.memory < 1 << 40, "{usage:?}");
        assert!((1..10_000).contains(&usage.threads), "{usage:?}");
        let name = "7 (a) b) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18";
        assert_eq!(parse_stat(name), Some((17, 23)));
        assert_eq!(parse_stat("7 (a"), None);
        let status = "Name:\tVmRSS: 1 kB\nVmHWM:\t 9 kB\nVmRSS:\t 1300 kB\nVmPTE:\t 1026 kB\nVmSwap:\t 10 kB\n";
        assert_eq!(parse_status(status), Some((1300 + 1026 + 10) << 10));
        assert_eq!(parse_status("Name:\tx\nState:\tZ (zombie)\n"), None);
    }

    #[test]
    fn bounds_are_checked() {
        let watch = |memory, threads| Watch::new(std::process::id(), Bounds { memory, threads }).look();
        assert_eq!(watch(1, u64::MAX), Some(TOO_MUCH_MEMORY));
        assert_eq!(watch(u64::MAX, 0), Some(TOO_MANY_THREADS));
        assert_eq!(watch(u64::MAX, u64::MAX), None);
        assert_eq!(Watch::new(u32::MAX, Bounds { memory: 0, threads: 0 }).look(), None, "there is no such process");
    }
}

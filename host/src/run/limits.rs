//! Checks the system's limits for this process before the start, since the system would otherwise refuse a thread or a
//! mapping halfway through.

use std::io;
use std::thread;

use outrigger_rpc::STACK_BYTES;
use outrigger_wallet_engine::{Settings, open_files};
use parking_lot::Mutex;
use rustix::process::{Resource, getrlimit};

use super::{FRONT_THREADS, RunError, network_threads};
use crate::config::Config;

/// The open files of a host without wallets, clients and isolated plugins, with some to spare; and the open files of each
/// plugin.
const FILES: u64 = 128;
const FILES_OF_PLUGIN: u64 = 16;

/// The memory for data and stacks, and the address space besides the databases' maps, in bytes.
const MEMORY: u64 = 1 << 30;
const ADDRESSES: u64 = 4 << 30;

/// The address space for a bitcoind's headers and for other maps besides the filters, in bytes.
const HEADERS_MAP: u64 = 17 << 30;

/// The threads that depend on no setting, and the threads of each plugin.
const THREADS: usize = 24;
const THREADS_OF_PLUGIN: usize = 4;

/// The threads of an isolated plugin besides those of its calls, in the host and in its process, and the stack with which they are tried.
const THREADS_OF_RUNNER: usize = 12;
const TRIED_STACK_BYTES: usize = 64 << 10;

/// Checks the limits. Without a configuration, checks the limits for reading one and querying its node.
///
/// # Errors
/// A limit is too low; the text names it and the value that this step needs.
pub fn check_limits(config: Option<&Config>) -> Result<(), RunError> {
    let enabled = || config.into_iter().flat_map(|config| config.plugins.iter().filter(|plugin| plugin.enabled));
    let plugins = enabled().count();
    let mapped = config.map_or(0, |config| match &config.backend {
        Some(backend) => HEADERS_MAP + (backend.filter_cache_mib << 21),
        None => (config.chain.map_gib as u64) << 30,
    });
    let (wallet_files, wallet_map) = config.map_or((0, 0), |_| (open_files(1), Settings::default().least_map as u64));
    let files = wallet_files.max(FILES + FILES_OF_PLUGIN * plugins as u64);
    let limits = [
        (Resource::Nofile, "open files (ulimit -n, LimitNOFILE)", files, 1, ""),
        (Resource::Data, "memory for data (ulimit -d, LimitDATA)", MEMORY, 1 << 20, " MiB"),
        (Resource::As, "address space (ulimit -v, LimitAS)", ADDRESSES + mapped + wallet_map, 1 << 20, " MiB"),
    ];
    let purpose = if config.is_some() {
        "to start, with one wallet"
    } else {
        "to read its configuration; it may need more to start"
    };
    for (resource, name, needed, unit, unit_name) in limits {
        // The soft limit of files is raised to the hard limit.
        let limit = getrlimit(resource);
        let limit = if resource == Resource::Nofile { limit.maximum } else { limit.current };
        if let Some(limit) = limit.filter(|limit| *limit < needed) {
            let (limit, needed) = (limit / unit, needed / unit);
            return Err(RunError::Failed(format!(
                "the limit on {name} is too low: it is {limit}{unit_name}, and the host needs {needed}{unit_name} {purpose}"
            )));
        }
    }
    let callers = config.map_or(0, |config| config.rpc.threads) + network_threads();
    let own = THREADS + THREADS_OF_PLUGIN * plugins + callers + FRONT_THREADS;
    let default = config.map(|config| config.plugin_defaults.isolated).unwrap_or_default();
    let isolated = enabled().filter(|plugin| default.applies_to(plugin)).count();
    // The process of an isolated plugin has a thread for each thread that calls it.
    let threads = own + isolated * (THREADS_OF_RUNNER + callers);
    try_threads(own, threads).map_err(|error| {
        let limit = getrlimit(Resource::Nproc).current.map_or("unlimited".to_owned(), |limit| limit.to_string());
        RunError::Failed(format!(
            "the system refuses the {threads} threads that the host needs {purpose} ({error}): the user's limit of threads \
             (RLIMIT_NPROC: ulimit -u, LimitNPROC) is {limit}, for all of the user's processes together, and TasksMax of a unit or the \
             limit of a container may be lower"
        ))
    })
}

/// Starts this many threads at the same time, the first `own` of them with the host's stack, and ends them.
fn try_threads(own: usize, count: usize) -> io::Result<()> {
    let gate = Mutex::new(());
    thread::scope(|scope| {
        // The lock is held until all threads have started; they end with this block.
        let _closed = gate.lock();
        let wait = || drop(gate.lock());
        (0..count).try_for_each(|number| {
            let stack = if number < own { STACK_BYTES } else { TRIED_STACK_BYTES };
            thread::Builder::new().stack_size(stack).spawn_scoped(scope, wait).map(drop)
        })
    })
}

//! Starts programs without some system calls, as a container or a service unit may.

use std::collections::BTreeMap;

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

/// Runs `run` on a thread where the system calls of these numbers fail with EPERM, also in the programs that it starts.
pub fn denied<T: Send>(calls: &[i64], run: impl FnOnce() -> T + Send) -> T {
    let rules: BTreeMap<i64, _> = calls.iter().map(|call| (*call, Vec::new())).collect();
    let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let architecture = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, architecture).unwrap();
    let filter: BpfProgram = filter.try_into().unwrap();
    let run = || {
        seccompiler::apply_filter(&filter).unwrap();
        run()
    };
    std::thread::scope(|scope| scope.spawn(run).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

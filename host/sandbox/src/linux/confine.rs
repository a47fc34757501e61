//! Confines this process, layer by layer, while it has a single thread and has executed no foreign code.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use rustix::process::{
    DumpableBehavior, PidfdFlags, Resource, Rlimit, getpid, getrlimit, pidfd_open, set_dumpable_behavior, setrlimit,
};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs};

use super::channel::{self, Listener};
use super::{landlocked, namespaces, raw, rules};
use crate::plan::{Plan, Policy, SandboxError, SandboxLayers};
use crate::reach::Reach;

/// Confines this process permanently, and sends the descriptors of a [`Listener`] over `notify`.
///
/// All descriptors except `keep` and `notify` are closed, so an owner of another descriptor must not be used
/// or dropped afterwards. The host determines `support` with [`probe`](crate::probe).
///
/// # Errors
/// [`Policy::Require`] cannot be satisfied: checked before any step. After any other error the process must end.
pub fn confine(
    plan: &Plan,
    support: &SandboxLayers,
    keep: &[BorrowedFd<'_>],
    notify: BorrowedFd<'_>,
) -> Result<SandboxLayers, SandboxError> {
    if plan.policy == Policy::Require && !support.suffices() {
        return Err(SandboxError::Missing { missing: support.missing.clone() });
    }
    single_thread()?;
    let mut kept: Vec<_> = keep.iter().map(AsRawFd::as_raw_fd).collect();
    kept.push(notify.as_raw_fd());
    raw::close_others(&kept).map_err(|source| SandboxError::Step { step: "closing descriptors", source })?;

    let mut enforced = SandboxLayers { missing: support.missing.clone(), ..SandboxLayers::default() };
    let own = Own::open()?;
    enforced.namespaces = namespaces::enter(support)?;
    // 1 also disables programs that receive cores through a pipe; 0 does not.
    limit(Resource::Core, 1, "no core".to_owned(), &mut enforced)?;
    limit(Resource::Fsize, plan.file_size, format!("{} bytes a file", plan.file_size), &mut enforced)?;
    end_first(&mut enforced);
    if support.root {
        namespaces::replace_root(plan)?;
        enforced.root = true;
    }
    std::env::set_current_dir("/").map_err(|source| SandboxError::Path { path: "/".into(), source })?;
    set_no_new_privs(true).map_err(SandboxError::step("giving up new privileges"))?;
    if support.landlock_abi > 0 {
        enforced.landlock_abi = landlocked::restrict(plan)?;
    }
    drop_capabilities()?;
    let copied = |reach: &Reach| reach.is_connect() || matches!(reach, Reach::Write(_));
    if !plan.reach.iter().any(copied) {
        set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(SandboxError::step("hiding the memory"))?;
        enforced.hidden = true;
    }
    filter(plan, support, &mut enforced, own, notify)?;
    // The system counts the descriptors in flight of all processes of the user against the sender's limit. A hostile plugin could use up
    // this low limit, so it is set only after the listener is sent.
    limit(Resource::Nofile, plan.open_files, format!("{} descriptors", plan.open_files), &mut enforced)?;
    if plan.policy == Policy::Require && !enforced.suffices() {
        return Err(SandboxError::Missing { missing: enforced.missing });
    }
    Ok(enforced)
}

/// The process's `oom_score_adj`, up to 1000: the OOM killer ends processes with higher scores first.
const OOM_SCORE: &str = "500";

/// Descriptors that the process opens for the host before it is confined.
struct Own {
    memory: File,
    process: OwnedFd,
}

impl Own {
    fn open() -> Result<Self, SandboxError> {
        let path = "/proc/self/mem";
        let memory = File::open(path).map_err(|source| SandboxError::Path { path: path.into(), source })?;
        let process = pidfd_open(getpid(), PidfdFlags::empty()).map_err(SandboxError::step("naming the process"))?;
        Ok(Self { memory, process })
    }
}

/// Fails if the process has several threads: the others would not be confined.
fn single_thread() -> Result<(), SandboxError> {
    let path = "/proc/self/task";
    let threads = std::fs::read_dir(path).map_err(|source| SandboxError::Path { path: path.into(), source })?.count();
    if threads == 1 { Ok(()) } else { Err(SandboxError::Threads(threads)) }
}

/// Limits a resource, and adds `words` to the enforced limits. Never above the inherited limit, which the process cannot raise.
fn limit(resource: Resource, most: u64, words: String, enforced: &mut SandboxLayers) -> Result<(), SandboxError> {
    let most = getrlimit(resource).maximum.map_or(most, |given| given.min(most));
    enforced.limits.push(words);
    setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })
        .map_err(SandboxError::step("setting limits"))
}

/// Makes the OOM killer end this process before the host.
fn end_first(enforced: &mut SandboxLayers) {
    match std::fs::write("/proc/self/oom_score_adj", OOM_SCORE) {
        Ok(()) => enforced.limits.push("the first to end when memory runs out".to_owned()),
        Err(_) => enforced.missing.push("being the first to end when memory runs out".to_owned()),
    }
}

/// Drops the capabilities gained by a user namespace or by root.
fn drop_capabilities() -> Result<(), SandboxError> {
    let none = CapabilitySet::empty();
    // A service unit may forbid the call, even if there is nothing to drop.
    if capabilities(None).is_ok_and(|has| (has.effective | has.permitted | has.inheritable).is_empty()) {
        return Ok(());
    }
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
        .map_err(SandboxError::step("giving up capabilities"))
}

/// Installs the filters, and sends the host its descriptors.
fn filter(
    plan: &Plan,
    support: &SandboxLayers,
    enforced: &mut SandboxLayers,
    own: Own,
    notify: BorrowedFd<'_>,
) -> Result<(), SandboxError> {
    let send = |listener: Option<&Listener>| {
        channel::send(notify, listener).map_err(SandboxError::step("sending the listener to the host"))
    };
    if !support.seccomp {
        return send(None);
    }
    let pid = getpid().as_raw_nonzero().get().unsigned_abs();
    let (root, bounded) = (enforced.root, enforced.bounds_files());
    let shape = rules::Shape { reach: &plan.reach, reported: support.reported, root, bounded, pid };
    let step = |source| SandboxError::Step { step: "filtering system calls", source };
    let [unknown, main] = rules::compile(&shape).map_err(|reason| step(io::Error::other(reason)))?;
    raw::install(&converted(&unknown), false).map_err(step)?;
    let notices = raw::install(&converted(&main), support.reported).map_err(step)?;
    enforced.seccomp = true;
    match notices {
        Some(notices) => {
            enforced.reported = true;
            send(Some(&Listener { notices, memory: own.memory, process: own.process, bounded }))
        }
        None => send(None),
    }
}

fn converted(program: &[seccompiler::sock_filter]) -> Vec<libc::sock_filter> {
    program.iter().map(|one| libc::sock_filter { code: one.code, jt: one.jt, jf: one.jf, k: one.k }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_of_several_threads_is_refused() {
        // The test's thread and its parent.
        assert!(matches!(single_thread(), Err(SandboxError::Threads(2..))));
    }
}

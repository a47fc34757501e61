//! Landlock: granted files and folders, no connections, no signals to other processes.

use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, LandlockStatus, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

use crate::plan::{Plan, SandboxError};

/// The newest requested rights; an older kernel enforces fewer.
const NEWEST: ABI = ABI::V6;

/// The rights in a writable folder: no devices, sockets or symbolic links, and no execution.
fn writing() -> BitFlags<AccessFs> {
    use AccessFs::*;
    ReadFile | ReadDir | WriteFile | Truncate | MakeReg | MakeDir | RemoveFile | RemoveDir | Refer
}

/// Restricts this thread permanently. Returns the enforced Landlock ABI version, or 0.
pub(super) fn restrict(plan: &Plan) -> Result<u32, SandboxError> {
    let mut rules = create().map_err(step)?;
    for library in plan.library.iter().chain(&plan.closure) {
        rules = allow(rules, library, AccessFs::ReadFile.into())?;
    }
    for (path, writes) in plan.reach.iter().filter_map(|reach| reach.files()) {
        let rights = if writes { writing() } else { AccessFs::ReadFile | AccessFs::ReadDir };
        rules = allow(rules, path, rights)?;
    }
    let status = rules.restrict_self().map_err(step)?;
    Ok(match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, _) => 0,
        (_, LandlockStatus::Available { effective_abi, .. }) => effective_abi as u32,
        _ => 0,
    })
}

fn create() -> Result<RulesetCreated, RulesetError> {
    Ruleset::default()
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::AbstractUnixSocket | Scope::Signal)?
        .create()
}

fn allow(rules: RulesetCreated, path: &Path, mut rights: BitFlags<AccessFs>) -> Result<RulesetCreated, SandboxError> {
    let error = |source| SandboxError::Path { path: path.to_owned(), source };
    if !std::fs::metadata(path).map_err(error)?.is_dir() {
        rights &= AccessFs::from_file(NEWEST);
    }
    let descriptor = PathFd::new(path).map_err(|reason| error(std::io::Error::other(reason)))?;
    rules.add_rule(PathBeneath::new(descriptor, rights)).map_err(step)
}

fn step(error: RulesetError) -> SandboxError {
    SandboxError::Step { step: "setting Landlock's rules", source: std::io::Error::other(error) }
}

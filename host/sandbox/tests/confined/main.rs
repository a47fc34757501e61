//! Tests of confined processes. This program starts itself again as the host, and that as the confined process.
//!
//! Each case runs as the tests' user, and if that is root, also as an unprivileged user.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a broken expectation fails the test")]

#[cfg(target_os = "linux")]
mod attempts;
#[cfg(target_os = "linux")]
mod cases;
#[cfg(target_os = "linux")]
mod granted;
#[cfg(target_os = "linux")]
mod host;
#[cfg(target_os = "linux")]
mod libraries;
#[cfg(target_os = "linux")]
mod swapped;

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("skipped: there is a sandbox on Linux only");
}

#[cfg(target_os = "linux")]
const NOBODY: u32 = 65534;

#[cfg(target_os = "linux")]
fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let rest: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    match rest.as_slice() {
        ["--confined", what, plan, support] => attempts::run(what, plan, support),
        ["--host", case] => cases::run(case),
        _ => drive(rest.iter().find(|argument| !argument.starts_with('-')).copied()),
    }
}

#[cfg(target_os = "linux")]
fn drive(filter: Option<&str>) {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;

    // A copy that an unprivileged user may execute, wherever the program was built.
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("confined");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();

    let root = rustix::process::getuid().is_root();
    let mut failed = Vec::new();
    for name in cases::names().filter(|name| filter.is_none_or(|filter| name.contains(filter))) {
        for user in std::iter::once(None).chain(root.then_some(Some(NOBODY))) {
            let mut command = std::process::Command::new(&program);
            command.args(["--host", name]).env_clear().current_dir("/");
            if let Some(user) = user {
                command.uid(user).gid(user);
            }
            let output = command.output().unwrap();
            let as_whom = if user.is_some() { "nobody" } else { "own user" };
            let result = if output.status.success() { "ok" } else { "FAILED" };
            println!("test {name} ({as_whom}) ... {result}");
            print!("{}", String::from_utf8_lossy(&output.stdout));
            if !output.status.success() {
                println!("{}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
                failed.push(name);
            }
        }
    }
    assert!(failed.is_empty(), "failed: {failed:?}");
}

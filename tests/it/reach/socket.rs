//! The Unix socket.

use std::fs::{self, Permissions};
use std::io::{BufReader, Read};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;

use outrigger_tests::{Host, HostOptions, built, exchange};
use tempfile::TempDir;

use super::{PATIENCE, ask, request, request_of};
use crate::users::ALICE;

/// The options of a host that listens on a port and on the socket, with further configuration lines.
fn options(folder: &TempDir, more: &str) -> HostOptions {
    let listen = Some(format!("127.0.0.1:0 unix:{}", folder.path().join("rpc.sock").display()));
    HostOptions { listen, ..HostOptions::with_groups(more) }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn socket_serves_calls_with_credentials_and_is_removed_with_the_host() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rpc.sock");
    let mut host = Host::start_with(options(&folder, ""));
    assert!(fs::symlink_metadata(&path).unwrap().file_type().is_socket());
    assert_eq!(mode(&path), 0o600);
    let status = |credentials: &str| ask(UnixStream::connect(&path).unwrap(), &request(credentials)).unwrap().status;
    assert_eq!((status(&host.cookie()), status(""), status("__cookie__:wrong")), (200, 401, 401));
    let mut call = Command::new(&built().binary);
    call.args(["call", "--datadir"]).arg(host.datadir()).args(["--rpc-connect", &format!("unix:{}", path.display())]);
    let output = call.arg("getblockcount").output().unwrap();
    assert_eq!((output.status.code(), &*output.stdout), (Some(0), &b"0\n"[..]), "{output:?}");
    assert!(host.terminate().success());
    assert!(!path.exists(), "the socket is left behind");
}

#[test]
fn socket_of_a_killed_host_is_replaced_with_the_set_mode_and_one_in_use_refuses_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rpc.sock");
    let options = options(&folder, "").and(&["rpc.socket_mode=0o660"]);
    let mut host = Host::start_with(options.clone());
    host.kill();
    assert!(path.exists());
    let host = host.start_again();
    assert_eq!(mode(&path), 0o660);
    assert_eq!(ask(UnixStream::connect(&path).unwrap(), &request(&host.cookie())).unwrap().status, 200);
    let refused = Host::fail(&options);
    let error = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(1) && error.contains("rpc.sock: Address already in use"), "{error}");
    assert_eq!(ask(UnixStream::connect(&path).unwrap(), &request(&host.cookie())).unwrap().status, 200);
    drop(host);

    // The host does not replace another program's socket or a regular file.
    let _other = UnixListener::bind(&path).unwrap();
    assert_eq!(Host::fail(&options).status.code(), Some(1));
    fs::remove_file(&path).unwrap();
    fs::write(&path, "precious").unwrap();
    assert_eq!(Host::fail(&options).status.code(), Some(1));
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
}

#[test]
fn socket_peers_are_identified_by_uid_only_while_a_user_has_the_uid() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rpc.sock");
    let own = rustix::process::getuid().as_raw();
    let user = |uid| format!("[[rpc.users]]\nname = \"local\"\nuid = {uid}\nmethods = [\"uptime\"]\n");
    let host = Host::start_with(options(&folder, &format!("{}[[rpc.users]]\nrpcauth = \"{ALICE}\"\n", user(own))));
    let check = |without: u16| {
        let status =
            |credentials: &str| ask(UnixStream::connect(&path).unwrap(), &request(credentials)).unwrap().status;
        assert_eq!(status(""), without);
        assert_eq!((status("alice:pass:word"), status("alice:wrong"), status("local:")), (200, 401, 401));
        // The uid identifies no user over TCP.
        assert_eq!(ask(super::connect(&host), &request("")).unwrap().status, 401);
    };
    check(200);
    let mut kept = BufReader::new(UnixStream::connect(&path).unwrap());
    assert_eq!(exchange(&mut kept, &request("")).unwrap().status, 200);
    // A reload that removes the uid ends the connection.
    let text = fs::read_to_string(host.config_file().path()).unwrap();
    super::reload(&host, &text.replace(&user(own), &user(own + 1)));
    kept.get_ref().set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(kept.read(&mut [0]).unwrap(), 0);
    check(401);
}

#[test]
fn socket_of_a_trusted_proxy_gives_its_clients_no_uid() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rpc.sock");
    let own = rustix::process::getuid().as_raw();
    let options = options(&folder, &format!("[[rpc.users]]\nname = \"local\"\nuid = {own}\n"));
    let _host = Host::start_with(options.and(&["rpc.trusted_proxies=['unix']"]));
    for headers in ["X-Forwarded-For: 127.0.0.5\r\n", ""] {
        let call = request_of("", headers, r#"{"method":"uptime","id":1}"#);
        assert_eq!(ask(UnixStream::connect(&path).unwrap(), &call).unwrap().status, 401, "{headers}");
    }
}

#[test]
fn socket_settings_that_cannot_work_refuse_check_and_start() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("none").join("rpc.sock");
    let long = folder.path().join("x".repeat(120));
    fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
    let listen = |path: &Path| format!("rpc.listen=unix:{}", path.display());
    let two = "[[rpc.users]]\nname = \"a\"\nuid = 1\n[[rpc.users]]\nname = \"b\"\nuid = 1\n".to_owned();
    let both = format!("[[rpc.users]]\nname = \"a\"\nuid = 1\nrpcauth = \"{ALICE}\"\n");
    let cases = [
        (String::new(), listen(&missing), 1, "none/rpc.sock: No such file"),
        (String::new(), listen(&long), 1, "xxx: "),
        (String::new(), "rpc.listen=unix:rpc.sock".to_owned(), 2, "is no address"),
        (String::new(), "rpc.socket_mode=660".to_owned(), 2, "rpc.socket_mode: must be from 0o600"),
        (String::new(), "rpc.socket_mode=0o440".to_owned(), 2, "rpc.socket_mode: must be from 0o600"),
        (two, "log.level=warn".to_owned(), 2, "an earlier user has the uid 1"),
        (both, "log.level=warn".to_owned(), 2, "either rpcauth or"),
    ];
    for (text, set, code, reason) in cases {
        let config = HostOptions::with_groups(&text).config_file();
        let mut command = Command::new(&built().binary);
        command.arg("run").arg("--datadir").arg(folder.path()).arg("--config").arg(config.path()).args(["--set", &set]);
        command.args(["--set", "chain.map_gib=16"]);
        let started = command.output().unwrap();
        let checked = command.arg("--check").output().unwrap();
        for (output, code) in [(started, code), (checked, 2)] {
            let error = String::from_utf8(output.stderr).unwrap();
            assert!(output.status.code() == Some(code) && error.contains(reason), "{set}: {error}");
        }
    }
}

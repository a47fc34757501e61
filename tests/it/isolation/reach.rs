//! `reach` grants exactly its entries, and nothing next to them.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use outrigger_tests::{Client, Host};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::connecting::greet;
use super::{Installed, has_sandbox, refused, users};

/// Opens two sockets that answer.
fn serve(folder: &Path) {
    for name in ["daemon", "other"] {
        let path = folder.join(name);
        let listener = UnixListener::bind(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        std::thread::spawn(move || listener.incoming().for_each(|stream| greet(stream.unwrap())));
    }
}

/// A folder that any user may enter, with `read/file`, `write/`, `secret` and links to it.
fn folder(user: Option<u32>) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::set_permissions(at, fs::Permissions::from_mode(0o755)).unwrap();
    for name in ["read", "write"] {
        fs::create_dir(at.join(name)).unwrap();
        fs::set_permissions(at.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("../secret", at.join(name).join("link")).unwrap();
    }
    for name in ["read/file", "secret"] {
        fs::write(at.join(name), "text").unwrap();
        fs::set_permissions(at.join(name), fs::Permissions::from_mode(0o644)).unwrap();
    }
    if user.is_some() {
        chown(at.join("write"), user, user).unwrap();
    }
    folder
}

/// Checks that an attempt outside the granted entries is refused and reported.
#[track_caller]
fn check_refused(client: &mut Client, method: &str, argument: &str, told: &str) {
    assert_eq!(client.refused(method, json!([argument])), refused(), "{method} {argument}");
    let last = client.plugin("hostile")["denied"]["last"].clone();
    assert_eq!(format!("{} {}", last["call"].as_str().unwrap(), last["argument"].as_str().unwrap()), told);
}

#[test]
fn reach_grants_only_the_entries_that_it_names() {
    if !has_sandbox() {
        return;
    }
    let installed = Installed::new(&[]);
    for user in users() {
        let folder = folder(user);
        let at = folder.path().display().to_string();
        serve(folder.path());
        let [server, other] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let address = server.local_addr().unwrap();
        std::thread::spawn(move || server.incoming().for_each(|stream| greet(stream.unwrap())));
        let reach = [
            format!("read:{at}/read"),
            format!("write:{at}/write"),
            format!("connect:unix:{at}/daemon"),
            format!("connect:tcp:{address}"),
        ];
        let host = Host::start_with(installed.options("", user, &format!("reach = {}\n", json!(reach))));
        let mut client = host.client();

        assert_eq!(client.call("hostileread", json!([format!("{at}/read/file")])), json!("text"));
        assert_eq!(client.call("hostilewrite", json!([format!("{at}/write/new")])), Value::Null);
        assert_eq!(fs::read_to_string(folder.path().join("write/new")).unwrap(), "written");
        assert_eq!(client.call("hostileread", json!([format!("{at}/write/new")])), json!("written"));
        assert_eq!(client.call("hostileconnect", json!([format!("{at}/daemon")])), json!("welcome"));
        assert_eq!(client.call("hostileconnect", json!([address.to_string()])), json!("welcome"));
        let listed = client.call("hostileread", json!([format!("{at}/read")]));
        assert!(listed.as_str().unwrap().contains("file"), "{listed}");
        assert_eq!(client.plugin("hostile")["denied"]["count"], json!(0), "as {user:?}");

        check_refused(&mut client, "hostileread", &format!("{at}/secret"), &format!("openat {at}/secret"));
        check_refused(&mut client, "hostileread", &format!("{at}/read/../secret"), &format!("openat {at}/secret"));
        check_refused(&mut client, "hostileread", &at, &format!("openat {at}"));
        check_refused(&mut client, "hostilewrite", &format!("{at}/read/file"), &format!("openat {at}/read/file"));
        check_refused(&mut client, "hostilewrite", &format!("{at}/secret"), &format!("openat {at}/secret"));
        check_refused(&mut client, "hostileconnect", &format!("{at}/other"), &format!("connect unix:{at}/other"));
        let other = other.local_addr().unwrap().to_string();
        check_refused(&mut client, "hostileconnect", &other, &format!("connect tcp:{other}"));
        // A link is followed only to files within the granted entries.
        for (method, link) in [("hostileread", "read"), ("hostilewrite", "write"), ("hostileread", "write")] {
            assert_eq!(client.refused(method, json!([format!("{at}/{link}/link")])).0, -90, "as {user:?}");
        }
        assert_eq!(fs::read_to_string(folder.path().join("secret")).unwrap(), "text");
        assert_eq!(fs::read_to_string(folder.path().join("read/file")).unwrap(), "text");
    }
}

#[test]
fn host_names_a_path_of_reach_that_does_not_exist() {
    if !has_sandbox() {
        return;
    }
    let output = Host::fail(&super::alone("reach = [\"read:/nonexistent/acme\"]\n"));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("/nonexistent/acme: No such file"), "{error}");
}

//! `outrigger call`, the client in the binary: what it makes of what is typed.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Command, Output, Stdio};

use outrigger_tests::{Host, HostOptions, built, groups};
use rustix::fs::{Mode, OFlags, fcntl_setfl, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};
use serde_json::json;

fn command(host: &Host, arguments: &[&str]) -> Command {
    let mut command = Command::new(&built().binary);
    command.arg("call").arg("--datadir").arg(host.datadir()).arg("--rpc-connect");
    command.arg(format!("http://{}", host.address)).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn call(host: &Host, arguments: &[&str], input: &str) -> Output {
    let mut child = command(host, arguments).stdin(Stdio::piped()).spawn().unwrap();
    // A command that reads nothing may have ended.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

#[test]
fn what_comes_from_standard_input_is_text_as_it_stands() {
    let host = Host::start();
    let names = ["\"quoted\"", "pass=word", "wallet_name=x", "null", "1234", "[1]"];
    for name in names {
        let output = call(&host, &["--stdin", "createwallet"], &format!("{name}\ntrue\n"));
        assert!(output.status.success(), "{name}: {output:?}");
    }
    assert_eq!(host.client().call("listwallets", json!([])), json!(names));
    let named = call(&host, &["--stdin", "--named", "createwallet"], "wallet_name=a=b\nblank=true\n");
    assert!(named.status.success(), "{named:?}");
    assert_eq!(host.client().wallet("a%3Db").call("getwalletinfo", json!([]))["walletname"], "a=b");
    let refused = call(&host, &["--stdin", "--named", "createwallet"], "s3cret=word\n");
    let error = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{error}");
    assert!(error.contains("line 1 of standard input") && !error.contains("s3cret"), "{error}");
}

#[test]
fn an_argument_is_named_where_the_method_has_the_name() {
    let host = Host::start();
    let mut wallet = host.new_wallet("w");
    let address = wallet.call("getnewaddress", json!([]));
    let address = address.as_str().unwrap();
    assert!(call(&host, &["setlabel", address, "rent=may"], "").status.success());
    assert_eq!(wallet.call("getaddressinfo", json!([address]))["labels"], json!(["rent=may"]));
    assert!(call(&host, &["setlabel", "label=june", &format!("address={address}")], "").status.success());
    assert_eq!(wallet.call("getaddressinfo", json!([address]))["labels"], json!(["june"]));
    let hash = host.client().call("getblockhash", json!([0]));
    // By its other name.
    let block = call(&host, &["getblock", hash.as_str().unwrap(), "verbose=0"], "");
    assert!(block.stdout.starts_with(b"01000000"), "{block:?}");
    let unknown = call(&host, &["--named", "setlabel", "rent=may"], "");
    let error = String::from_utf8(unknown.stderr).unwrap();
    assert!(error.contains("Unknown named parameter rent"), "{error}");
}

#[test]
fn a_user_with_a_list_of_methods_is_told_what_they_take_and_no_more() {
    let mut config = tempfile::NamedTempFile::new().unwrap();
    let alice =
        "alice:0123456789abcdef0123456789abcdef$36eec41693efe2766d65afc49dcabcd63a478f61cd99bb469a80f7ad8885432b";
    let configured = std::fs::read_to_string(groups("regtest.toml")).unwrap();
    write!(config, "{configured}\n[[rpc.users]]\nrpcauth = \"{alice}\"\nmethods = [\"createwallet\"]\n").unwrap();
    let host = Host::start_with(HostOptions { config: Some(config.path().to_owned()), ..HostOptions::default() });
    let output = call(&host, &["--rpc-user", "alice", "--stdin", "createwallet"], "pass:word\n2026\ntrue\n");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(host.client().call("listwallets", json!([])), json!(["2026"]));
    let mut client = outrigger_tests::Client::new(host.address, "alice:pass:word");
    let document = client.call("rpc.discover", json!([]));
    let methods: Vec<_> = document["methods"].as_array().unwrap().iter().map(|method| &method["name"]).collect();
    assert_eq!(methods, ["createwallet", "rpc.discover"]);
    assert_eq!(client.post(r#"{"method":"help","id":1}"#).status, 403);
}

#[test]
fn a_terminal_does_not_show_secrets_and_is_left_as_it_was() {
    let host = Host::start();
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let end = File::from(open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap());
    let shows = || tcgetattr(&end).unwrap().local_modes.contains(LocalModes::ECHO);
    assert!(shows());
    let mut child =
        command(&host, &["--stdin", "createwallet"]).stdin(Stdio::from(end.try_clone().unwrap())).spawn().unwrap();
    let mut asked = vec![0; "Arguments of createwallet".len()];
    child.stderr.as_mut().unwrap().read_exact(&mut asked).unwrap();
    assert_eq!(String::from_utf8(asked).unwrap(), "Arguments of createwallet");
    assert!(!shows());
    let mut terminal = File::from(terminal);
    terminal.write_all(b"s3cret\n\x04").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(host.client().call("listwallets", json!([])), json!(["s3cret"]));
    assert!(shows());
    fcntl_setfl(&terminal, OFlags::NONBLOCK).unwrap();
    let mut shown = [0; 100];
    let count = terminal.read(&mut shown).unwrap_or(0);
    assert_eq!(String::from_utf8_lossy(&shown[..count]), "\r\n");
}

#[test]
fn a_terminal_is_left_as_it_was_when_the_command_is_interrupted() {
    let host = Host::start();
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let end = open(ptsname(&terminal, Vec::new()).unwrap(), OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    let stdin = Stdio::from(end.try_clone().unwrap());
    let mut child = command(&host, &["--stdin", "createwallet"]).stdin(stdin).spawn().unwrap();
    child.stderr.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let id = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(tcgetattr(&end).unwrap().local_modes.contains(LocalModes::ECHO));
}

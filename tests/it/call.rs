//! `outrigger call`, the client in the binary: how it parses its arguments and input.

use outrigger_tests::{Host, built, read_message};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::termios::{LocalModes, tcgetattr};
use serde_json::{Value, json};
use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::top::terminal;

fn command(datadir: &Path, address: SocketAddr, arguments: &[&str]) -> Command {
    let mut command = Command::new(&built().binary);
    command.arg("call").arg("--datadir").arg(datadir).arg("--rpc-connect").arg(format!("http://{address}"));
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn call(host: &Host, arguments: &[&str], input: &str) -> Output {
    let mut child = command(host.datadir(), host.address, arguments).stdin(Stdio::piped()).spawn().unwrap();
    // The command may have exited without reading its input.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

#[test]
fn call_finds_the_host_prints_the_result_and_exits_with_the_error_code() {
    let host = Host::start();
    let at = |arguments: &[&str]| call(&host, arguments, "");
    let output = at(&["getblockhash", "0"]);
    let genesis = "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206\n";
    assert_eq!(String::from_utf8(output.stdout).unwrap(), genesis);
    assert_eq!(String::from_utf8(at(&["getblockhash", "height=0"]).stdout).unwrap(), genesis);
    let output = at(&["getblockhash", "7"]);
    assert_eq!(output.status.code(), Some(8));
    assert!(String::from_utf8(output.stderr).unwrap().contains("Block height out of range"));
    let (code, _, error) = said(at(&["frobnicate", "1"]));
    assert_eq!((code, error.as_str()), (Some(89), "error code: -32601\nerror message:\nMethod not found\n"));

    // Find the host by its data directory alone.
    let by_folder = |network: &[&str]| {
        let mut command = Command::new(&built().binary);
        command.arg("call").arg("--datadir").arg(host.datadir()).args(network).arg("getblockcount").output().unwrap()
    };
    assert_eq!(String::from_utf8(by_folder(&[]).stdout).unwrap().trim(), "0");
    assert_eq!(String::from_utf8(by_folder(&["--network", "regtest"]).stdout).unwrap().trim(), "0");
    let missing = by_folder(&["--network", "signet"]);
    assert!(!missing.status.success() && String::from_utf8(missing.stderr).unwrap().contains("signet/.cookie"));
}

#[test]
fn call_stdin_lines_are_literal_text_and_call_requires_a_wallet_name_among_several() {
    let host = Host::start();
    let names = ["\"quoted\"", "pass=word", "wallet_name=x", "null", "1234", "[1]"];
    for name in names {
        let output = call(&host, &["--stdin", "createwallet"], &format!("{name}\ntrue\n"));
        assert!(output.status.success(), "{name}: {output:?}");
    }
    assert_eq!(host.client().call("listwallets", json!([])), json!(names));
    let (code, _, error) = said(call(&host, &["getbalance"], ""));
    assert!(code == Some(19) && error.starts_with("error code: -19\nerror message:\n"), "{error}");
    let last = "Name one with --wallet NAME; `outrigger call listwallets` shows which are loaded.";
    assert_eq!(error.lines().last(), Some(last));

    // The wallet's name and passphrase look like numbers.
    let call = |arguments: &[&str], input: &str| {
        let (code, output, _) = said(call(&host, arguments, input));
        (code, output)
    };
    assert_eq!(call(&["createwallet", "2026"], "").0, Some(0));
    assert_eq!(call(&["--wallet", "2026", "--stdin", "encryptwallet"], "1234\n").0, Some(0));
    assert_eq!(call(&["--wallet", "2026", "--stdin", "walletpassphrase"], "4321\n60\n").0, Some(14));
    assert_eq!(call(&["--wallet", "2026", "--stdin", "walletpassphrase"], "1234\n60\n").0, Some(0));
    let (code, info) = call(&["--wallet", "2026", "getwalletinfo"], "");
    // Read one line from a pipe.
    assert!(code == Some(0) && info.starts_with("{\"walletname\":\"2026\",") && info.lines().count() == 1, "{info}");
    let (code, script) = call(&["getblockcount"], "");
    assert_eq!((code, script.as_str()), (Some(0), "0\n"));
}

#[test]
fn call_accepts_named_arguments_and_parses_each_by_its_type() {
    let host = Host::start();
    let mut wallet = host.new_wallet("w");
    let address = wallet.call("getnewaddress", json!([]));
    let address = address.as_str().unwrap();
    assert!(call(&host, &["setlabel", address, "rent=may"], "").status.success());
    assert_eq!(wallet.call("getaddressinfo", json!([address]))["labels"], json!(["rent=may"]));
    assert!(call(&host, &["setlabel", "label=june", &format!("address={address}")], "").status.success());
    assert_eq!(wallet.call("getaddressinfo", json!([address]))["labels"], json!(["june"]));
    let hash = host.client().call("getblockhash", json!([0]));
    // Use the argument's alias.
    let block = call(&host, &["getblock", hash.as_str().unwrap(), "verbose=0"], "");
    assert!(block.stdout.starts_with(b"01000000"), "{block:?}");
    // Text arguments keep their quotes; other types are parsed as JSON.
    for label in ["\"lab\"", "null", "12", "[1]"] {
        let (code, address, error) = said(call(&host, &["getnewaddress", label], ""));
        assert_eq!(code, Some(0), "{error}");
        assert_eq!(wallet.call("getaddressinfo", json!([address.trim_end()]))["labels"], json!([label]));
    }
    let refused = [
        (&["getblockhash", "x"][..], "x"),
        (&["getblockhash", ""], ""),
        (&["getblockhash", "01"], "01"),
        (&["getblockhash", "height=x"], "x"),
        (&["importmulti", "x"], "x"),
        (&["createrawtransaction", "[", "{}"], "["),
        (&["sendtoaddress", "x", "abc"], "abc"),
    ];
    for (arguments, text) in refused {
        let (code, _, error) = said(call(&host, arguments, ""));
        let is_told = error.starts_with(&format!("outrigger: Error parsing JSON: {text} ("));
        assert!(code == Some(1) && is_told, "{arguments:?}: {code:?} {error}");
    }
    let (code, _, error) = said(call(&host, &["--stdin", "getblockhash"], "s3cret\n"));
    assert!(code == Some(1) && error.contains("line 1 of standard input") && !error.contains("s3cret"), "{error}");
}

#[test]
fn call_stdin_on_a_terminal_shows_no_secrets_and_restores_echo_even_when_interrupted() {
    let host = Host::start();
    let (mut terminal, end) = terminal();
    let shows = || tcgetattr(&end).unwrap().local_modes.contains(LocalModes::ECHO);
    assert!(shows());
    let mut command = command(host.datadir(), host.address, &["--stdin", "createwallet"]);
    let mut child = command.stdin(end.try_clone().unwrap()).spawn().unwrap();
    let mut asked = vec![0; "Arguments of createwallet".len()];
    child.stderr.as_mut().unwrap().read_exact(&mut asked).unwrap();
    assert_eq!(String::from_utf8(asked).unwrap(), "Arguments of createwallet");
    assert!(!shows());
    terminal.write_all(b"s3cret\n\x04").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(host.client().call("listwallets", json!([])), json!(["s3cret"]));
    assert!(shows());
    fcntl_setfl(&terminal, OFlags::NONBLOCK).unwrap();
    let mut shown = [0; 100];
    let count = terminal.read(&mut shown).unwrap_or(0);
    assert_eq!(String::from_utf8_lossy(&shown[..count]), "\r\n");

    let mut child = command.spawn().unwrap();
    child.stderr.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let id = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(shows());
}

fn said(output: Output) -> (Option<i32>, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Accepts a client's next request and answers it; returns the request's body.
fn serve(listener: &TcpListener, answer: &Value) -> Value {
    let mut stream = BufReader::new(listener.accept().unwrap().0);
    let request = String::from_utf8(read_message(&mut stream).unwrap()).unwrap();
    let reply = format!("HTTP/1.1 200 OK\r\n\r\n{answer}");
    stream.get_mut().write_all(reply.as_bytes()).unwrap();
    serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[test]
fn call_wait_waits_for_a_host_that_is_absent_or_starting() {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let child = command(folder.path(), address, &["--wait", "getblockcount"]).spawn().unwrap();
    std::fs::create_dir(folder.path().join("regtest")).unwrap();
    std::fs::write(folder.path().join("regtest/.cookie.new"), "__cookie__:word").unwrap();
    std::fs::rename(folder.path().join("regtest/.cookie.new"), folder.path().join("regtest/.cookie")).unwrap();
    let starts = json!({"result": null, "error": {"code": -28, "message": "Loading"}, "id": "call"});
    assert_eq!(serve(&listener, &starts)["method"], "getblockcount");
    assert_eq!(serve(&listener, &json!({"result": 7, "error": null, "id": "call"}))["method"], "getblockcount");
    let output = child.wait_with_output().unwrap();
    assert_eq!(said(output), (Some(0), "7\n".to_owned(), String::new()));
}

#[test]
fn call_works_where_the_host_has_no_rpc_discover() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("regtest")).unwrap();
    std::fs::write(folder.path().join("regtest/.cookie"), "__cookie__:word").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let child = command(folder.path(), address, &["echo", "1", "a", "\"b\""]).spawn().unwrap();
    let unknown = json!({"result": null, "error": {"code": -32601, "message": "Method not found"}, "id": "call"});
    assert_eq!(serve(&listener, &unknown)["method"], "rpc.discover");
    let called = serve(&listener, &json!({"result": "", "error": null, "id": "call"}));
    assert_eq!((&called["method"], &called["params"]), (&json!("echo"), &json!([1, "a", "b"])));
    // The client prints no line for an empty text, like bitcoin-cli.
    assert_eq!(said(child.wait_with_output().unwrap()), (Some(0), String::new(), String::new()));
}

#[test]
fn call_usage_errors_have_exit_codes_and_suggest_names_and_completions_list_all_options() {
    let run = |arguments: &[&str]| said(Command::new(&built().binary).args(arguments).output().unwrap());
    for arguments in [&["call"][..], &["call", "--no-such-option", "x"]] {
        let (code, _, error) = run(arguments);
        assert!(code == Some(1) && error.starts_with("error: "), "{arguments:?}: {code:?} {error}");
    }
    assert_eq!(run(&["no-such-command"]).0, Some(2));
    assert_eq!(run(&["call", "--help"]).0, Some(0));
    let mistyped = [
        (&["runn"][..], "'run'"),
        (&["rnu"], "'run'"),
        (&["plugin", "inspekt", "x"], "'inspect'"),
        (&["plugin", "nwe", "x"], "'new'"),
    ];
    for (arguments, meant) in mistyped {
        let (code, _, error) = run(arguments);
        assert!(code == Some(2) && error.contains("similar subcommand") && error.contains(meant), "{error}");
    }
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let (code, script, _) = run(&["completions", shell]);
        let options = ["stdin", "wait", "wait-timeout"];
        let missing: Vec<_> = options.into_iter().filter(|option| !script.contains(option)).collect();
        assert!(code == Some(0) && missing.is_empty(), "{shell}: {missing:?}");
    }
}

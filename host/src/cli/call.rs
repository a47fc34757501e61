//! `outrigger call`: a small client for a running host.
//!
//! Arguments are taken as JSON where they read as JSON, else as text; `name=value` gives an argument by name. The exit
//! code is 0, or the error's code without its sign modulo 256, as bitcoin-cli has it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::ExitCode;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use serde_json::{Map, Value, json};

use crate::config::expand_home;
use crate::router::percent_encode;

/// What `call` is told on the command line.
#[derive(Args)]
pub struct CallArgs {
    /// The host's data directory, where its cookie is.
    #[arg(long, default_value = "~/.outrigger")]
    datadir: PathBuf,
    /// Where it listens.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:18443")]
    rpc_connect: String,
    /// The wallet to call.
    #[arg(long)]
    wallet: Option<String>,
    /// The method.
    method: String,
    /// Its arguments, by position or as name=value.
    #[arg(allow_hyphen_values = true)]
    params: Vec<String>,
}

/// Why a call came to nothing.
#[derive(Debug, thiserror::Error)]
enum CallError {
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("cannot read the cookie {}: {source}; is the host running?", .path.display())]
    Cookie { path: PathBuf, source: std::io::Error },
    #[error("the host answered {0}")]
    Status(String),
    #[error("the host's answer is not JSON-RPC")]
    Answer,
}

/// Makes the call and prints its result.
pub fn call(args: &CallArgs) -> ExitCode {
    match exchange(args) {
        Ok(reply) => print(&reply),
        Err(error) => {
            eprintln!("outrigger: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print(reply: &Value) -> ExitCode {
    if let Some(error) = reply.get("error").filter(|error| !error.is_null()) {
        let code = error.get("code").and_then(Value::as_i64).unwrap_or(1);
        let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
        eprintln!("error code: {code}\nerror message:\n{message}");
        return ExitCode::from(u8::try_from(code.unsigned_abs() % 256).unwrap_or(1));
    }
    match reply.get("result").unwrap_or(&Value::Null) {
        Value::Null => {}
        Value::String(text) => return show(text),
        other => return show(&format!("{other:#}")),
    }
    ExitCode::SUCCESS
}

/// Prints a result. A reader that has gone has read enough.
fn show(text: &str) -> ExitCode {
    match writeln!(std::io::stdout(), "{text}") {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}

/// Arguments with a name go into an object, the others by position; with both, the positions go under `args`.
fn arguments(params: &[String]) -> Value {
    let value = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| json!(text));
    let is_name =
        |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_' || b == b'-');
    let mut positions = Vec::new();
    let mut names = Map::new();
    for param in params {
        match param.split_once('=') {
            Some((name, text)) if is_name(name) => {
                names.insert(name.to_owned(), value(text));
            }
            _ => positions.push(value(param)),
        }
    }
    if names.is_empty() {
        return Value::Array(positions);
    }
    if !positions.is_empty() {
        names.insert("args".to_owned(), Value::Array(positions));
    }
    Value::Object(names)
}

fn exchange(args: &CallArgs) -> Result<Value, CallError> {
    let path = expand_home(&args.datadir).join("regtest").join(".cookie");
    let cookie = std::fs::read_to_string(&path).map_err(|source| CallError::Cookie { path: path.clone(), source })?;
    let address = args.rpc_connect.trim_start_matches("http://").trim_end_matches('/');
    let uri = match &args.wallet {
        Some(wallet) => format!("/wallet/{}", percent_encode(wallet)),
        None => "/".to_owned(),
    };
    let body = json!({"jsonrpc": "1.0", "id": "call", "method": args.method, "params": arguments(&args.params)});
    let body = body.to_string();
    let credentials = STANDARD.encode(cookie.trim());
    let head = format!(
        "POST {uri} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Basic {credentials}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply)?;
    let (head, body) = reply.split_once("\r\n\r\n").ok_or(CallError::Answer)?;
    if body.trim().is_empty() {
        let status = head.lines().next().unwrap_or_default().trim_start_matches("HTTP/1.1 ");
        return Err(CallError::Status(status.to_owned()));
    }
    serde_json::from_str(body).map_err(|_| CallError::Status(body.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(params: &[&str]) -> Value {
        arguments(&params.iter().map(|param| (*param).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_are_json_or_text_by_position_or_name() {
        assert_eq!(of(&["1", "abc", "[1]", "\"2\""]), json!([1, "abc", [1], "2"]));
        assert_eq!(of(&["label=x", "count=2"]), json!({"label": "x", "count": 2}));
        assert_eq!(of(&["a", "count=2"]), json!({"count": 2, "args": ["a"]}));
        assert_eq!(of(&["pkh(K)#x=1"]), json!(["pkh(K)#x=1"]));
    }
}

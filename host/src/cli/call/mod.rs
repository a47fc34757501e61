//! `outrigger call`: a small client for a running host.
//!
//! The exit code is 0, or the error's code without its sign modulo 256, as bitcoin-cli has it; 1 when there is no answer.

mod arguments;
mod connection;
mod progress;

use std::io::{BufRead, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::show;
use connection::{CallError, Connection};

/// What `call` is told on the command line.
#[derive(Args)]
pub struct CallArgs {
    /// The host's data directory, where its cookie is.
    #[arg(long, default_value = "~/.outrigger")]
    datadir: PathBuf,
    /// Where it listens.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:18443")]
    rpc_connect: String,
    /// The user to call as, instead of the cookie's. The first line of standard input is the password.
    #[arg(long, value_name = "NAME")]
    rpc_user: Option<String>,
    /// The wallet to call.
    #[arg(long)]
    wallet: Option<String>,
    /// Reads further arguments from standard input, one in each line: passphrases and keys do not belong on a command line.
    #[arg(long)]
    stdin: bool,
    /// The method; `help` lists them.
    method: String,
    /// Its arguments, by position or as name=value. What reads as JSON is JSON, unless the method wants a text there.
    #[arg(allow_hyphen_values = true)]
    params: Vec<String>,
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

fn exchange(args: &CallArgs) -> Result<Value, CallError> {
    let mut lines = std::io::stdin().lock().lines();
    let connection = match &args.rpc_user {
        None => Connection::with_cookie(&args.datadir, &args.rpc_connect, args.wallet.as_deref())?,
        Some(user) => {
            let password = Zeroizing::new(lines.next().transpose()?.unwrap_or_default());
            Connection::with_password(user, &password, &args.rpc_connect, args.wallet.as_deref())
        }
    };
    let mut params: Vec<Zeroizing<String>> = args.params.iter().cloned().map(Zeroizing::new).collect();
    if args.stdin {
        for line in lines {
            params.push(Zeroizing::new(line?));
        }
    }
    let arguments = arguments::of(&params, || connection.call("rpc.discover", &json!([])).ok(), &args.method);
    if !std::io::stderr().is_terminal() {
        return connection.call(&args.method, &arguments);
    }
    progress::beside(&connection, || connection.call(&args.method, &arguments))
}

fn print(reply: &Value) -> ExitCode {
    if let Some(error) = reply.get("error").filter(|error| !error.is_null()) {
        let code = error.get("code").and_then(Value::as_i64).unwrap_or(1);
        let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
        eprintln!("error code: {code}\nerror message:\n{message}");
        return ExitCode::from(u8::try_from(code.unsigned_abs() % 256).unwrap_or(1));
    }
    match reply.get("result").unwrap_or(&Value::Null) {
        Value::Null => ExitCode::SUCCESS,
        Value::String(text) => show(text),
        // For a program one line is enough.
        other if std::io::stdout().is_terminal() => show(&format!("{other:#}")),
        other => show(&other.to_string()),
    }
}

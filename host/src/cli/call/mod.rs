//! `outrigger call`: a small client for a running host.
//!
//! The exit code is 0, or the error's code without its sign modulo 256, as bitcoin-cli has it; 1 when there is no answer.

mod arguments;
mod connection;
mod progress;
mod terminal;

use std::io::{BufRead, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::show;
use arguments::Typed;
use connection::{CallError, Connection};
use terminal::Hidden;

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
    /// Where the method wants a text, a line is that text as it stands. A terminal does not show what is typed.
    #[arg(long)]
    stdin: bool,
    /// Takes every argument with a `=` as NAME=VALUE, also those of standard input.
    #[arg(long)]
    named: bool,
    /// The method; `help` lists them.
    method: String,
    /// Its arguments, by position, or as NAME=VALUE where the method has a parameter of that name. What reads as JSON is JSON,
    /// unless the method wants a text there.
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
    let (connection, typed) = read(args)?;
    let mut document = None;
    if arguments::are_ambiguous(&typed) {
        let reply = connection.call("rpc.discover", &json!([]))?;
        // A host that does not say what it takes, as while it starts, would not answer the call either.
        if reply.get("error").is_some_and(|error| !error.is_null()) {
            return Ok(reply);
        }
        document = Some(reply);
    }
    let arguments = arguments::of(&typed, args.named, &args.method, document.as_ref())?;
    if !std::io::stderr().is_terminal() {
        return connection.call(&args.method, &arguments);
    }
    progress::beside(&connection, || connection.call(&args.method, &arguments))
}

/// Reads what comes from standard input: the password of a user, and further arguments.
fn read(args: &CallArgs) -> Result<(Connection, Vec<Typed>), CallError> {
    let reads = args.stdin || args.rpc_user.is_some();
    // It is hidden before it is asked for.
    let hidden = if reads { Hidden::begin()? } else { None };
    let ask = |what: &str| {
        if hidden.is_some() {
            eprintln!("{what}");
        }
    };
    let mut lines = std::io::stdin().lock().lines();
    let (url, wallet) = (&args.rpc_connect, args.wallet.as_deref());
    let connection = match &args.rpc_user {
        None => Connection::with_cookie(&args.datadir, url, wallet)?,
        Some(user) => {
            ask(&format!("The password of {user} (it is not shown):"));
            let password = Zeroizing::new(lines.next().transpose()?.unwrap_or_default());
            Connection::with_password(user, &password, url, wallet)
        }
    };
    let typed = |text: String, is_secret| Typed { text: Zeroizing::new(text), is_secret };
    let mut arguments: Vec<Typed> = args.params.iter().map(|param| typed(param.clone(), false)).collect();
    if args.stdin {
        ask(&format!("Arguments of {}, one in each line (they are not shown), then Ctrl-D:", args.method));
        for line in lines {
            arguments.push(typed(line?, true));
        }
    }
    Ok((connection, arguments))
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

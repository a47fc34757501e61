//! `outrigger call`: a small client for a running host.
//!
//! The exit code is 0, or the error's code without its sign modulo 256, as in bitcoin-cli; 1 if there is no answer, or if the
//! arguments are invalid.

mod arguments;
pub(super) mod connection;
mod error;
pub(super) mod place;
pub(super) mod progress;
mod stream;
pub(super) mod terminal;
mod wait;

use std::io::{BufRead, IsTerminal};
use std::process::ExitCode;

use clap::Args;
use serde_json::Value;
use zeroize::Zeroizing;

use super::{EXIT_FAILED, refused, show};
use arguments::TypedArgument;
use connection::CallError;
use terminal::HiddenInput;

/// The arguments of `call`.
#[derive(Args)]
pub struct CallArgs {
    #[command(flatten)]
    at: place::HostAt,
    /// The host's URL; by default the address that it last started with.
    #[arg(long, value_name = "URL")]
    rpc_connect: Option<String>,
    /// The wallet to call.
    #[arg(long)]
    wallet: Option<String>,
    /// Reads further arguments from standard input, one per line: passphrases and keys do not belong on a command line.
    /// The command passes a line for a string parameter on unchanged. A terminal does not echo the lines.
    #[arg(long)]
    stdin: bool,
    /// Waits for a host that is not running yet, or is still starting.
    #[arg(long)]
    wait: bool,
    /// The longest time to wait; 0 for no limit.
    #[arg(long, value_name = "SECONDS", default_value_t = 0, requires = "wait")]
    wait_timeout: u64,
    /// The method; `help` lists them.
    method: String,
    /// Its arguments, by position, or as NAME=VALUE if the method has a parameter of that name. For a string parameter, an
    /// argument is taken literally, with any quotes; otherwise it is JSON.
    #[arg(allow_hyphen_values = true)]
    params: Vec<String>,
}

const METHOD_NOT_FOUND: i64 = -32601;

/// The error code of a wallet method if several wallets are loaded and the call names none.
const WALLET_NOT_SPECIFIED: i64 = -19;

/// Makes the call and prints its result.
pub fn call(args: &CallArgs) -> ExitCode {
    match exchange(args) {
        Ok(reply) => print(&reply),
        Err(error) => refused(&error, EXIT_FAILED),
    }
}

fn exchange(args: &CallArgs) -> Result<Value, CallError> {
    // Standard input is read once, before all attempts.
    let typed = typed(args)?;
    let attempt = || attempt(args, &typed);
    if args.wait { wait::until_answered(args.wait_timeout, attempt) } else { attempt() }
}

fn attempt(args: &CallArgs, typed: &[TypedArgument]) -> Result<Value, CallError> {
    let connection = args.at.connect(args.rpc_connect.as_deref(), args.wallet.as_deref())?;
    let mut document = None;
    if !typed.is_empty() {
        let reply = connection.call("rpc.discover", "[]")?;
        match reply["error"]["code"].as_i64() {
            None => document = Some(reply),
            // A host that does not describe its methods is still called.
            Some(METHOD_NOT_FOUND) => {}
            // A host that is starting would not answer the call either.
            Some(_) => return Ok(reply),
        }
    }
    let arguments = arguments::of(typed, &args.method, document.as_ref())?;
    if !std::io::stderr().is_terminal() {
        return connection.call(&args.method, &arguments);
    }
    let succeeded = |reply: &Result<Value, CallError>| reply.as_ref().is_ok_and(|reply| reply["error"].is_null());
    progress::beside(&connection, &args.method, || connection.call(&args.method, &arguments), succeeded)
}

/// The arguments on the command line, followed by those on standard input.
fn typed(args: &CallArgs) -> Result<Vec<TypedArgument>, CallError> {
    let of = |text: String, is_secret| TypedArgument { text: Zeroizing::new(text), is_secret };
    let mut typed: Vec<TypedArgument> = args.params.iter().map(|param| of(param.clone(), false)).collect();
    if args.stdin {
        // The terminal stops echoing before the prompt appears.
        let hidden = HiddenInput::begin()?;
        if hidden.is_some() {
            eprintln!("Arguments of {}, one in each line (they are not shown), then Ctrl-D:", args.method);
        }
        for line in std::io::stdin().lock().lines() {
            typed.push(of(line?, true));
        }
    }
    Ok(typed)
}

fn print(reply: &Value) -> ExitCode {
    if let Some(error) = reply.get("error").filter(|error| !error.is_null()) {
        let code = error.get("code").and_then(Value::as_i64).unwrap_or(1);
        let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
        eprintln!("error code: {code}\nerror message:\n{message}");
        if code == WALLET_NOT_SPECIFIED {
            eprintln!("Name one with --wallet NAME; `outrigger call listwallets` shows which are loaded.");
        }
        return ExitCode::from(u8::try_from(code.unsigned_abs() % 256).unwrap_or(1));
    }
    match reply.get("result").unwrap_or(&Value::Null) {
        Value::Null => ExitCode::SUCCESS,
        // As in bitcoin-cli, no empty line.
        Value::String(text) if text.is_empty() => ExitCode::SUCCESS,
        Value::String(text) => show(text),
        // A program gets compact JSON.
        other if std::io::stdout().is_terminal() => show(&format!("{other:#}")),
        other => show(&other.to_string()),
    }
}

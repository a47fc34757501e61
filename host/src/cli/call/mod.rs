//! `outrigger call`: a small client for a running host.
//!
//! The exit code is 0, or the error's code without its sign modulo 256, as bitcoin-cli has it; 1 when there is no answer, and
//! when no call can be made of what was typed.

mod arguments;
pub(super) mod connection;
mod info;
pub(super) mod place;
pub(super) mod progress;
pub(super) mod terminal;
mod wait;

use std::io::{BufRead, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::Value;
use zeroize::Zeroizing;

use super::show;
use arguments::Typed;
use connection::{CallError, Connection, METHOD_NOT_FOUND};
use outrigger_base::nearest::nearest;
use terminal::Hidden;

/// What `call` is told on the command line.
#[derive(Args)]
pub struct CallArgs {
    /// The host's data directory, where its cookie is.
    #[arg(long, default_value = "~/.outrigger")]
    datadir: PathBuf,
    /// The network of the host; by default the only one that a host has run on in the data directory.
    #[arg(long)]
    network: Option<String>,
    /// Where it listens; by default where it said that it does when it last started.
    #[arg(long, value_name = "URL")]
    rpc_connect: Option<String>,
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
    /// Indents objects and arrays by two spaces also where the output is no terminal; there they take one line without this.
    #[arg(long)]
    pretty: bool,
    /// Waits for a host that is not yet there, or still starts.
    #[arg(long)]
    wait: bool,
    /// How long to wait at most; 0 for as long as it takes.
    #[arg(long, value_name = "SECONDS", default_value_t = 0, requires = "wait")]
    wait_timeout: u64,
    /// Shows how chain, network and wallets are, instead of calling one method.
    #[arg(long, conflicts_with_all = ["method", "params", "stdin", "named"])]
    info: bool,
    /// The method; `help` lists them.
    #[arg(required_unless_present = "info")]
    method: Option<String>,
    /// Its arguments, by position, or as NAME=VALUE where the method has a parameter of that name. Where the method wants a
    /// text, an argument is that text as it stands, quotes and all; elsewhere it is JSON.
    #[arg(allow_hyphen_values = true)]
    params: Vec<String>,
}

/// The error of a wallet's method where several wallets are loaded and none was named.
const WALLET_NOT_SPECIFIED: i64 = -19;

/// The error of a wallet's method where the named wallet is not loaded, and of others.
const WALLET_NOT_FOUND: i64 = -18;

/// Makes the call and prints its result.
pub fn call(args: &CallArgs) -> ExitCode {
    match exchange(args) {
        Ok((reply, meant)) => print(&reply, meant.as_deref(), args),
        Err(error) => {
            eprintln!("outrigger: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The host's reply; with it the method that was probably meant, where the host has none of the name.
fn exchange(args: &CallArgs) -> Result<(Value, Option<String>), CallError> {
    // It is read once, however often is tried.
    let input = Input::read(args)?;
    let attempt = || {
        let connection = input.connection(args)?;
        match &args.method {
            None => info::of(&connection, args.wallet.as_deref()),
            Some(method) => attempt(args, method, &connection, &input.typed),
        }
    };
    let reply = if args.wait { wait::until_answered(args.wait_timeout, attempt) } else { attempt() }?;
    let meant = match &args.method {
        Some(method) if reply["error"]["code"] == METHOD_NOT_FOUND => meant(&input.connection(args)?, method),
        _ => None,
    };
    Ok((reply, meant))
}

/// The method of the host whose name is most like `method`, as far as the user may know of it.
fn meant(connection: &Connection, method: &str) -> Option<String> {
    // Whatever fails here, the host's own answer is told.
    let document = connection.ask("rpc.discover").ok()??;
    let methods = document["result"]["methods"].as_array()?;
    nearest(method, methods.iter().filter_map(|method| method["name"].as_str())).map(str::to_owned)
}

fn attempt(args: &CallArgs, method: &str, connection: &Connection, typed: &[Typed]) -> Result<Value, CallError> {
    let mut document = None;
    if !typed.is_empty() {
        // A host that does not say what it takes is still called.
        document = connection.ask("rpc.discover")?;
        // One that fails at it, as while it starts, would not answer the call either.
        if let Some(reply) = document.take_if(|reply| !reply["error"].is_null()) {
            return Ok(reply);
        }
    }
    let arguments = arguments::of(typed, args.named, method, document.as_ref())?;
    if !std::io::stderr().is_terminal() {
        return connection.call(method, &arguments);
    }
    let succeeded = |reply: &Result<Value, CallError>| reply.as_ref().is_ok_and(|reply| reply["error"].is_null());
    progress::beside(connection, || connection.call(method, &arguments), succeeded)
}

/// What was typed, on the command line and on standard input.
struct Input {
    password: Option<Zeroizing<String>>,
    typed: Vec<Typed>,
}

impl Input {
    /// Reads what comes from standard input: the password of a user, and further arguments.
    fn read(args: &CallArgs) -> Result<Self, CallError> {
        let reads = args.stdin || args.rpc_user.is_some();
        // It is hidden before it is asked for.
        let hidden = if reads { Hidden::begin()? } else { None };
        let ask = |what: &str| {
            if hidden.is_some() {
                eprintln!("{what}");
            }
        };
        let mut lines = std::io::stdin().lock().lines();
        let mut password = None;
        if let Some(user) = &args.rpc_user {
            ask(&format!("The password of {user} (it is not shown):"));
            password = Some(Zeroizing::new(lines.next().transpose()?.unwrap_or_default()));
        }
        let of = |text: String, is_secret| Typed { text: Zeroizing::new(text), is_secret };
        let mut typed: Vec<Typed> = args.params.iter().map(|param| of(param.clone(), false)).collect();
        if args.stdin {
            let method = args.method.as_deref().unwrap_or_default();
            ask(&format!("Arguments of {method}, one in each line (they are not shown), then Ctrl-D:"));
            for line in lines {
                typed.push(of(line?, true));
            }
        }
        Ok(Self { password, typed })
    }

    fn connection(&self, args: &CallArgs) -> Result<Connection, CallError> {
        let wallet = args.wallet.as_deref();
        let folder = || place::folder(&args.datadir, args.network.as_deref());
        let url = match &args.rpc_connect {
            Some(url) => url.clone(),
            None => place::url(&folder()?),
        };
        match (&args.rpc_user, &self.password) {
            (Some(user), Some(password)) => Ok(Connection::with_password(user, password, &url, wallet)),
            _ => Connection::with_cookie(&folder()?, &url, wallet),
        }
    }
}

fn print(reply: &Value, meant: Option<&str>, args: &CallArgs) -> ExitCode {
    if let Some(error) = reply.get("error").filter(|error| !error.is_null()) {
        let code = error.get("code").and_then(Value::as_i64).unwrap_or(1);
        let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
        eprintln!("error code: {code}\nerror message:\n{message}");
        if let Some(hint) = hint(code, args) {
            eprintln!("{hint}");
        }
        if let Some(meant) = meant {
            eprintln!("Did you mean '{meant}'?");
        }
        return ExitCode::from(u8::try_from(code.unsigned_abs() % 256).unwrap_or(1));
    }
    match reply.get("result").unwrap_or(&Value::Null) {
        Value::Null => ExitCode::SUCCESS,
        // As bitcoin-cli, no empty line.
        Value::String(text) if text.is_empty() => ExitCode::SUCCESS,
        Value::String(text) => show(text),
        // For a program one line is enough.
        other if args.pretty || std::io::stdout().is_terminal() => show(&format!("{other:#}")),
        other => show(&other.to_string()),
    }
}

/// What to type where the host knows no wallet to call.
fn hint(code: i64, args: &CallArgs) -> Option<&'static str> {
    match (code, &args.wallet, args.method.as_deref()) {
        (WALLET_NOT_SPECIFIED, ..) => {
            Some("Name one with --wallet NAME; `outrigger call listwallets` shows which are loaded.")
        }
        // Of these the argument was not found.
        (WALLET_NOT_FOUND, _, Some("loadwallet" | "unloadwallet" | "restorewallet")) => None,
        (WALLET_NOT_FOUND, Some(_), _) => {
            Some("`outrigger call listwallets` shows the names that --wallet takes; loadwallet loads another.")
        }
        _ => None,
    }
}

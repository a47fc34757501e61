//! The command line.

mod auth;
mod call;
mod config;
mod dev;
mod inspect;
mod plugin;
mod reload;
mod scaffold;
mod store;
mod temporary;
mod timing;
mod top;
mod versions;
mod wallet;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser, Subcommand};

use crate::backups;
use crate::run::{self, RunArgs};
use outrigger_base::nearest::nearest;

const EXIT_FAILED: u8 = 1;

const EXIT_BAD_CONFIGURATION: u8 = 2;

const EXIT_BAD_USAGE: u8 = 2;

/// Extends a Bitcoin node with JSON-RPC operations that live in plugins.
#[derive(Parser)]
#[command(name = "outrigger", disable_version_flag = true, arg_required_else_help = true, about)]
struct Cli {
    /// Prints the version.
    #[arg(short = 'V', long)]
    version: bool,
    /// With --version, also prints the version of each file format that this program reads and writes.
    #[arg(long, requires = "version")]
    formats: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Runs the host until it is told to stop.
    Run(RunArgs),
    /// Calls a method of a running host and prints the answer.
    Call(call::CallArgs),
    /// Shows node, wallets, plugins, and calls in flight of a running host.
    Top(top::TopArgs),
    /// Has a running host read its configuration again.
    ///
    /// Applies changes of users, allowed networks, trusted proxies, TLS, log level and plugin options, all or none. Lists others.
    Reload(call::place::HostAt),
    /// Creates a user: prints the lines for the configuration, and a new password to standard error.
    Auth {
        /// The user's name.
        name: String,
    },
    /// Prints the completions for a shell: `outrigger completions bash > /etc/bash_completion.d/outrigger`.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Writes the manual pages, one for each command, into a folder.
    #[command(hide = true)]
    Manual {
        /// The folder.
        folder: PathBuf,
    },
    /// Brings configuration files of earlier versions up to date.
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Inspects, checks and creates plugins.
    #[command(subcommand)]
    Plugin(plugin::PluginCommand),
    /// Copies, exports, imports and restores wallets.
    #[command(subcommand)]
    Wallet(wallet::WalletCommand),
    /// Checks the copy on standard input, for the host's backups.
    #[command(name = backups::check::COMMAND, hide = true)]
    CheckCopy {
        /// What it is a copy of.
        kind: backups::Kind,
    },
}

/// Prints a command's result. A closed pipe is no error; any other failed write is.
pub fn show(text: &str) -> ExitCode {
    match writeln!(io::stdout(), "{text}") {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            refused(&format_args!("cannot write to standard output: {error}"), EXIT_FAILED)
        }
        _ => ExitCode::SUCCESS,
    }
}

/// Suggests the nearest subcommand if clap suggests none: it misses transposed letters.
fn suggest(error: &mut clap::Error, arguments: &[String]) {
    let Some(ContextValue::String(wanted)) = error.get(ContextKind::InvalidSubcommand) else { return };
    if error.get(ContextKind::SuggestedSubcommand).is_some() {
        return;
    }
    let all = Cli::command();
    let named = arguments.iter().take_while(|argument| *argument != wanted);
    let within = named.fold(&all, |command, name| command.find_subcommand(name).unwrap_or(command));
    if let Some(name) = nearest(wanted, within.get_subcommands().map(clap::Command::get_name)) {
        let name = ContextValue::Strings(vec![name.to_owned()]);
        error.insert(ContextKind::SuggestedSubcommand, name);
    }
}

/// Prints the error in the command line, or the help that it requests.
fn not_understood(error: &clap::Error) -> ExitCode {
    // If this fails, the exit code still reports the error.
    let _ = error.print();
    let is_call = std::env::args_os().nth(1).is_some_and(|command| command == "call");
    match (error.use_stderr(), is_call) {
        (false, _) => ExitCode::SUCCESS,
        // As in bitcoin-cli: other codes are those of the host's errors.
        (true, true) => ExitCode::from(EXIT_FAILED),
        (true, false) => ExitCode::from(EXIT_BAD_USAGE),
    }
}

fn refused(error: &dyn std::fmt::Display, code: u8) -> ExitCode {
    eprintln!("outrigger: {error}");
    ExitCode::from(code)
}

pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(mut error) => {
            let arguments: Vec<_> =
                std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
            suggest(&mut error, &arguments);
            return not_understood(&error);
        }
    };
    let Some(command) = cli.command.filter(|_| !cli.version) else { return show(&versions::versions(cli.formats)) };
    match command {
        Command::Run(args) => match args.check {
            Some(before) => match run::check(&args, before) {
                Ok(checked) => show(&checked),
                Err(error) => refused(&error, EXIT_BAD_CONFIGURATION),
            },
            None => match run::run(&args) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error @ run::RunError::Configuration(_)) => refused(&error, EXIT_BAD_CONFIGURATION),
                Err(error) => refused(&error, EXIT_FAILED),
            },
        },
        Command::Call(args) => call::call(&args),
        Command::Top(args) => top::top(&args),
        Command::Reload(args) => reload::reload(&args),
        Command::Auth { name } => auth::auth(&name),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "outrigger", &mut text);
            show(String::from_utf8_lossy(&text).trim_end())
        }
        Command::Manual { folder } => match clap_mangen::generate_to(Cli::command(), folder) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => refused(&format!("the manual pages cannot be written: {error}"), EXIT_FAILED),
        },
        Command::Config(command) => config::run(&command),
        Command::Plugin(command) => plugin::run(&command),
        Command::Wallet(command) => wallet::run(&command),
        Command::CheckCopy { kind } => backups::check::run(kind),
    }
}

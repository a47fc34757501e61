//! Checks a copy in a process of its own: the program runs with a hidden command, reads the copy from standard input, and prints its
//! contents.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use outrigger_services::check_store_file;
use outrigger_wallet_engine::WalletContents;
use serde::Serialize;

pub const COMMAND: &str = "__check-copy";
/// The name of the copy in the messages of the process.
const COPY: &str = "copy";

/// The kind of file that was copied.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, clap::ValueEnum)]
pub enum Kind {
    Wallet,
    Store,
}

/// The hidden command: checks standard input.
pub fn run(kind: Kind) -> ExitCode {
    match read(kind) {
        Ok(contents) => crate::cli::show(&contents),
        Err(reason) => {
            eprint!("{reason}");
            ExitCode::FAILURE
        }
    }
}

fn read(kind: Kind) -> Result<String, String> {
    let file: File = io::stdin().as_fd().try_clone_to_owned().map_err(|error| error.to_string())?.into();
    match kind {
        Kind::Wallet => {
            outrigger_wallet_engine::check_file(&file, Path::new(COPY)).map_err(|error| error.to_string())?;
            let contents = WalletContents::of_file(&file, Path::new(COPY));
            Ok(text(&contents.map_err(|error| error.to_string())?))
        }
        Kind::Store => {
            check_store_file(&file, Path::new(COPY)).map(|rows| text(&rows)).map_err(|error| error.to_string())
        }
    }
}

/// Builds the command of the check, without the argument for the kind of the copy.
pub type Checker = Box<dyn Fn() -> io::Result<Command> + Send>;

/// Contents as JSON, for comparison.
pub fn text(contents: &impl Serialize) -> String {
    // Only a map with keys other than strings would fail, and contents have none.
    serde_json::to_string(contents).unwrap_or_default()
}

/// Checks a copy in another process, and compares its contents with `expected`.
///
/// # Errors
/// The copy is damaged or differs, or the process cannot run.
pub fn check(checker: &Checker, copy: &File, kind: Kind, expected: &str) -> Result<(), String> {
    let kind = if kind == Kind::Wallet { "wallet" } else { "store" };
    let run = || {
        let mut command = checker()?;
        command.arg(kind).stdin(copy.try_clone()?).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn()?.wait_with_output()
    };
    let output = run().map_err(|error| format!("the copy cannot be checked: {error}"))?;
    if !output.status.success() {
        return Err(format!("the copy is not whole: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    if String::from_utf8_lossy(&output.stdout).trim() != expected {
        return Err("the copy's contents differ from the wallet's or store's".to_owned());
    }
    Ok(())
}

//! `outrigger plugin`: looks at plugins' files, tries them, and begins new ones.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use outrigger_abi::ABI_MINOR;
use outrigger_header::{Part, header};

use outrigger_conformance as conformance;

use super::inspect::describe;
use super::{scaffold, show, timing};
use outrigger_plugins::file::PluginFile;

/// What to do with a plugin's file.
#[derive(Subcommand)]
pub enum PluginCommand {
    /// Shows what a plugin says of itself, without running any of its code.
    Inspect {
        /// The plugin's file.
        file: PathBuf,
    },
    /// Runs a plugin on a host in memory and checks that it keeps to the ABI.
    ///
    /// Instances come and go; every call must be answered once, in time, by JSON or an error, also with arguments that make no
    /// sense, on several threads, and when it is cancelled. What crashes the plugin, or does not end, is named.
    Check(conformance::CheckArgs),
    /// Does one part of `check`, in a process of its own.
    #[command(name = conformance::PART_COMMAND, hide = true)]
    CheckPart {
        /// What to do.
        job: String,
    },
    /// Tells how long a call of a plugin takes, on a host in memory.
    Time(timing::TimeArgs),
    /// Prints `outrigger.h`, the interface for plugins in C and C++, or one of the files that a plugin may do without.
    Header {
        /// The file: `outrigger.h`, `outrigger_json.h` or `outrigger_services.h`.
        #[arg(default_value = Part::Core.file(), value_parser = Part::ALL.map(Part::file))]
        file: String,
        /// The minor version of the interface, for a plugin that uses nothing newer.
        #[arg(long, default_value_t = ABI_MINOR, value_parser = clap::value_parser!(u32).range(..=i64::from(ABI_MINOR)))]
        minor: u32,
    },
    /// Writes a new plugin's crate, with a method, a manifest and a test.
    New {
        /// The plugin's name: lower-case letters, digits and `-`. Also the name of its folder.
        name: String,
        /// Where the SDK's crate is; by default it is looked for from the executable upwards.
        #[arg(long)]
        sdk: Option<PathBuf>,
    },
}

/// Runs the command.
pub fn run(command: &PluginCommand) -> ExitCode {
    let outcome = match command {
        PluginCommand::Inspect { file } => {
            PluginFile::read(file).map(|file| describe(&file)).map_err(|error| error.to_string())
        }
        PluginCommand::Check(args) => return conformance::check(args, show),
        PluginCommand::CheckPart { job } => {
            // What the processes of isolated plugins write, and are refused, is among the last words that the tool shows.
            tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).without_time().init();
            return conformance::part(job);
        }
        PluginCommand::Time(args) => timing::time(args),
        PluginCommand::Header { file, minor } => {
            let part = Part::ALL.into_iter().find(|part| part.file() == file).unwrap_or(Part::Core);
            Ok(header(part, *minor).trim_end().to_owned())
        }
        PluginCommand::New { name, sdk } => scaffold::create(name, sdk.as_deref()),
    };
    match outcome {
        Ok(text) => show(&text),
        Err(error) => {
            eprintln!("outrigger: {error}");
            ExitCode::FAILURE
        }
    }
}

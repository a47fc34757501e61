//! `outrigger plugin`: inspects, checks and creates plugins.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use outrigger_header::{FILE, header};

use outrigger_conformance as conformance;

use super::inspect::{describe_file, describe_linked};
use super::temporary::in_folder;
use super::{EXIT_FAILED, dev, refused, scaffold, show, store, timing};
use crate::groups::GROUPS;
use outrigger_plugins::file::PluginFile;
use outrigger_service::json;

/// What to do with a plugin's file.
#[derive(Subcommand)]
pub enum PluginCommand {
    /// Describes a plugin by its manifest, without running any of its code.
    Inspect {
        /// The plugin's file, or the name of a bundled group for the program's own copy.
        file: PathBuf,
    },
    /// Runs a plugin on a host in memory and checks that it keeps to the ABI.
    ///
    /// It starts and stops instances. They must answer every call once, in time, with JSON or an error, also with nonsensical
    /// arguments, on several threads, and after a cancellation. The report names each crash and each call that does not end.
    Check(conformance::CheckArgs),
    /// Does one part of `check`, in a process of its own.
    #[command(name = conformance::PART_COMMAND, hide = true)]
    CheckPart {
        /// What to do.
        job: String,
    },
    /// Measures how long a call of a plugin takes, on a host in memory.
    Time(timing::TimeArgs),
    /// Writes the C header, the interface for plugins in C and C++.
    Header {
        /// The folder, which is created if it is missing.
        #[arg(default_value = ".")]
        folder: PathBuf,
    },
    /// Prints the services of a host, their functions, and their messages as JSON, in Markdown.
    Services {
        /// Prints the JSON schema of the messages (draft 2020-12) instead.
        #[arg(long)]
        json: bool,
    },
    /// Writes a new plugin's crate, with a method, a manifest and a test.
    New {
        /// The plugin's name: lower-case letters, digits and `-`. Also the name of its folder.
        name: String,
        /// The folder of the SDK's crate; by default the command searches from the executable upwards.
        #[arg(long)]
        sdk: Option<PathBuf>,
    },
    /// Builds the crate in the current folder, runs its plugin in a host of its own, and replaces it after each change.
    ///
    /// The host has the configuration `outrigger.toml` and an embedded chain. A library that does not build, or that
    /// `plugin check` refuses, leaves the running instance in place. The command watches src, build.rs, Cargo.toml and
    /// outrigger.toml. Ctrl-C stops the host.
    Dev(dev::DevArgs),
    /// Copies or removes a plugin's store, while no host runs on the data directory.
    Store(store::StoreArgs),
}

pub fn run(command: &PluginCommand) -> ExitCode {
    let outcome = match command {
        PluginCommand::Inspect { file } => {
            let own = GROUPS.iter().find(|own| file.as_os_str() == own.name && !file.exists());
            let described = match own {
                Some(own) => describe_linked(own),
                None => PluginFile::read(file).map(|file| describe_file(&file)),
            };
            described.map_err(|error| error.to_string())
        }
        PluginCommand::Check(args) => {
            let checked = in_folder("check", |folder| conformance::check(args, folder, show));
            return checked.unwrap_or_else(|error| refused(&error, EXIT_FAILED));
        }
        PluginCommand::CheckPart { job } => {
            // `plugin check` shows the last lines of this log beside the plugin's standard error.
            let log = tracing_subscriber::fmt().with_max_level(tracing::Level::WARN);
            log.with_writer(std::io::stderr).with_ansi(false).without_time().init();
            return conformance::part(job);
        }
        PluginCommand::Time(args) => timing::time(args),
        PluginCommand::Header { folder } => write_header(folder),
        PluginCommand::Services { json: true } => Ok(format!("{:#}", json::schema())),
        PluginCommand::Services { json: false } => Ok(json::page()),
        PluginCommand::New { name, sdk } => scaffold::create(name, sdk.as_deref()),
        PluginCommand::Store(args) => store::run(args),
        PluginCommand::Dev(args) => {
            return dev::dev(args).map_or_else(|error| refused(&error, EXIT_FAILED), |()| ExitCode::SUCCESS);
        }
    };
    match outcome {
        Ok(text) => show(&text),
        Err(error) => refused(&error, EXIT_FAILED),
    }
}

fn write_header(folder: &Path) -> Result<String, String> {
    let path = folder.join(FILE);
    let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    std::fs::write(&path, header()).map_err(|error| failed(&path, error))?;
    Ok(format!("{} is the C header", path.display()))
}

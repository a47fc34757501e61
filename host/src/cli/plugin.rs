//! `outrigger plugin`: looks at plugins' files without running them.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;

use crate::plugin::file::PluginFile;

/// What to do with a plugin's file.
#[derive(Subcommand)]
pub enum PluginCommand {
    /// Shows what a plugin says of itself, without running any of its code.
    Inspect {
        /// The plugin's file.
        file: PathBuf,
    },
}

/// Runs the command.
pub fn run(command: &PluginCommand) -> ExitCode {
    let PluginCommand::Inspect { file } = command;
    match PluginFile::read(file) {
        Ok(file) => {
            println!("{}", describe(&file));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("outrigger: {error}");
            ExitCode::FAILURE
        }
    }
}

fn describe(file: &PluginFile) -> String {
    let (manifest, header) = (&file.manifest, &file.header);
    let mut lines = vec![
        format!("{} {}: {}", manifest.id, manifest.version, manifest.summary),
        format!("file      {}", file.path.display()),
        format!("sha256    {}", file.hash),
        format!(
            "abi       {}.{}, runs on {}.{} and later",
            header.abi_major, header.abi_minor_built, header.abi_major, header.abi_minor_needed
        ),
        format!("services  {}", manifest.services.join(" ")),
        format!("events    {}", manifest.events.join(" ")),
        "methods".to_owned(),
    ];
    lines.extend(manifest.methods.iter().map(|method| format!("  {}", method.usage())));
    if !manifest.options.is_empty() {
        lines.push("options".to_owned());
    }
    for option in &manifest.options {
        lines.push(format!("  {} ({}, default {}) {}", option.name, option.kind.name(), option.default, option.help));
    }
    lines.join("\n")
}

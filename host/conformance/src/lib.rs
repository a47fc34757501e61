//! `outrigger plugin check`: runs a plugin on the loader of the real host, with services in memory.
//!
//! The tool never loads the plugin itself. It starts a process for each check, and that process announces each step on a
//! socket. If the process crashes, exits or hangs, the tool reports the function, the method and the arguments, and
//! continues without that method.

mod arguments;
mod checks;
mod loaded;
mod protocol;
mod provided;
mod report;
mod reporter;
mod session;
mod settings;
mod supervisor;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use outrigger_sdk::manifest::{Manifest, OptionError, OptionType};
use outrigger_values::params::json_words;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use loaded::Loaded;
use outrigger_plugins::file::PluginFile;
use outrigger_sandbox::Reach;
use protocol::{ExtraCall, Finding, Job, Message};
use report::Report;
use reporter::Reporter;
use session::Session;
pub use supervisor::{PART_COMMAND, end_for_good};

/// The arguments of `outrigger plugin check`.
#[derive(Args)]
pub struct CheckArgs {
    /// The plugin's file.
    file: PathBuf,
    /// Prints one JSON object instead of text.
    #[arg(long)]
    json: bool,
    /// Runs only this check; may be given several times.
    #[arg(long, value_name = "CHECK")]
    only: Vec<Check>,
    /// Calls only this method; may be given several times.
    #[arg(long, value_name = "METHOD")]
    method: Vec<String>,
    /// Sets an option of the plugin; repeatable. The tool parses the value as JSON, and uses it as text if that fails.
    #[arg(long, value_name = "NAME=VALUE")]
    option: Vec<String>,
    /// Makes this call besides the generated ones, with the arguments as a JSON array; may be given several times.
    #[arg(long, value_name = "METHOD=ARGUMENTS")]
    call: Vec<String>,
    /// Runs the plugin in its own process, as with `isolated = true`, sandboxed if the system supports it.
    #[arg(long)]
    isolated: bool,
    /// Grants the isolated plugin this access, as `reach` in the configuration; may be given several times.
    #[arg(long, value_name = "REACH", requires = "isolated")]
    reach: Vec<Reach>,
    /// The time limit of each plugin function, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    deadline: u64,
}

/// A check that runs the plugin.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Check {
    /// The file opens, and its function table matches its manifest
    Open,
    /// Instances start and stop, alone and several at a time
    Lifecycle,
    /// Calls of every method with all kinds of arguments
    Parameters,
    /// Calls that the plugin keeps and answers when it stops
    Tokens,
    /// Calls that the host cancels
    Cancellation,
    /// Calls on several threads
    Concurrency,
    /// Many events during calls
    Events,
    /// Starts without each optional service
    Services,
    /// Extreme values of each option
    Options,
}

impl Check {
    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Whether the check is useless without a method to call.
    fn needs_methods(self) -> bool {
        matches!(self, Self::Parameters | Self::Tokens | Self::Cancellation | Self::Concurrency)
    }
}

/// Checks a plugin and prints the summary or the JSON object by `show`. Fails if a check fails. `folder` is empty, and only this user can
/// access it, since code is loaded from it.
pub fn check(args: &CheckArgs, folder: &Path, show: impl FnOnce(&str) -> ExitCode) -> Result<ExitCode, String> {
    let report = run(args, folder)?;
    let printed = show(&if args.json { report.json() } else { report.summary() });
    Ok(if report.passed() { printed } else { ExitCode::FAILURE })
}

fn run(args: &CheckArgs, folder: &Path) -> Result<Report, String> {
    let mut report = Report::new(!args.json);
    // The host makes the same checks when it starts.
    let file = match PluginFile::read(&args.file).and_then(|file| file.check_owner().map(|()| file)) {
        Ok(file) => file,
        Err(error) => {
            report.refused(&error.to_string());
            return Ok(report);
        }
    };
    report.manifest(&file);
    let mut job = job(args, folder, &file)?;
    let mut stopped: Option<&str> = None;
    for check in Check::value_variants() {
        if !args.only.is_empty() && !args.only.contains(check) {
            continue;
        }
        job.check = *check;
        if let Some(why) = stopped {
            report.skipped(*check, why);
        } else if check.needs_methods() && job.methods.is_empty() {
            report.skipped(*check, "no method is left to call");
        } else {
            let part = match check {
                Check::Services => settings::services(&mut job, &file.manifest),
                Check::Options => settings::options(&mut job, &file.manifest),
                _ => supervisor::run(&mut job),
            };
            stopped = match check {
                Check::Open if !part.findings.is_empty() => Some("it cannot be opened"),
                Check::Lifecycle if !part.started => Some("it does not start"),
                _ => stopped,
            };
            report.add(*check, &part);
        }
    }
    Ok(report)
}

/// The job with the settings that all checks share.
fn job(args: &CheckArgs, folder: &Path, file: &PluginFile) -> Result<Job, String> {
    let methods = [file.manifest.methods.clone(), provided::methods(&file.manifest)].concat();
    let known = |name: &str| methods.iter().any(|method| method.name == name);
    let mut calls = args.call.iter().map(|call| extra_call(call)).collect::<Result<Vec<_>, _>>()?;
    let named = args.method.iter().chain(calls.iter().map(|call| &call.method));
    if let Some(unknown) = named.into_iter().find(|name| !known(name)) {
        return Err(format!("the manifest lists no method '{unknown}'"));
    }
    calls.extend(provided::calls(&file.manifest));
    let all = methods.iter().map(|method| method.name.clone());
    Ok(Job {
        file: args.file.clone(),
        copies: folder.to_owned(),
        check: Check::Open,
        methods: all.filter(|method| args.method.is_empty() || args.method.contains(method)).collect(),
        options: options(&args.option, &file.manifest)?,
        withheld: None,
        calls,
        isolated: args.isolated.then(|| args.reach.clone()),
        deadline_ms: args.deadline * 1000,
    })
}

fn extra_call(text: &str) -> Result<ExtraCall, String> {
    let (method, arguments) = text.split_once('=').ok_or_else(|| format!("'{text}' is not METHOD=ARGUMENTS"))?;
    match serde_json::from_str::<Vec<Value>>(arguments) {
        Ok(_) => Ok(ExtraCall { method: method.to_owned(), arguments: arguments.to_owned() }),
        Err(error) => {
            Err(format!("the arguments of '{text}' are not a JSON array: {}", json_words(&error.to_string())))
        }
    }
}

/// The options of a plugin from a tool's arguments `NAME=VALUE`, without the defaults.
///
/// # Errors
/// An argument of another form, or options that the manifest does not allow.
pub fn options(given: &[String], manifest: &Manifest) -> Result<Map<String, Value>, String> {
    let mut options = Map::new();
    for option in given {
        let (name, value) = option.split_once('=').ok_or_else(|| format!("'{option}' is not NAME=VALUE"))?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        options.insert(name.to_owned(), value);
    }
    // The operator need not give secrets to this tool.
    for secret in manifest.options.iter().filter(|option| option.kind == OptionType::Secret) {
        options.entry(&secret.name).or_insert_with(|| "a secret".into());
    }
    manifest.options(&options).map_err(|error| match &error {
        OptionError::Missing(name) => format!("{error}: --option {name}=VALUE"),
        _ => error.to_string(),
    })?;
    Ok(options)
}

/// Runs one job, in the process that the tool started for it.
pub fn part(job: &str) -> ExitCode {
    let prepared = serde_json::from_str::<Job>(job).map_err(|error| error.to_string()).and_then(|job| {
        no_core_dump();
        Ok((job, Reporter::new().map_err(|error| error.to_string())?))
    });
    let (job, reporter) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            eprintln!("outrigger: {error}");
            return ExitCode::FAILURE;
        }
    };
    let check = job.check;
    match Session::open(job, &reporter) {
        Ok(session) => checks::run(check, &session),
        Err(error) => {
            reporter.tell(&Message::Found(Finding::new(error)));
            reporter.tell(&Message::Done(String::new()));
        }
    }
    ExitCode::SUCCESS
}

/// Disables core dumps, since the tool reports crashes itself.
fn no_core_dump() {
    let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
    // If this fails, a crash may leave a core file.
    let _ = rustix::process::setrlimit(rustix::process::Resource::Core, none);
}

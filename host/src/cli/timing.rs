//! `outrigger plugin time`: measures a plugin's calls, from the host's side of the ABI and back.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use outrigger_conformance::Loaded;
use outrigger_plugins::calls::Answer;
use outrigger_plugins::file::PluginFile;
use outrigger_plugins::instance::Instance;
use outrigger_plugins::lane::Lane;
use outrigger_sdk::manifest::MethodSpec;
use outrigger_values::text::printable;

use super::temporary::in_folder;

/// The number of calls before the measurement.
const WARM_UP: usize = 1_000;

/// The number of measured calls.
const CALLS: usize = 20_000;

/// How long the plugin may take to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// What to time.
#[derive(Args)]
pub struct TimeArgs {
    /// The plugin's file.
    file: PathBuf,
    /// One of its methods.
    method: String,
    /// The arguments: a JSON array.
    #[arg(default_value = "[]")]
    arguments: String,
    /// Sets an option of the plugin; repeatable. The tool parses the value as JSON, and uses it as text if that fails.
    #[arg(long, value_name = "NAME=VALUE")]
    option: Vec<String>,
    /// Runs the plugin in a process of its own, as with `isolated = true`.
    #[arg(long)]
    isolated: bool,
    /// The pause before each call, in microseconds.
    #[arg(long, default_value_t = 0)]
    pause_us: u64,
}

/// Times a method on a host in memory.
pub fn time(args: &TimeArgs) -> Result<String, String> {
    let file = PluginFile::read(&args.file).map_err(|error| error.to_string())?;
    in_folder("time", |folder| run(file, args, folder))
}

fn run(file: PluginFile, args: &TimeArgs, folder: &Path) -> Result<String, String> {
    let loaded = Loaded::open(file, folder, args.isolated.then_some(&[]))?;
    let manifest = &loaded.code.manifest;
    let named = |method: &&MethodSpec| method.name == args.method;
    let method = manifest.methods.iter().find(named).ok_or("the plugin's manifest has no such method")?;
    let options = outrigger_conformance::options(&args.option, manifest)?;
    let options = manifest.options(&options).map_err(|error| error.to_string())?;
    let instance = loaded.start(&loaded.host(), options, None).map_err(|error| error.to_string())?;
    // With a pause, calls take long, and fewer suffice.
    let calls_timed = if args.pause_us > 0 { CALLS / 10 } else { CALLS };
    let timed =
        (0..WARM_UP + calls_timed).map(|_| once(&instance, &loaded, method, args)).collect::<Result<Vec<_>, _>>();
    instance.retire(PATIENCE);
    instance.wait_ended(Instant::now() + 2 * PATIENCE);
    let mut times = timed?.split_off(WARM_UP);
    times.sort_unstable();
    let at = |part: usize| times.get(times.len() * part / 100).copied().unwrap_or_default().as_nanos();
    Ok(format!(
        "{} {}: median {} ns, 99 of 100 within {} ns ({calls_timed} calls)",
        args.method,
        args.arguments,
        at(50),
        at(99)
    ))
}

fn once(instance: &Instance, loaded: &Loaded, method: &MethodSpec, args: &TimeArgs) -> Result<Duration, String> {
    if args.pause_us > 0 {
        std::thread::sleep(Duration::from_micros(args.pause_us));
    }
    let began = Instant::now();
    let (token, mut answer) = loaded.calls.open(instance.id, usize::MAX);
    instance.call(token, method, args.arguments.as_bytes(), Lane::pooled(method));
    let answer = answer.try_recv().map_err(|_| format!("{} does not answer at once", args.method))?;
    let spent = began.elapsed();
    match answer {
        Answer::Refused(error) | Answer::Failed(error) => {
            Err(format!("{} answers error {}: {}", args.method, error.code.0, printable(&error.message)))
        }
        Answer::Result(_) | Answer::Passed(_) => Ok(spent),
    }
}

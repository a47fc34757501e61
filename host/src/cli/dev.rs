//! `outrigger plugin dev`: builds the crate in the current folder, runs its plugin in a host of its own, and replaces the
//! plugin after each change.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant, SystemTime};

use clap::Args;
use outrigger_base::paths::{absolute, quoted};
use outrigger_plugins::file::{PluginFile, candidates};
use outrigger_plugins::trust::own_folder;
use outrigger_sdk::manifest::{Manifest, OptionType};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, kill_process};
use serde_json::{Value, json};

use super::call::connection::{CallError, Connection};
use super::call::place;
use super::call::terminal::on_signal;
use crate::config::{Config, LoadedConfig};

/// The host's configuration, in the crate's folder.
const CONFIG: &str = "outrigger.toml";

/// Has a folder for each plugin, named by its id. The crate's own folders may be writable by a group, which the host refuses.
const DATADIR: &str = "~/.outrigger/dev";

/// The folder of the library, in the data directory.
const LIBRARY_FOLDER: &str = "library";

/// The system chooses the port: the author's own host may run beside this one.
const LISTEN: &str = "127.0.0.1:0";

/// The files and folders whose changes start a build.
const WATCHED: [&str; 4] = ["src", "build.rs", "Cargo.toml", CONFIG];

/// The time between checks of the watched files.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Args)]
pub struct DevArgs {
    /// Builds with cargo's profile `dev`, not `release`.
    #[arg(long, conflicts_with = "profile")]
    debug: bool,
    /// Builds with this profile of cargo.
    #[arg(long, value_name = "NAME", default_value = "release")]
    profile: String,
    /// The data directory of the host; by default ~/.outrigger/dev/ID, by the plugin's id.
    #[arg(long)]
    datadir: Option<PathBuf>,
    /// Loads the library without `plugin check`.
    #[arg(long)]
    no_check: bool,
    /// Builds and starts once, and does not watch the sources.
    #[arg(long)]
    once: bool,
}

/// Runs until Ctrl-C.
///
/// # Errors
/// The current folder has no crate with an `outrigger.toml`. With `--once`: the plugin does not build or start, or the
/// host has ended.
pub fn dev(args: &DevArgs) -> Result<(), String> {
    let manifest = Path::new("Cargo.toml").canonicalize();
    let (Ok(manifest), true) = (manifest, Path::new(CONFIG).is_file()) else {
        return Err(format!(
            "the current folder needs a Cargo.toml and an {CONFIG}, as `outrigger plugin new` makes them"
        ));
    };
    let program = std::env::current_exe().map_err(|error| format!("this program's own file: {error}"))?;
    let (sender, signals) = channel();
    on_signal(move |_| sender.send(()).unwrap_or_default())
        .map_err(|error| format!("cannot listen for signals: {error}"))?;
    let mut session = Session { args, manifest, program, held: None, host: None };
    loop {
        let seen = look();
        match session.round() {
            Ok(done) => tell(&done),
            Err(error) if args.once => return Err(error),
            Err(error) if session.is_running() => tell(&format!("{error}\ndev: the running instance continues")),
            Err(error) => tell(&format!("{error}\ndev: waiting for a change")),
        }
        loop {
            let was_running = session.host.is_some();
            if signals.recv_timeout(POLL_INTERVAL).is_ok() {
                return Ok(());
            }
            if was_running && !session.is_running() {
                let ended = "the host has ended";
                if args.once {
                    return Err(ended.to_owned());
                }
                tell(&format!("{ended}; the next change starts it again"));
            }
            if !args.once && look() != seen {
                break;
            }
        }
    }
}

/// Prints a line. Continues if standard output is closed.
fn tell(text: &str) {
    let _ = writeln!(io::stdout(), "dev: {text}");
}

struct Session<'a> {
    args: &'a DevArgs,
    /// The crate's Cargo.toml.
    manifest: PathBuf,
    program: PathBuf,
    /// The plugin's id, and the folder of its library, locked against another session.
    held: Option<(String, File)>,
    host: Option<Child>,
}

impl Session<'_> {
    /// Builds, checks, and starts or reloads. Returns a report of a line or two.
    fn round(&mut self) -> Result<String, String> {
        let began = Instant::now();
        let file = PluginFile::read(&self.build()?).map_err(|error| error.to_string())?;
        let Manifest { id, version, .. } = &file.manifest;
        let datadir = self.args.datadir.clone().unwrap_or_else(|| Path::new(DATADIR).join(id));
        let datadir = absolute(&datadir).map_err(|error| error.to_string())?;
        self.hold(id, &datadir.join(LIBRARY_FOLDER))?;
        self.install(&file, &datadir)?;
        let is_running = self.is_running();
        if is_running {
            reload(id, &datadir)?
        } else {
            self.start(&datadir)?
        }
        let what = if is_running { "reloaded" } else { "started" };
        let done = format!("{what} {id} {version} after {:.1} s", began.elapsed().as_secs_f64());
        let call = self.call_of(&file.manifest, &datadir);
        Ok(if is_running { done } else { format!("{done}; in a second terminal:\n\n  {call}\n") })
    }

    /// Locks the folder of the library: another session would replace the library of this one. If the plugin's id has changed, the host of
    /// the former one stops.
    fn hold(&mut self, id: &str, folder: &Path) -> Result<(), String> {
        if self.held.as_ref().is_none_or(|(held, _)| held != id) {
            self.stop();
            self.held = None;
            own_folder(folder).map_err(|error| error.to_string())?;
            let opened = File::open(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
            flock(&opened, FlockOperation::NonBlockingLockExclusive)
                .map_err(|_| format!("another `outrigger plugin dev` uses {}; see --datadir", folder.display()))?;
            self.held = Some((id.to_owned(), opened));
        }
        Ok(())
    }

    /// Runs cargo, which prints its own errors. Returns the path of the library.
    fn build(&self) -> Result<PathBuf, String> {
        let profile = if self.args.debug { "dev" } else { &self.args.profile };
        let mut cargo = Command::new("cargo");
        cargo.args(["build", "--message-format=json-render-diagnostics", "--profile", profile]);
        let output = cargo.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
        let output = output.map_err(|error| format!("cargo cannot be run: {error}"))?;
        if !output.status.success() {
            return Err("cargo build failed".to_owned());
        }
        library(&output.stdout, &self.manifest).ok_or_else(|| {
            let manifest = self.manifest.display();
            format!("cargo built no library of {manifest}: it needs `crate-type = [\"cdylib\"]` under [lib]")
        })
    }

    /// Copies the library to the host's folder, under the file name for its id, if it passes the check.
    fn install(&self, file: &PluginFile, datadir: &Path) -> Result<(), String> {
        let id = &file.manifest.id;
        let folder = datadir.join(LIBRARY_FOLDER);
        let arguments = check_arguments(&file.manifest)?;
        let copy = file.copy_into(&folder).map_err(|error| error.to_string())?;
        let placed = self.check(&copy, &arguments).and_then(|()| {
            let name = candidates(id, &[folder]).into_iter().next().unwrap_or_default();
            fs::rename(&copy, &name).map_err(|error| format!("{}: {error}", name.display()))
        });
        placed.inspect_err(|_| {
            let _ = fs::remove_file(&copy);
        })
    }

    fn check(&self, library: &Path, arguments: &[String]) -> Result<(), String> {
        if self.args.no_check {
            return Ok(());
        }
        let mut command = Command::new(&self.program);
        let output = command.args(["plugin", "check"]).args(arguments).arg(library).output();
        let output = output.map_err(|error| format!("plugin check: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        let (report, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        Err(format!("plugin check refuses the library (--no-check loads it):\n{report}{errors}"))
    }

    /// Starts the host and waits until it is ready.
    fn start(&mut self, datadir: &Path) -> Result<(), String> {
        let failed = |error: io::Error| format!("the host cannot be started: {error}");
        let mut command = Command::new(&self.program);
        command.args(["run", "--config", CONFIG, "--rpc-listen", LISTEN, "--datadir"]).arg(datadir);
        command.arg("--dev-dir").arg(datadir.join(LIBRARY_FOLDER));
        let mut host = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(failed)?;
        let mut output = BufReader::new(host.stdout.take().ok_or_else(|| failed(io::ErrorKind::BrokenPipe.into()))?);
        let mut ready = String::new();
        let read = output.read_line(&mut ready);
        self.host = Some(host);
        if read.map_err(failed)? == 0 {
            self.stop();
            return Err("the host did not start".to_owned());
        }
        tell(ready.trim_end());
        std::thread::spawn(move || io::copy(&mut output, &mut io::stdout()));
        Ok(())
    }

    fn is_running(&mut self) -> bool {
        let is_running = self.host.as_mut().is_some_and(|host| matches!(host.try_wait(), Ok(None)));
        if !is_running {
            self.host = None;
        }
        is_running
    }

    fn stop(&mut self) {
        if let Some(mut host) = self.host.take() {
            // After Ctrl-C, the host is already stopping, and ignores a second signal.
            let _ = kill_process(Pid::from_child(&host), rustix::process::Signal::TERM);
            let _ = host.wait();
        }
    }

    /// The command that calls the plugin's first method, in any folder.
    fn call_of(&self, manifest: &Manifest, datadir: &Path) -> String {
        let typed = std::env::args().next().filter(|typed| !typed.contains('/'));
        let program = typed.unwrap_or_else(|| quoted(&self.program));
        let method = manifest.methods.first().map(|method| format!("{} {}", method.name, method.example_arguments()));
        let method = method.unwrap_or_else(|| "help".to_owned());
        format!("{program} call --datadir {} {}", quoted(datadir), method.trim_end())
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The library of the crate in cargo's messages.
fn library(messages: &[u8], manifest: &Path) -> Option<PathBuf> {
    let is_own = |message: &Value| {
        let path = message["manifest_path"].as_str().and_then(|path| Path::new(path).canonicalize().ok());
        let is_library = message["target"]["kind"].as_array().is_some_and(|kinds| kinds.contains(&json!("cdylib")));
        message["reason"] == "compiler-artifact" && path.as_deref() == Some(manifest) && is_library
    };
    let lines = messages.split(|byte| *byte == b'\n');
    let message = lines.filter_map(|line| serde_json::from_slice(line).ok()).find(is_own)?;
    let mut files = message["filenames"].as_array()?.iter().filter_map(Value::as_str);
    files.find(|file| file.ends_with(std::env::consts::DLL_SUFFIX)).map(PathBuf::from)
}

/// The arguments for `plugin check` to run the plugin as configured, without secret options.
fn check_arguments(manifest: &Manifest) -> Result<Vec<String>, String> {
    let config = config()?;
    let plugin = config.plugins.iter().find(|plugin| plugin.file == manifest.id);
    let plugin = plugin.ok_or_else(|| format!("{CONFIG} has no [[plugins]] with file = \"{}\"", manifest.id))?;
    let is_secret =
        |name: &str| manifest.options.iter().any(|option| option.name == name && option.kind == OptionType::Secret);
    let told = plugin.options.iter().filter(|(name, _)| !is_secret(name));
    let mut arguments: Vec<String> = told.map(|(name, value)| format!("--option={name}={value}")).collect();
    if config.plugin_defaults.isolated.applies_to(plugin) {
        arguments.push("--isolated".to_owned());
        arguments.extend(plugin.reach.iter().map(|reach| format!("--reach={reach}")));
    }
    Ok(arguments)
}

fn config() -> Result<Config, String> {
    LoadedConfig::read(Some(Path::new(CONFIG)), &[]).map(|loaded| loaded.config).map_err(|error| error.to_string())
}

/// Replaces the plugin of the running host, or starts it again after the host has stopped it.
fn reload(id: &str, datadir: &Path) -> Result<(), String> {
    let config = config()?;
    // With a backend, the network is the node's.
    let network = config.backend.is_none().then_some(config.network);
    let ask = |method: &str| {
        let folder = place::folder(datadir, network.as_deref())?;
        let connection = Connection::with_cookie(&folder, &place::url(&folder), None)?;
        Ok(connection.call(method, &json!([id]).to_string())?["error"]["message"].as_str().map(str::to_owned))
    };
    let ask = |method: &str| match ask(method).map_err(|error: CallError| error.to_string()) {
        Ok(None) => Ok(()),
        Ok(Some(refused)) | Err(refused) => Err(refused),
    };
    ask("reloadplugin").or_else(|refused| ask("startplugin").map_err(|_| refused))
}

/// The times and sizes of the watched files.
fn look() -> BTreeMap<PathBuf, (Option<SystemTime>, u64)> {
    let mut seen = BTreeMap::new();
    let mut left: Vec<PathBuf> = WATCHED.map(PathBuf::from).to_vec();
    while let Some(path) = left.pop() {
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        if metadata.is_dir() {
            left.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        } else {
            seen.insert(path, (metadata.modified().ok(), metadata.len()));
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugin_dev_takes_the_library_of_its_own_crate() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let manifest = |name: &str| {
            fs::create_dir(folder.join(name)).unwrap();
            let path = folder.join(name).join("Cargo.toml");
            fs::write(&path, "").unwrap();
            path
        };
        let (own, other) = (manifest("own"), manifest("other"));
        let artifact = |manifest: &Path, kinds: &[&str], file: &str| {
            let filenames = [format!("/t/{file}.rlib"), format!("/t/{file}{}", std::env::consts::DLL_SUFFIX)];
            json!({"reason": "compiler-artifact", "manifest_path": manifest, "target": {"kind": kinds}, "filenames": filenames})
        };
        let lines = [
            artifact(&other, &["cdylib"], "other").to_string(),
            "no JSON".to_owned(),
            artifact(&own, &["custom-build"], "script").to_string(),
            artifact(&own, &["cdylib", "rlib"], "own").to_string(),
        ];
        let found = |lines: &[String]| library(lines.join("\n").as_bytes(), &own);
        assert_eq!(found(&lines), Some(format!("/t/own{}", std::env::consts::DLL_SUFFIX).into()));
        assert_eq!(found(&lines[..3]), None);
    }
}

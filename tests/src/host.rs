//! A running host with its own data directory.

use std::fs::{File, Permissions};
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;

use serde_json::json;
use tempfile::{NamedTempFile, TempDir};

use crate::{Bitcoind, Client, bitcoind, built};

#[derive(Clone, Default)]
pub struct HostOptions {
    /// A configuration file; without one, the built-in configuration.
    pub config: Option<PathBuf>,
    /// The temporary file of `config`, if these options wrote it. It is deleted with the last options and hosts that use it.
    pub written: Option<Arc<NamedTempFile>>,
    pub set: Vec<String>,
    /// The addresses to listen on, separated by spaces; without one, a loopback port that the system picks.
    pub listen: Option<String>,
    pub plugin_dirs: Vec<PathBuf>,
    /// The file of its log; without one, the test's standard error.
    pub log: Option<PathBuf>,
    /// Environment variables, besides those of the test.
    pub environment: Vec<(String, String)>,
    /// The most that a file it writes may grow to, in bytes.
    pub file_limit: Option<u64>,
    /// The most files that it may have open.
    pub open_files: Option<u64>,
    /// Further limits, as arguments of the shell's `ulimit`.
    pub limits: Vec<&'static str>,
    /// Further arguments of `run`.
    pub arguments: Vec<&'static str>,
    /// Whether the configuration file sets the log level; otherwise it is `warn`.
    pub level_of_file: bool,
    /// Whether it starts in its data directory, with `.` as its path.
    pub relative: bool,
    /// The program; without one, the binary that cargo built.
    pub program: Option<PathBuf>,
    /// The user that it runs as, who becomes the owner of the data directory. This needs root.
    pub user: Option<u32>,
    /// Arguments of the bitcoind behind the host. If `None`, its node is the embedded chain, unless the variable OUTRIGGER_NODE is
    /// `bitcoind`.
    pub bitcoind: Option<Vec<&'static str>>,
}

/// Whether all plugins run in their own processes. A library's static data is then separate for each instance.
pub fn isolated() -> bool {
    std::env::var_os("OUTRIGGER_ISOLATED").is_some_and(|which| which == "all")
}

/// Whether hosts run without the folder of libraries, and so with the program's own copies of the groups. A test with plugin folders
/// needs the files.
fn is_inside(options: &HostOptions) -> bool {
    std::env::var_os("OUTRIGGER_GROUPS").is_some_and(|form| form == "inside") && options.plugin_dirs.is_empty()
}

/// Arguments of a node with all features of the embedded chain.
const FULL_NODE: [&str; 3] = ["-txindex=1", "-blockfilterindex=1", "-rest=1"];

impl HostOptions {
    /// With all groups, and more lines of configuration.
    pub fn with_groups(more: &str) -> Self {
        Self::configured(&format!("{}\n{more}", all_groups()))
    }

    /// With this configuration and a plugin; `rest` belongs to the plugin's section.
    pub fn with_plugin(configuration: &str, library: &Path, rest: &str) -> Self {
        let library = library.display();
        Self::configured(&format!("{configuration}\n[[plugins]]\nfile = \"{library}\"\n{rest}"))
    }

    /// With this configuration.
    pub fn configured(text: &str) -> Self {
        let config = NamedTempFile::new().unwrap();
        std::fs::write(config.path(), text).unwrap();
        // A host that runs as another user must read it too.
        std::fs::set_permissions(config.path(), Permissions::from_mode(0o644)).unwrap();
        Self { config: Some(config.path().to_owned()), written: Some(Arc::new(config)), ..Self::default() }
    }

    /// The file of [`Self::configured`].
    pub fn config_file(&self) -> Arc<NamedTempFile> {
        self.written.clone().unwrap()
    }

    /// With these settings, `section.key=value`.
    pub fn with(settings: &[&str]) -> Self {
        Self::default().and(settings)
    }

    /// With these settings as well.
    pub fn and(mut self, settings: &[&str]) -> Self {
        self.set.extend(settings.iter().map(|&setting| setting.to_owned()));
        self
    }

    /// Replaces the first occurrence of a text in the file of [`Self::configured`].
    #[track_caller]
    pub fn change(&self, from: &str, to: &str) {
        let config = self.config_file();
        let text = std::fs::read_to_string(config.path()).unwrap();
        assert!(text.contains(from), "{from}");
        std::fs::write(config.path(), text.replacen(from, to, 1)).unwrap();
    }

    /// Answering as a release of Bitcoin Core.
    pub fn of_release(release: u32) -> Self {
        Self::with(&[&format!("release={release}")])
    }

    /// In front of a bitcoind with these arguments.
    pub fn in_front_of(arguments: &[&'static str]) -> Self {
        Self { bitcoind: Some(arguments.to_vec()), ..Self::default() }
    }

    /// The arguments of the node that the host stands in front of.
    fn node_arguments(&self) -> Option<Vec<&'static str>> {
        let everywhere = std::env::var_os("OUTRIGGER_NODE").is_some_and(|node| node == "bitcoind");
        // A test with its own configuration keeps it.
        let asked = everywhere && self.config.is_none();
        self.bitcoind.clone().or_else(|| asked.then(|| FULL_NODE.to_vec()))
    }
}

/// A running host. Dropping it stops it.
pub struct Host {
    child: Child,
    folder: TempDir,
    options: HostOptions,
    network_folder: PathBuf,
    pub node: Option<Bitcoind>,
    /// The first address that it listens on.
    pub address: SocketAddr,
    /// The line that it printed when it was ready.
    pub ready: String,
    /// The address of its metrics, if any.
    pub metrics: Option<SocketAddr>,
}

/// The path of a configuration that ships with the project.
pub fn groups(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../config").join(name)
}

/// The configuration with all groups on the embedded chain.
pub fn all_groups() -> String {
    std::fs::read_to_string(groups("regtest.toml")).unwrap()
}

/// The section of a plugin that was built here, with more lines of it.
pub fn plugin_section(library: &str, rest: &str) -> String {
    format!("[[plugins]]\nfile = \"{}\"\n{rest}", built().library(library).display())
}

impl Host {
    pub fn start() -> Self {
        Self::start_with(HostOptions::default())
    }

    pub fn start_with(options: HostOptions) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), options)
    }

    /// Starts a host on a data directory that is there already.
    pub fn start_in(folder: TempDir, options: HostOptions) -> Self {
        let node = options.node_arguments().map(|arguments| {
            let path = bitcoind::installed().expect("a bitcoind, for OUTRIGGER_NODE=bitcoind");
            Bitcoind::start_with(path, &arguments).0
        });
        Self::start_before(folder, options, node)
    }

    /// Starts a host in front of a bitcoind that runs already.
    pub fn start_before(folder: TempDir, mut options: HostOptions, node: Option<Bitcoind>) -> Self {
        if let Some(node) = &node {
            let file = folder.path().join("bitcoind.toml");
            std::fs::write(&file, configuration(node)).unwrap();
            options.config = Some(file);
        }
        let host = Self::try_start_in(folder, &options);
        let mut host = host.unwrap_or_else(|(_, status)| panic!("the host did not start ({status})"));
        host.node = node;
        host
    }

    /// Runs a host that must end by itself, and returns its output.
    pub fn fail(options: &HostOptions) -> Output {
        let folder = tempfile::tempdir().unwrap();
        Self::fail_in(folder.path(), options)
    }

    /// The standard error of a host that refuses its configuration (exit status 2).
    #[track_caller]
    pub fn refused(options: &HostOptions) -> String {
        let output = Self::fail(options);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{error}");
        error
    }

    /// Checks what a host would start with (`run --check`).
    pub fn check(options: &HostOptions) -> Output {
        let folder = tempfile::tempdir().unwrap();
        command(options, folder.path()).arg("--check").output().unwrap()
    }

    /// As [`Host::fail`], on a data directory that is there already.
    pub fn fail_in(folder: &Path, options: &HostOptions) -> Output {
        command(options, folder).output().unwrap()
    }

    /// Starts a host in an existing folder. If it ends by itself, returns the folder and the exit status.
    pub fn try_start_in(folder: TempDir, options: &HostOptions) -> Result<Self, (TempDir, std::process::ExitStatus)> {
        if let Some(user) = options.user {
            std::os::unix::fs::chown(folder.path(), Some(user), Some(user)).unwrap();
        }
        let log = options.log.as_ref().map_or_else(Stdio::inherit, |log| File::create(log).unwrap().into());
        let mut child = command(options, folder.path()).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split("://").nth(1).and_then(|rest| rest.split('/').next()?.parse().ok());
        let Some(address) = address else { return Err((folder, child.wait().unwrap())) };
        let metrics = line.split("metrics: http://").nth(1).and_then(|rest| rest.split('/').next()?.parse().ok());
        // "... (regtest, FOLDER)": where the chain's data is.
        let network_folder =
            line.split_once(", ").and_then(|(_, rest)| rest.split(')').next()).unwrap_or_default().into();
        Ok(Self { child, folder, options: options.clone(), network_folder, node: None, address, ready: line, metrics })
    }

    /// [`HostOptions::config_file`] of its options.
    pub fn config_file(&self) -> Arc<NamedTempFile> {
        self.options.config_file()
    }

    /// [`HostOptions::change`] of its options.
    #[track_caller]
    pub fn change(&self, from: &str, to: &str) {
        self.options.change(from, to);
    }

    pub fn client(&self) -> Client {
        Client::new(self.address, &self.cookie())
    }

    /// The node that it stands in front of.
    pub fn bitcoind(&mut self) -> &mut Bitcoind {
        self.node.as_mut().unwrap()
    }

    /// A client of that node.
    pub fn node_client(&self) -> Client {
        self.node.as_ref().unwrap().client()
    }

    /// The credentials in its cookie file.
    pub fn cookie(&self) -> String {
        std::fs::read_to_string(self.network_folder().join(".cookie")).unwrap()
    }

    /// A client of a fresh wallet.
    pub fn new_wallet(&self, name: &str) -> Client {
        self.client().create_wallet(name, json!({}))
    }

    /// The folder of the chain's data.
    pub fn network_folder(&self) -> PathBuf {
        self.network_folder.clone()
    }

    pub fn datadir(&self) -> &Path {
        self.folder.path()
    }

    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// The peak memory of its process since the last call, in bytes (Linux).
    pub fn peak_memory(&self) -> u64 {
        let peak = self.memory("VmHWM:");
        // 5 resets the peak to the current value.
        std::fs::write(format!("/proc/{}/clear_refs", self.process_id()), "5").unwrap();
        peak
    }

    /// The memory of its process that belongs to no file, in bytes (Linux).
    pub fn private_memory(&self) -> u64 {
        self.memory("RssAnon:")
    }

    /// A figure of `/proc/PID/status`, in bytes.
    fn memory(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process_id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
    }

    /// Asks it to stop with SIGTERM, waits, and starts it again on the same data.
    pub fn restart(mut self) -> Self {
        assert!(self.terminate().success(), "the host did not stop in order");
        self.start_again()
    }

    /// [`Self::restart`] with one more setting, `section.key=value`.
    pub fn restart_with(self, setting: String) -> Self {
        self.restart_otherwise(|options| options.set.push(setting))
    }

    /// [`Self::restart`] with other options.
    pub fn restart_otherwise(mut self, change: impl FnOnce(&mut HostOptions)) -> Self {
        change(&mut self.options);
        self.restart()
    }

    /// Kills it with SIGKILL and starts it again on the same data.
    pub fn kill_and_restart(mut self) -> Self {
        self.kill();
        self.start_again()
    }

    /// Kills it with SIGKILL, and waits for its end.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again on the same data, once it has ended.
    pub fn start_again(mut self) -> Self {
        let folder = std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap());
        Self::start_before(folder, self.options.clone(), self.node.take())
    }

    pub fn terminate(&mut self) -> std::process::ExitStatus {
        // If the process has ended already, the signal fails and only the wait remains.
        self.signal(rustix::process::Signal::TERM);
        self.child.wait().unwrap()
    }

    pub fn hang_up(&self) {
        self.signal(rustix::process::Signal::HUP);
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let id = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw).unwrap();
        let _ = rustix::process::kill_process(id, signal);
    }

    /// Waits for the end of a host that was asked to stop over RPC.
    pub fn wait(&mut self) -> std::process::ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.terminate();
        }
        if let Some(mut rest) = self.child.stdout.take() {
            let _ = rest.read_to_end(&mut Vec::new());
        }
    }
}

/// The configuration that ships with the project, for this node. Payments without a feerate pay as on the embedded chain.
pub fn configuration(node: &Bitcoind) -> String {
    let text = std::fs::read_to_string(groups("bitcoind.toml")).unwrap();
    let replaced = [
        ("network = \"main\"", format!("network = \"{}\"", node.chain)),
        ("http://127.0.0.1:8332", format!("http://{}", node.address)),
        ("~/.bitcoin/.cookie", node.cookie().display().to_string()),
        ("[backend]", "[wallet]\nfallbackfee = 0.00001\n\n[backend]".to_owned()),
    ];
    replaced.iter().fold(text, |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    })
}

/// The binary, in a shell with `ulimit` if the options have limits.
fn program(options: &HostOptions) -> Command {
    // The shell counts in blocks of 512 bytes.
    let size = options.file_limit.map(|limit| format!("ulimit -f {}; ", limit / 512));
    let files = options.open_files.map(|limit| format!("ulimit -n {limit}; "));
    let others = options.limits.iter().map(|limit| format!("ulimit {limit}; "));
    let limits: String = [size, files].into_iter().flatten().chain(others).collect();
    let built = built();
    let own = if is_inside(options) { &built.alone } else { &built.binary };
    let binary = options.program.as_ref().unwrap_or(own);
    if limits.is_empty() {
        return Command::new(binary);
    }
    let mut command = Command::new("sh");
    let script = format!("{limits}exec \"$0\" \"$@\"");
    command.arg("-c").arg(script).arg(binary);
    command
}

fn command(options: &HostOptions, datadir: &Path) -> Command {
    let mut command = program(options);
    if let Some(user) = options.user {
        command.uid(user).gid(user);
    }
    command.envs(options.environment.iter().cloned());
    let datadir = match options.relative {
        true => {
            command.current_dir(datadir);
            Path::new(".")
        }
        false => datadir,
    };
    command.arg("run").arg("--datadir").arg(datadir);
    for address in options.listen.as_deref().unwrap_or("127.0.0.1:0").split(' ') {
        command.args(["--rpc-listen", address]);
    }
    if let Some(config) = &options.config {
        command.arg("--config").arg(config);
    }
    // Plugins run in the host's process unless the variable says otherwise.
    let isolated = std::env::var("OUTRIGGER_ISOLATED").unwrap_or_else(|_| "none".to_owned());
    for set in [&format!("plugin_defaults.isolated='{isolated}'")[..], "chain.map_gib=16"] {
        command.args(["--set", set]);
    }
    if !options.level_of_file {
        command.args(["--set", "log.level=warn"]);
    }
    for set in &options.set {
        command.args(["--set", set]);
    }
    for folder in &options.plugin_dirs {
        command.arg("--plugin-dir").arg(folder);
    }
    command.args(&options.arguments);
    command
}

//! `--isolated`: the plugin in a process of its own, as with `isolated = true`, in the place of its table.
//!
//! The checks call the same functions, of the plugin that stands for it here. What they find is found through the messages between
//! the processes. What the strict host of this process would see of the plugin's own pointers, it does not see then.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use outrigger_abi::{ErrorKind, HostHandle, PluginCode, PluginTable, RawCall, plugin_table};
use outrigger_isolate::{Bounds, Confinement, Executable, Launch, Proxy, RunnerStatus, Seed};
use outrigger_plugins::answer::DEFAULT_MAX_BYTES;
use outrigger_plugins::file::PluginFile;
use outrigger_sandbox::{Policy, Reach};
use outrigger_values::RpcErrorCode;

/// How often it is looked whether the end of a process is noted, and for how long: who waits for an answer hears of it sooner.
const LOOK: Duration = Duration::from_millis(1);
const PATIENCE: Duration = Duration::from_secs(1);

/// What the instances of this process are made of. A table's `create` takes nothing.
static ISOLATION: OnceLock<Isolation> = OnceLock::new();

/// The plugin's processes.
pub struct Isolation {
    plugin: String,
    library: PathBuf,
    services: Vec<String>,
    reach: Vec<Reach>,
    executable: Arc<Executable>,
    status: Arc<RunnerStatus>,
}

impl Isolation {
    /// Prepares to run this plugin, confined as far as the system allows; no process is started yet. Once in a process.
    ///
    /// # Errors
    /// The system does not show the program of this process.
    pub fn begin(file: &PluginFile, library: PathBuf, reach: &[Reach]) -> std::io::Result<&'static Self> {
        let manifest = &file.manifest;
        let isolation = Self {
            plugin: manifest.id.clone(),
            library,
            services: manifest.services.iter().chain(&manifest.optional).cloned().collect(),
            reach: reach.to_vec(),
            executable: Arc::new(Executable::current()?),
            status: Arc::default(),
        };
        Ok(ISOLATION.get_or_init(|| isolation))
    }

    /// The functions of a plugin that stands for the isolated one.
    pub fn table() -> &'static PluginTable {
        const { &plugin_table::<Isolated>(0) }
    }

    fn launch(&self) -> Launch {
        Launch {
            plugin: self.plugin.clone(),
            library: self.library.clone(),
            services: self.services.clone(),
            // Each call asks by itself, so that what happens while it asks is seen.
            // One method that ends the process must not hide what the others do.
            restartable: true,
            is_checked: true,
            inline: Arc::default(),
            max_answer: DEFAULT_MAX_BYTES,
            executable: self.executable.clone(),
            confinement: Some(Confinement { policy: Policy::BestEffort, reach: self.reach.clone() }),
            bounds: Bounds::NONE,
            runners: Arc::default(),
            status: self.status.clone(),
            given_up: Box::new(|| {}),
        }
    }

    /// Whether an answer is that of a call whose process has ended; what is to be said then.
    pub fn crash_in(&self, method: &str, code: i32, body: &[u8]) -> Option<String> {
        let message = format!("The plugin '{}' crashed", self.plugin);
        if code != RpcErrorCode::INTERNAL.0 || body != message.as_bytes() {
            return None;
        }
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(how) = self.status.ending_in(method) {
                return Some(format!("it ended its process ({how})"));
            }
            // Where several calls were in it, the end is put down to one of them.
            if Instant::now() >= until {
                return Some("its process ended before it was answered".to_owned());
            }
            std::thread::sleep(LOOK);
        }
    }

    /// What the sandbox refused, for the end of a line; empty where it was nothing.
    pub fn refused(&self) -> String {
        let kinds = self.status.denials().by_kind;
        let told: Vec<_> = kinds.iter().map(|(kind, of)| format!("{} {kind} ({})", of.count, of.last)).collect();
        if told.is_empty() { String::new() } else { format!("; refused by the sandbox: {}", told.join(", ")) }
    }
}

/// The plugin that stands for the isolated one.
struct Isolated(Proxy);

impl PluginCode for Isolated {
    type Seed = ();

    fn init((): (), host: HostHandle, options: &[u8]) -> Result<Self, String> {
        let isolation = ISOLATION.get().ok_or("nothing is isolated here")?;
        Proxy::init(Seed::from(isolation.launch()), host, options).map(Self)
    }

    fn start(&self) -> Result<(), String> {
        self.0.start()
    }

    fn call(&self, call: RawCall<'_>) -> Result<(), ErrorKind> {
        self.0.call(call)
    }

    fn cancel(&self, token: u64) -> Result<(), ErrorKind> {
        self.0.cancel(token)
    }

    fn event(&self, event: &[u8]) -> Result<(), ErrorKind> {
        self.0.event(event)
    }

    fn quiesce(&self) -> Result<(), ErrorKind> {
        self.0.quiesce()
    }

    fn stop(&self) -> Result<(), ErrorKind> {
        self.0.stop()
    }
}

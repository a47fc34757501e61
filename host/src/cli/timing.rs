//! `outrigger plugin time`: how long a call of a plugin takes, from the host's side of the ABI and back.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use outrigger_abi::ExportedService;
use outrigger_isolate::{Bounds, Confinement, Executable};
use outrigger_sandbox::Policy;
use outrigger_sdk::manifest::MethodSpec;
use outrigger_sdk::testing::{StubHost, WalletState};
use outrigger_service::{Chain, Mempool, NodeRpc, Signer, Wallet};
use outrigger_values::RpcError;
use outrigger_values::text::printable;
use serde_json::Map;

use outrigger_plugins::answer::DEFAULT_MAX_BYTES;
use outrigger_plugins::calls::Calls;
use outrigger_plugins::file::PluginFile;
use outrigger_plugins::grants::{Grant, Holder, NODE_RPC, ServiceSource};
use outrigger_plugins::instance::{Instance, Launch, LoadedLibrary};
use outrigger_plugins::lane::Lane;

/// Calls before the first that counts.
const WARM_UP: usize = 1_000;

/// Calls that count; their median is told.
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
    /// In a process of its own, as with `isolated = true`.
    #[arg(long)]
    isolated: bool,
    /// A call begins so many microseconds after the former one has ended.
    #[arg(long, default_value_t = 0)]
    pause_us: u64,
}

/// Times a method on a host in memory.
///
/// # Errors
/// Why the plugin does not start, or does not answer at once.
pub fn time(args: &TimeArgs) -> Result<String, String> {
    let file = PluginFile::read(&args.file).map_err(|error| error.to_string())?;
    let folder = std::env::temp_dir().join(format!("outrigger-time-{}", std::process::id()));
    // A folder that was there before, or that others may write to, is not where code is loaded from.
    std::fs::DirBuilder::new().mode(0o700).create(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let outcome = run(file, args, &folder);
    // What remains is a copy of the file in the folder for temporary files.
    let _ = std::fs::remove_dir_all(&folder);
    outcome
}

fn run(file: PluginFile, args: &TimeArgs, folder: &Path) -> Result<String, String> {
    let code = Arc::new(LoadedLibrary::open(file, folder, args.isolated).map_err(|error| error.to_string())?);
    let named = |method: &&MethodSpec| method.name == args.method;
    let method = code.manifest.methods.iter().find(named).ok_or("the plugin's manifest has no such method")?;
    let calls = Arc::new(Calls::default());
    let options = code.manifest.options(&Map::new()).map_err(|error| error.to_string())?;
    let services = InMemory(StubHost::new());
    services.0.chain.mine(vec![]);
    services.0.wallet.set(Some(WalletState::empty("timed")));
    let grants = ["chain/1", "mempool/1", "wallet/1", "signer/1", "events/1", "log/1"].map(Grant::all);
    let methods = Some(code.manifest.node_methods.clone()).filter(|methods| !methods.is_empty());
    let node_rpc = methods.map(|methods| Grant { methods: Some(methods), ..Grant::all(NODE_RPC) });
    let grants: Vec<Grant> = grants.into_iter().chain(node_rpc).collect();
    let (failures, _troubles) = std::sync::mpsc::channel();
    let launch = Launch {
        id: 1,
        owner: 1,
        trusted: false,
        panic_text: true,
        grants: &grants,
        options,
        services: &services,
        calls: calls.clone(),
        deadline: None,
        max_answer_bytes: DEFAULT_MAX_BYTES,
        health: Arc::default(),
        runners: Arc::default(),
        confinement: Some(Confinement { policy: Policy::BestEffort, reach: Vec::new() }),
        bounds: Bounds::NONE,
        executable: Arc::new(Executable::current().map_err(|error| error.to_string())?),
        failures,
    };
    let instance = Instance::start(&code, launch).map_err(|error| error.to_string())?;
    // A pause makes a call long: fewer tell enough.
    let calls_timed = if args.pause_us > 0 { CALLS / 10 } else { CALLS };
    let timed =
        (0..WARM_UP + calls_timed).map(|_| once(&instance, &calls, method, args)).collect::<Result<Vec<_>, _>>();
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

/// One call there and back.
fn once(instance: &Instance, calls: &Calls, method: &MethodSpec, args: &TimeArgs) -> Result<Duration, String> {
    if args.pause_us > 0 {
        std::thread::sleep(Duration::from_micros(args.pause_us));
    }
    let began = Instant::now();
    let (token, mut answer) = calls.open(instance.id, usize::MAX);
    instance.call(token, method, args.arguments.as_bytes(), Lane::pooled(method));
    let answer = answer.try_recv().map_err(|_| format!("{} does not answer at once", args.method))?;
    let spent = began.elapsed();
    let failed =
        |error: RpcError| format!("{} answers error {}: {}", args.method, error.code.0, printable(&error.message));
    answer.map(|_| spent).map_err(failed)
}

/// The services of a host in memory.
struct InMemory(StubHost);

impl ServiceSource for InMemory {
    fn names(&self) -> &'static [&'static str] {
        &["chain/1", "mempool/1", "wallet/1", "signer/1", NODE_RPC]
    }

    fn export(&self, service: &str, _: &Holder<'_>) -> Option<Arc<ExportedService>> {
        let StubHost { chain, mempool, wallet, node_rpc, .. } = &self.0;
        Some(Arc::new(match service {
            "chain/1" => ExportedService::new::<dyn Chain>(chain.clone()),
            "mempool/1" => ExportedService::new::<dyn Mempool>(mempool.clone()),
            "wallet/1" => ExportedService::new::<dyn Wallet>(wallet.clone()),
            "signer/1" => ExportedService::new::<dyn Signer>(wallet.clone()),
            NODE_RPC => ExportedService::new::<dyn NodeRpc>(node_rpc.clone()),
            _ => return None,
        }))
    }
}

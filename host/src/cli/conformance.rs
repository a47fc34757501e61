//! `outrigger plugin check`: runs a plugin on a host in memory and watches how it keeps to the ABI.

use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use outrigger_sdk::abi::ExportedService;
use outrigger_sdk::service::events::Event;
use outrigger_sdk::service::{Chain, Mempool, Signer, Wallet};
use outrigger_sdk::testing::{TestHost, WalletState};
use serde_json::{Map, Value};

use crate::plugin::calls::{Answer, Calls};
use crate::plugin::file::PluginFile;
use crate::plugin::grants::{Grant, ServiceSource};
use crate::plugin::instance::{Code, Instance, Launch};

/// How long an answer may take, counted from when the plugin was told to stop.
const PATIENCE: Duration = Duration::from_secs(5);

/// Arguments that make no sense to any method.
const NONSENSE: [&str; 6] =
    ["[]", "[null]", "[[],{},\"x\",-1]", "[{\"a\":[1]},5]", "[\"\\u0000\",1e300,true,null]", "[-9223372036854775808]"];

/// Checks a plugin, and gives a report.
///
/// # Errors
/// The first thing in which the plugin fails.
pub fn check(file: &Path) -> Result<String, String> {
    let file = PluginFile::read(file).map_err(|error| error.to_string())?;
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
    let folder = std::env::temp_dir().join(format!("outrigger-check-{}-{now:x}", std::process::id()));
    // A folder that was there before, or that others may write to, is not where code is loaded from.
    std::fs::DirBuilder::new().mode(0o700).create(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let outcome = run(file, &folder);
    // What remains is a copy of the file in the folder for temporary files.
    let _ = std::fs::remove_dir_all(&folder);
    outcome
}

fn run(file: PluginFile, folder: &Path) -> Result<String, String> {
    let code = Arc::new(Code::open(file, folder).map_err(|error| error.to_string())?);
    let manifest = &code.manifest;
    let calls = Arc::new(Calls::default());
    let options = manifest.options(&Map::new()).map_err(|error| error.to_string())?;
    let services = InMemory(TestHost::new());
    services.0.chain.mine(vec![]);
    services.0.wallet.set(Some(WalletState::empty("check")));
    let grants = ["chain/1", "mempool/1", "wallet/1", "signer/1", "events/1", "log/1"].map(Grant::all);
    let (trouble, _troubles) = std::sync::mpsc::channel();
    let launch = Launch {
        id: 1,
        grants: &grants,
        options: &options,
        services: &services,
        calls: calls.clone(),
        deadline: None,
        health: Arc::default(),
        trouble,
    };
    let instance = Instance::start(&code, launch).map_err(|error| error.to_string())?;
    let mut waiting = Vec::new();
    for method in &manifest.methods {
        for arguments in NONSENSE {
            let (token, answer) = calls.open(instance.id);
            instance.call(token, &method.name, arguments.as_bytes(), None);
            waiting.push((&method.name, arguments, answer));
        }
    }
    let (token, cancelled) = calls.open(instance.id);
    if let Some(method) = manifest.methods.first() {
        instance.call(token, &method.name, b"[]", None);
        if calls.give_up(token, false).is_some() {
            instance.cancel(token);
        }
    }
    drop(cancelled);
    instance.events.offer(&Event::ShuttingDown);
    instance.retire(PATIENCE);
    instance.wait_ended(std::time::Instant::now() + 2 * PATIENCE);
    let made = waiting.len();
    for (method, arguments, answer) in waiting {
        judge(method, arguments, wait(answer))?;
    }
    let faults = instance.health.faults.load(std::sync::atomic::Ordering::Relaxed);
    if faults > 0 {
        return Err(format!("{faults} of {made} calls ended in a fault (a panic) of the plugin"));
    }
    let methods = manifest.methods.len();
    Ok(format!("{}: {methods} methods, {made} calls, each answered once; started and stopped in order", manifest.id))
}

fn wait(mut answer: tokio::sync::oneshot::Receiver<Answer>) -> Option<Answer> {
    let deadline = std::time::Instant::now() + PATIENCE;
    loop {
        match answer.try_recv() {
            Ok(answer) => return Some(answer),
            Err(tokio::sync::oneshot::error::TryRecvError::Empty) if std::time::Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(_) => return None,
        }
    }
}

fn judge(method: &str, arguments: &str, answer: Option<Answer>) -> Result<(), String> {
    match answer {
        None => Err(format!("{method} {arguments} was never answered")),
        Some(Err(error)) if error.message.is_empty() => {
            Err(format!("{method} {arguments}: an error without a message"))
        }
        Some(Err(_)) => Ok(()),
        Some(Ok(json)) => match serde_json::from_slice::<Value>(&json) {
            Ok(_) => Ok(()),
            Err(error) => Err(format!("{method} {arguments}: the answer is not JSON: {error}")),
        },
    }
}

/// The services of a host in memory.
struct InMemory(TestHost);

impl ServiceSource for InMemory {
    fn has(&self, service: &str) -> bool {
        ["chain/1", "mempool/1", "wallet/1", "signer/1"].contains(&service)
    }

    fn export(&self, service: &str, _: &[Grant], _: u64) -> Option<Arc<ExportedService>> {
        let TestHost { chain, mempool, wallet, .. } = &self.0;
        Some(Arc::new(match service {
            "chain/1" => ExportedService::new::<dyn Chain>(chain.clone()),
            "mempool/1" => ExportedService::new::<dyn Mempool>(mempool.clone()),
            "wallet/1" => ExportedService::new::<dyn Wallet>(wallet.clone()),
            "signer/1" => ExportedService::new::<dyn Signer>(wallet.clone()),
            _ => return None,
        }))
    }
}

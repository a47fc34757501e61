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
use crate::plugin::instance::{Instance, SharedServices};

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
    let outcome = run(&file, &folder);
    // What remains is a copy of the file in the folder for temporary files.
    let _ = std::fs::remove_dir_all(&folder);
    outcome
}

fn run(file: &PluginFile, folder: &Path) -> Result<String, String> {
    let table = file.open(folder).map_err(|error| error.to_string())?;
    let calls = Arc::new(Calls::default());
    let options = file.manifest.options(&Map::new()).map_err(|error| error.to_string())?;
    let services = services();
    let grants: Vec<String> = services.keys().cloned().chain(["events/1".to_owned(), "log/1".to_owned()]).collect();
    let instance = Instance::start(1, file, table, &grants, &options, &services, calls.clone())
        .map_err(|error| error.to_string())?;
    let mut waiting = Vec::new();
    for method in &file.manifest.methods {
        for arguments in NONSENSE {
            let (token, answer) = calls.open(instance.id);
            instance.call(token, &method.name, arguments.as_bytes());
            waiting.push((&method.name, arguments, answer));
        }
    }
    let (token, cancelled) = calls.open(instance.id);
    if let Some(method) = file.manifest.methods.first() {
        instance.call(token, &method.name, b"[]");
        if calls.give_up(token) {
            instance.cancel(token);
        }
    }
    drop(cancelled);
    instance.events.offer(&Event::ShuttingDown);
    instance.quiesce();
    instance.stop(std::time::Instant::now() + PATIENCE);
    let made = waiting.len();
    for (method, arguments, answer) in waiting {
        judge(method, arguments, wait(answer))?;
    }
    let faults = instance.statistics.faults.load(std::sync::atomic::Ordering::Relaxed);
    if faults > 0 {
        return Err(format!("{faults} of {made} calls ended in a fault (a panic) of the plugin"));
    }
    let methods = file.manifest.methods.len();
    Ok(format!(
        "{}: {methods} methods, {made} calls, each answered once; started and stopped in order",
        file.manifest.id
    ))
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

/// The services of a host in memory, with a short chain and an empty wallet.
fn services() -> SharedServices {
    let host = TestHost::new();
    host.chain.mine(vec![]);
    host.wallet.set(Some(WalletState::empty("check")));
    [
        ("chain/1", ExportedService::new::<dyn Chain>(host.chain.clone())),
        ("mempool/1", ExportedService::new::<dyn Mempool>(host.mempool.clone())),
        ("wallet/1", ExportedService::new::<dyn Wallet>(host.wallet.clone())),
        ("signer/1", ExportedService::new::<dyn Signer>(host.wallet.clone())),
    ]
    .into_iter()
    .map(|(name, service)| (name.to_owned(), Arc::new(service)))
    .collect()
}

//! Opens a plugin and starts it on a host in memory, with the loader of the real host.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bitcoin::Network;
use outrigger_abi::ExportedService;
use outrigger_isolate::{Executable, RunnerStatus};
use outrigger_plugins::PluginConfig;
use outrigger_plugins::calls::Calls;
use outrigger_plugins::file::PluginFile;
use outrigger_plugins::grants::{Grant, Holder, RPC, ServiceSource};
use outrigger_plugins::health::Health;
use outrigger_plugins::instance::{Instance, Launch, LoadedLibrary, StartError};
use outrigger_plugins::linked::Found;
use outrigger_sandbox::{Policy, Reach};
use outrigger_sdk::standard::release;
use outrigger_sdk::testing::{StubHost, StubRpc, WalletState};
use outrigger_service::rpc::{As, CallerInfo, RpcReply};
use outrigger_service::wire::Blob;
use outrigger_service::{ErrorKind, Rpc, Scope, ServiceError};
use outrigger_values::{RpcError, RpcErrorCode};
use serde_json::{Map, Value};

/// The number of blocks above genesis.
const BLOCKS: usize = 3;

/// The deadline that calls carry. The tool does not enforce it.
const DEADLINE: Duration = Duration::from_secs(60);

/// The node's answers behind `rpc/1`, by method.
const NODE: &str = include_str!("node.json");

/// The node's error for an unknown method. Its text differs from the error of a plugin without a handler for its method.
pub const UNKNOWN: &str = "Method not found (by the node of plugin check)";

pub struct Loaded {
    pub code: Arc<LoadedLibrary>,
    pub calls: Arc<Calls>,
    pub health: Arc<Health>,
    /// The plugin's own processes, if it is isolated.
    pub runners: Arc<RunnerStatus>,
    executable: Arc<Executable>,
    reach: Vec<Reach>,
    /// The folder with one private folder for each instance: a plugin may lock its files.
    folder: PathBuf,
    instances: AtomicU64,
}

impl Loaded {
    /// Opens a plugin. With `isolated` the plugin runs in its own process, with this `reach`.
    pub fn open(file: PluginFile, copies: &Path, isolated: Option<&[Reach]>) -> Result<Self, String> {
        let mut code = LoadedLibrary::of(Found::File(Box::new(file)), copies, isolated.is_some())
            .map_err(|error| error.to_string())?;
        // A method that ends the plugin's process must not hide the faults of other methods.
        code.manifest.restartable = true;
        Ok(Self {
            code: Arc::new(code),
            calls: Arc::default(),
            health: Arc::default(),
            runners: Arc::default(),
            executable: Arc::new(Executable::current().map_err(|error| error.to_string())?),
            reach: isolated.unwrap_or_default().to_vec(),
            folder: copies.to_owned(),
            instances: AtomicU64::new(1),
        })
    }

    /// Starts an instance on a host. The services of the manifest are granted, except for `withheld`.
    pub fn start(
        &self,
        host: &StubHost,
        options: Map<String, Value>,
        withheld: Option<&str>,
    ) -> Result<Arc<Instance>, StartError> {
        let manifest = &self.code.manifest;
        let services = manifest.services.iter().chain(&manifest.optional).filter(|name| withheld != Some(name));
        let grant = |name: &String| {
            let methods = (name == RPC).then(|| manifest.calls.clone());
            Grant { methods, ..Grant::all(name) }
        };
        let config = PluginConfig {
            panic_text: true,
            sandbox: Policy::BestEffort,
            reach: self.reach.clone(),
            grants: services.map(grant).collect(),
            ..PluginConfig::default()
        };
        let id = self.instances.fetch_add(1, Ordering::Relaxed);
        let launch = Launch {
            id,
            owner: 1,
            config: &config,
            options,
            services: &InMemory(host),
            release: Arc::new(|| release::PRESENT),
            calls: self.calls.clone(),
            deadline: Some(DEADLINE),
            health: self.health.clone(),
            runners: self.runners.clone(),
            executable: self.executable.clone(),
            folder: self.folder.join(format!("folder-{id}")),
            network: Network::Regtest,
            is_checked: true,
            // The tool does not restart an instance after a fault.
            failures: std::sync::mpsc::channel().0,
        };
        Instance::start(&self.code, launch)
    }

    /// A host with a short chain and an empty wallet.
    pub fn host(&self) -> StubHost {
        let host = StubHost::new();
        for _ in 0..BLOCKS {
            host.chain.mine(vec![]);
        }
        host.wallet.set(Some(WalletState::empty("check")));
        let answers: Map<String, Value> = serde_json::from_str(NODE).unwrap_or_default();
        for method in &self.code.manifest.calls {
            let unknown = || RpcError::new(RpcErrorCode::METHOD_NOT_FOUND, UNKNOWN);
            host.rpc.answer(method, answers.get(method).cloned().ok_or_else(unknown));
        }
        // The next link in the chain of a call.
        host.rpc.answer("next", Ok(Value::Null));
        host
    }
}

struct InMemory<'a>(&'a StubHost);

impl ServiceSource for InMemory<'_> {
    fn export(&self, service: &str, holder: &Holder<'_>) -> Option<Arc<ExportedService>> {
        let mut host = self.0.handle();
        if service == RPC {
            let methods = holder.grants.iter().find_map(|grant| grant.methods.clone());
            host.rpc = Arc::new(GrantedMethods { rpc: self.0.rpc.clone(), methods: methods.unwrap_or_default() });
        }
        host.export(service).map(Arc::new)
    }
}

/// Allows calls of granted methods, and of the next link in the chain of any call.
struct GrantedMethods {
    rpc: Arc<StubRpc>,
    methods: Vec<String>,
}

impl Rpc for GrantedMethods {
    fn caller(&self, scope: Scope) -> Result<CallerInfo, ServiceError> {
        self.rpc.caller(scope)
    }

    fn next(&self, scope: Scope, params: Option<Blob>) -> Result<RpcReply, ServiceError> {
        self.rpc.next(scope, params)
    }

    fn call(&self, scope: Scope, method: String, params: Blob, account: As) -> Result<RpcReply, ServiceError> {
        if !self.methods.contains(&method) {
            return Err(ServiceError::new(ErrorKind::NotGranted, "The plugin may not call this method"));
        }
        self.rpc.call(scope, method, params, account)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_node_answers_with_values() {
        let answers: Map<String, Value> = serde_json::from_str(NODE).unwrap();
        assert_eq!(answers["getblockcount"], BLOCKS);
    }
}

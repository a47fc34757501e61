//! A plugin that keeps a number in its store and in a file of its folder, which only one instance may have open.

mod bench;

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;

use outrigger_sdk::options::PluginOptions;
use outrigger_sdk::service::Scope;
use outrigger_sdk::store::{Batch, open_store};
use outrigger_sdk::wire::Blob;
use outrigger_sdk::{Call, Host, Plugin, RpcError, methods, plugin};
use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};

const COUNT: &[u8] = b"count";

#[derive(PluginOptions)]
pub struct Options {
    /// The version of the store.
    #[option(default = 1)]
    version: u32,
    /// Whether the start is refused.
    #[option(default = false)]
    refuses: bool,
    /// Whether the file is locked.
    #[option(default = true)]
    locks: bool,
}

pub struct Keeper {
    host: Host,
    options: Options,
    /// The locked file. The lock ends when the instance is freed.
    file: Mutex<File>,
}

/// Opens the file as a single-file database does: no other instance can open it meanwhile.
fn open(folder: &str, locks: bool) -> Result<File, String> {
    let path = Path::new(folder).join("data");
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
    let file = file.map_err(|error| format!("{}: {error}", path.display()))?;
    if locks {
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| "another instance has the file".to_owned())?;
    }
    Ok(file)
}

#[plugin(
    id = "keeper",
    summary = "Keeps a number",
    services = ["store/1"],
    optional = ["wallet-read/1"],
    restartable,
    folder,
    methods = [self, bench]
)]
impl Plugin for Keeper {
    type Options = Options;

    fn new(host: Host, options: Options) -> Result<Self, String> {
        let about = host.about().map_err(|error| error.to_string())?;
        let file = Mutex::new(open(&about.folder.ok_or("no folder")?, options.locks)?);
        Ok(Self { host, options, file })
    }

    fn start(&self) -> Result<(), String> {
        open_store(&self.host, Scope::NONE, self.options.version, |_, _| Ok(()))?;
        if self.options.refuses { Err("told to refuse".to_owned()) } else { Ok(()) }
    }
}

fn number(bytes: Option<&[u8]>) -> u64 {
    bytes.and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[methods(category = "Test")]
impl Keeper {
    /// Adds one to the number, in the store and in the file, and gives both.
    #[method]
    fn keeperadd(&self, call: &Call<'_>) -> Result<Value, RpcError> {
        let failed = |error: std::io::Error| RpcError::internal(error.to_string());
        let file = self.file.lock().map_err(|_| RpcError::internal("poisoned"))?;
        let found = call.host.store.get(call.scope, vec![Blob(COUNT.to_vec())])?;
        let stored = number(found.first().and_then(|value| value.as_deref())) + 1;
        let mut bytes = [0; 8];
        let len = file.read_at(&mut bytes, 0).map_err(failed)?;
        let filed = number(bytes.get(..len)) + 1;
        file.write_all_at(&filed.to_le_bytes(), 0).map_err(failed)?;
        let mut batch = Batch::default();
        batch.put(COUNT, &stored.to_le_bytes());
        batch.commit_durably(call.host, call.scope)?;
        Ok(json!([stored, filed]))
    }

    /// Stores a value of this length.
    ///
    /// * `key` - The key.
    /// * `bytes` - The length.
    #[method]
    fn keeperput(call: &Call<'_>, key: String, bytes: u32) -> Result<Value, RpcError> {
        let mut batch = Batch::default();
        batch.put(key.as_bytes(), &vec![0x5a; bytes as usize]);
        batch.commit_durably(call.host, call.scope)?;
        Ok(Value::Null)
    }

    /// Gives the length of a value.
    ///
    /// * `key` - The key.
    #[method]
    fn keeperget(call: &Call<'_>, key: String) -> Result<Option<usize>, RpcError> {
        let found = call.host.store.get(call.scope, vec![Blob(key.into_bytes())])?;
        Ok(found.first().and_then(|value| Some(value.as_ref()?.len())))
    }

    /// Tells what the host says of the plugin, and how full the store is.
    #[method]
    fn keeperabout(call: &Call<'_>) -> Result<Value, RpcError> {
        let (about, usage) = (call.host.about()?, call.host.store.usage(call.scope)?);
        Ok(json!({
            "plugin": about.plugin,
            "network": about.network.to_core_arg(),
            "release": about.release,
            "folder": about.folder,
            "deadline": about.deadline_seconds,
            "max_answer": about.max_answer_bytes,
            "version": call.host.store.version(call.scope)?,
            "used": usage.bytes,
            "bound": usage.bound,
        }))
    }
}

outrigger_sdk::export_plugin!(Keeper);

//! `store/1`: the plugins' stores, one file each.

mod file;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use outrigger_service::store::{KeyRange, StoreChange, StoreRows, StoreUsage};
use outrigger_service::wire::{Blob, Encoded};
use outrigger_service::{ErrorKind, Result, Scope, ServiceError, Store};
use parking_lot::Mutex;

pub use file::{LAYOUT, MAX_STORE_MIB, StoreContents, StoreFile, StoreFileError, check_file};

/// The share of its bound, in percent, from which a store counts as nearly full.
const NEAR_PERCENT: u64 = 80;

/// The name of a store's folder, in the plugin's folder.
pub const STORE_FOLDER: &str = "store";

/// The stores that were opened since the host started.
pub struct Stores {
    /// The folder with one folder for each plugin.
    folder: PathBuf,
    open: Mutex<BTreeMap<String, Arc<PluginStore>>>,
}

struct PluginStore {
    plugin: String,
    file: StoreFile,
    /// In bytes.
    bound: AtomicU64,
    is_nearly_full: AtomicBool,
    writers: Mutex<Writers>,
}

/// The instances of a plugin that may change its store.
#[derive(Default)]
struct Writers {
    /// The instance that was created last.
    newest: u64,
    /// The instance that answers calls, if there is one.
    serving: Option<u64>,
}

impl Stores {
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, open: Mutex::default() }
    }

    /// The store of a plugin, for a new instance. Opened for the first one. `bound` is in bytes.
    pub fn of(&self, plugin: &str, instance: u64, bound: u64) -> StoreService {
        let mut open = self.open.lock();
        let store = match open.get(plugin) {
            Some(store) => Ok(store.clone()),
            None => self.open(plugin).inspect_err(|error| {
                tracing::error!(plugin, error = error.detail, "the plugin's store cannot be opened");
            }),
        };
        if let Ok(store) = &store {
            store.bound.store(bound, Ordering::Relaxed);
            store.writers.lock().newest = instance;
            open.insert(plugin.to_owned(), store.clone());
        }
        StoreService { store, instance }
    }

    fn open(&self, plugin: &str) -> Result<Arc<PluginStore>> {
        let file = StoreFile::open(&self.folder.join(plugin).join(STORE_FOLDER))?;
        let (bound, is_nearly_full, writers) = Default::default();
        Ok(Arc::new(PluginStore { plugin: plugin.to_owned(), file, bound, is_nearly_full, writers }))
    }

    /// Sets the instances that answer calls from now on, each with its plugin's id.
    pub fn serving(&self, running: &[(&str, u64)]) {
        for (plugin, store) in &*self.open.lock() {
            let serving = running.iter().find(|(of, _)| of == plugin);
            store.writers.lock().serving = serving.map(|(_, instance)| *instance);
        }
    }

    /// The plugins whose stores are open.
    pub fn plugins(&self) -> Vec<String> {
        self.open.lock().keys().cloned().collect()
    }

    /// Copies the store of a plugin to an empty file; `None` if it is not open.
    pub fn copy_out(&self, plugin: &str, to: &mut File) -> Option<std::result::Result<StoreContents, StoreFileError>> {
        let store = self.open.lock().get(plugin).cloned()?;
        Some(store.file.copy_out(to))
    }

    /// How full the stores are, by plugin.
    pub fn usage(&self) -> Vec<(String, StoreUsage)> {
        let open: Vec<_> = self.open.lock().values().cloned().collect();
        open.iter().filter_map(|store| Some((store.plugin.clone(), store.usage().ok()?))).collect()
    }
}

impl PluginStore {
    fn usage(&self) -> Result<StoreUsage> {
        Ok(StoreUsage { bytes: self.file.usage()?, bound: self.bound.load(Ordering::Relaxed) })
    }

    fn commit(&self, instance: u64, change: &StoreChange) -> Result<()> {
        let mut used = 0;
        self.file.commit(change, |before, after| {
            used = after;
            self.check_writer(instance)?;
            self.check_bound(before, after)
        })?;
        self.note(used);
        Ok(())
    }

    fn check_writer(&self, instance: u64) -> Result<()> {
        let Writers { newest, serving } = *self.writers.lock();
        if serving.unwrap_or(newest) == instance {
            return Ok(());
        }
        let detail = format!(
            "another instance of the plugin '{}' writes its store; with reload = \"after\", each ends before the next one starts",
            self.plugin
        );
        Err(ServiceError::new(ErrorKind::Stale, detail))
    }

    /// A store that is too large may still shrink.
    fn check_bound(&self, before: u64, after: u64) -> Result<()> {
        let bound = self.bound.load(Ordering::Relaxed);
        if after <= bound.max(before) {
            return Ok(());
        }
        let mib = bound >> 20;
        let detail = format!(
            "the store of the plugin '{}' may take {mib} MiB (max_store_mib), so nothing was stored",
            self.plugin
        );
        Err(ServiceError::new(ErrorKind::Refused, detail))
    }

    /// Logs when the store becomes nearly full.
    fn note(&self, used: u64) {
        let bound = self.bound.load(Ordering::Relaxed);
        let is_near = used.saturating_mul(100) >= bound.saturating_mul(NEAR_PERCENT);
        if !self.is_nearly_full.swap(is_near, Ordering::Relaxed) && is_near {
            let plugin = &self.plugin;
            tracing::warn!(plugin, used, bound, "the plugin's store is {NEAR_PERCENT} % full (max_store_mib)");
        }
    }
}

/// `store/1` of one instance.
pub struct StoreService {
    /// The store, or why it was not opened.
    store: Result<Arc<PluginStore>>,
    instance: u64,
}

impl StoreService {
    fn with<T>(&self, _: Scope, run: impl FnOnce(&PluginStore) -> Result<T>) -> Result<T> {
        run(self.store.as_deref().map_err(Clone::clone)?)
    }
}

#[deny(clippy::missing_trait_methods)]
impl Store for StoreService {
    through! { with:
        fn get(keys: Vec<Blob>) -> Vec<Option<Blob>> = |store| store.file.get(&keys);
        fn range(range: KeyRange, limit: u32, reverse: bool) -> Encoded<StoreRows> =
            |store| store.file.range(&range, limit, reverse);
        fn version() -> u32 = |store| store.file.version();
        fn usage() -> StoreUsage = |store| store.usage();
    }

    fn commit(&self, scope: Scope, change: StoreChange) -> Result<()> {
        self.with(scope, |store| store.commit(self.instance, &change))
    }
}

#[cfg(test)]
mod tests;

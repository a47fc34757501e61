//! Removes the former secrets that a killed process left in the files of wallets that are not loaded.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use outrigger_service::Result as ServiceResult;

use super::files;
use super::live::Wallet;
use super::loading::CLOSING_PATIENCE;
use super::manager::WalletManager;
use super::store::Store;

impl WalletManager {
    /// Starts a thread that removes former secrets from wallets that are not loaded.
    pub fn scrub_unloaded(self: &Arc<Self>) -> io::Result<()> {
        let (manager, dir) = (Arc::downgrade(self), self.dir.clone());
        let scrub_all = move || {
            let has_note = |name: &String| files::folder(&dir, name).is_ok_and(|at| files::may_have_former_key(&at));
            for name in files::list(&dir).unwrap_or_default().into_iter().filter(has_note) {
                let Some(manager) = manager.upgrade() else { return };
                if let Err(error) = manager.scrub_unloaded_wallet(&name) {
                    tracing::warn!(wallet = name, %error, "a former key may still be in the wallet's file: load the wallet");
                }
            }
        };
        thread::Builder::new().name("former keys".into()).spawn(scrub_all).map(drop)
    }

    fn scrub_unloaded_wallet(&self, name: &str) -> ServiceResult<()> {
        let _searching = self.searching.lock();
        // An operation that has reserved the name, and a load, remove them too.
        if self.reserved_names.lock().contains(name)
            || self.follower.named(name).is_some()
            || self.shared.stopping.load(Ordering::Relaxed)
        {
            return Ok(());
        }
        let folder = files::folder(&self.dir, name)?;
        let store = Store::open(&folder, &self.shared.settings)?;
        let closing = store.env.closing();
        let wallet = Wallet::of_chain(name.to_owned(), store, self.shared.clone(), false)?;
        wallet.scrub();
        self.follower.remove(&wallet);
        drop(wallet);
        if !closing.clone().wait_timeout(CLOSING_PATIENCE) {
            self.closing.lock().insert(name.to_owned(), closing);
        }
        Ok(())
    }
}

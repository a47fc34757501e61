//! An instance's grants of wallets and files. They bound the calls of every caller.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use outrigger_base::client_files::Folders;
use outrigger_service::{ErrorKind, Result, ServiceError};

/// An instance's grants. The default is everything.
#[derive(Clone, Default, Debug)]
pub struct GrantedAccess {
    /// The user name for the instance's work outside of calls: `plugin:ID`.
    pub user: String,
    /// The wallets that the instance may use; `None` for all.
    pub wallets: Option<Arc<[String]>>,
    /// The folders in which the host may read for the instance; `None` for all that the caller may use.
    pub reads: Folders,
    /// The folders in which the host may write for the instance; `None` for all that the caller may use.
    pub writes: Folders,
}

impl GrantedAccess {
    pub fn may_use(&self, wallet: &str) -> bool {
        self.wallets.as_ref().is_none_or(|granted| granted.iter().any(|name| name == wallet))
    }

    /// The granted wallet, if it is only one.
    pub fn only_wallet(&self) -> Option<&str> {
        match self.wallets.as_deref() {
            Some([only]) => Some(only),
            _ => None,
        }
    }
}

pub fn within_both(user: &Folders, plugin: &Folders) -> Folders {
    let (Some(user), Some(plugin)) = (user, plugin) else { return user.clone().or_else(|| plugin.clone()) };
    let real = |folders: &Arc<[PathBuf]>| -> Vec<PathBuf> {
        folders.iter().filter_map(|folder| fs::canonicalize(folder).ok()).collect()
    };
    let (user, plugin) = (real(user), real(plugin));
    let inner = |one: &PathBuf, other: &PathBuf| match (one.starts_with(other), other.starts_with(one)) {
        (true, _) => Some(one.clone()),
        (_, true) => Some(other.clone()),
        _ => None,
    };
    Some(user.iter().flat_map(|one| plugin.iter().filter_map(move |other| inner(one, other))).collect())
}

/// The wallets for which an instance may use a service.
#[derive(Clone, Debug)]
pub struct GrantedWallets {
    /// Such as `wallet-pay/1`.
    pub service: &'static str,
    /// `None` for all.
    pub wallets: Option<Vec<String>>,
}

impl GrantedWallets {
    /// [`ErrorKind::NotGranted`] if the instance may not use the service for the wallet.
    pub fn check(&self, wallet: &str) -> Result<()> {
        if self.wallets.as_ref().is_none_or(|granted| granted.iter().any(|name| name == wallet)) {
            return Ok(());
        }
        let refused = format!("The plugin may not use {} for the wallet \"{wallet}\"", self.service);
        Err(ServiceError::new(ErrorKind::NotGranted, refused))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_user_and_plugin_are_those_in_both() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| fs::canonicalize(root.path()).unwrap().join(name);
        ["a/b/c", "d"].iter().for_each(|name| fs::create_dir_all(at(name)).unwrap());
        let some = |names: &[&str]| -> Folders { Some(names.iter().map(|name| at(name)).collect()) };
        assert_eq!(within_both(&None, &None), None);
        assert_eq!(within_both(&some(&["a"]), &None), some(&["a"]));
        assert_eq!(within_both(&None, &some(&["d"])), some(&["d"]));
        assert_eq!(within_both(&some(&["a", "d"]), &some(&["a/b/c", "a/b"])), some(&["a/b/c", "a/b"]));
        assert_eq!(within_both(&some(&["a/b"]), &some(&["a", "d"])), some(&["a/b"]));
        assert_eq!(within_both(&some(&["a"]), &some(&["d", "missing"])), some(&[]));
    }
}

//! Which host is called: the folder of its network's data, and where it listens.

use std::path::{Path, PathBuf};

use super::connection::CallError;
use crate::config::{CUSTOM_SIGNET, expand_home};
use crate::run::ADDRESS_FILE;

/// The network where nothing says another.
const DEFAULT: &str = "regtest";

/// The networks, by the names of their folders.
const NETWORKS: [&str; 5] = ["main", "test", "testnet4", "signet", "regtest"];

/// Where the host of the embedded chain listens by default.
const DEFAULT_URL: &str = "http://127.0.0.1:18443";

/// The folder of a network's data: of the network named, else of the only one that a host has run on.
///
/// # Errors
/// When there are several; when nobody says where the home directory is.
pub fn folder(datadir: &Path, network: Option<&str>) -> Result<PathBuf, CallError> {
    let datadir = expand_home(datadir)?;
    if let Some(network) = network {
        return Ok(datadir.join(network));
    }
    let folders = std::fs::read_dir(&datadir).into_iter().flatten().flatten();
    let names = folders.filter_map(|folder| folder.file_name().into_string().ok());
    let has_run = |name: &String| {
        let is_network = NETWORKS.contains(&name.as_str()) || name.starts_with(CUSTOM_SIGNET);
        is_network && datadir.join(name).join(ADDRESS_FILE).exists()
    };
    let mut found: Vec<String> = names.filter(has_run).collect();
    found.sort_unstable();
    match found.as_slice() {
        [] => Ok(datadir.join(DEFAULT)),
        [only] => Ok(datadir.join(only)),
        several => Err(CallError::Networks(several.join(", "))),
    }
}

/// Where the host of this folder listens, as it said when it last started.
pub fn url(folder: &Path) -> String {
    let said = std::fs::read_to_string(folder.join(ADDRESS_FILE)).ok();
    let first = said.as_deref().and_then(|said| said.lines().next());
    first.map_or_else(|| DEFAULT_URL.to_owned(), |address| format!("http://{}", address.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_finds_the_only_network_and_where_its_host_listens() {
        let datadir = tempfile::tempdir().unwrap();
        let of = |network| folder(datadir.path(), network);
        assert_eq!(of(None).unwrap(), datadir.path().join("regtest"));
        assert_eq!(url(&of(None).unwrap()), DEFAULT_URL);
        let ran = |network: &str, address: &str| {
            std::fs::create_dir(datadir.path().join(network)).unwrap();
            std::fs::write(datadir.path().join(network).join(ADDRESS_FILE), address).unwrap();
        };
        ran("main", "127.0.0.1:8337\n[::1]:8337\n");
        assert_eq!(of(None).unwrap(), datadir.path().join("main"));
        assert_eq!(url(&of(None).unwrap()), "http://127.0.0.1:8337");
        ran("signet_54d26fbd", "127.0.0.1:1");
        ran("other", "127.0.0.1:1");
        assert!(of(None).unwrap_err().to_string().contains("main, signet_54d26fbd"));
        assert_eq!(of(Some("signet")).unwrap(), datadir.path().join("signet"));
    }
}

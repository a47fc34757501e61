//! The host that a command calls: the folder of its network's data, and its URL.

use std::path::{Path, PathBuf};

use clap::Args;
use outrigger_base::paths::absolute;

use super::connection::{CallError, Connection};
use crate::config::CUSTOM_SIGNET;
use crate::run::{ADDRESS_FILE, COOKIE_FILE};

/// The default network.
const DEFAULT: &str = "regtest";

/// The networks, by the names of their folders.
const NETWORKS: [&str; 5] = ["main", "test", "testnet4", "signet", "regtest"];

/// Where the host of the embedded chain listens by default.
const DEFAULT_URL: &str = "http://127.0.0.1:18443";

/// The host that a command calls.
#[derive(Args)]
pub struct HostAt {
    /// The host's data directory, where its cookie is.
    #[arg(long, default_value = "~/.outrigger")]
    pub datadir: PathBuf,
    /// The network of the host. By default the command takes the only network in the data directory, or the network of the
    /// only running host.
    #[arg(long)]
    pub network: Option<String>,
    /// A file with the authority of the host's certificate, in PEM, for a host with TLS; by default the system's authorities.
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
}

impl HostAt {
    /// The folder of the host's data.
    pub fn folder(&self) -> Result<PathBuf, CallError> {
        folder(&self.datadir, self.network.as_deref())
    }

    /// A connection to `at`, by default the address that the host last started with.
    pub fn connect(&self, at: Option<&str>, wallet: Option<&str>) -> Result<Connection, CallError> {
        let folder = self.folder()?;
        let url = at.map_or_else(|| url(&folder), str::to_owned);
        Ok(Connection::with_cookie(&folder, &url, wallet)?.trusting(self.ca_file.as_deref()))
    }
}

/// The folder of a network's data. Without a name, this is the only network in the data directory, or the network of the only
/// running host: a host that shuts down cleanly removes its cookie.
///
/// # Errors
/// There are several networks, or the home directory is unknown.
pub fn folder(datadir: &Path, network: Option<&str>) -> Result<PathBuf, CallError> {
    let datadir = absolute(datadir)?;
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
    let runs = |name: &String| datadir.join(name).join(COOKIE_FILE).exists();
    if let [only] = found.iter().filter(|name| runs(name)).collect::<Vec<_>>()[..] {
        return Ok(datadir.join(only));
    }
    match found.as_slice() {
        [] => Ok(datadir.join(DEFAULT)),
        [only] => Ok(datadir.join(only)),
        several => Err(CallError::Networks(several.join(", "))),
    }
}

/// The URL at which the host of this folder listened when it last started.
pub fn url(folder: &Path) -> String {
    let said = std::fs::read_to_string(folder.join(ADDRESS_FILE)).ok();
    let lines = || said.iter().flat_map(|said| said.lines());
    // A Unix socket needs no certificate.
    let best = lines().find(|line| line.starts_with("unix:")).or_else(|| lines().next());
    best.map_or(DEFAULT_URL, str::trim).to_owned()
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
        ran("main", "http://127.0.0.1:8337\nhttp://[::1]:8337\n");
        assert_eq!(of(None).unwrap(), datadir.path().join("main"));
        assert_eq!(url(&of(None).unwrap()), "http://127.0.0.1:8337");
        ran("signet_54d26fbd", "https://127.0.0.1:1\n");
        assert_eq!(url(&datadir.path().join("signet_54d26fbd")), "https://127.0.0.1:1");
        std::fs::write(datadir.path().join("main").join(ADDRESS_FILE), "https://127.0.0.1:1/\nunix:/rpc.sock\n")
            .unwrap();
        assert_eq!(url(&datadir.path().join("main")), "unix:/rpc.sock");
        ran("other", "http://127.0.0.1:1");
        assert!(of(None).unwrap_err().to_string().contains("main, signet_54d26fbd"));
        assert_eq!(of(Some("signet")).unwrap(), datadir.path().join("signet"));
        let cookie =
            |network: &str| std::fs::write(datadir.path().join(network).join(COOKIE_FILE), "user:secret").unwrap();
        cookie("main");
        assert_eq!(of(None).unwrap(), datadir.path().join("main"));
        cookie("signet_54d26fbd");
        assert!(of(None).is_err());
    }
}

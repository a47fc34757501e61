//! Reads the configuration and applies the command line's changes.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bitcoin::Network;
use outrigger_base::paths::absolute;
use outrigger_bitcoind::{Rpc, chain_of, cookie_of, default_ports};
use outrigger_plugins::Routes;
use outrigger_plugins::file::candidates;
use outrigger_plugins::linked::Sources;
use outrigger_rpc::ListenAddress;
use outrigger_upstream::{Endpoint, Login, Upstream};

use super::RunArgs;
use super::sources::{own_folders, sources};
use crate::config::{BackendConfig, Config, ConfigError, FOR_BITCOIND, LoadedConfig};
use crate::groups;

/// The default RPC port with the embedded chain: bitcoind's regtest port.
const EMBEDDED_PORT: u16 = 18443;

/// With a bitcoind, the default RPC port is the node's default port plus this.
const PORT_OFFSET: u16 = 5;

const BITCOIND_FOLDER: &str = "~/.bitcoin";

/// Reads the configuration.
///
/// # Errors
/// The configuration is invalid, or the host must ask the node for its network and cannot.
pub fn configuration(args: &RunArgs) -> Result<LoadedConfig, ConfigError> {
    let mut loaded = match &args.bitcoind {
        None => LoadedConfig::read(args.config.as_deref(), &args.set)?,
        Some(url) => for_node(url, args)?,
    };
    let datadir = absolute(args.datadir.as_deref().unwrap_or(&loaded.config.datadir));
    loaded.config.datadir = datadir.map_err(|error| loaded.error("datadir", "", error.to_string()))?;
    if !args.rpc_listen.is_empty() {
        loaded.config.rpc.listen.clone_from(&args.rpc_listen);
        loaded.check_proxies()?;
    }
    if let Some(network) = &args.network {
        loaded.set_network(network)?;
    }
    if args.without_third_parties {
        leave_out_third_parties(&mut loaded.config, &sources(args));
    }
    check_addresses(&loaded)?;
    Ok(loaded)
}

/// Refuses an address that is listed twice, in `rpc.listen` or also in `metrics.listen`.
fn check_addresses(loaded: &LoadedConfig) -> Result<(), ConfigError> {
    let listen = loaded.config.listen();
    let is_same = |one: &ListenAddress, other: &ListenAddress| match (one.socket(), other.socket()) {
        (Some(one), Some(other)) => one == other && one.port() != 0,
        _ => one == other,
    };
    let is_repeated =
        |(at, address): &(usize, &ListenAddress)| listen.iter().take(*at).any(|one| is_same(one, address));
    if let Some((_, address)) = listen.iter().enumerate().find(is_repeated) {
        return Err(loaded.error("rpc.listen", "", format!("{address} is listed twice")));
    }
    let is_shared =
        |metrics: &SocketAddr| metrics.port() != 0 && listen.iter().any(|one| one.socket() == Some(*metrics));
    let shared = loaded.config.metrics.listen.filter(is_shared);
    match shared {
        Some(metrics) => {
            let reason = format!("clients have {metrics} (rpc.listen); choose another port for metrics");
            Err(loaded.error("metrics.listen", "", reason))
        }
        None => Ok(()),
    }
}

/// Disables all plugins except the bundled groups, and removes them from the routes. Their entries in `plugins` stay. A plugin is a
/// bundled group if it has a group's id, and its code is the program's own or the group's library of the installation.
fn leave_out_third_parties(config: &mut Config, sources: &Sources) {
    let folders: Vec<_> = own_folders().collect();
    let is_own = |id: &str, path: PathBuf| {
        let path = path.canonicalize().ok();
        path.is_some() && candidates(id, &folders).iter().any(|own| own.canonicalize().ok() == path)
    };
    let mut bundled = Vec::new();
    for plugin in &mut config.plugins {
        let id = match sources.read(plugin) {
            Ok(found) => {
                Some(found.manifest().id.clone()).filter(|id| found.path().is_none_or(|path| is_own(id, path)))
            }
            // The start says why a group is missing.
            Err(_) => Some(plugin.file.clone()),
        };
        let id = id.filter(|id| groups::is_bundled(id));
        plugin.enabled &= id.is_some();
        bundled.extend(id);
    }
    let Routes { chains, wrap } = &mut config.routes;
    chains.values_mut().for_each(|plugins| plugins.retain(|id| bundled.contains(id)));
    chains.retain(|_, plugins| !plugins.is_empty());
    wrap.retain(|wrap| bundled.contains(&wrap.plugin));
}

/// The built-in configuration for a bitcoind, with the URL, the cookie and the network of this node.
fn for_node(url: &str, args: &RunArgs) -> Result<LoadedConfig, ConfigError> {
    // Without the built-in cookie path, `login` uses the command line's credentials or the cookie in bitcoind's folder.
    let without_cookie: Vec<&str> = FOR_BITCOIND.lines().filter(|line| !line.starts_with("cookie = ")).collect();
    let mut loaded = LoadedConfig::read_or(None, &without_cookie.join("\n"), &args.set)?;
    let refuse = |reason: String| ConfigError::of_whole("--bitcoind", reason);
    let endpoint: Endpoint = url.parse().map_err(|error| refuse(format!("{error}")))?;
    if let Some(backend) = &mut loaded.config.backend {
        backend.url = url.to_owned();
        if args.network.is_none() {
            let login = login(backend).map_err(&refuse)?;
            let rpc =
                Rpc::start(Arc::new(Upstream::new(endpoint, login, 1))).map_err(|error| refuse(error.to_string()))?;
            let chain =
                chain_of(&rpc).map_err(|error| refuse(format!("{url} cannot be asked for its network: {error}")))?;
            if backend.signet_challenge.is_none() && chain.custom_signet_magic().is_some() {
                backend.signet_challenge = chain.signet_challenge.as_ref().map(|challenge| challenge.to_hex_string());
            }
            loaded.set_network(chain.network().unwrap_or(Network::Bitcoin).to_core_arg())?;
        }
    }
    Ok(loaded)
}

/// The host's credentials for the node. The error names the setting.
pub fn known_login(loaded: &LoadedConfig, backend: &BackendConfig) -> Result<Login, ConfigError> {
    let login = login(backend).map_err(|reason| loaded.error("backend.cookie", "", reason))?;
    // A cookie may be missing until the node starts.
    if let Login::Password { .. } = &login {
        login.read().map_err(|error| loaded.error("backend.password_file", "", error.to_string()))?;
    }
    Ok(login)
}

/// The host's credentials for the node.
///
/// # Errors
/// There is no cookie in bitcoind's folder, or no home directory.
pub fn login(backend: &BackendConfig) -> Result<Login, String> {
    if let (Some(user), Some(file)) = (&backend.user, &backend.password_file) {
        return Ok(Login::Password { user: user.clone(), file: file.to_path_buf() });
    }
    match &backend.cookie {
        Some(cookie) => Ok(Login::Cookie(cookie.to_path_buf())),
        None => default_login(&backend.url),
    }
}

/// The cookie of the node at this URL, in bitcoind's folder.
pub fn default_login(url: &str) -> Result<Login, String> {
    let folder = absolute(Path::new(BITCOIND_FOLDER)).map_err(|error| error.to_string())?;
    let port = url.parse::<Endpoint>().map_or(0, |endpoint| endpoint.port());
    let missing = || format!("no cookie in {}: name it by backend.cookie, or start bitcoind", folder.display());
    cookie_of(&folder, port).map(Login::Cookie).ok_or_else(missing)
}

impl Config {
    pub fn listen(&self) -> Vec<ListenAddress> {
        let v4 = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into();
        let of_network = |(network, _): &(Network, u16)| network.to_core_arg() == self.network;
        match &self.backend {
            _ if !self.rpc.listen.is_empty() => self.rpc.listen.clone(),
            None => vec![v4(EMBEDDED_PORT)],
            Some(_) => {
                let port = default_ports().find(of_network).map_or(EMBEDDED_PORT, |(_, port)| port) + PORT_OFFSET;
                vec![v4(port), SocketAddr::from((Ipv6Addr::LOCALHOST, port)).into()]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::NotifyConfig;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: RunArgs,
    }

    fn read(line: &str) -> (Config, RunArgs) {
        let line = format!("run --config config/regtest.toml --set backend.url=http://127.0.0.1:1 {line}");
        let args = <Line as clap::Parser>::try_parse_from(line.split_whitespace()).unwrap().args;
        (configuration(&args).map_err(|error| error.to_string()).unwrap().config, args)
    }

    #[test]
    fn relative_paths_of_settings_and_arguments_become_absolute() {
        let (config, args) = read(
            "--datadir x/data --plugin-dir x/a --plugin-dir ./x/b --dev-dir x/dev --set audit.file=x/audit \
             --set backup.folder=x/backups --set backend.user=alice --set backend.password_file=x/password \
             --set rpc.bitcoin_conf=x/conf --set rpc.tls.certificate=x/certificate --set rpc.tls.key=x/key \
             --set rpc.tls.client_ca=x/ca --set plugins=[{file='x/plugin'},{file='plugin.so'},{file='mining'}]",
        );
        let (other, _) = read("--set datadir=x/data --set backend.cookie=x/cookie");
        let notify: NotifyConfig = toml::from_str("startupnotify = ['x/program', 'x/argument', 'sh']").unwrap();
        let (tls, backend) = (config.rpc.tls.unwrap(), config.backend.unwrap());
        let here = std::env::current_dir().unwrap();
        for (relative, found) in [
            ("config/regtest.toml", args.config.as_deref()),
            ("x/data", Some(&*config.datadir)),
            ("x/data", Some(&*other.datadir)),
            ("x/a", args.plugin_dir.first().map(|folder| &**folder)),
            ("x/b", args.plugin_dir.last().map(|folder| &**folder)),
            ("x/dev", args.dev_dir.as_deref()),
            ("x/audit", config.audit.file.as_deref()),
            ("x/backups", config.backup.folder.as_deref()),
            ("x/password", backend.password_file.as_deref()),
            ("x/cookie", other.backend.as_ref().and_then(|backend| backend.cookie.as_deref())),
            ("x/conf", config.rpc.bitcoin_conf.as_deref()),
            ("x/certificate", Some(&*tls.certificate)),
            ("x/key", Some(&*tls.key)),
            ("x/ca", tls.client_ca.as_deref()),
            ("x/plugin", config.plugins.first().map(|plugin| Path::new(&plugin.file))),
            ("plugin.so", config.plugins.get(1).map(|plugin| Path::new(&plugin.file))),
            ("x/program", notify.startupnotify.first().map(Path::new)),
        ] {
            assert_eq!(found, Some(&*here.join(relative)), "{relative}");
        }
        assert_eq!(config.plugins[2].file, "mining");
        assert_eq!(notify.startupnotify[1..], ["x/argument", "sh"]);
    }

    #[test]
    fn rpc_listen_is_an_address_a_list_or_the_networks_port_plus_5() {
        let listen = |built_in: &str, sets: &[&str]| {
            let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
            let config = LoadedConfig::read_or(None, built_in, &sets).map_err(|error| error.to_string())?.config;
            Ok::<_, String>(config.listen().iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(listen("", &[]).unwrap(), "127.0.0.1:18443");
        assert_eq!(listen(FOR_BITCOIND, &[]).unwrap(), "127.0.0.1:8337 [::1]:8337");
        assert_eq!(listen(FOR_BITCOIND, &["network=signet"]).unwrap(), "127.0.0.1:38337 [::1]:38337");
        assert_eq!(listen("", &["rpc.listen=10.0.0.1:1"]).unwrap(), "10.0.0.1:1");
        assert_eq!(listen("", &["rpc.listen=['10.0.0.1:1', '[::]:2']"]).unwrap(), "10.0.0.1:1 [::]:2");
        assert_eq!(listen("", &["rpc.listen=unix:/run/rpc.sock"]).unwrap(), "unix:/run/rpc.sock");
        for wrong in ["rpc.listen=unix:rpc.sock", "rpc.listen=localhost:8332"] {
            assert!(listen("", &[wrong]).unwrap_err().contains("is no address"), "{wrong}");
        }
        assert!(listen("", &["rpc.listen=8332"]).unwrap_err().contains("expected an address and port"));
    }
}

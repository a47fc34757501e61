//! The command-line options of `run`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

/// The command-line options of `run`.
#[derive(Args, Clone, Debug)]
pub struct RunArgs {
    /// The configuration file; without one, the built-in configuration.
    #[arg(long)]
    pub config: Option<PathBuf>,
    /// The data directory.
    #[arg(long)]
    pub datadir: Option<PathBuf>,
    /// The network.
    #[arg(long)]
    pub network: Option<String>,
    /// The running bitcoind to stand in front of, as http://127.0.0.1:8332; its cookie is looked for in ~/.bitcoin, and it is
    /// asked for its network.
    #[arg(long, value_name = "URL", conflicts_with = "config")]
    pub bitcoind: Option<String>,
    /// An address to listen on; port 0 lets the system choose. May be given several times.
    #[arg(long, value_name = "ADDR:PORT")]
    pub rpc_listen: Vec<SocketAddr>,
    /// A folder to search for plugins, before the executable's own and ../lib/outrigger from there; may be given several
    /// times.
    #[arg(long, value_name = "DIR")]
    pub plugin_dir: Vec<PathBuf>,
    /// Overrides a setting; may be given several times.
    #[arg(long, value_name = "SECTION.KEY=VALUE")]
    pub set: Vec<String>,
    /// Starts none but the bundled groups, and leaves other plugins out of all routes.
    #[arg(long)]
    pub without_third_parties: bool,
    /// Checks the configuration, the plugins and their grants, and starts nothing.
    #[arg(long)]
    pub check: bool,
    /// Gone, and refused with the reason.
    #[arg(long, hide = true)]
    pub verify: bool,
}

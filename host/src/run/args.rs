use std::path::PathBuf;

use clap::{Args, ValueEnum};
use outrigger_rpc::ListenAddress;

use crate::config::path_argument;

/// The command-line options of `run`.
#[derive(Args, Clone)]
pub struct RunArgs {
    /// The configuration file; by default, the built-in configuration.
    #[arg(long, value_parser = path_argument())]
    pub config: Option<PathBuf>,
    /// The data directory.
    #[arg(long, value_parser = path_argument())]
    pub datadir: Option<PathBuf>,
    /// The network.
    #[arg(long)]
    pub network: Option<String>,
    /// The URL of a running bitcoind to forward calls to, as http://127.0.0.1:8332; the host looks for its cookie in ~/.bitcoin, and
    /// asks it for its network.
    #[arg(long, value_name = "URL", conflicts_with = "config")]
    pub bitcoind: Option<String>,
    /// An address to listen on, or unix: and the path of a socket; with port 0, the system chooses a port. May be given several times.
    #[arg(long, value_name = "ADDR:PORT")]
    pub rpc_listen: Vec<ListenAddress>,
    /// A folder to search for plugins, before the executable's own folder and ../lib/outrigger relative to it; may be given
    /// several times.
    #[arg(long, value_name = "DIR", value_parser = path_argument())]
    pub plugin_dir: Vec<PathBuf>,
    /// Overrides a setting; may be given several times.
    #[arg(long, value_name = "SECTION.KEY=VALUE")]
    pub set: Vec<String>,
    /// Starts only the bundled groups, and leaves other plugins out of all routes.
    #[arg(long)]
    pub without_third_parties: bool,
    /// Checks for errors that would make the start fail, and starts nothing. With `--check=restart`, a host may be running on the
    /// data directory; its ports are then not tried.
    #[arg(long, value_name = "BEFORE", num_args = 0..=1, require_equals = true, default_missing_value = "start")]
    pub check: Option<Before>,
    /// The folder of `plugin dev`: searched like a --plugin-dir, but the program's own copies stay in use.
    #[arg(long, hide = true, value_parser = path_argument())]
    pub dev_dir: Option<PathBuf>,
}

/// What a check precedes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Before {
    /// Before a start.
    Start,
    /// Before the restart of a host that may run.
    Restart,
}

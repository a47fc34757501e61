//! The command-line options of `run`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use outrigger_plugins::linked::LinkedPlugin;
use outrigger_rpc::ListenAddress;

/// The command-line options of `run`.
#[derive(Args, Clone)]
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
    /// An address to listen on, or unix: and the path of a socket; port 0 lets the system choose. May be given several times.
    #[arg(long, value_name = "ADDR:PORT")]
    pub rpc_listen: Vec<ListenAddress>,
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
    /// Finds everything for which the start would fail, and starts nothing. With `--check=restart` a host may run on the data
    /// directory, and ports are not tried then.
    #[arg(long, value_name = "BEFORE", num_args = 0..=1, require_equals = true, default_missing_value = "start")]
    pub check: Option<Before>,
    /// Gone, and refused with the reason.
    #[arg(long, hide = true)]
    pub verify: bool,
    /// The folder of `plugin dev`: searched like those of --plugin-dir, but the program's own copies stay in use.
    #[arg(long, hide = true)]
    pub dev_dir: Option<PathBuf>,
    /// The plugins that the program links.
    #[arg(skip)]
    pub linked: &'static [LinkedPlugin],
}

/// The moment of a check.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Before {
    /// Before a start.
    Start,
    /// Before the restart of a host that may run.
    Restart,
}

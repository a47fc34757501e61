//! What `run` is told on the command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

/// What `run` is told on the command line.
#[derive(Args, Clone, Debug)]
pub struct RunArgs {
    /// The configuration file; without one, the built-in configuration.
    #[arg(long)]
    pub config: Option<PathBuf>,
    /// Where everything is kept.
    #[arg(long)]
    pub datadir: Option<PathBuf>,
    /// The chain.
    #[arg(long)]
    pub network: Option<String>,
    /// The address to listen on; port 0 lets the system choose.
    #[arg(long, value_name = "ADDR:PORT")]
    pub rpc_listen: Option<SocketAddr>,
    /// A folder to look for plugins in, before the executable's own; may be given several times.
    #[arg(long, value_name = "DIR")]
    pub plugin_dir: Vec<PathBuf>,
    /// A setting to change; may be given several times.
    #[arg(long, value_name = "SECTION.KEY=VALUE")]
    pub set: Vec<String>,
    /// Checks the configuration, the plugins and their grants, and starts nothing.
    #[arg(long)]
    pub check: bool,
    /// Checks every page and row of the chain before it is used, also after a stop in order.
    #[arg(long)]
    pub verify: bool,
}

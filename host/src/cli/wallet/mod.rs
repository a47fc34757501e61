//! `outrigger wallet`: brings wallets of a bitcoind here.

mod compare;
mod error;
mod node;
mod put;
mod side;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bitcoin::BlockHash;
use clap::{Args, Subcommand};
use outrigger_bitcoind::default_ports;
use outrigger_node_wallet::{Content, read};
use outrigger_upstream::Login;
use serde_json::json;
use zeroize::Zeroizing;

use super::call::connection::Connection;
use super::call::place;
use super::call::terminal::HiddenInput;
use super::show;
use crate::config::expand_home;
use crate::run::default_login;
use error::MoveError;
use side::Side;

/// Brings wallets of a bitcoind here.
#[derive(Subcommand)]
pub enum WalletCommand {
    /// Copies a descriptor wallet that a running bitcoind has loaded, and compares the copy with it.
    ImportFromNode(FromNode),
    /// Copies a descriptor wallet from bitcoind's file of it (wallet.dat), which is only read.
    ImportFromFile(FromFile),
}

/// Where the copy goes.
#[derive(Args)]
struct Target {
    /// The name of the copy; by default that of the original.
    #[arg(long, value_name = "NAME")]
    r#as: Option<String>,
    /// Imports into a wallet of the host that is there already, as after a copy that did not come to its end.
    #[arg(long)]
    into_existing: bool,
    /// The host's data directory, where its cookie is.
    #[arg(long, default_value = "~/.outrigger")]
    datadir: PathBuf,
    /// The network of the host; by default the only one that a host has run on in the data directory.
    #[arg(long)]
    network: Option<String>,
}

/// What `import-from-node` is told on the command line.
#[derive(Args)]
pub struct FromNode {
    /// The wallet's name at the node.
    name: String,
    /// The node; by default at the default port of the host's network.
    #[arg(long, value_name = "URL")]
    bitcoind: Option<String>,
    /// The node's cookie; by default where bitcoind puts it.
    #[arg(long, value_name = "FILE")]
    bitcoind_cookie: Option<PathBuf>,
    /// The user at the node, instead of the cookie's, with the password in the file of --bitcoind-password-file.
    #[arg(long, value_name = "NAME", requires = "bitcoind_password_file")]
    bitcoind_user: Option<String>,
    /// The file with that password.
    #[arg(long, value_name = "FILE", requires = "bitcoind_user")]
    bitcoind_password_file: Option<PathBuf>,
    #[command(flatten)]
    target: Target,
}

/// What `import-from-file` is told on the command line.
#[derive(Args)]
pub struct FromFile {
    /// The file, which no bitcoind has loaded.
    file: PathBuf,
    /// The name of the copy.
    name: String,
    #[command(flatten)]
    target: Target,
}

/// Runs the command that was given.
pub fn run(command: &WalletCommand) -> ExitCode {
    let done = match command {
        WalletCommand::ImportFromNode(args) => from_node(args),
        WalletCommand::ImportFromFile(args) => from_file(args),
    };
    match done {
        Ok(report) => show(report.trim_end()),
        Err(error) => {
            eprintln!("outrigger: {error}");
            ExitCode::FAILURE
        }
    }
}

fn from_node(args: &FromNode) -> Result<String, MoveError> {
    let folder = place::folder(&args.target.datadir, args.target.network.as_deref())?;
    let node = Side::new("the node", node_connection(args, &folder)?.of_wallet(&args.name));
    let name = args.target.r#as.as_deref().unwrap_or(&args.name);
    let host = args.target.host(&folder, name)?;
    check_chains(&node, &host)?;
    let mut passphrase = None;
    let content = node::read(&node, || Ok(passphrase.insert(ask_passphrase(&args.name)?).clone()))?;
    args.target.put(&host, &folder, name, &content, passphrase.as_ref())?;
    let compared = compare::with_node(&node, &host, &content)?;
    finish(name, &content, &compared)
}

fn from_file(args: &FromFile) -> Result<String, MoveError> {
    let folder = place::folder(&args.target.datadir, args.target.network.as_deref())?;
    let name = args.target.r#as.as_deref().unwrap_or(&args.name);
    let host = args.target.host(&folder, name)?;
    let mut passphrase = None;
    let file = expand_home(&args.file)?;
    let content = read(&file, || {
        passphrase = ask_passphrase(&file.display().to_string()).ok();
        passphrase.clone()
    })?;
    args.target.put(&host, &folder, name, &content, passphrase.as_ref())?;
    let compared = compare::with_content(&host, &content)?;
    finish(name, &content, &compared)
}

/// What was copied, and how it compares.
///
/// # Errors
/// Where something differs: the report stands in the error.
fn finish(name: &str, content: &Content, compared: &compare::Comparison) -> Result<String, MoveError> {
    let Content { descriptors, labels, comments, locked, .. } = content;
    let counts = format!(
        "{} descriptors, {} labels, {} comments, {} locked outputs",
        descriptors.len(),
        labels.len(),
        comments.len(),
        locked.len()
    );
    let report = format!("copied to the wallet \"{name}\": {counts}\n{compared}");
    match compared.is_equal() {
        true => Ok(report + "unload the original at the node: both would choose the same coins"),
        false => Err(MoveError::Differs(report)),
    }
}

impl Target {
    fn host(&self, folder: &Path, wallet: &str) -> Result<Side, MoveError> {
        let url = place::url(folder);
        Ok(Side::new("the host", Connection::with_cookie(folder, &url, Some(wallet))?))
    }

    fn put(
        &self,
        host: &Side,
        folder: &Path,
        name: &str,
        content: &Content,
        passphrase: Option<&Zeroizing<String>>,
    ) -> Result<(), MoveError> {
        match self.into_existing {
            true => put::put(host, name, content, passphrase),
            false => put::put_new(host, &folder.join("wallets"), name, content, passphrase),
        }
    }
}

/// How the node is reached: as it is told, else as bitcoind has it by default.
fn node_connection(args: &FromNode, folder: &Path) -> Result<Connection, MoveError> {
    let network = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let port = || default_ports().find(|(known, _)| known.to_core_arg() == network).map(|(_, port)| port);
    let url = match &args.bitcoind {
        Some(url) => url.clone(),
        None => format!("http://127.0.0.1:{}", port().ok_or_else(|| MoveError::NoPort(network.to_owned()))?),
    };
    let login = match (&args.bitcoind_user, &args.bitcoind_password_file, &args.bitcoind_cookie) {
        (Some(user), Some(file), _) => Login::Password { user: user.clone(), file: expand_home(file)? },
        (_, _, Some(cookie)) => Login::Cookie(expand_home(cookie)?),
        _ => default_login(&url).map_err(MoveError::Login)?,
    };
    let header = login.read()?;
    Ok(Connection::with_authorization(header.to_str().unwrap_or_default(), &url))
}

/// Refuses a copy between two chains: the first block tells them apart, but for signets.
fn check_chains(node: &Side, host: &Side) -> Result<(), MoveError> {
    let genesis = |side: &Side| side.ask::<BlockHash>("getblockhash", &json!([0]));
    if genesis(node)? == genesis(host)? { Ok(()) } else { Err(MoveError::OtherChain) }
}

/// Reads the passphrase of the original from standard input. The copy gets the same.
fn ask_passphrase(of: &str) -> Result<Zeroizing<String>, MoveError> {
    let hidden = HiddenInput::begin()?;
    if hidden.is_some() {
        eprintln!("The passphrase of {of}, which the copy gets too (it is not shown):");
    }
    let mut line = Zeroizing::new(String::new());
    std::io::stdin().read_line(&mut line)?;
    Ok(Zeroizing::new(line.trim_end_matches(['\r', '\n']).to_owned()))
}

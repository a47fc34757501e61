//! `outrigger wallet`: copies, exports, imports and restores wallets.

mod compare;
mod error;
mod export;
mod formats;
mod node;
mod put;
mod restore;
mod side;
mod to_node;

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
use super::call::place::HostAt;
use super::call::terminal::HiddenInput;
use super::{EXIT_FAILED, refused, show};
use crate::config::{LoadedConfig, path_argument};
use crate::run::{backend_login, default_login};
use error::MoveError;
pub use formats::VERSION as EXPORT_VERSION;
use side::Side;

/// Copies, exports, imports and restores wallets.
#[derive(Subcommand)]
pub enum WalletCommand {
    /// Copies a descriptor wallet that a running bitcoind has loaded, and compares the copy with it.
    ImportFromNode(FromNode),
    /// Copies a descriptor wallet from bitcoind's file of it (wallet.dat), which is only read.
    ImportFromFile(FromFile),
    /// Writes descriptors, labels, locked outputs and comments of a wallet to a file.
    Export(export::Export),
    /// Copies a wallet to a running bitcoind, as far as bitcoind accepts it, and compares.
    ExportToNode(to_node::ToNode),
    /// Reads a file of `export`, descriptors of Sparrow or Specter, or labels (BIP 329).
    Import(export::Import),
    /// Restores a wallet from a backup, or prints the backup's contents.
    Restore(restore::Restore),
}

/// Where the copy goes.
#[derive(Args)]
struct Target {
    /// The name of the copy; by default that of the original.
    #[arg(long, value_name = "NAME")]
    r#as: Option<String>,
    /// Imports into an existing wallet of the host, such as after an interrupted copy.
    #[arg(long)]
    into_existing: bool,
    #[command(flatten)]
    at: HostAt,
}

/// The arguments of `import-from-node`.
#[derive(Args)]
pub struct FromNode {
    /// The wallet's name at the node.
    name: String,
    #[command(flatten)]
    node: NodeAt,
    #[command(flatten)]
    target: Target,
}

/// The node's address and credentials.
#[derive(Args)]
struct NodeAt {
    /// A configuration of a host in front of the node; its `[backend]` names the node.
    #[arg(long, value_name = "FILE", value_parser = path_argument(),
          conflicts_with_all = ["bitcoind", "bitcoind_cookie", "bitcoind_user"])]
    config: Option<PathBuf>,
    /// The node; by default at the default port of the host's network.
    #[arg(long, value_name = "URL")]
    bitcoind: Option<String>,
    /// The node's cookie file; by default bitcoind's default path.
    #[arg(long, value_name = "FILE", value_parser = path_argument())]
    bitcoind_cookie: Option<PathBuf>,
    /// The user at the node, instead of the cookie's, with the password in the file of --bitcoind-password-file.
    #[arg(long, value_name = "NAME", requires = "bitcoind_password_file")]
    bitcoind_user: Option<String>,
    /// The file with that password.
    #[arg(long, value_name = "FILE", value_parser = path_argument(), requires = "bitcoind_user")]
    bitcoind_password_file: Option<PathBuf>,
}

/// The arguments of `import-from-file`.
#[derive(Args)]
pub struct FromFile {
    /// The file. No bitcoind may have it loaded.
    #[arg(value_parser = path_argument())]
    file: PathBuf,
    /// The name of the copy.
    name: String,
    #[command(flatten)]
    target: Target,
}

pub fn run(command: &WalletCommand) -> ExitCode {
    let done = match command {
        WalletCommand::ImportFromNode(args) => from_node(args),
        WalletCommand::ImportFromFile(args) => from_file(args),
        WalletCommand::Export(args) => args.run(),
        WalletCommand::ExportToNode(args) => args.run(),
        WalletCommand::Import(args) => args.run(),
        WalletCommand::Restore(args) => args.run(),
    };
    match done {
        Ok(report) => show(report.trim_end()),
        Err(error) => refused(&error, EXIT_FAILED),
    }
}

fn from_node(args: &FromNode) -> Result<String, MoveError> {
    let folder = args.target.at.folder()?;
    let node = Side::new("the node", args.node.connection(&folder)?.of_wallet(&args.name));
    let name = args.target.r#as.as_deref().unwrap_or(&args.name);
    let host = args.target.host(name)?;
    check_chains(&node, &host)?;
    let mut passphrase = None;
    let ask = || Ok(passphrase.insert(ask_passphrase(&args.name, COPY_TOO)?).clone());
    let content = node::read(&node, true, ask)?;
    args.target.put(&host, &folder, name, &content, passphrase.as_ref())?;
    let compared = compare::with_node(&node, &host, &content, true)?;
    finish(name, &content, &compared)
}

fn from_file(args: &FromFile) -> Result<String, MoveError> {
    let folder = args.target.at.folder()?;
    let name = args.target.r#as.as_deref().unwrap_or(&args.name);
    let host = args.target.host(name)?;
    let mut passphrase = None;
    let file = args.file.as_path();
    let content = read(file, || {
        passphrase = ask_passphrase(&file.display().to_string(), COPY_TOO).ok();
        passphrase.clone()
    })?;
    args.target.put(&host, &folder, name, &content, passphrase.as_ref())?;
    let compared = compare::with_content(&host, &content)?;
    finish(name, &content, &compared)
}

/// The report of a copy and its comparison.
///
/// # Errors
/// The copy differs. The error has the report.
fn finish(name: &str, content: &Content, compared: &compare::Comparison) -> Result<String, MoveError> {
    let report = format!("copied to the wallet \"{name}\": {}\n{compared}", counts(content));
    match compared.is_equal() {
        true => Ok(report + "unload the original at the node: both would choose the same coins"),
        false => Err(MoveError::Differs(report)),
    }
}

fn counts(content: &Content) -> String {
    let Content { descriptors, labels, comments, locked, .. } = content;
    let [descriptors, labels, comments, locked] = [descriptors.len(), labels.len(), comments.len(), locked.len()];
    format!("{descriptors} descriptors, {labels} labels, {comments} comments, {locked} locked outputs")
}

impl Target {
    fn host(&self, wallet: &str) -> Result<Side, MoveError> {
        Ok(Side::new("the host", self.at.connect(None, Some(wallet))?))
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

impl NodeAt {
    /// A connection to the node, by the arguments or by bitcoind's defaults.
    fn connection(&self, folder: &Path) -> Result<Connection, MoveError> {
        let (url, login) = match &self.config {
            Some(file) => {
                let loaded = LoadedConfig::read(Some(file), &[])?;
                let backend = loaded.config.backend.ok_or_else(|| MoveError::NoBackend(file.clone()))?;
                let login = backend_login(&backend).map_err(MoveError::Login)?;
                (backend.url, login)
            }
            None => self.url_and_login(folder)?,
        };
        let header = login.read()?;
        Ok(Connection::with_authorization(header.to_str().unwrap_or_default(), &url))
    }

    /// The node's URL and login by the arguments without --config.
    fn url_and_login(&self, folder: &Path) -> Result<(String, Login), MoveError> {
        let network = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let port = || default_ports().find(|(known, _)| known.to_core_arg() == network).map(|(_, port)| port);
        let url = match &self.bitcoind {
            Some(url) => url.clone(),
            None => format!("http://127.0.0.1:{}", port().ok_or_else(|| MoveError::NoPort(network.to_owned()))?),
        };
        let login = match (&self.bitcoind_user, &self.bitcoind_password_file, &self.bitcoind_cookie) {
            (Some(user), Some(file), _) => Login::Password { user: user.clone(), file: file.clone() },
            (_, _, Some(cookie)) => Login::Cookie(cookie.clone()),
            _ => default_login(&url).map_err(MoveError::Login)?,
        };
        Ok((url, login))
    }
}

/// Refuses a copy between two chains. Their genesis blocks differ, except those of signets.
fn check_chains(node: &Side, host: &Side) -> Result<(), MoveError> {
    let genesis = |side: &Side| side.ask::<BlockHash>("getblockhash", &json!([0]));
    if genesis(node)? == genesis(host)? { Ok(()) } else { Err(MoveError::OtherChain) }
}

/// A prompt's note on the passphrase.
const COPY_TOO: &str = ", which the copy gets too";

/// Reads a passphrase from standard input.
fn ask_passphrase(of: &str, note: &str) -> Result<Zeroizing<String>, MoveError> {
    let hidden = HiddenInput::begin()?;
    if hidden.is_some() {
        eprintln!("The passphrase of {of}{note} (it is not shown):");
    }
    read_passphrase()
}

/// Reads the passphrase of a new wallet; at a terminal twice, since it does not show typing mistakes.
fn ask_new_passphrase(of: &str) -> Result<Zeroizing<String>, MoveError> {
    let hidden = HiddenInput::begin()?;
    if hidden.is_none() {
        return read_passphrase();
    }
    eprintln!("The passphrase that the new wallet {of} gets (it is not shown):");
    let passphrase = read_passphrase()?;
    eprintln!("The same again:");
    if read_passphrase()? == passphrase { Ok(passphrase) } else { Err(MoveError::Passphrases) }
}

fn read_passphrase() -> Result<Zeroizing<String>, MoveError> {
    let mut line = Zeroizing::new(String::new());
    std::io::stdin().read_line(&mut line)?;
    Ok(Zeroizing::new(line.trim_end_matches(['\r', '\n']).to_owned()))
}

//! `outrigger wallet export` and `import`: a wallet as a file of text.

use std::fs::OpenOptions;
use std::io::BufWriter;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use bitcoin::BlockHash;
use clap::Args;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::error::MoveError;
use super::formats::{self, Head, Parsed};
use super::side::Side;
use super::{Target, ask_new_passphrase, ask_passphrase, compare, node};
use crate::backups::folder::folder_name;
use crate::cli::call::place::HostAt;
use crate::config::path_argument;

/// The most times that the balances are read again because a block arrived.
const MAX_BLOCKS_BETWEEN: u32 = 10;

#[derive(Args)]
pub struct Export {
    /// The wallet's name.
    name: String,
    /// The new file; by default NAME.jsonl in this folder, with the name escaped.
    #[arg(long, value_name = "FILE", value_parser = path_argument())]
    to: Option<PathBuf>,
    /// Writes private keys, too. Whoever reads the file can then spend, whether or not the wallet is encrypted.
    #[arg(long)]
    private: bool,
    #[command(flatten)]
    at: HostAt,
}

#[derive(Args)]
pub struct Import {
    /// The file: of `export`, of Sparrow or Specter, or with labels (BIP 329).
    #[arg(value_parser = path_argument())]
    file: PathBuf,
    /// The time of the earliest possible payment to another program's descriptors, in Unix seconds. By default the host searches all
    /// blocks, or those from the height in the file.
    #[arg(long, value_name = "SECONDS")]
    since: Option<u64>,
    #[command(flatten)]
    target: Target,
}

impl Export {
    /// Writes the file. Returns the report.
    pub fn run(&self) -> Result<String, MoveError> {
        let host = Side::new("the host", self.at.connect(None, Some(&self.name))?);
        let content = node::read(&host, self.private, || ask_passphrase(&self.name, ""))?;
        let best = || host.ask::<BlockHash>("getbestblockhash", &json!([]));
        let (mut block, mut balances) = (best()?, host.ask("getbalances", &json!([]))?);
        // The balances must be those at the named block.
        for _ in 0..MAX_BLOCKS_BETWEEN {
            match best()? {
                same if same == block => break,
                other => (block, balances) = (other, host.ask("getbalances", &json!([]))?),
            }
        }
        let (chain, genesis) = chain(&host)?;
        let head = Head::new(&content, &self.name, chain, [genesis, block], balances);
        let path = match &self.to {
            Some(path) => path.clone(),
            None => PathBuf::from(format!("{}.jsonl", folder_name(&self.name))),
        };
        let in_file = |error: &dyn std::fmt::Display| MoveError::Backup(format!("{}: {error}", path.display()));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let file = file.map_err(|error| in_file(&error))?;
        let written = formats::write(&head, &content, &mut BufWriter::new(&file)).and_then(|()| file.sync_all());
        if let Err(error) = written {
            // A partial file is not an export.
            let _ = std::fs::remove_file(&path);
            return Err(in_file(&error));
        }
        Ok(format!("exported to {}: {}", path.display(), super::counts(&content)))
    }
}

/// The name of a side's network, and its first block.
fn chain(side: &Side) -> Result<(String, BlockHash), MoveError> {
    let info: Value = side.ask("getblockchaininfo", &json!([]))?;
    Ok((info["chain"].as_str().unwrap_or_default().to_owned(), side.ask("getblockhash", &json!([0]))?))
}

impl Import {
    /// Reads the file into a wallet of the host. Returns the report.
    ///
    /// # Errors
    /// The file is wrong or of another network, or the host refuses it. A new wallet is then removed.
    pub fn run(&self) -> Result<String, MoveError> {
        let path = self.file.as_path();
        let in_file = |error: &dyn std::fmt::Display| MoveError::Backup(format!("{}: {error}", path.display()));
        let text = std::fs::read_to_string(path).map(Zeroizing::new).map_err(|error| in_file(&error))?;
        let mut parsed = formats::parse(&text).map_err(|error| in_file(&error))?;
        let named = self.target.r#as.clone().or_else(|| parsed.name.clone());
        let name = named.ok_or_else(|| in_file(&"it has no name for the wallet: give one by --as"))?;
        if parsed.content.descriptors.is_empty() && parsed.head.is_none() && !self.target.into_existing {
            return Err(in_file(&"it has labels alone: name a wallet by --as, and add --into-existing"));
        }
        let folder = self.target.at.folder()?;
        let host = self.target.host(&name)?;
        self.check(&host, &mut parsed, &in_file)?;
        let content = &parsed.content;
        let needs_passphrase = content.encrypted && content.private_keys && !self.target.into_existing;
        let passphrase = needs_passphrase.then(|| ask_new_passphrase(&name)).transpose()?;
        self.target.put(&host, &folder, &name, content, passphrase.as_ref())?;
        let balances = balances(&host, parsed.head.as_ref())?;
        let compared = compare::with_file(&host, content, balances, self.target.into_existing)?;
        let left_out = match parsed.left_out {
            0 => String::new(),
            count => format!("{count} labels are left out: a wallet holds none of outputs, inputs and keys\n"),
        };
        let report = format!("imported to the wallet \"{name}\": {}\n{compared}{left_out}", super::counts(content));
        if compared.is_equal() { Ok(report) } else { Err(MoveError::FileDiffers(report)) }
    }

    /// Checks everything that the host can check before it changes anything, and completes another program's descriptors.
    fn check(
        &self,
        host: &Side,
        parsed: &mut Parsed,
        in_file: &impl Fn(&dyn std::fmt::Display) -> MoveError,
    ) -> Result<(), MoveError> {
        if let Some(head) = &parsed.head {
            let (expected, genesis) = chain(host)?;
            if (&head.chain, head.genesis) != (&expected, genesis) {
                return Err(in_file(&format!("it is a wallet of {}, and the host is on {expected}", head.chain)));
            }
        }
        for (address, _) in &parsed.content.labels {
            let known: Value = host.ask("validateaddress", &json!([address]))?;
            if known["isvalid"] != true {
                return Err(in_file(&format!("{address} is no address of the host's network")));
            }
        }
        if !parsed.is_foreign && !self.target.into_existing {
            return Ok(());
        }
        let since = match (self.since, parsed.birth_height) {
            (Some(since), _) => since,
            (None, Some(height)) if height > 0 => {
                let hash: BlockHash = host.ask("getblockhash", &json!([height]))?;
                host.ask::<Value>("getblockheader", &json!([hash]))?["time"].as_u64().unwrap_or_default()
            }
            _ => 0,
        };
        for descriptor in &mut parsed.content.descriptors {
            let info: Value =
                host.ask("getdescriptorinfo", &json!([*descriptor.text])).map_err(|error| match error {
                    MoveError::Refused { message, .. } => in_file(&format!("a descriptor cannot be used: {message}")),
                    error => error,
                })?;
            if parsed.is_foreign {
                descriptor.timestamp = since;
                if let (false, Some(checksum)) = (descriptor.text.contains('#'), info["checksum"].as_str()) {
                    descriptor.text = Zeroizing::new(format!("{}#{checksum}", *descriptor.text));
                }
            }
        }
        Ok(())
    }
}

/// The balances of the file, if the host has the same best block as the host of the export had.
fn balances(host: &Side, head: Option<&Head>) -> Result<Option<Value>, MoveError> {
    let Some(head) = head else { return Ok(None) };
    let block: BlockHash = host.ask("getbestblockhash", &json!([]))?;
    Ok((block == head.block).then(|| head.balances.clone()))
}

//! `outrigger wallet export-to-node`: copies a wallet to a bitcoind.

use clap::Args;
use outrigger_node_wallet::Content;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::error::MoveError;
use super::side::Side;
use super::{COPY_TOO, NodeAt, ask_passphrase, check_chains, compare, node, put};
use crate::cli::call::place::HostAt;

#[derive(Args)]
pub struct ToNode {
    /// The wallet's name at the host.
    name: String,
    /// The name of the copy at the node; by default the same.
    #[arg(long, value_name = "NAME")]
    r#as: Option<String>,
    /// Copies private keys, too. Without them, the copy is watch-only.
    #[arg(long)]
    private: bool,
    #[command(flatten)]
    node: NodeAt,
    #[command(flatten)]
    at: HostAt,
}

impl ToNode {
    /// Makes the copy and compares it. Returns the report.
    pub fn run(&self) -> Result<String, MoveError> {
        let name = self.r#as.as_deref().unwrap_or(&self.name);
        let host = Side::new("the host", self.at.connect(None, Some(&self.name))?);
        let node = Side::new("the node", self.node.connection(&self.at.folder()?)?.of_wallet(name));
        check_chains(&node, &host)?;
        let mut passphrase = None;
        let ask = || Ok(passphrase.insert(ask_passphrase(&self.name, COPY_TOO)?).clone());
        let content = node::read(&host, self.private, ask)?;
        put::make(&node, name, &content, passphrase.as_ref())?;
        let refused = fill(&node, &content, passphrase.as_ref()).inspect_err(|_| {
            eprintln!("outrigger: the copy \"{name}\" at the node is not complete: remove it there");
        })?;
        let compared = compare::with_node(&host, &node, &content, false)?;
        let mut report = format!("copied to the node's wallet \"{name}\": {}\n{compared}", super::counts(&content));
        for refused in &refused {
            report += &format!("not taken by bitcoind: {refused}\n");
        }
        if !content.comments.is_empty() {
            let count = content.comments.len();
            report += &format!("not taken by bitcoind: {count} comments of transactions, for which it has no call\n");
        }
        match compared.is_equal() && refused.is_empty() {
            true => Ok(report + "unload the original at the host: both would choose the same coins"),
            false => Err(MoveError::Differs(report)),
        }
    }
}

/// Fills the copy as far as bitcoind accepts it. Returns the refused parts.
fn fill(node: &Side, content: &Content, passphrase: Option<&Zeroizing<String>>) -> Result<Vec<String>, MoveError> {
    let refusals = put::unlocked(node, content, passphrase, || put::request_all(node, &content.descriptors))?;
    let failed = content.descriptors.iter().zip(refusals).filter_map(|(descriptor, reason)| {
        // Without the text, which may hold a private key.
        let kind = descriptor.text.split('(').next().unwrap_or_default();
        reason.map(|reason| format!("a descriptor {kind}(...): {reason}"))
    });
    let mut refused: Vec<String> = failed.collect();
    let mut note = |what: String, outcome: Result<Value, MoveError>| match outcome {
        Err(MoveError::Refused { message, .. }) => {
            refused.push(format!("{what}: {message}"));
            Ok(())
        }
        other => other.map(drop),
    };
    for (address, label) in &content.labels {
        note(format!("the label of {address}"), node.ask("setlabel", &json!([address, label])))?;
    }
    for output in &content.locked {
        let locked = json!([{"txid": output.txid, "vout": output.vout}]);
        note(format!("the lock of {output}"), node.ask("lockunspent", &json!([false, locked, true])))?;
    }
    Ok(refused)
}

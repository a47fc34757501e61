//! Reading a wallet that a running bitcoind has loaded.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use bitcoin::{OutPoint, Txid};
use outrigger_node_wallet::{Active, Comment, Content, Descriptor};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::error::MoveError;
use super::side::Side;

/// bitcoind's code for a wallet whose descriptors it cannot list with private keys.
const WALLET_ERROR: i64 = -4;

/// How long the node's wallet may stay unlocked while its descriptors are listed, in seconds.
const UNLOCKED_FOR: u64 = 60;

#[derive(Deserialize)]
struct Info {
    private_keys_enabled: bool,
    #[serde(default)]
    avoid_reuse: bool,
    #[serde(default)]
    blank: bool,
    #[serde(default)]
    descriptors: bool,
    #[serde(default)]
    external_signer: bool,
    /// In Unix seconds. Absent if the wallet is not encrypted; 0 if it is locked.
    unlocked_until: Option<u64>,
}

#[derive(Deserialize)]
struct DescriptorList {
    descriptors: Vec<ListedDescriptor>,
}

#[derive(Deserialize)]
pub struct ListedDescriptor {
    /// Its text, with checksum.
    #[serde(deserialize_with = "secret")]
    pub desc: Zeroizing<String>,
    timestamp: u64,
    /// Whether the wallet takes new addresses from it, for change if `internal`.
    pub active: bool,
    #[serde(default)]
    pub internal: bool,
    range: Option<(u32, u32)>,
    #[serde(default)]
    pub next_index: u32,
}

fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Zeroizing<String>, D::Error> {
    String::deserialize(deserializer).map(Zeroizing::new)
}

#[derive(Deserialize)]
struct LockedCoin {
    txid: Txid,
    vout: u32,
}

#[derive(Deserialize)]
struct History {
    transactions: Vec<Entry>,
}

/// A row of `listsinceblock`.
#[derive(Deserialize)]
pub struct Entry {
    pub txid: Txid,
    pub vout: u32,
    pub category: String,
    /// In bitcoin, as the node writes it.
    pub amount: Value,
    /// In the same form.
    pub fee: Option<Value>,
    /// Below 1 if it is not confirmed.
    pub confirmations: i64,
    /// In Unix seconds.
    time: u64,
    /// When the wallet received it, in Unix seconds.
    timereceived: u64,
    #[serde(default)]
    pub comment: String,
    /// The note on who was paid.
    #[serde(default)]
    pub to: String,
}

/// Reads a wallet of a side, with its private keys if `private`. Unlocks a locked wallet with the passphrase, and locks it again.
pub fn read(
    node: &Side,
    private: bool,
    passphrase: impl FnOnce() -> Result<Zeroizing<String>, MoveError>,
) -> Result<Content, MoveError> {
    let info: Info = node.ask("getwalletinfo", &json!([]))?;
    match info {
        Info { descriptors: false, .. } => return Err(MoveError::Legacy(node.name)),
        Info { external_signer: true, .. } if private => return Err(MoveError::ExternalSigner(node.name)),
        _ => {}
    }
    let private = private && info.private_keys_enabled;
    let encrypted = private && info.unlocked_until.is_some();
    // The passphrase also encrypts the copy, so it is needed even if the original is unlocked.
    let passphrase = encrypted.then(passphrase).transpose()?;
    let until = info.unlocked_until.unwrap_or_default();
    if let Some(passphrase) = &passphrase {
        // Checked even if the original is unlocked, which then stays so for its remaining time.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
        let seconds = until.saturating_sub(now).max(UNLOCKED_FOR);
        node.ask::<Value>("walletpassphrase", &json!([**passphrase, seconds]))?;
    }
    let listed = listed(node, private).map_err(|error| match error {
        MoveError::Refused { code: WALLET_ERROR, message, .. } => MoveError::NotListed { side: node.name, message },
        error => error,
    });
    if passphrase.is_some() && until == 0 {
        node.ask::<Value>("walletlock", &json!([]))?;
    }
    let history = history(node)?;
    // The copy may never see unconfirmed transactions.
    let confirmed = history.iter().filter(|entry| entry.confirmations > 0);
    let mut transactions: Vec<Txid> = confirmed.map(|entry| entry.txid).collect();
    transactions.sort_unstable();
    transactions.dedup();
    let times = history.iter().map(|entry| (entry.txid, entry.time, entry.timereceived)).collect();
    let noted = history.into_iter().filter(|entry| !entry.comment.is_empty() || !entry.to.is_empty());
    let comments: BTreeMap<Txid, Comment> =
        noted.map(|Entry { txid, comment, to, .. }| (txid, Comment { txid, comment, to })).collect();
    Ok(Content {
        private_keys: private,
        encrypted,
        avoid_reuse: info.avoid_reuse,
        blank: info.blank,
        descriptors: listed?.into_iter().map(Descriptor::from).collect(),
        labels: labels(node)?,
        comments: comments.into_values().collect(),
        locked: locked(node)?,
        transactions,
        times,
        ..Content::default()
    })
}

/// The descriptors of a wallet, with their private keys or without.
pub fn listed(side: &Side, private: bool) -> Result<Vec<ListedDescriptor>, MoveError> {
    side.ask("listdescriptors", &json!([private])).map(|DescriptorList { descriptors }| descriptors)
}

/// The addresses of a wallet's address book with their labels, in order.
pub fn labels(side: &Side) -> Result<Vec<(String, String)>, MoveError> {
    let mut labels = Vec::new();
    for label in side.ask::<Vec<String>>("listlabels", &json!([]))? {
        let addresses: BTreeMap<String, Value> = side.ask("getaddressesbylabel", &json!([label]))?;
        labels.extend(addresses.into_keys().map(|address| (address, label.clone())));
    }
    labels.sort_unstable();
    Ok(labels)
}

/// The locked outputs, in order.
pub fn locked(side: &Side) -> Result<Vec<OutPoint>, MoveError> {
    let listed: Vec<LockedCoin> = side.ask("listlockunspent", &json!([]))?;
    let mut locked: Vec<OutPoint> =
        listed.into_iter().map(|LockedCoin { txid, vout }| OutPoint { txid, vout }).collect();
    locked.sort_unstable();
    Ok(locked)
}

pub fn history(side: &Side) -> Result<Vec<Entry>, MoveError> {
    side.ask("listsinceblock", &json!(["", 1, true])).map(|History { transactions }| transactions)
}

impl From<ListedDescriptor> for Descriptor {
    fn from(listed: ListedDescriptor) -> Self {
        let ListedDescriptor { desc, timestamp, active, internal, range, next_index } = listed;
        let active = active.then_some(if internal { Active::Change } else { Active::Receiving });
        // The listed end is inclusive, the stored one exclusive.
        let range = range.map(|(begin, last)| (begin, last.saturating_add(1)));
        Self { text: desc, timestamp, range, next_index, active }
    }
}

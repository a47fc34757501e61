//! Writes content into a wallet of the host.

use std::path::Path;

use outrigger_node_wallet::{Active, Comment, Content, Descriptor};
use outrigger_wallet_engine::{remove_wallet, take_over};
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::error::MoveError;
use super::node;
use super::side::Side;
use crate::cli::call::progress;

/// How long the copy is unlocked, in seconds: a rescan may take hours. It is locked again at the end, unless the command is killed.
const UNLOCKED_FOR: u32 = 86_400;
/// bitcoind's error codes for a wallet name in use.
const WALLET_ALREADY_THERE: [i64; 2] = [-4, -35];

/// Creates a wallet with this content at the host, whose wallets are in `wallets`. A failure removes the wallet.
pub fn put_new(
    host: &Side,
    wallets: &Path,
    name: &str,
    content: &Content,
    passphrase: Option<&Zeroizing<String>>,
) -> Result<(), MoveError> {
    make(host, name, content, passphrase)?;
    let filled = put(host, name, content, passphrase).and_then(|()| complete(host, wallets, name, content));
    if filled.is_err() {
        let unloaded = host.ask::<Value>("unloadwallet", &json!([name])).map_err(|error| error.to_string());
        let removed = unloaded.and_then(|_| remove_wallet(wallets, name).map_err(|error| error.to_string()));
        if let Err(reason) = removed {
            eprintln!("outrigger: the copy \"{name}\" is not complete, and cannot be removed: {reason}");
        }
    }
    filled
}

/// Adds this content to a wallet of the host.
///
/// # Errors
/// The host refuses a call, except for comments and locks.
pub fn put(
    host: &Side,
    name: &str,
    content: &Content,
    passphrase: Option<&Zeroizing<String>>,
) -> Result<(), MoveError> {
    unlocked(host, content, passphrase, || import(host, name, &content.descriptors))?;
    for (address, label) in &content.labels {
        host.ask::<Value>("setlabel", &json!([address, label]))?;
    }
    for Comment { txid, comment, to } in &content.comments {
        // The host refuses a comment on a transaction that is in no block and no mempool.
        // A missing text changes nothing, and an empty one would remove the present one.
        let [comment, to] = [comment, to].map(|text| Some(text).filter(|text| !text.is_empty()));
        match host.ask::<Value>("setcomment", &json!([txid, comment, to])) {
            Err(MoveError::Refused { .. }) => {}
            other => other.map(drop)?,
        }
    }
    // Outputs of an earlier copy are locked already.
    let locked = node::locked(host)?;
    for output in content.locked.iter().filter(|output| !locked.contains(output)) {
        // The comparison shows outputs that are spent, or whose transaction the wallet does not have.
        let output = json!([{"txid": output.txid, "vout": output.vout}]);
        match host.ask::<Value>("lockunspent", &json!([false, output, true])) {
            Err(MoveError::Refused { .. }) => {}
            other => other.map(drop)?,
        }
    }
    Ok(())
}

/// Runs `work` while the copy is unlocked.
pub fn unlocked<T>(
    side: &Side,
    content: &Content,
    passphrase: Option<&Zeroizing<String>>,
    work: impl FnOnce() -> Result<T, MoveError>,
) -> Result<T, MoveError> {
    let unlock = passphrase.filter(|_| content.encrypted && content.private_keys);
    if let Some(passphrase) = unlock {
        side.ask::<Value>("walletpassphrase", &json!([**passphrase, UNLOCKED_FOR]))?;
    }
    let done = work();
    if unlock.is_some() {
        side.ask::<Value>("walletlock", &json!([]))?;
    }
    done
}

/// Adds the data that no call can set, while the wallet is unloaded.
fn complete(host: &Side, wallets: &Path, name: &str, content: &Content) -> Result<(), MoveError> {
    host.ask::<Value>("unloadwallet", &json!([name]))?;
    let taken = take_over(wallets, name, content.blank, &content.times);
    host.ask::<Value>("loadwallet", &json!([name]))?;
    taken.map_err(|error| MoveError::NotCompleted(error.to_string()))
}

/// Creates an empty wallet.
///
/// # Errors
/// A wallet of this name exists. The text is the side's refusal.
pub fn make(
    host: &Side,
    name: &str,
    content: &Content,
    passphrase: Option<&Zeroizing<String>>,
) -> Result<(), MoveError> {
    let passphrase = passphrase.filter(|_| content.encrypted).map_or("", |passphrase| passphrase.as_str());
    let options = json!({
        "wallet_name": name,
        "disable_private_keys": !content.private_keys,
        // A wallet with private keys would otherwise create its own.
        "blank": content.blank || content.private_keys,
        "passphrase": passphrase,
        "avoid_reuse": content.avoid_reuse,
    });
    match host.ask::<Value>("createwallet", &options) {
        Err(MoveError::Refused { code, message, .. })
            if WALLET_ALREADY_THERE.contains(&code) && message.contains("already exists") =>
        {
            Err(MoveError::Exists { side: host.name, name: name.to_owned() })
        }
        other => other.map(drop),
    }
}

fn import(host: &Side, name: &str, descriptors: &[Descriptor]) -> Result<(), MoveError> {
    let call = || request_all(host, descriptors);
    let refusals = progress::beside(&host.connection, "importdescriptors", call, Result::is_ok)?;
    let failed: Vec<String> = refusals.into_iter().flatten().collect();
    match failed.first() {
        None => Ok(()),
        Some(first) => {
            Err(MoveError::NotImported { wallet: name.to_owned(), count: failed.len(), first: first.clone() })
        }
    }
}

/// Imports descriptors. Returns for each the reason of its refusal; `None` if it was imported.
pub fn request_all(side: &Side, descriptors: &[Descriptor]) -> Result<Vec<Option<String>>, MoveError> {
    if descriptors.is_empty() {
        return Ok(Vec::new());
    }
    let requests: Vec<Value> = descriptors.iter().map(request).collect();
    let outcomes: Vec<Value> = side.ask("importdescriptors", &json!([requests]))?;
    let reason = |outcome: &Value| outcome["error"]["message"].as_str().unwrap_or_default().to_owned();
    Ok(outcomes.iter().map(|outcome| (outcome["success"] != true).then(|| reason(outcome))).collect())
}

/// The request of importdescriptors for a descriptor.
fn request(descriptor: &Descriptor) -> Value {
    let Descriptor { text, timestamp, range, next_index, active } = descriptor;
    let mut request = json!({"desc": **text, "timestamp": timestamp});
    if let Some((begin, end)) = range {
        request["range"] = json!([begin, end.saturating_sub(1)]);
        request["next_index"] = json!(next_index);
    }
    if let Some(active) = active {
        request["active"] = json!(true);
        request["internal"] = json!(*active == Active::Change);
    }
    request
}

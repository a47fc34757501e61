//! One wallet of the store: what it holds, and whether its keys can be used.

use std::collections::{BTreeMap, BTreeSet};

use bitcoin::{Network, ScriptBuf, Txid};

use super::descriptors::Described;
use super::follow::Met;
use super::imported::Imported;
use super::{KEYPOOL, Node};
use crate::service::wallet::{CreateOptions, Ownership, RescanProgress, Synced, WalletInfo, WalletKind};
use crate::service::{ErrorKind, Result, ServiceError};
use crate::standard::{ScriptKind, classify};
use crate::wire::Secret;

/// The network of the chain in memory.
pub const NETWORK: Network = Network::Regtest;
/// The longest time that a wallet stays unlocked, in seconds.
const MAX_UNLOCK_SECONDS: u64 = 100_000_000;

/// A wallet. What follows from its keys, scripts, labels and transactions is computed when it is asked for.
#[derive(Clone)]
pub struct Own {
    pub name: String,
    pub kind: WalletKind,
    pub private_keys_enabled: bool,
    pub blank: bool,
    pub avoid_reuse: bool,
    /// The passphrase of an encrypted wallet.
    pub passphrase: Option<Secret>,
    /// Until when it is unlocked, in seconds of the chain's clock.
    pub unlocked_until: u64,
    pub synced: Synced,
    /// In seconds; none while there is neither key nor script.
    pub birth_time: Option<u64>,
    pub backup_needed: bool,
    pub last_backup: u64,
    /// The descriptors by their numbers.
    pub descriptors: Vec<Described>,
    /// The numbers of the descriptors that give addresses, by kind and side.
    pub active: BTreeMap<(u8, bool), usize>,
    /// The scripts that descriptors were derived to, with the number and the index.
    pub owners: BTreeMap<ScriptBuf, Vec<(u32, u32)>>,
    pub imported: Imported,
    /// The address book.
    pub labels: BTreeMap<ScriptBuf, String>,
    /// The addresses that were another's when they got their labels.
    pub sending: BTreeSet<ScriptBuf>,
    /// The transactions by their arrival.
    pub met: Vec<Met>,
    /// What was in the mempool when it was looked at last.
    pub seen: BTreeSet<Txid>,
    /// The mempool's sequence then.
    pub sequence: Option<u64>,
    pub last_rescan: u64,
    pub reserved: Option<u64>,
    /// How many master keys it has made.
    pub masters: u32,
}

impl Own {
    pub fn new(options: &CreateOptions, node: &Node) -> Result<Self> {
        let tip = node.tip()?;
        let passphrase = Some(options.passphrase.clone()).filter(|passphrase| !passphrase.expose().is_empty());
        let mut own = Self {
            name: options.name.clone(),
            kind: match options.descriptors {
                None => WalletKind::Both,
                Some(true) => WalletKind::Descriptors,
                Some(false) => WalletKind::Legacy,
            },
            private_keys_enabled: !options.disable_private_keys,
            blank: options.blank,
            avoid_reuse: options.avoid_reuse,
            passphrase,
            unlocked_until: 0,
            synced: Synced { hash: tip.hash, height: tip.height, time: tip.time, median_time: tip.median_time },
            birth_time: None,
            backup_needed: true,
            last_backup: 0,
            descriptors: Vec::new(),
            active: BTreeMap::new(),
            owners: BTreeMap::new(),
            imported: Imported::default(),
            labels: BTreeMap::new(),
            sending: BTreeSet::new(),
            met: Vec::new(),
            seen: BTreeSet::new(),
            sequence: None,
            last_rescan: 0,
            reserved: None,
            masters: 0,
        };
        if !own.blank && own.private_keys_enabled {
            own.add_default_descriptors(node)?;
        }
        Ok(own)
    }

    pub fn info(&self, node: &Node) -> Result<WalletInfo> {
        let locked = self.is_locked(node)?;
        Ok(WalletInfo {
            name: self.name.clone(),
            synced: self.synced,
            kind: self.kind,
            private_keys_enabled: self.private_keys_enabled,
            blank: self.blank,
            avoid_reuse: self.avoid_reuse,
            encrypted: self.passphrase.is_some(),
            locked,
            unlocked_until: if locked { 0 } else { self.unlocked_until },
            rescan: self.reserved.map(|_| RescanProgress { duration: 0, millionths: 0 }),
            transactions: self.met.len() as u64,
            keypool_external: self.ahead(false),
            keypool_internal: self.ahead(true),
            birth_time: self.birth_time.unwrap_or(0),
            backup_needed: self.backup_needed,
            last_backup: self.last_backup,
            keypool: KEYPOOL,
            sources: [false, true].into_iter().flat_map(|internal| self.sources(internal)).collect(),
            keypool_oldest: self.keypool_oldest(),
            warnings: Vec::new(),
        })
    }

    /// Whose a script is: what a descriptor was derived to is ours; otherwise what imported keys and scripts say.
    pub fn ownership(&self, script: &ScriptBuf) -> Ownership {
        if self.owners.contains_key(script) { Ownership::Spendable } else { self.imported.ownership(script) }
    }

    /// The label of a script's address; none where it has no address or no entry.
    pub fn label(&self, script: &ScriptBuf) -> Option<String> {
        self.labels.get(&address_script(script)?).cloned()
    }

    /// Sets the label of a script's address, for receiving where it is `ours`.
    pub fn set_label(&mut self, script: &ScriptBuf, label: &str, ours: bool) {
        if let Some(address) = address_script(script) {
            if ours {
                self.sending.remove(&address);
            } else {
                self.sending.insert(address.clone());
            }
            self.labels.insert(address, label.to_owned());
        }
    }

    /// Something with keys or scripts born at a time, in seconds, came to it.
    pub fn note_born(&mut self, time: u64) {
        self.birth_time = Some(self.birth_time.map_or(time, |birth| birth.min(time)));
        self.backup_needed = true;
    }

    pub fn is_locked(&self, node: &Node) -> Result<bool> {
        Ok(self.passphrase.is_some() && self.unlocked_until <= node.time()?)
    }

    pub fn require_unlocked(&self, node: &Node) -> Result<()> {
        if self.is_locked(node)? { Err(ErrorKind::WalletLocked.into()) } else { Ok(()) }
    }

    pub fn encrypt(&mut self, passphrase: Secret, node: &Node) -> Result<()> {
        if self.passphrase.is_some() {
            return Err(wrong_state("an encrypted", "encryptwallet"));
        }
        if !self.private_keys_enabled {
            let detail = "Error: wallet does not contain private keys, nothing to encrypt.";
            return Err(ServiceError::new(ErrorKind::Refused, detail));
        }
        if !self.blank {
            self.add_default_descriptors(node)?;
        }
        (self.passphrase, self.unlocked_until) = (Some(passphrase), 0);
        Ok(())
    }

    fn check_passphrase(&self, given: &Secret, method: &str) -> Result<()> {
        match &self.passphrase {
            None => Err(wrong_state("an unencrypted", method)),
            Some(passphrase) if passphrase == given => Ok(()),
            Some(_) => Err(ErrorKind::PassphraseIncorrect.into()),
        }
    }

    pub fn unlock(&mut self, passphrase: &Secret, seconds: u64, node: &Node) -> Result<()> {
        self.check_passphrase(passphrase, "walletpassphrase")?;
        self.unlocked_until = node.time()?.saturating_add(seconds.min(MAX_UNLOCK_SECONDS));
        Ok(())
    }

    pub fn lock(&mut self) -> Result<()> {
        if self.passphrase.is_none() {
            return Err(wrong_state("an unencrypted", "walletlock"));
        }
        self.unlocked_until = 0;
        Ok(())
    }

    pub fn change_passphrase(&mut self, old: &Secret, new: Secret) -> Result<()> {
        if let Err(error) = self.check_passphrase(old, "walletpassphrasechange") {
            self.unlocked_until = 0;
            return Err(error);
        }
        self.passphrase = Some(new);
        Ok(())
    }

    pub fn rescan_reserve(&mut self) -> Result<u64> {
        if self.reserved.is_some() {
            return Err(ErrorKind::WalletRescanning.into());
        }
        self.last_rescan += 1;
        self.reserved = Some(self.last_rescan);
        Ok(self.last_rescan)
    }

    pub fn rescan_start(&mut self, rescan: u64, from_time: u64, node: &Node) -> Result<()> {
        if self.reserved != Some(rescan) {
            return Err(ServiceError::new(ErrorKind::NotFound, format!("rescan {rescan} is not reserved")));
        }
        self.rescan(from_time, node)?;
        self.reserved = None;
        Ok(())
    }

    pub fn refill(&mut self, size: Option<u32>, node: &Node) -> Result<()> {
        let size = size.unwrap_or(KEYPOOL);
        if size > 1_000_000 {
            return Err(ServiceError::new(ErrorKind::Refused, "Error refreshing keypool."));
        }
        self.require_unlocked(node)?;
        for number in self.active.values().copied().collect::<Vec<_>>() {
            self.top_up(number, size, node)?;
        }
        Ok(())
    }
}

fn wrong_state(state: &str, method: &str) -> ServiceError {
    let detail = format!("Error: running with {state} wallet, but {method} was called.");
    ServiceError::new(ErrorKind::WrongEncryptionState, detail)
}

/// The script by which the address book knows a script: itself where it has an address, none where it has none, as
/// pay-to-pubkey.
pub fn address_script(script: &ScriptBuf) -> Option<ScriptBuf> {
    match classify(script) {
        ScriptKind::PubKey { .. } | ScriptKind::NonStandard | ScriptKind::Multisig { .. } | ScriptKind::NullData => {
            None
        }
        _ => Some(script.clone()),
    }
}

//! The wallet's keys: extended keys (gethdkeys), single private keys (dumpprivkey), and imported keys and scripts (listdescriptors).

use std::collections::{BTreeMap, HashSet};

use bitcoin::{Script, ScriptBuf};
use outrigger_descriptor::{Checksum, Descriptor};
use outrigger_service::Result as ServiceResult;
use outrigger_service::wallet::{DescriptorInfo, HdKey, Ownership};
use outrigger_service::wire::{Secret, from_bytes};
use outrigger_standard::descriptor::{infer, with_checksum};
use outrigger_values::params::encode_hex;
use zeroize::Zeroizing;

use super::WalletView;
use crate::descriptors::parse_stored;
use crate::encrypt::EncryptionKey;
use crate::error::Result;
use crate::imported::{self, p2wpkh, scripts_of_key};
use crate::keypool::{private_key_at, private_key_of};
use crate::ownership::p2pkh;
use crate::store::{KeyRow, ScriptRow, hash160};

impl WalletView {
    /// The extended keys of the descriptors, in bitcoind's order.
    pub fn hd_keys(&self, private: bool) -> Result<Vec<HdKey>> {
        let encryption_key = match self.wallet.encryption_key() {
            Err(error) if private => return Err(error),
            key => key.ok(),
        };
        let mut keys = BTreeMap::new();
        for (number, row) in self.t().all_descriptors(&self.txn)? {
            let text = self.private_text(&private_key_of(number), encryption_key.as_ref())?;
            let text = text.unwrap_or_else(|| Secret::new(row.identity.clone()));
            let parsed = parse_stored(number, text.expose(), self.wallet.shared.network)?;
            for (xpub, xprv) in parsed.extended_keys() {
                let order = (xpub.public_key.serialize(), xpub.chain_code.to_bytes());
                let key = keys.entry(order).or_insert_with(|| HdKey {
                    xpub: xpub.to_string(),
                    has_private: false,
                    xprv: None,
                    descriptors: Vec::new(),
                });
                key.has_private |= xprv.is_some() || (encryption_key.is_none() && row.holds(&key.xpub));
                key.xprv = key.xprv.take().or(xprv.filter(|_| private));
                let descriptor = (self.public_text(number, &row)?, row.active);
                // A descriptor may contain the same key twice.
                if key.descriptors.last() != Some(&descriptor) {
                    key.descriptors.push(descriptor);
                }
            }
        }
        Ok(keys.into_values().collect())
    }

    pub fn private_key(&self, public_key_hash: &[u8; 20]) -> ServiceResult<Option<Secret>> {
        let p2wpkh = p2wpkh(public_key_hash);
        let scripts = [p2pkh(public_key_hash), p2wpkh.to_p2sh(), p2wpkh];
        match self.wif_of(&scripts, public_key_hash)? {
            Some(wif) => Ok(Some(wif)),
            None => Ok(self.written_key(public_key_hash)?),
        }
    }

    /// The same, for a key that is itself in the text of a descriptor.
    fn written_key(&self, public_key_hash: &[u8; 20]) -> Result<Option<Secret>> {
        let encryption_key = self.wallet.encryption_key()?;
        for (number, _) in self.t().all_descriptors(&self.txn)? {
            let Some(parsed) = self.wallet.private_descriptor(&self.txn, number, &encryption_key)? else { continue };
            if let Some(wif) = parsed.written_private_key(public_key_hash) {
                return Ok(Some(wif));
            }
        }
        Ok(None)
    }

    /// Imported keys and scripts: a private key as `combo`, any other script that the wallet owns or watches as a descriptor made from its
    /// solving data.
    pub fn imported_descriptors(&self, private: bool) -> Result<Vec<DescriptorInfo>> {
        let encryption_key = if private { Some(self.wallet.encryption_key()?) } else { None };
        let encryption_key = encryption_key.as_ref();
        let mut infos = Vec::new();
        let mut covered: HashSet<ScriptBuf> = HashSet::new();
        for entry in self.t().imported_keys.iter(&self.txn)? {
            let row: KeyRow = from_bytes(entry?.1)?;
            if row.private {
                covered.extend(scripts_of_key(&row.public_key));
                let text = Zeroizing::new(format!("combo({})", row.expression()));
                infos.push(info(self.with_private_keys(text, [&row.public_key[..]], encryption_key)?, row.timestamp));
            }
        }
        for entry in self.t().scripts.iter(&self.txn)? {
            let row: ScriptRow = from_bytes(entry?.1)?;
            if row.imported == Ownership::None || !row.owners.is_empty() || covered.contains(&row.script) {
                continue;
            }
            let knowledge = imported::knowledge(self.t(), &self.txn, &row.script)?;
            let text = match knowledge.descriptor.filter(|text| self.stands_for(text, &row.script)) {
                Some(text) => {
                    let keys = knowledge.solving.public_keys.iter().map(|key| &key[..]);
                    self.with_private_keys(Zeroizing::new(text), keys, encryption_key)?
                }
                None => Secret::new(infer(&row.script, self.wallet.shared.network)),
            };
            infos.push(info(text, knowledge.timestamp));
        }
        Ok(infos)
    }

    /// Whether the descriptor built from solving data derives the script.
    fn stands_for(&self, descriptor: &str, script: &Script) -> bool {
        let parsed = Descriptor::parse(descriptor, self.wallet.shared.network, Checksum::Optional);
        let expansion = parsed.ok().and_then(|parsed| parsed.first()?.expand(0).ok());
        expansion.is_some_and(|expansion| expansion.scripts.iter().any(|one| one.script_pubkey == *script))
    }

    /// The descriptor with its checksum. With an encryption key, the wallet's private keys replace their public keys.
    fn with_private_keys<'k>(
        &self,
        mut text: Zeroizing<String>,
        public_keys: impl IntoIterator<Item = &'k [u8]>,
        encryption_key: Option<&EncryptionKey>,
    ) -> Result<Secret> {
        for public_key in public_keys {
            let private = self.private_text(&private_key_at(&hash160(public_key)), encryption_key)?;
            if let Some(private) = private {
                // A public key in hexadecimal cannot match anything else in the text.
                *text = text.replace(&encode_hex(public_key), private.expose());
            }
        }
        Ok(Secret::new(with_checksum(std::mem::take(&mut *text))))
    }
}

fn info(text: Secret, timestamp: u64) -> DescriptorInfo {
    DescriptorInfo { text, timestamp, active: false, internal: None, range: None, next_index: 0 }
}

//! Imported keys and scripts as descriptors: a private key as `combo`, any other script that the wallet owns or watches as
//! a descriptor made from its solving data.

use std::collections::HashSet;

use bitcoin::{Script, ScriptBuf};
use outrigger_descriptor::{Checksum, Descriptor};
use outrigger_service::wallet::{DescriptorInfo, Ownership};
use outrigger_service::wire::{Secret, from_bytes};
use outrigger_standard::descriptor::{infer, with_checksum};
use outrigger_values::params::encode_hex;
use zeroize::Zeroizing;

use super::WalletView;
use crate::encrypt::EncryptionKey;
use crate::error::Result;
use crate::imported::{self, scripts_of_key};
use crate::keypool::private_key_at;
use crate::store::{KeyRow, ScriptRow, hash160};

impl WalletView {
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
            let place = private_key_at(&hash160(public_key));
            if let (Some(encryption_key), Some(value)) = (encryption_key, self.t().keys.get(&self.txn, &place)?) {
                // A public key in hexadecimal cannot match anything else in the text.
                *text = text.replace(&encode_hex(public_key), encryption_key.unwrap(&place, value)?.expose());
            }
        }
        Ok(Secret::new(with_checksum(std::mem::take(&mut *text))))
    }
}

fn info(text: Secret, timestamp: u64) -> DescriptorInfo {
    DescriptorInfo { text, timestamp, active: false, internal: None, range: None, next_index: 0 }
}

//! The wallet's keys: extended keys (gethdkeys) and single private keys (dumpprivkey).

use std::collections::BTreeMap;

use outrigger_service::Result as ServiceResult;
use outrigger_service::wallet::HdKey;
use outrigger_service::wire::Secret;

use super::WalletView;
use crate::descriptors::parse_stored;
use crate::error::Result;
use crate::imported::p2wpkh;
use crate::keypool::private_key_of;
use crate::ownership::p2pkh;

impl WalletView {
    /// The extended keys of the descriptors, in bitcoind's order.
    pub fn hd_keys(&self, private: bool) -> Result<Vec<HdKey>> {
        let encryption_key = match self.wallet.encryption_key() {
            Err(error) if private => return Err(error),
            key => key.ok(),
        };
        let mut keys = BTreeMap::new();
        for (number, row) in self.t().all_descriptors(&self.txn)? {
            let place = private_key_of(number);
            let text = match (&encryption_key, self.t().keys.get(&self.txn, &place)?) {
                (Some(encryption_key), Some(value)) => encryption_key.unwrap(&place, value)?,
                _ => Secret::new(row.identity.clone()),
            };
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
}

//! A new seed (sethdseed): as bitcoind's legacy wallets, from which keys are derived at m/0'/0'/i' for receiving and m/0'/1'/i'
//! for change, each of which gives addresses of three types.

use bitcoin::PrivateKey;
use bitcoin::bip32::Xpriv;
use outrigger_service::wire::Secret;
use outrigger_service::{ErrorKind, Result as ServiceResult, ServiceError};
use secp256k1::rand::{RngCore, thread_rng};
use zeroize::Zeroizing;

use super::descriptors::parse_stored;
use super::error::{Result, WalletError};
use super::keypool::{DEFAULTS, private_key_at};
use super::live::Wallet;
use super::store::tables::hash160;
use super::write::Write;

/// What bitcoind says of a seed that the wallet has.
const KNOWN: &str = "Already have this key (either as an HD seed or as a loose private key)";

impl Wallet {
    /// Gives the wallet a new seed: this private key, as WIF, or a random one. New addresses come from it at once where it is to
    /// be `active`; else when those that were derived ahead of the former one are used up.
    ///
    /// # Errors
    /// `Refused` with bitcoind's words for one that it has, and for text that is no key; `WalletLocked`; `Storage`.
    pub fn set_hd_seed(&self, seed: Option<&Secret>, active: bool) -> ServiceResult<()> {
        let mut bytes = Zeroizing::new([0_u8; 32]);
        let mut place = None;
        match seed {
            Some(wif) => {
                let refused = |_| ServiceError::new(ErrorKind::Refused, "Invalid private key");
                let mut key = PrivateKey::from_wif(wif.expose()).map_err(refused)?;
                bytes.copy_from_slice(&key.inner[..]);
                place = Some(private_key_at(&hash160(&key.public_key(self.secp).to_bytes())));
                key.inner.non_secure_erase();
            }
            None => thread_rng().fill_bytes(bytes.as_mut_slice()),
        }
        Ok(self.write(|write| {
            let known = || ServiceError::new(ErrorKind::Refused, KNOWN);
            if let Some(place) = &place
                && write.t.keys.get(&write.txn, place)?.is_some()
            {
                return Err(known().into());
            }
            if !write.add_seed(&bytes, active)? {
                return Err(known().into());
            }
            Ok(())
        })?)
    }
}

impl Write<'_> {
    /// Adds the descriptors of a seed. Whether they are new.
    fn add_seed(&mut self, seed: &[u8; 32], active: bool) -> Result<bool> {
        // Read within the write: the key may have been replaced just before.
        let encryption_key = self.wallet.encryption_key()?;
        let shared = &self.wallet.shared;
        let master = Xpriv::new_master(shared.network, seed).map_err(|_| WalletError::damaged(seed.len()))?;
        let master = Zeroizing::new(master.to_string());
        let mut touched = Vec::new();
        for internal in [false, true] {
            // Not in taproot, which legacy wallets do not have.
            for (kind, _, open, close) in DEFAULTS.into_iter().take(3) {
                let text = format!("{open}{}/0h/{}h/*h{close}", master.as_str(), u8::from(internal));
                let text = Secret::new(text);
                let parsed = parse_stored(self.meta.next_descriptor, text.expose(), shared.network)?;
                if self.find_descriptor(&parsed)?.is_some() {
                    return Ok(false);
                }
                let mut row = self.own_row(&parsed, kind, internal);
                let number = self.add_descriptor(row.clone(), &parsed, &encryption_key, &mut touched)?;
                if active {
                    self.activate(number, &mut row, kind, internal)?;
                } else {
                    self.queue(number, &mut row, kind, internal)?;
                }
            }
        }
        self.rederive(&touched)?;
        self.meta.blank = false;
        self.note_backup_needed()?;
        Ok(true)
    }
}

//! encryptwallet, walletpassphrase, walletlock and walletpassphrasechange.

use std::time::{Duration, Instant};

use outrigger_service::wire::Secret;
use outrigger_service::{ErrorKind, Result as ServiceResult, ServiceError};

use super::encrypt::EncryptionKey;
use super::files;
use super::follow::worker::Due;
use super::live::{Lock, Wallet};
use super::store::{ENCRYPTION, PLAINTEXT_KEY};

/// The longest time for which walletpassphrase unlocks a wallet, in seconds, as in bitcoind.
pub const MAX_UNLOCK_SECONDS: u64 = 100_000_000;

impl Wallet {
    fn wrong_state(&self, encrypted: bool, method: &str) -> ServiceError {
        let state = if encrypted { "an encrypted" } else { "an unencrypted" };
        ServiceError::new(
            ErrorKind::WrongEncryptionState,
            format!("Error: running with {state} wallet, but {method} was called."),
        )
    }

    fn require_encrypted(&self, method: &str) -> ServiceResult<()> {
        if self.lock_state().0 { Ok(()) } else { Err(self.wrong_state(false, method)) }
    }

    /// encryptwallet: encrypts the keys with a passphrase and locks the wallet. Unless the wallet is blank, new
    /// descriptors replace all active ones, imported ones included.
    pub fn encrypt(&self, passphrase: Secret) -> ServiceResult<()> {
        if self.lock_state().0 {
            return Err(self.wrong_state(true, "encryptwallet"));
        }
        let key = EncryptionKey::random();
        let row = key.protect(&passphrase, &self.shared.settings)?;
        self.write(|write| {
            files::note_former_key(self.store.env.folder())?;
            if !write.meta.private_keys_enabled {
                let detail = "Error: wallet does not contain private keys, nothing to encrypt.";
                return Err(ServiceError::new(ErrorKind::Refused, detail).into());
            }
            let former = match &*self.lock.lock() {
                Lock::Plain(former) => former.clone(),
                _ => return Err(self.wrong_state(true, "encryptwallet").into()),
            };
            write.store_row(write.t.meta, ENCRYPTION, &row)?;
            write.delete(write.t.meta, PLAINTEXT_KEY)?;
            write.mark_scrub_due(former.expose())?;
            write.key = Some(key);
            write.reencrypt(&former)?;
            if !write.meta.blank {
                write.add_default_descriptors()?;
            }
            // Within the write, so that nothing is encrypted with the former key between commit and lock.
            *self.lock.lock() = Lock::Locked;
            Ok(())
        })
        .or_else(|error| {
            // The write may have locked the wallet before it failed.
            *self.lock.lock() = Self::stored_lock(&self.store)?;
            Err(error)
        })?;
        self.scrub();
        self.tell_lock(true);
        Ok(())
    }

    /// walletpassphrase: unlocks the wallet for a time, in seconds.
    pub fn unlock(&self, passphrase: Secret, seconds: u64) -> ServiceResult<()> {
        self.require_encrypted("walletpassphrase")?;
        let key = self.recover(&passphrase)?;
        let seconds = seconds.min(MAX_UNLOCK_SECONDS);
        let until = self.shared.node.time().saturating_add(seconds);
        let deadline = Instant::now() + Duration::from_secs(seconds);
        // Only the private texts tell all keys by which copies of the wallet are found. The mutex is held while the lock opens, so that no
        // call finds the policies of the locked wallet meanwhile.
        let mut guarded = self.guarded.lock();
        (guarded.version, guarded.unlocks) = (0, guarded.unlocks + 1);
        *self.lock.lock() = Lock::Unlocked { key, until, deadline };
        drop(guarded);
        self.shared.follower.alarms.set(deadline, Due::Lock(self.slot));
        self.tell_lock(false);
        Ok(())
    }

    /// Decrypts the encryption key. Wrong passphrases delay further attempts.
    pub(super) fn recover(&self, passphrase: &Secret) -> ServiceResult<EncryptionKey> {
        self.attempts.make(|| {
            let row = self.store.tables.encryption(&*self.store.read()?)?;
            Ok(EncryptionKey::recover(&row.ok_or(ErrorKind::WrongEncryptionState)?, passphrase)?)
        })
    }

    pub fn lock(&self) -> ServiceResult<()> {
        self.require_encrypted("walletlock")?;
        self.lock_now();
        Ok(())
    }

    fn lock_now(&self) {
        let was = std::mem::replace(&mut *self.lock.lock(), Lock::Locked);
        if matches!(was, Lock::Unlocked { .. }) {
            self.tell_lock(true);
        }
    }

    /// walletpassphrasechange: the wallet stays locked or unlocked. A wrong old passphrase locks it, because bitcoind
    /// locks a wallet before it tries the passphrase.
    pub fn change_passphrase(&self, old: Secret, new: Secret) -> ServiceResult<()> {
        self.require_encrypted("walletpassphrasechange")?;
        let key = self.recover(&old).inspect_err(|error| {
            // Other errors, such as a refused attempt, do not lock the wallet.
            if error.kind == ErrorKind::PassphraseIncorrect {
                self.lock_now();
            }
        })?;
        let row = key.protect(&new, &self.shared.settings)?;
        self.write(|write| {
            files::note_former_key(self.store.env.folder())?;
            let former = write.t.encryption(write.reads())?.ok_or(ErrorKind::WrongEncryptionState)?;
            write.mark_scrub_due(&former.encrypted_key)?;
            write.store_row(write.t.meta, ENCRYPTION, &row)
        })?;
        self.scrub();
        Ok(())
    }
}

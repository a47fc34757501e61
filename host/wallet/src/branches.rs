//! Private keys of descriptors, kept encrypted in memory so that signing does not derive them from their roots each time.

use std::collections::HashMap;

use outrigger_descriptor::PrivateBranches;
use parking_lot::Mutex;

use super::encrypt::EncryptionKey;
use super::error::Result;

/// The most descriptors whose private keys are kept encrypted; beyond it the cache starts anew.
const MAX_BRANCHES: usize = 4096;

/// The private keys of descriptors as they are derived from, encrypted as their texts are: whoever has the wallet's encryption
/// key is spared reading the texts and deriving from their roots, which costs more than a signature.
#[derive(Default)]
pub(super) struct EncryptedBranches(Mutex<HashMap<Vec<u8>, Vec<u8>>>);

impl EncryptedBranches {
    pub(super) fn clear(&self) {
        *self.0.lock() = HashMap::new();
    }

    /// What was kept for a encrypted text. The text is known by its encrypted form, which has a nonce of its own: one that was
    /// replaced or encrypted anew is another one.
    pub(super) fn open(&self, encrypted_text: &[u8], encryption_key: &EncryptionKey) -> Option<PrivateBranches> {
        let encrypted = self.0.lock().get(encrypted_text).cloned()?;
        PrivateBranches::from_bytes(&encryption_key.decrypt(encrypted_text, &encrypted)?)
    }

    pub(super) fn keep(
        &self,
        encrypted_text: &[u8],
        encryption_key: &EncryptionKey,
        branches: &PrivateBranches,
    ) -> Result<()> {
        let encrypted = encryption_key.encrypt(encrypted_text, &branches.to_bytes())?;
        let mut kept = self.0.lock();
        if kept.len() >= MAX_BRANCHES {
            kept.clear();
        }
        kept.insert(encrypted_text.to_vec(), encrypted);
        Ok(())
    }
}

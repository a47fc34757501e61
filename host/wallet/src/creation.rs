use std::sync::Arc;

use outrigger_service::wallet::CreateOptions;

use super::Shared;
use super::encrypt::EncryptionKey;
use super::error::Result;
use super::live::Wallet;
use super::store::rows::MetaRow;
use super::store::tables::{CHAIN, ENCRYPTION, PLAINTEXT_KEY, put};
use super::store::{LAYOUT, Store};

impl Wallet {
    /// Fills the tables of a new wallet. The wallet starts at the node's tip.
    pub(super) fn initialise(options: &CreateOptions, store: Store, shared: Arc<Shared>) -> Result<Self> {
        let synced = shared.node.tip();
        let encryption_key = EncryptionKey::random();
        let meta = MetaRow {
            version: LAYOUT,
            private_keys_enabled: !options.disable_private_keys,
            blank: options.blank,
            avoid_reuse: options.avoid_reuse,
            birth_time: u64::MAX,
            backup_needed: true,
            signer: shared.settings.signer.clone().filter(|_| options.external_signer),
            ..MetaRow::default()
        };
        let t = store.tables;
        let mut txn = store.write()?;
        if options.passphrase.expose().is_empty() {
            t.meta.put(&mut txn, PLAINTEXT_KEY, &encryption_key.to_plaintext())?;
        } else {
            put(t.meta, &mut txn, ENCRYPTION, &encryption_key.protect(&options.passphrase, &shared.settings)?)?;
        }
        put(t.meta, &mut txn, b"meta", &meta)?;
        put(t.meta, &mut txn, b"synced", &synced)?;
        t.meta.put(&mut txn, CHAIN, &shared.node.chain().to_bytes())?;
        put(t.blocks, &mut txn, &synced.height.to_be_bytes(), &synced.hash)?;
        txn.commit()?;
        let wallet = Self::new(options.name.clone(), store, shared, false)?;
        if !options.blank && !options.disable_private_keys {
            wallet.write(|write| write.add_default_descriptors(&encryption_key))?;
        }
        Ok(wallet)
    }
}

//! A new wallet, the wallet of a file, and what imports cannot set in a wallet that is copied from another program. Each wallet is bound to
//! the chain on which it was created.

use std::path::Path;
use std::sync::Arc;

use bitcoin::Txid;
use outrigger_node::ChainIdentity;
use outrigger_service::wallet::CreateOptions;

use super::Shared;
use super::encrypt::EncryptionKey;
use super::error::{Result, WalletError};
use super::files;
use super::live::Wallet;
use super::settings::Settings;
use super::store::{CHAIN, ENCRYPTION, LAYOUT, MetaRow, PLAINTEXT_KEY, Store, put};

impl Wallet {
    /// The wallet of a store. Fails with [`WalletError::OtherChain`] unless it belongs to the node's chain.
    pub(super) fn of_chain(name: String, store: Store, shared: Arc<Shared>, on_trial: bool) -> Result<Self> {
        let expected = shared.node.chain();
        let txn = store.read()?;
        let row = store.tables.meta.get(&txn, CHAIN)?.ok_or(WalletError::damaged(0))?;
        let found = ChainIdentity::from_bytes(row).ok_or(WalletError::damaged(row.len()))?;
        drop(txn);
        let other_signet = found.signet_challenge.is_some() && found != expected;
        if found.genesis != expected.genesis || other_signet {
            return Err(WalletError::OtherChain { found, expected });
        }
        Self::new(name, store, shared, on_trial)
    }

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
            wallet.write(|write| {
                write.key = Some(encryption_key);
                write.add_default_descriptors()
            })?;
        }
        Ok(wallet)
    }
}

/// Sets whether a wallet that is not loaded is blank, and the `time` and `timereceived` of its transactions, in Unix seconds. Skips
/// unknown transactions.
pub fn take_over(dir: &Path, name: &str, blank: bool, times: &[(Txid, u64, u64)]) -> Result<()> {
    let store = Store::open(&files::folder(dir, name)?, &Settings::default())?;
    let (t, mut txn) = (store.tables, store.write()?);
    let mut meta = t.meta(&txn)?;
    meta.blank = blank;
    put(t.meta, &mut txn, b"meta", &meta)?;
    for (txid, time, received) in times {
        if let Some(mut row) = t.transaction(&txn, txid)? {
            (row.time, row.time_received) = (*time, *received);
            put(t.transactions, &mut txn, &row.order_position.to_be_bytes(), &row)?;
        }
    }
    Ok(txn.commit()?)
}

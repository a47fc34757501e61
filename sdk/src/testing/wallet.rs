//! A stub wallet that answers from data set by the test.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use bitcoin::hashes::Hash;
use bitcoin::{BlockHash, NetworkKind, OutPoint, PrivateKey, ScriptBuf, Txid, Wtxid};
use secp256k1::{Secp256k1, SecretKey};

use super::rows::{KnownTransaction, MAX_BATCH, batch, in_range, order};
use super::wallet_state::WalletState;
use super::{StubMempool, lock};
use outrigger_service::mempool::Admission;
use outrigger_service::wallet::{
    AddressType, Balances, BalancesQuery, CoinBatch, CreateOptions, DescriptorImport, DescriptorInfo, HdKey,
    HistoryBatch, HistoryQuery, Import, ImportOutcome, LabelBatch, LabelledScript, Received, ReceivedQuery,
    Replaceable, ScriptInfo, SpendSettings, TxState, WalletInfo, WalletLog,
};
use outrigger_service::wire::{Blob, Encoded, Secret};
use outrigger_service::{
    ErrorKind, Mempool, Result, Scope, WalletAdmin, WalletBook, WalletImport, WalletKeys, WalletPay, WalletRead,
};
use outrigger_values::FeeRate;

/// The wallet that a test set, or none.
pub struct StubWallet {
    state: Mutex<Option<WalletState>>,
    /// The mempool that receives the wallet's payments.
    mempool: Arc<StubMempool>,
}

impl StubWallet {
    /// A stub without a wallet. A wallet that the test sets sends payments to `mempool`.
    pub fn new(mempool: Arc<StubMempool>) -> Self {
        Self { state: Mutex::default(), mempool }
    }

    /// Sets the wallet, or removes it.
    pub fn set(&self, state: Option<WalletState>) {
        *lock(&self.state) = state;
    }

    /// Reads or changes the wallet's state.
    ///
    /// # Errors
    /// [`ErrorKind::NoWallet`] if no wallet is set.
    pub fn with<T>(&self, body: impl FnOnce(&mut WalletState) -> T) -> Result<T> {
        lock(&self.state).as_mut().map(body).ok_or(ErrorKind::NoWallet.into())
    }

    pub(super) fn unlocked<T>(&self, read: impl FnOnce(&WalletState) -> T) -> Result<T> {
        self.with(|state| if state.info.locked { Err(ErrorKind::WalletLocked.into()) } else { Ok(read(state)) })?
    }
}

impl WalletRead for StubWallet {
    fn list(&self, _: Scope) -> Result<Vec<String>> {
        Ok(lock(&self.state).iter().map(|state| state.info.name.clone()).collect())
    }

    fn scope_of(&self, _: Scope, name: String) -> Result<u64> {
        let known = self.with(|state| state.info.name == name)?;
        if known { Ok(Scope::NONE.0) } else { Err(ErrorKind::WalletNotLoaded.into()) }
    }

    fn info(&self, _: Scope) -> Result<WalletInfo> {
        self.with(|state| WalletInfo { transactions: state.transactions.len() as u64, ..state.info.clone() })
    }

    fn scripts(&self, _: Scope, scripts: Vec<ScriptBuf>) -> Result<Vec<Option<ScriptInfo>>> {
        self.with(|state| scripts.iter().map(|script| state.scripts.get(script).cloned()).collect())
    }

    fn log(&self, _: Scope, after: u64, limit: u32) -> Result<WalletLog> {
        self.with(|state| {
            let later = state.log.iter().filter(|entry| entry.number > after).take(limit.max(1) as usize);
            let last = state.log.last().map_or(0, |entry| entry.number);
            WalletLog { wallet: state.info.name.clone(), entries: later.cloned().collect(), last, dropped: 0 }
        })
    }

    fn transactions(&self, _: Scope, txids: Vec<Txid>) -> Result<Encoded<HistoryBatch>> {
        self.with(|state| {
            let rows = txids.into_iter().filter_map(|txid| state.known(txid).map(KnownTransaction::row)).collect();
            Encoded::new(&HistoryBatch { rows, next: None })
        })
    }

    fn raw_transactions(&self, _: Scope, txids: Vec<Txid>) -> Result<Vec<Option<Blob>>> {
        self.with(|state| {
            let raw = |txid| state.known(txid).map(|known| Blob(known.raw.clone()));
            txids.into_iter().map(raw).collect()
        })
    }

    fn history(&self, _: Scope, query: HistoryQuery) -> Result<Encoded<HistoryBatch>> {
        let mut all = self.with(|state| state.transactions.clone())?;
        all.retain(|known| in_range(&known.transaction, query.range));
        all.sort_by_key(|known| order(&known.transaction, query.range));
        if query.reverse {
            all.reverse();
        }
        let rows = all.iter().map(KnownTransaction::row).collect();
        let (rows, next) = batch(rows, query.after.as_ref(), query.limit.min(MAX_BATCH))?;
        Ok(Encoded::new(&HistoryBatch { rows, next }))
    }

    fn descriptor_texts(&self, _: Scope, numbers: Vec<u32>) -> Result<Vec<Option<String>>> {
        self.with(|state| numbers.iter().map(|number| state.descriptor_texts.get(number).cloned()).collect())
    }

    fn coins(&self, _: Scope, in_mempool: bool, after: Option<Blob>, limit: u32) -> Result<CoinBatch> {
        let mut coins = self.with(|state| state.coins.clone())?;
        coins.retain(|coin| !in_mempool || coin.state == TxState::InMempool);
        let (coins, next) = batch(coins, after.as_ref(), limit)?;
        Ok(CoinBatch { coins, next })
    }

    fn descriptors(&self, _: Scope) -> Result<Vec<DescriptorInfo>> {
        self.with(|state| state.descriptors.clone())
    }

    fn hd_keys(&self, _: Scope) -> Result<Vec<HdKey>> {
        let without = |key: &HdKey| HdKey { xprv: None, ..key.clone() };
        self.with(|state| state.hd_keys.iter().map(without).collect())
    }

    fn labels(&self, _: Scope, after: Option<Blob>, limit: u32) -> Result<LabelBatch> {
        let (entries, next) = batch(self.with(WalletState::book)?, after.as_ref(), limit.min(MAX_BATCH))?;
        Ok(LabelBatch { entries, next })
    }

    fn label_names(&self, _: Scope, sending: Option<bool>) -> Result<Vec<String>> {
        let wanted = |entry: &LabelledScript| sending.is_none_or(|sending| sending == entry.sending);
        let names = self.with(WalletState::book)?.into_iter().filter(wanted).map(|entry| entry.label);
        Ok(names.collect::<BTreeSet<_>>().into_iter().collect())
    }

    fn labelled(&self, _: Scope, label: String) -> Result<Vec<LabelledScript>> {
        let mut entries = self.with(WalletState::book)?;
        entries.retain(|entry| entry.label == label);
        Ok(entries)
    }

    fn spenders(&self, _: Scope, outpoints: Vec<OutPoint>) -> Result<Vec<Vec<Txid>>> {
        self.with(|state| {
            let all = || state.transactions.iter().map(|known| &known.transaction);
            let of = |outpoint| all().filter(|row| row.inputs.contains(outpoint)).map(|row| row.txid).collect();
            outpoints.iter().map(of).collect()
        })
    }

    fn locked_coins(&self, _: Scope) -> Result<Vec<OutPoint>> {
        self.with(|state| state.locked.iter().copied().collect())
    }

    fn spend_settings(&self, _: Scope) -> Result<SpendSettings> {
        self.with(|state| state.spending.clone())
    }

    fn received(&self, _: Scope, _: ReceivedQuery) -> Result<Encoded<Vec<Received>>> {
        self.with(|state| Encoded::new(&state.received))
    }

    fn spent_from(&self, _: Scope, scripts: Vec<ScriptBuf>) -> Result<Vec<bool>> {
        self.with(|state| scripts.iter().map(|script| state.spent_from.contains(script)).collect())
    }

    fn replaceable(&self, _: Scope, txids: Vec<Txid>) -> Result<Vec<Replaceable>> {
        self.with(|state| {
            let known = |txid| state.known(txid).map_or(Replaceable::Unknown, KnownTransaction::replaceable);
            txids.into_iter().map(known).collect()
        })
    }

    fn balances(&self, _: Scope, _: BalancesQuery) -> Result<Balances> {
        self.with(|state| state.balances)
    }

    fn spent_outside_mempool(&self, _: Scope, _: BalancesQuery) -> Result<Balances> {
        Ok(Balances::default())
    }

    fn alternate_wtxids(&self, _: Scope, txids: Vec<Txid>) -> Result<Vec<Vec<Wtxid>>> {
        Ok(vec![Vec::new(); txids.len()])
    }

    fn imported_descriptors(&self, _: Scope) -> Result<Vec<DescriptorInfo>> {
        self.with(|state| state.imported.clone())
    }
}

impl WalletBook for StubWallet {
    fn new_address(&self, _: Scope, _: AddressType, _: bool, label: Option<String>) -> Result<ScriptBuf> {
        self.with(|state| {
            let script = state.addresses.pop_front().ok_or(ErrorKind::KeypoolRanOut)?;
            if let Some(info) = state.scripts.get_mut(&script) {
                info.label = label;
            }
            Ok(script)
        })?
    }

    fn set_label(&self, _: Scope, script: ScriptBuf, label: String) -> Result<()> {
        self.with(|state| {
            if let Some(info) = state.scripts.get_mut(&script) {
                info.label = Some(label);
            }
        })
    }

    fn set_metadata(&self, _: Scope, txid: Txid, key: String, value: String) -> Result<()> {
        self.with(|state| {
            let transaction = state.transaction_mut(txid).ok_or(ErrorKind::NotFound)?;
            transaction.metadata.push((key, value));
            Ok(())
        })?
    }

    fn refill_keypool(&self, _: Scope, size: Option<u32>) -> Result<()> {
        self.with(|state| {
            // A blank wallet has no descriptors to derive addresses from.
            if !state.info.blank {
                let ahead = state.info.keypool_external.max(u64::from(size.unwrap_or(0)));
                state.info.keypool_external = ahead;
            }
        })
    }

    fn return_address(&self, _: Scope, script: ScriptBuf) -> Result<bool> {
        self.with(|state| {
            state.addresses.push_front(script);
            true
        })
    }

    fn lock_coins(&self, _: Scope, coins: Vec<OutPoint>, _: bool) -> Result<()> {
        self.with(|state| state.locked.extend(coins))
    }

    fn unlock_coins(&self, _: Scope, coins: Vec<OutPoint>) -> Result<()> {
        self.with(|state| state.locked.retain(|coin| !coins.contains(coin)))
    }
}

impl WalletPay for StubWallet {
    fn abandon(&self, _: Scope, txid: Txid) -> Result<()> {
        self.with(|state| {
            let transaction = state.transaction_mut(txid).ok_or(ErrorKind::NotFound)?;
            transaction.state = TxState::Abandoned;
            Ok(())
        })?
    }

    fn send(&self, scope: Scope, raw: Blob, metadata: Vec<(String, String)>) -> Result<Option<Admission>> {
        self.with(|state| {
            let admission = self.mempool.submit(scope, raw.clone(), FeeRate::ZERO)?;
            state.sent.push((raw, metadata));
            Ok(Some(admission))
        })?
    }

    fn set_pay_feerate(&self, _: Scope, feerate: Option<FeeRate>) -> Result<()> {
        self.with(|state| state.spending.pay_feerate = feerate)
    }

    fn replace(
        &self,
        scope: Scope,
        replaced: Txid,
        raw: Blob,
        metadata: Vec<(String, String)>,
    ) -> Result<Option<Admission>> {
        self.mempool.remove(replaced);
        self.send(scope, raw, metadata)
    }

    fn begin_payment(&self, _: Scope) -> Result<()> {
        Ok(())
    }
}

impl WalletImport for StubWallet {
    fn import(&self, _: Scope, requests: Vec<Import>) -> Result<Vec<ImportOutcome>> {
        self.with(|state| {
            let imported = ImportOutcome::Imported { missing_private_keys: false, unknown_output_type: false };
            let outcomes =
                requests.iter().map(|_| state.outcomes.pop_front().unwrap_or_else(|| imported.clone())).collect();
            state.imports.extend(requests);
            outcomes
        })
    }

    fn rescan_reserve(&self, _: Scope) -> Result<u64> {
        self.with(|state| {
            if state.rescan.is_some() {
                return Err(ErrorKind::WalletRescanning.into());
            }
            state.last_rescan += 1;
            let number = state.last_rescan;
            state.rescan = Some((number, None));
            Ok(number)
        })?
    }

    fn rescan_release(&self, _: Scope, rescan: u64) -> Result<()> {
        self.with(|state| state.rescan = state.rescan.filter(|(number, _)| *number != rescan))
    }

    fn rescan_start(&self, _: Scope, rescan: u64, from_time: u64) -> Result<()> {
        self.with(|state| state.rescan = Some((rescan, Some(from_time))))
    }

    fn rescan_heights(&self, _: Scope, rescan: u64, first: u32, last: Option<u32>) -> Result<()> {
        self.with(|state| {
            state.rescan = Some((rescan, Some(0)));
            state.rescan_heights = Some((first, last));
        })
    }

    fn add_confirmed(&self, _: Scope, raw: Blob, block: BlockHash, index: u32) -> Result<()> {
        self.with(|state| state.added.push((raw, block, index)))
    }

    fn remove_transaction(&self, _: Scope, txid: Txid) -> Result<()> {
        self.with(|state| {
            let place = state.transactions.iter().position(|known| known.transaction.txid == txid);
            state.transactions.remove(place.ok_or(ErrorKind::NotFound)?);
            Ok(())
        })?
    }

    fn rescan_abort(&self, _: Scope) -> Result<bool> {
        self.with(|state| state.rescan.is_some())
    }
}

impl WalletAdmin for StubWallet {
    fn create(&self, _: Scope, options: CreateOptions) -> Result<Vec<String>> {
        let mut state = WalletState::empty(&options.name);
        state.info.private_keys_enabled = !options.disable_private_keys;
        state.info.signer = options.external_signer.then(|| "provider".to_owned());
        state.info.blank = options.blank;
        self.set(Some(state));
        Ok(Vec::new())
    }

    fn load(&self, _: Scope, name: String, _: Option<bool>) -> Result<Vec<String>> {
        self.set(Some(WalletState::empty(&name)));
        Ok(Vec::new())
    }

    fn unload(&self, _: Scope, _: String, _: Option<bool>) -> Result<Vec<String>> {
        self.set(None);
        Ok(Vec::new())
    }

    fn directory(&self, scope: Scope) -> Result<Vec<String>> {
        self.list(scope)
    }

    fn encrypt(&self, _: Scope, passphrase: Secret) -> Result<()> {
        self.with(|state| {
            state.passphrase = Some(passphrase);
            state.info.encrypted = true;
            state.lock_now();
        })
    }

    fn unlock(&self, _: Scope, passphrase: Secret, seconds: u64) -> Result<()> {
        self.with(|state| {
            if state.passphrase.as_ref() != Some(&passphrase) {
                return Err(ErrorKind::PassphraseIncorrect.into());
            }
            state.info.locked = false;
            state.info.unlocked_until = seconds;
            Ok(())
        })?
    }

    fn lock(&self, _: Scope) -> Result<()> {
        self.with(WalletState::lock_now)
    }

    fn change_passphrase(&self, _: Scope, old: Secret, new: Secret) -> Result<()> {
        self.with(|state| {
            if state.passphrase.as_ref() != Some(&old) {
                state.lock_now();
                return Err(ErrorKind::PassphraseIncorrect.into());
            }
            state.passphrase = Some(new);
            Ok(())
        })?
    }

    fn set_avoid_reuse(&self, _: Scope, avoid: bool) -> Result<()> {
        self.with(|state| state.info.avoid_reuse = avoid)
    }

    fn backup(&self, _: Scope, file: String) -> Result<()> {
        self.with(|state| {
            state.info.backup_needed = false;
            state.backups.push(file);
        })
    }

    fn export_watch_only(&self, _: Scope, file: String) -> Result<()> {
        self.with(|state| state.backups.push(file))
    }

    fn restore(&self, _: Scope, name: String, file: String, _: Option<bool>) -> Result<Vec<String>> {
        self.with(|state| {
            if !state.backups.contains(&file) {
                return Err(ErrorKind::NotFound.into());
            }
            state.info.name = name;
            Ok(Vec::new())
        })?
    }

    fn add_own_descriptors(&self, scope: Scope, descriptors: Vec<DescriptorImport>) -> Result<Vec<ImportOutcome>> {
        let request = |descriptor| Import::Descriptor { descriptor };
        let outcomes = self.import(scope, descriptors.into_iter().map(request).collect())?;
        self.with(|state| state.info.blank = false)?;
        Ok(outcomes)
    }
}

impl WalletKeys for StubWallet {
    fn private_descriptors(&self, _: Scope) -> Result<Vec<DescriptorInfo>> {
        self.unlocked(|state| state.descriptors.clone())
    }

    fn private_imported_descriptors(&self, _: Scope) -> Result<Vec<DescriptorInfo>> {
        self.unlocked(|state| state.imported.clone())
    }

    fn private_hd_keys(&self, _: Scope) -> Result<Vec<HdKey>> {
        self.unlocked(|state| state.hd_keys.clone())
    }

    fn private_key(&self, _: Scope, public_key_hash: [u8; 20]) -> Result<Option<Secret>> {
        let key = |inner: &SecretKey| PrivateKey { compressed: true, network: NetworkKind::Test, inner: *inner };
        let is_wanted = |key: &PrivateKey| {
            let hash = key.public_key(&Secp256k1::new()).pubkey_hash();
            hash.to_byte_array() == public_key_hash
        };
        self.unlocked(|state| state.keys.iter().map(key).find(is_wanted).map(|key| Secret::new(key.to_wif())))
    }
}

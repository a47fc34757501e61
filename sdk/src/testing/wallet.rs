//! A wallet that answers from plain data, set by the test.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use bitcoin::hashes::Hash;
use bitcoin::{BlockHash, NetworkKind, OutPoint, PrivateKey, ScriptBuf, Txid};
use secp256k1::{Secp256k1, SecretKey};

use super::rows::{KnownTransaction, MAX_BATCH, batch, in_range, order};
use super::{StubMempool, lock};
use outrigger_service::mempool::Admission;
use outrigger_service::wallet::{
    AddressSource, AddressType, CoinBatch, CreateOptions, DescriptorInfo, HdKey, HistoryBatch, HistoryQuery, Import,
    ImportOutcome, LabelBatch, LabelledScript, Migration, Ownership, ScriptInfo, SpendSettings, Synced, TxState,
    WalletCoin, WalletInfo, WalletKind, WalletTransaction,
};
use outrigger_service::wire::{Blob, Encoded, Secret};
use outrigger_service::{ErrorKind, Mempool, Result, Scope, ServiceError, Wallet};
use outrigger_values::FeeRate;

/// What the wallet answers with.
#[derive(Clone, Debug)]
pub struct WalletState {
    /// The wallet as a whole.
    pub info: WalletInfo,
    /// What is known of scripts.
    pub scripts: BTreeMap<ScriptBuf, ScriptInfo>,
    /// The transactions, by their order position.
    pub transactions: Vec<KnownTransaction>,
    /// The texts of descriptors by the numbers that outputs name.
    pub descriptor_texts: BTreeMap<u32, String>,
    /// The coins.
    pub coins: Vec<WalletCoin>,
    /// The locked outputs.
    pub locked: BTreeSet<OutPoint>,
    /// What holds for payments.
    pub spending: SpendSettings,
    /// The descriptors.
    pub descriptors: Vec<DescriptorInfo>,
    /// The addresses to hand out next.
    pub addresses: VecDeque<ScriptBuf>,
    /// The keys that may sign.
    pub keys: Vec<SecretKey>,
    /// What was imported.
    pub imports: Vec<Import>,
    /// What imports are answered with; `Imported` when it is empty.
    pub outcomes: VecDeque<ImportOutcome>,
    /// The number of the rescan that is reserved or runs, and since when it scans.
    pub rescan: Option<(u64, Option<u64>)>,
    /// The extended keys.
    pub hd_keys: Vec<HdKey>,
    /// The transactions that were added by hand, with block and position.
    pub added: Vec<(Blob, BlockHash, u32)>,
    /// How often the keypool was made anew.
    pub new_keypools: u32,
    /// The files that keys were dumped to, and their texts.
    pub dumps: BTreeMap<String, Secret>,
    /// The seeds that were set, and whether they became active.
    pub seeds: Vec<(Option<Secret>, bool)>,
    /// The heights of the last rescan that was started for some.
    pub rescan_heights: Option<(u32, Option<u32>)>,
    /// The passphrase of an encrypted wallet.
    pub passphrase: Option<Secret>,
    /// The files that backups were written to. A wallet of one of them can be restored.
    pub backups: Vec<String>,
    /// What was sent and not refused, with its texts.
    pub sent: Vec<(Blob, Vec<(String, String)>)>,
    /// Whether the node does not say what became of what is sent.
    pub unanswered: bool,
    next_rescan: u64,
}

impl WalletState {
    /// An empty wallet of a name, in step with a block.
    pub fn new(name: &str, hash: BlockHash, height: u32, time: u32) -> Self {
        Self {
            info: WalletInfo {
                name: name.to_owned(),
                synced: Synced { hash, height, time, median_time: time },
                kind: WalletKind::Both,
                private_keys_enabled: true,
                blank: false,
                avoid_reuse: false,
                encrypted: false,
                locked: false,
                unlocked_until: 0,
                rescan: None,
                transactions: 0,
                keypool_external: 0,
                keypool_internal: 0,
                birth_time: 1,
                backup_needed: false,
                last_backup: 0,
                keypool: 1000,
                sources: all_sources(),
                keypool_oldest: 0,
                warnings: Vec::new(),
            },
            scripts: BTreeMap::new(),
            transactions: Vec::new(),
            descriptor_texts: BTreeMap::new(),
            coins: Vec::new(),
            locked: BTreeSet::new(),
            spending: SpendSettings::default(),
            descriptors: Vec::new(),
            addresses: VecDeque::new(),
            keys: Vec::new(),
            imports: Vec::new(),
            outcomes: VecDeque::new(),
            rescan: None,
            hd_keys: Vec::new(),
            added: Vec::new(),
            new_keypools: 0,
            dumps: BTreeMap::new(),
            seeds: Vec::new(),
            rescan_heights: None,
            passphrase: None,
            backups: Vec::new(),
            sent: Vec::new(),
            unanswered: false,
            next_rescan: 1,
        }
    }

    /// As [`WalletState::new`]: an empty wallet that has not followed any chain.
    pub fn empty(name: &str) -> Self {
        Self::new(name, BlockHash::all_zeros(), 0, 0)
    }

    fn known(&self, txid: Txid) -> Option<&KnownTransaction> {
        self.transactions.iter().find(|known| known.transaction.txid == txid)
    }

    fn transaction_mut(&mut self, txid: Txid) -> Option<&mut WalletTransaction> {
        self.transactions.iter_mut().map(|known| &mut known.transaction).find(|transaction| transaction.txid == txid)
    }

    fn lock_now(&mut self) {
        self.info.locked = true;
        self.info.unlocked_until = 0;
    }
}

/// Sources of all types for both sides.
fn all_sources() -> Vec<AddressSource> {
    let kinds = [AddressType::Legacy, AddressType::P2shSegwit, AddressType::Bech32, AddressType::Bech32m];
    let side = |internal| kinds.map(|kind| AddressSource { kind, internal, available: true });
    [side(false), side(true)].concat()
}

/// The wallet that a test set, or none.
pub struct StubWallet {
    state: Mutex<Option<WalletState>>,
    /// What it sends to.
    mempool: Arc<StubMempool>,
}

impl StubWallet {
    /// No wallet yet, beside a mempool.
    pub fn new(mempool: Arc<StubMempool>) -> Self {
        Self { state: Mutex::default(), mempool }
    }

    /// Puts a wallet there, or takes it away.
    pub fn set(&self, state: Option<WalletState>) {
        *lock(&self.state) = state;
    }

    /// Looks at the wallet, or changes it.
    ///
    /// # Errors
    /// [`ErrorKind::NoWallet`] when there is none.
    pub fn with<T>(&self, body: impl FnOnce(&mut WalletState) -> T) -> Result<T> {
        lock(&self.state).as_mut().map(body).ok_or(ErrorKind::NoWallet.into())
    }
}

impl Wallet for StubWallet {
    fn create(&self, _: Scope, options: CreateOptions) -> Result<Vec<String>> {
        let mut state = WalletState::empty(&options.name);
        state.info.private_keys_enabled = !options.disable_private_keys;
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

    fn list(&self, _: Scope) -> Result<Vec<String>> {
        Ok(lock(&self.state).iter().map(|state| state.info.name.clone()).collect())
    }

    fn directory(&self, scope: Scope) -> Result<Vec<String>> {
        self.list(scope)
    }

    fn info(&self, _: Scope) -> Result<WalletInfo> {
        self.with(|state| WalletInfo { transactions: state.transactions.len() as u64, ..state.info.clone() })
    }

    fn scripts(&self, _: Scope, scripts: Vec<ScriptBuf>) -> Result<Vec<Option<ScriptInfo>>> {
        self.with(|state| scripts.iter().map(|script| state.scripts.get(script).cloned()).collect())
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

    fn coins(&self, _: Scope, after: Option<Blob>, limit: u32) -> Result<CoinBatch> {
        let (coins, next) = batch(self.with(|state| state.coins.clone())?, after.as_ref(), limit)?;
        Ok(CoinBatch { coins, next })
    }

    fn descriptors(&self, _: Scope, private: bool) -> Result<Vec<DescriptorInfo>> {
        self.with(|state| {
            if private && state.info.locked {
                return Err(ErrorKind::WalletLocked.into());
            }
            Ok(state.descriptors.clone())
        })?
    }

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
            let number = state.next_rescan;
            state.next_rescan += 1;
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

    fn hd_keys(&self, _: Scope, private: bool) -> Result<Vec<HdKey>> {
        let told = |key: &HdKey| HdKey { xprv: key.xprv.clone().filter(|_| private), ..key.clone() };
        self.with(|state| state.hd_keys.iter().map(told).collect())
    }

    fn private_key(&self, _: Scope, public_key_hash: [u8; 20]) -> Result<Option<Secret>> {
        let key = |inner: &SecretKey| PrivateKey { compressed: true, network: NetworkKind::Test, inner: *inner };
        let is_wanted = |key: &PrivateKey| {
            let hash = key.public_key(&Secp256k1::new()).pubkey_hash();
            hash.to_byte_array() == public_key_hash
        };
        self.with(|state| state.keys.iter().map(key).find(is_wanted).map(|key| Secret::new(key.to_wif())))
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

    fn new_keypool(&self, _: Scope) -> Result<()> {
        self.with(|state| state.new_keypools += 1)
    }

    fn dump(&self, _: Scope, file: String) -> Result<String> {
        self.with(|state| {
            if state.dumps.contains_key(&file) {
                return Err(ServiceError::new(ErrorKind::Refused, format!("{file} already exists.")));
            }
            state.dumps.insert(file.clone(), Secret::default());
            Ok(file)
        })?
    }

    fn read_dump(&self, _: Scope, file: String) -> Result<Secret> {
        self.with(|state| state.dumps.get(&file).cloned())?.ok_or_else(|| ErrorKind::Refused.into())
    }

    fn set_hd_seed(&self, _: Scope, seed: Option<Secret>, active: bool) -> Result<()> {
        self.with(|state| state.seeds.push((seed, active)))
    }

    fn migrate(&self, _: Scope, name: Option<String>, passphrase: Secret) -> Result<Migration> {
        self.with(|state| {
            let wallet = name.unwrap_or_else(|| state.info.name.clone());
            if wallet != state.info.name {
                return Err(ErrorKind::NotFound.into());
            }
            if state.info.kind != WalletKind::Legacy {
                return Err(ServiceError::new(ErrorKind::Refused, "Error: This wallet is already a descriptor wallet"));
            }
            if state.passphrase.as_ref().is_some_and(|right| *right != passphrase) {
                return Err(ErrorKind::PassphraseIncorrect.into());
            }
            state.info.kind = WalletKind::Descriptors;
            let backup = format!("{wallet}.legacy.bak");
            Ok(Migration { wallet, watch_only: None, solvables: None, backup })
        })?
    }

    fn rescan_abort(&self, _: Scope) -> Result<bool> {
        self.with(|state| state.rescan.is_some())
    }

    fn set_metadata(&self, _: Scope, txid: Txid, key: String, value: String) -> Result<()> {
        self.with(|state| {
            let transaction = state.transaction_mut(txid).ok_or(ErrorKind::NotFound)?;
            transaction.metadata.push((key, value));
            Ok(())
        })?
    }

    fn abandon(&self, _: Scope, txid: Txid) -> Result<()> {
        self.with(|state| {
            let transaction = state.transaction_mut(txid).ok_or(ErrorKind::NotFound)?;
            transaction.state = TxState::Abandoned;
            Ok(())
        })?
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

    fn labels(&self, _: Scope, after: Option<Blob>, limit: u32) -> Result<LabelBatch> {
        let entry = |(script, info): (&ScriptBuf, &ScriptInfo)| {
            let (script, ownership) = (script.clone(), info.ownership);
            info.label.clone().map(|label| LabelledScript { script, label, ownership })
        };
        let all = self.with(|state| state.scripts.iter().filter_map(entry).collect())?;
        let (entries, next) = batch(all, after.as_ref(), limit.min(MAX_BATCH))?;
        let others = |entry: &&LabelledScript| entry.ownership == Ownership::None;
        let sending = entries.iter().filter(others).map(|entry| entry.script.clone()).collect();
        Ok(LabelBatch { entries, next, sending })
    }

    fn refill_keypool(&self, _: Scope, size: Option<u32>) -> Result<()> {
        self.with(|state| {
            // One that is blank has nothing to derive from.
            if !state.info.blank {
                let ahead = state.info.keypool_external.max(u64::from(size.unwrap_or(0)));
                state.info.keypool_external = ahead;
            }
        })
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

    fn restore(&self, _: Scope, name: String, file: String, _: Option<bool>) -> Result<Vec<String>> {
        self.with(|state| {
            if !state.backups.contains(&file) {
                return Err(ErrorKind::NotFound.into());
            }
            state.info.name = name;
            Ok(Vec::new())
        })?
    }

    fn return_address(&self, _: Scope, script: ScriptBuf) -> Result<bool> {
        self.with(|state| {
            state.addresses.push_front(script);
            true
        })
    }

    fn send(&self, scope: Scope, raw: Blob, metadata: Vec<(String, String)>) -> Result<Option<Admission>> {
        self.with(|state| {
            let submit = || self.mempool.submit(scope, raw.clone(), FeeRate::ZERO);
            let admission = if state.unanswered { None } else { Some(submit()?) };
            state.sent.push((raw, metadata));
            Ok(admission)
        })?
    }

    fn spenders(&self, _: Scope, outpoints: Vec<OutPoint>) -> Result<Vec<Vec<Txid>>> {
        self.with(|state| {
            let all = || state.transactions.iter().map(|known| &known.transaction);
            let of = |outpoint| all().filter(|row| row.inputs.contains(outpoint)).map(|row| row.txid).collect();
            outpoints.iter().map(of).collect()
        })
    }

    fn lock_coins(&self, _: Scope, coins: Vec<OutPoint>, _: bool) -> Result<()> {
        self.with(|state| state.locked.extend(coins))
    }

    fn unlock_coins(&self, _: Scope, coins: Vec<OutPoint>) -> Result<()> {
        self.with(|state| state.locked.retain(|coin| !coins.contains(coin)))
    }

    fn locked_coins(&self, _: Scope) -> Result<Vec<OutPoint>> {
        self.with(|state| state.locked.iter().copied().collect())
    }

    fn spend_settings(&self, _: Scope) -> Result<SpendSettings> {
        self.with(|state| state.spending.clone())
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

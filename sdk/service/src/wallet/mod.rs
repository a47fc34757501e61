//! `wallet/1`: the wallets, what they own, and their history.
//!
//! The functions above the line in [`Wallet`] concern the set of wallets; those below it the wallet of the call (the one
//! its URI names, or the only one loaded) and fail with [`super::ErrorKind::WalletNotLoaded`],
//! [`super::ErrorKind::NoWallet`] or [`super::ErrorKind::WalletNotSpecified`] where there is none. The first of them
//! in a call waits until the wallet has followed the chain to the tip that the call met, and opens the call's snapshot.
//!
//! What may be long comes in batches, each with the place where the next one goes on.
//!
//! The example `coins` of the SDK shows it in use.

mod balances;
mod book;
mod creation;
mod history;
mod import;
mod info;
mod keys;
mod limits;
mod received;
mod script;
mod spending;
#[cfg(test)]
mod tests;
mod write;

use bitcoin::{BlockHash, OutPoint, ScriptBuf, Txid, Wtxid};

pub use balances::{Balances, BalancesQuery, CoinTotals};
pub use book::{LabelBatch, LabelledAddress, LabelledScript};
pub use creation::CreateOptions;
pub use history::{
    CoinBatch, HistoryBatch, HistoryBatchView, HistoryQuery, HistoryRange, HistoryRow, HistoryRowView, Replaceable,
    TxState, UnsettledState, UnsettledStateView, WalletCoin, WalletOutput, WalletOutputView, WalletTransaction,
    WalletTransactionView,
};
pub use import::{DescriptorImport, Import, ImportOutcome, KeysImport};
pub use info::{AddressSource, AddressType, RescanProgress, Synced, WalletInfo};
pub use keys::{DescriptorInfo, HdKey};
pub use limits::{MAX_LABEL_LEN, MAX_SCRIPT_LEN, MAX_TEXT_LEN, check_label, check_script, check_text};
pub use received::{Received, ReceivedBy, ReceivedQuery, ReceivedView};
pub use script::{KeyOrigin, Ownership, ScriptInfo, SolvingData, TapLeaf, TaprootData};
pub use spending::SpendSettings;
pub use write::HistoryWriter;

use outrigger_values::FeeRate;

use super::mempool::Admission;
use super::service;
use crate::wire::{Blob, Encoded, Secret};

service! {
    /// The wallets: the contract of a store.
    ///
    /// The tests of the host's wallets hold them against it, promise by promise.
    ///
    /// **Which wallet.** From [`Wallet::info`] on, the functions concern the wallet of the call: the one that its URI names, or
    /// the only one loaded. They fail with [`crate::ErrorKind::WalletNotLoaded`],
    /// [`crate::ErrorKind::NoWallet`] or [`crate::ErrorKind::WalletNotSpecified`] where there is none.
    ///
    /// **What is seen.** The first of them in a call waits until the wallet has followed the chain to the tip that the call
    /// met, and taken over what the mempool told before. From then on all reads of the call see the wallet of that moment,
    /// whatever others write; only what the mempool alone can say (replaceability, conflicts there) is of the moment of the
    /// question. After a write of its own the call sees the wallet as written.
    ///
    /// **Writes** happen wholly or not at all. One that fails has changed nothing, except where its own words say so.
    /// Ownership, debit, change and labels in rows, coins and scripts are those of now: the write that changes a reason for
    /// them changes them.
    ///
    /// **Following.** A transaction is the wallet's from when it is met while it pays to a script that is not
    /// [`Ownership::None`], or spends such an output of a transaction of the wallet; it stays for good. Block after block it is
    /// confirmed; what a block contradicts, and what of the wallet builds on that, is conflicted by the lowest such block.
    /// When a block is disconnected, what it confirmed or made impossible is in the mempool if it is there, else inactive; its
    /// coinbase is given up, and so is what builds on it until it is met again. What leaves the mempool without a block is
    /// inactive. What is inactive and no coinbase is offered to the mempool again when the wallet is loaded, when a rescan ends,
    /// when the node is there again after it was away, and then every 12 to 36 hours.
    ///
    /// **Lists** come in batches. `limit` is the most of a batch, 0 counts as 1, and a batch may end sooner; it holds at least
    /// one entry where there is any. `next` is where the list goes on, none at its end. Its bytes mean nothing to the caller
    /// and outlive the call: a batch that begins `after` them holds what stands behind the last entry of the former batch by
    /// the order of the list, also when that entry has left the list since. So no entry comes twice, and none is left out that
    /// stood in the list all the time at one place. An empty place, or one of more than 64 bytes, is `Malformed`; others that
    /// no batch gave are read as some place.
    ///
    /// **A locked wallet** (encrypted and not unlocked) answers everything but what needs its keys: `import`,
    /// `refill_keypool`, `descriptors` with private keys and `sign_many` fail with `WalletLocked`.
    ///
    /// **Errors** beside those that are named: `Storage` (nothing was stored), `ShuttingDown`, `Stale` (the call has ended).
    /// Only the caller's rules refuse an empty passphrase: it is not checked here.
    pub trait Wallet as WalletClient = "wallet/1" {
        /// Makes a wallet and loads it, as the last of the loaded ones. Gives its warnings. It begins at the tip: what is in
        /// older blocks takes a rescan. Unless it is blank or keyless it gets a random master key and, for receiving and for
        /// change, an active descriptor of each address type (BIP 44, 49, 84, 86), born at the node's time.
        ///
        /// `WalletExists` when there is one of the name, loaded or not; `Refused` for a name that is no plain path,
        /// or a passphrase without private keys. Then nothing is left behind.
        fn create(options: CreateOptions) -> Vec<String>;
        /// Loads a wallet as the last of the loaded ones, locked if it is encrypted. It follows the chain from where it
        /// stood, and takes over the whole mempool. Gives its warnings.
        ///
        /// `WalletAlreadyLoaded`; `WalletNotLoaded` when there is no such wallet, with the reason; `Refused` for a bad name.
        fn load(name: String, load_on_startup: Option<bool>) -> Vec<String>;
        /// Unloads a wallet; its file stays, with everything that was written. Gives its warnings.
        ///
        /// `WalletNotLoaded`; `WalletRescanning` while a rescan is reserved or runs.
        fn unload(name: String, load_on_startup: Option<bool>) -> Vec<String>;
        /// The names of the loaded wallets, in the order in which they were loaded.
        fn list() -> Vec<String>;
        /// The names of all wallets on disk, sorted by their bytes.
        fn directory() -> Vec<String>;

        /// The wallet of the call.
        fn info() -> WalletInfo;
        /// What the wallet knows of these scripts, in their order; none where it knows nothing. It knows a script that is its
        /// own or watched, that has a label, or of whose spending an import said something. What the first descriptor that
        /// derives it says outranks other descriptors and imports.
        fn scripts(scripts: Vec<ScriptBuf>) -> Vec<Option<ScriptInfo>>;
        /// Those of these transactions that the wallet has, in the order asked for (one asked for twice comes twice), in one
        /// batch, whose `next` is none.
        fn transactions(txids: Vec<Txid>) -> Encoded<HistoryBatch>;
        /// The serialisations of the wallet's transactions of these ids, in their order, each with the witness of its `wtxid`; none
        /// for those that it does not have.
        fn raw_transactions(txids: Vec<Txid>) -> Vec<Option<Blob>>;
        /// A part of the history, in the order of its range or backwards.
        fn history(query: HistoryQuery) -> Encoded<HistoryBatch>;
        /// The public texts of descriptors by their numbers and with checksum, in their order: as they were imported, or as
        /// `descriptors` gives them since Bitcoin Core 30; none where the wallet has no such descriptor. Numbers begin at 0 and are never given again.
        fn descriptor_texts(numbers: Vec<u32>) -> Vec<Option<String>>;
        /// Coins, from the outpoint after `after` on: by the txid's internal bytes, then the output's number as four
        /// little-endian bytes. A coin is an output that is not [`Ownership::None`], of a transaction that is confirmed, in
        /// the mempool or, unless it is a coinbase, inactive, and that no such transaction of the wallet spends. What conflicts
        /// with a transaction of the mempool (see [`UnsettledState::mempool_conflicts`]) neither makes nor spends a coin.
        fn coins(after: Option<Blob>, limit: u32) -> CoinBatch;
        /// The descriptors by their numbers, hardened steps taken as far as the keys allow; with private keys where these are
        /// asked for and held, as they were imported. `WalletLocked` when private ones are asked of a locked wallet;
        /// `NotGranted` without the grant for its keys.
        fn descriptors(private: bool) -> Vec<DescriptorInfo>;
        /// A fresh address's script, entered in the address book with the label (none: for change, not entered): at the next
        /// index of the active descriptor of the type and side, once as many scripts as are kept ahead are derived from that
        /// index on; without one, of the oldest key of the imported keypool, which is then watched. An address is fresh no
        /// more once the wallet has met a payment to it; one that it knew before it derived the address, it meets again by a
        /// rescan, or in the mempool when it is loaded. Such a payment passes over the indexes up to its own; those of an
        /// active descriptor for receiving then have an entry in the address book (with an empty label, where they had none).
        /// Each payment to a descriptor derives as many scripts ahead as are kept.
        ///
        /// `Refused` when no address of any type can be had on that side; `KeypoolRanOut` when others can, or nothing more
        /// can be derived (hardened steps in a locked wallet, a descriptor without a range).
        fn new_address(kind: AddressType, internal: bool, label: Option<String>) -> ScriptBuf;
        /// Sets a script's label in the address book, also of others' scripts. Nothing where it has no address form.
        /// Pay-to-pubkey has none. `Refused` for a label of more than 4,096 bytes, as of `new_address` and in imports.
        fn set_label(script: ScriptBuf, label: String) -> ();
        /// Imports all requests in one write, in their order, each with its own outcome: one that is refused changes nothing
        /// and leaves the others as they are. A request sees what those before it imported.
        ///
        /// At once the wallet needs a backup, its birth time is no later than the request's, and its rows,
        /// coins and scripts say what they are now. What was in blocks or in the mempool before and concerns it only now is
        /// found by a rescan. A descriptor owns ([`Ownership::Spendable`], with or without private keys) what it derives from
        /// index 0, or the range's beginning where that is above 1,000,000, to its range's end and as far ahead of the next
        /// index as the store keeps scripts. One that is known by its public text keeps its number and its scripts and takes
        /// on the rest of the request. Of two paths the first is for receiving and the second for change. Only a descriptor
        /// without a range that is not for change gets a label. Keys make spendable what they can spend by themselves or with
        /// known scripts; what else the request names is watched.
        ///
        /// `WalletLocked`, also for no requests.
        fn import(requests: Vec<Import>) -> Vec<ImportOutcome>;
        /// Reserves the wallet's one rescan and gives its number, which no other rescan had since the wallet was loaded.
        /// `WalletRescanning` while one is reserved or runs.
        fn rescan_reserve() -> u64;
        /// Gives a reservation back unused. Nothing where it is not reserved.
        fn rescan_release(rescan: u64) -> ();
        /// Starts the reserved rescan at the first block whose running-maximum time is at least `from_time` less two hours, up
        /// to where the wallet stands, then the whole mempool. Its end is told by `Event::RescanFinished`; then its place is
        /// free. `NotFound` when this is not reserved.
        fn rescan_start(rescan: u64, from_time: u64) -> ();
        /// Aborts the running rescan; whether there was one. A reserved one does not run.
        fn rescan_abort() -> bool;
        /// Stores a text with a transaction (`comment`, `to`) in the place of the former one of the key; an empty one is
        /// taken away. They are told sorted by key. `NotFound` for a transaction that the wallet does not have; `Refused` for
        /// a text of more than 16,384 bytes.
        fn set_metadata(txid: Txid, key: String, value: String) -> ();
        /// Gives up a transaction that is neither in the chain nor in the mempool, and what of the wallet builds on it: what
        /// they spend is free. Should one come back, it counts as if it had not been given up. Nothing for one that is given
        /// up already. `NotFound` for one that the wallet does not have; `Refused` when it is in the chain, in the mempool,
        /// or [`TxState::Conflicted`].
        fn abandon(txid: Txid) -> ();
        /// Seals the wallet's keys with a passphrase and locks it. Unless it was made blank, a fresh master key gives the active
        /// descriptors of each address type from then on; the former ones, imported ones included, stay as inactive ones. `WrongEncryptionState` when it is
        /// encrypted; `Refused` when it may not hold private keys.
        fn encrypt(passphrase: Secret) -> ();
        /// Unlocks an encrypted wallet for a time from now on, in seconds, at most 100,000,000. `unlocked_until` is told by
        /// the node's clock. `WrongEncryptionState` when it is not encrypted; `PassphraseIncorrect`, which leaves it as it was.
        fn unlock(passphrase: Secret, seconds: u64) -> ();
        /// Locks it now; nothing where it is locked. `WrongEncryptionState` when it is not encrypted.
        fn lock() -> ();
        /// Changes the passphrase, and leaves it locked or unlocked. `WrongEncryptionState` when it is not encrypted;
        /// `PassphraseIncorrect`, which locks it.
        fn change_passphrase(old: Secret, new: Secret) -> ();
        /// The address book, from the place `after` on: each entry once, in an order that does not change.
        #[since(1)]
        fn labels(after: Option<Blob>, limit: u32) -> LabelBatch;
        /// Derives scripts until `size` lie ahead of the next index of each active descriptor; none: as many as the host
        /// keeps ahead. Where more do, they stay. `Refused` for more than 1,000,000; `WalletLocked`.
        #[since(1)]
        fn refill_keypool(size: Option<u32>) -> ();
        /// Sets whether the wallet avoids reused addresses.
        #[since(1)]
        fn set_avoid_reuse(avoid: bool) -> ();
        /// Writes a copy of the wallet as it is now to a file, which `restore` opens. Only a backup there is replaced. The
        /// wallet itself then needs no backup until the next import. `Refused` when the file cannot be written.
        #[since(1)]
        fn backup(file: String) -> ();
        /// Makes a wallet of a name from the file of a backup and loads it, as `load` does. Gives its warnings. `NotFound`
        /// when there is no such file; `WalletExists`; `WalletNotLoaded` when it is no backup; `Refused` for a bad name.
        #[since(1)]
        fn restore(name: String, file: String, load_on_startup: Option<bool>) -> Vec<String>;
        /// Gives back an address that `new_address` gave and that is not needed, as that of the change of a payment which is not
        /// made: its index is the next one again, and what was derived ahead stays. Whether it was: not where another one
        /// was drawn since or a payment passed over it, nor for a key of the imported keypool.
        #[since(1)]
        fn return_address(script: ScriptBuf) -> bool;
        /// Sends a signed transaction of the wallet. It is stored with these texts (see `set_metadata`) before a byte of it leaves
        /// the host, so that nothing else spends what it does: inactive, or in the mempool where the node is in the host's process.
        /// Then it is offered to the mempool. Gives the answer; none where the node did not say whether it took it, or is away, and
        /// where nothing is broadcast. It stays in any case, also where the mempool refuses it: then it is inactive, what it
        /// spends is taken until it is given up (`abandon`), and it is offered again as all that is inactive. A kill of the host
        /// leaves nothing of it before it is stored, and such a transaction after. One that the wallet has already is only
        /// offered.
        ///
        /// `Refused` where it neither pays to the wallet nor spends from it, or spends what another transaction of the wallet does
        /// that is confirmed, in the mempool or inactive; and for a text of more than 16,384 bytes. With an error, nothing of it is
        /// stored or sent.
        #[since(1)]
        fn send(raw: Blob, metadata: Vec<(String, String)>) -> Option<Admission>;
        /// The transactions of the wallet that spend each of these outpoints, in their order, whatever became of them.
        #[since(1)]
        fn spenders(outpoints: Vec<OutPoint>) -> Vec<Vec<Txid>>;
        /// Locks outputs, the wallet's or not: who makes payments does not choose them. One that a transaction of the wallet
        /// spends (as for `coins`) is passed over. A lock ends when the wallet is unloaded, unless it is persistent; one that is
        /// persistent stays so. A new transaction of the wallet that spends the output ends it, and with a payment that `send` takes
        /// back it is there again.
        #[since(1)]
        fn lock_coins(coins: Vec<OutPoint>, persistent: bool) -> ();
        /// Unlocks these outputs, and forgets persistent locks. Nothing for one that is not locked.
        #[since(1)]
        fn unlock_coins(coins: Vec<OutPoint>) -> ();
        /// The locked outputs: by the txid's internal bytes, then the output's number.
        #[since(1)]
        fn locked_coins() -> Vec<OutPoint>;
        /// Starts the reserved rescan as `rescan_start` does, at the height `first` and up to the height `last`; without one up to
        /// where the wallet stands, then the whole mempool. `NotFound` when this is not reserved.
        #[since(1)]
        fn rescan_heights(rescan: u64, first: u32, last: Option<u32>) -> ();
        /// The extended keys that the descriptors are written with, by public key and chain code; with private keys where these
        /// are asked for and held. Of a locked wallet's descriptor with several keys, all count as held where some are.
        /// `WalletLocked` when private ones are asked of a locked wallet; `NotGranted` without the grant for its keys.
        #[since(1)]
        fn hd_keys(private: bool) -> Vec<HdKey>;
        /// The private key of a public key of this HASH160, as WIF: of a descriptor that is written with it, or derives a P2PKH,
        /// P2WPKH or P2SH-P2WPKH script of it, or imported. None where the wallet does not hold it. `WalletLocked`; `NotGranted` without the grant for
        /// its keys.
        #[since(1)]
        fn private_key(public_key_hash: [u8; 20]) -> Option<Secret>;
        /// Takes over a transaction that pays to the wallet, at its position in a block of the best chain, as if the wallet had met
        /// it there. `NotFound` when the block is none that the wallet has followed; `Refused` when no output is the
        /// wallet's, or the bytes are no transaction.
        #[since(1)]
        fn add_confirmed(raw: Blob, block: BlockHash, index: u32) -> ();
        /// Removes a transaction, as if it had never been met; it is met again where a block or the mempool has it.
        /// `NotFound` for one that the wallet does not have.
        #[since(1)]
        fn remove_transaction(txid: Txid) -> ();
        /// What holds for payments of the wallet: what the operator has set for all, and what `set_pay_feerate` has.
        #[since(1)]
        fn spend_settings() -> SpendSettings;
        /// Sets the feerate of payments that name none, until the wallet is unloaded; none: it is estimated again.
        #[since(1)]
        fn set_pay_feerate(feerate: Option<FeeRate>) -> ();
        /// Sends a transaction as `send` does that takes the place of one of the wallet which is not confirmed: that this spends
        /// the same is no reason to refuse it. Each of the two gets the other's id as a text (`replaces_txid`, `replaced_by_txid`),
        /// also where the mempool refuses it. `NotFound` where the wallet does not have the one to replace.
        #[since(1)]
        fn replace(replaced: Txid, raw: Blob, metadata: Vec<(String, String)>) -> Option<Admission>;
        /// Waits until no other call makes a payment of the wallet, and keeps others waiting until this call has ended: called
        /// before a payment looks at the coins, it keeps two payments from choosing the same one. What the call reads afterwards is
        /// the wallet as the payments before it left it. Nothing where this call has begun one already. A call that takes longer
        /// than a minute keeps nobody waiting any more; should its payment then spend what another has spent, `send` refuses it.
        ///
        /// `Stale` once nobody waits for the call's answer; `Unsupported` for methods marked `inline`, which may not wait, and
        /// outside of calls.
        #[since(1)]
        fn begin_payment() -> ();
        /// What scripts of the wallet received, in no order that means anything. Only those are told that received something which
        /// counts. All of them come at once: the answer takes some 32 bytes for each output.
        #[since(1)]
        fn received(query: ReceivedQuery) -> Encoded<Vec<Received>>;
        /// Imports descriptors of the wallet's own keys as `import` does; where it stored one, a wallet that was made blank is blank no
        /// more.
        #[since(1)]
        fn add_own_descriptors(descriptors: Vec<DescriptorImport>) -> Vec<ImportOutcome>;
        /// Whether a transaction of the wallet has spent an output of each of these scripts while it was the wallet's, in their
        /// order, whatever became of that transaction.
        #[since(1)]
        fn spent_from(scripts: Vec<ScriptBuf>) -> Vec<bool>;
        /// The sums of the wallet's coins, as `coins` lists them. Takes the same time however many coins there are, but for those in
        /// the mempool, whose transactions are judged anew.
        #[since(1)]
        fn balances(query: BalancesQuery) -> Balances;
        /// Whether each of these transactions of the wallet can be replaced (BIP 125), in their order; `Unknown` where the wallet does
        /// not have it. The node is asked once for all those of the mempool that do not signal it themselves.
        #[since(1)]
        fn replaceable(txids: Vec<Txid>) -> Vec<Replaceable>;
        /// The labels of the address book, each once and sorted: of its addresses with the purpose `send` where `sending` is true, of
        /// the others where it is false, and of all where it is none.
        #[since(1)]
        fn label_names(sending: Option<bool>) -> Vec<String>;
        /// The addresses with a label, in no order that means anything.
        #[since(1)]
        fn labelled(label: String) -> Vec<LabelledAddress>;
        /// What was imported as keys and scripts, as descriptors without a range: each private key as `combo`, each other script that is
        /// not [`Ownership::None`] by what is known of it. With private keys where these are asked for and held. `WalletLocked` when
        /// private ones are asked of a locked wallet; `NotGranted` without the grant for its keys.
        #[since(1)]
        fn imported_descriptors(private: bool) -> Vec<DescriptorInfo>;
        /// The sums of the coins that only payments outside the mempool spend: `balances` leaves them out, while such a payment may
        /// still confirm.
        #[since(1)]
        fn spent_outside_mempool(query: BalancesQuery) -> Balances;
        /// The ids with other witnesses that the wallet has met of each of these transactions, in their order; none where it has met
        /// one witness, or does not have the transaction.
        #[since(1)]
        fn alternate_wtxids(txids: Vec<Txid>) -> Vec<Vec<Wtxid>>;
        /// Writes a copy of the wallet without its private keys to a new file, which `restore` opens. `Refused` when the file exists
        /// or cannot be written, or the wallet has nothing to watch.
        #[since(1)]
        fn export_watch_only(file: String) -> ();
    }
}

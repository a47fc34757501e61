//! Rescans.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bitcoin::{BlockHash, OutPoint, ScriptBuf, Txid};
use outrigger_sdk::descriptor::{Checksum, Descriptor};
use outrigger_sdk::service::chain::{
    BlockInfo, BlockRef, ChainInfo, ChainTip, Coin, ConfirmedTransaction, Deployment, NextBlock, SpentOutputs, Tip,
    UnspentOutput, Verdict,
};
use outrigger_sdk::service::events::{Event, RescanOutcome};
use outrigger_sdk::service::wallet::TxState;
use outrigger_sdk::service::{Chain, ErrorKind, Result, Scope};
use outrigger_sdk::testing::MemoryChain;
use outrigger_sdk::wire::Blob;
use parking_lot::Mutex;

use crate::wallet::store::rows::RescanRow;

use super::{Harness, descriptor, elsewhere, foreign, kind_of, spend};

/// What is done once, in the middle of a write that asks the chain something.
type Hook = Mutex<Option<Box<dyn FnOnce() + Send>>>;

/// A chain some blocks of which cannot be read, or are read very slowly, or that changes at a bad moment.
#[derive(Default)]
struct Broken {
    chain: Arc<MemoryChain>,
    unreadable: u32,
    slow: AtomicBool,
    /// Done when the tip is asked right after the time, as a rescan does before it writes.
    hook: Hook,
    timed: AtomicBool,
}

impl Chain for Broken {
    fn block(&self, scope: Scope, hash: BlockHash) -> Result<Option<Blob>> {
        if self.slow.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(30));
        }
        let info = self.chain.block_info(scope, BlockRef::Hash { hash })?;
        if info.is_some_and(|info| info.height == self.unreadable) {
            return Err(ErrorKind::Storage.into());
        }
        self.chain.block(scope, hash)
    }
    fn tip(&self, scope: Scope) -> Result<Tip> {
        let tip = self.chain.tip(scope);
        if self.timed.swap(false, Ordering::Relaxed) {
            let hook = self.hook.lock().take();
            hook.into_iter().for_each(|hook| hook());
        }
        tip
    }
    fn info(&self, scope: Scope) -> Result<ChainInfo> {
        self.chain.info(scope)
    }
    fn block_info(&self, scope: Scope, block: BlockRef) -> Result<Option<BlockInfo>> {
        self.timed.store(false, Ordering::Relaxed);
        self.chain.block_info(scope, block)
    }
    fn spent_outputs(&self, scope: Scope, hash: BlockHash) -> Result<Option<Vec<SpentOutputs>>> {
        self.chain.spent_outputs(scope, hash)
    }
    fn transaction(&self, scope: Scope, txid: Txid) -> Result<Option<ConfirmedTransaction>> {
        self.chain.transaction(scope, txid)
    }
    fn coins(&self, scope: Scope, outpoints: Vec<OutPoint>) -> Result<Vec<Option<Coin>>> {
        self.chain.coins(scope, outpoints)
    }
    fn fork_point(&self, scope: Scope, hash: BlockHash) -> Result<Option<BlockInfo>> {
        self.chain.fork_point(scope, hash)
    }
    fn tips(&self, scope: Scope) -> Result<Vec<ChainTip>> {
        self.chain.tips(scope)
    }
    fn deployments(&self, scope: Scope, hash: BlockHash) -> Result<Option<Vec<Deployment>>> {
        self.chain.deployments(scope, hash)
    }
    fn next_block(&self, scope: Scope) -> Result<NextBlock> {
        self.chain.next_block(scope)
    }
    fn time(&self, scope: Scope) -> Result<u64> {
        self.timed.store(true, Ordering::Relaxed);
        self.chain.time(scope)
    }
    fn check_block(&self, scope: Scope, raw: Blob) -> Result<Verdict> {
        self.chain.check_block(scope, raw)
    }
    fn submit_block(&self, scope: Scope, raw: Blob) -> Result<Verdict> {
        self.chain.submit_block(scope, raw)
    }
    fn submit_header(&self, scope: Scope, raw: Blob) -> Result<Verdict> {
        self.chain.submit_header(scope, raw)
    }
    fn invalidate_block(&self, scope: Scope, hash: BlockHash) -> Result<()> {
        self.chain.invalidate_block(scope, hash)
    }
    fn reconsider_block(&self, scope: Scope, hash: BlockHash) -> Result<()> {
        self.chain.reconsider_block(scope, hash)
    }
    fn precious_block(&self, scope: Scope, hash: BlockHash) -> Result<()> {
        self.chain.precious_block(scope, hash)
    }
    fn set_mock_time(&self, scope: Scope, seconds: u64) -> Result<()> {
        self.chain.set_mock_time(scope, seconds)
    }
    fn coins_after(&self, scope: Scope, outpoint: Option<OutPoint>, limit: u32) -> Result<Vec<UnspentOutput>> {
        self.chain.coins_after(scope, outpoint, limit)
    }
}

/// A descriptor of regtest, and its first script.
const TEXT: &str = "wpkh(cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87JcbXMTcA)";

/// The scripts of a descriptor by index.
fn scripts_of(text: &str) -> impl Fn(u32) -> ScriptBuf {
    let parsed = Descriptor::parse(text, bitcoin::Network::Regtest, Checksum::Optional).unwrap();
    move |index| parsed[0].expand(index).unwrap().scripts[0].script_pubkey.clone()
}

fn script() -> ScriptBuf {
    scripts_of(TEXT)(0)
}

pub(super) fn finished(harness: &Harness) -> RescanOutcome {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let found = harness.events.lock().iter().find_map(|event| match event {
            Event::RescanFinished { wallet, outcome, .. } if wallet == "w" => Some(outcome.clone()),
            _ => None,
        });
        if let Some(outcome) = found {
            return outcome;
        }
        assert!(Instant::now() < deadline, "the rescan does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Sixty blocks, the 10th and the 50th of which pay to the script.
fn history(chain: &MemoryChain) {
    for height in 1..=60_u8 {
        let payment = spend(&[elsewhere(height)], &[(&script(), u64::from(height))]);
        chain.mine_to(foreign(0), if [10, 50].contains(&height) { vec![payment] } else { vec![] });
    }
}

/// What the coins are worth, the least first.
fn values(harness: &Harness) -> Vec<u64> {
    let mut values: Vec<u64> = harness.coins().iter().map(|coin| coin.value).collect();
    values.sort_unstable();
    values
}

fn time_at(harness: &Harness, height: u32) -> u64 {
    let info = harness.chain.block_info(Scope::NONE, BlockRef::Height { height }).unwrap().unwrap();
    u64::from(u32::from_le_bytes(info.header[68..72].try_into().unwrap()))
}

#[test]
fn a_rescan_finds_what_was_paid_before_the_import() {
    let harness = Harness::new();
    history(&harness.chain);
    harness.create("w", |options| options.blank = true);
    let view = harness.view();
    let wallet = view.wallet();
    wallet.import(vec![descriptor(TEXT, |_| {})]).unwrap();
    assert_eq!(harness.view().info().unwrap().transactions, 0);
    let rescan = wallet.rescan_reserve().unwrap();
    assert_eq!(kind_of(wallet.rescan_reserve()), ErrorKind::WalletRescanning);
    assert_eq!(kind_of(wallet.rescan_start(rescan + 1, 1)), ErrorKind::NotFound);
    // Two hours before the birth time are twelve blocks: the scan begins at the 39th.
    wallet.rescan_start(rescan, time_at(&harness, 51)).unwrap();
    assert_eq!(finished(&harness), RescanOutcome::Complete);
    assert_eq!(values(&harness), [50]);
    harness.events.lock().clear();
    let rescan = wallet.rescan_reserve().unwrap();
    wallet.rescan_start(rescan, 1).unwrap();
    assert_eq!(finished(&harness), RescanOutcome::Complete);
    assert_eq!(values(&harness), [10, 50]);
    assert!(harness.view().info().unwrap().rescan.is_none());
}

/// A master key of regtest.
const XPRV: &str =
    "tprv8ZgxMBicQKsPd7Uf69XL1XwhmjHopUGep8GuEiJDZmbQz6o58LninorQAfcKZWARbtRtfnLcJ5MQ2AtHcQJCCRUcMRvmDUjyEmNUWwx8UbK";

/// Blocks that pay to indexes of a descriptor, each near the end of what a wallet has that knows the ones before.
fn ladder(text: &str, steps: u32) -> (Arc<MemoryChain>, Vec<u64>) {
    let at = scripts_of(text);
    let chain = Arc::new(MemoryChain::new());
    for step in 0..steps {
        let from = OutPoint { vout: step, ..elsewhere(1) };
        chain.mine_to(foreign(0), vec![spend(&[from], &[(&at(step * 19), u64::from(step) + 1)])]);
        chain.mine_to(foreign(0), vec![]);
    }
    (chain, (1..=u64::from(steps)).collect())
}

/// What the coins of a wallet are worth that imports the first 20 scripts of a descriptor and looks through the whole chain.
fn found_by(harness: &Harness, text: &str) -> Vec<u64> {
    harness.create("w", |options| options.blank = true);
    let wallet = harness.view().wallet().clone();
    let rescan = wallet.rescan_reserve().unwrap();
    wallet.import(vec![descriptor(text, |import| import.range = Some((0, 19)))]).unwrap();
    wallet.rescan_start(rescan, 1).unwrap();
    assert_eq!(finished(harness), RescanOutcome::Complete);
    values(harness)
}

#[test]
fn what_is_found_leads_to_more_scripts_and_these_to_more_payments() {
    // The first can be derived ahead of the wallet, the second only with its private key.
    for (path, steps) in [("/*", 120), ("/*h", 12)] {
        let text = format!("wpkh({XPRV}{path})");
        let (chain, values) = ladder(&text, steps);
        let harness = Harness::over(chain.clone(), chain);
        assert_eq!(found_by(&harness, &text), values, "{path}");
        let next = harness.view().descriptors(false).unwrap()[0].next_index;
        assert_eq!(next, (steps - 1) * 19 + 1);
    }
}

#[test]
fn a_block_that_leads_to_more_scripts_is_looked_through_for_them_too() {
    let text = format!("wpkh({XPRV}/*)");
    let at = scripts_of(&text);
    let harness = Harness::new();
    // The second is known only once the first was found, which stands before it and behind it.
    for (number, indexes) in [[15, 30], [60, 45]].into_iter().enumerate() {
        let pay = |index| spend(&[OutPoint { vout: index, ..elsewhere(1) }], &[(&at(index), u64::from(index))]);
        harness.mine(indexes.into_iter().map(pay).collect());
        assert_eq!(harness.chain.tip(Scope::NONE).unwrap().height as usize, number + 1);
    }
    assert_eq!(found_by(&harness, &text), [15, 30, 45, 60]);
}

#[test]
fn what_is_found_in_a_block_that_leaves_the_chain_meanwhile_is_not_confirmed() {
    let chain = Arc::new(MemoryChain::new());
    for height in 1..=5_u8 {
        let payment = spend(&[elsewhere(height)], &[(&script(), u64::from(height))]);
        chain.mine_to(foreign(0), if height == 5 { vec![payment] } else { vec![] });
    }
    let broken = Arc::new(Broken { chain: chain.clone(), unreadable: u32::MAX, ..Broken::default() });
    let harness = Arc::new(Harness::over(chain, broken.clone()));
    for name in ["w", "v"] {
        harness.create(name, |options| options.blank = true);
    }
    let wallet = harness.view().wallet().clone();
    wallet.import(vec![descriptor(TEXT, |_| {})]).unwrap();
    let rescan = wallet.rescan_reserve().unwrap();
    let meanwhile = harness.clone();
    let (done, changed) = std::sync::mpsc::channel();
    *broken.hook.lock() = Some(Box::new(move || {
        // Another wallet shows that all have been told of it.
        meanwhile.disconnect();
        meanwhile.mine(vec![]);
        meanwhile.manager.select(Some("v")).unwrap();
        done.send(()).unwrap();
    }));
    wallet.rescan_start(rescan, 1).unwrap();
    assert_eq!(finished(&harness), RescanOutcome::Complete);
    changed.recv_timeout(Duration::from_secs(30)).expect("the chain has changed in the middle of the write");
    let payment = spend(&[elsewhere(5)], &[(&script(), 5)]).compute_txid();
    let known = harness.transaction(payment);
    assert!(known.as_ref().is_none_or(|known| known.state == TxState::Inactive), "{known:?}");
    assert!(harness.coins().iter().all(|coin| coin.state == TxState::Inactive));
}

#[test]
fn a_stop_between_an_import_and_its_rescan_leaves_the_rescan() {
    let mut harness = Harness::new();
    history(&harness.chain);
    harness.create("w", |options| options.blank = true);
    let wallet = harness.view().wallet().clone();
    wallet.rescan_reserve().unwrap();
    wallet.import(vec![descriptor(TEXT, |_| {})]).unwrap();
    drop(wallet);
    harness.restart(|_| {});
    assert_eq!(finished(&harness), RescanOutcome::Complete);
    assert_eq!(harness.coins().len(), 2);
    // One that is given up does not come back.
    harness.events.lock().clear();
    let wallet = harness.view().wallet().clone();
    let rescan = wallet.rescan_reserve().unwrap();
    wallet.import(vec![descriptor(&format!("pkh({XPRV})"), |_| {})]).unwrap();
    wallet.rescan_release(rescan).unwrap();
    drop(wallet);
    harness.restart(|_| {});
    assert!(harness.view().info().unwrap().rescan.is_none());
    assert!(harness.events.lock().iter().all(|event| !matches!(event, Event::RescanFinished { .. })));
}

#[test]
fn a_rescan_finds_what_waits_in_the_mempool_too() {
    let harness = Harness::new();
    harness.create("w", |options| options.blank = true);
    let payment = spend(&[elsewhere(1)], &[(&script(), 7)]);
    harness.accept(&payment);
    let view = harness.view();
    view.wallet().import(vec![descriptor(TEXT, |_| {})]).unwrap();
    assert!(harness.transaction(payment.compute_txid()).is_none());
    let rescan = view.wallet().rescan_reserve().unwrap();
    view.wallet().rescan_start(rescan, 1).unwrap();
    assert_eq!(finished(&harness), RescanOutcome::Complete);
    assert_eq!(harness.known(payment.compute_txid()).state, TxState::InMempool);
}

#[test]
fn a_reservation_can_be_given_back() {
    let harness = Harness::with_wallet();
    let view = harness.view();
    let rescan = view.wallet().rescan_reserve().unwrap();
    assert_eq!(kind_of(harness.manager.unload("w".into(), None)), ErrorKind::WalletRescanning);
    view.wallet().rescan_release(rescan + 1).unwrap();
    assert_eq!(kind_of(view.wallet().rescan_reserve()), ErrorKind::WalletRescanning);
    view.wallet().rescan_release(rescan).unwrap();
    assert!(!view.wallet().rescan_abort().unwrap());
    assert_eq!(view.wallet().rescan_reserve().unwrap(), rescan + 1);
}

#[test]
fn a_block_that_cannot_be_read_is_told_and_does_not_stop_the_scan() {
    let chain = Arc::new(MemoryChain::new());
    history(&chain);
    let broken = Broken { chain: chain.clone(), unreadable: 10, ..Broken::default() };
    let harness = Harness::over(chain, Arc::new(broken));
    harness.create("w", |options| options.blank = true);
    let view = harness.view();
    view.wallet().import(vec![descriptor(TEXT, |_| {})]).unwrap();
    let rescan = view.wallet().rescan_reserve().unwrap();
    view.wallet().rescan_start(rescan, 1).unwrap();
    let block_time = u32::try_from(time_at(&harness, 10)).unwrap();
    assert_eq!(finished(&harness), RescanOutcome::Unreadable { block_time });
    assert_eq!(values(&harness), [50]);
}

#[test]
fn an_aborted_scan_ends_and_one_cut_off_by_a_stop_goes_on() {
    let chain = Arc::new(MemoryChain::new());
    history(&chain);
    for _ in 0..100 {
        chain.mine_to(foreign(0), vec![]);
    }
    let slow = AtomicBool::new(true);
    let slow = Arc::new(Broken { chain: chain.clone(), unreadable: u32::MAX, slow, ..Broken::default() });
    let mut harness = Harness::over(chain, slow.clone());
    harness.create("w", |options| options.blank = true);
    harness.view().wallet().import(vec![descriptor(TEXT, |_| {})]).unwrap();
    let wallet = harness.view().wallet().clone();
    let rescan = wallet.rescan_reserve().unwrap();
    wallet.rescan_start(rescan, 1).unwrap();
    assert!(harness.view().info().unwrap().rescan.is_some());
    assert!(wallet.rescan_abort().unwrap());
    assert_eq!(finished(&harness), RescanOutcome::Aborted);

    harness.events.lock().clear();
    let rescan = wallet.rescan_reserve().unwrap();
    wallet.rescan_start(rescan, 1).unwrap();
    drop(wallet);
    harness.restart(|harness| {
        assert_eq!(finished(harness), RescanOutcome::Aborted);
        harness.events.lock().clear();
        slow.slow.store(false, Ordering::Relaxed);
    });
    assert_eq!(finished(&harness), RescanOutcome::Complete);
    assert_eq!(harness.coins().len(), 2);
}

#[test]
fn a_rescan_that_goes_on_tells_its_progress_from_where_it_began() {
    let harness = Harness::new();
    history(&harness.chain);
    harness.create("w", |options| options.blank = true);
    let wallet = harness.view().wallet().clone();
    let tip = harness.view().info().unwrap().synced.height;
    wallet.rescan_reserve().unwrap();
    // It ends before its first block, when it has told where it stands.
    wallet.rescan.abort.store(true, Ordering::SeqCst);
    let told = |first_height, next_height| {
        let row = RescanRow { from_time: 1, next_height, unreadable: 0, first_height };
        wallet.rescan_all(row).unwrap();
        wallet.rescan_progress().unwrap().millionths
    };
    assert_eq!(told(None, Some(tip)), 0);
    assert_eq!(told(Some(1), Some(tip)), (tip - 1) * 1_000_000 / tip);
}

//! A wallet with a long write: other wallets and the shutdown do not wait for it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use outrigger_service::ErrorKind;
use outrigger_service::events::Event;
use outrigger_service::wallet::{ImportOutcome, TxState};
use outrigger_service::wire::Secret;

use super::{Harness, PATIENCE, XPRV, descriptor, elsewhere, foreign, kind_of, spend};
use crate::live::feed::WaitOutcome;
use crate::write::CHUNK;
use crate::{Wallet, WalletManager};
use outrigger_node::{NodeEvent, Observer as _};

/// A write to a wallet that lasts until this is dropped.
pub(super) struct Busy {
    release: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Busy {
    fn begin(harness: &Harness) -> Self {
        Self::of(harness.view().wallet().clone())
    }

    pub(super) fn of(wallet: Arc<Wallet>) -> Self {
        let (began, begun) = channel();
        let (release, released): (_, Receiver<()>) = channel();
        let thread = thread::spawn(move || {
            wallet
                .write(|_| {
                    began.send(()).unwrap();
                    let _ = released.recv();
                    Ok(())
                })
                .unwrap();
        });
        begun.recv().unwrap();
        Self { release: Some(release), thread: Some(thread) }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.release.take();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// The result of `ask`, which must not wait for a busy wallet.
pub(super) fn at_once<T: Send + 'static>(
    harness: &Harness,
    ask: impl FnOnce(&WalletManager) -> T + Send + 'static,
) -> T {
    let manager = harness.manager.clone();
    let (answer, answered) = channel();
    thread::spawn(move || {
        let _ = answer.send(ask(&manager));
    });
    answered.recv_timeout(PATIENCE).expect("it does not wait for the busy wallet")
}

#[test]
fn the_other_wallets_follow_the_chain_while_one_is_busy() {
    let harness = Harness::with_wallet();
    harness.create("v", |_| {});
    let busy = Busy::begin(&harness);
    let block = harness.mine(vec![]);
    let synced = at_once(&harness, |manager| manager.select(Some("v")).unwrap().info().unwrap().synced.hash);
    assert_eq!(synced, block);
    // `status` does not wait for the busy wallet either.
    assert_eq!(at_once(&harness, |manager| manager.status().len()), 2);
    drop(busy);
    assert_eq!(harness.view().info().unwrap().synced.hash, block);
}

#[test]
fn a_wallet_that_was_busy_follows_blocks_announced_after_a_tip() {
    let harness = Harness::with_wallet();
    let script = harness.address(Some("rent"));
    let payment = |number| spend(&[elsewhere(number)], &[(&script, 1000)]);
    let wallet = harness.view().wallet().clone();
    let connected = |hash| NodeEvent::BlockConnected { hash, height: harness.height_of(hash) };
    let busy = Busy::begin(&harness);
    let told = wallet.feed.pushed();
    // A block, its tip, and the first half of a reorganisation are queued together.
    harness.mine(vec![payment(1)]);
    harness.disconnect();
    let next = harness.chain.mine_to(foreign(2), vec![]);
    harness.manager.notify(connected(next));
    while wallet.feed.pushed() < told + 4 {
        thread::yield_now();
    }
    // The node has connected and disconnected a block meanwhile.
    let stale = harness.chain.mine_to(foreign(3), vec![payment(2)]);
    let left = connected(stale);
    harness.chain.disconnect();
    let last = harness.chain.mine_to(foreign(4), vec![]);
    drop(busy);
    assert_eq!(harness.manager.follower.wait(&wallet), WaitOutcome::Done);
    assert_eq!(wallet.synced().hash, next);
    harness.manager.notify(left);
    harness.manager.notify(NodeEvent::BlockDisconnected { hash: stale, height: harness.height_of(stale) });
    harness.manager.notify(connected(last));
    harness.manager.notify(NodeEvent::TipChanged { hash: last, height: harness.height_of(last) });
    assert_eq!(harness.view().info().unwrap().synced.hash, last);
    assert_eq!([1, 2].map(|number| harness.known(payment(number).compute_txid()).state), [TxState::Inactive; 2]);
}

#[test]
fn a_network_thread_whose_call_waits_serves_others() {
    let harness = Harness::with_wallet();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let busy = Busy::begin(&harness);
    harness.mine(vec![]);
    let manager = harness.manager.clone();
    let (sender, heard) = channel();
    let other = sender.clone();
    let waiting = runtime.spawn(async move {
        other.send("it waits").unwrap();
        manager.select(Some("w")).map(|_| ()).unwrap();
    });
    assert_eq!(heard.recv_timeout(PATIENCE), Ok("it waits"));
    runtime.spawn(async move { sender.send("others are served") });
    assert_eq!(heard.recv_timeout(PATIENCE), Ok("others are served"));
    drop(busy);
    runtime.block_on(waiting).unwrap();
}

#[test]
fn the_other_wallets_are_locked_in_time_while_one_is_busy() {
    let harness = Harness::with_wallet();
    harness.create("v", |options| options.passphrase = Secret::new("pass".into()));
    let busy = Busy::begin(&harness);
    harness.mine(vec![]);
    let other = harness.manager.select(Some("v")).unwrap();
    other.wallet().unlock(Secret::new("pass".into()), 0).unwrap();
    let locked = |event: &Event| matches!(event, Event::WalletLockChanged { locked: true, .. });
    let events = harness.events.clone();
    at_once(&harness, move |_| while !events.lock().iter().any(locked) {});
    drop(busy);
}

#[test]
fn wallets_are_loaded_and_unloaded_while_one_is_busy() {
    let harness = Harness::with_wallet();
    harness.create("v", |_| {});
    let busy = Busy::begin(&harness);
    harness.mine(vec![]);
    at_once(&harness, |manager| {
        manager.unload("v".into(), None).unwrap();
        manager.load("v".into(), None).unwrap();
    });
    assert_eq!(harness.manager.list(), ["w", "v"]);
    drop(busy);
}

#[test]
fn a_long_import_is_given_up_as_a_whole_when_the_host_stops() {
    let harness = Harness::blank();
    let wallet = harness.view().wallet().clone();
    harness.manager.give_up_imports();
    let last = u32::try_from(CHUNK).unwrap();
    let long = descriptor(&format!("wpkh({XPRV}/0/*)"), |import| import.range = Some((0, last)));
    let short = descriptor(&format!("wpkh({XPRV}/1/*)"), |import| import.range = Some((0, 5)));
    assert_eq!(kind_of(wallet.import(vec![short.clone(), long])), ErrorKind::ShuttingDown);
    assert_eq!(harness.view().descriptors(false).unwrap().len(), 0);
    assert!(matches!(wallet.import(vec![short]).unwrap()[..], [ImportOutcome::Imported { .. }]));
    assert_eq!(harness.view().descriptors(false).unwrap().len(), 1);
}

//! Work in the background: after each block, a thread of the plugin counts the unused addresses of a wallet.
#![allow(clippy::unwrap_used, reason = "a broken expectation fails the example")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use outrigger_sdk::options::NoOptions;
use outrigger_sdk::serde_json::json;
use outrigger_sdk::service::Result;
use outrigger_sdk::service::events::Event;
use outrigger_sdk::service::log::Level;
use outrigger_sdk::testing::{StubHost, WalletState};
use outrigger_sdk::{Host, Plugin, methods, plugin};

/// Counts the unused addresses of the wallet "hot".
struct Watcher {
    /// Wakes the thread; `None` once the plugin stops.
    blocks: Mutex<Option<Sender<()>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    ahead: Arc<AtomicU64>,
}

/// Outside of calls, no client selects the wallet, so the thread names it. Each function sees the newest state.
fn look(host: &Host) -> Result<u64> {
    Ok(host.wallet.info(host.wallet_scope("hot")?)?.keypool_external)
}

fn watch(host: &Host, blocks: &Receiver<()>, ahead: &AtomicU64) {
    while blocks.recv().is_ok() {
        // An event is only a hint, so one read handles all pending events.
        while blocks.try_recv().is_ok() {}
        match look(host) {
            Ok(addresses) => ahead.store(addresses, Ordering::Relaxed),
            Err(error) => host.log(Level::Warn, format!("the wallet cannot be read: {error}")),
        }
    }
}

#[plugin(
    id = "watcher",
    summary = "Counts the addresses that a wallet has ahead",
    services = ["wallet-read/1"],
    optional = ["log/1"],
    events = ["tip"]
)]
impl Plugin for Watcher {
    fn new(host: Host, _: NoOptions) -> std::result::Result<Self, String> {
        let ((sender, blocks), ahead) = (channel(), Arc::<AtomicU64>::default());
        let seen = ahead.clone();
        let thread = thread::spawn(move || watch(&host, &blocks, &seen));
        Ok(Self { blocks: Mutex::new(Some(sender)), thread: Mutex::new(Some(thread)), ahead })
    }

    fn event(&self, event: Event) {
        if let (Event::TipChanged { .. }, Some(blocks)) = (event, &*self.blocks.lock().unwrap()) {
            let _ = blocks.send(());
        }
    }

    /// Ends the thread, since no thread may use the host after this returns.
    fn stop(&self) {
        drop(self.blocks.lock().unwrap().take());
        if let Some(thread) = self.thread.lock().unwrap().take() {
            let _ = thread.join();
        }
    }
}

#[methods(category = "Test")]
impl Watcher {
    /// Tells the count after the last block.
    #[method(inline)]
    fn aheadhot(&self) -> Result<u64> {
        Ok(self.ahead.load(Ordering::Relaxed))
    }
}

fn main() {
    let test = StubHost::new();
    test.wallet.set(Some(WalletState::empty("hot")));
    let plugin = test.start::<Watcher>(json!({}));
    assert_eq!(plugin.call("aheadhot", json!([])), Ok(json!(0)));
    test.wallet.with(|wallet| wallet.info.keypool_external = 7).unwrap();
    plugin.tell(Event::TipChanged { hash: test.chain.mine(vec![]), height: 1 });
    let ahead = plugin.ahead.clone();
    // The thread handles the event, and ends.
    plugin.stop();
    assert_eq!(ahead.load(Ordering::Relaxed), 7);
}

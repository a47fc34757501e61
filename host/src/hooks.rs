//! Runs programs on events, like bitcoind's -blocknotify and similar options, but without a shell: a setting is a program
//! and its arguments, in which the host replaces placeholders.
//!
//! At most [`MAX_RUNNING`] programs run at a time; up to [`MAX_WAITING`] further events are queued.

use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::{io, thread};

use bitcoin::{BlockHash, Txid};
use outrigger_node::{NodeEvent, Observer};
use outrigger_service::wallet::TxState;
use outrigger_wallet_engine::WalletManager;
use parking_lot::Mutex;

use crate::config::NotifyConfig;

const MAX_RUNNING: usize = 4;
/// The most queued events; further ones are dropped and logged.
const MAX_WAITING: usize = 10_000;

/// The values of `%b` and `%h` for a transaction that is in no block.
const NO_BLOCK: &str = "unconfirmed";
const NO_HEIGHT: &str = "-1";

enum HookEvent {
    Block(BlockHash),
    Transaction { wallet: String, txid: Txid },
}

pub struct Hooks {
    config: NotifyConfig,
    queue: SyncSender<HookEvent>,
    wallets: OnceLock<Arc<WalletManager>>,
}

impl Hooks {
    /// Starts the threads that run programs on block and wallet events; `None` if no such program is configured.
    pub fn start(config: &NotifyConfig) -> io::Result<Option<Arc<Self>>> {
        if config.blocknotify.is_empty() && config.walletnotify.is_empty() {
            return Ok(None);
        }
        let (queue, happened) = sync_channel(MAX_WAITING);
        let hooks = Arc::new(Self { config: config.clone(), queue, wallets: OnceLock::new() });
        let happened = Arc::new(Mutex::new(happened));
        for _ in 0..MAX_RUNNING {
            let (hooks, happened) = (Arc::downgrade(&hooks), happened.clone());
            let work = move || {
                while let (Some(happened), Some(hooks)) = (next(&happened), hooks.upgrade()) {
                    hooks.tell(&happened);
                }
            };
            thread::Builder::new().name("hook".into()).spawn(work)?;
        }
        Ok(Some(hooks))
    }

    /// Sets the wallets, which look up the block of a transaction.
    pub fn know(&self, wallets: &Arc<WalletManager>) {
        // Set once, after opening the wallets.
        let _ = self.wallets.set(wallets.clone());
    }

    /// Queues the event that a wallet stored or updated a transaction.
    pub fn wallet_transaction(&self, wallet: &str, txid: Txid) {
        if !self.config.walletnotify.is_empty() {
            self.enqueue(HookEvent::Transaction { wallet: wallet.to_owned(), txid });
        }
    }

    fn enqueue(&self, happened: HookEvent) {
        if self.queue.try_send(happened).is_err() {
            tracing::warn!(MAX_WAITING, "a [notify] program was not started: the queue is full");
        }
    }

    fn tell(&self, happened: &HookEvent) {
        match happened {
            HookEvent::Block(hash) => run("blocknotify", &self.config.blocknotify, &[('s', hash.to_string())]),
            HookEvent::Transaction { wallet, txid } => {
                let (block, height) = self.place(wallet, *txid).unwrap_or((NO_BLOCK.to_owned(), NO_HEIGHT.to_owned()));
                let marks = [('s', txid.to_string()), ('w', wallet.clone()), ('b', block), ('h', height)];
                run("walletnotify", &self.config.walletnotify, &marks);
            }
        }
    }

    /// The hash and height of the block that confirms a wallet's transaction, as text; `None` if it is unconfirmed or unknown.
    fn place(&self, wallet: &str, txid: Txid) -> Option<(String, String)> {
        let view = self.wallets.get()?.select_as_it_stands(Some(wallet)).ok()?;
        let batch = view.transactions(&[txid]).ok()?.read().ok()?;
        match batch.rows.first()?.transaction.0.state {
            TxState::Confirmed { block, height, .. } => Some((block.to_string(), height.to_string())),
            _ => None,
        }
    }
}

impl Observer for Hooks {
    fn notify(&self, event: NodeEvent) {
        if let NodeEvent::TipChanged { hash, .. } = event
            && !self.config.blocknotify.is_empty()
        {
            self.enqueue(HookEvent::Block(hash));
        }
    }
}

fn next(happened: &Mutex<Receiver<HookEvent>>) -> Option<HookEvent> {
    happened.lock().recv().ok()
}

/// Replaces the placeholders in a word: a percent sign and a letter of `marks`.
fn fill(word: &str, marks: &[(char, String)]) -> String {
    let mut filled = String::new();
    let mut rest = word.chars().peekable();
    while let Some(letter) = rest.next() {
        let mark = marks.iter().find(|(mark, _)| letter == '%' && rest.peek() == Some(mark));
        match mark {
            Some((_, text)) => {
                filled.push_str(text);
                rest.next();
            }
            None => filled.push(letter),
        }
    }
    filled
}

/// Runs the program of a setting, if configured, and waits for it. A failure is logged.
pub fn run(setting: &str, words: &[String], marks: &[(char, String)]) {
    let Some((program, arguments)) = words.split_first() else { return };
    let mut command = Command::new(program);
    command.args(arguments.iter().map(|word| fill(word, marks))).stdin(Stdio::null());
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(status) => tracing::warn!(setting, %status, "the program failed"),
        Err(error) => tracing::warn!(setting, %error, "the program cannot be started"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_replaced_once_and_other_signs_are_kept() {
        let marks = [('s', "%w".to_owned()), ('w', "a b;$(c)".to_owned())];
        assert_eq!(fill("%s-%w %% %x %", &marks), "%w-a b;$(c) %% %x %");
    }
}

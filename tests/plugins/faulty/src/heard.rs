//! The events that an instance has received, and the calls that wait for a number of them.

use std::sync::Mutex;

use outrigger_sdk::Reply;
use outrigger_sdk::service::events::Event;
use serde_json::{Value, json};

use crate::gate::lock;

#[derive(Default)]
struct State {
    events: Vec<Value>,
    waiting: Vec<(usize, Reply)>,
    closed: bool,
}

#[derive(Default)]
pub struct Heard(Mutex<State>);

impl Heard {
    /// Stores an event, and answers the calls whose number of events is reached.
    pub fn add(&self, event: &Event) {
        let (due, list) = {
            let mut state = lock(&self.0);
            state.events.push(describe(event));
            let count = state.events.len();
            let due: Vec<_> = state.waiting.extract_if(.., |(wanted, _)| *wanted <= count).collect();
            (due, state.events.clone())
        };
        for (_, reply) in due {
            reply.send(Ok(&list));
        }
    }

    pub fn list(&self, wanted: usize, reply: Reply) {
        let list = {
            let mut state = lock(&self.0);
            if state.events.len() < wanted && !state.closed {
                state.waiting.push((wanted, reply));
                return;
            }
            state.events.clone()
        };
        reply.send(Ok(list));
    }

    /// Answers all waiting calls with the list so far; later calls are answered at once.
    pub fn close(&self) {
        let (waiting, list) = {
            let mut state = lock(&self.0);
            state.closed = true;
            (std::mem::take(&mut state.waiting), state.events.clone())
        };
        for (_, reply) in waiting {
            reply.send(Ok(&list));
        }
    }

    /// Drops the reply of a cancelled call.
    pub fn cancel(&self, token: u64) {
        let forgotten: Vec<_> = lock(&self.0).waiting.extract_if(.., |(_, reply)| reply.token() == token).collect();
        drop(forgotten);
    }
}

fn describe(event: &Event) -> Value {
    match event {
        Event::TipChanged { hash, height } => json!({"topic": "tip", "hash": hash, "height": height}),
        Event::MempoolChanged { sequence } => json!({"topic": "mempool", "sequence": sequence}),
        Event::WalletTransaction { wallet, txid } => {
            json!({"topic": "wallet-transaction", "wallet": wallet, "txid": txid})
        }
        Event::RescanFinished { wallet, rescan, outcome, .. } => {
            json!({"topic": "rescan", "wallet": wallet, "rescan": rescan, "outcome": format!("{outcome:?}")})
        }
        Event::WalletLockChanged { wallet, locked } => {
            json!({"topic": "wallet-lock", "wallet": wallet, "locked": locked})
        }
        Event::WalletReorganised { wallet, blocks, transactions } => {
            json!({"topic": "reorganisation", "wallet": wallet, "blocks": blocks, "transactions": transactions})
        }
        Event::WalletLogged { wallet, last } => json!({"topic": "wallet-log", "wallet": wallet, "last": last}),
        Event::CallEnded { method, .. } => json!({"topic": "call", "method": method}),
        Event::ShuttingDown => json!({"topic": "shutdown"}),
    }
}

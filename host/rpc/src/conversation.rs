//! The WebSocket of a connection: its session, and the gate that stops its reader.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use futures_util::future::BoxFuture;
use jsonrpsee::server::ServerHandle;
use parking_lot::Mutex;
use tokio::sync::watch;

/// How many messages of a connection can be in flight. At the limit, the host stops reading from it.
pub(super) const MAX_UNDER_WAY: usize = 64;

/// The JSON-RPC session of an upgraded connection.
pub(super) struct Conversation {
    pub messages: BoxFuture<'static, ()>,
    /// Stops the session once the messages in flight have ended.
    pub stop: ServerHandle,
}

impl Conversation {
    /// Runs until the client closes the connection. Once `stopping` turns true, the calls in flight end first.
    pub(super) async fn run(self, mut stopping: watch::Receiver<bool>) {
        let Self { mut messages, stop } = self;
        tokio::select! {
            () = &mut messages => return,
            // An error means that the server has been dropped, which also stops the connection.
            _ = stopping.wait_for(|stopping| *stopping) => {}
        }
        // Fails only if the session has ended.
        let _ = stop.stop();
        messages.await;
    }
}

/// Stops the reader while too many messages are in flight.
#[derive(Default)]
pub(super) struct ReadGate {
    under_way: AtomicUsize,
    reader: Mutex<Option<Waker>>,
}

impl ReadGate {
    /// Whether the next message may be read. If not, the reader is woken later.
    pub(super) fn poll_open(&self, context: &Context<'_>) -> Poll<()> {
        let is_open = || self.under_way.load(Ordering::SeqCst) < MAX_UNDER_WAY;
        if is_open() {
            return Poll::Ready(());
        }
        *self.reader.lock() = Some(context.waker().clone());
        if is_open() { Poll::Ready(()) } else { Poll::Pending }
    }

    pub(super) fn enter(&self) {
        self.under_way.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn leave(&self) {
        self.under_way.fetch_sub(1, Ordering::SeqCst);
        if let Some(reader) = self.reader.lock().take() {
            reader.wake();
        }
    }
}

//! Long polls: calls whose function has returned, and whose answer waits for an event.
//!
//! The host limits them separately: each occupies a connection, and without a limit they could occupy all connections.

use std::future::{Future, pending};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use outrigger_rpc::{Client, HALF_CLOSED_PATIENCE};

/// Waits for the answer without a time limit. Returns `None` for a long poll whose client closed its sending side at least
/// [`HALF_CLOSED_PATIENCE`] ago. Other calls of such a client run to completion. `is_kept` is whether the call is now a long poll.
pub async fn wait<T>(
    answer: impl Future<Output = T>,
    client: Option<Arc<Client>>,
    is_kept: impl Fn() -> bool,
) -> Option<T> {
    let half_closed = async {
        match client {
            Some(client) => client.sends_no_more().await,
            None => pending().await,
        }
    };
    wait_unless(answer, half_closed, HALF_CLOSED_PATIENCE, is_kept).await
}

async fn wait_unless<T>(
    answer: impl Future<Output = T>,
    half_closed: impl Future<Output = ()>,
    patience: Duration,
    is_kept: impl Fn() -> bool,
) -> Option<T> {
    let left = async {
        half_closed.await;
        loop {
            sleep(patience).await;
            if is_kept() {
                return;
            }
        }
    };
    tokio::select! {
        biased;
        answer = answer => Some(answer),
        () = left => None,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::ready;

    use super::*;

    #[tokio::test]
    async fn only_long_polls_of_half_closed_clients_end() {
        let short = Duration::from_millis(1);
        let (looks, turn) = (Cell::new(0), tokio::sync::Notify::new());
        let running = || {
            looks.set(looks.get() + 1);
            if looks.get() == 3 {
                turn.notify_one();
            }
            false
        };
        assert_eq!(wait_unless(turn.notified(), ready(()), short, running).await, Some(()), "its code runs");
        assert_eq!(wait_unless(pending::<()>(), ready(()), short, || true).await, None);
        assert_eq!(
            wait_unless(sleep(3 * short), pending(), short, || true).await,
            Some(()),
            "its client may send more"
        );
    }
}

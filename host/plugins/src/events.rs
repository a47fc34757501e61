//! A bounded queue of events for one instance, and the thread that delivers them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use outrigger_sdk::manifest::TimerSpec;
use outrigger_service::events::Event;
use outrigger_service::{Events, Result, Scope};
use parking_lot::{Condvar, Mutex};

use outrigger_base::contain::contain;

/// How often the clock is checked while a timer waits.
const CLOCK_CHECK: Duration = Duration::from_secs(30);

/// How many events wait for a slow subscriber before newer ones are dropped.
const QUEUE_DEPTH: usize = 4096;

/// How long the thread lets ended calls collect after it has reported one. To wake it costs a call more than to queue the report.
const COLLECTING: Duration = Duration::from_millis(1);

struct QueueState {
    events: VecDeque<Event>,
    /// When each timer is due, in Unix seconds.
    due: Vec<u64>,
    /// Whether an event is being delivered.
    delivering: bool,
    /// Whether the thread lets ended calls collect.
    collecting: bool,
    closed: bool,
}

pub struct EventQueue {
    topics: Vec<String>,
    timers: Vec<TimerSpec>,
    /// The only wallets whose events the instance gets; `None` for all.
    wallets: Option<Vec<String>>,
    state: Mutex<QueueState>,
    changed: Condvar,
    dropped: AtomicU64,
}

impl EventQueue {
    /// A queue for the manifest's topics and timers, and for events of these wallets, or of all.
    pub fn new(topics: Vec<String>, timers: Vec<TimerSpec>, wallets: Option<Vec<String>>) -> Arc<Self> {
        let due = timers.iter().map(next).collect();
        let state = Mutex::new(QueueState {
            events: VecDeque::new(),
            due,
            delivering: false,
            collecting: false,
            closed: false,
        });
        Arc::new(Self { topics, timers, wallets, state, changed: Condvar::new(), dropped: AtomicU64::new(0) })
    }

    /// Queues an event if the instance subscribes to it and may know its wallet. A full queue drops the event.
    pub fn offer(&self, event: &Event) {
        let wanted = event.topic().is_none_or(|topic| self.topics.iter().any(|wanted| wanted == topic));
        let granted = |name| self.wallets.as_ref().is_none_or(|granted| granted.iter().any(|wallet| wallet == name));
        if !wanted || !event.wallet().is_none_or(granted) {
            return;
        }
        let mut state = self.state.lock();
        if state.closed {
            return;
        }
        if state.events.len() >= QUEUE_DEPTH {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        state.events.push_back(event.clone());
        let wakes = !state.collecting || !matches!(event, Event::CallEnded { .. });
        drop(state);
        if wakes {
            self.changed.notify_one();
        }
    }

    /// Calls `deliver` until the queue is closed and empty.
    pub fn run(&self, deliver: impl Fn(Event)) {
        let mut heard_call = false;
        loop {
            let mut state = self.state.lock();
            state.delivering = false;
            let event = loop {
                let (now, first) = (now(), state.due.iter().enumerate().min_by_key(|(_, due)| **due));
                let first = first.map(|(at, due)| (at, *due));
                if let Some((at, _)) = first.filter(|(_, due)| *due <= now)
                    && let (Some(timer), Some(due)) = (self.timers.get(at), state.due.get_mut(at))
                {
                    *due = next(timer);
                    state.delivering = true;
                    break Event::Timer { name: timer.name.clone() };
                }
                if let Some(event) = state.events.pop_front() {
                    state.delivering = true;
                    break event;
                }
                if state.closed {
                    return;
                }
                if std::mem::take(&mut heard_call) {
                    state.collecting = true;
                    self.changed.wait_for(&mut state, COLLECTING);
                    state.collecting = false;
                    continue;
                }
                match first {
                    None => self.changed.wait(&mut state),
                    // Bounded: meanwhile the clock may be set, or the machine may sleep.
                    Some((_, due)) => {
                        let wait = Duration::from_secs(due - now).min(CLOCK_CHECK);
                        self.changed.wait_for(&mut state, wait);
                    }
                }
            };
            drop(state);
            heard_call = matches!(event, Event::CallEnded { .. });
            contain("delivering an event to a plugin", || deliver(event));
        }
    }

    /// Closes the queue and drops all events but [`Event::ShuttingDown`]. `run` returns once that is delivered.
    pub fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.events.retain(|event| *event == Event::ShuttingDown);
        drop(state);
        self.changed.notify_all();
    }

    /// Whether every event was delivered.
    pub fn is_idle(&self) -> bool {
        let state = self.state.lock();
        state.events.is_empty() && !state.delivering
    }

    pub fn dropped_count(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

/// The current time, in Unix seconds.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// When a timer is due next, in Unix seconds.
fn next(timer: &TimerSpec) -> u64 {
    now() + timer.next(now()).as_secs()
}

impl Events for EventQueue {
    fn dropped(&self, _: Scope) -> Result<u64> {
        Ok(self.dropped_count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instance_gets_only_events_of_granted_wallets() {
        let queue = EventQueue::new(vec!["wallet-lock".into(), "tip".into()], Vec::new(), Some(vec!["hot".into()]));
        for wallet in ["hot", "cold"] {
            queue.offer(&Event::WalletLockChanged { wallet: wallet.into(), locked: true });
        }
        queue.offer(&Event::ShuttingDown);
        let heard: Vec<_> = queue.state.lock().events.iter().map(|event| event.wallet().map(str::to_owned)).collect();
        assert_eq!(heard, [Some("hot".to_owned()), None]);
    }

    #[test]
    fn only_wanted_events_arrive_in_order_and_surplus_is_counted() {
        let queue = EventQueue::new(vec!["mempool".into()], Vec::new(), None);
        queue.offer(&Event::WalletLockChanged { wallet: "w".into(), locked: true });
        for sequence in 0..QUEUE_DEPTH as u64 + 2 {
            queue.offer(&Event::MempoolChanged { sequence });
        }
        assert_eq!(queue.dropped_count(), 2);
        let seen = Mutex::new(Vec::new());
        queue.run(|event| {
            let mut seen = seen.lock();
            seen.push(event);
            if seen.len() == QUEUE_DEPTH - 1 {
                queue.offer(&Event::ShuttingDown);
                queue.close();
            }
        });
        let seen = seen.into_inner();
        assert_eq!(seen.len(), QUEUE_DEPTH, "the last event is dropped, and ShuttingDown is delivered");
        assert_eq!((&seen[1], seen.last()), (&Event::MempoolChanged { sequence: 1 }, Some(&Event::ShuttingDown)));
    }
}

//! The channels through which threads of the host enter a runner.

use parking_lot::{Condvar, Mutex};

use crate::channel::Channel;
use crate::usage::Bounds;

/// How many calls without a time limit can be in one runner at a time. They may wait for an event, or for the calls that they make.
const MAX_LONG: usize = 128;

/// How many threads of the host can be in one runner at a time, besides those of calls without a time limit.
const MAX_SHORT: usize = 40;

/// How many of a plugin's threads are not for threads of the host.
const OTHER_THREADS: usize = 16;

/// How many of the host's threads in a runner are reserved for control functions. Some calls end only after a control function has run.
const FOR_CONTROL: usize = 4;

/// How many of the plugin's own threads can use services at a time.
pub const OWN_CHANNELS: usize = 4;

pub const MAX_CHANNELS: usize = MAX_LONG + MAX_SHORT + OWN_CHANNELS;

/// How many calls without a time limit may be in a runner with these bounds. The plugin keeps half of its threads for other work.
pub fn max_long_calls(bounds: Bounds) -> usize {
    usize::try_from(bounds.threads / 2).unwrap_or(MAX_LONG).min(MAX_LONG)
}

/// Why a thread of the host enters a runner.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    Call,
    Control,
}

/// The result of [`Channels::take`].
pub enum Grant {
    Idle(Channel),
    /// The right to open another channel.
    New,
}

#[derive(Default)]
struct ChannelsState {
    /// A stack: the most recently used channel is last and taken first.
    idle: Vec<Channel>,
    opened: usize,
    calls: usize,
}

/// The idle channels of a runner, and the threads that wait for one.
pub struct Channels {
    /// How many threads of the host can be in the runner at a time.
    most: usize,
    state: Mutex<ChannelsState>,
    returned: Condvar,
}

impl Channels {
    pub fn new(bounds: Bounds) -> Self {
        let threads = usize::try_from(bounds.threads).unwrap_or(usize::MAX);
        let most = (max_long_calls(bounds) + MAX_SHORT).min(threads.saturating_sub(OTHER_THREADS));
        Self { most: most.max(FOR_CONTROL + 1), state: Mutex::default(), returned: Condvar::new() }
    }

    /// Waits for a channel. `None` once the runner is gone.
    pub fn take(&self, entry: Entry, is_gone: impl Fn() -> bool) -> Option<Grant> {
        let mut state = self.state.lock();
        while !is_gone() {
            let is_full = entry == Entry::Call && state.calls >= self.most - FOR_CONTROL;
            let grant = match state.idle.pop_if(|_| !is_full) {
                Some(channel) => Grant::Idle(channel),
                None if !is_full && state.opened < self.most => {
                    state.opened += 1;
                    Grant::New
                }
                None => {
                    self.returned.wait(&mut state);
                    continue;
                }
            };
            state.calls += usize::from(entry == Entry::Call);
            return Some(grant);
        }
        None
    }

    pub fn give_back(&self, channel: Channel, entry: Entry) {
        let mut state = self.state.lock();
        state.idle.push(channel);
        state.calls -= usize::from(entry == Entry::Call);
        drop(state);
        // `notify_one` could wake a call, which cannot take a reserved channel, and leave a control function waiting.
        self.returned.notify_all();
    }

    /// Wakes the waiters, so that they notice the end of the runner.
    pub fn wake_all(&self) {
        drop(self.state.lock());
        self.returned.notify_all();
    }
}

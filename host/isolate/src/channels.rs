//! The channels through which threads of the host enter a runner.

use parking_lot::{Condvar, Mutex};

use crate::channel::Channel;
use crate::usage::Bounds;

/// How many calls without a time limit can be in one runner at a time. They may wait for an event, or for the calls that they make.
const MAX_LONG: usize = 128;

/// How many threads of the host can be in one runner at a time, besides those of calls without a time limit and [`FOR_NESTED`].
const MAX_SHORT: usize = 40;

/// How many of a plugin's threads are not for threads of the host.
const OTHER_THREADS: usize = 16;

/// How many of the host's threads in a runner are reserved for control functions. Some calls end only after a control function has run.
const FOR_CONTROL: usize = 4;

/// How many of the host's threads in a runner are reserved for calls for which others wait, since the calls on all other threads may wait
/// for them. Half of these are reserved for calls for which nested calls wait, and so on.
const FOR_NESTED: usize = 8;

/// How many of the plugin's own threads can use services at a time.
pub const OWN_CHANNELS: usize = 4;

pub const MAX_CHANNELS: usize = MAX_LONG + MAX_SHORT + FOR_NESTED + OWN_CHANNELS;

/// How many calls without a time limit may be in a runner with these bounds. The plugin keeps half of its threads for other work.
pub fn max_long_calls(bounds: Bounds) -> usize {
    usize::try_from(bounds.threads / 2).unwrap_or(MAX_LONG).min(MAX_LONG)
}

/// Why a thread of the host enters a runner.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    Call {
        /// How many calls wait for this one, one for the other.
        depth: usize,
    },
    Control,
}

impl Entry {
    pub fn is_call(self) -> bool {
        self != Self::Control
    }
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
        let most = max_long_calls(bounds) + MAX_SHORT + FOR_NESTED;
        let most = most.min(threads.saturating_sub(OTHER_THREADS)).max(FOR_CONTROL + FOR_NESTED + 1);
        Self { most, state: Mutex::default(), returned: Condvar::new() }
    }

    /// Waits for a channel. `None` once the runner is gone.
    pub fn take(&self, entry: Entry, is_gone: impl Fn() -> bool) -> Option<Grant> {
        let mut state = self.state.lock();
        while !is_gone() {
            let grant = self.grant(&mut state, entry);
            if grant.is_some() {
                return grant;
            }
            self.returned.wait(&mut state);
        }
        None
    }

    /// A channel, if one is free for this entry.
    fn grant(&self, state: &mut ChannelsState, entry: Entry) -> Option<Grant> {
        if let Entry::Call { depth } = entry
            && state.calls >= self.most_calls(depth)
        {
            return None;
        }
        let grant = match state.idle.pop() {
            Some(channel) => Grant::Idle(channel),
            None if state.opened < self.most => {
                state.opened += 1;
                Grant::New
            }
            None => return None,
        };
        state.calls += usize::from(entry.is_call());
        Some(grant)
    }

    /// How many calls may be in the runner when a call of this depth enters.
    fn most_calls(&self, depth: usize) -> usize {
        let reserved = u32::try_from(depth).ok().and_then(|depth| FOR_NESTED.checked_shr(depth)).unwrap_or(0);
        self.most - FOR_CONTROL - reserved
    }

    pub fn give_back(&self, channel: Channel, entry: Entry) {
        let mut state = self.state.lock();
        state.idle.push(channel);
        state.calls -= usize::from(entry.is_call());
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

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    /// How many further entries of this kind get a channel.
    fn fill(channels: &Channels, entry: Entry) -> usize {
        std::iter::from_fn(|| channels.grant(&mut channels.state.lock(), entry)).count()
    }

    #[test]
    fn calls_of_each_depth_leave_channels_to_those_that_they_wait_for() {
        for (threads, calls) in [(64, 36), (256, 164), (u64::MAX, 164)] {
            let channels = Channels::new(Bounds { threads, ..Bounds::NONE });
            let filled = [0, 1, 2, 3, 4, 5, usize::MAX].map(|depth| fill(&channels, Entry::Call { depth }));
            assert_eq!(filled, [calls, 4, 2, 1, 1, 0, 0], "{threads}");
            assert_eq!(fill(&channels, Entry::Control), FOR_CONTROL);
            assert!(channels.most as u64 <= threads - OTHER_THREADS as u64);
        }
    }

    #[test]
    fn a_returned_channel_goes_first_to_the_calls_for_which_others_wait() {
        let channels = Channels::new(Bounds::NONE);
        let [outer, nested] = [0, 1].map(|depth| Entry::Call { depth });
        assert!(fill(&channels, outer) > 0 && fill(&channels, nested) > 0);
        let (channel, _other) = UnixStream::pair().unwrap();
        channels.give_back(Channel::to_host(channel), outer);
        assert_eq!(fill(&channels, outer), 0);
        assert!(matches!(channels.grant(&mut channels.state.lock(), nested), Some(Grant::Idle(_))));
    }
}

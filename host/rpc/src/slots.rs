//! Connection slots, and which connection is closed when they run out.
//!
//! When no slot is free, the oldest connection without credentials is closed. Clients send credentials with their first
//! request, so a legitimate client is rarely the oldest, and a flood of clients without credentials locks nobody out.
//! Connections from addresses that have shown credentials before are closed last and have a reserved share of the
//! slots.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::figures::EdgeFigures;
use super::peers::Peer;

/// Unauthenticated connections from unknown addresses hold at most one in this many slots.
const UNKNOWN_ONE_IN: usize = 2;

/// How many addresses that have shown credentials are remembered.
const MAX_KNOWN: usize = 4096;

pub(super) struct ConnectionSlots {
    max_connections: usize,
    max_unknown: usize,
    figures: Arc<EdgeFigures>,
    state: Mutex<SlotState>,
}

#[derive(Default)]
struct SlotState {
    open: usize,
    /// How many connections have had a slot.
    accepted: u64,
    /// Unauthenticated connections from unknown addresses, the oldest first.
    pending_unknown: BTreeMap<u64, Arc<Link>>,
    /// Unauthenticated connections from known addresses, the oldest first.
    pending_known: BTreeMap<u64, Arc<Link>>,
    /// The addresses that have shown credentials, each with the value of `accepted` when it last did.
    known_addresses: HashMap<Peer, u64>,
}

/// The edge's view of an open connection.
pub(super) struct Link {
    number: u64,
    peer: Peer,
    /// Set once a PROXY protocol header was read: the client that it names, if any.
    client: OnceLock<Option<Peer>>,
    slots: Arc<ConnectionSlots>,
    authenticated: AtomicBool,
    closed: Notify,
}

/// A connection's slot, released on drop.
pub(super) struct ConnectionSlot(pub Arc<Link>);

impl ConnectionSlots {
    pub(super) fn new(max_connections: usize, figures: Arc<EdgeFigures>) -> Arc<Self> {
        let max_unknown = (max_connections / UNKNOWN_ONE_IN).max(1);
        Arc::new(Self { max_connections, max_unknown, figures, state: Mutex::default() })
    }

    /// A slot for a new connection; `None` if connections with credentials hold all slots.
    pub(super) fn enter(self: &Arc<Self>, peer: Peer) -> Option<ConnectionSlot> {
        let mut state = self.state.lock();
        let known = state.known_addresses.contains_key(&peer);
        if !known && state.pending_unknown.len() >= self.max_unknown {
            self.displace(&mut state);
        }
        if state.open >= self.max_connections && !self.displace(&mut state) {
            return None;
        }
        state.open += 1;
        state.accepted += 1;
        let (number, slots) = (state.accepted, self.clone());
        let (client, authenticated) = (OnceLock::new(), AtomicBool::new(false));
        let link = Link { number, peer, client, slots, authenticated, closed: Notify::new() };
        let link = Arc::new(link);
        let pending = if known { &mut state.pending_known } else { &mut state.pending_unknown };
        pending.insert(number, link.clone());
        self.figures.open.store(state.open, Ordering::Relaxed);
        Some(ConnectionSlot(link))
    }

    /// Closes the oldest unauthenticated connection. Returns whether there was one.
    pub(super) fn make_room(&self) -> bool {
        self.displace(&mut self.state.lock())
    }

    fn displace(&self, state: &mut SlotState) -> bool {
        let oldest = state.pending_unknown.pop_first().or_else(|| state.pending_known.pop_first());
        let Some((_, link)) = oldest else { return false };
        state.open -= 1;
        self.figures.displaced.fetch_add(1, Ordering::Relaxed);
        link.close();
        true
    }
}

impl SlotState {
    /// Removes a connection from the pending ones. Returns whether it was pending.
    fn remove_pending(&mut self, number: u64) -> bool {
        self.pending_unknown.remove(&number).or_else(|| self.pending_known.remove(&number)).is_some()
    }

    /// Remembers an address. Beyond [`MAX_KNOWN`], the least recent one is dropped.
    fn remember(&mut self, peer: Peer) {
        if self.known_addresses.len() >= MAX_KNOWN && !self.known_addresses.contains_key(&peer) {
            let oldest = self.known_addresses.iter().min_by_key(|(_, last)| **last).map(|(peer, _)| *peer);
            if let Some(oldest) = oldest {
                self.known_addresses.remove(&oldest);
            }
        }
        self.known_addresses.insert(peer, self.accepted);
    }
}

impl Link {
    /// The client that the PROXY protocol header names, else the connection's peer.
    pub(super) fn peer(&self) -> Peer {
        self.client.get().copied().flatten().unwrap_or(self.peer)
    }

    /// The proxy, if the connection began with a PROXY protocol header.
    pub(super) fn proxy(&self) -> Option<Peer> {
        self.client.get().map(|_| self.peer)
    }

    /// Whether the PROXY protocol header names no client.
    pub(super) fn hides_client(&self) -> bool {
        self.client.get().is_some_and(Option::is_none)
    }

    /// Sets the client that a trusted proxy's header names. Only the first call has an effect.
    pub(super) fn is_of(&self, client: Option<Peer>) {
        let _ = self.client.set(client);
    }

    pub(super) fn is_authenticated(&self) -> bool {
        self.authenticated.load(Ordering::Relaxed)
    }

    /// Marks the connection as authenticated, so that it keeps its slot. No effect if it was closed to make room.
    pub(super) fn authenticate(&self) {
        let mut state = self.slots.state.lock();
        if state.remove_pending(self.number) {
            state.remember(self.peer);
            self.authenticated.store(true, Ordering::Relaxed);
        }
    }

    pub(super) fn close(&self) {
        self.closed.notify_one();
    }

    pub(super) async fn closed(&self) {
        self.closed.notified().await;
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let Self(link) = self;
        let mut state = link.slots.state.lock();
        // A connection that was closed to make room has already released its slot.
        if state.remove_pending(link.number) || link.is_authenticated() {
            state.open -= 1;
        }
        link.slots.figures.open.store(state.open, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    use std::net::{IpAddr, Ipv4Addr};

    const ONE: Peer = Peer::Ip(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)));
    const OTHER: Peer = Peer::Ip(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)));

    fn is_closed(slot: &ConnectionSlot) -> bool {
        let closed = pin!(slot.0.closed());
        closed.poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
    }

    #[test]
    fn slots_without_credentials_make_room_the_oldest_first() {
        let slots = ConnectionSlots::new(4, Arc::default());
        let first: Vec<_> = (0..2).map(|_| slots.enter(ONE).unwrap()).collect();
        let third = slots.enter(ONE).unwrap();
        assert!(is_closed(&first[0]) && !is_closed(&first[1]) && !is_closed(&third));
        drop(first);
        third.0.authenticate();
        // The address is known now, so it may take the reserved half, too.
        let known: Vec<_> = (0..3).map(|_| slots.enter(ONE).unwrap()).collect();
        assert!(!known.iter().any(is_closed));
        let unknown = slots.enter(OTHER).unwrap();
        assert!(is_closed(&known[0]) && !is_closed(&third));
        let last = slots.enter(ONE).unwrap();
        assert!(is_closed(&unknown), "unknown addresses are closed before known ones");
        drop((unknown, known));
        last.0.authenticate();
        assert_eq!(slots.state.lock().open, 2);
    }

    #[test]
    fn slots_with_credentials_are_kept() {
        let figures = Arc::<EdgeFigures>::default();
        let slots = ConnectionSlots::new(2, figures.clone());
        let taken: Vec<_> = (0..2)
            .map(|_| {
                let slot = slots.enter(ONE).unwrap();
                slot.0.authenticate();
                slot
            })
            .collect();
        assert!(slots.enter(OTHER).is_none() && slots.enter(ONE).is_none() && !slots.make_room());
        assert!(!taken.iter().any(is_closed));
        drop(taken);
        assert_eq!(figures.open.load(Ordering::Relaxed), 0);
        let slot = slots.enter(OTHER).unwrap();
        assert!(slots.make_room() && is_closed(&slot));
        slot.0.authenticate();
        assert!(!slot.0.is_authenticated(), "its slot was released");
        drop(slot);
        assert_eq!((slots.state.lock().open, figures.displaced.load(Ordering::Relaxed)), (0, 1));
    }

    #[test]
    fn slots_bound_the_remembered_addresses() {
        let slots = ConnectionSlots::new(usize::MAX, Arc::default());
        for number in 0..=u32::try_from(MAX_KNOWN).unwrap() {
            slots.enter(Peer::Ip(IpAddr::V4(number.into()))).unwrap().0.authenticate();
        }
        let state = slots.state.lock();
        assert_eq!(state.known_addresses.len(), MAX_KNOWN);
        assert!(!state.known_addresses.contains_key(&Peer::Ip(IpAddr::V4(0.into()))));
    }
}

//! The places for connections, and who has to make room where they are short.
//!
//! A connection that has not shown credentials holds its place only while nobody else needs it: where there is none, the
//! oldest of them is closed. Clients show their credentials with the first thing that they say, so those who have any are
//! hardly ever among the oldest, and however many connect who have none, they shut nobody out. Connections from addresses
//! that have shown credentials come after all others in this, and have a share of the places for themselves.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use super::figures::EdgeFigures;

/// The part of the places that clients of unknown addresses may take without credentials: one in so many.
const STRANGERS_PART: usize = 2;

/// How many addresses that have shown credentials are known.
const MAX_KNOWN: usize = 4096;

/// The places for connections.
pub(super) struct Places {
    most: usize,
    strangers_most: usize,
    figures: Arc<EdgeFigures>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Connections that have a place.
    open: usize,
    /// How many came so far.
    came: u64,
    /// Those without credentials from unknown addresses, in the order in which they came.
    strangers: BTreeMap<u64, Arc<Link>>,
    /// Those without credentials from known addresses.
    acquainted: BTreeMap<u64, Arc<Link>>,
    /// The addresses that have shown credentials, each with when it last did, counted in connections.
    known: HashMap<IpAddr, u64>,
}

/// An open connection, as others see it.
pub(super) struct Link {
    number: u64,
    peer: IpAddr,
    places: Arc<Places>,
    authenticated: AtomicBool,
    closed: Notify,
}

/// A connection's place, given back when the value is dropped.
pub(super) struct Place(pub Arc<Link>);

impl Places {
    pub(super) fn new(most: usize, figures: Arc<EdgeFigures>) -> Arc<Self> {
        let strangers_most = (most / STRANGERS_PART).max(1);
        Arc::new(Self { most, strangers_most, figures, state: Mutex::default() })
    }

    /// A place for a new connection from `peer`; none where all are taken by those that have shown credentials.
    pub(super) fn enter(self: &Arc<Self>, peer: IpAddr) -> Option<Place> {
        let peer = peer.to_canonical();
        let mut state = self.lock();
        let known = state.known.contains_key(&peer);
        if !known && state.strangers.len() >= self.strangers_most {
            self.displace(&mut state);
        }
        if state.open >= self.most && !self.displace(&mut state) {
            return None;
        }
        state.open += 1;
        state.came += 1;
        let (number, places) = (state.came, self.clone());
        let link = Link { number, peer, places, authenticated: AtomicBool::new(false), closed: Notify::new() };
        let link = Arc::new(link);
        let waiting = if known { &mut state.acquainted } else { &mut state.strangers };
        waiting.insert(number, link.clone());
        self.figures.open.store(state.open, Ordering::Relaxed);
        Some(Place(link))
    }

    /// Closes the oldest connection without credentials, where there is one.
    pub(super) fn make_room(&self) -> bool {
        self.displace(&mut self.lock())
    }

    fn displace(&self, state: &mut State) -> bool {
        let oldest = state.strangers.pop_first().or_else(|| state.acquainted.pop_first());
        let Some((_, link)) = oldest else { return false };
        state.open -= 1;
        self.figures.displaced.fetch_add(1, Ordering::Relaxed);
        link.close();
        true
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is whole after every operation, so a panic elsewhere cannot have damaged it.
        self.state.lock()
    }
}

impl State {
    /// Whether the connection waited for its credentials; from now on it does not.
    fn forget(&mut self, number: u64) -> bool {
        self.strangers.remove(&number).or_else(|| self.acquainted.remove(&number)).is_some()
    }

    fn know(&mut self, peer: IpAddr) {
        if self.known.len() >= MAX_KNOWN && !self.known.contains_key(&peer) {
            let oldest = self.known.iter().min_by_key(|(_, last)| **last).map(|(peer, _)| *peer);
            if let Some(oldest) = oldest {
                self.known.remove(&oldest);
            }
        }
        self.known.insert(peer, self.came);
    }
}

impl Link {
    /// The client's address, an IPv4 address as one also where a socket for both shows it as IPv6.
    pub(super) fn peer(&self) -> IpAddr {
        self.peer
    }

    /// Whether the connection has shown credentials.
    pub(super) fn is_authenticated(&self) -> bool {
        self.authenticated.load(Ordering::Relaxed)
    }

    /// The connection has shown credentials: its place is its own.
    pub(super) fn authenticate(&self) {
        let mut state = self.places.lock();
        if state.forget(self.number) {
            state.know(self.peer);
            self.authenticated.store(true, Ordering::Relaxed);
        }
    }

    /// Has the connection closed.
    pub(super) fn close(&self) {
        self.closed.notify_one();
    }

    /// Returns when the connection is to be closed.
    pub(super) async fn closed(&self) {
        self.closed.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Self(link) = self;
        let mut state = link.places.lock();
        // The place of one that made room was given to another already.
        if state.forget(link.number) || link.is_authenticated() {
            state.open -= 1;
        }
        link.places.figures.open.store(state.open, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    const ONE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));

    fn is_closed(place: &Place) -> bool {
        let closed = pin!(place.0.closed());
        closed.poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
    }

    #[test]
    fn places_without_credentials_make_room_the_oldest_first() {
        let places = Places::new(4, Arc::default());
        let first: Vec<_> = (0..2).map(|_| places.enter(ONE).unwrap()).collect();
        let third = places.enter(ONE).unwrap();
        assert!(is_closed(&first[0]) && !is_closed(&first[1]) && !is_closed(&third));
        drop(first);
        third.0.authenticate();
        // Its address is known now: the other half is there for it, too.
        let acquainted: Vec<_> = (0..3).map(|_| places.enter(ONE).unwrap()).collect();
        assert!(!acquainted.iter().any(is_closed));
        let stranger = places.enter(OTHER).unwrap();
        assert!(is_closed(&acquainted[0]) && !is_closed(&third));
        let last = places.enter(ONE).unwrap();
        assert!(is_closed(&stranger), "strangers make room before others");
        drop((stranger, acquainted));
        last.0.authenticate();
        assert_eq!(places.lock().open, 2);
    }

    #[test]
    fn places_with_credentials_are_kept() {
        let figures = Arc::<EdgeFigures>::default();
        let places = Places::new(2, figures.clone());
        let taken: Vec<_> = (0..2)
            .map(|_| {
                let place = places.enter(ONE).unwrap();
                place.0.authenticate();
                place
            })
            .collect();
        assert!(places.enter(OTHER).is_none() && places.enter(ONE).is_none() && !places.make_room());
        assert!(!taken.iter().any(is_closed));
        drop(taken);
        assert_eq!(figures.open.load(Ordering::Relaxed), 0);
        let place = places.enter(OTHER).unwrap();
        assert!(places.make_room() && is_closed(&place));
        place.0.authenticate();
        assert!(!place.0.is_authenticated(), "its place is another's");
        drop(place);
        assert_eq!((places.lock().open, figures.displaced.load(Ordering::Relaxed)), (0, 1));
    }

    #[test]
    fn addresses_that_are_known_are_bounded() {
        let places = Places::new(usize::MAX, Arc::default());
        for number in 0..=u32::try_from(MAX_KNOWN).unwrap() {
            places.enter(IpAddr::V4(number.into())).unwrap().0.authenticate();
        }
        let state = places.lock();
        assert_eq!(state.known.len(), MAX_KNOWN);
        assert!(!state.known.contains_key(&IpAddr::V4(0.into())));
    }
}

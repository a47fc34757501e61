//! Slows password guessing by address: once an address has used up its credit, each wrong attempt delays its next
//! check.
//!
//! The check itself waits, so without credit a guesser cannot tell right credentials from wrong ones by the answer's
//! speed. A connection that has shown its credentials before is not delayed.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::time::sleep;

use super::peers::Peer;

/// How many wrong credentials of an address are checked without a pause.
pub(super) const CREDIT: u32 = 16;

/// How many requests of an address may wait for the check. Further ones are refused.
pub(super) const MAX_WAITING: usize = 16;

/// How many guessing addresses are tracked. Further ones share one entry.
const MAX_ADDRESSES: usize = 4096;

/// The network part of an IPv6 address: one client may have all addresses of a /64.
const V6_NETWORK: u128 = !0 << 64;

/// The entry of guessers that are not tracked.
const OTHERS: Peer = Peer::Ip(IpAddr::V4(Ipv4Addr::UNSPECIFIED));

/// The addresses that sent wrong credentials lately.
pub(super) struct Attempts {
    /// The delay for each wrong attempt.
    delay: Duration,
    /// How many addresses are tracked. While it is 0, no request locks the table.
    noted: AtomicUsize,
    /// When the last delay ends, in milliseconds since `begin`.
    paid_at: AtomicU64,
    begin: Instant,
    addresses: Mutex<HashMap<Peer, Guesser>>,
}

struct Guesser {
    /// When its delay ends.
    paid_at: Instant,
    waiting: usize,
}

impl Attempts {
    pub(super) fn new(delay: Duration) -> Self {
        let (noted, paid_at) = (AtomicUsize::new(0), AtomicU64::new(0));
        Self { delay, noted, paid_at, begin: Instant::now(), addresses: Mutex::default() }
    }

    /// Whether no address is delayed.
    pub(super) fn is_quiet(&self) -> bool {
        self.noted.load(Ordering::Relaxed) == 0 || self.is_quiet_at(Instant::now())
    }

    fn is_quiet_at(&self, now: Instant) -> bool {
        if self.since_begin(now) <= self.paid_at.load(Ordering::Relaxed) {
            return false;
        }
        // Removes addresses that never came back.
        let mut addresses = self.addresses.lock();
        self.forget(&mut addresses, now);
        addresses.is_empty()
    }

    fn since_begin(&self, time: Instant) -> u64 {
        u64::try_from(time.saturating_duration_since(self.begin).as_millis()).unwrap_or(u64::MAX)
    }

    /// Records wrong credentials. Returns the delay of their answer: wrong attempts of an address are answered one
    /// after the other.
    pub(super) fn wrong(&self, peer: Peer, now: Instant) -> Duration {
        let mut addresses = self.addresses.lock();
        if addresses.len() >= MAX_ADDRESSES {
            self.forget(&mut addresses, now);
        }
        let address = if addresses.len() < MAX_ADDRESSES { network(peer) } else { noted(&addresses, peer) };
        let guesser = addresses.entry(address).or_insert(Guesser { paid_at: now, waiting: 0 });
        guesser.paid_at = guesser.paid_at.max(now) + self.delay;
        let pause = guesser.paid_at.saturating_duration_since(now);
        self.paid_at.fetch_max(self.since_begin(guesser.paid_at), Ordering::Relaxed);
        self.noted.store(addresses.len(), Ordering::Relaxed);
        pause
    }

    /// Waits until credentials from an address may be checked; `None` if [`MAX_WAITING`] requests of that address wait
    /// already.
    pub(super) async fn wait_for_turn(&self, peer: Peer) -> Option<()> {
        let mut waiting: Option<Waiting<'_>> = None;
        loop {
            let Some(pause) = self.pause(peer, Instant::now()) else { return Some(()) };
            if waiting.is_none() {
                waiting = Some(self.wait(peer)?);
            }
            sleep(pause).await;
        }
    }

    /// How long a request of an address waits before its credentials are checked; `None`: not at all.
    fn pause(&self, peer: Peer, now: Instant) -> Option<Duration> {
        let mut addresses = self.addresses.lock();
        let guesser = addresses.get(&noted(&addresses, peer))?;
        if guesser.paid_at <= now && guesser.waiting == 0 {
            self.forget(&mut addresses, now);
            return None;
        }
        let pause = guesser.paid_at.saturating_duration_since(now).checked_sub(self.delay * CREDIT)?;
        (!pause.is_zero()).then_some(pause)
    }

    fn wait(&self, peer: Peer) -> Option<Waiting<'_>> {
        let mut addresses = self.addresses.lock();
        let address = noted(&addresses, peer);
        let guesser = addresses.get_mut(&address).filter(|guesser| guesser.waiting < MAX_WAITING)?;
        guesser.waiting += 1;
        Some(Waiting { attempts: self, address })
    }

    fn forget(&self, addresses: &mut HashMap<Peer, Guesser>, now: Instant) {
        addresses.retain(|_, guesser| guesser.paid_at > now || guesser.waiting > 0);
        self.noted.store(addresses.len(), Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.addresses.lock().values().map(|guesser| guesser.waiting).sum()
    }
}

/// A request that waits for its credentials to be checked.
struct Waiting<'a> {
    attempts: &'a Attempts,
    address: Peer,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(guesser) = self.attempts.addresses.lock().get_mut(&self.address) {
            guesser.waiting = guesser.waiting.saturating_sub(1);
        }
    }
}

/// The entry of a client: its own, or [`OTHERS`] if the client is not tracked.
fn noted(addresses: &HashMap<Peer, Guesser>, peer: Peer) -> Peer {
    let address = network(peer);
    if addresses.contains_key(&address) { address } else { OTHERS }
}

/// The key of a client: its IPv4 address, its IPv6 network, or its user on this machine.
fn network(peer: Peer) -> Peer {
    match peer {
        Peer::Ip(IpAddr::V6(address)) => Peer::Ip(IpAddr::V6((u128::from(address) & V6_NETWORK).into())),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY: Duration = Duration::from_millis(250);

    fn address(text: &str) -> Peer {
        Peer::Ip(text.parse().unwrap())
    }

    #[test]
    fn wrong_credentials_of_an_address_are_answered_one_after_the_other() {
        let (attempts, now) = (Attempts::new(DELAY), Instant::now());
        let (one, other) = (address("10.0.0.1"), address("10.0.0.2"));
        assert!(attempts.is_quiet());
        assert_eq!((attempts.wrong(one, now), attempts.wrong(one, now)), (DELAY, 2 * DELAY));
        assert_eq!(attempts.wrong(address("10.0.0.1"), now), 3 * DELAY);
        assert_eq!(attempts.wrong(other, now), DELAY);
        assert_eq!(attempts.wrong(one, now + 3 * DELAY), DELAY);
        assert_eq!(attempts.wrong(address("fd00::1"), now), DELAY);
        assert_eq!(attempts.wrong(address("fd00::2"), now), 2 * DELAY);
    }

    #[test]
    fn an_address_without_credit_waits_and_others_do_not() {
        let (attempts, now) = (Attempts::new(DELAY), Instant::now());
        let (one, other) = (address("10.0.0.1"), address("10.0.0.2"));
        for _ in 0..CREDIT {
            assert_eq!(attempts.pause(one, now), None);
            attempts.wrong(one, now);
        }
        assert_eq!(attempts.pause(one, now), None);
        attempts.wrong(one, now);
        assert_eq!((attempts.pause(one, now), attempts.pause(other, now)), (Some(DELAY), None));
        assert_eq!(attempts.pause(one, now + DELAY), None);
        let waiting: Vec<_> = (0..MAX_WAITING).map(|_| attempts.wait(one).unwrap()).collect();
        assert!(attempts.wait(one).is_none());
        drop(waiting);
        assert!(attempts.wait(one).is_some());
        assert_eq!(attempts.pause(one, now + DELAY * (CREDIT + 1)), None);
        assert!(attempts.is_quiet(), "an address without a delay is forgotten");
    }

    #[test]
    fn attempts_of_an_address_that_never_comes_back_are_forgotten() {
        let (attempts, now) = (Attempts::new(DELAY), Instant::now());
        attempts.wrong(address("10.0.0.1"), now);
        assert!(!attempts.is_quiet_at(now) && !attempts.is_quiet_at(now + DELAY / 2));
        assert!(attempts.is_quiet_at(now + 2 * DELAY) && attempts.noted.load(Ordering::Relaxed) == 0);
    }

    #[test]
    fn addresses_beyond_those_that_are_noted_count_as_one() {
        let (attempts, now) = (Attempts::new(DELAY), Instant::now());
        for number in 1..=u32::try_from(MAX_ADDRESSES).unwrap() {
            assert_eq!(attempts.wrong(Peer::Ip(IpAddr::V4(number.into())), now), DELAY);
        }
        assert_eq!(attempts.wrong(address("10.0.0.1"), now), DELAY);
        assert_eq!(attempts.wrong(address("10.0.0.2"), now), 2 * DELAY);
        assert_eq!(attempts.wrong(address("10.0.0.3"), now + 2 * DELAY), DELAY, "the delay of the others has passed");
    }
}

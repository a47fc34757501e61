//! The addresses of clients, and the IP allow-list.

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Peer {
    /// Never an IPv4-mapped IPv6 address.
    Ip(IpAddr),
    /// A local process on the Unix socket, by its uid.
    Unix(u32),
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => write!(f, "{address}"),
            Self::Unix(user) => write!(f, "unix:{user}"),
        }
    }
}

/// The accepted networks, and the trusted proxies.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// The networks of clients. Loopback is always allowed, as with bitcoind's `rpcallowip`.
    pub allowed: Vec<IpNet>,
    /// The networks of proxies that are trusted to name their clients.
    pub trusted: Vec<IpNet>,
    /// Whether processes on the Unix socket are trusted too.
    pub trusts_unix: bool,
}

impl Access {
    /// Always true on a Unix socket: the mode of its file restricts its clients.
    pub(super) fn allows(&self, peer: Peer) -> bool {
        let Peer::Ip(address) = peer else { return true };
        address.is_loopback() || self.allowed.iter().any(|network| network.contains(&address))
    }

    pub(super) fn trusts(&self, peer: Peer) -> bool {
        match peer {
            Peer::Ip(address) => self.trusted.iter().any(|network| network.contains(&address)),
            Peer::Unix(_) => self.trusts_unix,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(networks: &[&str], address: &str) -> bool {
        let allowed = networks.iter().map(|network| network.parse().unwrap()).collect();
        Access { allowed, ..Access::default() }.allows(Peer::Ip(address.parse::<IpAddr>().unwrap().to_canonical()))
    }

    #[test]
    fn peers_allow_loopback_always_and_others_by_network() {
        for own in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
            assert!(allows(&[], own), "{own}");
        }
        assert!(!allows(&[], "10.0.0.1") && !allows(&[], "fd00::1"));
        for inside in ["10.255.0.1", "::ffff:10.0.0.1", "192.168.1.7", "fd00::1"] {
            assert!(allows(&["10.0.0.0/8", "192.168.1.7/32", "fd00::/8"], inside), "{inside}");
        }
        for outside in ["11.0.0.1", "192.168.1.8", "fe80::1"] {
            assert!(!allows(&["10.0.0.0/8", "192.168.1.7/32", "fd00::/8"], outside), "{outside}");
        }
    }
}

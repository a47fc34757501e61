//! The IP allow-list.

use std::net::IpAddr;

use ipnet::IpNet;

/// The IP allow-list. Loopback is always allowed, as with bitcoind's `rpcallowip`.
#[derive(Clone, Debug, Default)]
pub struct Peers(Vec<IpNet>);

impl Peers {
    /// Allows these networks, and loopback.
    pub fn of(networks: Vec<IpNet>) -> Self {
        Self(networks)
    }

    pub fn is_local(&self) -> bool {
        self.0.is_empty()
    }

    /// An IPv4-mapped IPv6 address counts as IPv4.
    pub fn allows(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_loopback() || self.0.iter().any(|network| network.contains(&address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(networks: &[&str], address: &str) -> bool {
        let networks = networks.iter().map(|network| network.parse().unwrap()).collect();
        Peers::of(networks).allows(address.parse().unwrap())
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

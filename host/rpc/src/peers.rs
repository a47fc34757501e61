//! Which clients are accepted, by their addresses.

use std::net::IpAddr;

use ipnet::IpNet;

/// The networks whose clients are accepted. This machine's own always are, as with bitcoind's `rpcallowip`.
#[derive(Clone, Debug, Default)]
pub struct Peers(Vec<IpNet>);

impl Peers {
    /// Hears clients of these networks, beside this machine's own.
    pub fn of(networks: Vec<IpNet>) -> Self {
        Self(networks)
    }

    /// Whether only this machine's own clients are accepted.
    pub fn is_local(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a client with this address is accepted. An IPv4 address is one, also where a socket for both shows it as IPv6.
    pub fn hears(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_loopback() || self.0.iter().any(|network| network.contains(&address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hears(networks: &[&str], address: &str) -> bool {
        let networks = networks.iter().map(|network| network.parse().unwrap()).collect();
        Peers::of(networks).hears(address.parse().unwrap())
    }

    #[test]
    fn this_machine_is_always_heard_and_others_by_their_network() {
        for own in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
            assert!(hears(&[], own), "{own}");
        }
        assert!(!hears(&[], "10.0.0.1") && !hears(&[], "fd00::1"));
        for inside in ["10.255.0.1", "::ffff:10.0.0.1", "192.168.1.7", "fd00::1"] {
            assert!(hears(&["10.0.0.0/8", "192.168.1.7/32", "fd00::/8"], inside), "{inside}");
        }
        for outside in ["11.0.0.1", "192.168.1.8", "fe80::1"] {
            assert!(!hears(&["10.0.0.0/8", "192.168.1.7/32", "fd00::/8"], outside), "{outside}");
        }
    }
}

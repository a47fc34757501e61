//! The settings of access to the RPC server: TLS, networks, proxies and listen addresses.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::de::{Error, IntoDeserializer};
use serde::{Deserialize, Deserializer};

use super::{ConfigError, LoadedConfig};
use outrigger_rpc::{ListenAddress, Tls};

#[derive(Clone, Copy, Debug)]
pub struct IpNetwork(pub IpNet);

impl<'de> Deserialize<'de> for IpNetwork {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let single = || text.parse::<IpAddr>().ok().map(IpNet::from);
        let masked = || {
            let (address, mask) = text.split_once('/')?;
            let (address, mask): (IpAddr, IpAddr) = (address.parse().ok()?, mask.parse().ok()?);
            (address.is_ipv4() == mask.is_ipv4()).then(|| IpNet::with_netmask(address, mask).ok())?
        };
        let network = text.parse().ok().or_else(single).or_else(masked).ok_or_else(|| {
            D::Error::custom(format!(
                "'{text}' is not a network: write an address, or one with its prefix or mask as in 10.0.0.0/8"
            ))
        })?;
        if network != network.trunc() {
            let (whole, one) = (network.trunc(), IpNet::from(network.addr()));
            return Err(D::Error::custom(format!(
                "'{text}' has bits beyond its prefix: write {whole} for the network, or {one} for the address alone"
            )));
        }
        Ok(Self(network))
    }
}

/// An entry of `rpc.trusted_proxies`.
#[derive(Clone, Copy, Debug)]
pub enum Proxy {
    Network(IpNetwork),
    Unix,
}

impl<'de> Deserialize<'de> for Proxy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == "unix" {
            return Ok(Self::Unix);
        }
        IpNetwork::deserialize(text.into_deserializer()).map(Self::Network)
    }
}

/// Parses an address, or a list of addresses.
pub(super) fn one_or_several<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ListenAddress>, D::Error> {
    #[derive(Deserialize)]
    #[serde(
        untagged,
        expecting = "expected an address and port as \"127.0.0.1:8337\" or \"[::1]:8337\", the same after \"proxy:\", a Unix socket as \"unix:/path\", or a list of these"
    )]
    enum Listen {
        One(String),
        Several(Vec<String>),
    }
    let texts = match Listen::deserialize(deserializer)? {
        Listen::One(text) => vec![text],
        Listen::Several(texts) => texts,
    };
    texts.iter().map(|text| text.parse().map_err(D::Error::custom)).collect()
}

impl LoadedConfig {
    /// Checks that `rpc.trusted_proxies` names a proxy if there is a `proxy:` address.
    pub fn check_proxies(&self) -> Result<(), ConfigError> {
        let rpc = &self.config.rpc;
        match rpc.listen.iter().find(|address| matches!(address, ListenAddress::Proxy(_))) {
            Some(address) if rpc.access().trusted.is_empty() => {
                let reason = format!("{address} needs rpc.trusted_proxies: only these may connect to it");
                Err(self.error("rpc.listen", &address.to_string(), reason))
            }
            _ => Ok(()),
        }
    }

    /// Checks the mode of Unix sockets. This also refuses decimal numbers such as 660, since they lack the owner's bits.
    pub(super) fn check_socket_mode(&self) -> Result<(), ConfigError> {
        let mode = self.config.rpc.socket_mode;
        if mode & 0o600 == 0o600 && mode <= 0o777 {
            return Ok(());
        }
        let reason = format!("must be from 0o600 to 0o777, and let the owner read and write: {mode} is 0o{mode:o}");
        Err(self.error("rpc.socket_mode", "", reason))
    }

    /// Reads the certificate and its key; `None` if TLS is not configured.
    ///
    /// # Errors
    /// A file cannot be used, or there is `client_users` without `client_ca`.
    pub fn tls(&self) -> Result<Option<Tls>, ConfigError> {
        let Some(tls) = &self.config.rpc.tls else { return Ok(None) };
        if tls.client_users && tls.client_ca.is_none() {
            let reason = "needs rpc.tls.client_ca: only a checked certificate names a user".to_owned();
            return Err(self.error("rpc.tls.client_users", "true", reason));
        }
        Tls::open(tls.clone()).map(Some).map_err(|error| self.error(error.setting, "", error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_written_with_a_prefix_a_mask_or_neither() {
        let read = |text: &str| {
            serde_json::from_value::<IpNetwork>(serde_json::Value::from(text)).map(|network| network.0.to_string())
        };
        let cases = [
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("10.0.0.0/255.0.0.0", "10.0.0.0/8"),
            ("192.168.1.7/255.255.255.255", "192.168.1.7/32"),
            ("0.0.0.0/0.0.0.0", "0.0.0.0/0"),
            ("fd00::/ff00::", "fd00::/8"),
            ("192.168.1.7", "192.168.1.7/32"),
        ];
        for (written, network) in cases {
            assert_eq!(read(written).unwrap(), network, "{written}");
        }
        for wrong in ["", "10.0.0.0/", "10.0.0.0/255.0.255.0", "10.0.0.0/ff00::", "10.0.0.0/33", "ten"] {
            assert!(read(wrong).unwrap_err().to_string().contains("is not a network"), "{wrong}");
        }
        for (wrong, whole, one) in [
            ("10.0.0.1/8", "10.0.0.0/8", "10.0.0.1/32"),
            ("10.1.0.0/255.0.0.0", "10.0.0.0/8", "10.1.0.0/32"),
            ("fd00::1/8", "fd00::/8", "fd00::1/128"),
        ] {
            let told = read(wrong).unwrap_err().to_string();
            let expected = format!("write {whole} for the network, or {one} for the address alone");
            assert!(told.contains(&expected), "{told}");
        }
    }
}

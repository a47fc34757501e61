use std::fmt;
use std::str::FromStr;

use http::Uri;

/// A node's RPC server: `http://host:port`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoint {
    host: String,
    port: u16,
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("'{0}' is not the address of a node: write http://host:port")]
pub struct BadEndpoint(String);

impl Endpoint {
    /// The host, without the brackets of an IPv6 address, and the port.
    pub fn authority(&self) -> (&str, u16) {
        (self.host.trim_start_matches('[').trim_end_matches(']'), self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }
}

impl FromStr for Endpoint {
    type Err = BadEndpoint;

    fn from_str(text: &str) -> Result<Self, BadEndpoint> {
        let bad = || BadEndpoint(text.to_owned());
        let uri: Uri = text.parse().map_err(|_| bad())?;
        let authority = uri.authority().ok_or_else(bad)?;
        // Credentials in an address would appear in logs and process lists.
        let plain = uri.scheme_str() == Some("http") && !authority.as_str().contains('@');
        let port = authority.port_u16().filter(|port| *port > 0).ok_or_else(bad)?;
        let whole = matches!(uri.path(), "" | "/") && uri.query().is_none();
        if !plain || !whole || authority.host().is_empty() {
            return Err(bad());
        }
        Ok(Self { host: authority.host().to_owned(), port })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoint_is_scheme_host_and_port() {
        for good in ["http://127.0.0.1:8332", "http://[::1]:18443", "http://node.example:8332/"] {
            let endpoint: Endpoint = good.parse().unwrap();
            assert_eq!(endpoint.to_string(), good.trim_end_matches('/'));
        }
        assert_eq!("http://[::1]:18443".parse::<Endpoint>().unwrap().authority(), ("::1", 18443));
        let bad =
            ["", "127.0.0.1:8332", "https://a:8332", "http://a", "http://a:0", "http://u:p@a:1", "http://a:1/wallet/w"];
        for text in bad {
            assert!(text.parse::<Endpoint>().is_err(), "{text}");
        }
    }
}

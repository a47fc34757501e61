use std::path::PathBuf;
use std::str::FromStr;

/// The address of a publisher: `tcp://host:port` or `ipc://path`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ZmqEndpoint {
    /// A host's name or address without brackets, and a port.
    Tcp(String, u16),
    Ipc(PathBuf),
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("'{0}' is not a ZMQ endpoint: write tcp://host:port or ipc://path")]
pub struct BadZmqEndpoint(String);

impl FromStr for ZmqEndpoint {
    type Err = BadZmqEndpoint;

    fn from_str(text: &str) -> Result<Self, BadZmqEndpoint> {
        if let Some(path) = text.strip_prefix("ipc://").filter(|path| !path.is_empty()) {
            return Ok(Self::Ipc(path.into()));
        }
        let authority = text.strip_prefix("tcp://").and_then(|rest| rest.rsplit_once(':'));
        let (host, port) = authority.ok_or_else(|| BadZmqEndpoint(text.to_owned()))?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        match port.parse() {
            Ok(port) if port > 0 && !host.is_empty() => Ok(Self::Tcp(host.to_owned(), port)),
            _ => Err(BadZmqEndpoint(text.to_owned())),
        }
    }
}

impl ZmqEndpoint {
    /// Whether a host means all local addresses.
    pub fn is_any(host: &str) -> bool {
        matches!(host, "*" | "0.0.0.0" | "::")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_read() {
        assert_eq!("tcp://[::1]:28332".parse(), Ok(ZmqEndpoint::Tcp("::1".to_owned(), 28332)));
        assert_eq!("ipc:///run/b.sock".parse(), Ok(ZmqEndpoint::Ipc("/run/b.sock".into())));
        for bad in ["", "tcp://a", "tcp://:1", "tcp://a:0", "http://a:1", "ipc://"] {
            assert!(bad.parse::<ZmqEndpoint>().is_err(), "{bad}");
        }
    }
}

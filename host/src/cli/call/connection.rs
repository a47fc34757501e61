//! One call over HTTP, on a connection of its own.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::arguments::ArgumentError;
use crate::config::expand_home;
use crate::router::percent_encode;

/// Why a call came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("cannot reach the host at {address}: {source}; is it running?")]
    Connect { address: String, source: std::io::Error },
    #[error("cannot read the cookie {}: {source}; is the host running?", .path.display())]
    Cookie { path: PathBuf, source: std::io::Error },
    #[error("the host answered {0}")]
    Status(String),
    #[error("the host's answer is not JSON-RPC")]
    Answer,
    #[error("{0}")]
    Arguments(#[from] ArgumentError),
}

/// Where calls go, and as whom.
pub struct Connection {
    address: String,
    uri: String,
    credentials: Zeroizing<String>,
}

impl Connection {
    /// Calls as whoever may read the host's cookie.
    ///
    /// # Errors
    /// When the cookie cannot be read.
    pub fn with_cookie(datadir: &Path, url: &str, wallet: Option<&str>) -> Result<Self, CallError> {
        let path = expand_home(datadir).join("regtest").join(".cookie");
        let cookie = std::fs::read_to_string(&path).map_err(|source| CallError::Cookie { path, source })?;
        Ok(Self::new(&Zeroizing::new(cookie), url, wallet))
    }

    /// Calls as a user of the configuration.
    pub fn with_password(user: &str, password: &str, url: &str, wallet: Option<&str>) -> Self {
        Self::new(&Zeroizing::new(format!("{user}:{password}")), url, wallet)
    }

    fn new(credentials: &str, url: &str, wallet: Option<&str>) -> Self {
        let uri = wallet.map_or_else(|| "/".to_owned(), |wallet| format!("/wallet/{}", percent_encode(wallet)));
        let address = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        Self { address, uri, credentials: Zeroizing::new(STANDARD.encode(credentials.trim())) }
    }

    /// Makes a call, and gives the reply whole, be it a result or an error.
    ///
    /// # Errors
    /// When there is no reply, or none of JSON-RPC.
    pub fn call(&self, method: &str, params: &Value) -> Result<Value, CallError> {
        let body = json!({"jsonrpc": "1.0", "id": "call", "method": method, "params": params});
        let body = Zeroizing::new(body.to_string());
        let Self { address, uri, credentials } = self;
        let head = format!(
            "POST {uri} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Basic {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            **credentials,
            body.len()
        );
        let connected = TcpStream::connect(address);
        let mut stream = connected.map_err(|source| CallError::Connect { address: address.clone(), source })?;
        stream.write_all(Zeroizing::new(head).as_bytes())?;
        stream.write_all(body.as_bytes())?;
        let mut reply = String::new();
        stream.read_to_string(&mut reply)?;
        let (head, body) = reply.split_once("\r\n\r\n").ok_or(CallError::Answer)?;
        if body.trim().is_empty() {
            let status = head.lines().next().unwrap_or_default().trim_start_matches("HTTP/1.1 ");
            return Err(CallError::Status(status.to_owned()));
        }
        serde_json::from_str(body).map_err(|_| CallError::Status(body.trim().to_owned()))
    }
}

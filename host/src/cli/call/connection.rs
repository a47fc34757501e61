//! One call over HTTP, on a connection of its own.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::arguments::ArgumentError;
use crate::config::NoHome;

/// Why a call came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("cannot reach the host at {address}: {source}; is it running?")]
    Connect { address: String, source: std::io::Error },
    /// Hosts have run on several networks.
    #[error("hosts have run here on several networks ({0}): name one by --network")]
    Networks(String),
    /// The cookie cannot be read.
    #[error("cannot read the cookie {}: {source}; is the host running?", .path.display())]
    Cookie { path: PathBuf, source: std::io::Error },
    #[error("the host answered {0}")]
    Status(String),
    #[error("waited {seconds} seconds: {last}")]
    Waited { seconds: u64, last: String },
    #[error("the host's answer is not JSON-RPC")]
    Answer,
    #[error("{0}")]
    Arguments(#[from] ArgumentError),
    #[error("{0}")]
    NoHome(#[from] NoHome),
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
    pub fn with_cookie(folder: &Path, url: &str, wallet: Option<&str>) -> Result<Self, CallError> {
        let file = folder.join(".cookie");
        let cookie = std::fs::read_to_string(&file).map_err(|source| CallError::Cookie { path: file, source })?;
        let credentials = Zeroizing::new(STANDARD.encode(Zeroizing::new(cookie).trim()));
        Ok(Self { address: address(url), uri: path(wallet), credentials })
    }

    /// Calls with what stands in the header `Authorization`.
    pub fn with_authorization(header: &str, url: &str) -> Self {
        let encoded = header.strip_prefix("Basic ").unwrap_or(header);
        Self { address: address(url), uri: path(None), credentials: Zeroizing::new(encoded.to_owned()) }
    }

    /// The same for another wallet.
    pub fn of_wallet(&self, wallet: &str) -> Self {
        Self { address: self.address.clone(), uri: path(Some(wallet)), credentials: self.credentials.clone() }
    }

    /// Makes a call whose `params` are JSON, and gives the reply whole, be it a result or an error.
    ///
    /// # Errors
    /// When there is no reply, or none of JSON-RPC.
    pub fn call(&self, method: &str, params: &str) -> Result<Value, CallError> {
        let method = json!(method);
        let body = Zeroizing::new(format!(r#"{{"jsonrpc":"1.0","id":"call","method":{method},"params":{params}}}"#));
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

/// The address in a URL.
fn address(url: &str) -> String {
    url.trim_start_matches("http://").trim_end_matches('/').to_owned()
}

/// What stands for itself in a wallet's name in a path: what RFC 3986 reserves for nothing.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The path of calls, for a wallet or for none in particular.
fn path(wallet: Option<&str>) -> String {
    wallet.map_or_else(|| "/".to_owned(), |wallet| format!("/wallet/{}", utf8_percent_encode(wallet, UNRESERVED)))
}

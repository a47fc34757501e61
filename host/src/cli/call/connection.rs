//! One call over HTTP, on a connection of its own.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use zeroize::Zeroizing;

pub use super::error::CallError;
use super::stream::{self, Stream};
use crate::run::COOKIE_FILE;

/// The address and the credentials of calls.
#[derive(Clone)]
pub struct Connection {
    url: String,
    ca: Option<PathBuf>,
    uri: String,
    credentials: Zeroizing<String>,
    patience: Option<Duration>,
}

impl Connection {
    pub fn with_cookie(folder: &Path, url: &str, wallet: Option<&str>) -> Result<Self, CallError> {
        let file = folder.join(COOKIE_FILE);
        let cookie = std::fs::read_to_string(&file).map_err(|source| CallError::Cookie { path: file, source })?;
        let credentials = Zeroizing::new(STANDARD.encode(Zeroizing::new(cookie).trim()));
        Ok(Self::new(url, wallet, credentials))
    }

    /// Calls with this value of the header `Authorization`.
    pub fn with_authorization(header: &str, url: &str) -> Self {
        let encoded = header.strip_prefix("Basic ").unwrap_or(header);
        Self::new(url, None, Zeroizing::new(encoded.to_owned()))
    }

    fn new(url: &str, wallet: Option<&str>, credentials: Zeroizing<String>) -> Self {
        Self { url: url.trim_end_matches('/').to_owned(), ca: None, uri: path(wallet), credentials, patience: None }
    }

    /// Trusts the authorities in a PEM file instead of the system's.
    pub fn trusting(mut self, ca: Option<&Path>) -> Self {
        self.ca = ca.map(Path::to_owned);
        self
    }

    /// Makes calls fail if the host sends nothing for this long. The default is no limit.
    pub fn within(mut self, patience: Duration) -> Self {
        self.patience = Some(patience);
        self
    }

    pub fn of_wallet(&self, wallet: &str) -> Self {
        Self { uri: path(Some(wallet)), ..self.clone() }
    }

    /// Makes a call with `params` in JSON. Returns the whole reply, whether a result or an error.
    pub fn call(&self, method: &str, params: &str) -> Result<Value, CallError> {
        let method = json!(method);
        let body = Zeroizing::new(format!(r#"{{"jsonrpc":"1.0","id":"call","method":{method},"params":{params}}}"#));
        let Self { url, ca, uri, credentials, patience } = self;
        let (host, mut stream): (&str, Box<dyn Stream>) = if let Some(address) = url.strip_prefix("https://") {
            (address, Box::new(stream::tls(address, ca.as_deref(), *patience)?))
        } else if let Some(path) = url.strip_prefix("unix:") {
            // The path of a socket is not a host name.
            ("localhost", Box::new(stream::unix(path, *patience)?))
        } else {
            let address = url.trim_start_matches("http://");
            (address, Box::new(stream::tcp(address, *patience)?))
        };
        let head = format!(
            "POST {uri} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Basic {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            **credentials,
            body.len()
        );
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

fn path(wallet: Option<&str>) -> String {
    wallet.map_or_else(|| "/".to_owned(), |wallet| format!("/wallet/{}", utf8_percent_encode(wallet, NON_ALPHANUMERIC)))
}

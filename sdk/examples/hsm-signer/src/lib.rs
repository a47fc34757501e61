//! A key provider: another process, in place of a hardware security module, holds the keys of wallets. All methods that sign with
//! the keys of such a wallet use it.
//!
//! ```toml
//! [wallet]
//! signer = "hsm-signer"
//!
//! [[plugins]]
//! file = "hsm_signer"
//! reach = ["connect:unix:/run/hsm.sock"]
//!
//! [plugins.options]
//! socket = "/run/hsm.sock"
//! ```
//!
//! `bitcoin-cli -named createwallet wallet_name=vault disable_private_keys=true external_signer=true` makes a wallet for it,
//! and importdescriptors gives the wallet the public descriptors.
//!
//! Plugin and daemon exchange lines of JSON. A request has the name of a function of `keys-provider/1`, and its encoded argument in
//! hexadecimal. The answer has the encoded result, or an error.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use outrigger_sdk::bitcoin::hex::{DisplayHex, FromHex};
use outrigger_sdk::options::PluginOptions;
use outrigger_sdk::service::Scope;
use outrigger_sdk::service::log::Level;
use outrigger_sdk::service::provider::{KeysProvider, KeysQuery, MessageQuery, ProviderBatch};
use outrigger_sdk::wire::{Blob, Wire, from_bytes, to_bytes};
use outrigger_sdk::{Host, Plugin, RpcError, plugin};
use serde_json::{Value, json};

/// The longest time to wait for the daemon's answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The longest line, in bytes. The requests for the largest transaction are shorter.
const MAX_LINE: u64 = 256 << 20;

#[derive(PluginOptions)]
pub struct Options {
    /// The Unix socket that the daemon listens on.
    #[option(default = "/run/hsm.sock")]
    socket: String,
}

pub struct HsmSigner {
    host: Host,
    socket: PathBuf,
}

#[plugin(
    id = "hsm-signer",
    summary = "Signs with keys that another process has",
    optional = ["log/1"],
    provides = ["keys-provider/1"],
    reach = ["connect:unix:{socket}" = "The daemon that has the keys."],
    methods = [],
    restartable
)]
impl Plugin for HsmSigner {
    type Options = Options;

    fn new(host: Host, options: Options) -> Result<Self, String> {
        Ok(Self { host, socket: options.socket.into() })
    }
}

impl HsmSigner {
    /// Sends a request to the daemon. Each request opens a new connection, so the daemon may restart in between.
    fn ask<T: Wire>(&self, function: &str, argument: &impl Wire) -> Result<T, RpcError> {
        let request = json!([function, to_bytes(argument).to_lower_hex_string()]);
        let answer = self.exchange(&request).map_err(|error| {
            self.host.log(Level::Warn, format!("the daemon at {}: {error}", self.socket.display()));
            RpcError::wallet("The signing daemon cannot be reached")
        })?;
        match answer.get("error").and_then(Value::as_str) {
            Some(error) => Err(RpcError::wallet(error)),
            None => Ok(from_bytes(&message(&answer["result"])?)?),
        }
    }

    fn exchange(&self, request: &Value) -> io::Result<Value> {
        let mut stream = UnixStream::connect(&self.socket)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        writeln!(stream, "{request}")?;
        read_line(&stream)
    }
}

/// Decodes a message in hexadecimal.
///
/// # Errors
/// The value is not a text in hexadecimal.
pub fn message(json: &Value) -> Result<Vec<u8>, RpcError> {
    Vec::from_hex(json.as_str().unwrap_or_default()).map_err(|error| RpcError::internal(error.to_string()))
}

/// Reads a line of JSON.
///
/// # Errors
/// The stream failed, or the line is not JSON.
pub fn read_line(from: impl Read) -> io::Result<Value> {
    let mut line = String::new();
    BufReader::new(from.take(MAX_LINE)).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

impl KeysProvider for HsmSigner {
    fn available(&self, _: Scope, query: &KeysQuery) -> Result<Vec<bool>, RpcError> {
        self.ask("available", query)
    }

    fn sign(&self, _: Scope, batch: &ProviderBatch) -> Result<Vec<Option<Blob>>, RpcError> {
        self.ask("sign", batch)
    }

    fn message(&self, _: Scope, query: &MessageQuery) -> Result<Option<Blob>, RpcError> {
        self.ask("message", query)
    }
}

outrigger_sdk::export_plugin!(HsmSigner);

//! One side of a wallet's copy: the node or the host.

use serde::de::DeserializeOwned;
use serde_json::Value;
use zeroize::Zeroizing;

use super::error::MoveError;
use crate::cli::call::connection::Connection;

/// A node or a host, with a connection for the calls of one wallet.
pub struct Side {
    pub name: &'static str,
    pub connection: Connection,
}

impl Side {
    /// `name` stands in messages: `the node` or `the host`.
    pub fn new(name: &'static str, connection: Connection) -> Self {
        Self { name, connection }
    }

    /// Makes a call.
    pub fn ask<T: DeserializeOwned>(&self, method: &str, params: &Value) -> Result<T, MoveError> {
        let params = Zeroizing::new(params.to_string());
        let reply = self.connection.call(method, &params);
        let mut reply = reply.map_err(|error| MoveError::NoReply { side: self.name, error })?;
        if !reply["error"].is_null() {
            let code = reply["error"]["code"].as_i64().unwrap_or_default();
            let message = reply["error"]["message"].as_str().unwrap_or_default().to_owned();
            return Err(MoveError::Refused { side: self.name, method: method.to_owned(), code, message });
        }
        serde_json::from_value(reply["result"].take()).map_err(|error| MoveError::Strange {
            side: self.name,
            method: method.to_owned(),
            error,
        })
    }
}

//! A minimal WebSocket client. It masks its frames with zeros, which leaves the payload unchanged.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

pub struct WebSocket<S = TcpStream>(BufReader<S>);

impl<S: Read + Write> WebSocket<S> {
    /// Upgrades a connection with these credentials.
    pub fn open(mut stream: S, path: &str, authorization: &str) -> Self {
        let handshake = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {authorization}\r\nConnection: Upgrade\r\n\
             Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        stream.write_all(handshake.as_bytes()).unwrap();
        let mut stream = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(stream.read_line(&mut head).unwrap(), 0, "{head}");
        }
        assert!(head.starts_with("HTTP/1.1 101"), "{head}");
        Self(stream)
    }

    /// The underlying connection.
    pub fn into_stream(self) -> S {
        self.0.into_inner()
    }

    /// Makes a call. Returns its result or the code of its error.
    pub fn call(&mut self, method: &str, params: Value) -> Result<Value, i64> {
        self.send(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}));
        let answer = self.receive();
        match &answer["error"] {
            Value::Null => Ok(answer["result"].clone()),
            error => Err(error["code"].as_i64().unwrap()),
        }
    }

    /// Sends a message.
    pub fn send(&mut self, message: &Value) {
        let text = message.to_string();
        let mut frame = vec![0x81, 0x80 | 126];
        frame.extend_from_slice(&u16::try_from(text.len()).unwrap().to_be_bytes());
        frame.extend_from_slice(&[0; 4]);
        frame.extend_from_slice(text.as_bytes());
        self.0.get_mut().write_all(&frame).unwrap();
    }

    /// The next message.
    pub fn receive(&mut self) -> Value {
        loop {
            let [kind, length] = self.bytes();
            let length = match length {
                126 => u64::from(u16::from_be_bytes(self.bytes())),
                127 => u64::from_be_bytes(self.bytes()),
                length => u64::from(length),
            };
            let mut body = vec![0; usize::try_from(length).unwrap()];
            self.0.read_exact(&mut body).unwrap();
            // Frames of other kinds are pings.
            if kind & 0xf == 1 {
                return serde_json::from_slice(&body).unwrap();
            }
        }
    }

    fn bytes<const COUNT: usize>(&mut self) -> [u8; COUNT] {
        let mut bytes = [0; COUNT];
        self.0.read_exact(&mut bytes).unwrap();
        bytes
    }
}

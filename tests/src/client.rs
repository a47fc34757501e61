//! A minimal JSON-RPC client over one keep-alive connection.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::NOBODY;
use crate::websocket::WebSocket;

#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// The error of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RpcFailure {
    pub code: i64,
    pub message: String,
    pub status: u16,
}

pub struct Client {
    address: SocketAddr,
    authorization: String,
    path: String,
    stream: Option<BufReader<TcpStream>>,
}

impl Client {
    /// A client with the credentials of a cookie (`user:password`).
    pub fn new(address: SocketAddr, cookie: &str) -> Self {
        let authorization = format!("Basic {}", STANDARD.encode(cookie));
        Self { address, authorization, path: "/".to_owned(), stream: None }
    }

    /// The same client for a wallet. `name` is part of the URL's path, without escapes.
    pub fn wallet(&self, name: &str) -> Self {
        let (address, authorization) = (self.address, self.authorization.clone());
        Self { address, authorization, path: format!("/wallet/{name}"), stream: None }
    }

    /// A client with the same credentials for another address.
    pub fn at(&self, address: SocketAddr) -> Self {
        let (authorization, path) = (self.authorization.clone(), self.path.clone());
        Self { address, authorization, path, stream: None }
    }

    /// Makes a call by position, and panics on an error.
    #[track_caller]
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        match self.try_call(method, params) {
            Ok(result) => result,
            Err(error) => panic!("{method}: {error:?}"),
        }
    }

    /// Makes a call that must fail, and gives code and message.
    #[track_caller]
    pub fn refused(&mut self, method: &str, params: Value) -> (i64, String) {
        match self.try_call(method, params) {
            Ok(result) => panic!("{method} was not refused but answered {result}"),
            Err(error) => (error.code, error.message),
        }
    }

    pub fn try_call(&mut self, method: &str, params: Value) -> Result<Value, RpcFailure> {
        let request = json!({"jsonrpc": "1.0", "id": "test", "method": method, "params": params});
        let reply = self.post(&request.to_string());
        read_reply(method, &reply)
    }

    /// Creates a wallet with these arguments of createwallet besides its name. Returns a client of it.
    #[track_caller]
    pub fn create_wallet(&mut self, name: &str, mut arguments: Value) -> Self {
        arguments["wallet_name"] = json!(name);
        self.call("createwallet", arguments);
        self.wallet(name)
    }

    /// A descriptor with its checksum.
    #[track_caller]
    pub fn with_checksum(&mut self, descriptor: &str) -> String {
        let info = self.call("getdescriptorinfo", json!([descriptor]));
        format!("{descriptor}#{}", info["checksum"].as_str().unwrap())
    }

    /// Imports descriptors, and panics if one is refused.
    #[track_caller]
    pub fn import(&mut self, requests: &Value) {
        let outcome = self.call("importdescriptors", json!([requests]));
        assert!(outcome.as_array().unwrap().iter().all(|one| one["success"] == true), "{outcome}");
    }

    /// Mines blocks to a new address of the wallet. Gives the address.
    #[track_caller]
    pub fn mine(&mut self, blocks: u32) -> Value {
        let address = self.call("getnewaddress", json!([]));
        self.call("generatetoaddress", json!([blocks, address]));
        address
    }

    /// [`Self::mine`], and further blocks until these coins can be spent.
    #[track_caller]
    pub fn fund(&mut self, coins: u32) -> Value {
        let address = self.mine(coins);
        self.call("generatetoaddress", json!([100, NOBODY]));
        address
    }

    /// The entry of a plugin in `listplugins`.
    #[track_caller]
    pub fn plugin(&mut self, id: &str) -> Value {
        let plugins = self.call("listplugins", json!([]));
        plugins.as_array().unwrap().iter().find(|plugin| plugin["id"] == id).unwrap().clone()
    }

    /// Kills the process of an isolated plugin.
    #[track_caller]
    pub fn kill_plugin(&mut self, id: &str) {
        use rustix::process::{Pid, Signal, kill_process};
        let pid = self.plugin(id)["pid"].as_i64().unwrap();
        kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), Signal::KILL).unwrap();
    }

    /// Calls a host that may be killed at any time; none if it ended before it answered.
    pub fn call_while_alive(&mut self, method: &str, params: Value) -> Option<Result<Value, RpcFailure>> {
        let request = self.request(&json!({"id": 0, "method": method, "params": params}).to_string());
        if self.stream.is_none() {
            let stream = TcpStream::connect(self.address).ok()?;
            stream.set_nodelay(true).ok()?;
            self.stream = Some(BufReader::new(stream));
        }
        let reply = exchange(self.stream.as_mut()?, &request).ok()?;
        Some(read_reply(method, &reply))
    }

    pub fn post(&mut self, body: &str) -> Reply {
        let request = self.request(body);
        self.send(&request)
    }

    /// Posts a body on a new connection. Dropping the connection resets it, as if the client's process had ended.
    pub fn post_and_stay(&self, body: &str) -> TcpStream {
        let request = self.request(body);
        let mut stream = self.connect();
        rustix::net::sockopt::set_socket_linger(&stream, Some(std::time::Duration::ZERO)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    /// Posts a body on a new connection, to read the reply later.
    pub fn begin(&self, body: &str) -> Pending {
        let mut stream = self.connect();
        stream.write_all(self.request(body).as_bytes()).unwrap();
        Pending(BufReader::new(stream))
    }

    /// Begins a call on a new connection.
    pub fn begin_call(&self, method: &str, params: Value) -> Pending {
        self.begin(&json!({"id": 1, "method": method, "params": params}).to_string())
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    /// A WebSocket with the client's credentials and path.
    pub fn websocket(&self) -> WebSocket {
        WebSocket::open(self.connect(), &self.path, &self.authorization)
    }

    /// The request that posts a body with the client's credentials.
    pub fn request(&self, body: &str) -> String {
        let Self { path, authorization, .. } = self;
        let length = body.len();
        format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {authorization}\r\nContent-Length: {length}\r\n\r\n{body}"
        )
    }

    /// Sends a raw request and reads one reply. Reconnects if the host has closed the connection.
    pub fn send(&mut self, request: &str) -> Reply {
        if let Some(stream) = &mut self.stream
            && let Ok(reply) = exchange(stream, request)
        {
            return reply;
        }
        let stream = BufReader::new(self.connect());
        let stream = self.stream.insert(stream);
        exchange(stream, request).unwrap()
    }
}

pub struct Pending(BufReader<TcpStream>);

impl Pending {
    pub fn finish(mut self) -> Reply {
        next_reply(&mut self.0).unwrap()
    }

    /// The body of the reply, which is JSON.
    pub fn answer(self) -> Value {
        serde_json::from_str(&self.finish().body).unwrap()
    }

    /// The code and message of a call that must fail.
    #[track_caller]
    pub fn refused(self) -> (i64, String) {
        let answer = self.answer();
        assert!(answer["error"].is_object(), "{answer}");
        (answer["error"]["code"].as_i64().unwrap(), answer["error"]["message"].as_str().unwrap().to_owned())
    }
}

fn read_reply(method: &str, reply: &Reply) -> Result<Value, RpcFailure> {
    let body: Value = serde_json::from_str(&reply.body)
        .unwrap_or_else(|error| panic!("{method}: {error} in {} {:?}", reply.status, reply.body));
    match body["error"].as_object() {
        None => Ok(body["result"].clone()),
        Some(error) => Err(RpcFailure {
            code: error["code"].as_i64().unwrap(),
            message: error["message"].as_str().unwrap().to_owned(),
            status: reply.status,
        }),
    }
}

/// Sends a raw request and reads one reply.
pub fn exchange(stream: &mut BufReader<impl Read + Write>, request: &str) -> std::io::Result<Reply> {
    stream.get_mut().write_all(request.as_bytes())?;
    next_reply(stream)
}

/// Reads one reply from a connection.
pub fn next_reply(stream: &mut impl BufRead) -> std::io::Result<Reply> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| std::io::Error::other(format!("no status line: {line:?}")))?;
    let mut headers = Vec::new();
    loop {
        line.clear();
        stream.read_line(&mut line)?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.to_owned())),
            None => break,
        }
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(Reply { status, headers, body: String::from_utf8(body).map_err(std::io::Error::other)? })
}

//! A real bitcoind on a fresh regtest chain.

use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use outrigger_tests::Client;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A running bitcoind. Dropping it stops it.
pub struct Bitcoind {
    child: Child,
    folder: TempDir,
    address: SocketAddr,
}

impl Bitcoind {
    /// Starts it and gives how long it took to answer.
    pub fn start(path: &str) -> (Self, Duration) {
        Self::start_with(path, &[])
    }

    /// The same with more arguments.
    pub fn start_with(path: &str, arguments: &[&str]) -> (Self, Duration) {
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let began = Instant::now();
        let child = Command::new(path)
            .args(["-regtest", "-listen=0", "-connect=0", "-server", "-printtoconsole=0"])
            .args(arguments)
            .arg(format!("-rpcport={port}"))
            .arg(format!("-datadir={}", folder.path().display()))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let node = Self { child, folder, address: SocketAddr::from(([127, 0, 0, 1], port)) };
        while node.try_call().is_none() {
            std::thread::sleep(Duration::from_millis(2));
        }
        (node, began.elapsed())
    }

    fn try_call(&self) -> Option<()> {
        std::fs::read(self.folder.path().join("regtest/.cookie")).ok()?;
        std::net::TcpStream::connect(self.address).ok()?;
        self.client().try_call("getblockcount", json!([])).ok().map(|_| ())
    }

    /// A client of it.
    pub fn client(&self) -> Client {
        Client::new(self.address, &std::fs::read_to_string(self.folder.path().join("regtest/.cookie")).unwrap())
    }

    /// The process; a wrapper script that execs keeps its number.
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Bitcoind {
    fn drop(&mut self) {
        let _ = self.client().try_call("stop", json!([]));
        let _ = self.child.wait();
    }
}

/// A client of a wallet `w` in bitcoind that gives the same addresses as one of ours.
pub fn twin(mut client: Client, ours: &mut Client) -> Client {
    client.call("createwallet", json!(["w", false, true]));
    let mut wallet = client.wallet("w");
    let listed = ours.call("listdescriptors", json!([true]));
    let import = |one: &Value| {
        json!({"desc": one["desc"], "timestamp": "now", "active": one["active"], "internal": one["internal"],
               "range": one["range"], "next_index": 0})
    };
    let imports: Value = listed["descriptors"].as_array().unwrap().iter().map(import).collect();
    let outcome = wallet.call("importdescriptors", json!([imports]));
    assert!(outcome.as_array().unwrap().iter().all(|one| one["success"] == true), "{outcome}");
    wallet
}

//! A real bitcoind without peers.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{Client, copy_folder, free_port, skip};

/// How long a node may take to answer.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How many lines of a node's log a test shows if the node does not answer.
const LOG_LINES: usize = 20;

/// Bitcoin Knots refuses some transactions that Bitcoin Core accepts, among them any with lock time 21, which a wallet sometimes
/// chooses. The setting is in the configuration file because Bitcoin Core ignores unknown settings there.
const SETTINGS: &str = "rejectparasites=0\n";

pub struct Bitcoind {
    child: Child,
    folder: TempDir,
    program: OsString,
    arguments: Vec<String>,
    /// Its chain: main, test, testnet4, signet or regtest.
    pub chain: &'static str,
    /// Where it listens.
    pub address: SocketAddr,
}

/// The bitcoind that `tests/clients/install` installs, or the one that OUTRIGGER_BITCOIND names. `None`, with a note, if there is
/// none; a panic if that variable is `required`.
pub fn installed() -> Option<PathBuf> {
    let given = std::env::var_os("OUTRIGGER_BITCOIND").filter(|path| path != "required" && !path.is_empty());
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let own = || cache.map(|cache| cache.join("outrigger-clients/bitcoin-cli/bitcoind"));
    let found = given.map(PathBuf::from).or_else(own).filter(|path| path.is_file());
    if found.is_none() {
        let required = std::env::var_os("OUTRIGGER_BITCOIND").is_some();
        assert!(!required, "no bitcoind: tests/clients/install brings one");
        skip("no bitcoind here (tests/clients/install brings one, or name it by OUTRIGGER_BITCOIND)");
    }
    found
}

/// Whether a program is a Bitcoin Knots, which has settings and rules beyond those of Bitcoin Core.
pub fn is_knots(program: &Path) -> bool {
    version(program).contains("Knots")
}

/// The major release of a program, as in [`release`].
pub fn release_of(program: &Path) -> u64 {
    let version = version(program);
    let (_, numbers) = version.split_once(" version v").unwrap();
    let mut numbers = numbers.split(['.', '-', '\n']).map(|number| number.parse::<u64>().unwrap());
    let [major, minor] = [(); 2].map(|()| numbers.next().unwrap());
    (major * 10_000 + minor * 100 + 100) / 10_000
}

fn version(program: &Path) -> String {
    let said = Command::new(program).arg("-version").output().unwrap().stdout;
    String::from_utf8(said).unwrap()
}

impl Bitcoind {
    /// Starts a node. Returns it and the time until it answered.
    pub fn start(path: &str) -> (Self, Duration) {
        Self::start_with(path, &[])
    }

    /// [`Self::start`] with more arguments.
    pub fn start_with(path: impl AsRef<Path>, arguments: &[&str]) -> (Self, Duration) {
        Self::start_on(path, "regtest", arguments)
    }

    /// [`Self::start_with`] on another chain.
    pub fn start_on(path: impl AsRef<Path>, chain: &'static str, arguments: &[&str]) -> (Self, Duration) {
        let port = free_port();
        let folder = tempfile::tempdir().unwrap();
        // The node does not start with two configuration files.
        if !arguments.iter().any(|argument| argument.starts_with("-conf=")) {
            std::fs::write(folder.path().join("bitcoin.conf"), SETTINGS).unwrap();
        }
        let program = path.as_ref().as_os_str().to_owned();
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let began = Instant::now();
        let child = spawn(&program, chain, &arguments, folder.path(), port);
        let mut node = Self { child, folder, program, arguments, chain, address };
        node.wait_until_it_answers();
        (node, began.elapsed())
    }

    /// Starts it again on the same data, once it has ended.
    pub fn start_again(&mut self) {
        self.child = spawn(&self.program, self.chain, &self.arguments, self.folder.path(), self.address.port());
        self.wait_until_it_answers();
    }

    /// Stops it, lets `change` work on its data, and starts it again.
    pub fn restart(&mut self, change: impl FnOnce(&Self)) {
        self.stop();
        change(self);
        self.start_again();
    }

    /// [`Self::restart`] by SIGKILL.
    pub fn kill_and_restart(&mut self, change: impl FnOnce(&Self)) {
        self.kill();
        change(self);
        self.start_again();
    }

    /// Starts a node of another chain at the same address and with the same cookie file, once this one has ended.
    pub fn start_again_on(&mut self, chain: &'static str) {
        self.chain = chain;
        self.start_again();
    }

    /// Removes its chain and wallets of regtest, once it has ended.
    pub fn lose_data(&self) {
        std::fs::remove_dir_all(self.folder.path().join("regtest")).unwrap();
    }

    /// Removes its indexes, once it has ended. After a kill in a reorganisation the node may be unable to read the filter index,
    /// and then does not start.
    pub fn lose_indexes(&self) {
        let _ = std::fs::remove_dir_all(self.folder.path().join("regtest/indexes"));
    }

    pub fn save_data(&self, to: &Path) {
        copy_folder(&self.folder.path().join("regtest"), to);
    }

    pub fn restore_data(&self, from: &Path) {
        self.lose_data();
        copy_folder(from, &self.folder.path().join("regtest"));
    }

    fn wait_until_it_answers(&mut self) {
        let began = Instant::now();
        while self.try_call().is_none() {
            let is_starting = self.child.try_wait().unwrap().is_none() && began.elapsed() < START_TIMEOUT;
            assert!(is_starting, "bitcoind does not answer; the end of its log: {}", self.end_of_log());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// The last lines of the log of a node of regtest.
    fn end_of_log(&self) -> String {
        let log = std::fs::read_to_string(self.folder.path().join("regtest/debug.log")).unwrap_or_default();
        log.lines().rev().take(LOG_LINES).collect::<Vec<_>>().join("\n")
    }

    fn try_call(&self) -> Option<()> {
        // The file is missing for a moment while the node writes a new cookie.
        let cookie = std::fs::read_to_string(self.cookie()).ok()?;
        std::net::TcpStream::connect(self.address).ok()?;
        // A killed node leaves its old cookie behind: 401 until the node has written a new one.
        let request = json!({"id": 1, "method": "getblockcount", "params": []}).to_string();
        (Client::new(self.address, &cookie).post(&request).status == 200).then_some(())
    }

    pub fn wallet_file(&self, name: &str) -> PathBuf {
        self.folder.path().join("regtest/wallets").join(name).join("wallet.dat")
    }

    pub fn cookie(&self) -> PathBuf {
        self.folder.path().join("cookie")
    }

    pub fn client(&self) -> Client {
        Client::new(self.address, &std::fs::read_to_string(self.cookie()).unwrap())
    }

    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to stop, and waits for its end.
    pub fn stop(&mut self) {
        let _ = self.client().try_call("stop", json!([]));
        let _ = self.child.wait();
    }

    /// Kills it with SIGKILL, and waits for its end.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// The major release of a node, as the host counts it: a build between two releases counts as the later one.
pub fn release(node: &mut Client) -> u64 {
    (node.call("getnetworkinfo", json!([]))["version"].as_u64().unwrap() + 100) / 10_000
}

fn spawn(program: &OsString, chain: &str, arguments: &[String], folder: &Path, port: u16) -> Child {
    Command::new(program)
        .args(["-listen=0", "-connect=0", "-dnsseed=0", "-server", "-printtoconsole=0"])
        .arg(format!("-chain={chain}"))
        .arg(format!("-rpccookiefile={}", folder.join("cookie").display()))
        .args(arguments)
        .arg(format!("-rpcport={port}"))
        .arg(format!("-datadir={}", folder.display()))
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

impl Drop for Bitcoind {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // A node that is still starting ignores `stop`.
            let _ = self.child.kill();
            let _ = self.child.wait();
        } else if let Ok(None) = self.child.try_wait() {
            self.stop();
        }
    }
}

/// A client of a wallet `w` in bitcoind that gives the same addresses as one of ours.
pub fn twin(mut client: Client, ours: &mut Client) -> Client {
    twin_named(&mut client, ours, "w")
}

/// As [`twin`], with another name.
pub fn twin_named(client: &mut Client, ours: &mut Client, name: &str) -> Client {
    client.call("createwallet", json!([name, false, true]));
    let mut wallet = client.wallet(name);
    let listed = ours.call("listdescriptors", json!([true]));
    let import = |one: &Value| {
        json!({"desc": one["desc"], "timestamp": "now", "active": one["active"], "internal": one["internal"],
               "range": one["range"], "next_index": 0})
    };
    let imports: Value = listed["descriptors"].as_array().unwrap().iter().map(import).collect();
    wallet.import(&imports);
    wallet
}

//! Helpers of the end-to-end tests and benchmarks: the built binary, a host that runs it, and a client.
//!
//! Each host has its own data directory and port, and stops when its value is dropped, so that tests can run in parallel
//! and leave nothing behind.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failure of the test that called it")]

pub mod bitcoind;
mod browser;
mod built;
mod c;
mod client;
#[cfg(target_os = "linux")]
mod denied;
mod gate;
mod host;
pub mod miner;
pub mod pair;
mod ports;
pub mod proxy;
mod relay;
mod skipping;
mod tls;
mod wait;
mod websocket;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

pub use bitcoind::Bitcoind;
pub use browser::Browser;
pub use built::{Built, built};
pub use c::{CPlugin, c_plugin, c_sample, cpp_plugin, linked_c_plugin};
pub use client::{Client, Pending, Reply, RpcFailure, exchange, next_reply};
#[cfg(target_os = "linux")]
pub use denied::denied;
pub use gate::{Gate, Waiting};
pub use host::{Host, HostOptions, all_groups, configuration, groups, isolated, plugin_section};
pub use ports::free_port;
pub use relay::{Held, Point, Relay, read_message};
pub use skipping::{skip, skip_unprivileged, skip_without};
pub use tls::{Authority, Issued, accept_tls};
pub use wait::{comes_within, wait_for, wait_until};
pub use websocket::WebSocket;

pub fn data(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("data").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Two addresses that belong to no test's wallet.
pub const NOBODY: &str = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";
pub const ELSEWHERE: &str = "bcrt1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqdku202";

/// An extended private key for test chains, and its public key.
pub const XPRV: &str =
    "tprv8ZgxMBicQKsPd7Uf69XL1XwhmjHopUGep8GuEiJDZmbQz6o58LninorQAfcKZWARbtRtfnLcJ5MQ2AtHcQJCCRUcMRvmDUjyEmNUWwx8UbK";
pub const XPUB: &str =
    "tpubD6NzVbkrYhZ4WaWSyoBvQwbpLkojyoTZPRsgXELWz3Popb3qkjcJyJUGLnL4qHHoQvao8ESaAstxYSnhyswJ76uZPStJRJCTKvosUCJZL5B";

/// The releases of Bitcoin Core with recordings.
pub const RECORDED: [u32; 2] = [29, 32];

/// A file of the recordings of a release.
fn recording(release: u32, name: &str) -> String {
    if release == RECORDED[0] { data(name) } else { data(&format!("{release}/{name}")) }
}

pub fn data_json(name: &str) -> Value {
    recorded(RECORDED[0], name)
}

pub fn recorded(release: u32, name: &str) -> Value {
    serde_json::from_str(&recording(release, name)).unwrap()
}

/// Copies a folder recursively. The copies are writable, whatever the modes of the originals.
pub fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let place = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &place);
        } else if from.ends_with("plugins") {
            // A host's copies of its plugins are large, and nothing writes to them.
            fs::hard_link(entry.path(), &place).unwrap();
        } else {
            fs::write(&place, fs::read(entry.path()).unwrap()).unwrap();
        }
    }
}

/// The files below a folder in order, without those in folders of these names.
pub fn files_below(folder: &Path, left_out: &[&str]) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if !path.is_dir() {
                files.push(path);
            } else if !left_out.iter().any(|name| path.ends_with(name)) {
                folders.push(path);
            }
        }
    }
    files.sort();
    files
}

/// Whether two values have the same JSON text, including the order of keys, which `==` ignores.
pub fn is_same_text(one: &Value, other: &Value) -> bool {
    let (one, other) = (one.to_string(), other.to_string());
    one == other
}

/// The blocks of the recorded chain in hexadecimal; the first one has height 1.
pub fn recorded_chain(release: u32) -> Vec<String> {
    recording(release, "chain.hex").lines().map(str::to_owned).collect()
}

//! Every parser of bytes from clients, files or plugins, as a function that must not panic on any bytes.
//!
//! The fuzz targets in `tests/fuzz` call these functions with a fuzzer's input; the tests here use a fixed corpus and thousands of
//! mutations of it, the same in every run. A function panics if a parser contradicts itself: a parsed value must parse the same after it
//! was written.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a contradiction must stop the fuzzer")]

mod host;
mod messages;
mod signing;
#[cfg(test)]
mod tests;

use std::str::from_utf8;

use bitcoin::consensus::{deserialize, serialize};
use bitcoin::{Network, Transaction, Txid};
use outrigger_kit::descriptor::{Checksum, Descriptor};
use outrigger_kit::psbt::Psbt;
use outrigger_sdk::manifest::Manifest;
use outrigger_sdk::params::{decode_hex, encode_hex};
use outrigger_sdk::standard::release::{LAST, PRESENT, rules};
use outrigger_sdk::standard::{asm, classify, transaction_from_hex};

pub use messages::messages;
pub use signing::signing;

type Target = fn(&[u8]);

pub const TARGETS: [(&str, Target); 18] = [
    ("signing", signing),
    ("descriptor", descriptor),
    ("transaction", transaction),
    ("block", host::block),
    ("messages", messages),
    ("envelope", host::envelope),
    ("manifest", manifest),
    ("amount", amount),
    ("database", host::database),
    ("zmq", host::zmq),
    ("node_reply", host::node_reply),
    ("node_result", host::node_result),
    ("node_wallet", host::node_wallet),
    ("psbt", psbt),
    ("zmq_subscriber", host::zmq_subscriber),
    ("runner_message", host::runner_message),
    ("forwarded", host::forwarded),
    ("proxy_header", host::proxy_header),
];

/// Runs the target with this name.
pub fn run(name: &str, bytes: &[u8]) {
    let (_, run) = TARGETS.iter().find(|(target, _)| *target == name).unwrap_or_else(|| panic!("no target {name}"));
    run(bytes);
}

pub fn descriptor(bytes: &[u8]) {
    let Ok(text) = from_utf8(bytes) else { return };
    let Ok(descriptors) = Descriptor::parse(text, Network::Regtest, Checksum::Optional) else { return };
    for descriptor in descriptors {
        let shown = descriptor.to_public_string();
        let again = Descriptor::parse(&shown, Network::Regtest, Checksum::Required).unwrap_or_else(|error| {
            panic!("{shown:?} is not read again: {error}");
        });
        assert_eq!(again.iter().map(Descriptor::to_public_string).collect::<Vec<_>>(), [shown]);
        for index in [0, 1, u32::MAX] {
            if let Ok(expansion) = descriptor.expand(index) {
                expansion.scripts.iter().for_each(|script| drop(classify(&script.script_pubkey)));
            }
            drop(descriptor.private_branches().private_keys(index));
        }
    }
}

/// Transactions in hexadecimal, given as bytes, and their JSON.
pub fn transaction(bytes: &[u8]) {
    let text = encode_hex(bytes);
    assert_eq!(decode_hex(&text).as_deref(), Some(bytes));
    let Some(tx) = transaction_from_hex(&text) else { return };
    let written = serialize(&tx);
    // A transaction without inputs reads as another one once serialised. Nobody can send it either.
    if !tx.input.is_empty() {
        assert_eq!(deserialize::<Transaction>(&written).unwrap(), tx);
    }
    let scripts = tx.input.iter().map(|input| &input.script_sig);
    for script in scripts.chain(tx.output.iter().map(|output| &output.script_pubkey)) {
        drop(asm(script));
        drop(classify(script));
    }
}

/// Partially signed transactions: a parsed PSBT must parse the same after it was serialised, and serialise to the same bytes.
pub fn psbt(bytes: &[u8]) {
    for rules in [PRESENT, LAST].map(|release| rules(Some(release))) {
        let Ok(read) = Psbt::from_bytes(bytes, &rules) else { continue };
        let written = read.to_bytes();
        let again =
            Psbt::from_bytes(&written, &rules).unwrap_or_else(|error| panic!("{error}: {}", encode_hex(&written)));
        assert_eq!(again.to_bytes(), written);
        assert_eq!(again, read);
        assert_eq!(Psbt::from_base64(&read.to_base64(), &rules).as_ref(), Ok(&read));
        let mut combined = read.clone();
        assert_eq!(combined.combine(&read, &rules), read.lock_time().is_some());
        assert_eq!(combined.to_bytes(), written);
        drop(read.spent());
    }
}

pub fn manifest(bytes: &[u8]) {
    if let Ok(manifest) = Manifest::parse(bytes) {
        drop(manifest.options(&serde_json::Map::new()));
        manifest.methods.iter().for_each(|method| drop(method.full_help()));
    }
}

pub fn amount(bytes: &[u8]) {
    let Ok(value) = serde_json::from_slice(bytes) else { return };
    if let Ok(amount) = outrigger_sdk::amount::from_json(&value) {
        let text = outrigger_sdk::amount::to_text(amount);
        let again = serde_json::from_str(&text).unwrap();
        assert_eq!(outrigger_sdk::amount::from_json(&again), Ok(amount));
    }
    drop(outrigger_sdk::params::descriptor_range(&value));
    drop(outrigger_sdk::params::hash::<Txid>(&value, "txid"));
}

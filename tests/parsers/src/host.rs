//! The host's parsers of untrusted bytes.

use std::fs::File;
use std::io::Write as _;

use bitcoin::BlockHash;
use bitcoin::consensus::serialize;
use bitcoin::hashes::Hash;
use bytes::Bytes;

use outrigger_disk::pages::DataFile;
use outrigger_embedded::decode_block;
use outrigger_rpc::{Limits, Peer};
use outrigger_sdk::service::chain::Tip;
use outrigger_upstream::StatusCode;
use serde::de::IgnoredAny;

pub fn envelope(bytes: &[u8]) {
    outrigger_rpc::count_calls(bytes, &Limits::default());
}

/// The headers in which a proxy names its client: a parsed client must parse again from its text.
pub fn forwarded(bytes: &[u8]) {
    for client in outrigger_rpc::read_forwarding(bytes).into_iter().flatten() {
        let Peer::Ip(address) = client else { panic!("{client:?}") };
        assert_eq!(outrigger_rpc::read_forwarding(address.to_string().as_bytes()), [None, Some(client)]);
    }
}

/// The header of the PROXY protocol: the bytes after it are not read.
pub fn proxy_header(bytes: &[u8]) {
    let Some((_, length)) = outrigger_rpc::read_proxy_header(bytes) else { return };
    let (header, rest) = bytes.split_at(length);
    assert_eq!(outrigger_rpc::read_proxy_header(header), outrigger_rpc::read_proxy_header(bytes), "{rest:?}");
}

/// A block, as `submitblock` takes it: a parsed block must serialise to the same bytes and have the right txids.
pub fn block(bytes: &[u8]) {
    let Ok((block, own)) = decode_block(bytes) else { return };
    assert!(bytes.starts_with(own));
    if block.txdata.iter().any(|tx| tx.input.is_empty()) {
        // The library serialises these in another form.
        return;
    }
    assert_eq!(serialize(&*block), own);
    for (tx, ids) in block.transactions() {
        assert_eq!((ids.txid, ids.wtxid), (tx.compute_txid(), tx.compute_wtxid()));
    }
}

/// An LMDB file, as checked before it is opened: in a valid file, iteration and look-up must agree on each row.
#[allow(clippy::expect_used, reason = "a contradiction must stop the fuzzer")]
pub fn database(bytes: &[u8]) {
    let memory = rustix::fs::memfd_create("database", rustix::fs::MemfdFlags::CLOEXEC).expect("a file in memory");
    let mut file = File::from(memory);
    file.write_all(bytes).expect("room in memory");
    let Ok(data) = DataFile::of(file) else { return };
    let mut rows = Vec::new();
    let seen = data.walk(&mut |table, key, value| {
        rows.push((table.to_owned(), key.to_vec(), value.to_vec()));
        Ok(())
    });
    if seen.is_err() {
        return;
    }
    for (table, key, value) in rows {
        let found = data.get(&table, &key).expect("the way to a row of a whole file");
        assert_eq!(found, Some(value), "{table} {key:?}");
    }
}

/// Messages of a ZMQ publisher: parsed messages must contain only the bytes received.
pub fn zmq(bytes: &[u8]) {
    for notification in outrigger_bitcoind::zmq::read_all(bytes) {
        let number = notification.number.to_le_bytes();
        assert!(bytes.windows(number.len()).any(|part| part == number), "{notification:?}");
    }
}

/// Messages of a ZMQ subscriber: topics and answers must be no longer than the input and contain only its bytes.
#[allow(clippy::expect_used, clippy::indexing_slicing, reason = "a contradiction must stop the fuzzer")]
pub fn zmq_subscriber(bytes: &[u8]) {
    let (topics, answers) = outrigger_zmq::hear_all(bytes);
    for topic in topics {
        assert!(topic.is_empty() || bytes.windows(topic.len()).any(|part| part == topic), "{topic:?}");
    }
    for answer in answers {
        let context = answer.windows(4).position(|part| part == b"PONG").map(|at| &answer[at + 4..]);
        let context = context.expect("an answer to a heartbeat");
        assert!(context.is_empty() || bytes.windows(context.len()).any(|part| part == context), "{answer:?}");
    }
}

/// The headers of consecutive messages from a plugin's process: a parsed header must serialise to the same bytes.
pub fn runner_message(bytes: &[u8]) {
    for head in bytes.as_chunks().0 {
        if let Some(written) = outrigger_isolate::reread_head(head) {
            assert_eq!(written, *head);
        }
    }
}

/// The replies of a node: the result of a call, the answers to a batch, and its help.
pub fn node_reply(bytes: &[u8]) {
    let reply = Bytes::copy_from_slice(bytes);
    for status in [StatusCode::OK, StatusCode::INTERNAL_SERVER_ERROR] {
        outrigger_upstream::read_reply(status, &reply);
    }
    for answers in (0..4).filter_map(|count| outrigger_upstream::read_batch(&reply, count)) {
        for result in answers.into_iter().flatten() {
            assert!(serde_json::from_slice::<IgnoredAny>(&result).is_ok(), "{result:?}");
        }
    }
    let help = outrigger_passthrough::NodeHelp::parse(&String::from_utf8_lossy(bytes));
    assert!(help.iter().all(|(name, _)| !name.is_empty()));
}

/// The result of a node's call, parsed as each result type.
pub fn node_result(bytes: &[u8]) {
    let tip = Tip { hash: BlockHash::from_byte_array([1; 32]), height: 7, time: 8, median_time: 7 };
    outrigger_bitcoind::results::read_all(bytes, tip);
}

/// A record of a bitcoind's wallet file: its key, whose length is in the first byte, and its value.
pub fn node_wallet(bytes: &[u8]) {
    let Some((length, rest)) = bytes.split_first() else { return };
    let (key, value) = rest.split_at(rest.len().min(usize::from(*length)));
    outrigger_node_wallet::is_readable(key, value);
    assert!(!outrigger_node_wallet::is_readable(&[], value));
}

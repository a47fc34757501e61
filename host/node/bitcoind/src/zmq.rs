//! bitcoind's ZMQ notifications of the topic `sequence`.
//!
//! A notification has three parts: the topic; a hash in display order, a letter, and for transactions the mempool's
//! sequence; and a counter, whose gaps show losses.

use std::io::{self, Read, Write};
use std::time::Duration;

use bitcoin::hashes::Hash;
use bitcoin::{BlockHash, Txid};
use outrigger_zmq::{Stream, Subscription, ZmqEndpoint, ZmqError};

/// The topic, and its type in getzmqnotifications.
const TOPIC: &[u8] = b"sequence";
const TYPE: &str = "pubsequence";

/// The longest accepted part, in bytes. A part of a notification has at most 41, a READY command about 30.
const MAX_PART: u64 = 1024;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    Block(BlockHash),
    /// A transaction entered the mempool, with this sequence number.
    Added(Txid, u64),
    /// A transaction left the mempool, but not for a block.
    Removed(Txid, u64),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Notification {
    pub event: Event,
    /// Counted since the node's start.
    pub number: u32,
}

/// The endpoint of `sequence` in getzmqnotifications' list of (type, address). A wildcard address becomes the node's
/// `host`.
pub fn listed<'a>(list: impl IntoIterator<Item = (&'a str, &'a str)>, host: &str) -> Option<ZmqEndpoint> {
    let (_, address) = list.into_iter().find(|(kind, _)| *kind == TYPE)?;
    match address.parse().ok()? {
        ZmqEndpoint::Tcp(any, port) if ZmqEndpoint::is_any(&any) => Some(ZmqEndpoint::Tcp(host.to_owned(), port)),
        endpoint => Some(endpoint),
    }
}

/// A read of the subscription fails if nothing arrives within `silence`.
pub fn subscribe(endpoint: &ZmqEndpoint, silence: Duration) -> Result<Subscription<Box<dyn Stream>>, ZmqError> {
    endpoint.subscribe(&[TOPIC], MAX_PART, silence)
}

pub fn read<S: Read + Write>(subscription: &mut Subscription<S>) -> Result<Notification, ZmqError> {
    notification(&subscription.read()?).ok_or(ZmqError::Protocol("a message that is not one of `sequence`"))
}

fn notification(parts: &[Vec<u8>]) -> Option<Notification> {
    let [topic, body, number] = parts else { return None };
    let (hash, rest) = body.split_first_chunk::<32>()?;
    let (letter, sequence) = rest.split_first()?;
    let mut hash = *hash;
    hash.reverse();
    let sequence = sequence.try_into().ok().map(u64::from_le_bytes);
    let event = match (letter, sequence) {
        (b'C' | b'D', None) => Event::Block(BlockHash::from_byte_array(hash)),
        (b'A', Some(sequence)) => Event::Added(Txid::from_byte_array(hash), sequence),
        (b'R', Some(sequence)) => Event::Removed(Txid::from_byte_array(hash), sequence),
        _ => return None,
    };
    let number = u32::from_le_bytes(number.as_slice().try_into().ok()?);
    (topic == TOPIC).then_some(Notification { event, number })
}

/// A publisher that ignores its input.
struct Deaf<'b>(&'b [u8]);

impl Read for Deaf<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Deaf<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Parses a publisher's bytes up to the first invalid one, for fuzz tests.
pub fn read_all(bytes: &[u8]) -> Vec<Notification> {
    let Ok(mut subscription) = Subscription::begin(Deaf(bytes), &[TOPIC], MAX_PART) else { return Vec::new() };
    std::iter::from_fn(|| read(&mut subscription).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> Vec<u8> {
        let mut bytes = vec![0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 1];
        bytes.extend_from_slice(b"NULL");
        bytes.resize(64, 0);
        bytes.extend_from_slice(b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03PUB");
        bytes
    }

    fn message(letter: u8, sequence: Option<u64>, number: u32) -> Vec<u8> {
        let body = [&[7; 31][..], &[1, letter], &sequence.map_or(Vec::new(), |at| at.to_le_bytes().to_vec())].concat();
        let length = u8::try_from(body.len()).unwrap();
        [&[1, 8], TOPIC, &[1, length], &body, &[0, 4], &number.to_le_bytes()].concat()
    }

    #[test]
    fn sequence_notifications_are_read_as_bitcoind_sends_them() {
        // A hash is sent in display order.
        let mut hash = [7; 32];
        hash[0] = 1;
        let (block, txid) = (BlockHash::from_byte_array(hash), Txid::from_byte_array(hash));
        let bytes = [
            head(),
            message(b'C', None, 0),
            b"\x04\x06\x04PING\0".to_vec(),
            message(b'A', Some(258), 1),
            message(b'R', Some(259), u32::MAX),
            message(b'D', None, 3),
        ];
        let events: Vec<(Event, u32)> =
            read_all(&bytes.concat()).iter().map(|notification| (notification.event, notification.number)).collect();
        let expected = [
            (Event::Block(block), 0),
            (Event::Added(txid, 258), 1),
            (Event::Removed(txid, 259), u32::MAX),
            (Event::Block(block), 3),
        ];
        assert_eq!(events, expected);
    }

    #[test]
    fn foreign_and_endless_streams_are_refused() {
        fn begin(bytes: &[u8]) -> Result<Subscription<Deaf<'_>>, ZmqError> {
            Subscription::begin(Deaf(bytes), &[TOPIC], MAX_PART)
        }
        let refused = |end: &[u8]| {
            let bytes = [&head(), end].concat();
            read(&mut begin(&bytes).unwrap())
        };
        // A frame of 2^63 bytes, one of unknown flags, too many parts, another topic, a letter without its number.
        let long = [&[2][..], &(1_u64 << 63).to_be_bytes()].concat();
        let parts = [1, 0].repeat(5);
        let other = [&[1, 8][..], b"rawblock", &[0, 0]].concat();
        for end in [&long[..], &[0xf0, 0], &parts, &other, &message(b'A', None, 1), &message(b'C', Some(1), 1)] {
            assert!(matches!(refused(end), Err(ZmqError::Protocol(_))), "{end:?}");
        }
        assert!(matches!(refused(&message(b'C', None, 1)[..20]), Err(ZmqError::Io(_))));
        let mut curve = head();
        curve[12..17].copy_from_slice(b"CURVE");
        assert!(begin(&curve).is_err());
    }

    #[test]
    fn endpoint_is_found_in_the_list() {
        let tcp = |host: &str| Some(ZmqEndpoint::Tcp(host.to_owned(), 28332));
        let list = |address| listed([("pubhashtx", "tcp://x:1"), ("pubsequence", address)], "node");
        assert_eq!([list("tcp://*:28332"), list("tcp://10.0.0.1:28332")], [tcp("node"), tcp("10.0.0.1")]);
        assert_eq!((list("inproc://x"), listed([], "node")), (None, None));
    }
}

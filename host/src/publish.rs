//! ZMQ notifications of the embedded chain: bitcoind's messages, in its order.
//!
//! A message has three parts: the topic, the content, and a counter per topic. Blocks are published once the mempool
//! has followed them, as in bitcoind: so transactions that a block evicted from the mempool are published before it.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use bitcoin::consensus::serialize;
use bitcoin::hashes::Hash;
use bitcoin::{Block, BlockHash, Transaction, Txid};
use outrigger_node::{Node, NodeError, NodeEvent, Observer, ReadBlock, Removal};
use outrigger_zmq::PubSocket;
use parking_lot::Mutex;
use tokio::runtime::Handle;

use crate::config::{Publication, Topic};

/// How far a tip's time may be behind the clock, in seconds. As in bitcoind, whose initial download ends then, new tips
/// are published from the first nearer one on.
const MAX_TIP_AGE: u64 = 24 * 60 * 60;

/// Publishes the node's events, which are queued meanwhile.
pub struct Publisher(Mutex<Sender<NodeEvent>>);

impl Observer for Publisher {
    fn notify(&self, event: NodeEvent) {
        // Fails only while the host ends.
        let _ = self.0.lock().send(event);
    }
}

impl Publisher {
    /// Starts to publish events of `node`, on the current runtime.
    ///
    /// # Errors
    /// An address cannot be listened on, or the system refuses a thread.
    pub fn start(node: &Arc<dyn Node>, publications: &[Publication]) -> Result<Self, PublishError> {
        let mut sockets: HashMap<&str, Arc<PubSocket>> = HashMap::new();
        let mut outlets = Vec::new();
        for publication in publications {
            let socket = match sockets.get(&*publication.address) {
                Some(socket) => socket.clone(),
                None => {
                    let bound = PubSocket::bind(&publication.endpoint, publication.high_water_mark as usize);
                    let error = |error| PublishError::Bind(publication.address.clone(), error);
                    Arc::new(Handle::current().block_on(bound).map_err(error)?)
                }
            };
            sockets.insert(&publication.address, socket.clone());
            outlets.push(Outlet { topic: publication.topic, socket, number: 0 });
        }
        let moves = node.mempool_info().map_err(PublishError::Node)?.moves;
        let (sender, events) = channel();
        let caught_up = is_recent(&**node, node.tip().time);
        let mut teller = Teller { node: node.clone(), outlets, moves, caught_up, left: None, connected: Vec::new() };
        let tell = move || teller.run(&events);
        thread::Builder::new().name("publish".into()).spawn(tell).map_err(PublishError::Thread)?;
        Ok(Self(Mutex::new(sender)))
    }
}

#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    #[error("cannot listen at {0}: {1}")]
    Bind(String, io::Error),
    #[error(transparent)]
    Node(NodeError),
    #[error("cannot start the publishing thread: {0}")]
    Thread(io::Error),
}

struct Outlet {
    topic: Topic,
    socket: Arc<PubSocket>,
    number: u32,
}

impl Outlet {
    fn send(&mut self, body: &[u8]) {
        self.socket.send(&[self.topic.name().as_bytes(), body, &self.number.to_le_bytes()]);
        self.number = self.number.wrapping_add(1);
    }
}

/// A hash in display order.
fn shown(mut hash: [u8; 32]) -> [u8; 32] {
    hash.reverse();
    hash
}

fn is_recent(node: &dyn Node, time: u32) -> bool {
    u64::from(time) + MAX_TIP_AGE >= node.time()
}

struct Teller {
    node: Arc<dyn Node>,
    outlets: Vec<Outlet>,
    /// The number of the mempool's next change.
    moves: u64,
    /// Whether a tip was near the clock once.
    caught_up: bool,
    /// The height of the former tip during a change of the chain.
    left: Option<u32>,
    connected: Vec<(BlockHash, u32)>,
}

impl Teller {
    fn run(&mut self, events: &Receiver<NodeEvent>) {
        for event in events {
            match event {
                NodeEvent::BlockDisconnected { hash, height } => {
                    self.left.get_or_insert(height);
                    self.with_block(hash, |this, read| this.block(hash, &read, b'D'));
                }
                NodeEvent::BlockConnected { hash, height } => self.connected.push((hash, height)),
                NodeEvent::TipChanged { height, .. } => self.connected(height),
                NodeEvent::TransactionAdded { transaction, .. } => {
                    let (txid, moves) = (transaction.compute_txid(), self.next_move());
                    self.transaction(&transaction, txid, Some(moves));
                }
                NodeEvent::TransactionRemoved { txid, reason, .. } => {
                    let moves = self.next_move();
                    if reason != Removal::Confirmed {
                        self.sequence(shown(txid.to_byte_array()), b'R', Some(moves));
                    }
                }
                NodeEvent::Reached => {}
            }
        }
    }

    fn next_move(&mut self) -> u64 {
        self.moves += 1;
        self.moves - 1
    }

    /// Publishes the blocks that a change of the chain connected. bitcoind publishes a new tip from the first block
    /// with more work than the former tip on; if the former tip became invalid, from the first block on.
    fn connected(&mut self, tip: u32) {
        let left = self.left.take().filter(|left| *left < tip).unwrap_or_default();
        for (hash, height) in std::mem::take(&mut self.connected) {
            self.with_block(hash, |this, read| {
                this.block(hash, &read, b'C');
                this.caught_up |= is_recent(&*this.node, read.block.header.time);
                if height > left && this.caught_up {
                    this.tip(hash, &read.block);
                }
            });
        }
    }

    /// Reads a block. If that fails, it is not published, and the log says so; the numbers of `sequence` show no gap.
    fn with_block(&mut self, hash: BlockHash, tell: impl FnOnce(&mut Self, ReadBlock)) {
        match self.node.snapshot().and_then(|snapshot| snapshot.read_block(hash)) {
            Ok(Some(read)) => tell(self, read),
            Ok(None) => tracing::error!(%hash, "a block is not published: it does not exist"),
            Err(error) => tracing::error!(%hash, %error, "a block is not published"),
        }
    }

    fn tip(&mut self, hash: BlockHash, block: &Block) {
        for outlet in &mut self.outlets {
            match outlet.topic {
                Topic::HashBlock => outlet.send(&shown(hash.to_byte_array())),
                Topic::RawBlock => outlet.send(&serialize(block)),
                Topic::HashTx | Topic::RawTx | Topic::Sequence => {}
            }
        }
    }

    /// A connected or disconnected block, and its transactions.
    fn block(&mut self, hash: BlockHash, read: &ReadBlock, letter: u8) {
        for (transaction, txid) in read.block.txdata.iter().zip(&read.txids) {
            self.transaction(transaction, *txid, None);
        }
        self.sequence(shown(hash.to_byte_array()), letter, None);
    }

    /// A transaction of a block, or one that enters the mempool as change number `moves`.
    fn transaction(&mut self, transaction: &Transaction, txid: Txid, moves: Option<u64>) {
        let hash = shown(txid.to_byte_array());
        for outlet in &mut self.outlets {
            match outlet.topic {
                Topic::HashTx => outlet.send(&hash),
                Topic::RawTx => outlet.send(&serialize(transaction)),
                Topic::HashBlock | Topic::RawBlock | Topic::Sequence => {}
            }
        }
        if moves.is_some() {
            self.sequence(hash, b'A', moves);
        }
    }

    fn sequence(&mut self, hash: [u8; 32], letter: u8, moves: Option<u64>) {
        let moves = moves.map(u64::to_le_bytes);
        let body = [&hash[..], &[letter], moves.as_ref().map_or(&[][..], |moves| moves)].concat();
        for outlet in self.outlets.iter_mut().filter(|outlet| outlet.topic == Topic::Sequence) {
            outlet.send(&body);
        }
    }
}

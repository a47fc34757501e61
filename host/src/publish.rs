//! ZMQ notifications of the embedded chain: bitcoind's messages, in its order.
//!
//! A message has three parts: the topic, the content, and a counter per topic. As in bitcoind, a block is published after
//! the mempool was updated for it, so the removal of transactions that conflict with it is published before it.

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
use tokio::runtime::Handle;

use crate::config::{Publication, Topic};

/// The age of a tip, in seconds, up to which it counts as recent. As in bitcoind, which leaves initial block download
/// then, no tip is published before the first recent one.
const MAX_TIP_AGE: u64 = 24 * 60 * 60;

/// Queues the node's events for the thread that publishes them.
pub struct Publisher(Sender<NodeEvent>);

impl Observer for Publisher {
    fn notify(&self, event: NodeEvent) {
        // This fails only while the host stops.
        let _ = self.0.send(event);
    }
}

impl Publisher {
    /// Starts to publish events of `node`. The sockets use the current runtime, and events are read on a new thread.
    ///
    /// # Errors
    /// The host cannot listen on an address, the node's mempool cannot be read, or the system refuses a thread.
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
        let mut worker = Worker { node: node.clone(), outlets, moves, caught_up, left: None, connected: Vec::new() };
        let work = move || worker.run(&events);
        thread::Builder::new().name("publish".into()).spawn(work).map_err(PublishError::Thread)?;
        Ok(Self(sender))
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

/// Converts a hash to display order.
fn shown(mut hash: [u8; 32]) -> [u8; 32] {
    hash.reverse();
    hash
}

fn is_recent(node: &dyn Node, time: u32) -> bool {
    u64::from(time) + MAX_TIP_AGE >= node.time()
}

struct Worker {
    node: Arc<dyn Node>,
    outlets: Vec<Outlet>,
    /// The mempool sequence number of the next change.
    moves: u64,
    /// Whether there was a recent tip.
    caught_up: bool,
    /// The height of the former tip, during a reorganisation.
    left: Option<u32>,
    connected: Vec<(BlockHash, u32)>,
}

impl Worker {
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

    /// Publishes the blocks that a change of the chain connected. Like bitcoind, it publishes each of them that is higher
    /// than the former tip as a tip; if the former tip became invalid, it publishes all of them.
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

    /// Passes a block to `tell`. A block that cannot be read is logged and not published, without a gap in the counters.
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

    /// Publishes a connected (`letter` C) or disconnected (D) block, and its transactions.
    fn block(&mut self, hash: BlockHash, read: &ReadBlock, letter: u8) {
        for (transaction, txid) in read.block.txdata.iter().zip(&read.txids) {
            self.transaction(transaction, *txid, None);
        }
        self.sequence(shown(hash.to_byte_array()), letter, None);
    }

    /// Publishes a transaction of a block, or one that enters the mempool with the sequence number `moves`.
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

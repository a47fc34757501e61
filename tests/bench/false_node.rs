//! A program that answers what the host asks a bitcoind, with a chain of headers and a mempool that grow when it is told.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use bitcoin::absolute::LockTime;
use bitcoin::consensus::encode::{serialize, serialize_hex};
use bitcoin::hashes::Hash;
use bitcoin::{
    Amount, Block, BlockHash, OutPoint, ScriptBuf, Sequence, Transaction, TxIn, TxMerkleNode, TxOut, Txid, Witness,
    transaction,
};
use outrigger_tests::miner;
use serde_json::{Value, json};

/// How many headers REST sends at a time.
const PART: usize = 2000;
const SPACING: u32 = 60;
/// bitcoind's codes for what it does not know.
const METHOD_NOT_FOUND: i32 = -32601;
const NOT_FOUND: i32 = -5;
/// How long it takes to answer [`SLOW_METHOD`].
const SLOW: Duration = Duration::from_millis(200);
/// The method that it answers slowly.
pub const SLOW_METHOD: &str = "getnettotals";

pub struct FalseNode {
    /// Where it listens.
    pub address: SocketAddr,
    /// How many blocks it shows on top of the genesis block, and how many transactions.
    pub blocks: AtomicUsize,
    pub transactions: AtomicUsize,
    /// How many transactions were asked for.
    pub fetched: AtomicUsize,
    /// Whether its last header was asked for, and its tip after that.
    sent: AtomicBool,
    followed: AtomicBool,
    headers: Vec<bitcoin::block::Header>,
    heights: HashMap<BlockHash, usize>,
    ids: Vec<Txid>,
    pool: HashMap<Txid, String>,
}

impl FalseNode {
    /// Starts one that can show so many blocks and transactions, and shows none.
    pub fn start(blocks: usize, transactions: usize) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let headers = headers(blocks);
        let heights = headers.iter().enumerate().map(|(height, header)| (header.block_hash(), height)).collect();
        let all: Vec<Transaction> = (0..transactions).map(payment).collect();
        let node = Arc::new(Self {
            address: listener.local_addr().unwrap(),
            blocks: AtomicUsize::new(0),
            transactions: AtomicUsize::new(0),
            fetched: AtomicUsize::new(0),
            sent: AtomicBool::new(false),
            followed: AtomicBool::new(false),
            headers,
            heights,
            ids: all.iter().map(Transaction::compute_txid).collect(),
            pool: all.iter().map(|one| (one.compute_txid(), serialize_hex(one))).collect(),
        });
        let shared = node.clone();
        thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let node = shared.clone();
                thread::spawn(move || node.serve(connection));
            }
        });
        node
    }

    /// Whether the host has asked for all headers, and whether there is more.
    pub fn is_followed(&self) -> bool {
        self.followed.load(Ordering::SeqCst)
    }

    fn serve(&self, connection: TcpStream) -> std::io::Result<()> {
        connection.set_nodelay(true)?;
        let mut reader = BufReader::new(connection);
        loop {
            let (mut line, mut length) = (String::new(), 0);
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
            while line != "\r\n" {
                line.clear();
                reader.read_line(&mut line)?;
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().map_err(std::io::Error::other)?;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body)?;
            let (status, reply) = match path.strip_prefix("/rest/") {
                Some(path) => self.rest(path).map_or((404, Vec::new()), |bytes| (200, bytes)),
                None => (200, self.calls(&serde_json::from_slice(&body)?).into_bytes()),
            };
            let head = format!(
                "HTTP/1.1 {status} x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                reply.len()
            );
            reader.get_mut().write_all(&[head.as_bytes(), &reply].concat())?;
        }
    }

    fn tip(&self) -> usize {
        self.blocks.load(Ordering::SeqCst)
    }

    /// `headers/2000/HASH.bin`.
    fn rest(&self, path: &str) -> Option<Vec<u8>> {
        let hash = path.strip_prefix("headers/")?.split('/').nth(1)?.strip_suffix(".bin")?;
        let height = *self.heights.get(&hash.parse::<BlockHash>().ok()?)?;
        let end = (height + PART).min(self.tip() + 1);
        self.sent.fetch_or(end == self.headers.len(), Ordering::SeqCst);
        Some(self.headers.get(height..end)?.iter().flat_map(serialize).collect())
    }

    /// The reply to one call, or to a batch, in bitcoind's form.
    fn calls(&self, request: &Value) -> String {
        let one = |call: &Value| {
            let params = &call["params"];
            let (result, error) = match self.call(call["method"].as_str().unwrap_or_default(), &params[0]) {
                Ok(result) => (result, Value::Null),
                Err(code) => (Value::Null, json!({"code": code, "message": "none"})),
            };
            format!("{{\"result\":{result},\"error\":{error},\"id\":{}}}", call["id"])
        };
        match request.as_array() {
            Some(calls) => format!("[{}]\n", calls.iter().map(one).collect::<Vec<_>>().join(",")),
            None => one(request) + "\n",
        }
    }

    fn call(&self, method: &str, first: &Value) -> Result<Value, i32> {
        let (tip, shown) = (self.tip(), self.transactions.load(Ordering::SeqCst));
        let text = first.as_str().unwrap_or_default();
        Ok(match method {
            "getblockcount" => json!(tip),
            "getbestblockhash" => {
                self.followed.fetch_or(self.sent.load(Ordering::SeqCst), Ordering::SeqCst);
                json!(self.headers[tip].block_hash())
            }
            "getblockhash" => {
                let height =
                    first.as_u64().and_then(|height| usize::try_from(height).ok()).filter(|height| *height <= tip);
                json!(self.headers[height.ok_or(NOT_FOUND)?].block_hash())
            }
            "getblockheader" => {
                let height =
                    text.parse::<BlockHash>().ok().and_then(|hash| self.heights.get(&hash)).ok_or(NOT_FOUND)?;
                json!(serialize_hex(&self.headers[*height]))
            }
            "getblockchaininfo" => {
                json!({"chain": "regtest", "blocks": tip, "headers": tip, "initialblockdownload": false})
            }
            "getmempoolinfo" => json!({"size": shown, "bytes": 141 * shown, "usage": 1200 * shown, "total_fee": 0,
                "maxmempool": 300_000_000, "mempoolminfee": 0.000_01, "minrelaytxfee": 0.000_01}),
            "getrawmempool" => json!({"txids": self.ids[..shown], "mempool_sequence": shown + 1}),
            "getrawtransaction" => {
                self.fetched.fetch_add(1, Ordering::SeqCst);
                let txid: Option<Txid> = text.parse().ok();
                json!(txid.and_then(|txid| self.pool.get(&txid)).ok_or(NOT_FOUND)?)
            }
            SLOW_METHOD => {
                thread::sleep(SLOW);
                json!({})
            }
            _ => return Err(METHOD_NOT_FOUND),
        })
    }
}

/// The genesis block's header, and so many on top of it.
fn headers(blocks: usize) -> Vec<bitcoin::block::Header> {
    let mut block: Block = bitcoin::constants::genesis_block(bitcoin::Network::Regtest);
    let mut headers = vec![block.header];
    for height in 1..=blocks {
        block.header.prev_blockhash = block.block_hash();
        block.header.time += SPACING;
        block.header.merkle_root = TxMerkleNode::from_byte_array([u8::try_from(height % 256).unwrap(); 32]);
        miner::grind(&mut block);
        headers.push(block.header);
    }
    headers
}

/// A payment with an input and two outputs, as most of a mempool are.
fn payment(number: usize) -> Transaction {
    let digest = bitcoin::hashes::sha256d::Hash::hash(&number.to_le_bytes());
    let script = |mark: u8| {
        let program = [&[0, 20, mark], &digest.as_byte_array()[..19]].concat();
        TxOut { value: Amount::from_sat(10_000), script_pubkey: ScriptBuf::from_bytes(program) }
    };
    let input = TxIn {
        previous_output: OutPoint { txid: Txid::from_raw_hash(digest), vout: 0 },
        script_sig: ScriptBuf::new(),
        sequence: Sequence::MAX,
        witness: Witness::from_slice(&[vec![1; 72], vec![2; 33]]),
    };
    let output = vec![script(1), script(2)];
    Transaction { version: transaction::Version::TWO, lock_time: LockTime::ZERO, input: vec![input], output }
}

//! The mempool over a restart: `mempool.dat`, which the end of the node and savemempool write. bitcoind reads it, too (version 1 of
//! its format). A kill loses what came since, as in bitcoind.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use bitcoin::consensus::{Decodable, encode, serialize};
use bitcoin::{SignedAmount, Transaction, Txid, VarInt};
use outrigger_values::FeeRate;

use super::mempool::{Entry, EntryTime, Offer, Pool, Rejection, Rules, Terms, View};
use super::{EmbeddedError, EmbeddedNode};

/// The file in the folder of the chain, and where it is written before it takes that place.
const FILE: &str = "mempool.dat";
const NEW_FILE: &str = "mempool.dat.new";
/// The version of the format.
const VERSION: u64 = 1;

/// The contents of the file.
#[derive(Default)]
struct Saved {
    /// Transactions with the times at which they entered, in Unix seconds; parents before children.
    transactions: Vec<(Transaction, i64)>,
    deltas: Vec<(Txid, SignedAmount)>,
    unbroadcast: HashSet<Txid>,
}

impl Saved {
    /// Reads the contents up to their end or a damage.
    fn read(&mut self, mut bytes: &[u8]) -> Result<(), encode::Error> {
        let source = &mut bytes;
        if u64::consensus_decode(source)? != VERSION {
            return Err(encode::Error::ParseFailed("unknown version of a mempool's file"));
        }
        for _ in 0..u64::consensus_decode(source)? {
            let (transaction, time) = <(Transaction, i64)>::consensus_decode(source)?;
            self.read_delta(transaction.compute_txid(), source)?;
            self.transactions.push((transaction, time));
        }
        for _ in 0..VarInt::consensus_decode(source)?.0 {
            self.read_delta(Txid::consensus_decode(source)?, source)?;
        }
        for _ in 0..VarInt::consensus_decode(source)?.0 {
            self.unbroadcast.insert(Txid::consensus_decode(source)?);
        }
        Ok(())
    }

    fn read_delta(&mut self, txid: Txid, source: &mut &[u8]) -> Result<(), encode::Error> {
        self.deltas.push((txid, SignedAmount::from_sat(i64::consensus_decode(source)?)));
        Ok(())
    }
}

impl EmbeddedNode {
    /// Writes the mempool to its file, and returns the path.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save_mempool(&self) -> io::Result<PathBuf> {
        let (path, fresh) = (self.dir.join(FILE), self.dir.join(NEW_FILE));
        let bytes = self.pool().to_file();
        // Nobody else may read what waits for a block.
        let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        fs::rename(fresh, &path)?;
        Ok(path)
    }

    /// Fills the empty mempool from its file. What the rules of today refuse stays out. A file that cannot be read is logged.
    ///
    /// # Errors
    /// When the chain cannot be read.
    pub(super) fn load_mempool(&self) -> Result<(), EmbeddedError> {
        let path = self.dir.join(FILE);
        let mut saved = Saved::default();
        match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => tracing::error!(path = %path.display(), %error, "the mempool's file cannot be read"),
            Ok(bytes) => {
                if let Err(error) = saved.read(&bytes) {
                    tracing::error!(path = %path.display(), %error, "the mempool's file is damaged");
                }
            }
        }
        let Saved { transactions, deltas, unbroadcast } = saved;
        let view = View::new(self, self.tip())?;
        let (mut pool, now) = (self.pool_mut(), self.time());
        deltas.into_iter().for_each(|(txid, delta)| pool.set_delta(txid, delta));
        for (transaction, time) in transactions {
            let raw = serialize(&transaction);
            let offer = Offer::new(transaction, &raw);
            // As in bitcoind, it comes at this height, whenever it came first.
            let entry_time = EntryTime {
                time: u64::try_from(time).unwrap_or_default(),
                height: view.tip.height,
                unbroadcast: unbroadcast.contains(&offer.txid),
            };
            match pool.examine(&view, &offer, Rules::Alone(Terms::Kept(entry_time)), FeeRate::ZERO) {
                // Nobody observes the node yet.
                Ok(admissible) => drop(pool.admit(admissible, now, &mut Vec::new())),
                Err(Rejection::Node(error)) => return Err(error),
                Err(rejection) => tracing::debug!(txid = %offer.txid, ?rejection, "not restored"),
            }
        }
        Ok(())
    }
}

impl Pool {
    /// The contents of the file.
    fn to_file(&self) -> Vec<u8> {
        let mut entries: Vec<&Entry> = self.graph().in_order().collect();
        // A reorganisation may have put a parent behind its children.
        entries.sort_by_key(|entry| entry.ancestors.count);
        let mut out = serialize(&(VERSION, entries.len() as u64));
        for entry in &entries {
            out.extend_from_slice(&entry.raw);
            out.extend(serialize(&(i64::try_from(entry.time).unwrap_or(i64::MAX), entry.delta.to_sat())));
        }
        let absent: Vec<_> = self.prioritised().into_iter().filter(|one| one.modified_fee.is_none()).collect();
        out.extend(serialize(&VarInt::from(absent.len())));
        absent.iter().for_each(|one| out.extend(serialize(&(one.txid, one.fee_delta.to_sat()))));
        let unbroadcast: Vec<Txid> = entries.iter().filter(|entry| entry.unbroadcast).map(|entry| entry.txid).collect();
        out.extend(serialize(&VarInt::from(unbroadcast.len())));
        unbroadcast.iter().for_each(|txid| out.extend(serialize(txid)));
        out
    }
}

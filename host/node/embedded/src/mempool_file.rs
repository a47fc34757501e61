//! `mempool.dat` keeps the mempool across restarts, in version 1 of bitcoind's format.
//!
//! The node writes it when it stops and on savemempool. If the process is killed, later changes are lost, as in bitcoind.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::PathBuf;

use bitcoin::consensus::{Decodable, encode, serialize};
use bitcoin::{SignedAmount, Transaction, Txid, VarInt};
use outrigger_base::replace::replace_file;
use outrigger_values::FeeRate;

use super::mempool::{Entry, EntryTime, Offer, Pool, Rejection, Rules, Terms, View};
use super::{EmbeddedError, EmbeddedNode};

const FILE: &str = "mempool.dat";
const VERSION: u64 = 1;

#[derive(Default)]
struct SavedMempool {
    /// Parents before children, with entry times in Unix seconds.
    transactions: Vec<(Transaction, i64)>,
    deltas: Vec<(Txid, SignedAmount)>,
    unbroadcast: HashSet<Txid>,
}

impl SavedMempool {
    /// Reads the file's contents up to the end, or to the first error.
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
    pub(super) fn write_mempool(&self) -> io::Result<PathBuf> {
        let path = self.dir.join(FILE);
        let bytes = self.pool.read().to_file();
        // Other users must not read unconfirmed transactions.
        replace_file(&path, &bytes)?;
        Ok(path)
    }

    /// Fills the empty mempool from its file, and drops transactions that the current rules refuse. An unreadable or
    /// damaged file is logged.
    pub(super) fn load_mempool(&self) -> Result<(), EmbeddedError> {
        let path = self.dir.join(FILE);
        let mut saved = SavedMempool::default();
        match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => tracing::error!(path = %path.display(), %error, "the mempool's file cannot be read"),
            Ok(bytes) => {
                if let Err(error) = saved.read(&bytes) {
                    tracing::error!(path = %path.display(), %error, "the mempool's file is damaged");
                }
            }
        }
        let SavedMempool { transactions, deltas, unbroadcast } = saved;
        let view = View::new(self, self.tip())?;
        let (mut pool, now) = (self.pool.write(), self.clock.now());
        deltas.into_iter().for_each(|(txid, delta)| pool.set_delta(txid, delta));
        for (transaction, time) in transactions {
            let raw = serialize(&transaction);
            let offer = Offer::new(transaction, &raw);
            // As in bitcoind, the entry's height is that of the current tip.
            let entry_time = EntryTime {
                time: u64::try_from(time).unwrap_or_default(),
                height: view.tip.height,
                unbroadcast: unbroadcast.contains(&offer.txid),
            };
            match pool.examine(&view, &offer, Rules::Alone(Terms::Kept(entry_time)), FeeRate::ZERO) {
                Ok(admissible) => drop(pool.admit(admissible, now)),
                Err(Rejection::Node(error)) => return Err(error),
                Err(rejection) => tracing::debug!(txid = %offer.txid, ?rejection, "not restored"),
            }
        }
        // The node has no observers yet.
        pool.events.clear();
        Ok(())
    }
}

impl Pool {
    fn to_file(&self) -> Vec<u8> {
        let entries: Vec<&Entry> = self.graph.in_order().collect();
        let mut out = serialize(&(VERSION, entries.len() as u64));
        for entry in &entries {
            out.extend_from_slice(&entry.raw);
            out.extend(serialize(&(i64::try_from(entry.entered.time).unwrap_or(i64::MAX), entry.delta.to_sat())));
        }
        let absent: Vec<_> = self.prioritised().into_iter().filter(|one| one.modified_fee.is_none()).collect();
        out.extend(serialize(&VarInt::from(absent.len())));
        absent.iter().for_each(|one| out.extend(serialize(&(one.txid, one.fee_delta.to_sat()))));
        let unbroadcast: Vec<Txid> =
            entries.iter().filter(|entry| entry.entered.unbroadcast).map(|entry| entry.txid).collect();
        out.extend(serialize(&VarInt::from(unbroadcast.len())));
        unbroadcast.iter().for_each(|txid| out.extend(serialize(txid)));
        out
    }
}

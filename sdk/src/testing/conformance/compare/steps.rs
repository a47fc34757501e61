//! The random operations.

use std::collections::BTreeSet;

use bitcoin::absolute::LockTime;
use bitcoin::{OutPoint, Sequence, Transaction, Txid};

use super::cast::Cast;
use super::{Dice, PASSPHRASE, Pair, tip};
use crate::service::wallet::{AddressType, HistoryQuery, HistoryRange};
use crate::service::{Chain, Result as ServiceResult, Scope};
use crate::testing::conformance::bench::{WALLET, elsewhere, foreign, same, spend};
use crate::testing::conformance::{Failure, Outcome, TestNode};
use crate::wire::{Blob, Secret};

/// How many payments from elsewhere there can be.
const SOURCES: usize = 200;

/// A range of the history that is being read row by row, while other things happen.
struct Reading {
    range: HistoryRange,
    reverse: bool,
    /// Where each of the two subjects goes on.
    places: [Option<Blob>; 2],
}

/// A walk through random operations.
pub struct Walk<'s> {
    pub pair: Pair<'s>,
    pub cast: Cast,
    dice: Dice,
    sources: usize,
    backups: usize,
    reading: Option<Reading>,
}

fn id(transaction: &Transaction) -> Txid {
    transaction.compute_txid()
}

impl<'s> Walk<'s> {
    pub fn new(pair: Pair<'s>, dice: Dice, cast: Cast) -> Self {
        Self { pair, dice, cast, sources: 0, backups: 0, reading: None }
    }

    fn node(&self) -> &TestNode {
        self.pair.one.subject.node()
    }

    /// Does one thing to both, and compares what is answered.
    pub fn step(&mut self) -> Outcome {
        match self.dice.below(40) {
            0..=6 => self.pay(),
            7..=11 => self.spend(),
            12..=16 => self.mine(),
            17..=18 => self.disconnect(),
            19..=20 => self.take_out(),
            21 => self.come_back(),
            22..=26 => self.import(),
            27..=28 => self.label(),
            29..=30 => self.address(),
            31 => self.remark(),
            32 => self.abandon(),
            33..=34 => self.rescan(),
            35 => self.passphrase(),
            36 => self.reload(),
            37 => self.back_up(),
            38 => self.settings(),
            _ => self.read_on(),
        }
    }

    /// What the best chain spends.
    fn spent(&self) -> BTreeSet<OutPoint> {
        let inputs = |transaction: Transaction| transaction.input.into_iter().map(|input| input.previous_output);
        self.chain().into_iter().flat_map(inputs).collect()
    }

    /// The transactions of the best chain.
    fn chain(&self) -> Vec<Transaction> {
        let (node, mut found) = (self.node(), Vec::new());
        for height in 1..=node.height() {
            let block = crate::service::chain::BlockRef::Height { height };
            let info = node.chain.block_info(Scope::NONE, block).ok().flatten();
            found.extend(info.and_then(|info| node.chain.get(info.hash)).map(|block| block.txdata).unwrap_or_default());
        }
        found
    }

    fn accept(&mut self, transaction: Transaction, what: &str) {
        self.pair.note(format!("{what} {}", id(&transaction)));
        self.pair.happen(|bench| bench.accept(&transaction));
        if !self.cast.made.iter().any(|made| id(made) == id(&transaction)) {
            self.cast.made.push(transaction);
        }
    }

    /// Makes a transaction that pays to one or two of the scripts.
    fn make(&mut self, inputs: &[OutPoint], value: u64) -> Transaction {
        let scripts = [self.cast.script(&mut self.dice), self.cast.script(&mut self.dice)];
        let [first, second] = &scripts;
        let part = value / 3;
        let outputs = [(first, value - part), (second, part)];
        let outputs = if self.dice.once_in(2) { &outputs[..] } else { &outputs[..1] };
        let mut transaction = spend(inputs, outputs);
        let sequence = match self.dice.below(4) {
            0 => Sequence::ENABLE_RBF_NO_LOCKTIME,
            1 => Sequence::ENABLE_LOCKTIME_NO_RBF,
            _ => Sequence::MAX,
        };
        transaction.input.iter_mut().for_each(|input| input.sequence = sequence);
        if self.dice.once_in(4) {
            let height = self.node().height() + self.dice.below(4) as u32;
            transaction.lock_time = LockTime::from_consensus(height);
        }
        transaction
    }

    /// A payment from elsewhere, sometimes of what another payment has spent already.
    fn pay(&mut self) -> Outcome {
        let again = self.sources > 0 && self.dice.once_in(5);
        let source = if again { self.dice.below(self.sources) } else { self.sources };
        if source >= SOURCES || self.spent().contains(&elsewhere(source as u8)) {
            return Ok(());
        }
        self.sources = self.sources.max(source + 1);
        let value = 1 + self.dice.below(100_000) as u64;
        let payment = self.make(&[elsewhere(source as u8)], value);
        if again && self.dice.once_in(3) {
            return self.mine_these(vec![payment]);
        }
        self.accept(payment, "a payment");
        Ok(())
    }

    /// The outputs of the chain and the mempool that the chain does not spend, with their values.
    fn spendable(&self, of: Vec<Transaction>) -> Vec<(OutPoint, u64)> {
        let spent = self.spent();
        let outputs = of.iter().flat_map(|transaction| {
            let outputs = (0_u32..).zip(&transaction.output);
            outputs.map(|(vout, output)| (OutPoint { txid: id(transaction), vout }, output.value.to_sat()))
        });
        outputs.filter(|(outpoint, value)| *value > 2 && !spent.contains(outpoint)).collect()
    }

    /// A payment of what there is, sometimes in the place of another.
    fn spend(&mut self) -> Outcome {
        let (confirmed, waiting) = (self.spendable(self.chain()), self.spendable(self.node().pool()));
        let from = if self.dice.once_in(2) && !waiting.is_empty() { &waiting } else { &confirmed };
        let Some((first, value)) = self.dice.pick(from) else { return Ok(()) };
        let mut inputs = vec![(first, value)];
        if self.dice.once_in(3) {
            // A confirmed one: no replacement can take it away.
            inputs.extend(self.dice.pick(&confirmed).filter(|(outpoint, _)| *outpoint != first));
        }
        let outpoints: Vec<OutPoint> = inputs.iter().map(|(outpoint, _)| *outpoint).collect();
        if self.would_take_away_its_parent(&outpoints) {
            return Ok(());
        }
        let value = inputs.iter().map(|(_, value)| value).sum::<u64>() - 1;
        let transaction = self.make(&outpoints, value);
        self.accept(transaction, "a spending");
        Ok(())
    }

    /// Whether what spends one of these outpoints already, and would be replaced, has led to another of them.
    fn would_take_away_its_parent(&self, outpoints: &[OutPoint]) -> bool {
        let mut gone: BTreeSet<Txid> = BTreeSet::new();
        // As often as there are transactions: each round may find more that build on what goes.
        let pool = self.node().pool();
        for _ in 0..pool.len() {
            for transaction in &pool {
                let goes = |outpoint: OutPoint| outpoints.contains(&outpoint) || gone.contains(&outpoint.txid);
                if transaction.input.iter().any(|input| goes(input.previous_output)) {
                    gone.insert(id(transaction));
                }
            }
        }
        outpoints.iter().any(|outpoint| gone.contains(&outpoint.txid))
    }

    /// A block with some of the mempool.
    fn mine(&mut self) -> Outcome {
        let (pool, most) = (self.node().pool(), self.dice.below(6));
        let waiting: BTreeSet<Txid> = pool.iter().map(id).collect();
        let mut chosen: Vec<Transaction> = Vec::new();
        for _ in 0..pool.len() {
            for transaction in &pool {
                let missing = |txid: Txid| waiting.contains(&txid) && !chosen.iter().any(|other| id(other) == txid);
                let ready = !transaction.input.iter().any(|input| missing(input.previous_output.txid));
                if ready && chosen.len() < most && missing(id(transaction)) {
                    chosen.push(transaction.clone());
                }
            }
        }
        self.mine_these(chosen)
    }

    fn mine_these(&mut self, chosen: Vec<Transaction>) -> Outcome {
        let script = if self.dice.once_in(3) { self.cast.script(&mut self.dice) } else { foreign(200) };
        let listed: Vec<String> = chosen.iter().map(|transaction| id(transaction).to_string()).collect();
        self.pair.note(format!("a block that pays {script:x}, with {}", listed.join(" ")));
        let chosen: Vec<&Transaction> = chosen.iter().collect();
        self.pair.happen(|bench| {
            bench.mine_to(&script, &chosen);
        });
        tip(&self.pair)?;
        let mined = self.chain();
        let new = mined.into_iter().filter(|new| !self.cast.made.iter().any(|made| id(made) == id(new)));
        let new: Vec<Transaction> = new.collect();
        self.cast.made.extend(new);
        Ok(())
    }

    fn disconnect(&mut self) -> Outcome {
        let count = 1 + self.dice.below(2);
        self.pair.note(format!("{count} blocks are disconnected"));
        (0..count).for_each(|_| self.pair.happen(|bench| bench.disconnect()));
        tip(&self.pair).map(|_| ())
    }

    fn take_out(&mut self) -> Outcome {
        let Some(transaction) = self.dice.pick(&self.node().pool()) else { return Ok(()) };
        self.pair.note(format!("out of the mempool goes {}", id(&transaction)));
        self.pair.happen(|bench| bench.take_out(id(&transaction)));
        Ok(())
    }

    /// What was there before comes to the mempool again, if nothing stands against it.
    fn come_back(&mut self) -> Outcome {
        let (chain, pool, spent) = (self.chain(), self.node().pool(), self.spent());
        let there = |txid: Txid| chain.iter().chain(&pool).any(|other| id(other) == txid);
        let free = |outpoint: OutPoint| {
            let made_up = (0..SOURCES).any(|source| elsewhere(source as u8) == outpoint);
            !spent.contains(&outpoint) && (made_up || there(outpoint.txid))
        };
        let idle = |transaction: &&Transaction| {
            let outpoints: Vec<OutPoint> = transaction.input.iter().map(|input| input.previous_output).collect();
            !transaction.is_coinbase()
                && !there(id(transaction))
                && outpoints.iter().all(|outpoint| free(*outpoint))
                && !self.would_take_away_its_parent(&outpoints)
        };
        let idle: Vec<Transaction> = self.cast.made.iter().filter(idle).cloned().collect();
        if let Some(transaction) = self.dice.pick(&idle) {
            self.accept(transaction, "back comes");
        }
        Ok(())
    }

    fn import(&mut self) -> Outcome {
        let (mut imports, mut listed) = (Vec::new(), Vec::new());
        for _ in 0..1 + self.dice.below(2) {
            let (import, what) = self.cast.import(&mut self.dice)?;
            imports.push(import);
            listed.push(what);
        }
        self.pair.note(format!("imports: {}", listed.join("; ")));
        self.pair.both("the outcomes of an import", |bench| bench.import(imports.clone()))
    }

    fn label(&mut self) -> Outcome {
        let script = self.cast.script(&mut self.dice);
        let label = self.dice.below(5).to_string();
        self.pair.note(format!("label {label} for {script:x}"));
        self.pair.both("labelling", |bench| bench.ask(|w, scope| w.set_label(scope, script.clone(), label.clone())))
    }

    fn address(&mut self) -> Outcome {
        let kinds = [AddressType::Legacy, AddressType::P2shSegwit, AddressType::Bech32, AddressType::Bech32m];
        let kind = self.dice.pick(&kinds).unwrap_or(AddressType::Bech32);
        let (internal, label) = (self.dice.once_in(3), self.dice.once_in(2).then(|| "new".to_owned()));
        self.pair.note(format!("an address: {kind:?}, internal {internal}, {label:?}"));
        let script = self.pair.give("a new address", |bench| {
            bench.ask(|wallet, scope| wallet.new_address(scope, kind, internal, label.clone()))
        })?;
        self.cast.scripts.extend(script);
        Ok(())
    }

    fn remark(&mut self) -> Outcome {
        let Some(txid) = self.dice.pick(&self.cast.made).map(|made| id(&made)) else { return Ok(()) };
        let key = self.dice.pick(&["comment", "to"]).unwrap_or_default().to_owned();
        let value = self.dice.pick(&["", "one", "two"]).unwrap_or_default().to_owned();
        self.pair.note(format!("{key}: '{value}' for {txid}"));
        let set =
            |wallet: &dyn crate::service::Wallet, scope| wallet.set_metadata(scope, txid, key.clone(), value.clone());
        self.pair.both("a remark", |bench| bench.ask(set))
    }

    fn abandon(&mut self) -> Outcome {
        let Some(txid) = self.dice.pick(&self.cast.made).map(|made| id(&made)) else { return Ok(()) };
        self.pair.note(format!("giving up {txid}"));
        self.pair.both("giving up", |bench| bench.ask(|wallet, scope| wallet.abandon(scope, txid)))
    }

    fn rescan(&mut self) -> Outcome {
        let back = self.dice.below(20_000) as u64;
        let from = if self.dice.once_in(3) { 0 } else { u64::from(tip(&self.pair)?.time).saturating_sub(back) };
        self.pair.note(format!("a rescan from {from}"));
        self.pair.both("a rescan", |bench| {
            let rescan = bench.ask(|wallet, scope| wallet.rescan_reserve(scope))?;
            let second = bench.ask(|wallet, scope| wallet.rescan_reserve(scope)).map_err(|error| error.kind);
            bench.ask(|wallet, scope| wallet.rescan_start(scope, rescan, from))?;
            Ok((rescan, second))
        })?;
        self.pair.agree("its end", |bench| bench.await_rescan())
    }

    fn passphrase(&mut self) -> Outcome {
        let kind = self.dice.below(6);
        self.pair.note(format!("the passphrase: {kind}"));
        let right = || Secret::new(PASSPHRASE.into());
        self.pair.both("the passphrase", |bench| {
            bench.ask(|wallet, scope| match kind {
                0 => wallet.lock(scope),
                1 => wallet.unlock(scope, Secret::new("wrong".into()), 9),
                2 => wallet.change_passphrase(scope, right(), right()),
                3 => wallet.change_passphrase(scope, Secret::new("wrong".into()), right()),
                _ => wallet.unlock(scope, right(), 100_000_000),
            })
        })
    }

    fn reload(&mut self) -> Outcome {
        self.pair.note("unloading and loading".into());
        self.pair.both("unloading", |bench| bench.unload(WALLET))?;
        if self.dice.once_in(2) {
            self.mine()?;
        }
        self.pair.both("loading", |bench| bench.load(WALLET))
    }

    /// A backup is made and restored as another wallet, which is looked at and unloaded.
    fn back_up(&mut self) -> Outcome {
        self.backups += 1;
        let name = format!("copy {}", self.backups);
        self.pair.note(format!("a backup: {name}"));
        self.pair.both("a backup", |bench| {
            let file = bench.subject.backup_file(&name);
            bench.ask(|wallet, scope| wallet.backup(scope, file.clone()))?;
            bench.of(None, |wallet, scope| wallet.restore(scope, name.clone(), file, None))?;
            bench.tell(bench.subject.node().untold());
            let info = bench.of(Some(&name), |wallet, scope| wallet.info(scope))?;
            bench.unload(&name)?;
            Ok(info)
        })
    }

    fn settings(&mut self) -> Outcome {
        let (avoid, size) = (self.dice.once_in(2), Some(self.dice.below(60) as u32));
        let time = u64::from(tip(&self.pair)?.time) + self.dice.below(5000) as u64;
        self.pair.note(format!("avoid reuse {avoid}, {size:?} ahead, the time is {time}"));
        self.pair.happen(|bench| {
            let _ = bench.subject.node().chain.set_mock_time(Scope::NONE, time);
        });
        self.pair.both("a flag", |bench| bench.ask(|wallet, scope| wallet.set_avoid_reuse(scope, avoid)))?;
        self.pair.both("a refill", |bench| bench.ask(|wallet, scope| wallet.refill_keypool(scope, size)))
    }

    /// Reads one more row of the history from where both stopped, or begins to read.
    fn read_on(&mut self) -> Outcome {
        let ranges = [HistoryRange::All, HistoryRange::Unconfirmed, HistoryRange::Confirmed { from_height: 0 }];
        let range = self.dice.pick(&ranges).unwrap_or(HistoryRange::All);
        let reverse = self.dice.once_in(2);
        let begin = || Reading { range, reverse, places: [None, None] };
        let reading = self.reading.take().unwrap_or_else(begin);
        self.pair.note(format!("reading on in {:?}, reverse {}", reading.range, reading.reverse));
        let next = |bench: &super::Bench<'_>, after: &Option<Blob>| -> ServiceResult<_> {
            let query = HistoryQuery { range: reading.range, reverse: reading.reverse, after: after.clone(), limit: 1 };
            let batch = bench.ask(|wallet, scope| wallet.history(scope, query))?;
            Ok(batch.read().map(|batch| (batch.rows, batch.next))?)
        };
        let [first, second] = &reading.places;
        let (one, other) = (next(&self.pair.one, first)?, next(&self.pair.other, second)?);
        same("a row", &one.0, &other.0).map_err(|failure| self.blame(&failure))?;
        same("whether there is more", one.1.is_some(), other.1.is_some()).map_err(|failure| self.blame(&failure))?;
        if one.1.is_some() {
            self.reading = Some(Reading { places: [one.1, other.1], ..reading });
        }
        Ok(())
    }

    fn blame(&self, failure: &Failure) -> Failure {
        self.pair.differ(&failure.0, &"above", &"above")
    }
}

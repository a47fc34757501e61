//! Checks that a shop misses nothing if it calls listsinceblock repeatedly, each time with the last answer's `lastblock`.

use std::collections::{BTreeMap, BTreeSet};

use bitcoin::Txid;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::check;
use super::steps::{Step, histories};
use super::world::World;

const HISTORIES: u64 = 400;

struct Shop {
    /// The next `blockhash` argument.
    last: Option<String>,
    target: u32,
    /// The last answer about each transaction: the block, or null, and the confirmations.
    told: BTreeMap<String, (Value, i64)>,
    /// The transactions with at least `target` confirmations at the last call. An earlier answer does not suffice,
    /// since the chain may have become shorter.
    deep: BTreeSet<Txid>,
}

impl Shop {
    fn new(target: u32) -> Self {
        Self { last: None, target, told: BTreeMap::new(), deep: BTreeSet::new() }
    }

    /// Calls listsinceblock, and checks that the shop knows the state of each transaction.
    fn poll(&mut self, world: &World) -> Result<(), String> {
        let before = std::mem::take(&mut self.told);
        let fork = self.last.as_ref().map(|hash| world.naive.fork(hash.parse().unwrap()));
        let answer = world.ask("listsinceblock", json!([self.last, self.target, true]))?;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        self.last = answer["lastblock"].as_str().map(str::to_owned);
        self.told = before.clone();
        let mut now = BTreeMap::new();
        for list in ["removed", "transactions"] {
            for entry in answer[list].as_array().unwrap() {
                let state = (entry["blockhash"].clone(), entry["confirmations"].as_i64().unwrap());
                now.insert(entry["txid"].as_str().unwrap().to_owned(), state);
            }
        }
        self.told.extend(now.clone());
        for met in &world.naive.met {
            // If a transaction conflicts with a block up to the fork of the last `blockhash`, only later blocks contained
            // it, and they were disconnected. The shop need not know it.
            let was_impossible = world.naive.conflict(met.named.txid).is_some_and(|height| Some(height) <= fork);
            if !was_impossible {
                self.knows(world, met.named.txid, &before, &now)?;
            }
        }
        let deep = world.naive.met.iter().map(|met| met.named.txid);
        self.deep = deep.filter(|txid| world.naive.depth(*txid) >= i64::from(self.target)).collect();
        Ok(())
    }

    fn knows(
        &self,
        world: &World,
        txid: Txid,
        before: &BTreeMap<String, (Value, i64)>,
        now: &BTreeMap<String, (Value, i64)>,
    ) -> Result<(), String> {
        let (naive, text) = (&world.naive, txid.to_string());
        let answer = world.ask("gettransaction", json!([text, true]))?;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let visible = !answer["details"].as_array().unwrap().is_empty();
        let told = self.told.get(&text);
        // Some transactions have no entries: a conflicted one that the wallet did not send, or one with only change.
        if visible && told.is_none() {
            return Err(format!("{text} was never told of"));
        }
        match naive.place(txid) {
            Some(place) if visible => {
                let known = told.is_some_and(|(block, _)| *block == place.block.hash.to_string());
                if !known {
                    return Err(format!("{text} is in block {}, last told: {told:?}", place.block.hash));
                }
            }
            Some(_) => {}
            None => {
                let was = before.get(&text).filter(|(_, confirmations)| *confirmations >= i64::from(self.target));
                // If a transaction had `target` confirmations in the last answer and at the last call, and is no longer
                // in a block, the next answer must report it.
                if was.is_some()
                    && self.deep.contains(&txid)
                    && !now.contains_key(&text)
                    && told.is_some_and(|(block, _)| !block.is_null())
                {
                    return Err(format!("{text} left its block, and nothing was said: {was:?}"));
                }
            }
        }
        Ok(())
    }
}

fn play(steps: &[Step], polls: u64, target: u32) -> Result<(), String> {
    let mut world = World::new();
    let mut shop = Shop::new(target);
    for (number, step) in steps.iter().enumerate() {
        match step {
            // The step changes entries of old blocks, so the shop starts again.
            Step::Import { number, .. } => {
                world.play(&Step::Import { number: *number, rescan: true })?;
                shop = Shop::new(target);
            }
            Step::Label { .. } => {
                world.play(step)?;
                shop = Shop::new(target);
            }
            step => world.play(step)?,
        }
        if polls >> (number % 64) & 1 == 1 {
            shop.poll(&world).map_err(|reason| format!("after step {number}, {step:?}: {reason}"))?;
        }
    }
    shop.poll(&world)
}

#[test]
fn feeding_lastblock_back_misses_nothing() {
    let histories = (histories(25), any::<u64>(), prop_oneof![Just(1_u32), 2..7_u32]);
    check(HISTORIES, 2, histories, |(steps, polls, target)| play(&steps, polls, target));
}

//! A shop that calls listsinceblock again and again, each time with the last `lastblock`, misses nothing.

use std::collections::{BTreeMap, BTreeSet};

use bitcoin::Txid;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::check;
use super::steps::{Step, histories};
use super::world::World;

const HISTORIES: u64 = 2000;

struct Shop {
    /// What it passes as `blockhash` next.
    last: Option<String>,
    target: u32,
    /// For each transaction what it was told last: the block, or none, and the confirmations.
    told: BTreeMap<String, (Value, i64)>,
    /// What was as deep at the last call as it asks for. What was told as deep before is not, once the chain is shorter.
    deep: BTreeSet<Txid>,
}

impl Shop {
    fn new(target: u32) -> Self {
        Self { last: None, target, told: BTreeMap::new(), deep: BTreeSet::new() }
    }

    /// Calls, and checks that everything there is to know is known.
    fn poll(&mut self, world: &World) -> Result<(), String> {
        let before = std::mem::take(&mut self.told);
        let fork = self.last.as_ref().map(|hash| world.naive.fork(hash.parse().unwrap()));
        let answer = world.asked.call("listsinceblock", json!([self.last, self.target, true]))?;
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
            // What came after the last call in blocks that are gone again, and was impossible by what the shop had seen
            // before, it need not know.
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
        let answer = world.asked.call("gettransaction", json!([text, true]))?;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let visible = !answer["details"].as_array().unwrap().is_empty();
        let told = self.told.get(&text);
        // Of what a block made impossible only what was sent has entries; of what is only change, nothing has.
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
                // What was told as deep as the shop asks for, and was so at the last call, is told of at once when it is in
                // no block any more.
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
            // What is known of old blocks has changed: the shop begins anew.
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

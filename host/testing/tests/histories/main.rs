//! Random histories: payments, blocks, reorganisations, double spends, replacements, abandons, late imports, restarts.
//! After each step each answer of the history plugin is compared, byte by byte, with a naive recomputation from the raw
//! blocks and the mempool, also on a node that fails now and then. Once the fault has ended and the wallet has caught up, each
//! answer equals a recomputation from everything that the wallet could see.
//!
//! All runs play the same histories, unless `OUTRIGGER_HISTORIES=N` sets another number of histories, or `OUTRIGGER_SEED=S`
//! another seed. A failing history is shrunk, and its steps are printed.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a broken expectation fails the test")]

mod answers;
mod cast;
mod clients;
mod fed_back;
mod logged;
mod naive;
mod outages;
mod steps;
mod world;

use std::collections::{BTreeMap, HashSet};

use bitcoin::{Amount, BlockHash, OutPoint, ScriptBuf};
use outrigger_service::wallet::{Balances, BalancesQuery, Ownership, TxState, WalletCoin};
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use serde_json::{Value, json};

use answers::{Answers, Asked, satoshi};
use steps::{Step, TEXTS, faulty_histories, histories};
use world::World;

/// After each step, listsinceblock is called for this many blocks in the chain, and as many stale blocks.
const BLOCKS_ASKED: usize = 4;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().unwrap())
}

/// Runs `test` on `cases` random values, or on as many as `OUTRIGGER_HISTORIES` says.
fn check<S: Strategy>(cases: u64, seed: u8, strategy: S, test: impl Fn(S::Value) -> Result<(), String>)
where
    S::Value: std::fmt::Debug,
{
    let cases = setting("OUTRIGGER_HISTORIES", cases) as u32;
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 4000, ..Config::default() };
    let mut seeds = [seed; 32];
    seeds[..8].copy_from_slice(&setting("OUTRIGGER_SEED", 1).to_le_bytes());
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seeds));
    match runner.run(&strategy, |value| test(value).map_err(TestCaseError::fail)) {
        Ok(()) => {}
        Err(TestError::Fail(reason, value)) => panic!("{reason}\nThe steps:\n{value:#?}"),
        Err(TestError::Abort(reason)) => panic!("{reason}"),
    }
}

fn equal(what: &str, answer: Result<String, String>, expected: &Value) -> Result<(), String> {
    let expected = expected.to_string();
    match answer {
        Ok(answer) if answer == expected => Ok(()),
        answer => Err(format!("{what}\n  told   {}\n  wanted {expected}", answer.unwrap_or_else(|error| error))),
    }
}

fn compare(world: &World, number: usize) -> Result<(), String> {
    let answers = Answers { naive: &world.naive, roles: &world.roles };
    for named in &world.made {
        for watch in [false, true] {
            let (what, answer) =
                (named.txid.to_string(), world.ask("gettransaction", json!([named.txid.to_string(), watch])));
            match answers.transaction(named.txid, watch) {
                Some(expected) => equal(&what, answer, &expected)?,
                None if answer == Err("Invalid or non-wallet transaction id".into()) => {}
                None => return Err(format!("{what} is not the wallet's, and told: {answer:?}")),
            }
        }
    }
    let asked_labels = [None, Some(""), None, Some("rent"), Some("late")];
    for (which, (block, target, watch, removed)) in questions(world, number).into_iter().enumerate() {
        let asked = Asked { watch, label: asked_labels[(number + which) % 5], change: (number + which) % 3 == 1 };
        let arguments = json!([block.map(|hash| hash.to_string()), target, watch, removed, asked.change, asked.label]);
        let what = format!("listsinceblock {arguments}");
        equal(&what, world.ask("listsinceblock", arguments), &answers.since(block, target, asked, removed))?;
    }
    let labels = [None].into_iter().chain(TEXTS.into_iter().skip(1).chain(["late", "watched"]).map(Some));
    for (label, (count, skip)) in labels.flat_map(|label| [(1000, 0), (3, 2), (number, 1)].map(|part| (label, part))) {
        let arguments = json!([label.unwrap_or("*"), count, skip, number.is_multiple_of(2)]);
        let what = format!("listtransactions {arguments}");
        let expected = answers.latest(label, count, skip, number.is_multiple_of(2));
        equal(&what, world.ask("listtransactions", arguments), &expected)?;
    }
    balances_agree(world)?;
    logged::log_agrees(world)?;
    if world.has_read_all { coins_agree(world) } else { Ok(()) }
}

/// Arguments for listsinceblock: no block, the tip, the genesis block, and some blocks in the chain and stale ones. Each row is the
/// block, `target_confirmations`, `include_watchonly` and `include_removed`.
fn questions(world: &World, number: usize) -> Vec<(Option<BlockHash>, u32, bool, bool)> {
    let naive = &world.naive;
    let mut questions = vec![(None, 1, false, true), (None, 3, true, false)];
    questions.push((Some(naive.tip().hash), 2, true, true));
    questions.push((Some(naive.chain[0].hash), 6, false, true));
    let known = naive.blocks.values().filter(|block| world.is_known(block));
    let (on, off): (Vec<_>, Vec<_>) = known.partition(|block| naive.is_in_chain(block));
    for blocks in [on, off].iter().filter(|blocks| !blocks.is_empty()) {
        for n in 0..BLOCKS_ASKED {
            let block = blocks[(number * BLOCKS_ASKED + n) % blocks.len()];
            let target = [1, 2, 6, 1000][n % 4];
            questions.push((Some(block.hash), target, (number + n).is_multiple_of(2), n % 3 != 2));
        }
    }
    questions
}

/// Checks that the stored balances are the sums of the wallet's coins.
fn balances_agree(world: &World) -> Result<(), String> {
    let (coins, height) = (world.coins(), world.view().info().map_err(|error| error.to_string())?.synced.height);
    let view = world.view();
    let is_spent_from = |coin: &WalletCoin| view.spent_from(std::slice::from_ref(&coin.script)).unwrap() == [true];
    let spent = world.naive.met.iter().flat_map(|met| met.named.inputs());
    let parent = |input: OutPoint| Some((world.naive.find(input.txid)?.named.clone(), input.vout as usize));
    let spent_from: HashSet<ScriptBuf> =
        spent.filter_map(parent).map(|(parent, vout)| parent.tx.output[vout].script_pubkey.clone()).collect();
    if let Some(coin) = coins.iter().find(|coin| is_spent_from(coin) != spent_from.contains(&coin.script)) {
        return Err(format!("whether its script was spent from: {coin:?}"));
    }
    for query in [(0, false), (0, true), (1, true), (3, false), (102, true)] {
        let query = BalancesQuery { min_depth: query.0, avoid_reuse: query.1 };
        let mut wanted = Balances::default();
        for coin in
            coins.iter().filter(|coin| coin.state != TxState::Inactive || coin.ownership == Ownership::WatchOnly)
        {
            let (watched, depth) = (coin.ownership == Ownership::WatchOnly, coin.state.depth(height));
            let totals = if watched { wanted.watch_only.get_or_insert_default() } else { &mut wanted.mine };
            let sum = match coin.state {
                TxState::Inactive => continue,
                TxState::Confirmed { .. } if coin.coinbase && depth < 101 => &mut totals.immature,
                _ if query.avoid_reuse && is_spent_from(coin) && watched => continue,
                _ if query.avoid_reuse && is_spent_from(coin) => &mut wanted.used,
                TxState::InMempool if !coin.trusted => &mut totals.untrusted_pending,
                _ if depth >= query.min_depth => &mut totals.trusted,
                _ => continue,
            };
            *sum = Amount::from_sat(sum.to_sat() + coin.value.to_sat());
        }
        let told = world.view().balances(&query).map_err(|error| error.to_string())?;
        if told != wanted {
            return Err(format!("by {query:?} the balances are {told:#?}, wanted {wanted:#?}"));
        }
    }
    Ok(())
}

/// Checks that the amounts of gettransaction add up to the wallet's coins, and that the wallet's coins are those of the chain.
fn coins_agree(world: &World) -> Result<(), String> {
    let naive = &world.naive;
    let mut coins = naive.chain_coins();
    coins.retain(|outpoint, output| naive.owner(output) != Ownership::None && naive.find(outpoint.txid).is_some());
    for watch in [false, true] {
        let counts = |ownership| ownership == Ownership::Spendable || watch;
        let held = coins.values().filter(|output| counts(naive.owner(output)));
        let held: i128 = held.map(|output| i128::from(output.value.to_sat())).sum();
        let mut told = 0;
        for met in naive.met.iter().filter(|met| naive.place(met.named.txid).is_some()) {
            let answer = world.ask("gettransaction", json!([met.named.txid.to_string(), watch]))?;
            let answer: Value = serde_json::from_str(&answer).unwrap();
            told += satoshi(&answer["amount"]) + answer.get("fee").map_or(0, satoshi);
            let immature = answer["details"].as_array().unwrap().iter().filter(|e| e["category"] == "immature");
            told += immature.map(|entry| satoshi(&entry["amount"])).sum::<i128>();
        }
        if told != held {
            return Err(format!("the amounts add up to {told}, the coins (watched: {watch}) to {held}"));
        }
    }
    // An unconfirmed transaction of the wallet spends its inputs, unless it is abandoned or conflicts with the chain or the
    // mempool.
    for met in &naive.met {
        let txid = met.named.txid;
        let waits = naive.in_pool(txid) || naive.is_idle(txid) && naive.pool_conflicts(met).is_empty();
        if naive.place(txid).is_none() && waits {
            met.named.inputs().for_each(|input| drop(coins.remove(&input)));
        }
    }
    let own = world.coins().into_iter().filter(|coin| matches!(coin.state, TxState::Confirmed { .. }));
    let own: BTreeMap<OutPoint, u64> = own.map(|coin| (coin.outpoint, coin.value.to_sat())).collect();
    let wanted: BTreeMap<OutPoint, u64> = coins.into_iter().map(|(at, output)| (at, output.value.to_sat())).collect();
    if own == wanted { Ok(()) } else { Err(format!("the coins are {own:#?}, wanted {wanted:#?}")) }
}

fn play(steps: &[Step]) -> Result<(), String> {
    let mut world = World::new();
    for (number, step) in steps.iter().enumerate() {
        let outcome = world.play(step).and_then(|()| compare(&world, number));
        outcome.map_err(|reason| format!("after step {number}, {step:?}: {reason}"))?;
    }
    Ok(())
}

#[test]
fn every_answer_is_that_of_a_recomputation_from_the_raw_blocks() {
    check(150, 1, histories(30), |steps| play(&steps));
}

#[test]
fn every_answer_after_a_fault_of_the_node_is_that_of_a_recomputation() {
    check(60, 3, faulty_histories(20), |steps| play(&steps));
}

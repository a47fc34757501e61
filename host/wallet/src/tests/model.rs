//! Random payments, blocks and reorganisations, compared with a recomputation from the chain alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use bitcoin::{OutPoint, ScriptBuf, Transaction};
use outrigger_service::chain::BlockRef;
use outrigger_service::wallet::TxState;
use outrigger_service::{Chain, Mempool, Scope};
use proptest::prelude::*;

use super::{Harness, elsewhere, foreign, spend};
use outrigger_node::events::{NodeEvent, Observer};

#[derive(Clone, Debug)]
enum Step {
    /// A payment from elsewhere to one of our scripts.
    Pay { script: usize, value: u64 },
    /// A payment of one of our coins to elsewhere, with change.
    Spend { coin: usize, change: usize },
    /// A block with the first so many unconfirmed transactions, paying its subsidy to us or elsewhere.
    Mine { take: usize, ours: bool },
    /// The last block leaves the chain; what was in it goes back to the mempool, or is lost.
    Disconnect { lost: bool },
    /// The host is stopped and started.
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..4_usize, 1..1000_u64).prop_map(|(script, value)| Step::Pay { script, value }),
        4 => (0..8_usize, 0..4_usize).prop_map(|(coin, change)| Step::Spend { coin, change }),
        4 => (0..5_usize, any::<bool>()).prop_map(|(take, ours)| Step::Mine { take, ours }),
        2 => any::<bool>().prop_map(|lost| Step::Disconnect { lost }),
        1 => Just(Step::Restart),
    ];
    prop::collection::vec(step, 1..25)
}

/// What is ours by the chain and the mempool alone: outpoint to value, and whether it is confirmed. A transaction of ours
/// that was lost still spends what it spends: it may come back.
fn recompute(harness: &Harness, scripts: &[ScriptBuf], sent: &[OutPoint]) -> BTreeMap<OutPoint, (u64, bool)> {
    let mut coins = BTreeMap::new();
    let mut take = |transaction: &Transaction, confirmed| {
        for input in &transaction.input {
            coins.remove(&input.previous_output);
        }
        for (vout, output) in (0_u32..).zip(&transaction.output) {
            if scripts.contains(&output.script_pubkey) {
                let outpoint = OutPoint { txid: transaction.compute_txid(), vout };
                coins.insert(outpoint, (output.value.to_sat(), confirmed));
            }
        }
    };
    let tip = harness.chain.tip(Scope::NONE).unwrap().height;
    for height in 1..=tip {
        let info = harness.chain.block_info(Scope::NONE, BlockRef::Height { height }).unwrap().unwrap();
        harness.block(info.hash).txdata.iter().for_each(|transaction| take(transaction, true));
    }
    harness.pool.lock().iter().for_each(|transaction| take(transaction, false));
    coins.retain(|outpoint, _| !sent.contains(outpoint));
    coins
}

/// What the wallet sent, and whether it was given up since: it built on a coinbase whose block is gone.
#[derive(Default)]
struct Sent(Vec<(Transaction, bool)>);

impl Sent {
    /// What is spent by what was not given up.
    fn outpoints(&self) -> Vec<OutPoint> {
        let kept = self.0.iter().filter(|(_, given_up)| !given_up);
        kept.flat_map(|(transaction, _)| transaction.input.iter().map(|input| input.previous_output)).collect()
    }

    /// A block is gone: what builds on its coinbase is given up.
    fn give_up(&mut self, coinbase: &Transaction) {
        let mut gone = vec![coinbase.compute_txid()];
        // What was sent stands behind what it builds on.
        for (transaction, given_up) in &mut self.0 {
            if transaction.input.iter().any(|input| gone.contains(&input.previous_output.txid)) {
                gone.push(transaction.compute_txid());
                *given_up = true;
            }
        }
    }
}

fn run(steps: Vec<Step>) {
    let mut harness = Harness::with_wallet();
    let scripts: Vec<ScriptBuf> = (0..4).map(|_| harness.address(Some(""))).collect();
    let mut counter = 0_u8;
    let mut sent = Sent::default();
    for step in steps {
        match step {
            Step::Pay { script, value } => {
                counter += 1;
                harness.accept(&spend(&[elsewhere(counter)], &[(&scripts[script], value)]));
            }
            Step::Spend { coin, change } => {
                let coins = harness.coins();
                let usable: Vec<_> = coins.iter().filter(|coin| !matches!(coin.state, TxState::Inactive)).collect();
                if let Some(coin) = usable.get(coin % usable.len().max(1)) {
                    let value = coin.value.to_sat();
                    let part = value / 2;
                    let outputs = [(&foreign(1), part), (&scripts[change], value - part)];
                    let payment = spend(&[coin.outpoint], &outputs);
                    harness.accept(&payment);
                    sent.0.push((payment, false));
                }
            }
            Step::Mine { take, ours } => {
                counter += 1;
                let chosen = harness.pool.lock().iter().take(take).cloned().collect();
                harness.mine_to(if ours { scripts[0].clone() } else { foreign(counter) }, chosen);
            }
            Step::Disconnect { lost } => disconnect(&harness, lost, &mut sent),
            Step::Restart => {
                harness.restart(|_| {});
                tell_resubmitted(&harness);
            }
        }
        let expected = recompute(&harness, &scripts, &sent.outpoints());
        let found: BTreeMap<_, _> = harness
            .coins()
            .into_iter()
            // What is neither in the chain nor in the mempool is the wallet's alone.
            .filter(|coin| coin.state != TxState::Inactive)
            .map(|coin| (coin.outpoint, (coin.value.to_sat(), matches!(coin.state, TxState::Confirmed { .. }))))
            .collect();
        assert_eq!(found, expected);
    }
}

/// At the start the wallet offers its lost transactions again. The mempool in memory takes them and tells nobody.
fn tell_resubmitted(harness: &Harness) {
    let ids = harness.mempool.ids(Scope::NONE).unwrap();
    for raw in harness.mempool.transactions(Scope::NONE, ids).unwrap().into_iter().flatten() {
        let transaction: Transaction = bitcoin::consensus::deserialize(&raw.raw).unwrap();
        if harness.pool.lock().contains(&transaction) {
            continue;
        }
        harness.pool.lock().push(transaction.clone());
        let time = harness.chain.time(Scope::NONE).unwrap();
        harness.manager.notify(NodeEvent::TransactionAdded { transaction: Arc::new(transaction), time, sequence: 0 });
    }
}

/// Takes the last block off, with everything in the mempool that would spend a coinbase or a lost transaction of it.
fn disconnect(harness: &Harness, lost: bool, sent: &mut Sent) {
    let tip = harness.chain.tip(Scope::NONE).unwrap();
    if tip.height == 0 {
        return;
    }
    let block = harness.block(tip.hash);
    let kept = if lost { &[][..] } else { &block.txdata[1..] };
    harness.disconnect();
    sent.give_up(&block.txdata[0]);
    let mut gone: Vec<_> = block.txdata.iter().filter(|t| !kept.contains(t)).map(|t| t.compute_txid()).collect();
    let mut pool = harness.pool.lock().clone();
    pool.splice(0..0, kept.iter().cloned());
    let mut rest = Vec::new();
    for transaction in pool {
        if transaction.input.iter().any(|input| gone.contains(&input.previous_output.txid)) {
            gone.push(transaction.compute_txid());
        } else {
            rest.push(transaction);
        }
    }
    let before = harness.pool.lock().clone();
    for transaction in before {
        harness.take_out(transaction.compute_txid(), outrigger_node::events::Removal::Dropped);
    }
    rest.iter().for_each(|transaction| harness.accept(transaction));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn coins_of_random_histories_are_those_of_the_chain(steps in steps()) {
        run(steps);
    }
}

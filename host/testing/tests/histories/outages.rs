//! Plays faults of the node: it is slow, hangs, is unreachable, returns no blocks, goes back, or forgets blocks.
//!
//! While the node is unreachable or its new blocks are unreadable, the wallet sees no changes. When the fault ends, the
//! wallet moves from its last block to the node's tip, and does not learn of changes in between.

use std::rc::Rc;
use std::time::Duration;

use outrigger_node::{Node as _, NodeEvent};
use outrigger_service::ErrorKind;
use serde_json::json;

use super::cast::STRANGER;
use super::naive::RawBlock;
use super::steps::{After, Fault, Make, Pick, Plan, STEPS_DURING_FAULT, Step};
use super::world::{WALLET, World, nth};

/// The delay of a slow node per block.
const SLOW: Duration = Duration::from_micros(200);

pub struct Outage {
    fault: Fault,
    /// The seconds by which the clock moves once the wallet has caught up. Until then the clock stops, since it is unknown
    /// when the wallet first sees a transaction.
    pub seconds: u64,
}

impl World {
    /// Whether the wallet will see all current changes, rather than only their result.
    pub fn is_seen(&self) -> bool {
        let fault = self.outage.as_ref().map(|outage| outage.fault);
        !matches!(fault, Some(Fault::Absent | Fault::Unreadable))
    }

    /// Whether the node knows a block and its branch.
    pub fn is_known(&self, block: &RawBlock) -> bool {
        let mut block = block;
        while !self.node.is_in_chain(block) {
            if self.forgotten.contains(&block.hash) {
                return false;
            }
            block = &self.node.blocks[&block.previous];
        }
        true
    }

    /// Plays steps while the node fails. The error names a wrong answer.
    pub fn fail(&mut self, fault: Fault, first: &Plan, steps: &[Step], last: &Plan) -> Result<(), String> {
        match fault {
            Fault::Slow => self.host.node.faults.set_slow(SLOW),
            fault => self.begin(fault, first),
        }
        for step in steps {
            self.play(step)?;
        }
        match fault {
            Fault::Slow => self.host.node.faults.set_slow(Duration::ZERO),
            _ => self.end(last),
        }
        Ok(())
    }

    /// Starts a fault. The wallet notices it when a block arrives.
    fn begin(&mut self, fault: Fault, first: &Plan) {
        self.view();
        let faults = &self.host.node.faults;
        match fault {
            Fault::Slow => {}
            Fault::Hanging => faults.set_hanging(true),
            Fault::Absent => faults.set_absent(true),
            Fault::Unreadable => {
                let height = self.host.node.tip().height;
                (height..).skip(1).take(STEPS_DURING_FAULT + 2).for_each(|height| faults.set_unreadable(height));
            }
        }
        self.outage = Some(Outage { fault, seconds: 0 });
        self.come_new(first);
        match fault {
            Fault::Slow => {}
            Fault::Hanging => self.host.node.faults.wait_for_a_victim(),
            Fault::Absent => assert!(self.host.wallet(WALLET).is_ok(), "what the wallet knows it tells"),
            Fault::Unreadable => {
                assert_eq!(self.host.wallet(WALLET).err().map(|error| error.kind), Some(ErrorKind::Storage));
            }
        }
        let lags = self.host.wallets.status().iter().any(|status| status.name == WALLET && status.lagging);
        assert_eq!(lags, !self.is_seen(), "{fault:?}");
    }

    /// Ends the fault. If the wallet saw no changes meanwhile, the node announces its last block.
    fn end(&mut self, last: &Plan) {
        let is_seen = self.is_seen();
        if !is_seen {
            // The block arrives before the fault ends, so that the wallet has a single state to catch up with.
            self.come_new(last);
            let _ = self.host.wallet(WALLET);
        }
        let faults = &self.host.node.faults;
        faults.set_hanging(false);
        faults.set_absent(false);
        faults.set_readable();
        if !is_seen {
            self.naive.catch_up(&self.node, self.now());
            let tip = self.host.node.tip();
            self.host.node.tell([NodeEvent::BlockConnected { hash: tip.hash, height: tip.height }]);
        }
        let outage = self.outage.take();
        self.view();
        assert!(self.host.wallets.status().iter().all(|status| !status.lagging || status.name != WALLET));
        self.tick(outage.map_or(0, |outage| outage.seconds));
    }

    /// Mines a block.
    pub fn come(&mut self, plan: &Plan) {
        let waiting = self.node.pool.clone();
        let on = vec![self.mine(plan, &waiting)];
        self.settle(Vec::new(), on, Vec::new());
    }

    /// Mines a block that is new to the wallet. The wallet may know an earlier block without asking the node.
    fn come_new(&mut self, plan: &Plan) {
        let mut plan = plan.clone();
        plan.makes.push(Make { inputs: vec![Pick::Fresh], outputs: vec![(STRANGER, 1)], signals: false });
        self.come(&plan);
    }

    /// Moves the node back to an ancestor of its tip. If `told`, the node announces its new tip, but no disconnected blocks.
    pub fn go_back(&mut self, depth: usize, told: bool, after: &After) {
        let tip = self.node.chain.last().cloned();
        let (_, back) = self.leave(depth);
        self.settle_untold(Vec::new(), back);
        if told {
            self.tell_tip();
        }
        self.view();
        match (after, tip) {
            (After::Again, Some(tip)) if !self.node.is_in_chain(&tip) => self.return_to(tip),
            (After::Others(plans), _) => plans.iter().for_each(|plan| self.come(plan)),
            _ => {}
        }
    }

    /// Makes the node forget a stale block.
    pub fn forget(&mut self, number: usize) {
        let left = self.node.blocks.values().filter(|block| !self.node.is_in_chain(block));
        if let Some(block) = nth(left.cloned(), number) {
            self.forget_block(&block);
        }
    }

    fn forget_block(&mut self, block: &Rc<RawBlock>) {
        self.forgotten.insert(block.hash);
        self.host.node.faults.forget(block.hash);
    }

    /// Plays [`Step::ForgetUntold`]: a block arrives, is replaced, and is forgotten before the wallet learns of it.
    pub fn forget_untold(&mut self, block: &Plan, lost: bool, plans: &[Plan]) {
        self.view();
        let known = (self.naive.clone(), self.node.pool.clone());
        let (hash, height) = self.mine(block, &known.1);
        let (_, back) = self.leave(1);
        // The wallet never sees the block.
        self.naive = known.0;
        let stale = self.node.blocks[&hash].clone();
        self.forget_block(&stale);
        let waiting: Vec<_> = back.iter().chain(&self.node.pool).cloned().collect();
        let on = plans.iter().map(|plan| self.mine(plan, &waiting)).collect();
        self.host.node.tell([NodeEvent::BlockConnected { hash, height }]);
        self.settle(vec![(hash, height)], on, if lost { Vec::new() } else { back });
    }

    /// Restarts the host. While the node is unreachable, the wallet stays at its last block.
    pub fn restart(&mut self) {
        self.view();
        self.host.restart(|_| {});
        self.plugin = self.host.start(json!({}));
        if self.is_seen() {
            self.naive.read_pool(self.now());
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // The node and the wallets refer to each other, so without this their threads would outlive the history.
        self.host.node.faults.set_hanging(false);
        self.host.wallets.shutdown();
    }
}

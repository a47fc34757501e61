//! Plays a history: a chain, a mempool that obeys the chain's rules, and clients that change the wallet. The wallet engine
//! and the naive model see the same changes.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use bitcoin::hashes::Hash;
use bitcoin::{Amount, BlockHash, OutPoint, ScriptBuf, Sequence, TxOut, Txid};
use outrigger_history::HistoryPlugin;
use outrigger_sdk::testing::TestPlugin;
use outrigger_service::chain::{BlockRef, Coin};
use outrigger_service::wallet::WalletCoin;
use outrigger_service::wire::Blob;
use outrigger_service::{Chain, Scope};
use outrigger_wallet_engine::WalletView;
use serde_json::{Value, json};

use super::cast::{INDEXES, NOTE, Role, STRANGER, first_imports, late, roles};
use super::naive::{Naive, Named, RawBlock};
use super::outages::Outage;
use super::steps::{Make, Pick, Plan, REMARKS, Step, TEXTS};
use outrigger_node::{Node, NodeEvent, Removal};
use outrigger_scripted_node::ScriptedNode;
use outrigger_testing::TestHost;
use outrigger_testing::made::{foreign, spend};

const FRESH: u64 = 100_000;
const FEE: u64 = 1000;
const MATURITY: u32 = 100;
/// How far the clock is ahead of the genesis block, in seconds.
const AHEAD: u64 = 1000;
/// The seconds between blocks by the clock; headers are ten minutes apart.
const BLOCK_SECONDS: u64 = 500;

pub const WALLET: &str = "w";

/// The node, the wallet, and the models of both.
pub struct World {
    pub host: TestHost<ScriptedNode>,
    /// The history plugin, in the test's process and without a network.
    pub plugin: TestPlugin<HistoryPlugin>,
    pub naive: Naive,
    /// The model of the node's chain and mempool. While the node fails, the wallet may not see all of it.
    pub node: Naive,
    pub forgotten: BTreeSet<BlockHash>,
    /// The current fault.
    pub outage: Option<Outage>,
    pub roles: Vec<Role>,
    /// All transactions ever made.
    pub made: Vec<Rc<Named>>,
    /// Whether the wallet has rescanned the chain since the last import. If not, it may lack transactions of old blocks.
    pub has_read_all: bool,
    fresh: u64,
}

/// Blocks that joined or left the best chain: hash and height.
pub type Moved = Vec<(BlockHash, u32)>;

pub fn nth<T>(items: impl IntoIterator<Item = T>, number: usize) -> Option<T> {
    let mut items: Vec<T> = items.into_iter().collect();
    if items.is_empty() { None } else { Some(items.swap_remove(number % items.len())) }
}

impl World {
    pub fn new() -> Self {
        let host = TestHost::over(ScriptedNode::new());
        // The wallet offers its payments again at times of its own, which the models do not know.
        host.node.faults.drop_submitted();
        host.create_wallet(WALLET, |options| options.blank = true).unwrap();
        let genesis = host.node.tip();
        host.node.chain.set_mock_time(Scope::NONE, u64::from(genesis.time) + AHEAD).unwrap();
        let plugin = host.start(json!({}));
        let mut world = Self {
            host,
            plugin,
            naive: Naive::default(),
            node: Naive::default(),
            forgotten: BTreeSet::new(),
            outage: None,
            roles: roles(),
            made: Vec::new(),
            has_read_all: true,
            fresh: 0,
        };
        let block = Rc::new(world.raw(genesis.hash));
        for model in [&mut world.naive, &mut world.node] {
            model.blocks.insert(genesis.hash, block.clone());
            model.chain.push(block.clone());
        }
        for (role, index) in INDEXES {
            world.naive.indexes.push((index, world.roles[role].script.clone()));
        }
        for import in first_imports() {
            world.import(import);
        }
        world
    }

    /// Plays a step. The error names a wrong answer.
    pub fn play(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Pay(make) => {
                if let Some((named, mut pool)) = self.make(make, self.node.pool.clone()) {
                    pool.push(named);
                    self.set_pool(pool);
                }
            }
            Step::Mine(plan) => self.come(plan),
            Step::Age(blocks) => {
                let plan = Plan { take: 0, makes: Vec::new(), reward: STRANGER };
                let on = (0..*blocks).map(|_| self.mine(&plan, &[])).collect();
                self.settle(Vec::new(), on, Vec::new());
            }
            Step::Reorganise { depth, plans, lost } => {
                let (off, back) = self.leave(*depth);
                let waiting: Vec<_> = back.iter().chain(&self.node.pool).cloned().collect();
                let on = plans.iter().map(|plan| self.mine(plan, &waiting)).collect();
                self.settle(off, on, if *lost { Vec::new() } else { back });
            }
            Step::Return(number) => self.go_back_to(*number),
            Step::Expire(number) => {
                if let Some(gone) = nth(self.node.pool.clone(), *number) {
                    let pool = without(self.node.pool.clone(), gone.txid);
                    self.set_pool(pool);
                }
            }
            Step::Again(number) => {
                let nowhere = self.made.iter().filter(|named| {
                    let known = self.node.in_pool(named.txid) || self.node.place(named.txid).is_some();
                    !known && !named.tx.is_coinbase()
                });
                if let Some(named) = nth(nowhere.cloned(), *number)
                    && self.fits(&named, &self.node.pool)
                {
                    let mut pool = self.node.pool.clone();
                    pool.push(named);
                    self.set_pool(pool);
                }
            }
            Step::Abandon(number) => return self.abandon(*number),
            Step::Import { number, rescan } => {
                self.import(late(&self.roles, *number));
                self.has_read_all = *rescan;
                if *rescan {
                    self.rescan();
                }
            }
            Step::Label { role, label } => self.label(*role, TEXTS[*label]),
            Step::Remark { which, key, value } => self.remark(*which, REMARKS[*key], TEXTS[*value]),
            Step::Tick(seconds) => self.tick(*seconds),
            Step::Restart => self.restart(),
            Step::Outage { fault, first, steps, last } => self.fail(*fault, first, steps, last)?,
            Step::GoBack { depth, told, after } => self.go_back(*depth, *told, after),
            Step::Forget(number) => self.forget(*number),
            Step::ForgetUntold { block, lost, plans } => self.forget_untold(block, *lost, plans),
        }
        Ok(())
    }

    /// The answer as the client reads it, or the error's message.
    pub fn ask(&self, method: &str, arguments: Value) -> Result<String, String> {
        self.plugin.call_json(method, arguments).map_err(|error| error.message)
    }

    /// The wallet at the node's tip, or at its last block while the node fails.
    pub fn view(&self) -> WalletView {
        match self.outage {
            None => self.host.wallet(WALLET).unwrap(),
            Some(_) => self.host.wallets.select_as_it_stands(Some(WALLET)).unwrap(),
        }
    }

    pub fn coins(&self) -> Vec<WalletCoin> {
        let (view, mut all, mut after) = (self.view(), Vec::new(), None::<Blob>);
        loop {
            let batch = view.coins(after.as_deref(), 3).unwrap();
            all.extend(batch.coins);
            after = batch.next;
            if after.is_none() {
                return all;
            }
        }
    }

    fn height_of(&self, hash: BlockHash) -> u32 {
        let info = self.host.node.chain.block_info(Scope::NONE, BlockRef::Hash { hash });
        info.unwrap().unwrap().height
    }

    pub fn now(&self) -> u64 {
        self.host.node.time()
    }

    pub fn tick(&mut self, seconds: u64) {
        if let Some(outage) = &mut self.outage {
            outage.seconds += seconds;
            return;
        }
        // The wallet must process earlier transactions before the clock moves.
        self.view();
        self.host.node.chain.set_mock_time(Scope::NONE, self.now() + seconds).unwrap();
    }

    fn raw(&self, hash: BlockHash) -> RawBlock {
        let block = self.host.node.block(hash).unwrap();
        RawBlock {
            hash,
            previous: block.header.prev_blockhash,
            height: self.height_of(hash),
            time: block.header.time,
            transactions: block.txdata.into_iter().map(Named::new).collect(),
        }
    }

    /// The output, if the next block could spend it after the transactions `with`.
    fn coin(&self, outpoint: &OutPoint, with: &[Rc<Named>]) -> Option<TxOut> {
        if with.iter().any(|named| named.inputs().any(|input| input == *outpoint)) {
            return None;
        }
        if let Some(parent) = with.iter().find(|named| named.txid == outpoint.txid) {
            return parent.tx.output.get(outpoint.vout as usize).cloned();
        }
        let coin = self.host.node.chain.coins(Scope::NONE, vec![*outpoint]).unwrap().remove(0)?;
        let next = self.host.node.tip().height + 1;
        (!coin.coinbase || next - coin.height >= MATURITY).then_some(coin.output)
    }

    fn fits(&self, named: &Named, with: &[Rc<Named>]) -> bool {
        let known = with.iter().any(|other| other.txid == named.txid);
        !known && named.inputs().all(|input| self.coin(&input, with).is_some())
    }

    fn new_coin(&mut self) -> OutPoint {
        self.fresh += 1;
        let mut txid = [0xfe; 32];
        txid[..8].copy_from_slice(&self.fresh.to_le_bytes());
        let outpoint = OutPoint { txid: Txid::from_byte_array(txid), vout: 0 };
        let value = Amount::from_sat(FRESH + self.fresh);
        let output = TxOut { value, script_pubkey: foreign(0) };
        self.host.node.chain.add_coin(outpoint, Coin { output, height: 0, coinbase: false });
        outpoint
    }

    /// Makes a transaction that can follow `with`. Returns it, and `with` without the transactions that it replaces.
    fn make(&mut self, make: &Make, mut with: Vec<Rc<Named>>) -> Option<(Rc<Named>, Vec<Rc<Named>>)> {
        let mut inputs = BTreeSet::new();
        for pick in &make.inputs {
            match pick {
                Pick::Fresh => inputs.insert(self.new_coin()),
                Pick::Coin(number) => {
                    let all = self.made.iter().flat_map(|named| outpoints(named));
                    let coins: Vec<_> = all.filter(|outpoint| self.coin(outpoint, &with).is_some()).collect();
                    inputs.insert(nth(coins, *number)?)
                }
                Pick::Contested(number) => {
                    let open = self.made.iter().filter(|named| self.node.place(named.txid).is_none());
                    let contested = nth(open.flat_map(|named| named.inputs()), *number)?;
                    let rivals: Vec<Txid> = with
                        .iter()
                        .filter(|named| named.inputs().any(|input| input == contested))
                        .map(|named| named.txid)
                        .collect();
                    with = rivals.into_iter().fold(with, without);
                    inputs.insert(contested)
                }
            };
        }
        let mut total = 0;
        for input in &inputs {
            total += self.coin(input, &with)?.value.to_sat();
        }
        let shares: u64 = make.outputs.iter().map(|(_, share)| share).sum();
        let part = total.checked_sub(FEE)? / shares;
        let outputs: Vec<(&ScriptBuf, u64)> = make
            .outputs
            .iter()
            .map(|(role, share)| (&self.roles[*role].script, if *role == NOTE { 0 } else { part * share }))
            .collect();
        let mut tx = spend(&inputs.into_iter().collect::<Vec<_>>(), &outputs);
        if make.signals {
            tx.input[0].sequence = Sequence::ENABLE_RBF_NO_LOCKTIME;
        }
        let named = Named::new(tx);
        if !self.fits(&named, &with) || self.node.place(named.txid).is_some() {
            return None;
        }
        if !self.made.contains(&named) {
            self.made.push(named.clone());
        }
        Some((named, with))
    }

    /// Replaces the mempool, and announces the tip.
    fn set_pool(&mut self, pool: Vec<Rc<Named>>) {
        self.settle_pool(pool, Vec::new());
        self.tell_tip();
    }

    pub fn tell_tip(&self) {
        let tip = self.host.node.tip();
        self.host.node.tell([NodeEvent::TipChanged { hash: tip.hash, height: tip.height }]);
    }

    /// Replaces the mempool, and sends all events but the tip's.
    fn settle_pool(&mut self, pool: Vec<Rc<Named>>, mut events: Vec<NodeEvent>) {
        self.host.node.mempool.clear();
        pool.iter().for_each(|named| self.host.node.mempool.add(named.tx.clone(), Amount::from_sat(FEE)));
        let time = self.now();
        for gone in self.node.pool.iter().rev().filter(|named| !pool.contains(named)) {
            let confirmed = self.node.place(gone.txid).is_some();
            let reason = if confirmed { Removal::Confirmed } else { Removal::Dropped };
            events.push(NodeEvent::TransactionRemoved { txid: gone.txid, reason, sequence: 0 });
        }
        for new in pool.iter().filter(|named| !self.node.pool.contains(named)) {
            let transaction = Arc::new(new.tx.clone());
            events.push(NodeEvent::TransactionAdded { transaction, time, sequence: 0 });
        }
        if self.is_seen() {
            self.naive.set_pool(pool.clone(), time);
        }
        self.node.set_pool(pool, time);
        self.host.node.tell(events);
    }

    pub fn mine(&mut self, plan: &Plan, waiting: &[Rc<Named>]) -> (BlockHash, u32) {
        let mut chosen = Vec::new();
        for (number, named) in waiting.iter().enumerate() {
            let wanted = plan.take >> (number % 16) & 1 == 1;
            if wanted && self.node.place(named.txid).is_none() && self.fits(named, &chosen) {
                chosen.push(named.clone());
            }
        }
        for make in &plan.makes {
            if let Some((named, with)) = self.make(make, chosen.clone()) {
                chosen = with;
                chosen.push(named);
            }
        }
        let transactions = chosen.iter().map(|named| named.tx.clone()).collect();
        let hash = self.host.node.chain.mine_to(self.roles[plan.reward].script.clone(), transactions);
        self.connected(hash)
    }

    fn connected(&mut self, hash: BlockHash) -> (BlockHash, u32) {
        // A forgotten block may be mined again.
        self.forgotten.remove(&hash);
        self.host.node.faults.remember(hash);
        let block = Rc::new(self.raw(hash));
        let height = block.height;
        if !self.made.contains(&block.transactions[0]) {
            self.made.push(block.transactions[0].clone());
        }
        if self.is_seen() {
            self.naive.connect(block.clone(), self.now());
        }
        self.node.connect(block, self.now());
        (hash, height)
    }

    /// Disconnects blocks. Returns them and their transactions.
    pub fn leave(&mut self, depth: usize) -> (Moved, Vec<Rc<Named>>) {
        let (mut off, mut back) = (Vec::new(), Vec::new());
        while off.len() < depth && self.node.tip().height > 0 {
            let tip = self.node.chain.last().unwrap().clone();
            self.host.node.chain.disconnect();
            if self.is_seen() {
                self.naive.disconnect();
            }
            self.node.disconnect();
            off.push((tip.hash, tip.height));
            back.splice(0..0, tip.transactions[1..].iter().cloned());
        }
        (off, back)
    }

    fn go_back_to(&mut self, number: usize) {
        let left = self.node.blocks.values().filter(|block| !self.node.is_in_chain(block) && self.is_known(block));
        if let Some(block) = nth(left.cloned(), number) {
            self.return_to(block);
        }
    }

    /// Makes the chain return to a stale block, whose branch the node knows.
    pub fn return_to(&mut self, mut block: Rc<RawBlock>) {
        let mut path = Vec::new();
        while !self.node.is_in_chain(&block) {
            path.push(block.hash);
            block = self.node.blocks[&block.previous].clone();
        }
        let (off, back) = self.leave((self.node.tip().height - block.height) as usize);
        let mut on = Vec::new();
        for hash in path.into_iter().rev() {
            self.host.node.chain.reconsider_block(Scope::NONE, hash).unwrap();
            on.push(self.connected(hash));
        }
        self.settle(off, on, back);
    }

    /// Finishes a change of the chain: the mempool keeps the still valid transactions of `back` and of its own. Sends all
    /// events, and moves the clock.
    pub fn settle(&mut self, off: Moved, on: Moved, back: Vec<Rc<Named>>) {
        let off = off.into_iter().map(|(hash, height)| NodeEvent::BlockDisconnected { hash, height });
        let found = on.len() as u64;
        let on = on.into_iter().map(|(hash, height)| NodeEvent::BlockConnected { hash, height });
        self.settle_untold(off.chain(on).collect(), back);
        self.tell_tip();
        self.tick(found * BLOCK_SECONDS);
    }

    /// Like [`Self::settle`], but sends `events` instead of the blocks', sends no tip, and leaves the clock.
    pub fn settle_untold(&mut self, events: Vec<NodeEvent>, back: Vec<Rc<Named>>) {
        let mut pool: Vec<Rc<Named>> = Vec::new();
        for named in back.into_iter().chain(self.node.pool.clone()) {
            if self.node.place(named.txid).is_none() && self.fits(&named, &pool) {
                pool.push(named);
            }
        }
        self.settle_pool(pool, events);
    }
}

/// The outputs with a value.
fn outpoints(named: &Named) -> impl Iterator<Item = OutPoint> {
    let txid = named.txid;
    let worth = (0_u32..).zip(&named.tx.output).filter(|(_, output)| output.value > Amount::ZERO);
    worth.map(move |(vout, _)| OutPoint { txid, vout })
}

/// The transactions without one of them and its descendants.
fn without(transactions: Vec<Rc<Named>>, txid: Txid) -> Vec<Rc<Named>> {
    let mut gone = BTreeSet::from([txid]);
    let mut kept = Vec::new();
    for named in transactions {
        if gone.contains(&named.txid) || named.inputs().any(|input| gone.contains(&input.txid)) {
            gone.insert(named.txid);
        } else {
            kept.push(named);
        }
    }
    kept
}

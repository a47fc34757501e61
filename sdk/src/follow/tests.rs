use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use bitcoin::hashes::Hash;
use bitcoin::{Amount, OutPoint, ScriptBuf, TxIn, absolute, transaction};
use outrigger_service::wire::to_bytes;
use outrigger_service::{Chain, Scope};
use outrigger_values::error::RpcErrorCode;

use super::*;
use crate::testing::StubHost;

const LONG: Duration = Duration::from_secs(60);

/// Keeps the balance of each script in a row that blocks read and change.
struct Balances {
    host: Host,
    /// If set, the follower waits here before each block.
    gate: Option<Receiver<Result>>,
    /// Receives the heights of connected blocks, and the negative heights of disconnected ones.
    seen: Sender<i64>,
}

impl Balances {
    fn change(&self, block: &BlockWithSpent, store: &mut Batch, sign: i64) -> Result {
        self.gate.as_ref().map_or(Ok(()), |gate| gate.recv()?)?;
        self.seen.send(sign * i64::from(block.height))?;
        let mut add = |output: &TxOut, sign: i64| -> Result {
            let key = output.script_pubkey.as_bytes();
            let old = store.get(&self.host, Scope::NONE, key)?.unwrap_or_else(|| vec![0; 8]);
            let new = i64::from_le_bytes(old.try_into().unwrap()) + sign * i64::try_from(output.value.to_sat())?;
            if new == 0 {
                store.delete(key)
            } else {
                store.put(key, &new.to_le_bytes())
            }
            Ok(())
        };
        // The first coinbase cannot be spent.
        for (transaction, spent) in block.transactions().filter(|_| block.height > 0) {
            assert_eq!(spent.len(), if transaction.is_coinbase() { 0 } else { transaction.input.len() });
            transaction.output.iter().try_for_each(|output| add(output, sign))?;
            spent.iter().try_for_each(|output| add(output, -sign))?;
        }
        Ok(())
    }
}

impl Follower for Balances {
    fn connect(&mut self, block: &BlockWithSpent, store: &mut Batch) -> Result {
        self.change(block, store, 1)
    }

    fn disconnect(&mut self, block: &BlockWithSpent, store: &mut Batch) -> Result {
        self.change(block, store, -1)
    }
}

fn start(stub: &StubHost, gate: Option<Receiver<Result>>) -> (Following, Receiver<i64>) {
    let (seen, heights) = channel();
    (stub.handle().follow(Balances { host: stub.handle(), gate, seen }).unwrap(), heights)
}

fn follow_to_tip(stub: &StubHost, following: &Following) {
    let tip = stub.chain.tip(Scope::NONE).unwrap();
    following.wait_for(&tip, LONG).unwrap();
    assert_eq!(following.cursor(), Some(Cursor { hash: tip.hash, height: tip.height }));
}

/// Checks that the rows of the store are the balances of the chain's coins.
fn compare(stub: &StubHost) {
    let mut expected = BTreeMap::<Vec<u8>, Vec<u8>>::new();
    let mut sums = BTreeMap::<Vec<u8>, u64>::new();
    for coin in stub.chain.coins_after(Scope::NONE, None, u32::MAX).unwrap() {
        let output = coin.coin.output;
        *sums.entry(output.script_pubkey.into_bytes()).or_default() += output.value.to_sat();
    }
    let tip = stub.chain.tip(Scope::NONE).unwrap();
    expected.insert(CURSOR_KEY.to_vec(), to_bytes(&Cursor { hash: tip.hash, height: tip.height }));
    expected.extend(sums.into_iter().map(|(script, sum)| (script, sum.to_le_bytes().to_vec())));
    assert_eq!(stub.store.rows(), expected);
}

fn script(number: u8) -> ScriptBuf {
    ScriptBuf::from_bytes(vec![1, number])
}

/// Moves the coinbase of a block to two scripts.
fn spend(stub: &StubHost, hash: BlockHash, to: u8) -> Transaction {
    let coinbase = stub.chain.get(hash).unwrap().txdata.swap_remove(0);
    let half = |number| TxOut { value: Amount::from_int_btc(25), script_pubkey: script(number) };
    Transaction {
        version: transaction::Version::TWO,
        lock_time: absolute::LockTime::ZERO,
        input: vec![TxIn { previous_output: OutPoint::new(coinbase.compute_txid(), 0), ..TxIn::default() }],
        output: vec![half(to), half(to + 1)],
    }
}

#[test]
fn follower_takes_over_each_block_once_with_what_it_spends_and_undoes_reorganisations() {
    let stub = StubHost::new();
    let mined: Vec<BlockHash> = (0..200).map(|number| stub.chain.mine_to(script(number), vec![])).collect();
    let (following, heights) = start(&stub, None);
    follow_to_tip(&stub, &following);
    compare(&stub);
    assert_eq!(heights.try_iter().collect::<Vec<_>>(), (0..=200).collect::<Vec<_>>());
    stub.chain.mine(vec![spend(&stub, mined[0], 1), spend(&stub, mined[7], 1)]);
    follow_to_tip(&stub, &following);
    compare(&stub);
    // After a stop the follower continues at its position, through a reorganisation of 150 blocks.
    following.stop();
    for _ in 0..150 {
        stub.chain.disconnect();
    }
    for number in 0..160 {
        stub.chain.mine_to(script(number), vec![]);
    }
    stub.chain.mine(vec![spend(&stub, mined[3], 9)]);
    heights.try_iter().for_each(drop);
    let (following, heights) = start(&stub, None);
    follow_to_tip(&stub, &following);
    compare(&stub);
    let expected: Vec<i64> = (52..=201).rev().map(|height: i64| -height).chain(52..=212).collect();
    assert_eq!(heights.try_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn failed_block_comes_again_with_all_blocks_since_the_last_commit() {
    let stub = StubHost::new();
    for number in 0..3 {
        stub.chain.mine_to(script(number), vec![]);
    }
    let (gate, waits) = channel();
    let (following, heights) = start(&stub, Some(waits));
    for outcome in [Ok(()), Ok(()), Err("the disk is full".into())] {
        gate.send(outcome).unwrap();
    }
    assert_eq!((0..2).map(|_| heights.recv().unwrap()).collect::<Vec<_>>(), [0, 1]);
    let tip = stub.chain.tip(Scope::NONE).unwrap();
    let told = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| following.wait_for(&tip, LONG));
        // A failed look that began before the call does not end its wait.
        while !waiting.is_finished() {
            std::thread::yield_now();
            gate.send(Err("the disk is full".into())).unwrap();
        }
        waiting.join().unwrap().unwrap_err().message
    });
    assert_eq!(told, "The plugin does not follow the chain: the disk is full");
    assert!(stub.store.rows().is_empty());
    (0..4).for_each(|_| gate.send(Ok(())).unwrap());
    while following.wait_for(&tip, LONG).is_err() {}
    compare(&stub);
    let lines = stub.log.lines();
    assert_eq!(lines.iter().filter(|(_, line)| line.ends_with("for now: the disk is full")).count(), 1, "{lines:?}");
}

#[test]
fn position_on_another_chain_is_an_error_and_nothing_is_followed() {
    for (hash, height) in [(BlockHash::all_zeros(), 1), (BlockHash::all_zeros(), 1_000_000)] {
        let stub = StubHost::new();
        stub.chain.mine(vec![]);
        let mut batch = Batch::default();
        batch.put(CURSOR_KEY, &to_bytes(&Cursor { hash, height }));
        batch.commit(&stub.handle(), Scope::NONE).unwrap();
        let before = stub.store.rows();
        let (following, heights) = start(&stub, None);
        let refused = following.wait_for(&stub.chain.tip(Scope::NONE).unwrap(), LONG).unwrap_err();
        assert!(refused.message.contains(&format!("no block {hash} at height {height}")), "{}", refused.message);
        following.stop();
        assert_eq!((stub.store.rows(), heights.try_iter().count()), (before, 0));
    }
}

#[test]
fn wait_for_ends_at_its_deadline_and_at_the_stop() {
    let stub = StubHost::new();
    let (gate, waits) = channel();
    let (following, heights) = start(&stub, Some(waits));
    gate.send(Ok(())).unwrap();
    follow_to_tip(&stub, &following);
    stub.chain.mine(vec![]);
    let tip = stub.chain.tip(Scope::NONE).unwrap();
    let late = following.wait_for(&tip, Duration::from_millis(5)).unwrap_err();
    assert_eq!(late.code, RpcErrorCode::IN_WARMUP);
    assert_eq!(late.message, "The plugin has followed the chain to block 0 of 1");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| following.wait_for(&tip, LONG));
        // The follower waits at the gate, which is dropped: the follower ends without a commit.
        following.shared.end("The plugin stops");
        drop(gate);
        let told = waiting.join().unwrap().unwrap_err().message;
        assert_eq!(told, "The plugin does not follow the chain: The plugin stops");
    });
    following.stop();
    assert_eq!(heights.iter().collect::<Vec<_>>(), [0]);
    assert_eq!(following.cursor().unwrap().height, 0);
}

/// Keeps its position outside the store, and panics at a height.
struct Folder {
    committed: Arc<Mutex<Option<Cursor>>>,
    panics_at: Arc<AtomicU32>,
}

impl Follower for Folder {
    const WITH_SPENT: bool = false;

    fn connect(&mut self, block: &BlockWithSpent, _: &mut Batch) -> Result {
        assert!(block.spent.is_empty() && block.height != self.panics_at.load(Ordering::SeqCst));
        Ok(())
    }

    fn disconnect(&mut self, _: &BlockWithSpent, _: &mut Batch) -> Result {
        Ok(())
    }

    fn kept(&mut self) -> Result<Kept> {
        Ok(Kept::Elsewhere(*self.committed.lock().unwrap()))
    }

    fn commit(&mut self, cursor: Cursor) -> Result {
        *self.committed.lock().unwrap() = Some(cursor);
        Ok(())
    }
}

#[test]
fn follower_with_a_position_of_its_own_leaves_the_store_alone_and_goes_on_after_a_panic() {
    let stub = StubHost::new();
    let first = stub.chain.mine(vec![]);
    stub.chain.mine(vec![spend(&stub, first, 1)]);
    let committed = Arc::<Mutex<Option<Cursor>>>::default();
    let panics_at = Arc::new(AtomicU32::new(3));
    let folder = || Folder { committed: committed.clone(), panics_at: panics_at.clone() };
    follow_to_tip(&stub, &stub.handle().follow(folder()).unwrap());
    assert_eq!(committed.lock().unwrap().map(|cursor| cursor.height), Some(2));
    assert!(stub.store.rows().is_empty());
    stub.chain.mine(vec![]);
    let following = stub.handle().follow(folder()).unwrap();
    let told = following.wait_for(&stub.chain.tip(Scope::NONE).unwrap(), LONG).unwrap_err();
    assert_eq!(told.message, "The plugin does not follow the chain: the follower has panicked");
    assert_eq!(committed.lock().unwrap().map(|cursor| cursor.height), Some(2));
    panics_at.store(0, Ordering::SeqCst);
    follow_to_tip(&stub, &following);
    assert_eq!(committed.lock().unwrap().map(|cursor| cursor.height), Some(3));
}

#[test]
fn wait_for_answers_as_bitcoind_while_the_node_cannot_be_reached() {
    let stub = StubHost::new();
    // A failure of any service passes through the follower in the same way.
    stub.store.fail(Some(ServiceError::new(ErrorKind::NodeUnavailable, "/home/node/.cookie: not found")));
    let (following, _heights) = start(&stub, None);
    let refused = following.wait_for(&stub.chain.tip(Scope::NONE).unwrap(), LONG).unwrap_err();
    assert_eq!(refused, RpcError::new(RpcErrorCode::IN_WARMUP, "The node cannot be reached"));
    assert!(stub.log.lines().iter().any(|(_, line)| line.contains(".cookie: not found")), "the log has the reason");
    stub.store.fail(None);
    follow_to_tip(&stub, &following);
}

#[test]
fn follower_waits_while_another_instance_writes_the_store() {
    let stub = StubHost::new();
    stub.store.fail(Some(ErrorKind::Stale.into()));
    let (following, heights) = start(&stub, None);
    let tip = stub.chain.tip(Scope::NONE).unwrap();
    let late = following.wait_for(&tip, Duration::from_millis(5)).unwrap_err();
    assert_eq!((late.code, heights.try_iter().count()), (RpcErrorCode::IN_WARMUP, 0));
    stub.store.fail(None);
    follow_to_tip(&stub, &following);
    compare(&stub);
}

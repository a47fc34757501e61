use super::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};

/// An owner's call about this wallet.
fn call(owner: u64, wallet: Option<&str>) -> Claimant {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let (call, wallet) = (NEXT.fetch_add(1, Ordering::Relaxed), wallet.map(Arc::from));
    Claimant { owner, call, wallet, nested: false, health: Arc::default() }
}

/// Submits a job that reports its owner at its start, and ends when its gate is dropped.
fn gated_as(pool: &Pool, claimant: Claimant, started: &Sender<u64>) -> Sender<()> {
    let (gate, closed): (_, Receiver<()>) = mpsc::channel();
    let (started, owner) = (started.clone(), claimant.owner);
    let work = move || {
        started.send(owner).unwrap();
        let _ = closed.recv();
    };
    pool.submit(claimant, work).unwrap();
    gate
}

fn gated(pool: &Pool, owner: u64, started: &Sender<u64>) -> Sender<()> {
    gated_as(pool, call(owner, None), started)
}

#[test]
fn a_full_queue_refuses_and_a_panic_costs_no_thread() {
    let pool = Pool::start(1, 1).unwrap();
    let (release, gate) = mpsc::channel::<()>();
    let (started, entered) = mpsc::channel();
    let work = move || {
        started.send(()).unwrap();
        gate.recv().unwrap();
        panic!("requested by the test");
    };
    pool.submit(call(1, None), work).unwrap();
    entered.recv().unwrap();
    let (done, finished) = mpsc::channel();
    pool.submit(call(1, None), move || done.send(7).unwrap()).unwrap();
    assert_eq!(pool.submit(call(2, None), || {}), Err(Overloaded));
    release.send(()).unwrap();
    assert_eq!(finished.recv(), Ok(7));
    assert!(pool.stop(Duration::from_secs(60)));
    assert_eq!(pool.submit(call(1, None), || {}), Err(Overloaded));
}

#[test]
fn one_owner_leaves_threads_and_places_to_the_others() {
    let pool = Pool::start(4, 8).unwrap();
    let (started, running) = mpsc::channel();
    let gates: Vec<_> = (0..3).map(|_| gated(&pool, 1, &started)).collect();
    assert_eq!((0..3).map(|_| running.recv().unwrap()).collect::<Vec<_>>(), [1, 1, 1]);
    let waiting: Vec<_> = (0..6).map(|_| gated(&pool, 1, &started)).collect();
    assert_eq!(pool.submit(call(1, None), || {}), Err(Overloaded), "six of eight places are one owner's share");
    drop(gated(&pool, 2, &started));
    assert_eq!(running.recv(), Ok(2), "the fourth thread and the seventh place are another's");
    drop((gates, waiting));
    assert_eq!((0..6).map(|_| running.recv().unwrap()).collect::<Vec<_>>(), [1; 6]);
    assert!(pool.stop(Duration::from_secs(60)));
}

#[test]
fn a_lost_thread_is_replaced_until_it_comes_back() {
    let pool = Pool::start(1, 8).unwrap();
    let (started, running) = mpsc::channel();
    let claimant = call(1, None);
    let (number, health) = (claimant.call, claimant.health.clone());
    let lost = gated_as(&pool, claimant, &started);
    assert_eq!(running.recv(), Ok(1));
    assert!(pool.replace_lost(number, false) && health.lost_threads() == 0, "a long-running call is not stuck");
    assert!(!pool.replace_lost(number, true) && !pool.replace_lost(u64::MAX, true));
    assert_eq!(health.lost_threads(), 1);
    drop(gated(&pool, 2, &started));
    assert_eq!(running.recv(), Ok(2));
    // A lost thread does not count against its owner's share, here of one.
    drop(gated(&pool, 1, &started));
    assert_eq!(running.recv(), Ok(1));
    drop(lost);
    let mut state = pool.shared.state.lock();
    while state.threads != 1 {
        pool.shared.ended.wait(&mut state);
    }
    drop(state);
    assert_eq!(health.lost_threads(), 0);
    assert!(pool.stop(Duration::from_secs(60)));
}

#[test]
fn lost_threads_of_one_owner_leave_threads_to_others() {
    let pool = Pool::start(8, 1024).unwrap();
    let (started, running) = mpsc::channel();
    let lost: Vec<_> = (0..72)
        .map(|_| {
            let claimant = call(1, None);
            (claimant.call, gated_as(&pool, claimant, &started))
        })
        .collect();
    for (number, _) in lost.iter().take(share(MAX_REPLACED) + share(8)) {
        assert_eq!(running.recv(), Ok(1));
        pool.replace_lost(*number, false);
    }
    drop(gated(&pool, 2, &started));
    assert_eq!(running.recv(), Ok(2));
    drop(lost);
    assert!(pool.stop(Duration::from_secs(60)));
}

#[test]
fn nested_calls_wait_for_no_thread_and_no_place() {
    let pool = Pool::start(1, 1).unwrap();
    let (started, running) = mpsc::channel();
    let first = gated(&pool, 1, &started);
    assert_eq!(running.recv(), Ok(1));
    let second = gated(&pool, 2, &started);
    assert_eq!(pool.submit(call(3, None), || {}), Err(Overloaded));
    let nested: Vec<_> =
        (0..2).map(|_| gated_as(&pool, Claimant { nested: true, ..call(1, None) }, &started)).collect();
    assert_eq!([running.recv(), running.recv()], [Ok(1); 2]);
    drop((first, nested));
    assert_eq!(running.recv(), Ok(2));
    drop(second);
    assert!(pool.stop(Duration::from_secs(60)));
}

#[test]
fn calls_that_wait_for_a_slow_plugin_leave_threads_to_others() {
    let pool = Pool::start(4, 64).unwrap();
    let (started, running) = mpsc::channel();
    // Each waits for a nested call of the owner 2, like payments for their policy.
    let (answer, answered) = mpsc::channel::<()>();
    let answered = Arc::new(Mutex::new(answered));
    for _ in 0..16 {
        let (started, answered) = (started.clone(), answered.clone());
        let nested_pool = Pool { shared: pool.shared.clone() };
        let wait = move || {
            let nested = Claimant { nested: true, ..call(2, None) };
            let (done, ended) = mpsc::channel();
            let work = move || {
                started.send(2).unwrap();
                let _ = answered.lock().recv();
                done.send(()).unwrap();
            };
            nested_pool.submit(nested, work).unwrap();
            lent(|| ended.recv().unwrap()).unwrap();
        };
        pool.submit(call(1, None), wait).unwrap();
    }
    assert_eq!((0..16).map(|_| running.recv().unwrap()).collect::<Vec<_>>(), [2; 16]);
    drop(gated(&pool, 3, &started));
    assert_eq!(running.recv(), Ok(3));
    drop(answer);
    assert!(pool.stop(Duration::from_secs(60)));
}

#[test]
fn one_wallet_takes_half_of_the_threads_and_wallets_take_turns() {
    let pool = Pool::start(4, 64).unwrap();
    let (started, running) = mpsc::channel();
    let submit = |wallet: &'static str| {
        let (gate, closed): (_, Receiver<()>) = mpsc::channel();
        let started = started.clone();
        let claimant = call(wallet.len() as u64, Some(wallet));
        let number = claimant.call;
        let work = move || {
            started.send(wallet).unwrap();
            let _ = closed.recv();
        };
        pool.submit(claimant, work).unwrap();
        (gate, number)
    };
    let mut large: Vec<_> = (0..4).map(|_| submit("large")).collect();
    assert_eq!([running.recv(), running.recv()], [Ok("large"); 2]);
    // The other half is for others, also for later ones.
    let one = submit("one");
    assert_eq!(running.recv(), Ok("one"));
    let another = submit("ones");
    assert_eq!(running.recv(), Ok("ones"));
    // All threads are taken. The next free ones take the calls that have waited longest, since their arrival or
    // since their wallet's last turn.
    let later: Vec<_> = ["one", "large", "fresh"].map(submit).into();
    drop(another);
    assert_eq!(running.recv(), Ok("one"));
    drop(large.remove(0));
    assert_eq!(running.recv(), Ok("large"));
    // A lost call does not count against its wallet's share.
    assert!(pool.replace_lost(large[0].1, true));
    assert_eq!(running.recv(), Ok("fresh"));
    drop(one);
    assert_eq!(running.recv(), Ok("large"));
    drop((large, later));
    assert_eq!(running.recv(), Ok("large"));
    assert!(pool.stop(Duration::from_secs(60)));
}

#[test]
fn pool_stop_leaves_a_job_behind_that_does_not_end() {
    let pool = Pool::start(1, 1).unwrap();
    let (started, running) = mpsc::channel();
    let gate = gated(&pool, 1, &started);
    running.recv().unwrap();
    assert!(!pool.stop(Duration::from_millis(1)));
    drop(gate);
    assert!(pool.stop(Duration::from_secs(60)));
}

#[test]
fn pool_shares_leave_threads_to_others_where_there_are_several() {
    assert_eq!([1, 2, 3, 4, 8, 256].map(share), [1, 1, 2, 3, 6, 192]);
}

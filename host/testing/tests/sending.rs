//! A wallet sends transactions to a node in the same process.
#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use bitcoin::consensus::serialize;
use bitcoin::{Amount, ScriptBuf, Transaction, TxIn, TxOut};
use outrigger_service::events::Event;
use outrigger_service::mempool::Admission;
use outrigger_service::wallet::{AddressType, TxState};
use outrigger_service::{ErrorKind, Scope};
use outrigger_testing::{ANYONE, TestHost};

#[test]
fn what_the_embedded_node_refuses_is_kept_outside_of_the_mempool() {
    let host = TestHost::new();
    host.create_wallet("w", |_| {}).unwrap();
    let view = host.wallet("w").unwrap();
    host.mine_to(&view.wallet().new_address(AddressType::Bech32, false, None).unwrap());
    host.mine(100);
    let coins = || host.wallet("w").unwrap().coins(None, 10).unwrap().coins;
    let coin = coins()[0].outpoint;
    host.take_events();
    // An unsigned transaction.
    let payment = Transaction {
        version: bitcoin::transaction::Version::TWO,
        lock_time: bitcoin::absolute::LockTime::ZERO,
        input: vec![TxIn { previous_output: coin, ..TxIn::default() }],
        output: vec![TxOut { value: Amount::from_sat(100_000), script_pubkey: ScriptBuf::from_bytes(ANYONE.to_vec()) }],
    };
    let txid = payment.compute_txid();
    let (scope, _call) = host.open_call(Some("w"));
    let texts = vec![("comment".to_owned(), "rent".to_owned())];
    let answer = host.handle().wallet.send(scope, serialize(&payment).into(), texts).unwrap();
    assert!(matches!(answer, Some(Admission::Rejected { .. })), "{answer:?}");
    let kept = host.handle().wallet.transactions(scope, vec![txid]).unwrap().read().unwrap();
    let kept = &kept.rows[0].transaction.0;
    assert_eq!((kept.state, kept.metadata.len()), (TxState::Inactive, 1));
    assert_eq!(host.take_events(), [Event::WalletTransaction { wallet: "w".into(), txid }]);
    assert_eq!(coins(), []);
    host.wallet("w").unwrap().wallet().abandon(txid).unwrap();
    assert_eq!(coins()[0].outpoint, coin);
}

#[test]
fn a_payment_waits_for_the_one_before_it_and_sees_what_it_left() {
    let host = TestHost::new();
    for name in ["one", "two"] {
        host.create_wallet(name, |_| {}).unwrap();
    }
    let wallets = host.handle().wallet;
    let next = |scope| wallets.descriptors(scope, false).unwrap().iter().map(|info| info.next_index).max();
    let (first, ending) = host.open_call(Some("one"));
    wallets.begin_payment(first).unwrap();
    // A payment of the same call has begun, and one of another wallet does not wait.
    wallets.begin_payment(first).unwrap();
    let (other, _call) = host.open_call(Some("two"));
    wallets.begin_payment(other).unwrap();
    std::thread::scope(|threads| {
        let second = threads.spawn(|| {
            let (scope, _call) = host.open_call(Some("one"));
            let before = next(scope);
            wallets.begin_payment(scope).unwrap();
            (before, next(scope))
        });
        wallets.new_address(first, AddressType::Bech32, true, None).unwrap();
        wallets.new_address(first, AddressType::Bech32, true, None).unwrap();
        drop(ending);
        let (before, after) = second.join().unwrap();
        assert!(before <= Some(2) && after == Some(2), "{before:?} {after:?}");
    });
    let outside = wallets.begin_payment(Scope::NONE).unwrap_err();
    assert_eq!(outside.kind, ErrorKind::Unsupported);
}

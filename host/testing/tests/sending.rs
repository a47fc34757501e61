//! Transactions of a wallet that are sent to a node in the same process.
#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use bitcoin::consensus::serialize;
use bitcoin::{Amount, ScriptBuf, Transaction, TxIn, TxOut};
use outrigger_service::mempool::Admission;
use outrigger_service::wallet::AddressType;
use outrigger_testing::{ANYONE, TestHost};

#[test]
fn what_the_embedded_node_refuses_leaves_nothing() {
    let host = TestHost::new();
    host.create_wallet("w", |_| {}).unwrap();
    let view = host.wallet("w").unwrap();
    host.mine_to(&view.wallet().new_address(AddressType::Bech32, false, None).unwrap());
    let change = view.wallet().new_address(AddressType::Bech32, true, None).unwrap();
    host.mine(100);
    let shown = || {
        let view = host.wallet("w").unwrap();
        (view.coins(None, 10).unwrap().coins, view.info().unwrap().transactions)
    };
    let before = shown();
    host.take_events();
    // Nobody has signed it.
    let payment = Transaction {
        version: bitcoin::transaction::Version::TWO,
        lock_time: bitcoin::absolute::LockTime::ZERO,
        input: vec![TxIn { previous_output: before.0[0].outpoint, ..TxIn::default() }],
        output: [ScriptBuf::from_bytes(ANYONE.to_vec()), change.clone()]
            .map(|script_pubkey| TxOut { value: Amount::from_sat(100_000), script_pubkey })
            .to_vec(),
    };
    let (scope, _call) = host.open_call(Some("w"));
    let texts = vec![("comment".to_owned(), "rent".to_owned())];
    let answer = host.handle().wallet.send(scope, serialize(&payment).into(), texts).unwrap();
    assert!(matches!(answer, Some(Admission::Rejected { .. })), "{answer:?}");
    assert_eq!((shown(), host.take_events()), (before, Vec::new()));
    assert!(view.wallet().return_address(&change).unwrap());
}

use outrigger_sdk::bitcoin::hashes::Hash;
use outrigger_sdk::bitcoin::{ScriptBuf, TxOut};
use outrigger_sdk::service::policy::JudgedInput;
use outrigger_sdk::testing::{StubHost, TestPlugin};

use super::*;

const ALL: u8 = 1;

fn coin(number: u8) -> OutPoint {
    OutPoint::new(Txid::from_byte_array([number; 32]), 0)
}

/// Whether the guard lets the wallet sign a transaction that spends a coin and gives this much away, in satoshi.
fn signs(guard: &TestPlugin<SpendingGuard>, outpoint: OutPoint, gives: u64, sighash: u8) -> bool {
    let spent = TxOut { value: Amount::from_sat(gives), script_pubkey: ScriptBuf::new() };
    let sighashes = Blob(vec![sighash]);
    let input = JudgedInput { outpoint, output: Some(spent), verified: true, own: true, sighashes };
    let transaction = JudgedTransaction {
        transaction: Blob::default(),
        inputs: vec![input],
        outputs: Vec::new(),
        gives: Some(Amount::from_sat(gives)),
    };
    let query = PolicyQuery {
        wallet: "hot".to_owned(),
        user: "bob".to_owned(),
        method: "send".to_owned(),
        act: Act::Sign { transaction },
    };
    guard.judge(Scope::NONE, &query) == Ok(Judgement::Allow)
}

#[test]
fn limit_counts_the_most_that_each_coin_gave_away_also_after_a_restart() {
    let host = StubHost::new();
    let guard = host.start::<SpendingGuard>(json!({"limit": 100}));
    assert!(signs(&guard, coin(1), 60, ALL));
    // Another transaction that spends the same coin replaces the first one.
    assert!(signs(&guard, coin(1), 50, ALL));
    assert!(!signs(&guard, coin(2), 41, ALL));
    assert!(signs(&guard, coin(2), 40, ALL));
    guard.stop();
    let guard = host.start::<SpendingGuard>(json!({"limit": 100}));
    assert!(!signs(&guard, coin(3), 1, ALL));
    assert!(signs(&guard, coin(1), 60, ALL));
}

#[test]
fn signatures_that_outlive_their_transaction_are_refused() {
    let host = StubHost::new();
    let guard = host.start::<SpendingGuard>(json!({"limit": 100}));
    assert!(!signs(&guard, coin(1), 1, ALL | ANYONE_CAN_PAY));
}

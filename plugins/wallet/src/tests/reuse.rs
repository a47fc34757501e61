//! Wallets that avoid addresses that they have spent from.

use super::*;

/// A wallet that has spent from the first of two addresses, and has coins in both.
fn bench() -> Fixture {
    let test = Fixture::new();
    let [used, fresh] = [1, 2].map(|number| test.own(&TestKey::new(number), Form::Wpkh));
    test.add(WalletCoin { state: confirmed(100), ..coin(&used, 500_000_000, test.coins()) });
    test.wallet(|state| state.spent_from.extend([used.clone()]));
    test.fund(&fresh, 100_000_000, 100);
    let state = TxState::InMempool;
    test.add(WalletCoin { state, trusted: false, ..coin(&used, 7, test.coins()) });
    let change = test.own(&TestKey::new(50), Form::Wpkh);
    test.wallet(|state| state.addresses.extend(vec![change; 9]));
    test
}

#[test]
fn getbalances_used_counts_reused_addresses_apart() {
    let test = bench();
    let balances = |test: &Fixture| test.call("getbalances", json!([])).unwrap()["mine"].to_string();
    let without = r#"{"trusted":6.00000000,"untrusted_pending":0.00000007,"immature":0.00000000}"#;
    assert_eq!(balances(&test), without);
    test.info(|info| info.avoid_reuse = true);
    let apart = r#"{"trusted":1.00000000,"untrusted_pending":0.00000000,"immature":0.00000000,"used":5.00000007}"#;
    assert_eq!(balances(&test), apart);
    test.check("getbalance", json!([]), "1.00000000");
    test.check("getbalance", json!(["*", 0, false, false]), "6.00000000");
    let info = test.call("getwalletinfo", json!([])).unwrap();
    assert_eq!(
        (info["balance"].to_string(), info["unconfirmed_balance"].to_string()),
        ("1.00000000".into(), "0.00000000".into())
    );
}

#[test]
fn listunspent_reused_says_whether_the_address_was_spent_from() {
    let test = bench();
    let reused = |test: &Fixture| -> Vec<Option<bool>> {
        let coins = test.call("listunspent", json!([])).unwrap();
        coins.as_array().unwrap().iter().map(|coin| coin.get("reused").map(|reused| reused == true)).collect()
    };
    assert_eq!(reused(&test), [None, None]);
    test.info(|info| info.avoid_reuse = true);
    assert_eq!(reused(&test), [Some(true), Some(false)]);
    let answer = test.plugin.call_json("listunspent", json!([])).unwrap();
    assert!(answer.contains(r#""parent_descs":[],"reused":true,"safe":true}"#), "{answer}");
}

#[test]
fn sendtoaddress_and_sendmany_leave_reused_coins_alone() {
    let test = bench();
    let to = address(&TestKey::new(99).script(Form::Wpkh));
    test.info(|info| info.avoid_reuse = true);
    test.refuse("sendtoaddress", json!([to, 3]), -6, "Insufficient funds");
    let other = bench();
    other.info(|info| info.avoid_reuse = true);
    other.call("sendmany", json!(["", {&to: 3}])).unwrap();
    test.call("sendtoaddress", json!([to, 3, "", "", false, true, null, "unset", false])).unwrap();
}

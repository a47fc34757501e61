use outrigger_sdk::service::wallet::RescanProgress;

use super::*;

/// A wallet with coins of every kind.
fn rich() -> Fixture {
    let test = Fixture::new();
    let script = test.own(&TestKey::new(1), Form::Wpkh);
    let put = |value, state, change: &dyn Fn(&mut WalletCoin)| {
        let mut coin = WalletCoin { state, ..coin(&script, value, test.coins()) };
        change(&mut coin);
        test.add(coin);
    };
    put(100_000_000, confirmed(200), &|_| {});
    put(200_000_000, confirmed(190), &|_| {});
    put(5_000_000_000, confirmed(100), &|coin| coin.coinbase = true);
    put(5_000_000_001, confirmed(101), &|coin| coin.coinbase = true);
    put(30_000_000, TxState::InMempool, &|coin| coin.from_us = true);
    put(4_000_000, TxState::InMempool, &|coin| coin.trusted = false);
    put(7, TxState::Inactive, &|coin| coin.trusted = false);
    test
}

#[test]
fn getbalances_tells_trusted_pending_and_immature_apart() {
    let test = rich();
    let hash = test.wallet(|state| state.info.synced.hash);
    let block = format!(r#""lastprocessedblock":{{"hash":"{hash}","height":200}}"#);
    let mine = r#""mine":{"trusted":53.30000000,"untrusted_pending":0.04000000,"immature":50.00000001}"#;
    test.check("getbalances", json!([]), &format!("{{{mine},{block}}}"));
    test.check("getbalance", json!([]), "53.30000000");
    test.check("getbalance", json!(["*", 1]), "53.00000000");
    test.check("getbalance", json!(["*", 2]), "52.00000000");
    test.check("getbalance", json!(["*", 101]), "50.00000000");
    test.check("getbalance", json!(["*", 102]), "0.00000000");
    test.check("getbalance", json!(["*", -5]), "53.30000000");
}

#[test]
fn getbalances_counts_watched_coins_apart() {
    let test = rich();
    let script = TestKey::new(2).script(Form::Pkh);
    test.add(WalletCoin { ownership: Ownership::WatchOnly, ..coin(&script, 1, test.coins()) });
    let answer = test.plugin.call_json("getbalances", json!([])).unwrap();
    let watched = r#""watchonly":{"trusted":0.00000001,"untrusted_pending":0.00000000,"immature":0.00000000}"#;
    assert!(answer.contains(watched), "{answer}");
    test.check("getbalance", json!(["*", 0, true]), "53.30000001");
    test.check("getbalance", json!(["*", 0, false]), "53.30000000");
    test.check("getbalance", json!([]), "53.30000000");
    test.info(|info| info.private_keys_enabled = false);
    test.check("getbalance", json!([]), "53.30000001");
}

#[test]
fn getbalance_refuses_accounts_and_what_the_wallet_does_not_have() {
    let test = Fixture::new();
    test.refuse("getbalance", json!(["x"]), -32, "dummy first argument must be excluded or set to \"*\".");
    let message = "wallet does not have the \"avoid reuse\" feature enabled";
    test.refuse("getbalance", json!(["*", 0, false, true]), -4, message);
    test.refuse("getbalance", json!(["*", 99_999_999_999_i64]), -1, "JSON integer out of range");
    test.info(|info| info.avoid_reuse = true);
    test.check("getbalance", json!(["*", 0, false, true]), "0.00000000");
}

#[test]
fn getwalletinfo_has_the_keys_of_29_and_no_others() {
    let test = rich();
    test.info(|info| {
        info.keypool_external = 4000;
        info.keypool_internal = 3999;
        info.birth_time = 1_700_000_000;
        info.backup_needed = true;
        info.last_backup = 17;
    });
    let hash = test.wallet(|state| state.info.synced.hash);
    let expect = format!(
        r#"{{"walletname":"w","walletversion":169900,"format":"lmdb","balance":53.30000000,"unconfirmed_balance":0.04000000,"immature_balance":50.00000001,"txcount":0,"keypoolsize":4000,"keypoolsize_hd_internal":3999,"paytxfee":0.00000000,"private_keys_enabled":true,"avoid_reuse":false,"scanning":false,"descriptors":true,"external_signer":false,"blank":false,"birthtime":1700000000,"lastprocessedblock":{{"hash":"{hash}","height":200}}}}"#
    );
    test.check("getwalletinfo", json!([]), &expect);
}

#[test]
fn getwalletinfo_tells_of_locks_and_scans() {
    let test = Fixture::new();
    test.info(|info| {
        info.encrypted = true;
        info.unlocked_until = 99;
        info.rescan = Some(RescanProgress { duration: 3, millionths: 250_000 });
        info.blank = true;
        info.birth_time = 0;
    });
    let answer = test.plugin.call_json("getwalletinfo", json!([])).unwrap();
    for part in [r#""unlocked_until":99,"#, r#""scanning":{"duration":3,"progress":0.25},"descriptors":true"#] {
        assert!(answer.contains(part), "{answer}");
    }
    assert!(!answer.contains("birthtime"), "{answer}");
    test.info(|info| info.birth_time = 7);
    let answer = test.plugin.call_json("getwalletinfo", json!([])).unwrap();
    assert!(answer.contains(r#""blank":true,"birthtime":7,"#), "a blank wallet has one after an import: {answer}");
}

#[test]
fn listdescriptors_lists_by_text() {
    let test = Fixture::new();
    test.wallet(|state| {
        state.descriptors =
            vec![descriptor("wpkh(B)", Some(true)), descriptor("combo(A)", None), descriptor("wpkh(A)", Some(false))];
    });
    test.check(
        "listdescriptors",
        json!([]),
        r#"{"wallet_name":"w","descriptors":[{"desc":"combo(A)","timestamp":7,"active":false},{"desc":"wpkh(A)","timestamp":7,"active":true,"internal":false,"range":[0,999],"next":3,"next_index":3},{"desc":"wpkh(B)","timestamp":7,"active":true,"internal":true,"range":[0,999],"next":3,"next_index":3}]}"#,
    );
    // The host in memory shows the same text with and without private keys, as a real one does where there are none.
    test.refuse("listdescriptors", json!([true]), -4, "Can't get descriptor string.");
    test.wallet(|state| state.descriptors.clear());
    test.info(|info| info.private_keys_enabled = false);
    test.check("listdescriptors", json!([true]), r#"{"wallet_name":"w","descriptors":[]}"#);
    test.info(|info| info.locked = true);
    let message = "Error: Please enter the wallet passphrase with walletpassphrase first.";
    test.refuse("listdescriptors", json!([true]), -13, message);
}

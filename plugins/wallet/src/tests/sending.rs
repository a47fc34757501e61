use bitcoin::{Sequence, Transaction, consensus};
use outrigger_sdk::FeeRate;
use outrigger_sdk::service::Mempool;

use super::*;

/// An address that is not the wallet's.
fn foreign_address(form: Form) -> String {
    address(&TestKey::new(99).script(form))
}

/// A wallet with two coins of each script type, and change addresses.
fn funded() -> Fixture {
    let test = Fixture::new();
    for (number, form) in (1..).zip(FORMS) {
        let script = test.own(&TestKey::new(number), form);
        test.fund(&script, 100_000_000, 100);
        test.fund(&script, 30_000_000, 150);
    }
    let change = test.own(&TestKey::new(50), Form::Wpkh);
    test.wallet(|state| state.addresses.extend(vec![change; 100]));
    test
}

/// The transactions of the mempool, the newest last.
fn sent(test: &Fixture) -> Vec<Transaction> {
    let ids = test.host.mempool.ids(Scope::NONE).unwrap();
    let raw = test.host.mempool.transactions(Scope::NONE, ids).unwrap();
    raw.into_iter().flatten().map(|entry| consensus::deserialize(&entry.raw).unwrap()).collect()
}

fn last_entry(test: &Fixture) -> outrigger_sdk::service::mempool::MempoolEntry {
    let id = *test.host.mempool.ids(Scope::NONE).unwrap().last().unwrap();
    test.host.mempool.entries(Scope::NONE, vec![id]).unwrap().pop().flatten().unwrap()
}

#[test]
fn sendtoaddress_signs_and_gives_to_the_mempool() {
    let test = funded();
    let txid = test.call("sendtoaddress", json!([foreign_address(Form::Wpkh), 0.5])).unwrap();
    let [payment] = &sent(&test)[..] else { panic!("one payment") };
    assert_eq!(txid, json!(payment.compute_txid()));
    assert_eq!(payment.version.0, 2);
    assert!((HEIGHT - 99..=HEIGHT).contains(&payment.lock_time.to_consensus_u32()), "{}", payment.lock_time);
    assert!(payment.input.iter().all(|input| input.sequence == Sequence(0xffff_fffd)));
    assert_eq!(payment.output.len(), 2);
    let paid = |script: ScriptBuf| payment.output.iter().find(|output| output.script_pubkey == script).unwrap().value;
    assert_eq!(paid(TestKey::new(99).script(Form::Wpkh)).to_sat(), 50_000_000);
    let change = paid(TestKey::new(50).script(Form::Wpkh)).to_sat();
    let coins = test.wallet(|state| state.coins.clone());
    let spent = |input: &bitcoin::TxIn| coins.iter().find(|coin| coin.outpoint == input.previous_output).unwrap().value;
    let spent: u64 = payment.input.iter().map(|input| spent(input).to_sat()).sum();
    assert_eq!(change + 50_000_000 + last_entry(&test).fee.to_sat(), spent);
}

#[test]
fn sendtoaddress_spends_every_form_at_the_exact_feerate() {
    for (number, form) in (1..).zip(FORMS) {
        for feerate in [1000_u64, 5500, 25_000] {
            let test = Fixture::new();
            let script = test.own(&TestKey::new(number), form);
            test.fund(&script, 100_000_000, 100);
            test.fund(&script, 100_000_000, 100);
            let change = test.own(&TestKey::new(50), Form::Wpkh);
            test.wallet(|state| state.addresses.push_back(change));
            let rate = format!("{}.{:03}", feerate / 1000, feerate % 1000);
            let arguments = json!([foreign_address(Form::Wpkh), 1.5, "", "", false, true, null, null, null, rate]);
            test.call("sendtoaddress", arguments).unwrap();
            let entry = last_entry(&test);
            let wanted = FeeRate::from_sat_per_kvb(feerate).fee(entry.weight.to_vbytes_ceil()).to_sat();
            let paid = entry.fee.to_sat();
            // The fee assumes the longest signatures; a shorter one makes the payment a little smaller.
            let slack = feerate / 1000 + 1;
            assert!((wanted..=wanted + slack).contains(&paid), "{form:?} at {rate}: {paid} for {wanted}");
        }
    }
}

#[test]
fn sendtoaddress_of_mixed_inputs_pays_enough() {
    let test = funded();
    let arguments = json!([foreign_address(Form::Tr), 5.19, "", "", false, true, null, null, null, 3]);
    test.call("sendtoaddress", arguments).unwrap();
    let entry = last_entry(&test);
    assert_eq!(sent(&test)[0].input.len(), 8);
    let wanted = FeeRate::from_sat_per_kvb(3000).fee(entry.weight.to_vbytes_ceil()).to_sat();
    let paid = entry.fee.to_sat();
    assert!((wanted..wanted + 30).contains(&paid), "{paid} for {wanted}");
}

#[test]
fn sendtoaddress_spends_multisig_where_enough_keys_are_held() {
    let test = Fixture::new();
    let keys: Vec<TestKey> = (1..=3).map(TestKey::new).collect();
    let mut bytes = vec![0x52];
    for key in &keys {
        bytes.push(33);
        bytes.extend(key.public.serialize());
    }
    bytes.extend([0x53, 0xae]);
    let multisig = ScriptBuf::from_bytes(bytes);
    let wsh = multisig.to_p2wsh();
    let mut info = keys[0].info(Form::Wpkh);
    info.solving.scripts = vec![multisig];
    test.wallet(|state| {
        state.scripts.insert(wsh.clone(), info);
        state.keys.push(keys[0].secret);
    });
    test.fund(&wsh, 100_000, 100);
    let arguments = json!([foreign_address(Form::Wpkh), 0.001, "", "", true]);
    test.refuse("sendtoaddress", arguments.clone(), -6, "Insufficient funds");
    test.wallet(|state| state.keys.push(keys[2].secret));
    test.call("sendtoaddress", arguments).unwrap();
    let entry = last_entry(&test);
    let paid = entry.fee.to_sat();
    assert!((0..=1).contains(&(paid - entry.virtual_size)), "{paid} for {}", entry.virtual_size);
}

#[test]
fn sendtoaddress_options_shape_the_payment() {
    let test = funded();
    let verbose = json!([foreign_address(Form::Wpkh), "0.25", "", "", true, false, 6, "ECONOMICAL", null, null, true]);
    let answer = test.call("sendtoaddress", verbose).unwrap();
    let payment = sent(&test).pop().unwrap();
    assert_eq!(answer, json!({"txid": payment.compute_txid(), "fee_reason": "Fallback fee"}));
    assert_eq!(payment.input[0].sequence, Sequence(0xffff_fffe));
    let paid =
        payment.output.iter().find(|output| output.script_pubkey == TestKey::new(99).script(Form::Wpkh)).unwrap();
    assert_eq!(paid.value.to_sat(), 25_000_000 - last_entry(&test).fee.to_sat());
    let explicit = json!([foreign_address(Form::Wpkh), 1, null, null, null, null, null, "unset", null, 2, true]);
    assert_eq!(test.call("sendtoaddress", explicit).unwrap()["fee_reason"], json!("PayTxFee set"));
}

#[test]
fn sendtoaddress_fallbackfee_rises_to_what_is_relayed() {
    let pay = |feerate: u64| {
        let test = Fixture::with_fallback(feerate);
        let script = test.own(&TestKey::new(1), Form::Wpkh);
        test.fund(&script, 100_000, 100);
        let arguments = json!([foreign_address(Form::Wpkh), 0.001, "", "", true, null, null, null, null, null, true]);
        let reason = test.call("sendtoaddress", arguments).unwrap()["fee_reason"].clone();
        (last_entry(&test).fee.to_sat(), reason)
    };
    assert_eq!(pay(2000), (220, json!("Fallback fee")));
    assert_eq!(pay(500), (110, json!("Minimum Required Fee")));
}

#[test]
fn sendtoaddress_without_a_change_address_is_refused_where_there_is_change() {
    let test = Fixture::new();
    let script = test.own(&TestKey::new(1), Form::Wpkh);
    test.fund(&script, 100_000, 100);
    let arguments = json!([foreign_address(Form::Wpkh), 0.0005]);
    let message = "Transaction needs a change address, but we can't generate it. Error: Keypool ran out, please call keypoolrefill first";
    test.refuse("sendtoaddress", arguments.clone(), -6, message);
    test.refuse("sendtoaddress", json!([foreign_address(Form::Wpkh), 5]), -6, "Insufficient funds");
    let sources = test.wallet(|state| std::mem::take(&mut state.info.sources));
    let message = "Transaction needs a change address, but we can't generate it. Error: No bech32 addresses available.";
    test.refuse("sendtoaddress", arguments.clone(), -6, message);
    // The size of the change output is that of its own type, not of the recipient's.
    test.info(|info| info.sources = sources);
    let change = test.own(&TestKey::new(2), Form::Tr);
    test.wallet(|state| state.addresses.push_back(change));
    test.call("sendtoaddress", arguments).unwrap();
    let entry = last_entry(&test);
    assert_eq!((entry.fee.to_sat(), entry.virtual_size), (153, 153));
}

#[test]
fn sendtoaddress_uses_up_a_change_address_and_gives_it_back_where_it_fails() {
    let test = Fixture::new();
    let script = test.own(&TestKey::new(1), Form::Wpkh);
    test.fund(&script, 100_000, 100);
    let change = [2, 3].map(|number| test.own(&TestKey::new(number), Form::Wpkh));
    test.wallet(|state| state.addresses.extend(change.clone()));
    test.refuse("sendtoaddress", json!([foreign_address(Form::Wpkh), 5]), -6, "Insufficient funds");
    assert_eq!(test.wallet(|state| state.addresses.clone()), change);
    // A payment without change uses one up, too.
    test.call("sendtoaddress", json!([foreign_address(Form::Wpkh), 0.001, "", "", true])).unwrap();
    assert_eq!(sent(&test)[0].output.len(), 1);
    assert_eq!(test.wallet(|state| state.addresses.clone()), &change[1..]);
}

#[test]
fn sendtoaddress_without_an_estimate_and_a_fallback_is_refused() {
    let test = Fixture::with_fallback(0);
    let script = test.own(&TestKey::new(1), Form::Wpkh);
    test.fund(&script, 100_000, 100);
    let message = "Fee estimation failed. Fallbackfee is disabled. Wait a few blocks or enable -fallbackfee.";
    test.refuse("sendtoaddress", json!([foreign_address(Form::Wpkh), 0.0005]), -6, message);
    test.refuse("sendmany", json!(["", {foreign_address(Form::Wpkh): 5}]), -6, message);
    // What is wrong with the recipients is said first.
    test.refuse("sendtoaddress", json!([foreign_address(Form::Wpkh), 0.00000293]), -6, "Transaction amount too small");
    // An explicit feerate needs none.
    let explicit = json!([foreign_address(Form::Wpkh), 0.001, "", "", true, null, null, null, null, 2]);
    test.call("sendtoaddress", explicit).unwrap();
}

#[test]
fn sendtoaddress_has_no_locktime_while_the_chain_lags_behind() {
    let test = funded();
    let time = test.wallet(|state| state.info.synced.time);
    test.host.chain.set_mock_time(Scope::NONE, u64::from(time) + 28_801).unwrap();
    for _ in 0..3 {
        test.call("sendtoaddress", json!([foreign_address(Form::Wpkh), 0.2])).unwrap();
    }
    assert!(sent(&test).iter().all(|payment| payment.lock_time.to_consensus_u32() == 0));
}

#[test]
fn sendtoaddress_never_spends_a_coin_twice() {
    let test = funded();
    for _ in 0..8 {
        test.call("sendtoaddress", json!([foreign_address(Form::Wpkh), 0.2])).unwrap();
    }
    let inputs: Vec<OutPoint> =
        sent(&test).iter().flat_map(|payment| &payment.input).map(|input| input.previous_output).collect();
    let distinct: std::collections::HashSet<_> = inputs.iter().collect();
    assert_eq!((inputs.len(), distinct.len()), (8, 8));
    test.refuse("sendtoaddress", json!([foreign_address(Form::Wpkh), 0.2]), -6, "Insufficient funds");
}

#[test]
fn sendtoaddress_leaves_coins_that_must_not_be_spent() {
    let test = Fixture::new();
    let script = test.own(&TestKey::new(1), Form::Wpkh);
    let unknown = TestKey::new(2).script(Form::Wpkh);
    let coins = [
        WalletCoin { coinbase: true, state: confirmed(101), ..coin(&script, 100_000, 0) },
        WalletCoin { ownership: Ownership::WatchOnly, ..coin(&script, 100_000, 1) },
        WalletCoin { state: TxState::InMempool, trusted: false, ..coin(&script, 100_000, 2) },
        WalletCoin { state: TxState::Inactive, from_us: true, ..coin(&script, 100_000, 3) },
        WalletCoin { ..coin(&unknown, 100_000, 4) },
    ];
    for coin in coins {
        test.add(coin);
    }
    let arguments = json!([foreign_address(Form::Wpkh), 0.001, "", "", true]);
    test.refuse("sendtoaddress", arguments.clone(), -6, "Insufficient funds");
    // A block later the coinbase is mature.
    test.info(|info| info.synced.height += 1);
    test.call("sendtoaddress", arguments).unwrap();
}

#[test]
fn sendtoaddress_spends_own_change_before_it_is_confirmed() {
    let test = Fixture::new();
    let script = test.own(&TestKey::new(1), Form::Wpkh);
    test.fund(&script, 100_000, 100);
    test.wallet(|state| state.addresses.extend([script.clone(), script.clone()]));
    test.call("sendtoaddress", json!([foreign_address(Form::Wpkh), 0.0005])).unwrap();
    let payment = sent(&test).pop().unwrap();
    let vout = payment.output.iter().position(|output| output.script_pubkey == script).unwrap();
    let change = WalletCoin {
        outpoint: OutPoint::new(payment.compute_txid(), vout as u32),
        state: TxState::InMempool,
        from_us: true,
        ..coin(&script, payment.output[vout].value.to_sat(), 1)
    };
    test.add(change);
    test.call("sendtoaddress", json!([foreign_address(Form::Wpkh), 0.0004, "", "", true])).unwrap();
    assert_eq!(sent(&test).pop().unwrap().input[0].previous_output.txid, payment.compute_txid());
}

#[test]
fn sendtoaddress_continues_no_chain_that_the_mempool_would_refuse() {
    let test = Fixture::new();
    let script = test.own(&TestKey::new(1), Form::Wpkh);
    let parent = Transaction {
        version: bitcoin::transaction::Version::TWO,
        lock_time: bitcoin::absolute::LockTime::ZERO,
        input: vec![bitcoin::TxIn::default()],
        output: (0..26).map(|_| output(100_000, &script)).collect(),
    };
    let id = parent.compute_txid();
    test.host.mempool.add(parent, Amount::from_sat(0));
    let child = |vout| Transaction {
        version: bitcoin::transaction::Version::TWO,
        lock_time: bitcoin::absolute::LockTime::ZERO,
        input: vec![bitcoin::TxIn { previous_output: OutPoint::new(id, vout), ..Default::default() }],
        output: Vec::new(),
    };
    for vout in 1..24 {
        test.host.mempool.add(child(vout), Amount::from_sat(0));
    }
    let outpoint = OutPoint::new(id, 0);
    test.add(WalletCoin { outpoint, state: TxState::InMempool, from_us: true, ..coin(&script, 100_000, 0) });
    let arguments = json!([foreign_address(Form::Wpkh), 0.001, "", "", true]);
    test.host.mempool.add(child(24), Amount::from_sat(0));
    let message = "Unconfirmed UTXOs are available, but spending them creates a chain of transactions that will be rejected by the mempool";
    test.refuse("sendtoaddress", arguments, -6, message);
}

#[test]
fn sendtoaddress_stores_its_comments() {
    let metadata = |arguments: &Value| {
        let test = Fixture::new();
        let script = test.own(&TestKey::new(1), Form::Wpkh);
        test.fund(&script, 100_000, 100);
        test.call("sendtoaddress", arguments.clone()).unwrap();
        test.wallet(|state| state.sent.remove(0).1)
    };
    let arguments = json!([foreign_address(Form::Wpkh), 0.001, "rent", "landlord", true]);
    let stored = |key: &str, text: &str| (key.to_owned(), text.to_owned());
    assert_eq!(metadata(&arguments), [stored("comment", "rent"), stored("to", "landlord")]);
    assert_eq!(metadata(&json!([foreign_address(Form::Wpkh), 0.001, "", null, true])), []);
}

#[test]
fn sendtoaddress_refuses_what_cannot_be_paid() {
    let test = funded();
    let to = foreign_address(Form::Wpkh);
    let refuse = |arguments: Value, code, message: &str| test.refuse("sendtoaddress", arguments, code, message);
    refuse(json!(["garbage", 1]), -5, "Invalid Bitcoin address: garbage");
    refuse(json!([to, "x"]), -3, "Invalid amount");
    refuse(json!([to, -1]), -3, "Amount out of range");
    refuse(json!([to, true]), -3, "Amount is not a number or string");
    refuse(json!([to, 0]), -6, "Transaction amount too small");
    refuse(json!([to, 0.00000293]), -6, "Transaction amount too small");
    refuse(json!([to, 1000]), -6, "Insufficient funds");
    refuse(json!([to, 5.2]), -6, "Insufficient funds");
    let with =
        |target: Value, mode: Value, feerate: Value| json!([to, 1, "", "", false, true, target, mode, null, feerate]);
    let message = "Cannot specify both conf_target and fee_rate. Please provide either a confirmation target in blocks for automatic fee estimation, or an explicit fee rate.";
    refuse(with(json!(3), json!(null), json!(5)), -8, message);
    refuse(with(json!(null), json!("economical"), json!(5)), -8, "Cannot specify both estimate_mode and fee_rate");
    let message = "Invalid estimate_mode parameter, must be one of: \"unset\", \"economical\", \"conservative\"";
    refuse(with(json!(null), json!("foo"), json!(null)), -8, message);
    refuse(with(json!(0), json!(null), json!(null)), -8, "Invalid conf_target, must be between 1 and 1008");
    refuse(with(json!(1009), json!(null), json!(null)), -8, "Invalid conf_target, must be between 1 and 1008");
    let message = "Fee rate (0.500 sat/vB) is lower than the minimum fee rate setting (1.000 sat/vB)";
    refuse(with(json!(null), json!(null), json!(0.5)), -6, message);
    let message = "Fee exceeds maximum configured by user (e.g. -maxtxfee, maxfeerate)";
    refuse(with(json!(null), json!("unset"), json!(90_000)), -6, message);
    let message = "wallet does not have the \"avoid reuse\" feature enabled";
    refuse(json!([to, 1, "", "", false, true, null, null, true]), -4, message);
    test.info(|info| info.private_keys_enabled = false);
    refuse(json!([to, 1]), -4, "Error: Private keys are disabled for this wallet");
    test.info(|info| info.locked = true);
    let message = "Error: Please enter the wallet passphrase with walletpassphrase first.";
    refuse(json!(["garbage", 1]), -13, message);
    assert!(sent(&test).is_empty());
}

#[test]
fn sendtoaddress_of_what_the_mempool_refuses_tells_the_txid() {
    let test = Fixture::new();
    let script = test.own(&TestKey::new(1), Form::Wpkh);
    // A coin that the chain does not know.
    test.wallet(|state| state.coins.push(coin(&script, 100_000, 0)));
    let txid = test.call("sendtoaddress", json!([foreign_address(Form::Wpkh), 0.001, "", "", true])).unwrap();
    let (raw, _) = test.wallet(|state| state.sent.remove(0));
    let payment: Transaction = consensus::deserialize(&raw).unwrap();
    assert_eq!(json!(payment.compute_txid()), txid);
}

#[test]
fn sendtoaddress_of_what_the_node_does_not_answer_tells_the_txid() {
    let test = Fixture::new();
    let script = test.own(&TestKey::new(1), Form::Wpkh);
    test.fund(&script, 100_000, 100);
    let change = test.own(&TestKey::new(2), Form::Wpkh);
    test.wallet(|state| (state.unanswered, state.addresses) = (true, [change].into()));
    let txid = test.call("sendtoaddress", json!([foreign_address(Form::Wpkh), 0.0005, "rent"])).unwrap();
    let (raw, texts) = test.wallet(|state| state.sent.remove(0));
    let payment: Transaction = consensus::deserialize(&raw).unwrap();
    assert_eq!((json!(payment.compute_txid()), texts), (txid, vec![("comment".to_owned(), "rent".to_owned())]));
    // Its change address is used up.
    assert!(test.wallet(|state| state.addresses.is_empty()));
}

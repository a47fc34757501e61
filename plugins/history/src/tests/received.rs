//! What addresses received, and which of them belong together.

use bitcoin::Txid;
use outrigger_sdk::service::wallet::{ScriptInfo, SolvingData, WalletCoin};

use super::*;

/// The P2WPKH address whose key hash is all `byte`.
fn address(byte: u8) -> String {
    outrigger_sdk::standard::from_script(&script(byte), bitcoin::Network::Regtest).unwrap()
}

impl Harness {
    /// Makes the wallet know a script, and gives it an entry in the address book where there is a label.
    fn know(&self, byte: u8, ownership: Ownership, label: Option<&str>) {
        let info = ScriptInfo {
            ownership,
            solvable: true,
            label: label.map(str::to_owned),
            change: label.is_none(),
            internal: false,
            timestamp: 0,
            descriptor: String::new(),
            parents: Vec::new(),
            solving: SolvingData::default(),
            origins: Vec::new(),
        };
        self.host.wallet.with(|state| state.scripts.insert(script(byte), info)).unwrap();
    }

    /// A wallet with payments to "a" (twice, once unconfirmed), "b", a watched address, and an immature coinbase.
    fn received() -> Self {
        let mut harness = Self::new();
        let block = harness.mine(1)[0];
        harness.mine(2);
        for (byte, label) in [(1, "a"), (2, "b"), (4, "a"), (5, "")] {
            harness.know(byte, Ownership::Spendable, Some(label));
        }
        harness.know(3, Ownership::WatchOnly, Some("a"));
        harness.know(9, Ownership::None, Some("others"));
        harness.add(&transaction(1, &[(100, 1), (20, 2), (7, 9)]), confirmed(block, 1), |row| {
            ours(row, 0, Some("a"));
            ours(row, 1, Some("b"));
            row.outputs[2].label = Some("others".into());
        });
        harness.add(&transaction(2, &[(3000, 1), (5, 3), (11, 8)]), TxState::InMempool, |row| {
            ours(row, 0, Some("a"));
            row.outputs[1].ownership = Ownership::WatchOnly;
            row.outputs[1].label = Some("a".into());
            ours(row, 2, None);
        });
        harness.add(&transaction(3, &[(50_000, 4)]), confirmed(block, 1), |row| {
            row.coinbase = true;
            ours(row, 0, Some("a"));
        });
        harness
    }
}

#[test]
fn getreceivedbyaddress_counts_depth_and_mature_coinbases() {
    let harness = Harness::received();
    let received = |arguments: Value| harness.plugin.call_json("getreceivedbyaddress", arguments).unwrap();
    assert_eq!(received(json!([address(1)])), "0.00000100");
    assert_eq!(received(json!([address(1), 0])), "0.00003100");
    assert_eq!(received(json!([address(1), 4])), "0.00000000");
    assert_eq!(received(json!([address(3), 0])), "0.00000005", "watched");
    assert_eq!(received(json!([address(4)])), "0.00000000");
    assert_eq!(received(json!([address(4), 3, true])), "0.00050000");
    harness.mine(98);
    assert_eq!(received(json!([address(4)])), "0.00050000");
    harness.host.wallet.with(|wallet| wallet.transactions[2].transaction.state = TxState::Inactive).unwrap();
    assert_eq!(received(json!([address(4), 0, true])), "0.00000000", "no block has the coinbase");
}

#[test]
fn getreceivedbylabel_sums_the_addresses_of_a_label() {
    let harness = Harness::received();
    let received = |arguments: Value| harness.plugin.call_json("getreceivedbylabel", arguments).unwrap();
    assert_eq!(received(json!(["a"])), "0.00000100");
    assert_eq!(received(json!(["a", 0, true])), "0.00053105");
    assert_eq!(received(json!([""])), "0.00000000");
    harness.refused("getreceivedbylabel", json!(["*"]), -11, "Invalid label name");
    harness.refused("getreceivedbylabel", json!(["none"]), -4, "Label not found in wallet");
    harness.refused("getreceivedbylabel", json!(["others"]), -4, "Address not found in wallet");
    harness.refused("getreceivedbyaddress", json!([address(9)]), -4, "Address not found in wallet");
    harness.refused("getreceivedbyaddress", json!(["x"]), -5, "Invalid Bitcoin address");
}

#[test]
fn listreceivedbyaddress_lists_what_the_arguments_say() {
    let harness = Harness::received();
    let listed = |arguments: Value| {
        let answer = harness.call("listreceivedbyaddress", arguments);
        let entry = |entry: &Value| {
            let txids = entry["txids"].as_array().unwrap().len();
            let watched = entry.get("involvesWatchonly").is_some();
            format!(
                "{} {} {} {} {txids} {watched}",
                entry["address"], entry["amount"], entry["confirmations"], entry["label"]
            )
        };
        answer.as_array().unwrap().iter().map(entry).collect::<Vec<_>>()
    };
    let entry = |byte, rest: &str| format!("\"{}\" {rest}", address(byte));
    let (first, second) = (entry(1, "0.00000100 3 \"a\" 1 false"), entry(2, "0.00000020 3 \"b\" 1 false"));
    assert_eq!(listed(json!([])), [first.clone(), second.clone()]);
    let both = entry(1, "0.00003100 0 \"a\" 2 false");
    assert_eq!(listed(json!([0])), [both.clone(), second.clone()]);
    let watched = entry(3, "0.00000005 0 \"a\" 1 true");
    assert_eq!(listed(json!([0, false, true])), [both, second.clone(), watched]);
    let coinbase = entry(4, "0.00050000 3 \"a\" 1 false");
    assert_eq!(listed(json!([1, false, false, "", true])), [first.clone(), second.clone(), coinbase]);
    let empty = [(3, "a"), (4, "a"), (5, ""), (9, "others")];
    let empty = empty.map(|(byte, label)| entry(byte, &format!("0.00000000 0 \"{label}\" 0 false")));
    assert_eq!(listed(json!([1, true])), [&[first.clone(), second][..], &empty].concat());
    assert_eq!(listed(json!([1, true, false, address(9)])), empty[3..]);
    assert_eq!(listed(json!([1, true, false, address(1)])), [first]);
    assert!(listed(json!([1, true, false, address(77)])).is_empty());
    harness.refused("listreceivedbyaddress", json!([1, true, true, "x"]), -4, "address_filter parameter was invalid");
}

#[test]
fn listreceivedbylabel_takes_the_last_address_of_a_label_for_whether_it_is_watched() {
    let harness = Harness::received();
    let listed = |arguments: Value| harness.plugin.call_json("listreceivedbylabel", arguments).unwrap();
    let b = r#"{"amount":0.00000020,"confirmations":3,"label":"b"}"#;
    assert_eq!(listed(json!([])), format!(r#"[{{"amount":0.00000100,"confirmations":3,"label":"a"}},{b}]"#));
    let a = r#"{"involvesWatchonly":true,"amount":0.00003105,"confirmations":0,"label":"a"}"#;
    assert_eq!(listed(json!([0, false, true])), format!("[{a},{b}]"));
    let empty = r#"{"amount":0.00000000,"confirmations":0,"label":""}"#;
    let others = r#"{"amount":0.00000000,"confirmations":0,"label":"others"}"#;
    let a = r#"{"amount":0.00053105,"confirmations":0,"label":"a"}"#;
    assert_eq!(listed(json!([0, true, true, true])), format!("[{empty},{a},{b},{others}]"));
}

#[test]
fn listaddressgroupings_joins_what_was_spent_together_and_its_change() {
    let mut harness = Harness::received();
    let block = harness.mine(1)[0];
    let rows = harness.host.wallet.with(|state| state.transactions.clone()).unwrap();
    let outpoint = |row: usize, vout| OutPoint { txid: rows[row].transaction.txid, vout };
    // Spends from 2 and 5, with change to 6; the latter was met first.
    let (paid, spent) = (transaction(5, &[(9, 5)]), transaction(4, &[(1, 77), (2, 6)]));
    let input = OutPoint { txid: paid.compute_txid(), vout: 0 };
    harness.add(&spent, confirmed(block, 4), |row| {
        row.inputs = vec![outpoint(0, 1), input, OutPoint::new(Txid::from_byte_array([1; 32]), 0)];
        ours(row, 1, None);
    });
    harness.add(&paid, confirmed(block, 4), |row| ours(row, 0, Some("")));
    let coin = |byte: u8, value: u64, change: fn(&mut WalletCoin)| {
        let mut coin = WalletCoin {
            outpoint: OutPoint::new(Txid::from_byte_array([byte; 32]), 0),
            value: Amount::from_sat(value),
            script: script(byte),
            state: confirmed(block, 4),
            coinbase: false,
            ownership: Ownership::Spendable,
            change: false,
            label: None,
            trusted: true,
            from_us: false,
        };
        change(&mut coin);
        coin
    };
    let coins = vec![
        coin(6, 2, |_| {}),
        coin(6, 8, |coin| coin.state = TxState::InMempool),
        coin(8, 16, |coin| (coin.state, coin.from_us) = (TxState::InMempool, true)),
        coin(1, 32, |coin| coin.trusted = false),
        coin(4, 64, |coin| coin.coinbase = true),
    ];
    harness.host.wallet.with(|state| state.coins = coins).unwrap();
    let groups = harness.plugin.call_json("listaddressgroupings", json!([])).unwrap();
    let member = |byte: u8, rest: &str| format!("[\"{}\",{rest}]", address(byte));
    let expected = [
        vec![member(1, "0.00000000,\"a\"")],
        vec![member(2, "0.00000000,\"b\""), member(5, "0.00000000,\"\""), member(6, "0.00000002")],
        vec![member(3, "0.00000000,\"a\"")],
        vec![member(4, "0.00000000,\"a\"")],
        vec![member(8, "0.00000016")],
    ];
    let expected: Vec<String> = expected.iter().map(|group| format!("[{}]", group.join(","))).collect();
    assert_eq!(groups, format!("[{}]", expected.join(",")));
}

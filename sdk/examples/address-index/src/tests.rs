use outrigger_sdk::bitcoin::{OutPoint, Transaction, TxIn, TxOut, absolute, transaction};
use outrigger_sdk::service::Chain;
use outrigger_sdk::testing::StubHost;

use super::*;

fn script(number: u8) -> ScriptBuf {
    ScriptBuf::from_bytes(vec![1, number])
}

#[test]
fn balances_and_histories_follow_spends_and_reorganisations() {
    let host = StubHost::new();
    let plugin = host.start::<AddressIndex>(json!({}));
    let balance = |number: u8| {
        let answer = plugin.call("getscriptbalance", json!([script(number).to_hex_string()])).unwrap();
        format!("{} {} {}", answer["balance"], answer["received"], answer["spent"])
    };
    let coinbase = host.chain.get(host.chain.mine_to(script(1), vec![])).unwrap().txdata.swap_remove(0);
    let spend = Transaction {
        version: transaction::Version::TWO,
        lock_time: absolute::LockTime::ZERO,
        input: vec![TxIn { previous_output: OutPoint::new(coinbase.compute_txid(), 0), ..TxIn::default() }],
        output: [30, 20].map(|btc| TxOut { value: Amount::from_int_btc(btc), script_pubkey: script(2) }).to_vec(),
    };
    let txid = spend.compute_txid();
    host.chain.mine(vec![spend]);
    assert_eq!(balance(1), "0.00000000 50.00000000 50.00000000");
    assert_eq!(balance(2), "50.00000000 50.00000000 0.00000000");
    let history = |from: u32, count: u32| {
        let params = json!([script(1).to_hex_string(), from, count]);
        plugin.call_json("getscripthistory", params).unwrap()
    };
    let spent = format!(r#"{{"height":2,"txid":"{txid}","vin":0,"amount":50.00000000}}"#);
    let received = format!(r#"{{"height":1,"txid":"{}","vout":0,"amount":50.00000000}}"#, coinbase.compute_txid());
    assert_eq!(history(0, u32::MAX), format!(r#"{{"entries":[{received},{spent}],"more":false}}"#));
    assert_eq!(history(0, 1), format!(r#"{{"entries":[{received}],"more":true}}"#));
    assert_eq!(history(2, 1), format!(r#"{{"entries":[{spent}],"more":false}}"#));
    host.chain.disconnect();
    assert_eq!(balance(1), "50.00000000 50.00000000 0.00000000");
    assert_eq!(balance(2), "0.00000000 0.00000000 0.00000000");
    plugin.stop();
    // The index has deleted the rows of the disconnected block. The row of the coinbase and the position remain.
    assert_eq!(host.store.rows().len(), 2);
    assert_eq!(host.chain.tip(Scope::NONE).unwrap().height, 1);
}

#[test]
fn balances_of_many_entries_are_summed_in_parts_and_other_texts_are_refused() {
    let host = StubHost::new();
    (0..12_000).for_each(|_| drop(host.chain.mine_to(script(1), vec![]).to_string()));
    let plugin = host.start::<AddressIndex>(json!({}));
    let answer = plugin.call("getscriptbalance", json!([script(1).to_hex_string()])).unwrap();
    assert_eq!(answer["balance"].to_string(), "600000.00000000");
    assert_eq!(plugin.call("getscriptbalance", json!(["no address"])).unwrap_err().code.0, -5);
}

//! The sources of spent outputs: `prevtxs`, the mempool, the chain.

use bitcoin::consensus::encode::deserialize_hex;
use bitcoin::{Amount, OutPoint, Transaction};
use outrigger_sdk::service::chain::Coin;
use serde_json::{Value, json};

use super::{WIF, WPKH, hex, outpoint, pays, sign, spend, start};

#[test]
fn signing_looks_in_the_mempool_before_the_chain() {
    let (host, plugin) = start();
    let coin = |value| Coin { output: pays(value), height: 1, coinbase: false };
    host.chain.add_coin(outpoint(0), coin(5_000));
    let parent = spend(&[outpoint(0)]);
    let parent_txid = parent.compute_txid();
    host.mempool.add(parent, Amount::from_sat(4_000));
    let child = spend(&[OutPoint { txid: parent_txid, vout: 0 }]);
    host.mempool.add(child.clone(), Amount::from_sat(0));

    // Outputs that a mempool transaction spends are available, too.
    assert_eq!(sign(&plugin, &child, json!(null)).unwrap()["complete"], true);
    assert_eq!(sign(&plugin, &spend(&[outpoint(0)]), json!(null)).unwrap()["complete"], true);
    // If the parent is in the mempool, the plugin does not search the chain for a missing output index.
    let beyond = OutPoint { txid: parent_txid, vout: 7 };
    host.chain.add_coin(beyond, coin(1));
    for unknown in [beyond, outpoint(9)] {
        let answer = sign(&plugin, &spend(&[unknown]), json!(null)).unwrap();
        assert_eq!(answer["errors"][0]["error"], "Input not found or already spent");
        assert_eq!(answer["errors"][0]["txid"], unknown.txid.to_string());
    }
}

#[test]
fn signing_prevtxs_take_precedence_over_the_chain() {
    let (host, plugin) = start();
    host.chain.add_coin(outpoint(0), Coin { output: pays(5_000), height: 1, coinbase: false });
    let tx = spend(&[outpoint(0)]);
    let prevtx =
        |amount: &str| json!({"txid": outpoint(0).txid.to_string(), "vout": 0, "scriptPubKey": WPKH, "amount": amount});
    let signature = |prevtxs: Value| {
        let answer = sign(&plugin, &tx, prevtxs).unwrap();
        let signed: Transaction = deserialize_hex(answer["hex"].as_str().unwrap()).unwrap();
        signed.input[0].witness.to_vec()
    };
    let by_chain = signature(json!(null));
    assert_eq!(signature(json!([prevtx("0.00005")])), by_chain);
    assert_ne!(signature(json!([prevtx("0.00006")])), by_chain);
    // The last element for an outpoint takes precedence.
    assert_eq!(signature(json!([prevtx("0.00006"), prevtx("0.00005")])), by_chain);
}

#[test]
fn signrawtransactionwithkey_names_the_first_missing_amount_also_of_a_signed_input() {
    let (_host, plugin) = start();
    let mut tx = spend(&[outpoint(0), outpoint(1)]);
    tx.input[0].witness.push([1]);
    let element =
        |vout: u32, script: &str| json!({"txid": outpoint(0).txid.to_string(), "vout": vout, "scriptPubKey": script});
    let params = json!([hex(&tx), [], [element(1, WPKH), element(0, "5120aa")]]);
    // Input 0 spends no witness program, so its witness is dropped and its amount is not needed.
    let answer = plugin.call("signrawtransactionwithkey", params);
    assert!(answer.unwrap()["complete"] == json!(false));
    let params = json!([hex(&tx), [WIF], [element(1, WPKH), element(0, WPKH)]]);
    let error = plugin.call("signrawtransactionwithkey", params).unwrap_err();
    let message = "Missing amount for CTxOut(nValue=21000000.00000000, scriptPubKey=0014751e76e8199196d454941c45d1)";
    assert_eq!((error.code.0, error.message.as_str()), (-3, message));
}

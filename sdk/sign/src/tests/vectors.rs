//! Published vectors: BIP 341's signatures and Bitcoin Core's private keys.
//!
//! They are beside the repository, or in the folder `OUTRIGGER_VECTORS`.

use std::collections::HashMap;

use bitcoin::consensus::encode::deserialize_hex;
use bitcoin::{Amount, NetworkKind, ScriptBuf, Transaction, TxOut};
use secp256k1::SecretKey;
use serde_json::Value;

use super::{KeyRing, sign_transaction};
use crate::{Sighash, SolvingSet, WalletKeys, WifKey};
use outrigger_service::Scope;
use outrigger_service::wallet::{SolvingData, TaprootData};
use outrigger_values::params::{decode_hex, encode_hex};
use outrigger_vectors::read as vectors;

fn bytes<const N: usize>(value: &Value) -> [u8; N] {
    decode_hex(value.as_str().unwrap()).unwrap().try_into().unwrap()
}

#[test]
fn key_path_signatures_are_those_of_bip_341() {
    let Some(vectors) = vectors("bip341_wallet.json") else { return };
    let spending = &vectors["keyPathSpending"][0];
    let given = &spending["given"];
    let unsigned: Transaction = deserialize_hex(given["rawUnsignedTx"].as_str().unwrap()).unwrap();
    let output = |spent: &Value| TxOut {
        value: Amount::from_sat(spent["amountSats"].as_u64().unwrap()),
        script_pubkey: ScriptBuf::from_hex(spent["scriptPubKey"].as_str().unwrap()).unwrap(),
    };
    let spent: Vec<Option<TxOut>> =
        given["utxosSpent"].as_array().unwrap().iter().map(|spent| Some(output(spent))).collect();
    let names: HashMap<u64, &str> = HashMap::from([
        (0, "DEFAULT"),
        (1, "ALL"),
        (2, "NONE"),
        (3, "SINGLE"),
        (0x81, "ALL|ANYONECANPAY"),
        (0x82, "NONE|ANYONECANPAY"),
        (0x83, "SINGLE|ANYONECANPAY"),
    ]);
    let inputs = spending["inputSpending"].as_array().unwrap();
    assert_eq!(inputs.len(), 7);
    for input in inputs {
        let given = &input["given"];
        let index = usize::try_from(given["txinIndex"].as_u64().unwrap()).unwrap();
        let mut known = SolvingSet::default();
        let taproot = TaprootData {
            internal_key: bytes(&input["intermediary"]["internalPubkey"]),
            merkle_root: given["merkleRoot"].as_str().map(|_| bytes(&given["merkleRoot"])),
            leaves: Vec::new(),
        };
        let script = &spent[index].as_ref().unwrap().script_pubkey;
        known.add(script, SolvingData { taproot: Some(taproot), ..SolvingData::default() });
        let ring = KeyRing(vec![SecretKey::from_slice(&bytes::<32>(&given["internalPrivkey"])).unwrap()]);
        let keys = WalletKeys::new(&ring, Scope::NONE, vec![script.clone()]);
        let sighash = Sighash::from_name(names[&given["hashType"].as_u64().unwrap()]).unwrap();
        let mut tx = unsigned.clone();
        let errors = sign_transaction(&mut tx, &spent, &known, &keys, sighash).unwrap();
        assert_eq!(errors[index], None);
        let witness: Vec<String> = tx.input[index].witness.iter().map(encode_hex).collect();
        assert_eq!(Value::from(witness), input["expected"]["witness"], "input {index}");
    }
}

#[test]
fn private_keys_are_read_as_bitcoin_core_reads_them() {
    let (Some(valid), Some(invalid)) = (vectors("key_io_valid.json"), vectors("key_io_invalid.json")) else { return };
    let mut read = 0;
    for row in valid.as_array().unwrap() {
        let (text, about) = (row[0].as_str().unwrap(), &row[2]);
        let right = if about["chain"] == "main" { NetworkKind::Main } else { NetworkKind::Test };
        let wrong = if right == NetworkKind::Main { NetworkKind::Test } else { NetworkKind::Main };
        assert!(WifKey::parse(text, wrong).is_err(), "{text}");
        match WifKey::parse(text, right) {
            Ok(key) => {
                assert_eq!(about["isPrivkey"], true, "{text}");
                assert_eq!(about["isCompressed"], key.is_compressed(), "{text}");
                let secret = key.with_secret(|secret| encode_hex(&secret.secret_bytes())).unwrap();
                assert_eq!(row[1], secret, "{text}");
                read += 1;
            }
            Err(_) => assert_eq!(about["isPrivkey"], false, "{text}"),
        }
    }
    assert!(read > 10, "only {read} keys");
    for row in invalid.as_array().unwrap() {
        let text = row[0].as_str().unwrap();
        for network in [NetworkKind::Main, NetworkKind::Test] {
            assert!(WifKey::parse(text, network).is_err(), "{text}");
        }
    }
}

//! Miniscripts that can be satisfied in several ways. The solver must choose as bitcoind does.
//!
//! `policies.json` has the results of bitcoind's wallets with all or some of a descriptor's keys: `{descriptor, signed,
//! error}`. The unsigned transaction is the signed one without its witness.

use std::str::FromStr;
use std::thread;

use bitcoin::consensus::encode::{deserialize_hex, serialize_hex};
use bitcoin::hashes::Hash;
use bitcoin::opcodes::all::{OP_0NOTEQUAL, OP_CHECKSIG};
use bitcoin::script::Builder;
use bitcoin::taproot::{LeafVersion, TaprootBuilder};
use bitcoin::{Amount, Network, ScriptBuf, Transaction, TxOut};
use secp256k1::{Secp256k1, SecretKey};
use serde_json::Value;

use super::{KeyRing, pays, sign_transaction, spend};
use crate::{Sighash, SolvingSet, WalletKeys};
use outrigger_descriptor::{Checksum, Descriptor};
use outrigger_service::Scope;
use outrigger_service::wallet::{SolvingData, TapLeaf, TaprootData};

const VALUE: Amount = Amount::from_sat(100_000_000);

/// The hex after signing, and the input's error.
fn sign(row: &Value) -> (String, Option<String>) {
    let text = |field: &str| row[field].as_str().unwrap();
    let mut tx: Transaction = deserialize_hex(text("signed")).unwrap();
    tx.input[0].witness.clear();
    let mut scripts = Vec::new();
    let mut known = SolvingSet::default();
    let mut keys = Vec::new();
    for descriptor in Descriptor::parse(text("descriptor"), Network::Regtest, Checksum::Required).unwrap() {
        for script in descriptor.expand(0).unwrap().scripts {
            known.add(&script.script_pubkey, script.solving);
            scripts.push(script.script_pubkey);
        }
        keys.extend(descriptor.private_branches().private_keys(0).into_iter().map(|(_, key)| key));
    }
    let ring = KeyRing(keys);
    let spent = [Some(TxOut { value: VALUE, script_pubkey: scripts[0].clone() })];
    let keys = WalletKeys::new(&ring, Scope::NONE, scripts);
    let errors = sign_transaction(&mut tx, &spent, &known, &keys, Sighash::DEFAULT).unwrap();
    (serialize_hex(&tx), errors[0].map(|error| error.to_string()))
}

#[test]
fn every_policy_is_satisfied_as_bitcoind_does() {
    let recording = Value::from_str(include_str!("policies.json")).unwrap();
    let rows = recording["rows"].as_array().unwrap();
    let mut wrong = Vec::new();
    for row in rows {
        let expected = (row["signed"].as_str().unwrap().to_owned(), row["error"].as_str().map(str::to_owned));
        let answer = sign(row);
        if answer != expected {
            wrong.push(format!("{}: {answer:?} for {expected:?}", row["descriptor"]));
        }
    }
    assert!(wrong.is_empty(), "{} of {} rows differ\n{}", wrong.len(), rows.len(), wrong.join("\n"));
    assert!(rows.len() > 250, "only {} rows", rows.len());
}

/// Whether a key can spend an output whose leaf is the key under this many `n:` wrappers.
fn spends_under_wrappers(wrappers: usize) -> bool {
    let secret = SecretKey::from_slice(&[7; 32]).unwrap();
    let secp = Secp256k1::new();
    let (leaf_key, _) = secret.x_only_public_key(&secp);
    let script = Builder::new().push_x_only_key(&leaf_key).push_opcode(OP_CHECKSIG);
    let script = (0..wrappers).fold(script, |script, _| script.push_opcode(OP_0NOTEQUAL)).into_script();
    let internal = SecretKey::from_slice(&[8; 32]).unwrap().x_only_public_key(&secp).0;
    let info = TaprootBuilder::new().add_leaf(0, script.clone()).unwrap().finalize(&secp, internal).unwrap();
    let control_block = info.control_block(&(script.clone(), LeafVersion::TapScript)).unwrap();
    let taproot = TaprootData {
        internal_key: internal.serialize(),
        merkle_root: info.merkle_root().map(|root| root.to_byte_array()),
        leaves: vec![TapLeaf { script, control_block: control_block.serialize().into() }],
    };
    let output = ScriptBuf::new_p2tr_tweaked(info.output_key());
    let mut known = SolvingSet::default();
    known.add(&output, SolvingData { taproot: Some(taproot), ..SolvingData::default() });
    let ring = KeyRing(vec![secret]);
    let keys = WalletKeys::new(&ring, Scope::NONE, vec![output.clone()]);
    let errors = sign_transaction(&mut spend(1), &[pays(output)], &known, &keys, Sighash::DEFAULT);
    errors.unwrap() == [None]
}

#[test]
fn the_deepest_policy_fits_the_smallest_stack() {
    /// The default stack size of threads, in bytes. Calls run on larger stacks.
    const STACK: usize = 2 << 20;
    let run = |wrappers| thread::Builder::new().stack_size(STACK).spawn(move || spends_under_wrappers(wrappers));
    assert!(run(399).unwrap().join().unwrap());
    // The miniscript parser refuses this depth.
    assert!(!run(10_000).unwrap().join().unwrap());
}

//! Imports, scripts and transactions for tests of wallets.

use bitcoin::absolute::LockTime;
use bitcoin::hashes::Hash;
use bitcoin::{Amount, OutPoint, ScriptBuf, Transaction, TxIn, TxOut, Txid, transaction};
use outrigger_service::wallet::{DescriptorImport, Import, KeysImport};
use outrigger_service::wire::Secret;

pub fn descriptor(text: &str, change: impl FnOnce(&mut DescriptorImport)) -> Import {
    let mut descriptor =
        DescriptorImport { text: Secret::new(text.into()), timestamp: 1, ..DescriptorImport::default() };
    change(&mut descriptor);
    Import::Descriptor { descriptor }
}

pub fn keys(change: impl FnOnce(&mut KeysImport)) -> Import {
    let mut keys = KeysImport { solving_data: true, timestamp: 1, ..KeysImport::default() };
    change(&mut keys);
    Import::Keys { keys }
}

pub fn foreign(number: u8) -> ScriptBuf {
    ScriptBuf::from_bytes([&[0, 20][..], &[0xee; 19], &[number]].concat())
}

pub fn elsewhere(number: u8) -> OutPoint {
    OutPoint { txid: Txid::from_byte_array([number; 32]), vout: 0 }
}

pub fn spend(inputs: &[OutPoint], outputs: &[(&ScriptBuf, u64)]) -> Transaction {
    let input = |outpoint: &OutPoint| TxIn { previous_output: *outpoint, ..TxIn::default() };
    let output = |(script, value): &(&ScriptBuf, u64)| TxOut {
        value: Amount::from_sat(*value),
        script_pubkey: (*script).clone(),
    };
    Transaction {
        version: transaction::Version::TWO,
        lock_time: LockTime::ZERO,
        input: inputs.iter().map(input).collect(),
        output: outputs.iter().map(output).collect(),
    }
}

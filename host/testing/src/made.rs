//! Imports, scripts and transactions for tests of wallets.

use bitcoin::absolute::LockTime;
use bitcoin::hashes::Hash;
use bitcoin::secp256k1::{Secp256k1, SecretKey};
use bitcoin::{
    Amount, CompressedPublicKey, NetworkKind, OutPoint, PrivateKey, PublicKey, ScriptBuf, Transaction, TxIn, TxOut,
    Txid, transaction,
};
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
    Import::Keys { parts: vec![keys] }
}

/// The private key whose 32 bytes are all `number`.
#[allow(clippy::expect_used, reason = "a test's own failure")]
pub fn key(number: u8) -> PrivateKey {
    let inner = SecretKey::from_slice(&[number; 32]).expect("a private key");
    PrivateKey { compressed: true, network: NetworkKind::Test, inner }
}

pub fn public(number: u8) -> PublicKey {
    key(number).public_key(&Secp256k1::new())
}

pub fn wif(number: u8) -> Secret {
    Secret::new(key(number).to_wif())
}

pub fn p2wpkh(number: u8) -> ScriptBuf {
    ScriptBuf::new_p2wpkh(&CompressedPublicKey(public(number).inner).wpubkey_hash())
}

pub fn p2pkh(number: u8) -> ScriptBuf {
    ScriptBuf::new_p2pkh(&public(number).pubkey_hash())
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

//! Signing with a key that never leaves the host.
#![allow(clippy::unwrap_used, reason = "a broken expectation fails the example")]

use outrigger_sdk::Host;
use outrigger_sdk::bitcoin::absolute::LockTime;
use outrigger_sdk::bitcoin::consensus::serialize;
use outrigger_sdk::bitcoin::secp256k1::{Message, Secp256k1, SecretKey, ecdsa::Signature};
use outrigger_sdk::bitcoin::transaction::Version;
use outrigger_sdk::bitcoin::{Amount, PublicKey, ScriptBuf, Transaction, TxIn, TxOut};
use outrigger_sdk::service::signer::{Scheme, SignBatch, SignRequest, Signed};
use outrigger_sdk::service::{ErrorKind, Scope, ServiceError};
use outrigger_sdk::testing::{StubHost, WalletState};
use outrigger_sdk::wire::Blob;

/// Signs the first input of a transaction, which spends a P2WPKH output; `None` if the call's wallet lacks the key.
fn sign(
    host: &Host,
    scope: Scope,
    transaction: &Transaction,
    spent: TxOut,
    key: &PublicKey,
) -> Result<Option<Signed>, ServiceError> {
    let scheme = Scheme::SegwitV0 { script_code: spent.script_pubkey.p2wpkh_script_code().unwrap() };
    let request = SignRequest { input: 0, public_key: Blob(key.to_bytes()), scheme, sighash: 1, annex: None };
    let (transaction, scripts) = (Blob(serialize(transaction)), vec![spent.script_pubkey.clone()]);
    let batch = SignBatch { transaction, spent: vec![Some(spent)], scripts, requests: vec![request] };
    Ok(host.signer.sign(scope, batch)?.pop().flatten())
}

fn main() -> Result<(), ServiceError> {
    let secp = Secp256k1::new();
    let secret = SecretKey::from_slice(&[7; 32]).unwrap();
    let public = PublicKey::new(secret.public_key(&secp));
    let spent = TxOut {
        value: Amount::from_sat(50_000),
        script_pubkey: ScriptBuf::new_p2wpkh(&public.wpubkey_hash().unwrap()),
    };
    let transaction = Transaction {
        version: Version::TWO,
        lock_time: LockTime::ZERO,
        input: vec![TxIn::default()],
        output: vec![TxOut { value: Amount::from_sat(49_000), script_pubkey: ScriptBuf::new() }],
    };
    let mut wallet = WalletState::empty("hot");
    wallet.keys.push(secret);
    let test = StubHost::new();
    test.wallet.set(Some(wallet));
    let signed = sign(&test.handle(), Scope::NONE, &transaction, spent.clone(), &public)?.unwrap();
    let signature = Signature::from_der(&signed.signature.0).unwrap();
    assert!(secp.verify_ecdsa(&Message::from_digest(signed.digest), &signature, &public.inner).is_ok());

    // A locked wallet signs nothing. The SDK derives the client's error from the kind.
    test.wallet.with(|wallet| wallet.info.locked = true)?;
    let error = sign(&test.handle(), Scope::NONE, &transaction, spent, &public).unwrap_err();
    assert_eq!(error.kind, ErrorKind::WalletLocked);
    Ok(())
}

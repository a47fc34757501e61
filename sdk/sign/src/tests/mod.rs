//! Tests of the whole solver. Tests of the plugin `signing` compare whole requests with bitcoind.

mod batches;
mod policies;
mod vectors;

use bitcoin::absolute::LockTime;
use bitcoin::consensus::deserialize;
use bitcoin::hashes::Hash;
use bitcoin::transaction::Version;
use bitcoin::{Amount, OutPoint, ScriptBuf, Sequence, Transaction, TxIn, TxOut, Txid, Witness};
use outrigger_script::TxContext;
use outrigger_service::signer::{SignBatch, SignRequest, Signed};
use outrigger_service::wire::Blob;
use outrigger_service::{Result, Scope, Signer};
use secp256k1::SecretKey;

use super::secp::SECP;
use super::{InputError, KeySource, Sighash, SolvingSet, sign_digest, sign_requests};

/// A signer with these keys.
struct KeyRing(Vec<SecretKey>);

impl KeyRing {
    fn key(&self, public_key: &[u8]) -> Option<&SecretKey> {
        self.0.iter().find(|secret| {
            let public = secret.public_key(&SECP);
            public_key == public.serialize() || public_key == public.x_only_public_key().0.serialize()
        })
    }
}

impl Signer for KeyRing {
    fn available(&self, _: Scope, _: Vec<ScriptBuf>, public_keys: Vec<Blob>) -> Result<Vec<bool>> {
        Ok(public_keys.iter().map(|public| self.key(public).is_some()).collect())
    }

    fn sign(&self, _: Scope, batch: SignBatch) -> Result<Vec<Option<Signed>>> {
        let transaction: Transaction = deserialize(&batch.transaction).unwrap();
        let context = TxContext::new(&transaction, &batch.spent[..]);
        let sign =
            |request: &SignRequest, digest| Some(sign_digest(self.key(&request.public_key)?, digest, &request.into()));
        Ok(sign_requests(&context, &batch.requests, &|| true, sign).unwrap())
    }
}

/// An unsigned transaction with one output. Its inputs spend invented outpoints.
fn spend(inputs: u32) -> Transaction {
    let input = |vout| TxIn {
        previous_output: OutPoint { txid: Txid::all_zeros(), vout },
        script_sig: ScriptBuf::new(),
        sequence: Sequence::MAX,
        witness: Witness::new(),
    };
    Transaction {
        version: Version::TWO,
        lock_time: LockTime::ZERO,
        input: (0..inputs).map(input).collect(),
        output: vec![TxOut { value: Amount::from_sat(1_000), script_pubkey: ScriptBuf::new() }],
    }
}

fn sign_transaction(
    tx: &mut Transaction,
    spent: &[Option<TxOut>],
    known: &SolvingSet,
    keys: &dyn KeySource,
    sighash: Sighash,
) -> Result<Vec<Option<InputError>>> {
    Ok(super::sign_transaction(tx, spent, known, keys, sighash, &|| true)?)
}

fn pays(script_pubkey: ScriptBuf) -> Option<TxOut> {
    Some(TxOut { value: Amount::from_sat(100_000), script_pubkey })
}

//! Signatures by the keys of a wallet in memory.

use bitcoin::consensus::deserialize;
use bitcoin::{ScriptBuf, Transaction};
use outrigger_script::TxContext;
use outrigger_service::signer::{SignBatch, SignRequest, Signed};
use outrigger_service::wire::Blob;
use outrigger_service::{ErrorKind, Result, Scope, Signer};
use outrigger_sign::{SignatureKind, message_digest, sign_digest, sign_requests, signs_anything};
use secp256k1::{Secp256k1, SecretKey};

use super::wallet::StubWallet;

fn key_of<'a>(keys: &'a [SecretKey], public_key: &[u8]) -> Option<&'a SecretKey> {
    let secp = Secp256k1::signing_only();
    keys.iter().find(|key| {
        let public = key.public_key(&secp);
        let (x_only, _) = public.x_only_public_key();
        public_key == public.serialize()
            || public_key == public.serialize_uncompressed()
            || public_key == x_only.serialize()
    })
}

impl Signer for StubWallet {
    fn available(&self, _: Scope, _: Vec<ScriptBuf>, public_keys: Vec<Blob>) -> Result<Vec<bool>> {
        self.with(|state| public_keys.iter().map(|public| key_of(&state.keys, public).is_some()).collect())
    }

    fn sign(&self, _: Scope, batch: SignBatch) -> Result<Vec<Option<Signed>>> {
        let transaction: Transaction = deserialize(&batch.transaction).map_err(|_| ErrorKind::Malformed)?;
        let context = TxContext::new(&transaction, &batch.spent[..]);
        self.unlocked(|state| {
            let sign = |request: &SignRequest, digest| {
                let key = key_of(&state.keys, &request.public_key).filter(|_| !signs_anything(&context, request))?;
                Some(sign_digest(key, digest, &request.into()))
            };
            sign_requests(&context, &batch.requests, &|| true, sign).unwrap_or_default()
        })
    }

    fn sign_message(&self, _: Scope, _: ScriptBuf, public_key: Blob, message: String) -> Result<Option<Blob>> {
        let sign = |key: &SecretKey| Blob(sign_digest(key, message_digest(&message), &SignatureKind::EcdsaRecoverable));
        self.unlocked(|state| key_of(&state.keys, &public_key).map(sign))
    }
}

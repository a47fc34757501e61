//! Signatures by the keys of a wallet in memory.

use bitcoin::ScriptBuf;
use outrigger_service::signer::{SignBatch, SignRequest};
use outrigger_service::wire::Blob;
use outrigger_service::{ErrorKind, Result, Scope, Signer};
use outrigger_sign::sign_digest;
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

fn sign(keys: &[SecretKey], request: &SignRequest) -> Option<Blob> {
    let key = key_of(keys, &request.public_key)?;
    Some(Blob(sign_digest(key, request.digest, &request.scheme)))
}

impl Signer for StubWallet {
    fn available(&self, _: Scope, _: Vec<ScriptBuf>, public_keys: Vec<Blob>) -> Result<Vec<bool>> {
        self.with(|state| public_keys.iter().map(|public| key_of(&state.keys, public).is_some()).collect())
    }

    fn sign_many(&self, _: Scope, batch: SignBatch) -> Result<Vec<Option<Blob>>> {
        self.with(|state| {
            if state.info.locked {
                return Err(ErrorKind::WalletLocked.into());
            }
            Ok(batch.requests.iter().map(|request| sign(&state.keys, request)).collect())
        })?
    }
}

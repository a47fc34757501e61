//! Sources of signatures: keys of the request, or a wallet of the host.

use std::collections::HashMap;

use bitcoin::ScriptBuf;
use bitcoin::consensus::serialize;
use bitcoin::key::TapTweak;
use bitcoin::taproot::TapNodeHash;
use secp256k1::ecdsa::{self, RecoverableSignature, RecoveryId};
use secp256k1::{Keypair, Message, PublicKey, SecretKey, XOnlyPublicKey, schnorr};

use super::digest::{SignatureKind, sign_requests};
use super::secp::SECP;
use super::solving::SolvingSet;
use super::wif::WifKey;
use outrigger_script::TxContext;
use outrigger_service::signer::{SignBatch, SignRequest, Signed};
use outrigger_service::wire::Blob;
use outrigger_service::{Result, Scope, Signer};

/// Signs inputs of a transaction by public key. The solver calls each method at most once per transaction: [`KeySource::sign`] for
/// all signatures, and before it [`KeySource::available`] if the choice of signatures depends on it.
pub trait KeySource {
    /// Whether it can sign with each of these public keys (33, 65 or 32 bytes), in order. Fails if the keys are not accessible.
    fn available(&self, public_keys: Vec<Blob>) -> Result<Vec<bool>>;

    /// The signature of each request; `None` for a key that it lacks. Fails for example in a locked wallet.
    fn sign(&self, context: &TxContext<'_>, requests: Vec<SignRequest>) -> Result<Vec<Option<Signed>>>;

    /// Whether the solver can trust the digests in its answers, and need not compute them again.
    fn computes_digests(&self) -> bool {
        false
    }
}

/// The keys of a request, wiped on drop.
#[derive(Debug, Default)]
pub struct LocalKeys {
    keys: Vec<WifKey>,
    /// The positions in `keys` by public key, for compressed keys also by x coordinate.
    by_public_key: HashMap<Vec<u8>, usize>,
}

impl LocalKeys {
    /// Adds a key.
    pub fn add(&mut self, key: WifKey) {
        let position = self.keys.len();
        self.by_public_key.insert(key.public_key().to_vec(), position);
        if let Some(x) = x_only(&key) {
            self.by_public_key.insert(x.to_vec(), position);
        }
        self.keys.push(key);
    }

    /// The solving data of the keys: public keys, P2WPKH scripts of compressed keys, with `taproot` BIP 86 outputs.
    pub fn solving(&self, taproot: bool) -> SolvingSet {
        let mut known = SolvingSet::default();
        for key in &self.keys {
            known.add_public_key(key.public_key());
            if key.is_compressed()
                && let Ok(public_key) = bitcoin::PublicKey::from_slice(key.public_key())
                && let Ok(hash) = public_key.wpubkey_hash()
            {
                known.add_script(ScriptBuf::new_p2wpkh(&hash));
            }
            if taproot && let Some(x) = x_only(key) {
                known.add_bip86(x);
            }
        }
        known
    }

    /// Signs a digest by the key with this public key; `None` if there is none.
    pub fn sign_digest(&self, public_key: &[u8], digest: [u8; 32], kind: &SignatureKind) -> Option<Vec<u8>> {
        self.find(public_key)?.with_secret(|secret| sign_digest(secret, digest, kind))
    }

    fn find(&self, public_key: &[u8]) -> Option<&WifKey> {
        self.keys.get(*self.by_public_key.get(public_key)?)
    }
}

impl KeySource for LocalKeys {
    fn available(&self, public_keys: Vec<Blob>) -> Result<Vec<bool>> {
        Ok(public_keys.iter().map(|key| self.find(key).is_some()).collect())
    }

    fn sign(&self, context: &TxContext<'_>, requests: Vec<SignRequest>) -> Result<Vec<Option<Signed>>> {
        let sign = |request: &SignRequest, digest| self.sign_digest(&request.public_key, digest, &request.into());
        Ok(sign_requests(context, &requests, &|| true, sign).unwrap_or_default())
    }

    fn computes_digests(&self) -> bool {
        true
    }
}

/// The x-only public key; `None` for an uncompressed key, which never signs in witnesses.
fn x_only(key: &WifKey) -> Option<[u8; 32]> {
    let (_, x) = key.public_key().split_first()?;
    x.try_into().ok()
}

/// Signs a digest: DER for ECDSA, 64 bytes for Schnorr.
///
/// The bytes equal bitcoind's: ECDSA with RFC 6979, low S, and low R by grinding; Schnorr without auxiliary randomness.
/// Derived keys are wiped; the caller wipes `secret`.
pub fn sign_digest(secret: &SecretKey, digest: [u8; 32], kind: &SignatureKind) -> Vec<u8> {
    let message = Message::from_digest(digest);
    match kind {
        SignatureKind::Ecdsa => SECP.sign_ecdsa_low_r(&message, secret).serialize_der().to_vec(),
        SignatureKind::EcdsaRecoverable => {
            let (recovery, compact) = SECP.sign_ecdsa_recoverable(&message, secret).serialize_compact();
            // A recovery id is 0 to 3.
            [&recovery.to_i32().to_le_bytes()[..1], &compact].concat()
        }
        SignatureKind::Schnorr => sign_schnorr(&message, Keypair::from_secret_key(&SECP, secret)),
        SignatureKind::SchnorrTweaked { merkle_root } => {
            let mut untweaked = Keypair::from_secret_key(&SECP, secret);
            let root = merkle_root.map(TapNodeHash::assume_hidden);
            let tweaked = untweaked.tap_tweak(&SECP, root).to_keypair();
            untweaked.non_secure_erase();
            sign_schnorr(&message, tweaked)
        }
    }
}

fn sign_schnorr(message: &Message, mut keypair: Keypair) -> Vec<u8> {
    let signature = SECP.sign_schnorr_no_aux_rand(message, &keypair);
    keypair.non_secure_erase();
    signature.serialize().to_vec()
}

/// Verifies a signature of a digest, in the form of [`sign_digest`], with a public key as in scripts (33, 65 or 32 bytes). ECDSA
/// signatures are DER with low S.
pub fn verify_digest(public_key: &[u8], digest: [u8; 32], kind: &SignatureKind, signature: &[u8]) -> bool {
    let message = Message::from_digest(digest);
    let schnorr = |key: Option<XOnlyPublicKey>| {
        let signature = schnorr::Signature::from_slice(signature);
        key.zip(signature.ok()).is_some_and(|(key, signature)| SECP.verify_schnorr(&signature, &message, &key).is_ok())
    };
    match kind {
        SignatureKind::Ecdsa => {
            let (Ok(key), Ok(signature)) = (PublicKey::from_slice(public_key), ecdsa::Signature::from_der(signature))
            else {
                return false;
            };
            // libsecp256k1 verifies no signature with a high S.
            SECP.verify_ecdsa(&message, &signature, &key).is_ok()
        }
        SignatureKind::EcdsaRecoverable => {
            let Some((id, compact)) = signature.split_first() else { return false };
            let id = RecoveryId::from_i32((*id).into());
            let signature = id.and_then(|id| RecoverableSignature::from_compact(compact, id));
            let signer = signature.and_then(|signature| SECP.recover_ecdsa(&message, &signature));
            signer.is_ok_and(|signer| PublicKey::from_slice(public_key) == Ok(signer))
        }
        SignatureKind::Schnorr => schnorr(XOnlyPublicKey::from_slice(public_key).ok()),
        SignatureKind::SchnorrTweaked { merkle_root } => {
            let root = merkle_root.map(TapNodeHash::assume_hidden);
            let tweaked = |key: XOnlyPublicKey| key.tap_tweak(&*SECP, root).0.to_x_only_public_key();
            schnorr(XOnlyPublicKey::from_slice(public_key).ok().map(tweaked))
        }
    }
}

/// The keys of the call's wallet. They stay in the host.
pub struct WalletKeys<'a> {
    signer: &'a dyn Signer,
    scope: Scope,
    scripts: Vec<ScriptBuf>,
}

impl<'a> WalletKeys<'a> {
    /// The wallet's keys for outputs with these scripts.
    pub fn new(signer: &'a dyn Signer, scope: Scope, scripts: Vec<ScriptBuf>) -> Self {
        Self { signer, scope, scripts }
    }
}

impl KeySource for WalletKeys<'_> {
    fn available(&self, public_keys: Vec<Blob>) -> Result<Vec<bool>> {
        self.signer.available(self.scope, self.scripts.clone(), public_keys)
    }

    fn sign(&self, context: &TxContext<'_>, requests: Vec<SignRequest>) -> Result<Vec<Option<Signed>>> {
        let spent = (0..context.tx().input.len()).map(|input| context.spent_output(input).cloned()).collect();
        let (transaction, scripts) = (Blob(serialize(context.tx())), self.scripts.clone());
        self.signer.sign(self.scope, SignBatch { transaction, spent, scripts, requests })
    }

    fn computes_digests(&self) -> bool {
        true
    }
}

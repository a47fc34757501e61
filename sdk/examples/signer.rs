//! A signature by a key that never leaves the host.
#![allow(clippy::unwrap_used, reason = "an example says what it expects by failing")]

use outrigger_sdk::Host;
use outrigger_sdk::bitcoin::ScriptBuf;
use outrigger_sdk::bitcoin::secp256k1::{Message, Secp256k1, SecretKey, ecdsa::Signature};
use outrigger_sdk::service::signer::{Scheme, SignBatch, SignRequest};
use outrigger_sdk::service::{ErrorKind, Scope, ServiceError};
use outrigger_sdk::testing::{StubHost, WalletState};
use outrigger_sdk::wire::Blob;

/// Signs a digest by the key behind a script of the call's wallet; none when the wallet has no such key.
fn sign(
    host: &Host,
    scope: Scope,
    script: ScriptBuf,
    key: &[u8],
    digest: [u8; 32],
) -> Result<Option<Blob>, ServiceError> {
    let request = SignRequest { public_key: Blob(key.to_vec()), digest, scheme: Scheme::Ecdsa };
    let batch = SignBatch { scripts: vec![script], requests: vec![request] };
    Ok(host.signer.sign_many(scope, batch)?.pop().flatten())
}

fn main() -> Result<(), ServiceError> {
    let secp = Secp256k1::new();
    let (secret, digest) = (SecretKey::from_slice(&[7; 32]).unwrap(), [1; 32]);
    let (public, script) = (secret.public_key(&secp), ScriptBuf::new());
    let mut wallet = WalletState::empty("hot");
    wallet.keys.push(secret);
    let test = StubHost::new();
    test.wallet.set(Some(wallet));
    let signature = sign(&test.handle(), Scope::NONE, script.clone(), &public.serialize(), digest)?;
    let signature = Signature::from_der(&signature.unwrap().0).unwrap();
    assert!(secp.verify_ecdsa(&Message::from_digest(digest), &signature, &public).is_ok());

    // A wallet that is locked signs nothing; what the client reads then is made of the error's kind.
    test.wallet.with(|wallet| wallet.info.locked = true)?;
    let error = sign(&test.handle(), Scope::NONE, script, &public.serialize(), digest).unwrap_err();
    assert_eq!(error.kind, ErrorKind::WalletLocked);
    Ok(())
}

#[test]
fn example_signer_does_what_it_says() -> Result<(), ServiceError> {
    main()
}

//! Signatures.

use bitcoin::hashes::Hash;
use bitcoin::key::TapTweak;
use bitcoin::secp256k1::{Message, PublicKey, Secp256k1, SecretKey, ecdsa, schnorr};
use bitcoin::{ScriptBuf, TapNodeHash, XOnlyPublicKey};
use outrigger_service::ErrorKind;
use outrigger_service::signer::{Scheme, SignBatch, SignRequest};
use outrigger_service::wallet::{AddressType, Import, KeysImport};
use outrigger_service::wire::{Blob, Secret};

use super::{Harness, foreign, kind_of};

const DIGEST: [u8; 32] = [9; 32];

fn request(public_key: &[u8], scheme: Scheme) -> SignRequest {
    SignRequest { public_key: Blob(public_key.to_vec()), digest: DIGEST, scheme }
}

fn sign(harness: &Harness, script: &ScriptBuf, request: SignRequest) -> Option<Blob> {
    let batch = SignBatch { scripts: vec![script.clone()], requests: vec![request] };
    harness.view().sign_many(batch).unwrap().remove(0)
}

fn key_of(harness: &Harness, script: &ScriptBuf) -> Vec<u8> {
    let info = harness.view().scripts(vec![script.clone()]).unwrap().remove(0).unwrap();
    info.solving.public_keys[0].0.clone()
}

#[test]
fn ecdsa_signatures_verify_and_come_only_for_the_scripts_of_the_batch() {
    let harness = Harness::with_wallet();
    let [script, other] = [0, 1].map(|_| harness.address(Some("")));
    let key = key_of(&harness, &script);
    let signature = sign(&harness, &script, request(&key, Scheme::Ecdsa)).unwrap();
    let signature = ecdsa::Signature::from_der(&signature).unwrap();
    assert!(signature.serialize_compact()[0] < 0x80, "R is low");
    let public = PublicKey::from_slice(&key).unwrap();
    Secp256k1::new().verify_ecdsa(&Message::from_digest(DIGEST), &signature, &public).unwrap();
    assert_eq!(sign(&harness, &other, request(&key, Scheme::Ecdsa)), None);
    let mut negated = key.clone();
    negated[0] ^= 1;
    assert_eq!(sign(&harness, &script, request(&negated, Scheme::Ecdsa)), None);
    assert_eq!(sign(&harness, &script, request(b"no key", Scheme::Ecdsa)), None);
    let available = harness.view().available(vec![script], vec![Blob(key), Blob(key_of(&harness, &other))]).unwrap();
    assert_eq!(available, [true, false]);
}

#[test]
fn schnorr_signatures_verify_with_and_without_the_tweak() {
    let harness = Harness::with_wallet();
    let script = harness.view().wallet().new_address(AddressType::Bech32m, false, Some(String::new())).unwrap();
    let info = harness.view().scripts(vec![script.clone()]).unwrap().remove(0).unwrap();
    let internal = XOnlyPublicKey::from_slice(&info.solving.taproot.unwrap().internal_key).unwrap();
    let secp = Secp256k1::verification_only();
    let message = Message::from_digest(DIGEST);
    let verify = |scheme, key: XOnlyPublicKey| {
        let signature = sign(&harness, &script, request(&internal.serialize(), scheme)).unwrap();
        secp.verify_schnorr(&schnorr::Signature::from_slice(&signature).unwrap(), &message, &key).unwrap();
    };
    verify(Scheme::Schnorr, internal);
    let output = script.as_bytes()[2..].to_vec();
    verify(Scheme::SchnorrTweaked { merkle_root: None }, XOnlyPublicKey::from_slice(&output).unwrap());
    let root = [5; 32];
    let tweaked = internal.tap_tweak(&secp, Some(TapNodeHash::from_byte_array(root))).0.to_x_only_public_key();
    verify(Scheme::SchnorrTweaked { merkle_root: Some(root) }, tweaked);
}

#[test]
fn a_locked_wallet_says_what_it_could_sign_and_signs_nothing() {
    let harness = Harness::with_wallet();
    let script = harness.address(Some(""));
    let key = key_of(&harness, &script);
    let wallet = harness.view().wallet().clone();
    wallet.encrypt(Secret::new("p".into())).unwrap();
    let batch = || SignBatch { scripts: vec![script.clone()], requests: vec![request(&key, Scheme::Ecdsa)] };
    assert_eq!(kind_of(harness.view().sign_many(batch())), ErrorKind::WalletLocked);
    assert_eq!(harness.view().available(vec![script.clone()], vec![Blob(key.clone())]).unwrap(), [true]);
    wallet.unlock(Secret::new("p".into()), 100).unwrap();
    assert!(harness.view().sign_many(batch()).unwrap()[0].is_some());
}

#[test]
fn imported_keys_sign_for_any_script() {
    let harness = Harness::with_wallet();
    let secret = SecretKey::from_slice(&[7; 32]).unwrap();
    let key = bitcoin::PrivateKey::new(secret, bitcoin::NetworkKind::Test);
    let public = key.public_key(&Secp256k1::new());
    let import = KeysImport {
        script_pubkeys: vec![ScriptBuf::new_p2pkh(&public.pubkey_hash())],
        scripts: vec![],
        private_keys: vec![Secret::new(key.to_wif())],
        public_keys: vec![],
        origins: vec![],
        solving_data: true,
        internal: false,
        label: String::new(),
        keypool: false,
        timestamp: 1,
    };
    harness.view().wallet().import(vec![Import::Keys { keys: import }]).unwrap();
    for bytes in [public.to_bytes(), public.inner.x_only_public_key().0.serialize().to_vec()] {
        assert!(sign(&harness, &foreign(1), request(&bytes, Scheme::Schnorr)).is_some());
        assert_eq!(harness.view().available(vec![], vec![Blob(bytes)]).unwrap(), [true]);
    }
}

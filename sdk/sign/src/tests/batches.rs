//! How the solver calls key sources, and how it handles missing answers.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};

use bitcoin::hashes::{Hash, hash160};
use bitcoin::opcodes::all::OP_CHECKMULTISIG;
use bitcoin::script::{Builder, PushBytesBuf};
use bitcoin::{NetworkKind, ScriptBuf, Witness, base58};
use proptest::prelude::*;
use secp256k1::{SecretKey, ecdsa};

use super::{pays, sign_transaction, spend};
use crate::collect::{Observer, collect};
use crate::secp::SECP;
use crate::{
    InputError, KeySource, LocalKeys, Sighash, SignError, SignatureKind, SolvingSet, WifKey, sign_digest, verify_digest,
};
use outrigger_script::{Checker, ScriptError, SigVersion, TxContext};
use outrigger_service::signer::{Scheme, SignRequest, Signed};
use outrigger_service::wire::Blob;
use outrigger_service::{ErrorKind, Result};

fn key(number: u8) -> WifKey {
    let mut payload = vec![0xef];
    payload.extend([0; 31]);
    payload.extend([number, 1]);
    WifKey::parse(&base58::encode_check(&payload), NetworkKind::Test).unwrap()
}

fn local(numbers: &[u8]) -> LocalKeys {
    let mut keys = LocalKeys::default();
    numbers.iter().for_each(|number| keys.add(key(*number)));
    keys
}

fn pkh(number: u8) -> ScriptBuf {
    ScriptBuf::new_p2pkh(&hash160::Hash::hash(key(number).public_key()).into())
}

fn wpkh(number: u8) -> ScriptBuf {
    ScriptBuf::new_p2wpkh(&hash160::Hash::hash(key(number).public_key()).into())
}

fn multisig(required: i64, numbers: &[u8]) -> ScriptBuf {
    let push = |builder: Builder, number: &u8| {
        builder.push_slice(PushBytesBuf::try_from(key(*number).public_key().to_vec()).unwrap())
    };
    let keys = numbers.iter().fold(Builder::new().push_int(required), push);
    keys.push_int(numbers.len() as i64).push_opcode(OP_CHECKMULTISIG).into_script()
}

/// A key source that records its calls. It may be locked, or return no signatures.
struct Counting {
    keys: LocalKeys,
    available: RefCell<Vec<usize>>,
    signed: RefCell<Vec<Vec<SignRequest>>>,
    locked: bool,
    forgets: bool,
}

impl Counting {
    fn new(numbers: &[u8]) -> Self {
        Self {
            keys: local(numbers),
            available: RefCell::default(),
            signed: RefCell::default(),
            locked: false,
            forgets: false,
        }
    }
}

impl KeySource for Counting {
    fn available(&self, public_keys: Vec<Blob>) -> Result<Vec<bool>> {
        self.available.borrow_mut().push(public_keys.len());
        self.keys.available(public_keys)
    }

    fn sign(&self, context: &TxContext<'_>, requests: Vec<SignRequest>) -> Result<Vec<Option<Signed>>> {
        self.signed.borrow_mut().push(requests.clone());
        if self.locked {
            return Err(ErrorKind::WalletLocked.into());
        }
        let signatures = self.keys.sign(context, requests)?;
        Ok(if self.forgets { signatures.into_iter().map(|_| None).take(1).collect() } else { signatures })
    }
}

#[test]
fn all_inputs_are_signed_in_one_batch() {
    let keys = Counting::new(&[1, 2, 3]);
    let known = local(&[1, 2, 3]).solving(true);
    let mut tx = spend(5);
    let bare = multisig(2, &[1, 2, 9]);
    // The output of the last input is beyond the end of the list.
    let spent = [pays(pkh(1)), pays(wpkh(2)), pays(bare), pays(wpkh(1))];
    let errors = sign_transaction(&mut tx, &spent, &known, &keys, Sighash::ALL).unwrap();
    assert_eq!(errors, [None, None, None, None, Some(InputError::NotFound)]);
    // Without a choice, only signatures are requested, also of keys that are not available.
    assert_eq!(*keys.available.borrow(), [0; 0]);
    let requests: Vec<usize> = keys.signed.borrow().iter().map(Vec::len).collect();
    assert_eq!(requests, [6]);
}

#[test]
fn keys_are_not_asked_when_there_is_nothing_to_sign() {
    let keys = Counting::new(&[1]);
    let known = local(&[1]).solving(false);
    let mut tx = spend(1);
    let spent = [pays(wpkh(1))];
    assert_eq!(sign_transaction(&mut tx, &spent, &known, &keys, Sighash::DEFAULT).unwrap(), [None]);
    let signed = tx.clone();
    // The input is complete.
    assert_eq!(sign_transaction(&mut tx, &spent, &known, &keys, Sighash::DEFAULT).unwrap(), [None]);
    assert_eq!((tx, keys.signed.borrow().len()), (signed, 1));
    // The keys are not available.
    let error = Some(InputError::Script(ScriptError::InvalidStackOperation));
    let answer = sign_transaction(&mut spend(1), &[pays(multisig(2, &[7, 8]))], &known, &keys, Sighash::DEFAULT);
    assert_eq!(answer.unwrap(), [error]);
    assert_eq!(keys.available.borrow().len(), 0);
}

#[test]
fn a_taproot_input_asks_for_its_key_path_only_where_that_is_there() {
    let keys = Counting::new(&[1]);
    let known = local(&[1]).solving(true);
    let internal = bitcoin::XOnlyPublicKey::from_slice(&key(1).public_key()[1..]).unwrap();
    let secp = secp256k1::Secp256k1::new();
    let mut tx = spend(1);
    let spent = [pays(ScriptBuf::new_p2tr(&secp, internal, None))];
    assert_eq!(sign_transaction(&mut tx, &spent, &known, &keys, Sighash::DEFAULT).unwrap(), [None]);
    let schemes: Vec<Scheme> = keys.signed.borrow().iter().flatten().map(|request| request.scheme.clone()).collect();
    assert_eq!(schemes, [Scheme::TaprootKey { merkle_root: None }]);
    assert_eq!(*keys.available.borrow(), [2]);
    assert_eq!(tx.input[0].witness[0].len(), 64);
}

#[test]
fn keys_that_fail_leave_the_transaction_as_it_was() {
    let keys = Counting { locked: true, ..Counting::new(&[1]) };
    let mut tx = spend(1);
    tx.input[0].script_sig = ScriptBuf::from_hex("51").unwrap();
    let before = tx.clone();
    let known = local(&[1]).solving(false);
    let error = sign_transaction(&mut tx, &[pays(pkh(1))], &known, &keys, Sighash::DEFAULT).unwrap_err();
    assert_eq!((error.kind, tx), (ErrorKind::WalletLocked, before));
}

#[test]
fn keys_that_forget_leave_inputs_incomplete() {
    let keys = Counting { forgets: true, ..Counting::new(&[1]) };
    let known = local(&[1]).solving(false);
    let spent = [pays(pkh(1)), pays(wpkh(1))];
    let errors = sign_transaction(&mut spend(2), &spent, &known, &keys, Sighash::DEFAULT).unwrap();
    let texts: Vec<String> = errors.into_iter().flatten().map(|error| error.to_string()).collect();
    assert_eq!(
        texts,
        ["Unable to sign input, invalid stack size (possibly missing key)", "Witness program hash mismatch"]
    );
}

#[test]
fn a_second_signer_finds_the_scripts_in_the_input() {
    let script = multisig(2, &[1, 2, 3]);
    let program = ScriptBuf::new_p2wsh(&script.wscript_hash());
    let outputs =
        [ScriptBuf::new_p2sh(&script.script_hash()), program.clone(), ScriptBuf::new_p2sh(&program.script_hash())];
    let mut known = SolvingSet::default();
    known.add_script(script);
    known.add_script(program);
    let spent = outputs.map(pays);
    let mut tx = spend(3);
    let mut sign = |known: &SolvingSet, number| {
        sign_transaction(&mut tx, &spent, known, &local(&[number]), Sighash::DEFAULT).unwrap()
    };
    let more_signatures = Some(InputError::Script(ScriptError::SigNullFail));
    assert_eq!(sign(&known, 3), [more_signatures; 3]);
    assert_eq!(sign(&SolvingSet::default(), 1), [None; 3]);
}

#[test]
fn signatures_in_the_order_of_the_keys_are_found_and_others_are_lost() {
    let script = multisig(2, &[1, 2, 3]);
    let spent = [pays(script)];
    let nothing = SolvingSet::default();
    let sign = |tx: &mut bitcoin::Transaction, numbers: &[u8]| {
        sign_transaction(tx, &spent, &nothing, &local(numbers), Sighash::DEFAULT).unwrap()
    };
    let pushes = |tx: &bitcoin::Transaction| -> Vec<Vec<u8>> {
        let pushes = tx.input[0].script_sig.instructions().map(|push| push.unwrap());
        pushes.map(|push| push.push_bytes().map_or(Vec::new(), |bytes| bytes.as_bytes().to_vec())).collect()
    };
    let mut tx = spend(1);
    assert_eq!(sign(&mut tx, &[1, 3]), [None]);
    let complete = pushes(&tx);
    let [_, first, third] = &complete[..] else { panic!("{complete:?}") };

    let with = |signatures: [&Vec<u8>; 2]| {
        let mut tx = spend(1);
        let push =
            |builder: Builder, bytes: &Vec<u8>| builder.push_slice(PushBytesBuf::try_from(bytes.clone()).unwrap());
        tx.input[0].script_sig = signatures.into_iter().fold(Builder::new().push_int(0), push).into_script();
        tx
    };
    // With the third key's signature first, the scan does not return to the first key.
    let mut swapped = with([third, first]);
    let error = Some(InputError::Script(ScriptError::SigNullFail));
    assert_eq!(sign(&mut swapped, &[]), [error]);
    assert_eq!(pushes(&swapped), [vec![], third.clone(), vec![]]);
    // The signatures are for another transaction: only the new one counts.
    let mut other = with([first, third]);
    other.output[0].value += bitcoin::Amount::from_sat(1);
    assert_eq!(sign(&mut other, &[2]), [error]);
    assert_eq!(pushes(&other).len(), 3);
}

proptest! {
    #[test]
    fn no_script_or_input_makes_it_panic(
        script_pubkey in script(),
        script_sig in script(),
        elements in prop::collection::vec(script().prop_map(ScriptBuf::into_bytes), 0..4),
        nested in script(),
    ) {
        let mut known = local(&[1, 2]).solving(true);
        known.add_script(nested.clone());
        let keys = local(&[1, 2]);
        let outputs = [
            script_pubkey,
            ScriptBuf::new_p2sh(&nested.script_hash()),
            ScriptBuf::new_p2wsh(&nested.wscript_hash()),
        ];
        let spent: Vec<_> = outputs.into_iter().map(pays).collect();
        let mut tx = spend(3);
        for input in &mut tx.input {
            input.script_sig = script_sig.clone();
            input.witness = Witness::from_slice(&elements);
        }
        let errors = sign_transaction(&mut tx, &spent, &known, &keys, Sighash::DEFAULT).unwrap();
        prop_assert_eq!(errors.len(), 3);
        // Signing the result again does not change it.
        let mut again = tx.clone();
        let same = sign_transaction(&mut again, &spent, &known, &keys, Sighash::DEFAULT).unwrap();
        prop_assert_eq!((again, same), (tx, errors));
    }
}

/// Scripts of opcodes, small pushes and parts of templates.
fn script() -> impl Strategy<Value = ScriptBuf> {
    let push = |bytes: Vec<u8>| [vec![bytes.len() as u8], bytes].concat();
    let piece = prop_oneof![
        4 => any::<u8>().prop_map(|opcode| vec![opcode]),
        2 => (1_u8..4).prop_map(move |number| push(key(number).public_key().to_vec())),
        1 => prop::collection::vec(any::<u8>(), 0..40).prop_map(push),
        1 => (0_u8..3).prop_map(|kind| match kind {
            0 => pkh(1).into_bytes(),
            1 => wpkh(2).into_bytes(),
            _ => multisig(1, &[1, 2]).into_bytes(),
        }),
        2 => prop::sample::select(vec![vec![0xac], vec![0xae], vec![0x51], vec![0x52], vec![0x63, 0x68], vec![0xb2]]),
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| ScriptBuf::from_bytes(pieces.concat()))
}

#[test]
fn work_that_nobody_waits_for_ends_early_and_changes_nothing() {
    let asked = AtomicUsize::new(0);
    let wanted = || asked.fetch_add(1, Ordering::Relaxed) < 5;
    let keys = Counting::new(&[1]);
    let known = local(&[1]).solving(false);
    let mut tx = spend(10_000);
    let before = tx.clone();
    let spent = vec![pays(pkh(1)); 10_000];
    let answer = crate::sign_transaction(&mut tx, &spent, &known, &keys, Sighash::DEFAULT, &wanted);
    assert_eq!((answer, tx == before), (Err(SignError::Unwanted), true));
    // The solver stopped within a few inputs, and did not call the keys.
    assert!(asked.into_inner() < 32);
    assert_eq!(keys.signed.borrow().len(), 0);
}

#[test]
fn a_signature_is_verified_once_however_often_it_is_met() {
    let script = multisig(2, &[1, 2, 3]);
    let spent = pays(script.clone()).unwrap();
    let mut tx = spend(1);
    let one = [Some(spent.clone())];
    sign_transaction(&mut tx, &one, &SolvingSet::default(), &local(&[1]), Sighash::DEFAULT).unwrap();
    let context = TxContext::new(&tx, &one[..]);
    let mut observer = Observer::new(&context, 0);
    assert!(collect(&mut observer, &tx.input[0], &spent).is_some());
    assert_eq!(observer.verified(), 1);
    let signatures: Vec<_> = tx.input[0].script_sig.instructions().flatten().collect();
    let signature = signatures[1].push_bytes().unwrap().as_bytes();
    assert!(observer.check_ecdsa_signature(signature, key(1).public_key(), &script, SigVersion::Base));
    assert!(!observer.check_ecdsa_signature(signature, key(2).public_key(), &script, SigVersion::Base));
    assert!(!observer.check_ecdsa_signature(
        signature,
        key(1).public_key(),
        &spend(1).output[0].script_pubkey,
        SigVersion::Base
    ));
    assert_eq!(observer.verified(), 1);
}

#[test]
fn a_signature_verifies_by_its_own_key_and_digest_in_its_own_form() {
    let secret = SecretKey::from_slice(&[7; 32]).unwrap();
    let public_key = secret.public_key(&SECP);
    let (whole, x) = (public_key.serialize(), public_key.x_only_public_key().0.serialize());
    let other = SecretKey::from_slice(&[8; 32]).unwrap().public_key(&SECP).serialize();
    let kinds: [(&[u8], &[u8], SignatureKind); 5] = [
        (&whole, &other, SignatureKind::Ecdsa),
        (&whole, &other, SignatureKind::EcdsaRecoverable),
        (&x, &other[1..], SignatureKind::Schnorr),
        (&x, &other[1..], SignatureKind::SchnorrTweaked { merkle_root: None }),
        (&x, &other[1..], SignatureKind::SchnorrTweaked { merkle_root: Some([3; 32]) }),
    ];
    for (own, other, kind) in &kinds {
        let signature = sign_digest(&secret, [1; 32], kind);
        assert!(verify_digest(own, [1; 32], kind, &signature), "{kind:?}");
        assert!(!verify_digest(own, [2; 32], kind, &signature), "{kind:?}");
        assert!(!verify_digest(other, [1; 32], kind, &signature), "{kind:?}");
        assert!(!verify_digest(own, [1; 32], kind, &signature[..signature.len() - 1]), "{kind:?}");
        assert!(!verify_digest(&[], [1; 32], kind, &signature) && !verify_digest(own, [1; 32], kind, &[]), "{kind:?}");
        let verifies = |(_, _, wrong): &&(&[u8], &[u8], SignatureKind)| verify_digest(own, [1; 32], wrong, &signature);
        assert_eq!(kinds.iter().filter(verifies).count(), 1, "{kind:?}");
    }
    // bitcoind relays no signature with a high S.
    let signature = sign_digest(&secret, [1; 32], &SignatureKind::EcdsaRecoverable);
    let (r, s) = signature[1..].split_at(32);
    let high = SecretKey::from_slice(s).unwrap().negate().secret_bytes();
    let der = ecdsa::Signature::from_compact(&[r, &high].concat()).unwrap().serialize_der();
    assert!(!verify_digest(&whole, [1; 32], &SignatureKind::Ecdsa, &der));
}

use bitcoin::absolute::LockTime;
use bitcoin::hashes::Hash;
use bitcoin::key::TapTweak;
use bitcoin::transaction::Version;
use bitcoin::{Amount, PrivateKey, ScriptBuf, TapNodeHash, Transaction, TxIn, TxOut, XOnlyPublicKey, consensus};
use secp256k1::{Message, PublicKey, Secp256k1, ecdsa, schnorr};

use super::imports::at;
use crate::tester::{
    Tester, descriptor, foreign, key, keys, master, out, p2wpkh, pay, public, refused, same, single, spend,
};
use outrigger_service::signer::{Scheme, SignBatch, SignRequest, Signed};
use outrigger_service::wallet::AddressType;
use outrigger_service::wire::{Blob, Secret};
use outrigger_service::{ErrorKind, Result as ServiceResult};

/// The longest time for which a wallet unlocks, in seconds.
const MAX_UNLOCK: u64 = 100_000_000;

fn pass(text: &str) -> Secret {
    Secret::new(text.into())
}

fn unlock(tester: &Tester, passphrase: &str, seconds: u64) -> ServiceResult<()> {
    tester.ask(|host, scope| host.admin.unlock(scope, pass(passphrase), seconds))
}

fn encrypt(tester: &Tester, passphrase: &str) -> ServiceResult<()> {
    tester.ask(|host, scope| host.admin.encrypt(scope, pass(passphrase)))
}

fn lock(tester: &Tester) -> ServiceResult<()> {
    tester.ask(|host, scope| host.admin.lock(scope))
}

#[test]
fn a_locked_wallet_answers_all_that_needs_no_key() {
    let tester = &Tester::with(|options| options.passphrase = pass("a"));
    unlock(tester, "a", MAX_UNLOCK).unwrap();
    let text = format!("wpkh({}/0h/0/*)", master(1));
    tester.take(descriptor(&text, |import| (import.range, import.active) = (Some((0, 5)), true)));
    lock(tester).unwrap();
    let locked = ErrorKind::WalletLocked;
    refused("an import", tester.import(vec![single(2)]), locked);
    refused("an import of nothing", tester.import(Vec::new()), locked);
    refused("private descriptors", tester.ask(|host, scope| host.keys.private_descriptors(scope)), locked);
    refused("a refill", tester.ask(|host, scope| host.book.refill_keypool(scope, Some(99))), locked);
    same("public descriptors", tester.ask(|host, scope| host.wallet.descriptors(scope)).unwrap().len(), 1);
    let ahead = tester.keypool();
    for index in 0..ahead + 3 {
        // Unhardened steps need no private key, however many there are.
        let script = tester
            .ask(|host, scope| host.book.new_address(scope, AddressType::Bech32, false, Some("x".into())))
            .unwrap();
        same("an address", script, at(&text, index));
    }
    tester.accept(&pay(1, &at(&text, 0), 7));
    same("a coin", tester.coins().len(), 1);
    let rescan = tester.ask(|host, scope| host.import.rescan_reserve(scope)).unwrap();
    tester.ask(|host, scope| host.import.rescan_release(scope, rescan)).unwrap();
    tester.ask(|host, scope| host.book.set_label(scope, foreign(1), "x".into())).unwrap();
    same("labels", tester.labels().len(), ahead as usize + 4);
}

#[test]
fn encryption_leaves_the_descriptors_of_a_wallet_that_was_made_blank() {
    let tester = &Tester::with(|_| {});
    let text = format!("wpkh({}/0/*)", master(1));
    tester.take(descriptor(&text, |import| (import.range, import.active) = (Some((0, 5)), true)));
    encrypt(tester, "a").unwrap();
    let told = tester.ask(|host, scope| host.wallet.descriptors(scope)).unwrap();
    same("the imported one gives addresses", told.iter().map(|info| info.active).collect::<Vec<_>>(), vec![true]);
    same("it is blank still", tester.info().blank, true);
    // A wallet that is not blank gets new descriptors, and only those are active.
    let name = Some("other");
    tester.try_create("other", |options| options.blank = false).unwrap();
    let import = descriptor(&text, |import| (import.range, import.active) = (Some((0, 5)), true));
    tester.of(name, |host, scope| host.import.import(scope, vec![import])).unwrap();
    tester.of(name, |host, scope| host.admin.encrypt(scope, pass("a"))).unwrap();
    let told = tester.of(name, |host, scope| host.wallet.descriptors(scope)).unwrap();
    let active: Vec<bool> = told.iter().map(|info| info.active).collect();
    same("the fresh ones are active", active, [vec![false; 9], vec![true; 8]].concat());
    same("and it is not blank", tester.of(name, |host, scope| host.wallet.info(scope)).unwrap().blank, false);
}

#[test]
fn a_locked_wallet_solves_derived_scripts() {
    let tester = &Tester::with(|_| {});
    let text = format!("wpkh({}/7h/*h)", master(1));
    tester.take(descriptor(&text, |import| (import.range, import.active) = (Some((0, 5)), true)));
    encrypt(tester, "a").unwrap();
    let next = || tester.ask(|host, scope| host.book.new_address(scope, AddressType::Bech32, false, None));
    for index in 0..tester.keypool() {
        let script = next().unwrap();
        same("what is derived is handed out", &script, &at(&text, index));
        let info = tester.script(&script).expect("the script");
        assert!(info.solvable && info.solving.public_keys.len() == 1, "it is solvable");
        let path = info.origins.into_iter().next().map(|origin| origin.path);
        same("where its key comes from", path, Some(format!("m/7h/{index}h")));
    }
    refused("what is not derived", next(), ErrorKind::KeypoolRanOut);
    assert!(tester.info().sources.iter().any(|source| source.available), "though it has keys");
    unlock(tester, "a", MAX_UNLOCK).unwrap();
    same("once it is unlocked", next().unwrap(), at(&text, tester.keypool()));
}

#[test]
fn without_private_keys_there_is_nothing_to_encrypt() {
    let tester = &Tester::with(|options| options.disable_private_keys = true);
    refused("encryption", encrypt(tester, "a"), ErrorKind::Refused);
    same("nothing changed", tester.info().encrypted, false);
}

/// A request for an ECDSA signature of the first input.
fn request(public_key: &[u8]) -> SignRequest {
    let scheme = Scheme::Legacy { script_code: ScriptBuf::from_bytes(vec![0x51]) };
    SignRequest { input: 0, public_key: Blob(public_key.to_vec()), scheme, sighash: 1, annex: None }
}

/// Signs a transaction that spends one output per script, or without scripts a single unknown output.
fn sign(tester: &Tester, scripts: &[ScriptBuf], requests: Vec<SignRequest>) -> ServiceResult<Vec<Option<Signed>>> {
    let inputs = (0..scripts.len().max(1)).map(|_| TxIn::default()).collect();
    let output = vec![TxOut { value: Amount::from_sat(1), script_pubkey: ScriptBuf::new() }];
    let transaction = Transaction { version: Version::TWO, lock_time: LockTime::ZERO, input: inputs, output };
    let spent = |script: &ScriptBuf| Some(TxOut { value: Amount::from_sat(1_000), script_pubkey: script.clone() });
    let spent = scripts.iter().map(spent).collect();
    let batch =
        SignBatch { transaction: Blob(consensus::serialize(&transaction)), spent, scripts: scripts.to_vec(), requests };
    tester.sign(|signer, scope| signer.sign(scope, batch))
}

/// Whether the wallet can sign with a key. Checks that `available` and `sign` agree.
fn can_sign(tester: &Tester, scripts: &[ScriptBuf], public_key: &[u8]) -> bool {
    let keys = vec![Blob(public_key.to_vec())];
    let said = tester.sign(|signer, scope| signer.available(scope, scripts.to_vec(), keys)).unwrap();
    let signed = sign(tester, scripts, vec![request(public_key)]).unwrap();
    same("what it says and what it does", &said, &signed.iter().map(Option::is_some).collect::<Vec<_>>());
    said[0]
}

#[test]
fn signatures_come_in_the_order_of_the_requests() {
    let tester = &Tester::with(|_| {});
    tester.take(single(1));
    tester.take(single(2));
    let scripts = [p2wpkh(1), p2wpkh(2)];
    let publics = [public(2), public(3), public(1), public(2)];
    let requests = publics.iter().map(|public| request(&public.to_bytes())).collect();
    let signatures = sign(tester, &scripts, requests).unwrap();
    same("as many as requests", signatures.len(), 4);
    let secp = Secp256k1::new();
    for (public, signature) in publics.iter().zip(signatures) {
        let Some(signature) = signature else {
            same("the key that it does not have", public, &publics[1]);
            continue;
        };
        let digest = Message::from_digest(signature.digest);
        let signature = ecdsa::Signature::from_der(&signature.signature).unwrap();
        secp.verify_ecdsa(&digest, &signature, &public.inner).unwrap();
        assert!(signature.serialize_compact()[0] < 0x80, "R is low");
    }
    same("no requests", sign(tester, &scripts, Vec::new()).unwrap(), Vec::new());
}

#[test]
fn a_descriptors_keys_sign_for_its_own_scripts_only() {
    let tester = &Tester::with(|_| {});
    let text = format!("wpkh({}/0h/*)", master(1));
    tester.take(descriptor(&text, |import| import.range = Some((0, 5))));
    let [one, other] = [at(&text, 0), at(&text, 1)];
    let key = tester.script(&one).expect("the script").solving.public_keys.remove(0);
    same("for its script", can_sign(tester, &[other.clone(), one], &key), true);
    same("for another", can_sign(tester, &[other], &key), false);
    same("for none", can_sign(tester, &[], &key), false);
}

#[test]
fn an_imported_key_signs_for_any_script() {
    let tester = &Tester::with(|_| {});
    tester.take(keys(|keys| keys.private_keys = vec![crate::tester::wif(1)]));
    for scripts in [vec![foreign(1)], Vec::new()] {
        same("by it", can_sign(tester, &scripts, &public(1).to_bytes()), true);
        same("by another", can_sign(tester, &scripts, &public(2).to_bytes()), false);
    }
}

#[test]
fn a_key_signs_by_the_form_that_is_its_own() {
    let tester = &Tester::with(|_| {});
    let long = PrivateKey { compressed: false, ..key(2) };
    tester.take(single(1));
    tester.take(keys(|keys| keys.private_keys = vec![Secret::new(long.to_wif())]));
    let forms = |public: PublicKey| {
        let mut negated = public.serialize();
        negated[0] ^= 1;
        let x_only = public.x_only_public_key().0.serialize();
        [public.serialize().to_vec(), public.serialize_uncompressed().to_vec(), x_only.to_vec(), negated.to_vec()]
    };
    let can = |number| -> Vec<bool> {
        let scripts = [p2wpkh(number)];
        forms(public(number).inner).iter().map(|form| can_sign(tester, &scripts, form)).collect()
    };
    same("a compressed key: by itself and its x coordinate", can(1), vec![true, false, true, false]);
    same("an uncompressed key: by itself alone", can(2), vec![false, true, false, false]);
    for form in [&b""[..], b"no key", &[7; 64]] {
        same("what is no key", can_sign(tester, &[p2wpkh(1)], form), false);
    }
}

#[test]
fn schnorr_signatures_are_made_with_and_without_the_tweak() {
    let tester = &Tester::with(|_| {});
    let text = format!("tr({})", crate::tester::wif(1).expose());
    tester.take(descriptor(&text, |_| {}));
    let scripts = [at(&text, 0)];
    let internal = public(1).inner.x_only_public_key().0;
    let secp = Secp256k1::new();
    let verify = |scheme, key: XOnlyPublicKey| {
        let request = SignRequest { scheme, sighash: 0, ..request(&internal.serialize()) };
        let signatures = sign(tester, &scripts, vec![request]).unwrap();
        let signed = signatures.into_iter().next().flatten().expect("the signature");
        let signature = schnorr::Signature::from_slice(&signed.signature).unwrap();
        secp.verify_schnorr(&signature, &Message::from_digest(signed.digest), &key).unwrap();
    };
    let tweaked = |root: Option<[u8; 32]>| {
        internal.tap_tweak(&secp, root.map(TapNodeHash::from_byte_array)).0.to_x_only_public_key()
    };
    verify(Scheme::TaprootOutputKey, internal);
    let script = ScriptBuf::from_bytes(vec![0x51]);
    verify(Scheme::TaprootLeaf { script, version: 0xc0, code_separator: u32::MAX }, internal);
    for merkle_root in [None, Some([5; 32])] {
        verify(Scheme::TaprootKey { merkle_root }, tweaked(merkle_root));
    }
}

#[test]
fn outputs_of_the_wallets_own_transactions_are_signed_for_as_they_are() {
    let tester = &Tester::with(|_| {});
    tester.take(single(1));
    let script = p2wpkh(1);
    let payment = pay(1, &script, 70);
    tester.mine(&[&payment]);
    let transaction = Blob(consensus::serialize(&spend(&[out(&payment, 0)], &[(&foreign(1), 60)])));
    let scheme = Scheme::SegwitV0 { script_code: script.p2wpkh_script_code().expect("the script code") };
    let requests = vec![SignRequest { scheme, ..request(&public(1).to_bytes()) }];
    let own = vec![script.clone()];
    let signed = |value, script: &ScriptBuf| {
        let spent = Some(TxOut { value: Amount::from_sat(value), script_pubkey: script.clone() });
        let (transaction, requests, scripts) = (transaction.clone(), requests.clone(), own.clone());
        let batch = SignBatch { transaction, spent: vec![spent], scripts, requests };
        tester.sign(|signer, scope| signer.sign(scope, batch))
    };
    same("as it is", signed(70, &script).unwrap().first().is_some_and(Option::is_some), true);
    refused("another value", signed(71, &script), ErrorKind::Refused);
    refused("another script", signed(70, &foreign(1)), ErrorKind::Refused);
}

#[test]
fn what_a_signature_does_not_commit_to_is_not_signed() {
    let tester = &Tester::with(|_| {});
    tester.take(single(1));
    let key = public(1).to_bytes();
    let (script, code) = (p2wpkh(1), ScriptBuf::from_bytes(vec![0x51]));
    let transaction = Blob(consensus::serialize(&spend(
        &[out(&pay(1, &script, 7), 0), out(&pay(2, &script, 7), 0)],
        &[(&foreign(1), 6)],
    )));
    let known = Some(TxOut { value: Amount::from_sat(7), script_pubkey: script });
    let signs = |input, scheme: &Scheme, sighash, spent: [&Option<TxOut>; 2]| {
        let request = SignRequest { input, scheme: scheme.clone(), sighash, ..request(&key) };
        let spent = spent.map(Clone::clone).to_vec();
        let (transaction, scripts) = (transaction.clone(), vec![p2wpkh(1)]);
        let batch = SignBatch { transaction, spent, scripts, requests: vec![request] };
        tester.sign(|signer, scope| signer.sign(scope, batch)).unwrap()[0].is_some()
    };
    let [legacy, segwit] = [Scheme::Legacy { script_code: code.clone() }, Scheme::SegwitV0 { script_code: code }];
    let (both, one) = ([&known, &known], [&known, &None]);
    for (what, input, scheme, sighash, spent, expected) in [
        ("any byte", 0, &legacy, 0x55, one, true),
        ("SINGLE with its output", 0, &legacy, 3, both, true),
        ("SINGLE without an output", 1, &legacy, 3, both, false),
        ("the same with ANYONECANPAY", 1, &legacy, 0x83, both, false),
        ("no such input", 2, &legacy, 1, both, false),
        ("an output that is known", 0, &segwit, 1, one, true),
        ("an output that is not", 1, &segwit, 1, one, false),
        ("taproot with all outputs", 0, &Scheme::TaprootOutputKey, 0, both, true),
        ("taproot without one", 0, &Scheme::TaprootOutputKey, 0, one, false),
        ("taproot by a byte that is none", 0, &Scheme::TaprootOutputKey, 4, both, false),
    ] {
        same(what, signs(input, scheme, sighash, spent), expected);
    }
}

#[test]
fn a_locked_wallet_says_what_it_could_sign_and_signs_nothing() {
    let tester = &Tester::with(|_| {});
    tester.take(single(1));
    tester.take(keys(|keys| keys.private_keys = vec![crate::tester::wif(2)]));
    encrypt(tester, "a").unwrap();
    let scripts = [p2wpkh(1)];
    let publics = [1, 2, 3].map(|number| Blob(public(number).to_bytes())).to_vec();
    let said = tester.sign(|signer, scope| signer.available(scope, scripts.to_vec(), publics.clone())).unwrap();
    same("what it could sign", said, vec![true, true, false]);
    let requests = || publics.iter().map(|public| request(public)).collect();
    refused("signing", sign(tester, &scripts, requests()), ErrorKind::WalletLocked);
    refused("signing nothing", sign(tester, &scripts, Vec::new()), ErrorKind::WalletLocked);
    unlock(tester, "a", MAX_UNLOCK).unwrap();
    let signed: Vec<bool> = sign(tester, &scripts, requests()).unwrap().iter().map(Option::is_some).collect();
    same("once it is unlocked", signed, vec![true, true, false]);
}

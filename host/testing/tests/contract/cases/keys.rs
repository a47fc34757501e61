//! Passphrases and signatures.

use bitcoin::hashes::Hash;
use bitcoin::key::TapTweak;
use bitcoin::{PrivateKey, ScriptBuf, TapNodeHash, XOnlyPublicKey};
use secp256k1::{Message, PublicKey, Secp256k1, ecdsa, schnorr};

use super::imports::at;
use outrigger_service::signer::{Scheme, SignBatch, SignRequest};
use outrigger_service::wallet::AddressType;
use outrigger_service::{ErrorKind, Result as ServiceResult};
use crate::testing::conformance::bench::{
    Bench, WALLET, descriptor, foreign, holds, key, keys, master, p2wpkh, pay, public, refused, same, single, some,
};
use crate::testing::conformance::{Failure, Outcome};
use outrigger_service::wire::{Blob, Secret};

const DIGEST: [u8; 32] = [9; 32];
/// The longest time that a wallet stays unlocked, in seconds.
const MAX_UNLOCK: u64 = 100_000_000;

fn pass(text: &str) -> Secret {
    Secret::new(text.into())
}

fn unlock(bench: &Bench<'_>, passphrase: &str, seconds: u64) -> ServiceResult<()> {
    bench.ask(|wallet, scope| wallet.unlock(scope, pass(passphrase), seconds))
}

fn encrypt(bench: &Bench<'_>, passphrase: &str) -> ServiceResult<()> {
    bench.ask(|wallet, scope| wallet.encrypt(scope, pass(passphrase)))
}

fn change(bench: &Bench<'_>, old: &str, new: &str) -> ServiceResult<()> {
    bench.ask(|wallet, scope| wallet.change_passphrase(scope, pass(old), pass(new)))
}

fn lock(bench: &Bench<'_>) -> ServiceResult<()> {
    bench.ask(|wallet, scope| wallet.lock(scope))
}

pub fn passphrases_are_asked_for_in_the_right_state_only(bench: &Bench<'_>) -> Outcome {
    bench.create(|_| {})?;
    let wrong = ErrorKind::WrongEncryptionState;
    refused("unlocking what is not encrypted", unlock(bench, "a", 9), wrong)?;
    refused("locking it", lock(bench), wrong)?;
    refused("changing its passphrase", change(bench, "a", "b"), wrong)?;
    encrypt(bench, "a")?;
    let info = bench.info()?;
    same("it is locked at once", (info.encrypted, info.locked, info.unlocked_until), (true, true, 0))?;
    refused("encrypting it again", encrypt(bench, "b"), wrong)?;
    refused("a wrong passphrase", unlock(bench, "b", 9), ErrorKind::PassphraseIncorrect)?;
    refused("a wrong old one", change(bench, "b", "c"), ErrorKind::PassphraseIncorrect)?;
    same("it is locked still", bench.info()?.locked, true)?;
    unlock(bench, "a", MAX_UNLOCK)?;
    same("it is not", bench.info()?.locked, false)?;
    refused("a wrong passphrase", unlock(bench, "b", 9), ErrorKind::PassphraseIncorrect)?;
    same("it is not still", bench.info()?.locked, false)?;
    change(bench, "a", "a")?;
    same("nor after a change", bench.info()?.locked, false)?;
    refused("a wrong old one", change(bench, "b", "c"), ErrorKind::PassphraseIncorrect)?;
    same("that locks it", (bench.info()?.locked, bench.info()?.unlocked_until), (true, 0))?;
    unlock(bench, "a", MAX_UNLOCK)?;
    lock(bench)?;
    lock(bench)?;
    same("it is locked again", bench.info()?.locked, true)
}

pub fn a_locked_wallet_answers_all_that_needs_no_key(bench: &Bench<'_>) -> Outcome {
    bench.create(|options| options.passphrase = pass("a"))?;
    unlock(bench, "a", MAX_UNLOCK)?;
    let text = format!("wpkh({}/0h/0/*)", master(1)?);
    bench.take(descriptor(&text, |import| (import.range, import.active) = (Some((0, 5)), true)))?;
    lock(bench)?;
    let locked = ErrorKind::WalletLocked;
    refused("an import", bench.import(vec![single(2)?]), locked)?;
    refused("an import of nothing", bench.import(Vec::new()), locked)?;
    refused("private descriptors", bench.ask(|wallet, scope| wallet.descriptors(scope, true)), locked)?;
    refused("a refill", bench.ask(|wallet, scope| wallet.refill_keypool(scope, Some(99))), locked)?;
    same("public descriptors", bench.ask(|wallet, scope| wallet.descriptors(scope, false))?.len(), 1)?;
    let ahead = bench.subject.keypool();
    for index in 0..ahead + 3 {
        // Public steps need no key, however many.
        let script = bench.ask(|w, scope| w.new_address(scope, AddressType::Bech32, false, Some("x".into())))?;
        same("an address", script, at(&text, index)?)?;
    }
    bench.accept(&pay(1, &at(&text, 0)?, 7));
    same("a coin", bench.coins()?.len(), 1)?;
    let rescan = bench.ask(|wallet, scope| wallet.rescan_reserve(scope))?;
    bench.ask(|wallet, scope| wallet.rescan_release(scope, rescan))?;
    bench.ask(|wallet, scope| wallet.set_label(scope, foreign(1), "x".into()))?;
    same("labels", bench.labels()?.len(), ahead as usize + 4)
}

pub fn encryption_gives_fresh_descriptors_and_keeps_the_old(bench: &Bench<'_>) -> Outcome {
    bench.create(|options| options.blank = false)?;
    let address = || bench.ask(|w, scope| w.new_address(scope, AddressType::Bech32, false, Some("x".into())));
    let old = address()?;
    encrypt(bench, "a")?;
    let told = bench.ask(|wallet, scope| wallet.descriptors(scope, false))?;
    let active: Vec<bool> = told.iter().map(|info| info.active).collect();
    same("which are active", active, [vec![false; 8], vec![true; 8]].concat())?;
    let parents = |script: &ScriptBuf| Ok::<_, Failure>(some("the script", bench.script(script)?)?.parents);
    let fresh = address()?;
    let [old, fresh] = [parents(&old)?, parents(&fresh)?];
    holds("addresses come from other keys now", old != fresh && !old.is_empty())?;
    bench.try_create("blank", |_| {})?;
    bench.of(Some("blank"), |wallet, scope| wallet.encrypt(scope, pass("a")))?;
    let told = bench.of(Some("blank"), |wallet, scope| wallet.descriptors(scope, false))?;
    same("a blank one stays blank", told.len(), 0)
}

pub fn encryption_leaves_the_descriptors_of_a_wallet_that_was_made_blank(bench: &Bench<'_>) -> Outcome {
    bench.create(|_| {})?;
    let text = format!("wpkh({}/0/*)", master(1)?);
    bench.take(descriptor(&text, |import| (import.range, import.active) = (Some((0, 5)), true)))?;
    encrypt(bench, "a")?;
    let told = bench.ask(|wallet, scope| wallet.descriptors(scope, false))?;
    same("the imported one gives addresses", told.iter().map(|info| info.active).collect::<Vec<_>>(), vec![true])?;
    same("it is blank still", bench.info()?.blank, true)?;
    // One that was not made blank gets descriptors of its own, and none but these are active.
    let name = Some("other");
    bench.try_create("other", |options| options.blank = false)?;
    let import = descriptor(&text, |import| (import.range, import.active) = (Some((0, 5)), true));
    bench.of(name, |wallet, scope| wallet.import(scope, vec![import]))?;
    bench.of(name, |wallet, scope| wallet.encrypt(scope, pass("a")))?;
    let told = bench.of(name, |wallet, scope| wallet.descriptors(scope, false))?;
    let active: Vec<bool> = told.iter().map(|info| info.active).collect();
    same("the fresh ones are active", active, [vec![false; 9], vec![true; 8]].concat())?;
    same("and it is not blank", bench.of(name, |wallet, scope| wallet.info(scope))?.blank, false)
}

pub fn a_locked_wallet_knows_how_what_it_derived_is_spent(bench: &Bench<'_>) -> Outcome {
    bench.create(|_| {})?;
    let text = format!("wpkh({}/7h/*h)", master(1)?);
    bench.take(descriptor(&text, |import| (import.range, import.active) = (Some((0, 5)), true)))?;
    encrypt(bench, "a")?;
    let next = || bench.ask(|w, scope| w.new_address(scope, AddressType::Bech32, false, None));
    for index in 0..bench.subject.keypool() {
        let script = next()?;
        same("what is derived is handed out", &script, &at(&text, index)?)?;
        let info = some("the script", bench.script(&script)?)?;
        holds("it is solvable", info.solvable && info.solving.public_keys.len() == 1)?;
        let path = info.origins.into_iter().next().map(|origin| origin.path);
        same("where its key comes from", path, Some(format!("m/7h/{index}h")))?;
    }
    refused("what is not derived", next(), ErrorKind::KeypoolRanOut)?;
    holds("though it has keys", bench.info()?.sources.iter().any(|source| source.available))?;
    unlock(bench, "a", MAX_UNLOCK)?;
    same("once it is unlocked", next()?, at(&text, bench.subject.keypool())?)
}

pub fn an_unlocked_wallet_says_until_when(bench: &Bench<'_>) -> Outcome {
    bench.create(|options| options.passphrase = pass("a"))?;
    let now = u64::from(bench.tip()?.time);
    for (seconds, expected) in [(5000, 5000), (MAX_UNLOCK * 2, MAX_UNLOCK), (7000, 7000)] {
        unlock(bench, "a", seconds)?;
        let info = bench.info()?;
        same("until when", (info.locked, info.unlocked_until), (false, now + expected))?;
    }
    lock(bench)?;
    same("once it is locked", bench.info()?.unlocked_until, 0)
}

pub fn a_wallet_is_locked_when_it_is_loaded(bench: &Bench<'_>) -> Outcome {
    bench.create(|_| {})?;
    bench.take(single(1)?)?;
    bench.unload(WALLET)?;
    bench.load(WALLET)?;
    same("one that is not encrypted", bench.info()?.locked, false)?;
    encrypt(bench, "a")?;
    unlock(bench, "a", MAX_UNLOCK)?;
    bench.unload(WALLET)?;
    bench.load(WALLET)?;
    let info = bench.info()?;
    same("one that was unlocked", (info.encrypted, info.locked, info.unlocked_until), (true, true, 0))?;
    Ok(unlock(bench, "a", 9)?)
}

pub fn without_private_keys_there_is_nothing_to_encrypt(bench: &Bench<'_>) -> Outcome {
    bench.create(|options| options.disable_private_keys = true)?;
    refused("encryption", encrypt(bench, "a"), ErrorKind::Refused)?;
    same("nothing changed", bench.info()?.encrypted, false)
}

pub fn a_passphrase_can_be_changed(bench: &Bench<'_>) -> Outcome {
    bench.create(|options| options.passphrase = pass("a"))?;
    change(bench, "a", "b")?;
    same("it stays locked", bench.info()?.locked, true)?;
    refused("the old one", unlock(bench, "a", 9), ErrorKind::PassphraseIncorrect)?;
    unlock(bench, "b", MAX_UNLOCK)?;
    bench.take(single(1)?)?;
    change(bench, "b", "c")?;
    same("it stays unlocked", bench.info()?.locked, false)?;
    lock(bench)?;
    unlock(bench, "c", MAX_UNLOCK)?;
    let told = bench.ask(|wallet, scope| wallet.descriptors(scope, true))?;
    let text = some("the descriptor", told.first())?.text.expose().to_owned();
    holds("its keys are as before", text.contains(&key(1)?.to_wif()))
}

fn request(public_key: &[u8], scheme: Scheme) -> SignRequest {
    SignRequest { public_key: Blob(public_key.to_vec()), digest: DIGEST, scheme }
}

fn sign(bench: &Bench<'_>, scripts: &[ScriptBuf], requests: Vec<SignRequest>) -> ServiceResult<Vec<Option<Blob>>> {
    let batch = SignBatch { scripts: scripts.to_vec(), requests };
    bench.sign(|signer, scope| signer.sign_many(scope, batch))
}

/// Whether the wallet says that it can sign by a key, which must be whether it does.
fn can_sign(bench: &Bench<'_>, scripts: &[ScriptBuf], public_key: &[u8]) -> Result<bool, Failure> {
    let keys = vec![Blob(public_key.to_vec())];
    let said = bench.sign(|signer, scope| signer.available(scope, scripts.to_vec(), keys))?;
    let signed = sign(bench, scripts, vec![request(public_key, Scheme::Ecdsa)])?;
    same("what it says and what it does", &said, &signed.iter().map(Option::is_some).collect::<Vec<_>>())?;
    some("the answer", said.first().copied())
}

pub fn signatures_come_in_the_order_of_the_requests(bench: &Bench<'_>) -> Outcome {
    bench.create(|_| {})?;
    bench.take(single(1)?)?;
    bench.take(single(2)?)?;
    let scripts = [p2wpkh(1)?, p2wpkh(2)?];
    let publics = [public(2)?, public(3)?, public(1)?, public(2)?];
    let requests = publics.iter().map(|public| request(&public.to_bytes(), Scheme::Ecdsa)).collect();
    let signatures = sign(bench, &scripts, requests)?;
    same("as many as requests", signatures.len(), 4)?;
    let secp = Secp256k1::new();
    for (public, signature) in publics.iter().zip(signatures) {
        let Some(signature) = signature else {
            same("the key that it does not have", public, &publics[1])?;
            continue;
        };
        let signature = ecdsa::Signature::from_der(&signature)?;
        secp.verify_ecdsa(&Message::from_digest(DIGEST), &signature, &public.inner)?;
        holds("R is low", signature.serialize_compact()[0] < 0x80)?;
    }
    same("no requests", sign(bench, &scripts, Vec::new())?, Vec::new())
}

pub fn a_descriptors_keys_sign_for_its_own_scripts_only(bench: &Bench<'_>) -> Outcome {
    bench.create(|_| {})?;
    let text = format!("wpkh({}/0h/*)", master(1)?);
    bench.take(descriptor(&text, |import| import.range = Some((0, 5))))?;
    let [one, other] = [at(&text, 0)?, at(&text, 1)?];
    let key = some("the script", bench.script(&one)?)?.solving.public_keys.remove(0);
    same("for its script", can_sign(bench, &[other.clone(), one], &key)?, true)?;
    same("for another", can_sign(bench, &[other], &key)?, false)?;
    same("for none", can_sign(bench, &[], &key)?, false)
}

pub fn an_imported_key_signs_for_any_script(bench: &Bench<'_>) -> Outcome {
    bench.create(|_| {})?;
    bench.take(keys(|keys| keys.private_keys = crate::testing::conformance::bench::wif(1).into_iter().collect()))?;
    for scripts in [vec![foreign(1)], Vec::new()] {
        same("by it", can_sign(bench, &scripts, &public(1)?.to_bytes())?, true)?;
        same("by another", can_sign(bench, &scripts, &public(2)?.to_bytes())?, false)?;
    }
    Ok(())
}

pub fn a_key_signs_by_the_form_that_is_its_own(bench: &Bench<'_>) -> Outcome {
    bench.create(|_| {})?;
    let long = PrivateKey { compressed: false, ..key(2)? };
    bench.take(single(1)?)?;
    bench.take(keys(|keys| keys.private_keys = vec![Secret::new(long.to_wif())]))?;
    let forms = |public: PublicKey| {
        let mut negated = public.serialize();
        negated[0] ^= 1;
        let x_only = public.x_only_public_key().0.serialize();
        [public.serialize().to_vec(), public.serialize_uncompressed().to_vec(), x_only.to_vec(), negated.to_vec()]
    };
    let can = |number| -> Result<Vec<bool>, Failure> {
        let scripts = [p2wpkh(number)?];
        forms(public(number)?.inner).iter().map(|form| can_sign(bench, &scripts, form)).collect()
    };
    same("a compressed key: by itself and its x coordinate", can(1)?, vec![true, false, true, false])?;
    same("an uncompressed key: by itself alone", can(2)?, vec![false, true, false, false])?;
    for form in [&b""[..], b"no key", &[7; 64]] {
        same("what is no key", can_sign(bench, &[p2wpkh(1)?], form)?, false)?;
    }
    Ok(())
}

pub fn schnorr_signatures_are_made_with_and_without_the_tweak(bench: &Bench<'_>) -> Outcome {
    bench.create(|_| {})?;
    let text = format!("tr({})", crate::testing::conformance::bench::wif(1)?.expose());
    bench.take(descriptor(&text, |_| {}))?;
    let scripts = [at(&text, 0)?];
    let internal = public(1)?.inner.x_only_public_key().0;
    let secp = Secp256k1::new();
    let verify = |scheme, key: XOnlyPublicKey| -> Outcome {
        let signatures = sign(bench, &scripts, vec![request(&internal.serialize(), scheme)])?;
        let signature = some("the signature", signatures.into_iter().next().flatten())?;
        let signature = schnorr::Signature::from_slice(&signature)?;
        Ok(secp.verify_schnorr(&signature, &Message::from_digest(DIGEST), &key)?)
    };
    let tweaked = |root: Option<[u8; 32]>| {
        internal.tap_tweak(&secp, root.map(TapNodeHash::from_byte_array)).0.to_x_only_public_key()
    };
    verify(Scheme::Schnorr, internal)?;
    for merkle_root in [None, Some([5; 32])] {
        verify(Scheme::SchnorrTweaked { merkle_root }, tweaked(merkle_root))?;
    }
    Ok(())
}

pub fn a_locked_wallet_says_what_it_could_sign_and_signs_nothing(bench: &Bench<'_>) -> Outcome {
    bench.create(|_| {})?;
    bench.take(single(1)?)?;
    bench.take(keys(|keys| keys.private_keys = crate::testing::conformance::bench::wif(2).into_iter().collect()))?;
    encrypt(bench, "a")?;
    let scripts = [p2wpkh(1)?];
    let publics = [1, 2, 3].into_iter().map(|n| Ok(Blob(public(n)?.to_bytes()))).collect::<Result<Vec<_>, Failure>>()?;
    let said = bench.sign(|signer, scope| signer.available(scope, scripts.to_vec(), publics.clone()))?;
    same("what it could sign", said, vec![true, true, false])?;
    let requests = || publics.iter().map(|public| request(public, Scheme::Ecdsa)).collect();
    refused("signing", sign(bench, &scripts, requests()), ErrorKind::WalletLocked)?;
    refused("signing nothing", sign(bench, &scripts, Vec::new()), ErrorKind::WalletLocked)?;
    unlock(bench, "a", MAX_UNLOCK)?;
    let signed: Vec<bool> = sign(bench, &scripts, requests())?.iter().map(Option::is_some).collect();
    same("once it is unlocked", signed, vec![true, true, false])
}

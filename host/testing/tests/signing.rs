//! Tests a key provider: the host asks it by the master key, and verifies its signatures. `tests/it/hsm_signer.rs` compares these with
//! a wallet's. The host asks a wallet's policy once for each batch of signatures.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a broken expectation fails the test")]

use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bitcoin::absolute::LockTime;
use bitcoin::bip32::{DerivationPath, Xpriv, Xpub};
use bitcoin::consensus::serialize;
use bitcoin::secp256k1::{Secp256k1, SecretKey};
use bitcoin::transaction::Version;
use bitcoin::{Amount, NetworkKind, ScriptBuf, Transaction, TxIn, TxOut};
use outrigger_sdk::RpcError;
use outrigger_sdk::sign::{SignatureKind, sign_digest};
use outrigger_service::policy::{Judgement, Policy, PolicyQuery};
use outrigger_service::provider::{KeysProvider, KeysQuery, MessageQuery, ProviderBatch};
use outrigger_service::signer::{MAX_MESSAGE, Scheme, SignBatch, SignRequest};
use outrigger_service::wallet::KeyOrigin;
use outrigger_service::wire::Blob;
use outrigger_service::{ErrorKind, Scope};
use outrigger_testing::TestHost;

/// A key provider with one master key. The test sets its behaviour.
#[derive(Clone)]
struct Provider {
    master: Xpriv,
    answer: Arc<Mutex<Behaviour>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Behaviour {
    Honest,
    SignsAnotherDigest,
    SignsWithAnotherKey,
    AnswersTooFew,
    Refuses,
}

impl Provider {
    fn new() -> Self {
        let master = Xpriv::new_master(NetworkKind::Test, &[7; 32]).unwrap();
        Self { master, answer: Arc::new(Mutex::new(Behaviour::Honest)) }
    }

    fn behave(&self, behaviour: Behaviour) {
        *self.answer.lock().unwrap() = behaviour;
    }

    fn key(&self, origin: &KeyOrigin) -> SecretKey {
        let secp = Secp256k1::new();
        assert_eq!(origin.fingerprint, self.master.fingerprint(&secp).to_bytes());
        let path = DerivationPath::from_str(&origin.path).unwrap();
        match *self.answer.lock().unwrap() {
            Behaviour::SignsWithAnotherKey => self.master.private_key,
            _ => self.master.derive_priv(&secp, &path).unwrap().private_key,
        }
    }

    fn digest(&self, digest: [u8; 32]) -> [u8; 32] {
        if *self.answer.lock().unwrap() == Behaviour::SignsAnotherDigest { [1; 32] } else { digest }
    }
}

impl KeysProvider for Provider {
    fn available(&self, _: Scope, query: &KeysQuery) -> Result<Vec<bool>, RpcError> {
        Ok(query.keys.iter().map(|_| true).collect())
    }

    fn sign(&self, _: Scope, batch: &ProviderBatch) -> Result<Vec<Option<Blob>>, RpcError> {
        let sign = |request: &outrigger_service::provider::ProviderRequest| {
            Some(Blob(sign_digest(&self.key(&request.key), self.digest(request.digest), &(&request.request).into())))
        };
        match *self.answer.lock().unwrap() {
            Behaviour::AnswersTooFew => return Ok(Vec::new()),
            Behaviour::Refuses => return Err(RpcError::wallet("The module is locked")),
            _ => {}
        }
        Ok(batch.requests.iter().map(sign).collect())
    }

    fn message(&self, _: Scope, query: &MessageQuery) -> Result<Option<Blob>, RpcError> {
        let digest = self.digest(query.digest);
        Ok(Some(Blob(sign_digest(&self.key(&query.key), digest, &SignatureKind::EcdsaRecoverable))))
    }
}

/// A policy that allows everything, and counts its queries.
#[derive(Clone, Default)]
struct Counting(Arc<AtomicUsize>);

impl Policy for Counting {
    fn judge(&self, _: Scope, _: &PolicyQuery) -> Result<Judgement, RpcError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(Judgement::Allow)
    }
}

/// The script types of the wallet "vault", and the purposes of their derivation paths.
const KINDS: [(&str, u32); 3] = [("wpkh", 84), ("tr", 86), ("pkh", 44)];

/// Creates the wallet "vault", for which the provider signs. `begin` runs before the imports.
fn wallet(host: &TestHost, provider: &Provider, begin: impl FnOnce()) {
    host.provide(provider.clone());
    host.create_wallet("vault", |options| (options.disable_private_keys, options.external_signer) = (true, true))
        .unwrap();
    begin();
    let secp = Secp256k1::new();
    let fingerprint = provider.master.fingerprint(&secp);
    for (kind, purpose) in KINDS {
        let path = DerivationPath::from_str(&format!("m/{purpose}h/1h/0h")).unwrap();
        let account = Xpub::from_priv(&secp, &provider.master.derive_priv(&secp, &path).unwrap());
        host.import("vault", format!("{kind}([{fingerprint}/{purpose}h/1h/0h]{account}/0/*)"), true);
    }
}

/// A transaction that spends an output of each script, and the requests for its signatures.
fn batch(host: &TestHost, scripts: &[ScriptBuf]) -> SignBatch {
    let (scope, _call) = host.open_call(Some("vault"));
    let infos = host.handle().wallet.scripts(scope, scripts.to_vec()).unwrap();
    let spent = scripts.iter().map(|script| TxOut { value: Amount::from_sat(50_000), script_pubkey: script.clone() });
    let transaction = Transaction {
        version: Version::TWO,
        lock_time: LockTime::ZERO,
        input: vec![TxIn::default(); scripts.len()],
        output: vec![TxOut { value: Amount::from_sat(49_000), script_pubkey: ScriptBuf::new() }],
    };
    let request = |(input, (script, info)): (u32, (&ScriptBuf, Option<outrigger_service::wallet::ScriptInfo>))| {
        let info = info.unwrap();
        let key = info.origins[0].public_key.clone();
        let (scheme, sighash) = match script {
            script if script.is_p2wpkh() => (Scheme::SegwitV0 { script_code: script.p2wpkh_script_code().unwrap() }, 1),
            script if script.is_p2tr() => (Scheme::TaprootKey { merkle_root: None }, 0),
            script => (Scheme::Legacy { script_code: script.clone() }, 1),
        };
        let public_key = if script.is_p2tr() { Blob(key[1..].to_vec()) } else { key };
        SignRequest { input, public_key, scheme, sighash, annex: None }
    };
    SignBatch {
        transaction: Blob(serialize(&transaction)),
        spent: spent.map(Some).collect(),
        scripts: scripts.to_vec(),
        requests: (0..).zip(scripts.iter().zip(infos)).map(request).collect(),
    }
}

/// An address of each type.
fn scripts(host: &TestHost) -> Vec<ScriptBuf> {
    use outrigger_service::wallet::AddressType::{Bech32, Bech32m, Legacy};
    let (scope, _call) = host.open_call(Some("vault"));
    let new = |kind| host.handle().book.new_address(scope, kind, false, None).unwrap();
    [Bech32, Bech32m, Legacy].map(new).to_vec()
}

#[test]
fn the_host_asks_a_policy_once_for_sign_and_sign_message_and_not_for_available() {
    let (mut host, provider, policy) = (TestHost::new(), Provider::new(), Counting::default());
    host.guard(&["hot", "vault"], policy.clone());
    wallet(&host, &provider, || {});
    // The wallet "hot" holds the private keys itself.
    host.create_wallet("hot", |options| options.blank = true).unwrap();
    for (kind, purpose) in KINDS {
        host.import("hot", format!("{kind}({}/{purpose}h/1h/0h/0/*)", provider.master), true);
    }
    let scripts = scripts(&host);
    let (batch, handle) = (batch(&host, &scripts), host.handle());
    let queries = || policy.0.swap(0, Ordering::Relaxed);
    queries();
    for name in ["hot", "vault"] {
        let (scope, _call) = host.open_call(Some(name));
        let keys = batch.requests.iter().map(|request| request.public_key.clone()).collect();
        assert_eq!(handle.signer.available(scope, scripts.clone(), keys).unwrap(), [true; 3], "{name}");
        assert_eq!(queries(), 0, "{name}");
        let signatures = handle.signer.sign(scope, batch.clone()).unwrap();
        assert!(signatures.iter().all(Option::is_some), "{name}: {signatures:?}");
        assert_eq!(queries(), 1, "{name}");
        let key = batch.requests[2].public_key.clone();
        let message = handle.signer.sign_message(scope, scripts[2].clone(), key, "text".into()).unwrap();
        assert_eq!((message.is_some(), queries()), (true, 1), "{name}");
        let (key, long) = (batch.requests[2].public_key.clone(), "m".repeat(MAX_MESSAGE + 1));
        let refused = handle.signer.sign_message(scope, scripts[2].clone(), key, long).unwrap_err();
        assert!(refused.detail.starts_with("The message is too long: "), "{refused}");
        assert_eq!(queries(), 0, "{name}");
    }
}

#[test]
fn a_provider_that_lies_or_refuses_signs_nothing() {
    let (host, provider) = (TestHost::new(), Provider::new());
    wallet(&host, &provider, || {});
    let scripts = scripts(&host);
    let (batch, handle) = (batch(&host, &scripts), host.handle());
    let (scope, _call) = host.open_call(Some("vault"));
    for (behaviour, reason) in [
        (Behaviour::SignsAnotherDigest, "gave a wrong signature of input 0"),
        (Behaviour::SignsWithAnotherKey, "gave a wrong signature of input 0"),
        (Behaviour::AnswersTooFew, "gave too few or too many answers"),
        (Behaviour::Refuses, "The module is locked"),
    ] {
        provider.behave(behaviour);
        let refused = handle.signer.sign(scope, batch.clone()).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Refused);
        assert!(refused.detail.contains(reason), "{refused}");
    }
    provider.behave(Behaviour::SignsAnotherDigest);
    let key = batch.requests[2].public_key.clone();
    let refused = handle.signer.sign_message(scope, scripts[2].clone(), key, "text".into()).unwrap_err();
    assert!(refused.detail.contains("gave a wrong signature of a message"), "{refused}");
    // The host does not ask the provider for an unknown key, or for a digest that covers an unknown output.
    provider.behave(Behaviour::Honest);
    let mut foreign = batch.clone();
    foreign.requests[0].public_key = Blob(vec![2; 33]);
    foreign.spent[2] = None;
    let signatures = handle.signer.sign(scope, foreign).unwrap();
    assert_eq!(signatures.iter().map(Option::is_some).collect::<Vec<_>>(), [false, false, true]);
}

#[test]
fn a_key_is_asked_for_by_its_master_key_though_another_descriptor_names_none() {
    for first in [true, false] {
        let (host, provider) = (TestHost::new(), Provider::new());
        let account = provider.master.derive_priv(&Secp256k1::new(), &DerivationPath::from_str("m/84h/1h/0h").unwrap());
        let text = format!("wpkh({}/0/*)", Xpub::from_priv(&Secp256k1::new(), &account.unwrap()));
        let import_other = || host.import("vault", text.clone(), false);
        wallet(&host, &provider, || {
            if first {
                import_other()
            }
        });
        if !first {
            import_other();
        }
        let batch = batch(&host, &scripts(&host));
        let (scope, _call) = host.open_call(Some("vault"));
        // The provider only knows keys by the fingerprint of its own master key.
        assert!(host.handle().signer.sign(scope, batch).unwrap().iter().all(Option::is_some));
    }
}

#[test]
fn a_wallet_with_an_external_signer_has_no_keys_and_needs_the_setting() {
    let mut host = TestHost::new();
    let refused = host.create_wallet("keys", |options| options.external_signer = true).unwrap_err();
    assert_eq!(refused.detail, "Private keys must be disabled when using an external signer");
    wallet(&host, &Provider::new(), || {});
    {
        let (scope, _call) = host.open_call(Some("vault"));
        let info = host.handle().wallet.info(scope).unwrap();
        assert_eq!((info.signer.as_deref(), info.private_keys_enabled, info.signs()), (Some("provider"), false, true));
        let texts = host.handle().keys.private_descriptors(scope).unwrap();
        assert!(texts.iter().all(|info| !info.text.expose().contains("tprv")));
    }
    // The wallet keeps its signer when it is loaded again, and can sign outside of calls.
    host.provide(Provider::new());
    host.restart(|_| {});
    let batch = batch(&host, &scripts(&host));
    let handle = host.handle();
    let named = Scope(handle.wallet.scope_of(Scope::NONE, "vault".into()).unwrap());
    assert_eq!(handle.wallet.info(named).unwrap().signer.as_deref(), Some("provider"));
    assert!(handle.signer.sign(named, batch).unwrap().iter().all(Option::is_some));
    // The scope of a wallet's name belongs to no call.
    assert_eq!(host.asked_for(), Scope::NONE);
    // An exported copy is watch-only.
    let (scope, _call) = host.open_call(Some("vault"));
    let file = host.path("copy").display().to_string();
    handle.admin.export_watch_only(scope, file.clone()).unwrap();
    handle.admin.restore(Scope::NONE, "copy".into(), file, None).unwrap();
    let copy = Scope(handle.wallet.scope_of(Scope::NONE, "copy".into()).unwrap());
    let info = handle.wallet.info(copy).unwrap();
    assert_eq!((info.signer.as_deref(), info.signs()), (None, false));
}

//! `signer/1`: signatures with a wallet's keys, which the wallet or a plugin holds.
//!
//! The wallet's policies first judge each signature. The host holds no lock and no snapshot while it asks policies and plugins.

use std::sync::Arc;

use bitcoin::ScriptBuf;
use bitcoin::consensus::serialize;
use outrigger_service::policy::Act;
use outrigger_service::provider::{KEYS_PROVIDER, KeysQuery, MessageQuery, ProviderBatch, ProviderRequest};
use outrigger_service::signer::{MAX_MESSAGE, SignBatch, Signed};
use outrigger_service::wallet::KeyOrigin;
use outrigger_service::wire::{Blob, Wire, from_bytes, to_bytes};
use outrigger_service::{ErrorKind, Result, Scope, ServiceError, Signer};
use outrigger_sign::{SignatureKind, digest, message_digest, signs_anything, verify_digest};
use outrigger_wallet_engine::Signing;

use super::WalletService;
use super::policy::{Asked, Providers};

/// The plugin that holds a wallet's keys.
struct Provider<'a> {
    providers: &'a dyn Providers,
    /// The call that waits; [`Scope::NONE`] outside of calls.
    scope: Scope,
    makers: Vec<Arc<str>>,
    signer: String,
    wallet: String,
}

impl Provider<'_> {
    fn ask<T: Wire>(&self, function: &str, argument: &impl Wire) -> Result<T> {
        if self.makers.iter().any(|maker| **maker == *self.signer) {
            return Err(self.refused("asks for a signature of its own while it signs"));
        }
        let method = format!("{KEYS_PROVIDER}.{function}");
        let asked = Asked { plugin: &self.signer, wallet: &self.wallet, method };
        let answer = self.providers.ask(self.scope, &self.makers, &asked, &to_bytes(argument))?;
        from_bytes(&answer).map_err(|error| self.refused(&format!("gave no valid answer: {error}")))
    }

    fn refused(&self, reason: &str) -> ServiceError {
        let Self { signer, wallet, .. } = self;
        let detail = format!("The plugin '{signer}', which signs for the wallet \"{wallet}\", {reason}");
        ServiceError::new(ErrorKind::Refused, detail)
    }

    /// Spreads the answers, one for each key of known origin, over all keys. The others get `None`.
    fn spread<T>(&self, keys: &[Option<KeyOrigin>], answers: Vec<T>) -> Result<Vec<Option<T>>> {
        if answers.len() != keys.iter().flatten().count() {
            return Err(self.refused("gave too few or too many answers"));
        }
        let mut answers = answers.into_iter();
        Ok(keys.iter().map(|key| key.as_ref().and_then(|_| answers.next())).collect())
    }

    fn available(&self, keys: &[Option<KeyOrigin>]) -> Result<Vec<bool>> {
        let known: Vec<KeyOrigin> = keys.iter().flatten().cloned().collect();
        if known.is_empty() {
            return Ok(vec![false; keys.len()]);
        }
        let query = KeysQuery { wallet: self.wallet.clone(), keys: known };
        let available = self.spread(keys, self.ask::<Vec<bool>>("available", &query)?)?;
        Ok(available.into_iter().map(Option::unwrap_or_default).collect())
    }

    fn sign(&self, signing: &Signing, batch: &SignBatch, keys: Vec<Option<KeyOrigin>>) -> Result<Vec<Option<Signed>>> {
        let context = signing.context();
        let requests = batch.requests.iter().zip(keys).map(|(request, key)| {
            let (key, digest) = (key?, digest(&context, request).filter(|_| !signs_anything(&context, request))?);
            Some(ProviderRequest { key, request: request.clone(), digest })
        });
        let requests: Vec<Option<ProviderRequest>> = requests.collect();
        let asked: Vec<ProviderRequest> = requests.iter().flatten().cloned().collect();
        if asked.is_empty() {
            return Ok(vec![None; requests.len()]);
        }
        let (wallet, spent) = (self.wallet.clone(), signing.spent.clone());
        let query =
            ProviderBatch { wallet, transaction: Blob(serialize(&signing.transaction)), spent, requests: asked };
        let keys: Vec<Option<KeyOrigin>> = requests.iter().map(|request| Some(request.as_ref()?.key.clone())).collect();
        let signatures = self.spread(&keys, self.ask::<Vec<Option<Blob>>>("sign", &query)?)?;
        let signed = requests.into_iter().zip(signatures).map(|(asked, signature)| {
            let (Some(ProviderRequest { request, digest, .. }), Some(Some(signature))) = (asked, signature) else {
                return Ok(None);
            };
            if !verify_digest(&request.public_key, digest, &(&request).into(), &signature) {
                return Err(self.refused(&format!("gave a wrong signature of input {}", request.input)));
            }
            Ok(Some(Signed { signature, digest }))
        });
        signed.collect()
    }

    fn message(&self, public_key: &[u8], key: Option<KeyOrigin>, message: String) -> Result<Option<Blob>> {
        let Some(key) = key else { return Ok(None) };
        let digest = message_digest(&message);
        let query = MessageQuery { wallet: self.wallet.clone(), key, message, digest };
        let signature = self.ask::<Option<Blob>>("message", &query)?;
        let is_right =
            |signature: &Blob| verify_digest(public_key, digest, &SignatureKind::EcdsaRecoverable, signature);
        if signature.as_ref().is_some_and(|signature| !is_right(signature)) {
            return Err(self.refused("gave a wrong signature of a message"));
        }
        Ok(signature)
    }
}

impl WalletService {
    /// The plugin that holds the keys of the call's wallet, and the keys' origins; `None` if the wallet holds them itself.
    fn provider<'a>(
        &'a self,
        scope: Scope,
        scripts: &[ScriptBuf],
        public_keys: impl Iterator<Item = &'a Blob>,
    ) -> Result<Option<(Provider<'a>, Vec<Option<KeyOrigin>>)>> {
        let call = self.call(scope)?;
        let (scope, makers) = (if call.of_call { scope } else { Scope::NONE }, call.caller.makers.clone());
        let provider = call.with_view(&self.manager, |view| {
            self.granted.check(view.wallet().name())?;
            let Some(signer) = view.wallet().signer() else { return Ok(None) };
            let (signer, wallet) = (signer.to_string(), view.wallet().name().to_owned());
            let keys = view.provided_keys(scripts, public_keys)?;
            Ok(Some((Provider { providers: &*self.providers, scope, makers, signer, wallet }, keys)))
        })?;
        if provider.is_some() {
            call.refresh();
        }
        Ok(provider)
    }
}

/// Fails unless `name` is the wallet whose policies judged. Outside of calls, each read selects the wallet anew.
pub(super) fn is_judged(name: &str, judged: &str) -> Result<()> {
    if name == judged { Ok(()) } else { Err(ErrorKind::WalletNotLoaded.into()) }
}

#[deny(clippy::missing_trait_methods)]
impl Signer for WalletService {
    fn available(&self, scope: Scope, scripts: Vec<ScriptBuf>, public_keys: Vec<Blob>) -> Result<Vec<bool>> {
        match self.provider(scope, &scripts, public_keys.iter())? {
            Some((provider, keys)) => provider.available(&keys),
            None => self.with_keys(scope, |view| view.available(scripts, public_keys)),
        }
    }

    fn sign(&self, scope: Scope, batch: SignBatch) -> Result<Vec<Option<Signed>>> {
        let begun = self.read(scope, |view| Ok((view.wallet().clone(), view.begin_signing(&batch)?)))?;
        let (wallet, Some(signing)) = begun else { return Ok(Vec::new()) };
        self.judge(scope, &wallet, || {
            let transaction = self.read(scope, |view| Ok(view.judged(&signing, &batch.requests)?))?;
            Ok(Act::Sign { transaction })
        })?;
        let public_keys = batch.requests.iter().map(|request| &request.public_key);
        match self.provider(scope, &batch.scripts, public_keys)? {
            Some((provider, keys)) => {
                is_judged(&provider.wallet, wallet.name()).and_then(|()| provider.sign(&signing, &batch, keys))
            }
            None => self.with_keys(scope, |view| {
                is_judged(view.wallet().name(), wallet.name())?;
                view.sign(&signing, &batch, &|| self.scopes.is_wanted(scope))
            }),
        }
    }

    fn sign_message(&self, scope: Scope, script: ScriptBuf, public_key: Blob, message: String) -> Result<Option<Blob>> {
        if message.len() > MAX_MESSAGE {
            let detail = format!("The message is too long: it has {} bytes, and may have {MAX_MESSAGE}", message.len());
            return Err(ServiceError::new(ErrorKind::Refused, detail));
        }
        let wallet = self.wallet(scope)?;
        self.judge(scope, &wallet, || Ok(Act::SignMessage { message: message.clone() }))?;
        match self.provider(scope, std::slice::from_ref(&script), std::iter::once(&public_key))? {
            Some((provider, mut keys)) => is_judged(&provider.wallet, wallet.name())
                .and_then(|()| provider.message(&public_key, keys.pop().flatten(), message)),
            None => self.with_keys(scope, |view| {
                is_judged(view.wallet().name(), wallet.name())?;
                view.sign_message(&script, &public_key, &message)
            }),
        }
    }
}

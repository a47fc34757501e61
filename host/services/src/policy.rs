//! The policies of wallets (`policy/1`). The host asks them before a wallet signs, sends or gives out anything.

use std::sync::Arc;

use outrigger_service::policy::{Act, Judgement, POLICY, PolicyQuery, SavedPolicy};
use outrigger_service::wire::{Blob, Wire, from_bytes, to_bytes};
use outrigger_service::{ErrorKind, Result, Scope, ServiceError};
use outrigger_wallet_engine::Wallet;

use super::WalletService;

/// The longest reason of a plugin that a client sees, in characters.
const MAX_REASON: usize = 1000;

/// A plugin's reason, cut at the limit.
pub fn shortened(reason: &str) -> &str {
    reason.char_indices().nth(MAX_REASON).and_then(|(end, _)| reason.get(..end)).unwrap_or(reason)
}

/// Reaches the plugins that provide services to the host (`keys-provider/1`, `policy/1`).
pub trait Providers: Send + Sync {
    /// Calls a method of a plugin that clients cannot call. `message` is the encoded argument. Returns the encoded result. Gives up once
    /// nobody waits for the call of `scope`, which the plugins `makers` made.
    fn ask(&self, scope: Scope, makers: &[Arc<str>], asked: &Asked<'_>, message: &[u8]) -> Result<Vec<u8>>;

    /// Runs `wait`, in which this thread waits for other calls, while another thread takes its place.
    fn lend(&self, wait: &mut dyn FnMut()) -> Result<()>;

    /// Called with each verdict of a policy.
    fn judged(&self, judgement: &JudgedAct<'_>);
}

/// A call of a plugin's function about a wallet.
pub struct Asked<'a> {
    pub plugin: &'a str,
    pub wallet: &'a str,
    /// Such as `policy/1.judge`.
    pub method: String,
}

pub struct JudgedAct<'a> {
    pub policy: &'a str,
    pub query: &'a PolicyQuery,
    /// Why the act was refused; `None` if it was allowed.
    pub refusal: Option<&'a str>,
}

impl WalletService {
    /// Asks the policies of a wallet, which must all allow the act. The host holds no lock and no snapshot meanwhile, but other payments of
    /// the wallet wait.
    ///
    /// # Errors
    /// `Refused`, with the policy's name and its reason.
    pub(super) fn judge(&self, scope: Scope, wallet: &Wallet, act: impl FnOnce() -> Result<Act>) -> Result<()> {
        let policies = wallet.policies()?;
        if policies.is_empty() {
            return Ok(());
        }
        self.restore_policies(scope, wallet)?;
        let call = self.call(scope)?;
        let (user, method) = (call.user().to_owned(), call.caller.method.as_deref().unwrap_or_default().to_owned());
        let query = PolicyQuery { wallet: wallet.name().to_owned(), user, method, act: act()? };
        let message = to_bytes(&query);
        for policy in &*policies {
            let verdict = self.ask_policy::<Judgement>(scope, policy, wallet.name(), "judge", &message);
            let refusal = match &verdict {
                Ok(Judgement::Allow) => None,
                Ok(Judgement::Refuse { reason }) => {
                    Some(format!("The policy '{policy}' refuses: {}", shortened(reason)))
                }
                Err(error) => Some(error.detail.clone()),
            };
            self.providers.judged(&JudgedAct { policy, query: &query, refusal: refusal.as_deref() });
            if let Some(refusal) = refusal {
                return Err(verdict.err().unwrap_or_else(|| ServiceError::new(ErrorKind::Refused, refusal)));
            }
        }
        Ok(())
    }

    /// The states that the policies of a wallet keep in its backup.
    pub(super) fn save_policies(&self, scope: Scope, wallet: &Wallet) -> Result<Vec<(String, Blob)>> {
        let (message, mut states) = (to_bytes(&wallet.name().to_owned()), Vec::new());
        for policy in &*wallet.policies()? {
            let state = self.ask_policy::<Option<Blob>>(scope, policy, wallet.name(), "save", &message)?;
            states.extend(state.map(|state| (policy.to_string(), state)));
        }
        Ok(states)
    }

    /// Gives the policies of a restored wallet their states from its backup. The first judgement completes an interrupted restore.
    pub(super) fn restore_policies(&self, scope: Scope, wallet: &Wallet) -> Result<()> {
        for policy in &*wallet.policies()? {
            if let Some(state) = wallet.pending_policy_state(policy)? {
                let saved = to_bytes(&SavedPolicy { wallet: wallet.name().to_owned(), state });
                self.ask_policy::<()>(scope, policy, wallet.name(), "restore", &saved)?;
                wallet.policy_restored(policy)?;
            }
        }
        Ok(())
    }

    fn ask_policy<T: Wire>(
        &self,
        scope: Scope,
        plugin: &str,
        wallet: &str,
        function: &str,
        message: &[u8],
    ) -> Result<T> {
        let call = self.call(scope)?;
        call.refresh();
        let scope = if call.of_call { scope } else { Scope::NONE };
        let asked = Asked { plugin, wallet, method: format!("{POLICY}.{function}") };
        // The plugin that acts is a maker, too.
        let own = call.granted.user.split_once(':').map(|(_, plugin)| Arc::from(plugin));
        let makers: Vec<Arc<str>> = call.caller.makers.iter().cloned().chain(own).collect();
        let answer = self.providers.ask(scope, &makers, &asked, message)?;
        from_bytes(&answer).map_err(|error| {
            let detail = format!("The policy '{plugin}' of the wallet \"{wallet}\" gave no valid answer: {error}");
            ServiceError::new(ErrorKind::Refused, detail)
        })
    }
}

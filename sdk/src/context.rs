//! What a plugin has at hand while it answers one call.

use bitcoin::Network;
use outrigger_descriptor::Syntax;
use outrigger_service::wallet::WalletInfo;
use outrigger_service::wire::Secret;
use outrigger_service::{Result, Scope};
use serde_json::Value;

use crate::Host;
use crate::params::Params;
use crate::standard::release::Rules;

/// The rules of a release for the text of descriptors.
pub fn descriptor_syntax(rules: &Rules) -> Syntax {
    Syntax { musig: rules.musig, unused: rules.unused, strict: rules.strict_descriptors }
}

/// One call: the host's services, the scope to use them in, and the parameters. `P` is the plugin's own state that its methods share.
pub struct CallContext<'a, P = ()> {
    /// The services that the plugin was granted.
    pub host: &'a Host,
    /// The scope of the call: what is read in it is of one moment.
    pub scope: Scope,
    /// The parameters, by position.
    pub params: Params,
    /// The rules of the release that the client expects.
    pub rules: Rules,
    /// The plugin's own state.
    pub plugin: &'a P,
}

impl<P> CallContext<'_, P> {
    /// The services in the call's scope.
    pub fn services(&self) -> outrigger_spend::Services<'_> {
        outrigger_spend::Services { host: self.host, scope: self.scope, rules: self.rules }
    }

    /// The wallet of the call.
    ///
    /// # Errors
    /// As of [`outrigger_service::WalletRead::info`].
    pub fn wallet(&self) -> Result<WalletInfo> {
        self.host.wallet.info(self.scope)
    }

    /// Takes the text at `index` out of the parameters, to be wiped; empty where it was left out.
    pub fn take_secret(&mut self, index: usize) -> Secret {
        match self.params.0.get_mut(index).map(Value::take) {
            Some(Value::String(text)) => Secret::new(text),
            _ => Secret::default(),
        }
    }

    /// The network of the node's chain.
    ///
    /// # Errors
    /// As of [`outrigger_service::Chain::network`].
    pub fn network(&self) -> Result<Network> {
        self.host.chain.network(self.scope)
    }
}

//! The services that an instance gets by its grants.

use std::sync::Arc;

use outrigger_abi::ExportedService;
use outrigger_node::Node;
use outrigger_plugins::grants::{Grant, Holder, NODE_RPC, SIGNER, ServiceSource, WALLET};
use outrigger_sandbox::Reach;
use outrigger_service::chain::Publication;
use outrigger_service::{Chain, Mempool, NodeRpc, Signer, Wallet};
use outrigger_services::{
    ChainService, GrantedAccess, Keys, MempoolService, NodeMethods, NodeRpcService, OwnScopes, Scopes, WalletService,
};
use outrigger_wallet_engine::WalletManager;

const NAMES: [&str; 5] = ["chain/1", "mempool/1", WALLET, SIGNER, NODE_RPC];

/// Only the services' names, for checking grants without starting anything.
pub struct ServiceNames;

impl ServiceSource for ServiceNames {
    fn names(&self) -> &'static [&'static str] {
        &NAMES
    }

    fn export(&self, _: &str, _: &Holder<'_>) -> Option<Arc<ExportedService>> {
        None
    }
}

pub struct HostServices {
    pub node: Arc<dyn Node>,
    pub published: Arc<[Publication]>,
    /// The node's own methods; `None` on the embedded chain.
    pub methods: Option<Arc<dyn NodeMethods>>,
    pub manager: Arc<WalletManager>,
    pub scopes: Arc<Scopes>,
}

impl ServiceSource for HostServices {
    fn names(&self) -> &'static [&'static str] {
        &NAMES
    }

    fn export(&self, service: &str, holder: &Holder<'_>) -> Option<Arc<ExportedService>> {
        let grants = holder.grants;
        let scopes = OwnScopes::of(self.scopes.clone(), holder.instance, granted(holder));
        let node = self.node.clone();
        let wallets =
            || WalletService { manager: self.manager.clone(), scopes: scopes.clone(), keys: signing_keys(grants) };
        let [chain, mempool, wallet, signer, node_rpc] = NAMES;
        let exported = match service {
            name if name == chain => {
                let (published, wallets) = (self.published.clone(), self.manager.clone());
                ExportedService::new::<dyn Chain>(Arc::new(ChainService { node, scopes, published, wallets }))
            }
            name if name == mempool => ExportedService::new::<dyn Mempool>(Arc::new(MempoolService { node, scopes })),
            name if name == wallet => ExportedService::new::<dyn Wallet>(Arc::new(wallets())),
            name if name == signer => ExportedService::new::<dyn Signer>(Arc::new(wallets())),
            name if name == node_rpc => {
                let (node, methods) = (self.methods.clone(), granted_methods(grants));
                ExportedService::new::<dyn NodeRpc>(Arc::new(NodeRpcService { node, methods, scopes }))
            }
            _ => return None,
        };
        Some(Arc::new(exported))
    }
}

/// The wallets and files that an instance may use.
fn granted(holder: &Holder<'_>) -> GrantedAccess {
    let wallet = holder.grants.iter().find(|grant| grant.service == WALLET);
    let folders = |writing: bool| {
        let files = holder.reach?.iter().filter_map(Reach::files);
        Some(files.filter(|(_, writes)| *writes || !writing).map(|(path, _)| path.to_owned()).collect())
    };
    GrantedAccess {
        wallets: wallet.and_then(|grant| grant.wallets.as_deref()).map(Into::into),
        reads: folders(false),
        writes: folders(true),
    }
}

/// The wallets whose keys an instance with these grants may use.
fn signing_keys(grants: &[Grant]) -> Keys {
    match grants.iter().find(|grant| grant.service == SIGNER) {
        None => Keys::None,
        Some(Grant { wallets: None, .. }) => Keys::All,
        Some(Grant { wallets: Some(wallets), .. }) => Keys::Of(wallets.clone()),
    }
}

/// The methods of the node that an instance with these grants may call.
fn granted_methods(grants: &[Grant]) -> Vec<String> {
    grants.iter().find(|grant| grant.service == NODE_RPC).and_then(|grant| grant.methods.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use outrigger_service::ErrorKind;

    use super::*;

    #[test]
    fn signer_has_the_keys_of_the_granted_wallets_alone() {
        let of = |wallets: Option<Vec<String>>| signing_keys(&[Grant { wallets, ..Grant::all(SIGNER) }]);
        assert!(of(None).check("any").is_ok());
        assert!(of(Some(vec!["hot".into()])).check("hot").is_ok());
        assert_eq!(of(Some(vec!["hot".into()])).check("cold").unwrap_err().kind, ErrorKind::NotGranted);
        assert_eq!(signing_keys(&[Grant::all("wallet/1")]).check("hot").unwrap_err().kind, ErrorKind::NotGranted);
    }
}

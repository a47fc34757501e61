//! The services that the host exports to plugin instances, as granted.

use std::sync::Arc;

use outrigger_abi::ExportedService;
use outrigger_node::Node;
use outrigger_plugins::grants::{Grant, Holder, RPC, SERVICES, ServiceSource, known_wallets};
use outrigger_rpc::PLUGIN_USER;
use outrigger_sandbox::Reach;
use outrigger_service::chain::Publication;
use outrigger_service::{
    Chain, Mempool, Rpc, Signer, Store, WalletAdmin, WalletBook, WalletImport, WalletKeys, WalletPay, WalletRead,
};
use outrigger_services::{
    ChainService, GrantedAccess, GrantedWallets, MempoolService, OwnScopes, RpcService, Scopes, Stores, WalletService,
};
use outrigger_wallet_engine::WalletManager;

use crate::router::onward::Switchboard;

pub struct HostServices {
    pub node: Arc<dyn Node>,
    pub published: Arc<[Publication]>,
    pub switchboard: Arc<Switchboard>,
    pub manager: Arc<WalletManager>,
    pub scopes: Arc<Scopes>,
    pub stores: Arc<Stores>,
}

impl ServiceSource for HostServices {
    fn export(&self, service: &str, holder: &Holder<'_>) -> Option<Arc<ExportedService>> {
        let grants = holder.grants;
        let scopes = OwnScopes::of(self.scopes.clone(), holder.instance, granted(holder));
        let node = self.node.clone();
        let wallets = |service| {
            let (manager, scopes, providers) = (self.manager.clone(), scopes.clone(), self.switchboard.clone());
            Arc::new(WalletService { manager, scopes, granted: granted_wallets(service, grants), providers })
        };
        let [chain, mempool, read, book, pay, import, admin, keys, signer, rpc, store] = SERVICES;
        let exported = match service {
            name if name == chain => {
                let (published, wallets) = (self.published.clone(), self.manager.clone());
                ExportedService::new::<dyn Chain>(Arc::new(ChainService { node, scopes, published, wallets }))
            }
            name if name == mempool => ExportedService::new::<dyn Mempool>(Arc::new(MempoolService { node, scopes })),
            name if name == read => ExportedService::new::<dyn WalletRead>(wallets(read)),
            name if name == book => ExportedService::new::<dyn WalletBook>(wallets(book)),
            name if name == pay => ExportedService::new::<dyn WalletPay>(wallets(pay)),
            name if name == import => ExportedService::new::<dyn WalletImport>(wallets(import)),
            name if name == admin => ExportedService::new::<dyn WalletAdmin>(wallets(admin)),
            name if name == keys => ExportedService::new::<dyn WalletKeys>(wallets(keys)),
            name if name == signer => ExportedService::new::<dyn Signer>(wallets(signer)),
            name if name == rpc => {
                let calls = self.switchboard.of_plugin(holder.plugin, known_wallets(grants), holder.is_ending.clone());
                ExportedService::new::<dyn Rpc>(Arc::new(RpcService {
                    calls: Arc::new(calls),
                    methods: granted_methods(grants),
                    scopes,
                }))
            }
            name if name == store => {
                let store = self.stores.of(holder.plugin, holder.instance, holder.max_store);
                ExportedService::new::<dyn Store>(Arc::new(store))
            }
            _ => return None,
        };
        Some(Arc::new(exported))
    }

    fn serving(&self, running: &[(&str, u64)]) {
        self.stores.serving(running);
    }
}

/// The wallets that an instance may see, and the files that it may read and write.
fn granted(holder: &Holder<'_>) -> GrantedAccess {
    let folders = |writing: bool| {
        let files = holder.reach?.iter().filter_map(Reach::files);
        Some(files.filter(|(_, writes)| *writes || !writing).map(|(path, _)| path.to_owned()).collect())
    };
    GrantedAccess {
        user: format!("{PLUGIN_USER}{}", holder.plugin),
        wallets: known_wallets(holder.grants).map(Into::into),
        reads: folders(false),
        writes: folders(true),
    }
}

/// The wallets for which an instance with these grants may use a service.
fn granted_wallets(service: &'static str, grants: &[Grant]) -> GrantedWallets {
    let grant = grants.iter().find(|grant| grant.service == service);
    GrantedWallets { service, wallets: grant.map_or(Some(Vec::new()), |grant| grant.wallets.clone()) }
}

/// The methods that an instance with these grants may call.
fn granted_methods(grants: &[Grant]) -> Vec<String> {
    grants.iter().find(|grant| grant.service == RPC).and_then(|grant| grant.methods.clone()).unwrap_or_default()
}

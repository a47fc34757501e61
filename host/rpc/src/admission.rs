//! The users, and the networks of clients and trusted proxies, which are replaced while connections are open.
//!
//! Invariant: soon after a change, no open connection keeps rights that its user has lost.

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use http::HeaderValue;
use tokio::sync::watch;

use super::auth::{AuthenticationFailure, Authenticator, Caller, RpcUser};
use super::client::{Client, Identity};
use super::peers::{Access, Peer};

pub(super) struct Admission {
    auth: ArcSwap<Authenticator>,
    access: ArcSwap<Access>,
    changes: watch::Sender<()>,
}

impl Admission {
    pub(super) fn of(auth: Arc<Authenticator>, access: Access) -> Self {
        Self { auth: ArcSwap::new(auth), access: ArcSwap::from_pointee(access), changes: watch::Sender::default() }
    }

    pub(super) fn access(&self) -> Guard<Arc<Access>> {
        self.access.load()
    }

    pub(super) fn replace(&self, users: Vec<RpcUser>, access: Access) {
        let auth = self.auth.load().with_users(users);
        self.access.store(Arc::new(access));
        self.auth.store(Arc::new(auth));
        self.changes.send_replace(());
    }

    /// The user of a request, by its credentials. The client keeps that user.
    pub(super) fn admit(
        &self,
        client: &Client,
        header: &HeaderValue,
        peer: Peer,
    ) -> Result<Caller, AuthenticationFailure> {
        loop {
            let auth = self.auth.load();
            let caller = auth.check(header)?;
            keep(client, &caller, peer);
            client.authenticated_with(header, peer);
            // If the users were replaced meanwhile, `lost` may have checked the client before `keep`.
            if Arc::ptr_eq(&auth, &self.auth.load()) {
                return Ok(caller);
            }
        }
    }

    /// The user of the connection's uid or certificate. The client keeps that user. `None` if only credentials can name the user.
    ///
    /// The identity of a trusted proxy is not that of its clients.
    pub(super) fn identified(&self, client: &Client, peer: Peer) -> Result<Option<Caller>, AuthenticationFailure> {
        let is_own = |_: &&Identity| !self.access().trusts(client.peer());
        let Some(identity) = client.identity.get().filter(is_own) else { return Ok(None) };
        loop {
            let auth = self.auth.load();
            let caller = auth.identified(identity)?;
            if let Some(caller) = &caller {
                keep(client, caller, peer);
            }
            if Arc::ptr_eq(&auth, &self.auth.load()) {
                return Ok(caller);
            }
        }
    }

    /// Returns when the connection's network is no longer allowed, or its user loses a right. With `all`, it also returns when the user
    /// gains a right: a WebSocket keeps the rights that it started with.
    pub(super) async fn lost(&self, client: &Client, all: bool) {
        let mut changes = self.changes.subscribe();
        // Checks before it waits: a change may have come before the subscription.
        loop {
            let auth = self.auth.load_full();
            let access = self.access.load_full();
            let keeps = |(former, peer): (Caller, Peer)| {
                let now = auth.successor(&former);
                let has_rights =
                    now.is_some_and(|now| now.covers(&former.origin) && (!all || former.origin.covers(now)));
                has_rights && access.allows(peer)
            };
            let loses_proxy = |proxy| !access.trusts(proxy) || !access.allows(proxy);
            let is_replaced = |identity: &Identity| matches!(identity, Identity::Certificate { clients, .. } if clients.are_replaced());
            if !access.allows(client.peer())
                || client.link.proxy().is_some_and(loses_proxy)
                || client.identity.get().is_some_and(is_replaced)
                || kept(client).is_some_and(|former| !keeps(former))
            {
                return;
            }
            if changes.changed().await.is_err() {
                // The server has been dropped, which ends the connection.
                return std::future::pending().await;
            }
        }
    }
}

/// Keeps the user of a request with its connection.
fn keep(client: &Client, caller: &Caller, peer: Peer) {
    let mut user = client.user.lock();
    let is_same = |(last, of): &(Caller, Peer)| *of == peer && last.is(caller);
    // Users seldom change on a connection.
    if !user.as_deref().and_then(|last| last.downcast_ref()).is_some_and(is_same) {
        *user = Some(Arc::new((caller.clone(), peer)));
    }
}

/// The user of the newest request, and its client.
fn kept(client: &Client) -> Option<(Caller, Peer)> {
    client.user.lock().as_deref()?.downcast_ref().cloned()
}

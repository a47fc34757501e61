//! `node-rpc/1`: the node's methods that an instance was granted.

use std::sync::Arc;

use outrigger_service::node_rpc::{MAX_PARAMS, NodeReply};
use outrigger_service::wire::Blob;
use outrigger_service::{ErrorKind, NodeRpc, Result, Scope, ServiceError};

use super::OwnScopes;

/// Calls methods of a node in another process.
pub trait NodeMethods: Send + Sync {
    /// Calls a method with all permissions of the host, and waits as long as a client waits for the call of `scope`.
    /// `params` is a well-formed JSON array or object. If the node's wallets answer, `wallet` is the wallet in the
    /// call's URI.
    fn call(&self, scope: Scope, method: String, params: Blob, wallet: Option<Arc<str>>) -> Result<NodeReply>;
}

pub struct NodeRpcService {
    /// `None` for the embedded node.
    pub node: Option<Arc<dyn NodeMethods>>,
    /// The granted methods.
    pub methods: Vec<String>,
    pub scopes: OwnScopes,
}

#[deny(clippy::missing_trait_methods)]
impl NodeRpc for NodeRpcService {
    fn call(&self, scope: Scope, method: String, params: Blob) -> Result<NodeReply> {
        let call = self.scopes.get(scope)?;
        if !self.methods.contains(&method) {
            return refused(
                ErrorKind::NotGranted,
                format!(
                    "The plugin may not call the node's method '{method}': 'methods' of its grant of node-rpc/1 does not list it"
                ),
            );
        }
        if call.inline {
            return refused(
                ErrorKind::Unsupported,
                "node-rpc/1 cannot be used by a method that the manifest marks 'inline', since it waits for the node",
            );
        }
        if !is_parameters(&params) {
            return refused(ErrorKind::Malformed, "the parameters are not a JSON array or object, or are too long");
        }
        match &self.node {
            Some(node) => {
                let caller = if call.of_call { scope } else { Scope::NONE };
                node.call(caller, method, params, call.selected()?.map(Arc::from))
            }
            None => refused(
                ErrorKind::Unsupported,
                "The embedded node has no RPC methods: node-rpc/1 needs a bitcoind, configured in [backend]",
            ),
        }
    }
}

fn refused<T>(kind: ErrorKind, detail: impl Into<String>) -> Result<T> {
    Err(ServiceError::new(kind, detail))
}

/// Any other text could add members to the request.
fn is_parameters(text: &[u8]) -> bool {
    text.len() <= MAX_PARAMS
        && matches!(text.first(), Some(b'[' | b'{'))
        && serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Caller, Scopes};

    /// Answers with the call's arguments.
    struct Echo;

    impl NodeMethods for Echo {
        fn call(&self, _: Scope, method: String, params: Blob, wallet: Option<Arc<str>>) -> Result<NodeReply> {
            let json = format!("{method} {} {wallet:?}", String::from_utf8_lossy(&params));
            Ok(NodeReply::Result { json: Blob(json.into_bytes()) })
        }
    }

    fn service(node: Option<Arc<dyn NodeMethods>>) -> NodeRpcService {
        NodeRpcService { node, methods: vec!["getblock".into()], scopes: OwnScopes::default() }
    }

    fn ask(service: &NodeRpcService, method: &str, params: &str) -> Result<NodeReply> {
        service.call(Scope::NONE, method.into(), Blob(params.as_bytes().to_vec()))
    }

    #[test]
    fn methods_that_are_not_granted_are_refused_by_name() {
        let service = service(Some(Arc::new(Echo)));
        let expected = NodeReply::Result { json: Blob(b"getblock [1] None".to_vec()) };
        assert_eq!(ask(&service, "getblock", "[1]"), Ok(expected));
        let refused = ask(&service, "stop", "[]").unwrap_err();
        assert_eq!(refused.kind, ErrorKind::NotGranted);
        assert!(refused.detail.contains("'stop'") && refused.detail.contains("grant of node-rpc/1"), "{refused}");
    }

    #[test]
    fn parameters_that_would_change_the_request_are_malformed() {
        let service = service(Some(Arc::new(Echo)));
        for wrong in ["", "1", "[1", "[],\"method\":\"stop\"", "[]}", " []", "null"] {
            assert_eq!(ask(&service, "getblock", wrong).unwrap_err().kind, ErrorKind::Malformed, "{wrong}");
        }
        assert!(ask(&service, "getblock", "{\"verbosity\": 1}").is_ok());
    }

    #[test]
    fn embedded_chain_has_no_methods_and_names_the_setting() {
        let refused = ask(&service(None), "getblock", "[]").unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Unsupported);
        assert!(refused.detail.contains("[backend]"), "{refused}");
    }

    #[test]
    fn inline_methods_may_not_wait_for_the_node() {
        let scopes = Arc::new(Scopes::default());
        let service = NodeRpcService {
            scopes: OwnScopes::of(scopes.clone(), 1, crate::GrantedAccess::default()),
            ..service(Some(Arc::new(Echo)))
        };
        for inline in [false, true] {
            let _call = scopes.open(5, 1, Caller { inline, ..Caller::unbounded(None) });
            let answer = service.call(Scope(5), "getblock".into(), Blob(b"[]".to_vec()));
            assert_eq!(answer.map_err(|error| error.kind).err(), inline.then_some(ErrorKind::Unsupported));
        }
    }
}

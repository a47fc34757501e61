//! `rpc/1`: calls of methods by an instance.

use std::sync::Arc;

use outrigger_service::rpc::{As, CallerInfo, MAX_PARAMS, RpcReply};
use outrigger_service::wire::Blob;
use outrigger_service::{ErrorKind, Result, Rpc, Scope, ServiceError};

use outrigger_base::nesting::are_parameters;

use super::{OwnScopes, while_judging};

/// A call in progress at one plugin.
pub trait Onward: Send + Sync {
    fn caller(&self) -> CallerInfo;

    /// The ids of the plugins whose nested calls led to this one, the outermost first, and of this plugin.
    fn makers(&self) -> Vec<Arc<str>>;

    /// Passes the call to the next plugin of its chain. `params` is a well-formed JSON array or object; `None` for the client's.
    fn next(&self, scope: Scope, params: Option<Blob>) -> Result<RpcReply>;

    /// Calls a method with the rights of the call's user.
    fn call(&self, scope: Scope, method: String, params: Blob) -> Result<RpcReply>;
}

pub trait PluginCalls: Send + Sync {
    /// Calls a granted method. Gives up once nobody waits for the call of `scope`. `onward` is that call, and `wallet` the wallet that
    /// it names.
    fn call(
        &self,
        scope: Scope,
        method: String,
        params: Blob,
        wallet: Option<Arc<str>>,
        onward: Option<Arc<dyn Onward>>,
    ) -> Result<RpcReply>;
}

pub struct RpcService {
    pub calls: Arc<dyn PluginCalls>,
    pub methods: Vec<String>,
    pub scopes: OwnScopes,
}

impl RpcService {
    fn scope(&self, scope: Scope) -> Result<super::Call> {
        let call = self.scopes.get(scope)?;
        if call.caller.judges { Err(while_judging()) } else { Ok(call) }
    }

    fn onward(&self, scope: Scope) -> Result<Arc<dyn Onward>> {
        let call = self.scope(scope)?;
        let outside = || ServiceError::new(ErrorKind::Malformed, "This needs a call in progress, and there is none");
        call.caller.onward.clone().ok_or_else(outside)
    }
}

#[deny(clippy::missing_trait_methods)]
impl Rpc for RpcService {
    fn caller(&self, scope: Scope) -> Result<CallerInfo> {
        Ok(self.onward(scope)?.caller())
    }

    fn next(&self, scope: Scope, params: Option<Blob>) -> Result<RpcReply> {
        let onward = self.onward(scope)?;
        check_parameters(params.as_deref())?;
        onward.next(scope, params)
    }

    fn call(&self, scope: Scope, method: String, params: Blob, account: As) -> Result<RpcReply> {
        let call = self.scope(scope)?;
        if !self.methods.contains(&method) {
            let detail = format!(
                "The plugin may not call the method '{method}': 'methods' of its grant of rpc/1 does not list it"
            );
            return Err(ServiceError::new(ErrorKind::NotGranted, detail));
        }
        check_parameters(Some(&params))?;
        match account {
            As::Caller => self.onward(scope)?.call(scope, method, params),
            As::Plugin => {
                let within = if call.of_call { scope } else { Scope::NONE };
                // A wallet that the plugin may not use is not passed on.
                let wallet = call.selected().ok().flatten().map(Arc::from);
                self.calls.call(within, method, params, wallet, call.caller.onward.clone())
            }
        }
    }
}

fn check_parameters(text: Option<&[u8]>) -> Result<()> {
    if text.is_none_or(|text| are_parameters(text, MAX_PARAMS)) {
        return Ok(());
    }
    Err(ServiceError::new(ErrorKind::Malformed, "the parameters are not a JSON array or object, or are too long"))
}

#[cfg(test)]
mod tests {
    use outrigger_values::RpcError;

    use super::*;
    use crate::{Caller, Scopes};

    /// Answers with the call's arguments.
    struct Echo;

    impl PluginCalls for Echo {
        fn call(
            &self,
            _: Scope,
            method: String,
            params: Blob,
            wallet: Option<Arc<str>>,
            onward: Option<Arc<dyn Onward>>,
        ) -> Result<RpcReply> {
            let within = onward.is_some();
            let json = format!("{method} {} {wallet:?} {within}", String::from_utf8_lossy(&params));
            Ok(RpcReply::Result { json: Blob(json.into_bytes()) })
        }
    }

    impl Onward for Echo {
        fn makers(&self) -> Vec<Arc<str>> {
            vec!["first".into()]
        }

        fn caller(&self) -> CallerInfo {
            CallerInfo { user: "alice".into(), wallet: None, through: vec!["first".into()] }
        }

        fn next(&self, _: Scope, params: Option<Blob>) -> Result<RpcReply> {
            Ok(RpcReply::Result { json: params.unwrap_or_default() })
        }

        fn call(&self, _: Scope, method: String, _: Blob) -> Result<RpcReply> {
            Ok(RpcReply::Error { code: -1, message: method })
        }
    }

    fn service(scopes: OwnScopes) -> RpcService {
        RpcService { calls: Arc::new(Echo), methods: vec!["getblock".into()], scopes }
    }

    fn ask(service: &RpcService, method: &str, params: &str) -> Result<RpcReply> {
        service.call(Scope::NONE, method.into(), Blob(params.as_bytes().to_vec()), As::Plugin)
    }

    #[test]
    fn methods_that_are_not_granted_are_refused_by_name() {
        let service = service(OwnScopes::default());
        let expected = RpcReply::Result { json: Blob(b"getblock [1] None false".to_vec()) };
        assert_eq!(ask(&service, "getblock", "[1]"), Ok(expected));
        let refused = ask(&service, "stop", "[]").unwrap_err();
        assert_eq!(refused.kind, ErrorKind::NotGranted);
        assert!(refused.detail.contains("'stop'") && refused.detail.contains("grant of rpc/1"), "{refused}");
    }

    #[test]
    fn parameters_that_would_change_the_request_are_malformed() {
        let service = service(OwnScopes::default());
        for wrong in [
            &*format!("{}{}", "[".repeat(600), "]".repeat(600)),
            "",
            "1",
            "[1",
            "[],\"method\":\"stop\"",
            "[]}",
            " []",
            "null",
        ] {
            assert_eq!(ask(&service, "getblock", wrong).unwrap_err().kind, ErrorKind::Malformed, "{wrong}");
        }
        assert!(ask(&service, "getblock", "{\"verbosity\": 1}").is_ok());
    }

    #[test]
    fn caller_and_next_need_a_call() {
        let scopes = Arc::new(Scopes::default());
        let service = service(OwnScopes::of(scopes.clone(), 1, crate::GrantedAccess::default()));
        let outside = [service.caller(Scope::NONE).map(drop), service.next(Scope::NONE, None).map(drop)];
        assert!(outside.iter().all(|outcome| outcome.as_ref().unwrap_err().kind == ErrorKind::Malformed));
        let as_caller = service.call(Scope::NONE, "getblock".into(), Blob(b"[]".to_vec()), As::Caller);
        assert_eq!(as_caller.unwrap_err().kind, ErrorKind::Malformed);

        let ended = service.call(Scope(5), "getblock".into(), Blob(b"[]".to_vec()), As::Plugin).unwrap_err();
        assert_eq!((ended.kind, ended.detail.as_str()), (ErrorKind::Stale, ""));
        assert!(RpcError::from(ended).message.contains("call has ended"));

        let _call = scopes.open(5, 1, Caller { onward: Some(Arc::new(Echo)), ..Caller::default() });
        assert_eq!(service.caller(Scope(5)).unwrap().through, ["first"]);
        let next = service.next(Scope(5), Some(Blob(b"[7]".to_vec())));
        assert_eq!(next, Ok(RpcReply::Result { json: Blob(b"[7]".to_vec()) }));
        assert_eq!(service.next(Scope(5), Some(Blob(b"7".to_vec()))).unwrap_err().kind, ErrorKind::Malformed);
        let refused = service.call(Scope(5), "getblock".into(), Blob(b"[]".to_vec()), As::Caller);
        assert_eq!(refused, Ok(RpcReply::Error { code: -1, message: "getblock".into() }));
    }
}

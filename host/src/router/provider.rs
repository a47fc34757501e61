//! The host's calls of plugins that provide a service (`keys-provider/1`, `policy/1`).

use std::sync::Arc;
use std::time::Duration;

use bitcoin::hex::{DisplayHex, FromHex};
use bytes::Bytes;
use outrigger_plugins::pool::{Overloaded, lent};
use outrigger_rpc::{Answer, Call, CallHere, Failure, HOST_USER, Origin, Params, ResultText};
use outrigger_service::json::{provided_request, provided_response};
use outrigger_service::policy::POLICY;
use outrigger_service::rpc::RpcReply;
use outrigger_service::{ErrorKind, Result, Scope, ServiceError};
use outrigger_services::{Asked, JudgedAct, Providers, shortened};
use outrigger_values::RpcError;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Router;
use super::chain::AtLink;
use super::onward::{Answering, Front, HasAsked, Switchboard, made_by};

/// A provider must answer this long before the deadline of the call that needs it, so that the client still gets the reason for a failure.
const ANSWER_LEAD: Duration = Duration::from_secs(2);

impl Router {
    /// Calls a function of a service that a plugin provides. Clients cannot call it. The argument and the result are messages in
    /// hexadecimal.
    pub async fn provider(&self, plugin: &str, call: Call) -> Answer {
        let (service, _) = call.method.rsplit_once('.').unwrap_or_default();
        let away = || Failure::Rpc(RpcError::internal(format!("it does not run, or does not provide {service}")));
        let read = || self.registry.provider(plugin, service, &call.method).ok_or_else(away);
        let link = read()?;
        let asked = link.asks.then(HasAsked::default);
        let is_binary = link.instance.as_ref().is_some_and(|instance| instance.manifest().binary_messages);
        let as_it_reads = if is_binary { call.clone() } else { as_json(call.clone())? };
        let fresh = || read().map_err(AtLink::Failed);
        match self.at_link(&link, fresh, &as_it_reads, asked.as_ref()).await {
            AtLink::Answered(answer) if is_binary => answer.map(ResultText::from),
            AtLink::Answered(answer) => as_message(&call.method, &answer?),
            AtLink::Failed(failure) => Err(failure),
            AtLink::Passed(_) => Err(Failure::Rpc(RpcError::internal("it gave no answer"))),
        }
    }
}

/// Converts a call for a plugin that reads messages as JSON, such as one in another language.
fn as_json(call: Call) -> std::result::Result<Call, Failure> {
    let message = decoded::<[String; 1]>(call.params.as_bytes()).and_then(|[hex]| unhex(&hex));
    let argument = message.and_then(|message| provided_request(&call.method, &message)).map_err(failed)?;
    Ok(Call { params: Params::from_bytes(Value::Array(vec![argument]).to_string().into()), ..call })
}

/// Converts the JSON answer of such a plugin into a message in hexadecimal.
fn as_message(method: &str, answer: &[u8]) -> Answer {
    let message =
        decoded(answer).and_then(|json| provided_response(method, &json)).map_err(|error| failed(invalid(error)))?;
    Ok(Bytes::from(quoted(&message)).into())
}

fn invalid(error: ServiceError) -> ServiceError {
    ServiceError { detail: format!("its answer is invalid: {}", error.detail), ..error }
}

fn failed(error: ServiceError) -> Failure {
    Failure::Rpc(RpcError::internal(error.detail))
}

/// A message as a JSON string in hexadecimal.
fn quoted(message: &[u8]) -> String {
    format!("\"{:x}\"", message.as_hex())
}

fn unhex(hex: &str) -> Result<Vec<u8>> {
    Vec::from_hex(hex).map_err(|error| ServiceError::new(ErrorKind::Malformed, error.to_string()))
}

fn decoded<T: DeserializeOwned>(json: &[u8]) -> Result<T> {
    serde_json::from_slice(json).map_err(|error| ServiceError::new(ErrorKind::Malformed, error.to_string()))
}

pub(super) fn is_of(service: &str, method: &str) -> bool {
    method.strip_prefix(service).is_some_and(|rest| rest.starts_with('.'))
}

impl Providers for Switchboard {
    fn ask(&self, scope: Scope, makers: &[Arc<str>], asked: &Asked<'_>, message: &[u8]) -> Result<Vec<u8>> {
        let (plugin, is_policy) = (asked.plugin, is_of(POLICY, &asked.method));
        let refused = |what: &str, reason: &str| {
            let role = if is_policy { "judges for the wallet" } else { "has the keys of the wallet" };
            let detail = format!("The plugin '{plugin}', which {role}, {what}: {}", shortened(reason));
            ServiceError::new(ErrorKind::Refused, detail)
        };
        if is_policy && CallHere::is_possible() {
            return Err(refused(
                "did not answer",
                "an inline method of a plugin cannot wait for a policy on a thread that serves connections",
            ));
        }
        // A policy may read the wallet on which it decides.
        let wallet = is_policy.then(|| asked.wallet.into());
        let origin = Origin { wallet, ..Origin::of_user(HOST_USER) };
        let through = makers.iter().cloned().chain([plugin.into()]).collect();
        let params = Params::from_bytes(format!("[{}]", quoted(message)).into());
        let call = made_by(scope, through, asked.method.clone(), params, origin.into());
        let until = self.calls.due(scope.0).and_then(|due| due.checked_sub(ANSWER_LEAD));
        let begin = |front: &Front| -> Answering {
            let (router, plugin) = (front.router.clone(), plugin.to_owned());
            let answering = async move { router.provider(&plugin, call).await };
            let Some(until) = until else { return Box::pin(answering) };
            Box::pin(async move {
                let late = |_| Err(Failure::Rpc(RpcError::internal("it did not answer in time")));
                tokio::time::timeout_at(until.into(), answering).await.unwrap_or_else(late)
            })
        };
        match self.wait(scope, begin) {
            Ok(RpcReply::Result { json }) => {
                let message = decoded::<String>(&json).and_then(|hex| unhex(&hex));
                message.map_err(|error| refused("failed", &invalid(error).detail))
            }
            Ok(RpcReply::Error { message, .. }) => Err(refused("failed", &message)),
            Err(error) if error.kind == ErrorKind::Stale => Err(error),
            Err(error) => Err(refused("did not answer", &error.detail)),
        }
    }

    fn lend(&self, wait: &mut dyn FnMut()) -> Result<()> {
        lent(wait)
            .map_err(|Overloaded| ServiceError::new(ErrorKind::Refused, "Too many calls of plugins wait for others"))
    }

    fn judged(&self, judgement: &JudgedAct<'_>) {
        if let Some(audit) = self.front().and_then(|front| front.audit.clone()) {
            audit.judged(judgement);
        }
    }
}

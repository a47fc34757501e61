//! Decides which calls are forwarded, and runs the hooks.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use http::StatusCode;
use http_body_util::BodyExt;
use outrigger_rpc::{COOKIE_USER, Call, Failure, Origin, RestReply, ResultStream, ResultText};
use outrigger_sdk::manifest::MethodSpec;
use outrigger_upstream::traits::{CHAIN, FILES, NODE, OTHERS, SHORT, SUBMITS};
use outrigger_upstream::{Figures, LOST, Method, Reply, Upstream, UpstreamError, may_have_effects, method};
use outrigger_values::{RpcError, RpcErrorCode};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::batch::forward_all;
use super::forward::{MAX_WHOLE, failure, forward, lost, submit, whole};
use super::gather::{forward_gathered, may_gather};
use super::help::{DUMP_CONVERSIONS, NodeHelp, known_spec};
use super::long_poll::{LongPolls, NodeTip, Wait};
use super::taps::{Submission, Taps};

#[derive(Clone, Debug)]
pub struct Settings {
    /// Whether the node's wallets answer wallet methods (`backend.wallets`). If not, a wallet method that no plugin answers is refused.
    pub node_wallets: bool,
    pub deny: BTreeSet<String>,
    pub max_long_calls: usize,
    /// How long the stopping host waits for open calls.
    pub shutdown_grace: Duration,
}

/// The part of `shutdown_grace` after which a call with effects gets an error, though the node may still execute it.
const STOP_SHARE: f32 = 0.8;

pub struct Passthrough {
    upstream: Arc<Upstream>,
    settings: Settings,
    taps: Arc<dyn Taps>,
    stop: watch::Receiver<bool>,
    long_polls: LongPolls,
    help: ArcSwapOption<NodeHelp>,
}

impl Passthrough {
    /// `tip` is the node's best block. `stop` becomes true when the host stops.
    pub fn new(
        upstream: Arc<Upstream>,
        settings: Settings,
        taps: Arc<dyn Taps>,
        tip: watch::Receiver<NodeTip>,
        stop: watch::Receiver<bool>,
    ) -> Self {
        let most = settings.max_long_calls;
        let long_polls = LongPolls::new(upstream.clone(), taps.clone(), tip, stop.clone(), most);
        Self { upstream, settings, taps, stop, long_polls, help: ArcSwapOption::empty() }
    }

    pub fn figures(&self) -> &Figures {
        self.upstream.figures()
    }

    /// Forwards a call that neither a plugin nor the host answers.
    ///
    /// # Errors
    /// The node's error; -32601 for methods that are not forwarded; -28 while the node is away; -4 if the node may have
    /// executed the call and its answer was lost.
    pub async fn call(&self, call: &Call) -> Result<ResultText, Failure> {
        let name = call.method.as_str();
        let known = method(name);
        if !self.may_pass(name).await? {
            return Err(Failure::Rpc(RpcError::new(RpcErrorCode::METHOD_NOT_FOUND, "Method not found")));
        }
        self.check_user(call)?;
        let params = call.params.as_bytes();
        if let Some(wait) = Wait::of(name, params) {
            let asks_node = matches!(wait, Wait::Template { .. });
            let result = self.long_polls.answer(wait, call.origin.client.as_deref()).await.map(ResultText::Bytes);
            // The host answers the other long polls itself.
            if asks_node {
                self.note(is_of_node(&result));
            }
            return result;
        }
        let path = self.path(call);
        let mut submission = None;
        let result = match known.is_some_and(|known| known.is(SHORT)) && may_gather(&path, call) {
            true => forward_gathered(&self.upstream, call).await,
            false => tokio::select! {
                result = self.send(&path, call, &mut submission) => result,
                () = self.stopped(), if may_have_effects(name) => Err(lost(name, &"the host stops")),
            },
        };
        if result.is_ok() {
            if known.is_some_and(|known| known.is(SUBMITS | CHAIN)) {
                self.taps.changed(submission).await;
            } else if name == "syncwithvalidationinterfacequeue" {
                self.taps.wallets_synced().await;
            } else if name == "setmocktime"
                && let Some(seconds) = first_number(params)
            {
                self.taps.time_set(seconds);
            }
        }
        self.note(is_of_node(&result));
        result
    }

    async fn send(&self, path: &str, call: &Call, accepted: &mut Option<Submission>) -> Result<ResultText, Failure> {
        let params = call.params.as_bytes();
        match call.method.as_str() {
            "sendrawtransaction" => submit(&self.upstream, path, params, accepted).await,
            name => forward(&self.upstream, path, name, params, call.may_stream).await,
        }
    }

    /// Completes shortly before the stopping host closes connections with open calls.
    async fn stopped(&self) {
        // The sender is dropped with the host.
        let _ = self.stop.clone().wait_for(|stop| *stop).await;
        tokio::time::sleep(self.settings.shutdown_grace.mul_f32(STOP_SHARE)).await;
    }

    /// Forwards a GET request to the node's REST interface. A body of known length is streamed.
    pub async fn rest(&self, path: &str) -> RestReply {
        let answer = self.upstream.get(path).await.map_err(|error| failure(&self.upstream, error));
        self.note(answer.as_ref().map_or_else(|failure| !is_absence(failure), |_| true));
        match answer {
            Ok(Reply { status, content_type, body }) => match body.length() {
                Some(length) => {
                    let body = ResultText::Stream(ResultStream::new(length, body.map_err(io::Error::other)));
                    RestReply { status, content_type, body }
                }
                None => whole_page(Reply { status, content_type, body }).await,
            },
            Err(Failure::Rpc(error)) => RestReply::text(StatusCode::SERVICE_UNAVAILABLE, &error.message),
            Err(Failure::Overloaded) => {
                RestReply::text(StatusCode::SERVICE_UNAVAILABLE, "The node takes no more requests")
            }
            Err(Failure::Forbidden | Failure::UnknownMethod | Failure::Limited(_)) => {
                RestReply::text(StatusCode::FORBIDDEN, "")
            }
        }
    }

    /// The entry of a node's method in the host's lists: from the node's help, or known without it.
    pub fn spec(&self, name: &str) -> Option<Arc<MethodSpec>> {
        let listed = self.help.load().as_ref().and_then(|help| help.spec(name));
        listed.or_else(|| known_spec(name))
    }

    /// Records whether the node answered. After an outage it may have another version, so its help is read again.
    fn note(&self, answered: bool) {
        if answered {
            self.taps.answered();
        } else {
            self.help.store(None);
        }
    }

    /// Why a user must not call a method that the node would accept from the host. A method that uses the node's files needs
    /// the cookie or a list of methods; so does a method unknown to the host, unless the user may call unknown methods. A
    /// user restricted to a wallet or to folders cannot manage wallets, and needs a list to change the node.
    fn refusal(origin: &Origin, name: &str) -> Option<Failure> {
        let is_operator = *origin.user == *COOKIE_USER || origin.allowed.is_some();
        let Some(method) = method(name) else {
            return (!(is_operator || origin.unknown_methods)).then_some(Failure::UnknownMethod);
        };
        let is_refused = (origin.is_confined() && method.is(OTHERS))
            || (origin.is_confined() && origin.allowed.is_none() && method.is(NODE))
            || (!is_operator && method.is(FILES));
        is_refused.then_some(Failure::Forbidden)
    }

    fn check_user(&self, call: &Call) -> Result<(), Failure> {
        let origin = &*call.origin;
        if let Some(refusal) = Self::refusal(origin, &call.method) {
            return Err(refusal);
        }
        match (&origin.only_wallet, &origin.wallet) {
            (Some(only), Some(named)) if only != named => {
                let message = "Requested wallet does not exist or is not loaded";
                Err(Failure::Rpc(RpcError::new(RpcErrorCode::WALLET_NOT_FOUND, message)))
            }
            _ => Ok(()),
        }
    }

    /// The path of a call at the node: a wallet's path only if the node's wallets answer.
    fn path(&self, call: &Call) -> Cow<'static, str> {
        match call.origin.selected_wallet() {
            Some(wallet) if self.settings.node_wallets => {
                Cow::from(format!("/wallet/{}", utf8_percent_encode(wallet, NON_ALPHANUMERIC)))
            }
            _ => Cow::from("/"),
        }
    }

    /// Whether calls of a method can be batched: they have no effects and never wait.
    pub fn takes_together(&self, name: &str) -> bool {
        let known = method(name).is_some_and(|method| method.is_read_only() && !method.may_be_long());
        known && !self.settings.deny.contains(name)
    }

    /// Forwards calls as a batch. All methods satisfy [`Self::takes_together`].
    pub async fn call_together(&self, calls: &[Call]) -> Vec<Result<ResultText, Failure>> {
        // All calls of a batch have the same path.
        let path = calls.first().map_or(Cow::from("/"), |call| self.path(call));
        let answers = forward_all(&self.upstream, &path, calls).await;
        self.note(answers.iter().any(is_of_node));
        answers
    }

    /// Whether calls of a method are forwarded. Fails if that depends on the node's help and the node is unreachable.
    async fn may_pass(&self, name: &str) -> Result<bool, Failure> {
        if self.settings.deny.contains(name) {
            return Ok(false);
        }
        Ok(match method(name) {
            _ if self.settings.node_wallets => true,
            Some(known) => !known.is_wallet(),
            // An unknown method may be a wallet method of a later version, which the node's help shows.
            None => !self.read_help().await?.is_wallet_method(name),
        })
    }

    /// Whether the host lists a node's method for a user: only if it forwards the user's calls of it.
    pub fn shows(&self, origin: &Origin, name: &str, help: &NodeHelp) -> bool {
        let is_wallet = || method(name).is_some_and(Method::is_wallet) || help.is_wallet_method(name);
        !self.settings.deny.contains(name)
            && (self.settings.node_wallets || !is_wallet())
            && Self::refusal(origin, name).is_none()
    }

    /// The node's help, cached until the node is unreachable.
    pub async fn read_help(&self) -> Result<Arc<NodeHelp>, Failure> {
        if let Some(help) = self.help.load_full() {
            return Ok(help);
        }
        let text = self.help_text("").await?;
        let help = Arc::new(NodeHelp::parse(&text));
        if help.get("getblockcount").is_none() {
            return Err(Failure::Rpc(RpcError::misc("the node's help cannot be read")));
        }
        self.help.store(Some(help.clone()));
        Ok(help)
    }

    /// The node's description of its methods (OpenRPC, since Bitcoin Core 31); `None` on any failure.
    pub async fn document(&self) -> Option<Value> {
        let document = whole(&self.upstream, "getopenrpcinfo", b"[]").await.ok()?;
        serde_json::from_slice(&document).ok()
    }

    /// The arguments of the node's methods, each as method, position, name, and whether it is text.
    pub async fn conversions(&self) -> Option<Vec<Value>> {
        let rows = whole(&self.upstream, "help", json!([DUMP_CONVERSIONS]).to_string().as_bytes()).await.ok()?;
        serde_json::from_slice(&rows).ok()
    }

    /// The node's help on a method, or its list of all methods for an empty name.
    pub async fn help_text(&self, method: &str) -> Result<String, Failure> {
        let params = if method.is_empty() { json!([]) } else { json!([method]) };
        let result = whole(&self.upstream, "help", params.to_string().as_bytes()).await?;
        Ok(serde_json::from_slice(&result).unwrap_or_default())
    }
}

/// Reads a whole REST reply of unknown length: it ends with its last chunk, or in HTTP/1.0 with its connection.
async fn whole_page(reply: Reply) -> RestReply {
    let content_type = reply.content_type.clone();
    match reply.collect(MAX_WHOLE).await {
        Ok((status, body)) => RestReply { status, content_type, body: body.into() },
        Err(UpstreamError::Strange(_)) => RestReply::text(StatusCode::BAD_GATEWAY, "The node's reply is too long"),
        Err(_) => RestReply::text(StatusCode::BAD_GATEWAY, "The node's reply broke off"),
    }
}

/// Whether an answer shows that the node is reachable.
fn is_of_node(answer: &Result<ResultText, Failure>) -> bool {
    !answer.as_ref().is_err_and(is_absence)
}

fn is_absence(failure: &Failure) -> bool {
    matches!(failure, Failure::Rpc(error) if error.code == RpcErrorCode::IN_WARMUP || error.message.starts_with(LOST))
}

/// The first parameter by position, or the only one by name.
fn first_number(params: &[u8]) -> Option<u64> {
    match serde_json::from_slice(params).ok()? {
        Value::Array(values) => values.first()?.as_u64(),
        Value::Object(values) => values.values().next()?.as_u64(),
        _ => None,
    }
}

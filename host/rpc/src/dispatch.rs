//! The line between the network edge and the rest of the host: a call goes in, reply bytes come out.

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use outrigger_values::RpcError;
use serde_json::value::RawValue;

use super::client::Client;
use super::method_list::is_allowed;
use super::result::ResultText;
use outrigger_base::client_files::Folders;

/// The parameters of a call: the JSON text of an array or an object.
///
/// Always well-formed UTF-8 JSON whose first byte is `[` or `{`, nested no deeper than
/// [`Limits::max_nesting`](super::Limits::max_nesting), with every surrogate escape paired. A slice
/// of the request's body where that could be had, so a clone copies nothing.
///
/// `Debug` shows the length alone: parameters carry keys and passphrases.
#[derive(Clone, PartialEq, Eq)]
pub struct Params(Bytes);

impl Params {
    /// The parameters of a call that gave none: `[]`.
    pub const fn none() -> Self {
        Self(Bytes::from_static(b"[]"))
    }

    /// Takes the text of `raw`, which must be an array or an object, out of `body` without copying
    /// when it lies in there (a middleware may have replaced the parameters, then it does not).
    pub(super) fn of(raw: &RawValue, body: &Bytes) -> Self {
        let text = raw.get().as_bytes();
        match position_within(text, body) {
            Some(range) => Self(body.slice(range)),
            None => Self(Bytes::copy_from_slice(text)),
        }
    }

    /// The parameters of well-formed JSON, whose first byte is `[` or `{`.
    pub fn from_bytes(text: Bytes) -> Self {
        Self(text)
    }

    /// The parameters of a text.
    pub fn from_text(text: &str) -> Self {
        Self(Bytes::copy_from_slice(text.as_bytes()))
    }

    /// The JSON text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The JSON text, to keep.
    #[cfg(test)]
    pub fn into_bytes(self) -> Bytes {
        self.0
    }

    /// Whether the parameters were given by name and not by position.
    pub fn is_named(&self) -> bool {
        self.0.first() == Some(&b'{')
    }
}

impl fmt::Debug for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Params({} bytes)", self.0.len())
    }
}

/// Where `part` lies in `whole`, if it is a piece of it.
fn position_within(part: &[u8], whole: &Bytes) -> Option<Range<usize>> {
    let start = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    let end = start.checked_add(part.len())?;
    (end <= whole.len()).then_some(start..end)
}

/// Who makes a call, and for which wallet: the same for all calls of a batch.
#[derive(Debug)]
pub struct Origin {
    /// The wallet named by the path: `Some("a b")` for `/wallet/a%20b`, `Some("")` for `/wallet/`
    /// (the wallet whose name is empty), `None` for `/`. The name is the client's: it may hold
    /// slashes, dots or control characters and is no file name yet.
    pub wallet: Option<Arc<str>>,
    /// The user whose credentials were shown.
    pub user: Arc<str>,
    /// The only wallet that the user may use, which calls that name none go to; `None` for all wallets.
    pub only_wallet: Option<Arc<str>>,
    /// The folders that files of the user may lie in; `None`: anywhere outside the data directory.
    pub folders: Folders,
    /// The methods that the user may call; `None` for all.
    pub allowed: Option<Arc<BTreeSet<String>>>,
    /// Whether the user may call methods of the node that the host does not know, without a list that names them.
    pub unknown_methods: bool,
    /// The client that it came from; `None` where it came over no connection.
    pub client: Option<Arc<Client>>,
}

impl Origin {
    /// Calls of `user`, who may use all wallets and methods and names no wallet, over no connection.
    pub fn of_user(user: &str) -> Self {
        Self {
            user: user.into(),
            wallet: None,
            only_wallet: None,
            folders: None,
            allowed: None,
            unknown_methods: false,
            client: None,
        }
    }
}

/// One call of a client.
#[derive(Clone, Debug)]
pub struct Call {
    /// The name of the method, as the client wrote it.
    pub method: String,
    /// Its parameters; `[]` where they were absent or null.
    pub params: Params,
    /// Who makes it.
    pub origin: Arc<Origin>,
    /// Whether its result may be a stream. Within a batch it may not: it would wait, half read, for the elements after it.
    pub may_stream: bool,
}

impl Call {
    /// Whether the user may call `method`.
    pub fn may_call(&self, method: &str) -> bool {
        is_allowed(self.origin.allowed.as_deref(), method)
    }
}

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// An error of the method, or that there is no such method (-32601).
    Rpc(RpcError),
    /// The host takes no more work for now: HTTP 503, `Work queue depth exceeded`. Within a batch,
    /// whose status is always 200, an error -32603 with that message.
    Overloaded,
    /// The node's own list refuses the method (`-rpcwhitelist`): HTTP 403, and within a batch an error -32603.
    Forbidden,
    /// The host does not know this method of the node, and the user is not one who may call it all the same. As [`Self::Forbidden`],
    /// with a text that names the setting.
    UnknownMethod,
}

impl From<RpcError> for Failure {
    fn from(error: RpcError) -> Self {
        Self::Rpc(error)
    }
}

/// The outcome of a call.
pub type Answer = Result<ResultText, Failure>;

/// What executes calls.
///
/// **Cancellation:** the returned future is dropped when its client is known to be gone before it is answered (the
/// connection was reset; that the client sends no more is no sign of it, and its calls run to their end, as in bitcoind, but for
/// long polls: see [`Client::sends_no_more`]),
/// and when the time that calls in flight are given at shutdown runs out. An implementation that
/// started work elsewhere gives it a guard that the future owns and that cancels the work on drop.
///
/// The elements of a batch are dispatched one after the other, as bitcoind does; when the connection is
/// reset, those that were not reached are not executed.
///
/// The future runs on the thread that serves the connection: it must not block.
pub trait Dispatch: Send + Sync + 'static {
    /// Executes `call` and hands over the JSON text of its result, `null` for no result.
    fn dispatch(&self, call: Call) -> impl Future<Output = Answer> + Send;

    /// Whether calls of this method are cheaper together with their neighbours in a batch. They have no effects.
    fn takes_together(&self, _method: &str) -> bool {
        false
    }

    /// Executes calls whose methods are [taken together](Self::takes_together), and gives an answer for each, in their order.
    fn dispatch_together(&self, calls: Vec<Call>) -> impl Future<Output = Vec<Answer>> + Send {
        async move {
            let mut answers = Vec::with_capacity(calls.len());
            for call in calls {
                answers.push(self.dispatch(call).await);
            }
            answers
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn params_are_a_slice_of_the_body() {
        let body = Bytes::from_static(b" [1, 2] ");
        let raw: &RawValue = serde_json::from_slice(&body).expect("json");
        let params = Params::of(raw, &body);
        assert_eq!(params.as_bytes(), b"[1, 2]");
        assert_eq!(params.as_bytes().as_ptr(), body[1..].as_ptr());
    }

    #[test]
    fn params_from_elsewhere_are_copied() {
        let body = Bytes::from_static(b"[]");
        let raw = RawValue::from_string(r#"{"a":1}"#.to_owned()).expect("json");
        let params = Params::of(&raw, &body);
        assert_eq!(params.as_bytes(), br#"{"a":1}"#);
        assert!(params.is_named());
        assert!(!Params::none().is_named());
    }

    #[test]
    fn params_debug_shows_no_content() {
        let body = Bytes::from_static(b"[\"secret\"]");
        let raw: &RawValue = serde_json::from_slice(&body).expect("json");
        let shown = format!("{:?}", Params::of(raw, &body));
        assert_eq!(shown, "Params(10 bytes)");
    }
}

//! The boundary between the network edge and the rest of the host: calls in, reply bytes out.

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use outrigger_values::RpcError;
use serde_json::value::RawValue;

use super::client::Client;
use super::peers::Peer;
use super::result::ResultText;
use outrigger_base::client_files::Folders;
use outrigger_base::progress::Progress;

/// The parameters of a call: the JSON text of an array or an object.
///
/// Always well-formed UTF-8 JSON whose first byte is `[` or `{`, nested no deeper than
/// [`Limits::max_nesting`](super::Limits::max_nesting), with every surrogate escape paired. Usually a slice of the
/// request's body, so a clone copies nothing.
///
/// `Debug` shows only the length: parameters carry keys and passphrases.
#[derive(Clone, PartialEq, Eq)]
pub struct Params(Bytes);

impl Params {
    pub const fn none() -> Self {
        Self(Bytes::from_static(b"[]"))
    }

    /// Slices `raw`, an array or an object, out of `body`. If it is not part of `body` (a layer replaced the
    /// parameters), it is copied.
    pub(super) fn of(raw: &RawValue, body: &Bytes) -> Self {
        let text = raw.get().as_bytes();
        match position_within(text, body) {
            Some(range) => Self(body.slice(range)),
            None => Self(Bytes::copy_from_slice(text)),
        }
    }

    /// The text must be well-formed JSON that begins with `[` or `{`.
    pub fn from_bytes(text: Bytes) -> Self {
        Self(text)
    }

    pub fn from_text(text: &str) -> Self {
        Self(Bytes::copy_from_slice(text.as_bytes()))
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether the parameters are named, not positional.
    pub fn is_named(&self) -> bool {
        self.0.first() == Some(&b'{')
    }
}

impl fmt::Debug for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Params({} bytes)", self.0.len())
    }
}

/// The position of `part` in `whole`, if it is a slice of it.
fn position_within(part: &[u8], whole: &Bytes) -> Option<Range<usize>> {
    let start = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    let end = start.checked_add(part.len())?;
    (end <= whole.len()).then_some(start..end)
}

/// OpenRPC's list of methods. It has only methods that the user may call, so every user may call it.
const DISCOVER: &str = "rpc.discover";

/// The user name of the host's own acts.
pub const HOST_USER: &str = "host";

/// The prefix of a plugin's user name. No other user name has a colon.
pub const PLUGIN_USER: &str = "plugin:";

/// The [`Origin::only_wallet`] of a call that may use no wallet. No wallet has this name.
pub const NO_WALLET: &str = "\0";

/// Who makes a call, and for which wallet: shared by all calls of a batch.
#[derive(Clone, Default, Debug)]
pub struct Origin {
    /// The wallet named by the path: `Some("a b")` for `/wallet/a%20b`, `Some("")` for `/wallet/`, `None` for `/`. The
    /// client chose it: it may hold slashes, dots or control characters and is no file name yet.
    pub wallet: Option<Arc<str>>,
    pub user: Arc<str>,
    /// The only wallet that the user may use, and the default of its calls; `None` for all wallets.
    pub only_wallet: Option<Arc<str>>,
    /// The folders in which the user may name files; `None`: anywhere outside the data directory.
    pub folders: Folders,
    /// The methods that the user may call; `None` for all.
    pub allowed: Option<Arc<BTreeSet<String>>>,
    /// Whether a user without a list of methods may call methods of the node that the host does not know.
    pub unknown_methods: bool,
    /// The client; `None` without a connection.
    pub client: Option<Arc<Client>>,
    /// The client's address; behind a trusted proxy, the address that the proxy names.
    pub peer: Option<Peer>,
}

impl Origin {
    /// Unrestricted calls of `user`, without a wallet and without a connection.
    pub fn of_user(user: &str) -> Self {
        Self { user: user.into(), ..Self::default() }
    }

    /// [`Self::selected_wallet`], to show it to operators and plugins: without [`NO_WALLET`].
    pub fn shown_wallet(&self) -> Option<String> {
        let only = self.only_wallet.as_deref().filter(|only| *only != NO_WALLET);
        self.wallet.as_deref().or(only).map(str::to_owned)
    }

    /// The wallet in the path, else the user's only wallet.
    pub fn selected_wallet(&self) -> Option<&str> {
        self.wallet.as_deref().or(self.only_wallet.as_deref())
    }

    /// Whether it has all rights of a former origin of the user.
    pub(super) fn covers(&self, former: &Self) -> bool {
        let methods = match (&self.allowed, &former.allowed) {
            (None, _) => true,
            (Some(own), Some(former)) => own.is_superset(former),
            (Some(_), None) => false,
        };
        methods
            && self.only_wallet == former.only_wallet
            && self.folders == former.folders
            && self.unknown_methods >= former.unknown_methods
    }

    /// Whether the user is restricted to a wallet or to folders. A plugin's methods are granted by name, whatever its wallets.
    pub fn is_confined(&self) -> bool {
        (self.only_wallet.is_some() || self.folders.is_some()) && !self.user.starts_with(PLUGIN_USER)
    }

    pub fn may_call(&self, method: &str) -> bool {
        method == DISCOVER || self.allowed.as_ref().is_none_or(|allowed| allowed.contains(method))
    }
}

#[derive(Clone, Debug)]
pub struct Call {
    /// The name of the method, as the client wrote it.
    pub method: String,
    /// `[]` if absent or null.
    pub params: Params,
    pub origin: Arc<Origin>,
    /// Whether its result may be a stream. Not within a batch: an open stream would wait for later elements.
    pub may_stream: bool,
    /// The ids of the plugins that it went through. A call with any is not sent to the node together with others.
    pub through: Vec<Arc<str>>,
    /// How many of `through`, from the front, made a call that led to this one. The others only passed it on.
    pub makers: usize,
    /// The token of the call that waits for this one: 0 if a plugin waits outside of calls, `None` if none waits.
    pub nested: Option<u64>,
    /// Where a plugin reports its progress, for a call that may take long.
    pub progress: Option<Arc<Progress>>,
    /// Kept until the plugin's code has ended, even if nobody waits for its answer any more.
    pub held: Option<Held>,
}

/// A value of a layer that a request's extensions carry into its call.
pub type Held = Arc<dyn Any + Send + Sync>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// An error of the method, or -32601 for an unknown method.
    Rpc(RpcError),
    /// The host is overloaded: HTTP 503, `Work queue depth exceeded`. Within a batch, whose status is always 200, error
    /// -32603 with that message.
    Overloaded,
    /// The user has reached a limit, which the text names: HTTP 429, within a batch error -32603.
    Limited(String),
    /// The node refuses the method (`-rpcwhitelist`): HTTP 403, within a batch error -32603.
    Forbidden,
    /// The host does not know this method of the node, and the user may not call unknown methods. As [`Self::Forbidden`],
    /// with a text that names the setting.
    UnknownMethod,
}

impl From<RpcError> for Failure {
    fn from(error: RpcError) -> Self {
        Self::Rpc(error)
    }
}

pub type Answer = Result<ResultText, Failure>;

/// Executes calls.
///
/// **Cancellation:** the returned future is dropped when the connection is reset, and when the shutdown grace has
/// passed. A half-closed connection does not cancel calls, as in bitcoind, except long polls: see
/// [`Client::sends_no_more`]. An implementation that starts work elsewhere keeps a guard in the future that cancels the
/// work on drop.
///
/// The elements of a batch are dispatched one after the other, as in bitcoind. When the connection is reset, the rest
/// is not executed.
///
/// The future runs on the thread that serves the connection: it must not block.
pub trait Dispatch: Send + Sync + 'static {
    /// Executes `call` and returns the JSON text of its result, `null` for no result.
    fn dispatch(&self, call: Call) -> impl Future<Output = Answer> + Send;

    /// Whether adjacent calls of this method in a batch are executed together. Such methods have no effects.
    fn takes_together(&self, _method: &str) -> bool {
        false
    }

    /// Whether requests of a JSON-RPC version other than 1.0 and 2.0 are refused. Otherwise they are read as 1.0.
    fn refuses_other_versions(&self) -> bool {
        false
    }

    /// Executes calls whose methods are [taken together](Self::takes_together). The answers are in order.
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

//! Methods as functions: the attributes `#[plugin]` and `#[methods]`.
//!
//! A method is a function of an `impl` block with the attribute `#[methods]`. Its name, the types of its arguments and its documentation
//! comment are the method's name, parameters and help. `#[plugin]` annotates the implementation of [`crate::Plugin`], collects
//! the methods of the modules that it names, and makes the manifest. The host reads the manifest from the library's bytes.
//!
//! ```
//! use outrigger_sdk::testing::StubHost;
//! use outrigger_sdk::{Call, Host, Plugin, RpcError, methods, options::NoOptions, plugin};
//! use serde_json::{Value, json};
//!
//! pub struct Countdown;
//!
//! #[plugin(id = "acme-countdown", summary = "Counts blocks", services = ["chain/1"], restartable)]
//! impl Plugin for Countdown {
//!     fn new(_: Host, _: NoOptions) -> Result<Self, String> {
//!         Ok(Self)
//!     }
//! }
//!
//! #[methods(category = "Acme")]
//! impl Countdown {
//!     /// Counts the blocks from the tip to a height.
//!     ///
//!     /// * `height` - The height.
//!     /// * `signed` - Whether a height below the tip is a negative number.
//!     ///
//!     /// # Result
//!     /// n    (numeric) The number of blocks.
//!     ///
//!     /// # Example
//!     /// `1000 true`
//!     #[method(inline)]
//!     fn acmecountdown(&self, call: &Call<'_>, height: u32, #[arg(default = false)] signed: bool) -> Result<i64, RpcError> {
//!         let blocks = i64::from(height) - i64::from(call.host.chain.tip(call.scope)?.height);
//!         if blocks < 0 && !signed {
//!             return Err(RpcError::invalid_parameter("The chain is above this height"));
//!         }
//!         Ok(blocks)
//!     }
//! }
//!
//! let plugin = StubHost::new().start::<Countdown>(json!({}));
//! assert_eq!(plugin.call("acmecountdown", json!([6])), Ok(json!(6)));
//! ```
//!
//! # The attribute `#[plugin]`
//!
//! `id` and `summary` are required. `version` defaults to the crate's. `services`, `optional`, `provides`, `events`, `reach` and `calls`
//! are lists of texts, `wrapper` is a text, `timers(name = ...)` has seconds or times of the day, `restartable`, `critical` and `folder`
//! are flags; [`crate::manifest::Manifest`] describes them, and [`crate::manifest::Requires`] describes `requires(...)`.
//! `methods = [a, b]` names the modules whose methods the plugin has; the default is the module of the attribute.
//!
//! # The attributes `#[methods]` and `#[method]`
//!
//! One block of a module has `#[methods]`. Its functions with `#[method]` are methods. Both attributes take `category`, `inline`,
//! `long_running`, `private_keys`, `wallet_only`, `needs_tip = false` ([`crate::manifest::MethodSpec`] describes them) and `unchecked`:
//! the host does not check the types of arguments. `#[method(name = "a.b")]` sets a name that is no valid function name.
//!
//! A function may take `&self`, then a `&Call`, and a [`Reply`]. All other parameters are arguments of the method and implement
//! [`Argument`]. A function with a [`Reply`] answers through it, now or later, and returns nothing. Others return a `Result` whose value
//! implements [`Answer`], and whose error converts into [`RpcError`].
//!
//! # The documentation comment
//!
//! The text before the list is the help. The list has one item for each argument: `` * `name` - Its help. `` With
//! `(default: ...)` after the name, help shows the text as the default. Below an object, a list of
//! `` * `name` (boolean; default: true) - Its help. `` declares members that calls by name may give as arguments. The sections `# Result`
//! and `# Example` are parts of help too. By default, the result of a function that returns `Result<(), E>` is null, and
//! the example has samples of the required arguments. All other sections are for rustdoc only.
//!
//! `#[arg(...)]` before an argument takes `default = ...`, the value of an argument that is left out; `alias = "..."`, another
//! name of it; and `kind = "..."`, a type that the Rust type does not determine: `hex`, `amount`, `amounts`, `outputs` or `verbosity`.

use std::ops::Deref;

use bitcoin::Amount;
use bitcoin::hex::{DisplayHex, FromHex};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use outrigger_service::policy::{self, POLICY, Policy};
use outrigger_service::provider::{self, KEYS_PROVIDER, KeysProvider};
use outrigger_service::wire::Secret;
use outrigger_values::params::{Type, json_words};
use outrigger_values::typed;

use crate::plugin::{Call, Reply};
use crate::{RpcError, amount};

/// The methods of one module, made by `#[methods]`.
pub struct Methods<P: 'static> {
    /// Their part of the manifest, in pieces.
    pub manifest: &'static [&'static str],
    /// Answers a call of one of them; gives the reply back for other methods.
    pub answer: fn(&P, &mut Call<'_>, Reply) -> Option<Reply>,
}

/// The type of a method's argument.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the type of an argument",
    note = "take a text as `&str`, a number with a fraction as `&Value`, an object that serde reads as `outrigger_sdk::methods::Object<{Self}>`"
)]
pub trait Argument<'a>: Sized {
    /// The type that the manifest declares: the name of a [`crate::manifest::ParamType`].
    const TYPE: &'static str;
    /// Whether a call must give the argument.
    const REQUIRED: bool = true;

    /// Reads the argument of this name. An argument that was left out is null.
    ///
    /// # Errors
    /// -3 for another type, as bitcoind; -1 for an integer that does not fit.
    fn read(value: &'a mut Value, name: &str) -> Result<Self, RpcError>;
}

macro_rules! integers {
    ($($integer:ty),*) => {
        $(impl Argument<'_> for $integer {
            const TYPE: &'static str = "numeric";

            fn read(value: &mut Value, _: &str) -> Result<Self, RpcError> {
                typed::integer(value)
            }
        })*
    };
}

integers!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize);

impl Argument<'_> for bool {
    const TYPE: &'static str = "boolean";

    fn read(value: &mut Value, _: &str) -> Result<Self, RpcError> {
        typed::flag(value)
    }
}

impl<'a> Argument<'a> for &'a str {
    const TYPE: &'static str = "string";

    fn read(value: &'a mut Value, _: &str) -> Result<Self, RpcError> {
        typed::text(value)
    }
}

impl Argument<'_> for String {
    const TYPE: &'static str = "string";

    fn read(value: &mut Value, _: &str) -> Result<Self, RpcError> {
        match value.take() {
            Value::String(text) => Ok(text),
            other => Err(typed::wrong_type(&other, Type::String)),
        }
    }
}

/// Text that is wiped when it is dropped: a passphrase or a private key.
impl Argument<'_> for Secret {
    const TYPE: &'static str = "string";

    fn read(value: &mut Value, name: &str) -> Result<Self, RpcError> {
        String::read(value, name).map(Self::new)
    }
}

/// Texts that are wiped when the call ends: private keys. The elements are of any type.
pub struct SecretTexts<'a>(&'a mut [Value]);

impl<'a> Argument<'a> for SecretTexts<'a> {
    const TYPE: &'static str = "array";

    fn read(value: &'a mut Value, _: &str) -> Result<Self, RpcError> {
        match value {
            Value::Array(texts) => Ok(Self(texts)),
            other => Err(typed::wrong_type(other, Type::Array)),
        }
    }
}

impl Deref for SecretTexts<'_> {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        self.0
    }
}

impl Drop for SecretTexts<'_> {
    fn drop(&mut self) {
        for text in self.0.iter_mut() {
            if let Value::String(text) = text.take() {
                drop(Secret::new(text));
            }
        }
    }
}

/// Money, as a number or a text in bitcoins.
impl Argument<'_> for Amount {
    const TYPE: &'static str = "amount";

    fn read(value: &mut Value, _: &str) -> Result<Self, RpcError> {
        amount::from_json(value)
    }
}

impl<'a> Argument<'a> for &'a [Value] {
    const TYPE: &'static str = "array";

    fn read(value: &'a mut Value, _: &str) -> Result<Self, RpcError> {
        typed::array(value)
    }
}

impl<'a> Argument<'a> for &'a Map<String, Value> {
    const TYPE: &'static str = "object";

    fn read(value: &'a mut Value, _: &str) -> Result<Self, RpcError> {
        typed::object(value)
    }
}

/// An object that the method may change.
impl<'a> Argument<'a> for &'a mut Map<String, Value> {
    const TYPE: &'static str = "object";

    fn read(value: &'a mut Value, _: &str) -> Result<Self, RpcError> {
        match value {
            Value::Object(members) => Ok(members),
            other => Err(typed::wrong_type(other, Type::Object)),
        }
    }
}

impl<'a> Argument<'a> for &'a Value {
    const TYPE: &'static str = "any";

    fn read(value: &'a mut Value, _: &str) -> Result<Self, RpcError> {
        Ok(value)
    }
}

/// An argument that may be left out or be null.
impl<'a, T: Argument<'a>> Argument<'a> for Option<T> {
    const TYPE: &'static str = T::TYPE;
    const REQUIRED: bool = false;

    fn read(value: &'a mut Value, name: &str) -> Result<Self, RpcError> {
        if value.is_null() { Ok(None) } else { T::read(value, name).map(Some) }
    }
}

/// An object that serde reads.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Object<T>(pub T);

impl<T: DeserializeOwned> Argument<'_> for Object<T> {
    const TYPE: &'static str = "object";

    fn read(value: &mut Value, name: &str) -> Result<Self, RpcError> {
        read_with_serde(value, name).map(Self)
    }
}

/// A list that serde reads.
impl<T: DeserializeOwned> Argument<'_> for Vec<T> {
    const TYPE: &'static str = "array";

    fn read(value: &mut Value, name: &str) -> Result<Self, RpcError> {
        read_with_serde(value, name)
    }
}

fn read_with_serde<T: DeserializeOwned>(value: &mut Value, name: &str) -> Result<T, RpcError> {
    T::deserialize(value.take())
        .map_err(|error| RpcError::type_error(format!("{name}: {}", json_words(&error.to_string()))))
}

/// A method's result.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no result of a method",
    note = "derive `serde::Serialize` for `{Self}`, or answer with `outrigger_sdk::methods::Json`"
)]
pub trait Answer: Sized {
    /// Answers a call.
    fn send(outcome: Result<Self, RpcError>, reply: Reply);
}

/// Any value with a JSON form.
impl<T: Serialize> Answer for T {
    fn send(outcome: Result<Self, RpcError>, reply: Reply) {
        reply.send(outcome);
    }
}

/// A result that is JSON already.
pub struct Json(pub Vec<u8>);

impl Answer for Json {
    fn send(outcome: Result<Self, RpcError>, reply: Reply) {
        reply.send_json(outcome.map(|json| json.0));
    }
}

/// Answers a call of the host for a function of `keys-provider/1`; gives the reply back for other calls.
#[doc(hidden)]
pub fn provide_keys<P: KeysProvider>(plugin: &P, call: &Call<'_>, reply: Reply) -> Option<Reply> {
    provide(KEYS_PROVIDER, call, reply, |function, message| provider::provide(plugin, call.scope, function, message))
}

/// Answers a call of the host for a function of `policy/1`; gives the reply back for other calls.
#[doc(hidden)]
pub fn provide_policy<P: Policy>(plugin: &P, call: &Call<'_>, reply: Reply) -> Option<Reply> {
    provide(POLICY, call, reply, |function, message| policy::provide(plugin, call.scope, function, message))
}

fn provide(
    service: &str,
    call: &Call<'_>,
    reply: Reply,
    answer: impl FnOnce(&str, &[u8]) -> Result<Vec<u8>, RpcError>,
) -> Option<Reply> {
    let Some(function) = call.method.strip_prefix(service).and_then(|rest| rest.strip_prefix('.')) else {
        return Some(reply);
    };
    let message = call.params.0.first().and_then(Value::as_str).and_then(|hex| Vec::from_hex(hex).ok());
    let answered = message.ok_or_else(|| RpcError::internal("The host's message is not hexadecimal"));
    reply.send(answered.and_then(|message| Ok(Value::from(answer(function, &message)?.to_lower_hex_string()))));
    None
}

/// `true` or `false` as JSON.
#[doc(hidden)]
pub const fn json_bool(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}

/// The length of lists of texts, in bytes.
#[doc(hidden)]
pub const fn length(lists: &[&[&str]]) -> usize {
    let (mut length, mut list) = (0, 0);
    while list < lists.len() {
        let mut item = 0;
        while item < lists[list].len() {
            length += lists[list][item].len();
            item += 1;
        }
        list += 1;
    }
    length
}

/// Lists of texts, one after the other.
#[doc(hidden)]
pub const fn join<const LENGTH: usize>(lists: &[&[&str]]) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    let (mut at, mut list) = (0, 0);
    while list < lists.len() {
        let mut item = 0;
        while item < lists[list].len() {
            let text = lists[list][item].as_bytes();
            let (_, rest) = bytes.split_at_mut(at);
            rest.split_at_mut(text.len()).0.copy_from_slice(text);
            at += text.len();
            item += 1;
        }
        list += 1;
    }
    bytes
}

/// The bytes of [`join`] as a text.
#[doc(hidden)]
#[allow(clippy::panic, reason = "while compiling")]
pub const fn text(bytes: &'static [u8]) -> &'static str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => panic!("texts that are joined are a text"),
    }
}

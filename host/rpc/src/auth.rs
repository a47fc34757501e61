//! Authentication: HTTP Basic credentials against the cookie and the configured users.
//!
//! Invariants: secrets are compared in constant time, and every user is compared, also after a match. Clear passwords
//! of configured users are not kept, only their salted HMAC.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bitcoin::hashes::{Hash, HashEngine, Hmac, HmacEngine, sha256};
use bitcoin::hex::{DisplayHex, FromHex};
use bitcoin::secp256k1::rand::{RngCore, rngs::OsRng};
use http::HeaderValue;
use subtle::{Choice, ConstantTimeEq};
use thiserror::Error;
use zeroize::Zeroizing;

use super::client::Client;
use super::cookie::{COOKIE_USER, CookieFile};
use super::dispatch::Origin;
use super::method_list::is_allowed;
use outrigger_base::client_files::Folders;

/// Bytes of salt in a user made from a clear password, as bitcoind's `rpcauth.py` takes.
const SALT_BYTES: usize = 16;

#[derive(Clone, Debug)]
pub struct Caller {
    name: Arc<str>,
    allowed: Option<Arc<BTreeSet<String>>>,
    wallet: Option<Arc<str>>,
    folders: Folders,
    unknown_methods: bool,
    client: Option<Arc<Client>>,
}

impl Caller {
    pub fn unrestricted(name: &str) -> Self {
        Self { name: Arc::from(name), allowed: None, wallet: None, folders: None, unknown_methods: false, client: None }
    }

    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(super) fn on(mut self, client: Arc<Client>) -> Self {
        self.client = Some(client);
        self
    }

    pub(super) fn client(&self) -> Option<&Arc<Client>> {
        self.client.as_ref()
    }

    /// The origin of a request's calls; `wallet` is the wallet in its path.
    pub(super) fn origin(&self, wallet: Option<Arc<str>>) -> Origin {
        Origin {
            wallet,
            user: self.name.clone(),
            only_wallet: self.wallet.clone(),
            folders: self.folders.clone(),
            allowed: self.allowed.clone(),
            unknown_methods: self.unknown_methods,
            client: self.client.clone(),
        }
    }

    /// Whether some method is refused to the user.
    pub(super) fn is_restricted(&self) -> bool {
        self.allowed.is_some()
    }

    pub fn may_call(&self, method: &str) -> bool {
        is_allowed(self.allowed.as_deref(), method)
    }
}

/// Why a configured user is refused.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum RpcUserError {
    #[error("the rpcauth entry of user {name:?} does not read NAME:SALT$HMAC")]
    Form { name: String },
    #[error("the HMAC in the rpcauth entry of user {name:?} is not 64 hex digits")]
    Hmac { name: String },
    /// HTTP Basic cannot carry the name, or it is a duplicate.
    #[error("{name:?} cannot be the name of an RPC user")]
    Name { name: String },
}

/// A user as in bitcoind's `rpcauth`: a name, a salt, and the HMAC-SHA256 of the password, keyed with the salt's text.
#[derive(Clone, Debug)]
pub struct RpcUser {
    caller: Caller,
    salt: String,
    hmac: [u8; 32],
}

impl RpcUser {
    pub fn from_rpcauth(entry: &str) -> Result<Self, RpcUserError> {
        let (name, secret) = entry.split_once(':').unwrap_or((entry, ""));
        let Some((salt, hmac)) = secret.split_once('$') else {
            return Err(RpcUserError::Form { name: name.to_owned() });
        };
        let hmac = <[u8; 32]>::from_hex(hmac).map_err(|_| RpcUserError::Hmac { name: name.to_owned() })?;
        Self::new(name, salt.to_owned(), hmac)
    }

    /// A user with a clear password (`rpcuser`, `rpcpassword`). The password is salted and hashed at once.
    ///
    /// # Errors
    /// [`RpcUserError::Name`].
    pub fn with_password(name: &str, password: &str) -> Result<Self, RpcUserError> {
        let mut salt = [0_u8; SALT_BYTES];
        OsRng.fill_bytes(&mut salt);
        let salt = salt.to_lower_hex_string();
        let hmac = password_hmac(&salt, password.as_bytes());
        Self::new(name, salt, hmac)
    }

    pub fn name(&self) -> &str {
        self.caller.name()
    }

    pub fn may_call(&self, method: &str) -> bool {
        self.caller.may_call(method)
    }

    pub fn entry(&self) -> String {
        format!("{}:{}${}", self.caller.name, self.salt, self.hmac.to_lower_hex_string())
    }

    fn new(name: &str, salt: String, hmac: [u8; 32]) -> Result<Self, RpcUserError> {
        if name.is_empty() || name == COOKIE_USER || name.contains(':') {
            return Err(RpcUserError::Name { name: name.to_owned() });
        }
        Ok(Self { caller: Caller::unrestricted(name), salt, hmac })
    }

    /// Restricts the user to `methods` and to the methods that list them. Others are answered HTTP 403.
    #[must_use]
    pub fn allowing(mut self, methods: impl IntoIterator<Item = String>) -> Self {
        self.caller.allowed = Some(Arc::new(methods.into_iter().collect()));
        self
    }

    /// Restricts the user to one wallet, which is also the default of its calls.
    #[must_use]
    pub fn confined_to(mut self, wallet: &str) -> Self {
        self.caller.wallet = Some(Arc::from(wallet));
        self
    }

    /// Restricts the files that the user may name to some folders.
    #[must_use]
    pub fn keeping_files_in(mut self, folders: &[PathBuf]) -> Self {
        self.caller.folders = Some(Arc::from(folders));
        self
    }

    /// Lets the user call methods of the node that the host does not know.
    #[must_use]
    pub fn with_unknown_methods(mut self) -> Self {
        self.caller.unknown_methods = true;
        self
    }

    fn matches(&self, name: &[u8], password: &[u8]) -> Choice {
        let hmac = password_hmac(&self.salt, password);
        self.caller.name.as_bytes().ct_eq(name) & self.hmac.ct_eq(&hmac)
    }
}

/// HMAC-SHA256 of `password`, keyed with the text of `salt`.
fn password_hmac(salt: &str, password: &[u8]) -> [u8; 32] {
    let mut engine = HmacEngine::<sha256::Hash>::new(salt.as_bytes());
    engine.input(password);
    Hmac::<sha256::Hash>::from_engine(engine).to_byte_array()
}

/// Wrong scheme, not base64, unknown user or wrong password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AuthenticationFailure;

#[derive(Debug, Default)]
pub struct Authenticator {
    cookie: Option<(Caller, CookieSecret)>,
    users: Vec<RpcUser>,
}

/// The text `__cookie__:PASSWORD`, not shown by `Debug` and wiped on drop.
struct CookieSecret(Zeroizing<String>);

impl std::fmt::Debug for CookieSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CookieSecret")
    }
}

impl Authenticator {
    /// Accepts nobody until a cookie or a user is added.
    pub fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn with_cookie(mut self, cookie: &CookieFile) -> Self {
        let secret = CookieSecret(cookie.credentials().clone());
        let caller = Caller { unknown_methods: true, ..Caller::unrestricted(COOKIE_USER) };
        self.cookie = Some((caller, secret));
        self
    }

    #[must_use]
    pub fn with_user(mut self, user: RpcUser) -> Self {
        self.users.push(user);
        self
    }

    /// The authenticated user of `header`.
    pub(super) fn check(&self, header: &HeaderValue) -> Result<Caller, AuthenticationFailure> {
        let credentials = basic_credentials(header.as_bytes()).ok_or(AuthenticationFailure)?;
        let colon = credentials.iter().position(|byte| *byte == b':').ok_or(AuthenticationFailure)?;
        let (name, password) = credentials.split_at(colon);
        let password = password.get(1..).unwrap_or_default();

        let mut found = None;
        if let Some((caller, secret)) = &self.cookie
            && bool::from(secret.0.as_bytes().ct_eq(&credentials))
        {
            found = Some(caller);
        }
        for user in &self.users {
            if bool::from(user.matches(name, password)) {
                found = Some(&user.caller);
            }
        }
        found.cloned().ok_or(AuthenticationFailure)
    }
}

/// The decoded `NAME:PASSWORD` of a `Basic` header.
fn basic_credentials(header: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let (scheme, encoded) = header.split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return None;
    }
    STANDARD.decode(encoded.trim_ascii()).ok().map(Zeroizing::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str =
        "bob:cb77f0957de88ff388cf817ddbc7273$9eaa166ace0d94a29c6eceb831a42458e93faeb79f895a7ee4ce03f4343f8f55";

    fn basic(text: &str) -> HeaderValue {
        HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(text))).expect("header")
    }

    fn check(auth: &Authenticator, text: &str) -> Result<String, AuthenticationFailure> {
        auth.check(&basic(text)).map(|caller| caller.name().to_string())
    }

    #[test]
    fn cookie_is_accepted_and_near_misses_are_not() {
        let dir = tempfile::tempdir().expect("dir");
        let cookie = CookieFile::create(dir.path().join(".cookie")).expect("cookie");
        let auth = Authenticator::new().with_cookie(&cookie);
        let text = cookie.credentials().to_string();
        assert_eq!(check(&auth, &text), Ok(COOKIE_USER.to_owned()));
        for wrong in [
            format!("{text}0"),
            text[..text.len() - 1].to_owned(),
            text.replace(COOKIE_USER, "someone"),
            COOKIE_USER.to_owned(),
            format!("{COOKIE_USER}:"),
            String::new(),
        ] {
            assert_eq!(check(&auth, &wrong), Err(AuthenticationFailure), "{wrong}");
        }
    }

    #[test]
    fn authorization_malformed_headers_are_refused() {
        let auth = Authenticator::new();
        for header in ["", "Basic", "Basic ", "Basic ***", "Bearer abc", "Basic YQ", "é"] {
            let header = HeaderValue::from_bytes(header.as_bytes()).expect("header");
            assert_eq!(auth.check(&header).map(|_| ()), Err(AuthenticationFailure));
        }
    }

    #[test]
    fn rpcauth_entry_made_elsewhere_is_understood() {
        let salt = "0123456789abcdef0123456789abcdef";
        // printf '%s' 'pass:word' | openssl dgst -sha256 -hmac 0123456789abcdef0123456789abcdef
        let hmac = "36eec41693efe2766d65afc49dcabcd63a478f61cd99bb469a80f7ad8885432b";
        let user = RpcUser::from_rpcauth(&format!("alice:{salt}${hmac}")).expect("user");
        let auth = Authenticator::new().with_user(user);
        assert_eq!(check(&auth, "alice:pass:word"), Ok("alice".to_owned()));
        assert_eq!(check(&auth, "alice:pass"), Err(AuthenticationFailure));
        assert_eq!(check(&auth, "bob:pass:word"), Err(AuthenticationFailure));
        assert_eq!(check(&auth, "alice"), Err(AuthenticationFailure));
    }

    #[test]
    fn rpcauth_users_have_passwords_and_methods() {
        let bob = RpcUser::with_password("bob", "").expect("user");
        let eve = RpcUser::with_password("eve", "x").expect("user");
        let auth = Authenticator::new().with_user(bob).with_user(eve.allowing(["help".to_owned()]));
        assert_eq!(check(&auth, "bob:"), Ok("bob".to_owned()));
        let eve = auth.check(&basic("eve:x")).expect("eve");
        assert!(eve.may_call("help"));
        assert!(!eve.may_call("stop"));
        let bob = auth.check(&basic("bob:")).expect("bob");
        assert!(bob.may_call("stop"));
    }

    #[test]
    fn authorization_scheme_is_read_in_any_case() {
        let auth = Authenticator::new().with_user(RpcUser::with_password("a", "b").expect("user"));
        let header = HeaderValue::from_static("basic  YTpi ");
        assert!(auth.check(&header).is_ok());
    }

    #[test]
    fn rpcauth_bad_entries_are_refused() {
        let name = |entry: &str| RpcUser::from_rpcauth(entry).map(|_| ());
        let form = |name: &str| Err(RpcUserError::Form { name: name.to_owned() });
        assert_eq!(name("bob"), form("bob"));
        assert_eq!(name("bob:salt"), form("bob"));
        assert_eq!(name("bob:salt$12"), Err(RpcUserError::Hmac { name: "bob".to_owned() }));
        let anonymous = ENTRY.trim_start_matches("bob");
        assert_eq!(name(anonymous), Err(RpcUserError::Name { name: String::new() }));
        assert!(name(ENTRY).is_ok());
        let taken = RpcUser::with_password(COOKIE_USER, "x").map(|_| ());
        assert_eq!(taken, Err(RpcUserError::Name { name: COOKIE_USER.to_owned() }));
    }
}

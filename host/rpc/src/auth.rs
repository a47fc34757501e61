//! Authentication: HTTP Basic credentials against the cookie and the configured users.
//!
//! Invariants: secrets are compared in constant time, and every user is compared, also after a match. Clear passwords
//! of configured users are not kept, only their salted HMAC.

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

use super::client::{Client, Identity};
use super::cookie::{COOKIE_USER, CookieFile};
use super::dispatch::Origin;
use super::peers::Peer;

/// Bytes of salt for a clear password, as in bitcoind's `rpcauth.py`.
const SALT_BYTES: usize = 16;

#[derive(Clone, Debug)]
pub struct Caller {
    /// Without the wallet of a path.
    pub(super) origin: Origin,
    login: Login,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Login {
    /// Nothing yet, or the cookie.
    Other,
    /// The salted HMAC of the password.
    Password([u8; 32]),
    /// The uid of the client's process.
    Process(u32),
    Certificate,
}

impl Caller {
    pub fn unrestricted(name: &str) -> Self {
        Self { origin: Origin::of_user(name), login: Login::Other }
    }

    /// Whether both are the same entry of a user with the same login.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.origin.user, &other.origin.user) && self.login == other.login
    }

    /// The user on a connection. `peer` is the client's address, which behind a proxy is not the connection's.
    pub(super) fn on(mut self, client: Arc<Client>, peer: Peer) -> Self {
        (self.origin.client, self.origin.peer) = (Some(client), Some(peer));
        self
    }

    /// The origin of a request's calls; `wallet` is the wallet in its path.
    pub(super) fn origin(self, wallet: Option<Arc<str>>) -> Origin {
        Origin { wallet, ..self.origin }
    }
}

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
    /// The user's rights.
    pub origin: Origin,
    /// The salt and the HMAC; `None` for a user without a password.
    secret: Option<(String, [u8; 32])>,
    /// The uid of the processes that are this user on a Unix socket.
    pub process_user: Option<u32>,
}

impl RpcUser {
    pub fn from_rpcauth(entry: &str) -> Result<Self, RpcUserError> {
        let (name, secret) = entry.split_once(':').unwrap_or((entry, ""));
        let Some((salt, hmac)) = secret.split_once('$') else {
            return Err(RpcUserError::Form { name: name.to_owned() });
        };
        let hmac = <[u8; 32]>::from_hex(hmac).map_err(|_| RpcUserError::Hmac { name: name.to_owned() })?;
        Self::new(name, Some((salt.to_owned(), hmac)))
    }

    /// A user with a clear password (`rpcuser`, `rpcpassword`). The password is salted and hashed at once.
    pub fn with_password(name: &str, password: &str) -> Result<Self, RpcUserError> {
        let mut salt = [0_u8; SALT_BYTES];
        OsRng.fill_bytes(&mut salt);
        let salt = salt.to_lower_hex_string();
        let hmac = password_hmac(&salt, password.as_bytes());
        Self::new(name, Some((salt, hmac)))
    }

    pub fn name(&self) -> &str {
        &self.origin.user
    }

    /// The `rpcauth` entry; without a password only the name.
    pub fn entry(&self) -> String {
        let secret = self.secret.as_ref().map(|(salt, hmac)| format!(":{salt}${}", hmac.to_lower_hex_string()));
        format!("{}{}", self.origin.user, secret.unwrap_or_default())
    }

    /// A user without restrictions. Without a secret, its uid or certificate identifies it.
    pub fn new(name: &str, secret: Option<(String, [u8; 32])>) -> Result<Self, RpcUserError> {
        if name.is_empty() || name == COOKIE_USER || name.contains(':') {
            return Err(RpcUserError::Name { name: name.to_owned() });
        }
        Ok(Self { origin: Origin::of_user(name), secret, process_user: None })
    }

    /// Restricts the user to `methods` and `rpc.discover`. Other methods are answered with HTTP 403.
    #[must_use]
    pub fn allowing(mut self, methods: impl IntoIterator<Item = String>) -> Self {
        self.origin.allowed = Some(Arc::new(methods.into_iter().collect()));
        self
    }

    fn by(&self, login: Login) -> Caller {
        Caller { login, origin: self.origin.clone() }
    }

    /// Whether the user can still log in this way. The authority of a certificate is checked elsewhere.
    fn accepts(&self, login: Login) -> bool {
        match login {
            Login::Other => false,
            Login::Password(former) => self.secret.as_ref().is_some_and(|(_, hmac)| *hmac == former),
            Login::Process(id) => self.process_user == Some(id),
            Login::Certificate => true,
        }
    }

    fn matches(&self, name: &[u8], password: &[u8]) -> Choice {
        let Some((salt, hmac)) = &self.secret else { return Choice::from(0) };
        self.origin.user.as_bytes().ct_eq(name) & hmac.ct_eq(&password_hmac(salt, password))
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

/// Checks credentials and identities. By default it accepts nobody. It has no `Debug`, since it holds a password.
#[derive(Default)]
pub struct Authenticator {
    /// With the text `__cookie__:PASSWORD`.
    cookie: Option<(Caller, Zeroizing<String>)>,
    users: Vec<RpcUser>,
}

impl Authenticator {
    #[must_use]
    pub fn with_cookie(mut self, cookie: &CookieFile) -> Self {
        let origin = Origin { unknown_methods: true, ..Origin::of_user(COOKIE_USER) };
        self.cookie = Some((Caller { origin, login: Login::Other }, cookie.credentials().clone()));
        self
    }

    #[must_use]
    pub fn with_user(mut self, user: RpcUser) -> Self {
        self.users.push(user);
        self
    }

    /// The same cookie, with other users.
    pub(super) fn with_users(&self, users: Vec<RpcUser>) -> Self {
        Self { cookie: self.cookie.clone(), users }
    }

    /// The present entry of a user that a former authenticator accepted; `None` if the user or that login is gone.
    pub(super) fn successor(&self, former: &Caller) -> Option<&Origin> {
        let cookie = self.cookie.as_ref().map(|(caller, _)| &caller.origin);
        let accepting = self.users.iter().filter(|user| user.accepts(former.login)).map(|user| &user.origin);
        cookie.into_iter().chain(accepting).find(|origin| origin.user == former.origin.user)
    }

    /// The user of a uid or a certificate; `None` if only credentials can name the user.
    pub(super) fn identified(&self, identity: &Identity) -> Result<Option<Caller>, AuthenticationFailure> {
        match identity {
            Identity::Process(id) => {
                let user = self.users.iter().find(|user| user.process_user == Some(*id));
                Ok(user.map(|user| user.by(Login::Process(*id))))
            }
            Identity::Certificate { name, clients } => {
                let mut users = self.users.iter().filter(|_| !clients.are_replaced());
                let user = users.find(|user| name.as_deref() == Some(user.name()));
                user.map(|user| Some(user.by(Login::Certificate))).ok_or(AuthenticationFailure)
            }
        }
    }

    pub(super) fn check(&self, header: &HeaderValue) -> Result<Caller, AuthenticationFailure> {
        let credentials = basic_credentials(header.as_bytes()).ok_or(AuthenticationFailure)?;
        let colon = credentials.iter().position(|byte| *byte == b':').ok_or(AuthenticationFailure)?;
        let (name, password) = credentials.split_at(colon);
        let password = password.get(1..).unwrap_or_default();

        let mut found = None;
        if let Some((caller, secret)) = &self.cookie
            && bool::from(secret.as_bytes().ct_eq(&credentials))
        {
            found = Some(caller.clone());
        }
        for user in &self.users {
            if bool::from(user.matches(name, password))
                && let Some((_, hmac)) = &user.secret
            {
                found = Some(user.by(Login::Password(*hmac)));
            }
        }
        found.ok_or(AuthenticationFailure)
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

    #[test]
    fn successor_has_the_same_password_and_covers_what_is_not_less() {
        let user = || RpcUser::from_rpcauth(ENTRY).expect("user");
        let listed = |methods: &[&str]| user().allowing(methods.iter().map(|&method| method.to_owned()));
        let of = |user: RpcUser| Authenticator::default().with_user(user);
        let covers = |now: RpcUser, former: RpcUser| {
            let login = former.secret.as_ref().map_or(Login::Other, |(_, hmac)| Login::Password(*hmac));
            let (now, former) = (of(now), former.by(login));
            now.successor(&former).map(|origin| origin.covers(&former.origin))
        };
        assert_eq!(covers(user(), user()), Some(true));
        assert_eq!(covers(user(), listed(&["a"])), Some(true));
        assert_eq!(covers(listed(&["a", "b"]), listed(&["a"])), Some(true));
        assert_eq!(covers(listed(&["a"]), listed(&["a", "b"])), Some(false));
        assert_eq!(covers(listed(&["a"]), user()), Some(false));
        let (mut confined, mut free) = (user(), user());
        confined.origin.only_wallet = Some("w".into());
        free.origin.unknown_methods = true;
        assert_eq!((covers(confined, user()), covers(user(), free)), (Some(false), Some(false)));
        assert_eq!(covers(RpcUser::with_password("bob", "other").expect("user"), user()), None);
        assert_eq!(covers(RpcUser::with_password("eve", "x").expect("user"), user()), None);
        let remains = |now: RpcUser, login| of(now).successor(&user().by(login)).is_some();
        let of_process = |id| RpcUser { process_user: Some(id), ..user() };
        assert!(remains(of_process(7), Login::Process(7)) && remains(user(), Login::Certificate));
        assert!(!remains(of_process(8), Login::Process(7)) && !remains(user(), Login::Process(7)));
    }

    const ENTRY: &str =
        "bob:cb77f0957de88ff388cf817ddbc7273$9eaa166ace0d94a29c6eceb831a42458e93faeb79f895a7ee4ce03f4343f8f55";

    fn basic(text: &str) -> HeaderValue {
        HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(text))).expect("header")
    }

    fn check(auth: &Authenticator, text: &str) -> Result<String, AuthenticationFailure> {
        auth.check(&basic(text)).map(|caller| caller.origin.user.to_string())
    }

    #[test]
    fn cookie_is_accepted_and_near_misses_are_not() {
        let dir = tempfile::tempdir().expect("dir");
        let cookie = CookieFile::create(dir.path().join(".cookie")).expect("cookie");
        let auth = Authenticator::default().with_cookie(&cookie);
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
        let auth = Authenticator::default();
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
        let auth = Authenticator::default().with_user(user);
        assert_eq!(check(&auth, "alice:pass:word"), Ok("alice".to_owned()));
        assert_eq!(check(&auth, "alice:pass"), Err(AuthenticationFailure));
        assert_eq!(check(&auth, "bob:pass:word"), Err(AuthenticationFailure));
        assert_eq!(check(&auth, "alice"), Err(AuthenticationFailure));
    }

    #[test]
    fn rpcauth_users_have_passwords_and_methods() {
        let bob = RpcUser::with_password("bob", "").expect("user");
        let eve = RpcUser::with_password("eve", "x").expect("user");
        let auth = Authenticator::default().with_user(bob).with_user(eve.allowing(["help".to_owned()]));
        assert_eq!(check(&auth, "bob:"), Ok("bob".to_owned()));
        let eve = auth.check(&basic("eve:x")).expect("eve");
        assert!(eve.origin.may_call("help"));
        assert!(!eve.origin.may_call("stop"));
        let bob = auth.check(&basic("bob:")).expect("bob");
        assert!(bob.origin.may_call("stop"));
    }

    #[test]
    fn authorization_scheme_is_read_in_any_case() {
        let auth = Authenticator::default().with_user(RpcUser::with_password("a", "b").expect("user"));
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

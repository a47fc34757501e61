//! TLS: the RPC port's certificate and the authorities of its clients, read again when their files change.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use outrigger_base::paths::AbsolutePath;
use parking_lot::Mutex;
use serde::Deserialize;
use thiserror::Error;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};
use x509_parser::parse_x509_certificate;

/// How long a client may take for the handshake, within [`Limits::unauthenticated_timeout`](super::Limits).
pub(super) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// The first byte of every TLS connection: the content type of a handshake (RFC 8446, 5.1).
pub(super) const HANDSHAKE_BYTE: u8 = 22;

/// How often new connections check the files for changes.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The section `[rpc.tls]` of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsSettings {
    /// The certificate with its chain, in PEM.
    pub certificate: AbsolutePath,
    /// Its private key, in PEM.
    pub key: AbsolutePath,
    /// The authorities that must have issued clients' certificates, in PEM; by default, clients need no certificate.
    pub client_ca: Option<AbsolutePath>,
    /// Whether the common name of a client's certificate is its user name.
    #[serde(default)]
    pub client_users: bool,
}

/// A file that cannot be used, with its setting and the reason.
#[derive(Debug, Error)]
#[error("{}: {reason}", .path.display())]
pub struct TlsError {
    pub setting: &'static str,
    pub path: PathBuf,
    pub reason: String,
}

pub struct Tls {
    current: ArcSwap<Current>,
    watched: Mutex<Watched>,
}

/// The TLS configuration of new connections.
#[derive(Clone)]
pub(super) struct Current {
    pub config: Arc<ServerConfig>,
    pub clients: Arc<TlsClients>,
}

/// The authorities of clients' certificates, and whether a certificate names a user.
pub(super) struct TlsClients {
    authorities: Vec<CertificateDer<'static>>,
    /// Whether the common name of a client's certificate is its user name.
    pub are_users: bool,
    are_replaced: AtomicBool,
}

impl TlsClients {
    /// Whether other authorities or rules apply by now.
    pub(super) fn are_replaced(&self) -> bool {
        self.are_replaced.load(Ordering::Acquire)
    }
}

struct Watched {
    settings: TlsSettings,
    stamps: Vec<Option<Stamp>>,
    looked: Instant,
}

/// A file's inode, size and ctime in seconds and nanoseconds. It differs after every change of the file.
type Stamp = (u64, u64, i64, i64);

impl Tls {
    /// # Errors
    /// A file that is missing or unreadable, or a key of another certificate.
    pub fn open(settings: TlsSettings) -> Result<Self, TlsError> {
        let (watched, current) = Watched::read(settings)?;
        Ok(Self { current: ArcSwap::from_pointee(current), watched: Mutex::new(watched) })
    }

    /// Uses these settings for new connections. Open connections stay, except those of users by certificate if the
    /// authorities have changed.
    pub(super) fn replace(&self, fresh: Self) {
        // Locked until both are replaced, so that no file of the former settings is read again in between.
        let mut watched = self.watched.lock();
        *watched = fresh.watched.into_inner();
        self.take(Arc::unwrap_or_clone(fresh.current.into_inner()));
    }

    fn take(&self, mut fresh: Current) {
        let former = self.current.load().clients.clone();
        let stay = former.authorities == fresh.clients.authorities && former.are_users == fresh.clients.are_users;
        if stay {
            fresh.clients = former.clone();
        }
        self.current.store(Arc::new(fresh));
        former.are_replaced.store(!stay, Ordering::Release);
    }

    /// The configuration for a new connection. Reads changed files again.
    pub(super) fn current(&self) -> Arc<Current> {
        // If the lock is taken, another connection is checking the files.
        if let Some(mut watched) = self.watched.try_lock() {
            match watched.read_again() {
                Some(Ok(current)) => {
                    tracing::info!("the TLS certificate has been read again");
                    self.take(current);
                }
                Some(Err(error)) => {
                    tracing::error!(setting = error.setting, %error, "the former TLS certificate stays in use");
                }
                None => {}
            }
        }
        self.current.load_full()
    }
}

impl Watched {
    fn read(settings: TlsSettings) -> Result<(Self, Current), TlsError> {
        // Taken before the files are read, so that a change during the read is seen.
        let stamps = settings.stamps();
        let current = settings.read()?;
        Ok((Self { settings, stamps, looked: Instant::now() }, current))
    }

    /// The configuration from changed files, once for each change; `None` if nothing has changed or no check is due.
    fn read_again(&mut self) -> Option<Result<Current, TlsError>> {
        if self.looked.elapsed() < LOOK_EVERY {
            return None;
        }
        self.looked = Instant::now();
        let stamps = self.settings.stamps();
        if stamps == self.stamps {
            return None;
        }
        self.stamps = stamps;
        Some(self.settings.read())
    }
}

impl TlsSettings {
    fn stamps(&self) -> Vec<Option<Stamp>> {
        let stamp = |path: &AbsolutePath| {
            let about = fs::metadata(&**path).ok()?;
            Some((about.ino(), about.size(), about.ctime(), about.ctime_nsec()))
        };
        [&self.certificate, &self.key].into_iter().chain(&self.client_ca).map(stamp).collect()
    }

    fn read(&self) -> Result<Current, TlsError> {
        let chain = certificates("rpc.tls.certificate", &self.certificate)?;
        let of_key = |reason: String| TlsError { setting: "rpc.tls.key", path: self.key.to_path_buf(), reason };
        let key =
            PrivateKeyDer::from_pem_file(&*self.key).map_err(|error| of_key(pem_reason(&error, "private key")))?;
        let mut authorities = Vec::new();
        let builder = match &self.client_ca {
            None => ServerConfig::builder().with_no_client_auth(),
            Some(path) => {
                let of_ca = |reason| TlsError { setting: "rpc.tls.client_ca", path: path.to_path_buf(), reason };
                let mut roots = RootCertStore::empty();
                authorities = certificates("rpc.tls.client_ca", path)?;
                for authority in &authorities {
                    roots.add(authority.clone()).map_err(|error| of_ca(error.to_string()))?;
                }
                let verifier = WebPkiClientVerifier::builder(roots.into()).build();
                ServerConfig::builder().with_client_cert_verifier(verifier.map_err(|error| of_ca(error.to_string()))?)
            }
        };
        let mut config = builder
            .with_single_cert(chain, key)
            .map_err(|error| of_key(format!("it does not fit the certificate: {error}")))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let clients = TlsClients { authorities, are_users: self.client_users, are_replaced: AtomicBool::new(false) };
        Ok(Current { config: Arc::new(config), clients: Arc::new(clients) })
    }
}

/// The certificates of a PEM file, at least one.
fn certificates(setting: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let refuse = |reason: String| TlsError { setting, path: path.to_owned(), reason };
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(found) if found.is_empty() => Err(refuse("there is no certificate in it".to_owned())),
        read => read.map_err(|error| refuse(pem_reason(&error, "certificate"))),
    }
}

fn pem_reason(error: &tokio_rustls::rustls::pki_types::pem::Error, what: &str) -> String {
    use tokio_rustls::rustls::pki_types::pem::Error;
    match error {
        Error::Io(error) => error.to_string(),
        Error::NoItemsFound => format!("there is no {what} in it"),
        other => format!("it is not PEM: {other}"),
    }
}

/// The common name of a certificate's subject, if it has exactly one.
pub(super) fn common_name(certificate: &CertificateDer<'_>) -> Option<String> {
    let (_, certificate) = parse_x509_certificate(certificate).ok()?;
    let mut names = certificate.subject().iter_common_name();
    let name = names.next()?.as_str().ok()?.to_owned();
    names.next().is_none().then_some(name)
}

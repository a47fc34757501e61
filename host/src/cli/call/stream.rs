//! The bytes of a connection to a host: by TCP, by TLS, or over a Unix socket.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::error::CallError;

pub(super) trait Stream: Read + Write {}

impl<T: Read + Write> Stream for T {}

pub(super) fn tcp(address: &str, patience: Option<Duration>) -> Result<TcpStream, CallError> {
    let stream = TcpStream::connect(address);
    let stream = stream.map_err(|source| CallError::Connect { address: address.to_owned(), source })?;
    stream.set_read_timeout(patience)?;
    Ok(stream)
}

pub(super) fn unix(path: &str, patience: Option<Duration>) -> Result<UnixStream, CallError> {
    let stream = UnixStream::connect(path);
    let stream = stream.map_err(|source| CallError::Connect { address: path.to_owned(), source })?;
    stream.set_read_timeout(patience)?;
    Ok(stream)
}

/// A TLS connection. An authority in the PEM file `ca`, or by default one of the system's, must have signed the host's certificate.
pub(super) fn tls(
    address: &str,
    ca: Option<&Path>,
    patience: Option<Duration>,
) -> Result<impl Stream + use<>, CallError> {
    let failed = |source| CallError::Tls { address: address.to_owned(), source };
    let mut stream = tcp(address, patience)?;
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host).trim_matches(['[', ']']);
    let name = ServerName::try_from(host.to_owned()).map_err(|error| failed(io::Error::other(error)))?;
    let roots = roots(ca).map_err(failed)?;
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let connection = ClientConnection::new(Arc::new(config), name);
    let mut connection = connection.map_err(|error| failed(io::Error::other(error)))?;
    while connection.is_handshaking() {
        connection.complete_io(&mut stream).map_err(failed)?;
    }
    Ok(StreamOwned::new(connection, stream))
}

fn roots(ca: Option<&Path>) -> io::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    match ca {
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        Some(file) => {
            let named = |error| io::Error::other(format!("{}: {error}", file.display()));
            let found = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            for authority in found.map_err(|error| named(error.to_string()))? {
                roots.add(authority).map_err(|error| named(error.to_string()))?;
            }
        }
    }
    Ok(roots)
}

//! Outgoing connections: by TCP, by TLS and to Unix sockets.

use std::io;
use std::sync::{Arc, OnceLock};

use outrigger_sandbox::{Endpoint, Reach};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, ToSocketAddrs, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

pub(crate) async fn connect(to: &Reach) -> io::Result<Box<dyn Stream>> {
    Ok(match to {
        Reach::Unix(path) => Box::new(UnixStream::connect(path).await?),
        Reach::Tcp(address) => Box::new(tcp(address).await?),
        Reach::TcpName(endpoint) => Box::new(tcp((&*endpoint.host, endpoint.port)).await?),
        Reach::Tls(endpoint) => Box::new(tls(endpoint).await?),
        _ => return Err(io::ErrorKind::InvalidInput.into()),
    })
}

async fn tcp(to: impl ToSocketAddrs) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(to).await?;
    // The plugin decides how to group its writes.
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn tls(endpoint: &Endpoint) -> io::Result<impl Stream + use<>> {
    let name = ServerName::try_from(endpoint.host.clone()).map_err(io::Error::other)?;
    let config = config()?;
    let stream = tcp((&*endpoint.host, endpoint.port)).await?;
    TlsConnector::from(config).connect(name, stream).await
}

/// A client with the system's root certificates, or those of `SSL_CERT_FILE`, read at the first connection.
fn config() -> io::Result<Arc<ClientConfig>> {
    static CONFIG: OnceLock<Result<Arc<ClientConfig>, String>> = OnceLock::new();
    CONFIG.get_or_init(read_config).clone().map_err(io::Error::other)
}

fn read_config() -> Result<Arc<ClientConfig>, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (usable, _) = roots.add_parsable_certificates(found.certs);
    if usable == 0 {
        let reasons: Vec<String> = found.errors.iter().map(ToString::to_string).collect();
        return Err(format!("the system has no root certificates {}", reasons.join("; ")).trim_end().to_owned());
    }
    Ok(Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()))
}

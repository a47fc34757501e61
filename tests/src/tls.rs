//! Servers that speak TLS, with certificates of an authority that a test makes.

use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    /// Writes its certificate to a file, for the variable `SSL_CERT_FILE` of a host.
    pub fn new(file: &Path) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        // Certificates name their issuer.
        params.distinguished_name.push(DnType::CommonName, file.file_stem().unwrap().to_str().unwrap());
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let text = STANDARD.encode(issuer.der());
        std::fs::write(file, format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")).unwrap();
        Self(issuer)
    }

    /// A server's configuration, with a certificate of this name.
    pub fn server(&self, name: &str, is_expired: bool) -> Arc<ServerConfig> {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        if is_expired {
            params.not_after = date_time_ymd(2020, 1, 1);
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = ServerConfig::builder().with_no_client_auth();
        Arc::new(config.with_single_cert(vec![certificate.der().clone()], key).unwrap())
    }
}

/// The handshake happens with the first byte that is read or written.
pub fn accept_tls(config: &Arc<ServerConfig>, stream: TcpStream) -> StreamOwned<ServerConnection, TcpStream> {
    StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), stream)
}

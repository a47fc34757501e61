//! TLS clients and servers, with certificates of a test's own authority.

use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned,
};

pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    /// Writes its certificate to a file, for the variable `SSL_CERT_FILE` of a host.
    pub fn new(file: &Path) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        // Certificates contain their issuer's name.
        params.distinguished_name.push(DnType::CommonName, file.file_stem().unwrap().to_str().unwrap());
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        std::fs::write(file, pem("CERTIFICATE", issuer.der())).unwrap();
        Self(issuer)
    }

    /// A certificate for these names, whose subject has this common name.
    pub fn issue(&self, names: &[&str], common_name: &str) -> Issued {
        let mut params =
            CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
        params.distinguished_name.push(DnType::CommonName, common_name);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Issued { certificate: certificate.der().to_vec(), key: key.serialize_der() }
    }

    /// A connection to a server whose certificate this authority issued for 127.0.0.1. `own` is the client's certificate, if any.
    pub fn connect(
        &self,
        stream: TcpStream,
        own: Option<&Issued>,
    ) -> std::io::Result<StreamOwned<ClientConnection, TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        let config = ClientConfig::builder().with_root_certificates(roots);
        let config = match own {
            None => config.with_no_client_auth(),
            Some(own) => {
                let key = PrivateKeyDer::try_from(own.key.clone()).unwrap();
                config.with_client_auth_cert(vec![own.certificate.clone().into()], key).unwrap()
            }
        };
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let mut stream = StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), stream);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        Ok(stream)
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

/// A certificate of an authority with its key.
pub struct Issued {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Issued {
    /// Writes both in PEM.
    pub fn write(&self, certificate: &Path, key: &Path) {
        std::fs::write(certificate, pem("CERTIFICATE", &self.certificate)).unwrap();
        std::fs::write(key, pem("PRIVATE KEY", &self.key)).unwrap();
    }
}

fn pem(kind: &str, bytes: &[u8]) -> String {
    format!("-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n", STANDARD.encode(bytes))
}

/// The first read or write performs the handshake.
pub fn accept_tls(config: &Arc<ServerConfig>, stream: TcpStream) -> StreamOwned<ServerConnection, TcpStream> {
    StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), stream)
}

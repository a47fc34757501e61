//! A third party's signing plugin: the host's wallet knows the outputs and watches them, and the keys are in a daemon behind a
//! Unix socket, which stands for a hardware module. Clients cannot tell it from the group that it replaces.

use std::io::{self, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use outrigger_sdk::params::{decode_hex, encode_hex};
use outrigger_sdk::script::TxContext;
use outrigger_sdk::service::log::Level;
use outrigger_sdk::service::signer::{SignRequest, Signed};
use outrigger_sdk::service::{ErrorKind, Result, ServiceError};
use outrigger_sdk::sign::{KeySource, digest, methods};
use outrigger_sdk::wire::Blob;
use outrigger_sdk::{Call, Host, Plugin, Reply};
use serde_json::{Map, Value};

pub mod wire;

use wire::{Answer, Digest, Request};

/// How long the daemon may take for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

pub struct VaultSigning {
    host: Host,
    socket: PathBuf,
}

impl Plugin for VaultSigning {
    fn new(host: Host, options: Map<String, Value>) -> std::result::Result<Self, String> {
        let socket = options["socket"].as_str().ok_or("socket must be a path")?.into();
        Ok(Self { host, socket })
    }

    fn call(&self, call: Call<'_>, reply: Reply) {
        let wanted = || reply.is_wanted();
        let answer = match call.method {
            "signrawtransactionwithwallet" => {
                methods::with_wallet(&self.host, call.scope, &call.params, |_| Vault(self), &wanted)
            }
            _ => methods::with_key(&self.host, call.scope, call.params, &wanted),
        };
        reply.send(answer);
    }
}

struct Vault<'a>(&'a VaultSigning);

impl Vault<'_> {
    /// Asks the daemon. Each request has a connection of its own, so one that was restarted is found again.
    fn ask(&self, request: &Request) -> Result<Answer> {
        self.exchange(request).map_err(|error| {
            let message = format!("the signing daemon at {}: {error}", self.0.socket.display());
            self.0.host.log(Level::Warn, message);
            ServiceError::new(ErrorKind::Refused, "The signing daemon cannot be reached")
        })
    }

    fn exchange(&self, request: &Request) -> io::Result<Answer> {
        let mut stream = UnixStream::connect(&self.0.socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.write_all(&wire::line(request)?)?;
        wire::read(BufReader::new(stream))
    }
}

/// An answer that does not fit the question.
fn nonsense() -> ServiceError {
    ServiceError::new(ErrorKind::Refused, "The signing daemon gave no proper answer")
}

impl KeySource for Vault<'_> {
    fn available(&self, public_keys: Vec<Blob>) -> Result<Vec<bool>> {
        match self.ask(&Request::Available(public_keys.iter().map(|key| encode_hex(key)).collect()))? {
            Answer::Available(available) => Ok(available),
            _ => Err(nonsense()),
        }
    }

    fn sign(&self, context: &TxContext<'_>, requests: Vec<SignRequest>) -> Result<Vec<Option<Signed>>> {
        let digests: Vec<Option<[u8; 32]>> = requests.iter().map(|request| digest(context, request)).collect();
        let wanted =
            requests.iter().zip(&digests).filter_map(|(request, digest)| Some(Digest::new(request, (*digest)?)));
        let Answer::Signatures(signatures) = self.ask(&Request::Sign(wanted.collect()))? else {
            return Err(nonsense());
        };
        let mut signatures = signatures.into_iter();
        let signed = |digest: Option<[u8; 32]>| {
            let Some(digest) = digest else { return Ok(None) };
            let Some(text) = signatures.next().flatten() else { return Ok(None) };
            let signature = Blob(decode_hex(&text).ok_or_else(nonsense)?);
            Ok(Some(Signed { signature, digest }))
        };
        digests.into_iter().map(signed).collect()
    }
}

outrigger_sdk::export_plugin!(VaultSigning, include_str!("../manifest.json"));

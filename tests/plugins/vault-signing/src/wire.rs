//! The protocol of plugin and daemon: a request and its answer are one line of JSON each, bytes are hexadecimal.

use std::io::{self, BufRead};

use outrigger_sdk::params::{decode_hex, encode_hex};
use outrigger_sdk::service::signer::SignRequest;
use outrigger_sdk::sign::SignatureKind;
use serde::{Deserialize, Serialize};

/// The longest line, in bytes: more than the largest transaction needs.
pub const MAX_LINE: u64 = 256 << 20;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Which of these public keys the daemon has.
    Available(Vec<String>),
    /// Signatures.
    Sign(Vec<Digest>),
}

#[derive(Serialize, Deserialize)]
pub struct Digest {
    public_key: String,
    digest: String,
    kind: Kind,
}

/// The kind of a signature.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Ecdsa,
    /// ECDSA with the recovery id in front.
    EcdsaRecoverable,
    Schnorr,
    /// By the key tweaked with the root of a script tree.
    Tweaked(Option<String>),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// For each key whether the daemon has it.
    Available(Vec<bool>),
    /// For each digest its signature, if the daemon has the key.
    Signatures(Vec<Option<String>>),
    /// The request was not understood.
    Refused(String),
}

impl Digest {
    pub fn new(request: &SignRequest, digest: [u8; 32]) -> Self {
        let kind = match request.into() {
            SignatureKind::Ecdsa => Kind::Ecdsa,
            SignatureKind::EcdsaRecoverable => Kind::EcdsaRecoverable,
            SignatureKind::Schnorr => Kind::Schnorr,
            SignatureKind::SchnorrTweaked { merkle_root } => Kind::Tweaked(merkle_root.map(|root| encode_hex(&root))),
        };
        Self { public_key: encode_hex(&request.public_key), digest: encode_hex(&digest), kind }
    }

    /// The public key, the digest, and the kind; none if a text is not hexadecimal of the right length.
    pub fn read(&self) -> Option<(Vec<u8>, [u8; 32], SignatureKind)> {
        let hash = |text: &String| decode_hex(text)?.try_into().ok();
        let kind = match &self.kind {
            Kind::Ecdsa => SignatureKind::Ecdsa,
            Kind::EcdsaRecoverable => SignatureKind::EcdsaRecoverable,
            Kind::Schnorr => SignatureKind::Schnorr,
            Kind::Tweaked(None) => SignatureKind::SchnorrTweaked { merkle_root: None },
            Kind::Tweaked(Some(root)) => SignatureKind::SchnorrTweaked { merkle_root: Some(hash(root)?) },
        };
        Some((decode_hex(&self.public_key)?, hash(&self.digest)?, kind))
    }
}

/// Reads a line; an end without one is an error.
pub fn read<T: for<'de> Deserialize<'de>>(from: impl BufRead) -> io::Result<T> {
    let mut line = String::new();
    from.take(MAX_LINE).read_line(&mut line)?;
    if !line.ends_with('\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_str(&line)?)
}

pub fn line(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

//! Keeps private keys and signs with them: `hsm-daemon SOCKET KEYS`, where KEYS is a file with an extended private key on each
//! line. It prints a line once it listens, and exits at the end of its standard input.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::str::FromStr;
use std::sync::Arc;
use std::thread;

use outrigger_hsm_signer::{message, read_line};
use outrigger_sdk::RpcError;
use outrigger_sdk::bitcoin::bip32::{DerivationPath, Xpriv};
use outrigger_sdk::bitcoin::hex::DisplayHex;
use outrigger_sdk::bitcoin::secp256k1::{All, Secp256k1, SecretKey};
use outrigger_sdk::service::Scope;
use outrigger_sdk::service::provider::{
    KeysProvider, KeysQuery, MessageQuery, ProviderBatch, ProviderRequest, provide,
};
use outrigger_sdk::service::wallet::KeyOrigin;
use outrigger_sdk::sign::{SignatureKind, sign_digest};
use outrigger_sdk::wire::Blob;
use serde_json::{Value, json};

struct Keys {
    secp: Secp256k1<All>,
    masters: Vec<Xpriv>,
}

impl Keys {
    /// Reads extended private keys, one on each line.
    fn read(text: &str) -> io::Result<Self> {
        let masters = text.lines().map(Xpriv::from_str).collect::<Result<_, _>>().map_err(io::Error::other)?;
        Ok(Self { secp: Secp256k1::new(), masters })
    }

    /// The private key of an origin, derived from the master key with the origin's fingerprint; `None` without it.
    fn find(&self, origin: &KeyOrigin) -> Option<SecretKey> {
        let path = DerivationPath::from_str(&origin.path).ok()?;
        let of_origin = |master: &&Xpriv| master.fingerprint(&self.secp).to_bytes() == origin.fingerprint;
        let key = self.masters.iter().find(of_origin)?.derive_priv(&self.secp, &path).ok()?.private_key;
        let public_key = key.public_key(&self.secp).serialize();
        // A taproot descriptor may give only the x coordinate, so the first byte is not compared.
        (public_key.get(1..) == origin.public_key.get(1..)).then_some(key)
    }
}

impl KeysProvider for Keys {
    fn available(&self, _: Scope, query: &KeysQuery) -> Result<Vec<bool>, RpcError> {
        Ok(query.keys.iter().map(|key| self.find(key).is_some()).collect())
    }

    fn sign(&self, _: Scope, batch: &ProviderBatch) -> Result<Vec<Option<Blob>>, RpcError> {
        let sign = |ProviderRequest { key, request, digest }: &ProviderRequest| {
            Some(Blob(sign_digest(&self.find(key)?, *digest, &request.into())))
        };
        Ok(batch.requests.iter().map(sign).collect())
    }

    fn message(&self, _: Scope, query: &MessageQuery) -> Result<Option<Blob>, RpcError> {
        let sign = |key| Blob(sign_digest(&key, query.digest, &SignatureKind::EcdsaRecoverable));
        Ok(self.find(&query.key).map(sign))
    }
}

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(socket), Some(file)) = (arguments.next(), arguments.next()) else {
        return Err(io::Error::other("usage: hsm-daemon SOCKET KEYS"));
    };
    let keys = Arc::new(Keys::read(&fs::read_to_string(file)?)?);
    let listener = UnixListener::bind(&socket)?;
    writeln!(io::stdout(), "listening")?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let keys = keys.clone();
            // An error of one connection does not affect others.
            thread::spawn(move || drop(serve(&stream, &keys)));
        }
    });
    io::stdin().read_to_end(&mut Vec::new())?;
    fs::remove_file(socket)
}

fn serve(mut stream: &UnixStream, keys: &Keys) -> io::Result<()> {
    let request = read_line(stream)?;
    let function = request[0].as_str().unwrap_or_default();
    let answer: Value = match message(&request[1]).and_then(|message| provide(keys, Scope::NONE, function, &message)) {
        Ok(result) => json!({"result": result.to_lower_hex_string()}),
        Err(error) => json!({"error": error.message}),
    };
    writeln!(stream, "{answer}")
}

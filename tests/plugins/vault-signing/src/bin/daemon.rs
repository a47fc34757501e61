//! A daemon that keeps private keys and signs with them: `vault-daemon SOCKET KEYS`, where KEYS is a file with a key in wallet
//! import format on each line. It prints a line when it listens, and ends when its standard input does.

use std::fs;
use std::io::{self, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::thread;

use outrigger_sdk::bitcoin::NetworkKind;
use outrigger_sdk::params::{decode_hex, encode_hex};
use outrigger_sdk::sign::{KeySource, LocalKeys, WifKey};
use outrigger_sdk::wire::Blob;
use outrigger_vault_signing::wire::{self, Answer, Digest, Request};

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(socket), Some(file)) = (arguments.next(), arguments.next()) else {
        return Err(io::Error::other("usage: vault-daemon SOCKET KEYS"));
    };
    let keys = Arc::new(read_keys(&fs::read_to_string(file)?)?);
    let listener = UnixListener::bind(&socket)?;
    writeln!(io::stdout(), "listening")?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let keys = keys.clone();
            // A client that disconnects does not affect the others.
            thread::spawn(move || drop(serve(&stream, &keys)));
        }
    });
    io::stdin().read_to_end(&mut Vec::new())?;
    fs::remove_file(socket)
}

fn read_keys(text: &str) -> io::Result<LocalKeys> {
    let mut keys = LocalKeys::default();
    for line in text.lines() {
        keys.add(WifKey::parse(line, NetworkKind::Test).map_err(io::Error::other)?);
    }
    Ok(keys)
}

fn serve(mut stream: &UnixStream, keys: &LocalKeys) -> io::Result<()> {
    let request = wire::read(BufReader::new(stream))?;
    let answer = answer(request, keys).unwrap_or_else(|| Answer::Refused("no such request".into()));
    stream.write_all(&wire::line(&answer)?)
}

/// None for a request with invalid hexadecimal.
fn answer(request: Request, keys: &LocalKeys) -> Option<Answer> {
    match request {
        Request::Available(texts) => {
            let public_keys = texts.iter().map(|text| decode_hex(text).map(Blob)).collect::<Option<_>>()?;
            keys.available(public_keys).ok().map(Answer::Available)
        }
        Request::Sign(digests) => {
            let sign = |wanted: &Digest| {
                let (public_key, digest, kind) = wanted.read()?;
                Some(keys.sign_digest(&public_key, digest, &kind).map(|signature| encode_hex(&signature)))
            };
            digests.iter().map(sign).collect::<Option<_>>().map(Answer::Signatures)
        }
    }
}

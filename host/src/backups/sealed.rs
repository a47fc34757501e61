//! Backups that are encrypted with age.

use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _, Write};
use std::path::Path;

use age::x25519::Recipient;
use age::{Decryptor, Encryptor, IdentityFile};
use bitcoin::hashes::{Hash as _, HashEngine as _, sha256};

/// The first bytes of an age file.
const MAGIC: &[u8] = b"age-encryption.org/";

/// Encrypts a whole file to `to`. Returns the hash of the written bytes.
pub fn seal(mut plain: &File, recipient: &Recipient, to: impl Write) -> io::Result<sha256::Hash> {
    plain.rewind()?;
    let encryptor = Encryptor::with_recipients(std::iter::once(recipient as _)).map_err(io::Error::other)?;
    let mut sealed = encryptor.wrap_output(Hashed { to, engine: sha256::HashEngine::default() })?;
    io::copy(&mut plain, &mut sealed)?;
    let mut hashed = sealed.finish()?;
    hashed.flush()?;
    Ok(sha256::Hash::from_engine(hashed.engine))
}

/// The SHA-256 of a file, from its current position.
pub fn hash(mut file: File) -> io::Result<sha256::Hash> {
    let mut hashed = Hashed { to: io::sink(), engine: sha256::HashEngine::default() };
    io::copy(&mut file, &mut hashed)?;
    Ok(sha256::Hash::from_engine(hashed.engine))
}

/// Passes written bytes on, and hashes them.
struct Hashed<W> {
    to: W,
    engine: sha256::HashEngine,
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.engine.input(bytes.get(..written).unwrap_or_default());
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Whether a file is encrypted with age. Rewinds the file.
pub fn is_sealed(mut file: &File) -> io::Result<bool> {
    let mut begin = Vec::new();
    file.rewind()?;
    file.take(MAGIC.len() as u64).read_to_end(&mut begin)?;
    file.rewind()?;
    Ok(begin == MAGIC)
}

/// Decrypts a file with the identities in another file.
///
/// # Errors
/// No identity fits, the file is damaged, or a file cannot be read or written.
pub fn open(sealed: &File, identity: &Path, to: &mut impl Write) -> Result<(), String> {
    let in_identity = |error: &dyn std::fmt::Display| format!("{}: {error}", identity.display());
    let identities = File::open(identity).and_then(|file| IdentityFile::from_buffer(BufReader::new(file)));
    let identities = identities.map_err(|error| in_identity(&error))?.into_identities();
    let identities = identities.map_err(|error| in_identity(&error))?;
    let decryptor = Decryptor::new_buffered(BufReader::new(sealed)).map_err(|error| error.to_string())?;
    let plain = decryptor.decrypt(identities.iter().map(|one| &**one as _)).map_err(|error| error.to_string())?;
    io::copy(&mut { plain }, to).map(drop).map_err(|error| error.to_string())
}

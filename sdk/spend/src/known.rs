//! The scripts and keys behind hashes, where they are known.

use bitcoin::ScriptBuf;
use bitcoin::hashes::{Hash, hash160, sha256};
use outrigger_service::wallet::SolvingData;

/// The redeem script of a P2SH hash, where it is known.
pub fn redeem_script<'a>(hash: &[u8; 20], solving: &'a SolvingData) -> Option<&'a ScriptBuf> {
    solving.scripts.iter().find(|script| hash160::Hash::hash(script.as_bytes()).as_byte_array() == hash)
}

/// The witness script of a P2WSH program, where it is known.
pub fn witness_script<'a>(hash: &[u8; 32], solving: &'a SolvingData) -> Option<&'a ScriptBuf> {
    solving.scripts.iter().find(|script| sha256::Hash::hash(script.as_bytes()).as_byte_array() == hash)
}

/// The public key of a hash, where it is known.
pub fn public_key<'a>(hash: &[u8; 20], solving: &'a SolvingData) -> Option<&'a [u8]> {
    let found = solving.public_keys.iter().find(|key| hash160::Hash::hash(key).as_byte_array() == hash);
    found.map(|key| &key[..])
}

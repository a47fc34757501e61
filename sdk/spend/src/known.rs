//! Looks up scripts and keys by their hashes in solving data.

use bitcoin::ScriptBuf;
use bitcoin::hashes::{Hash, hash160, sha256};
use outrigger_service::wallet::SolvingData;

/// The redeem script with this HASH160.
pub fn redeem_script<'a>(hash: &[u8; 20], solving: &'a SolvingData) -> Option<&'a ScriptBuf> {
    solving.scripts.iter().find(|script| hash160::Hash::hash(script.as_bytes()).as_byte_array() == hash)
}

/// The witness script with this SHA256.
pub fn witness_script<'a>(hash: &[u8; 32], solving: &'a SolvingData) -> Option<&'a ScriptBuf> {
    solving.scripts.iter().find(|script| sha256::Hash::hash(script.as_bytes()).as_byte_array() == hash)
}

/// The public key with this HASH160.
pub fn public_key<'a>(hash: &[u8; 20], solving: &'a SolvingData) -> Option<&'a [u8]> {
    let found = solving.public_keys.iter().find(|key| hash160::Hash::hash(key).as_byte_array() == hash);
    found.map(|key| &key[..])
}

use bitcoin::Transaction;
use bitcoin::hashes::{Hash, HashEngine, sha256d};

/// The beginning of a witness commitment's script (BIP 141): OP_RETURN, a push of 36 bytes, the commitment's header.
pub const COMMITMENT_PREFIX: [u8; 6] = [0x6a, 0x24, 0xaa, 0x21, 0xa9, 0xed];

/// The hash in a coinbase's last witness commitment; `None` without one.
pub fn witness_commitment(coinbase: &Transaction) -> Option<&[u8; 32]> {
    let scripts = coinbase.output.iter().map(|output| output.script_pubkey.as_bytes());
    scripts.rev().find_map(|script| script.strip_prefix(&COMMITMENT_PREFIX)?.first_chunk())
}

/// The Merkle root, and whether a pair of equal hashes occurs.
///
/// An odd last hash is paired with itself, so repeating the end of a list can leave the root unchanged (CVE-2012-2459).
/// Such a list has an equal pair.
pub fn merkle_root(mut hashes: Vec<sha256d::Hash>) -> (sha256d::Hash, bool) {
    let mut mutated = false;
    while hashes.len() > 1 {
        mutated |= hashes.chunks_exact(2).any(|pair| matches!(pair, [one, other] if one == other));
        hashes = hashes.chunks(2).filter_map(|pair| Some(join(pair.first()?, pair.last()?))).collect();
    }
    (hashes.first().copied().unwrap_or(sha256d::Hash::all_zeros()), mutated)
}

fn join(one: &sha256d::Hash, other: &sha256d::Hash) -> sha256d::Hash {
    let mut engine = sha256d::Hash::engine();
    engine.input(one.as_byte_array());
    engine.input(other.as_byte_array());
    sha256d::Hash::from_engine(engine)
}

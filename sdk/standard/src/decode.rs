//! Decodes transactions and blocks from hexadecimal with bitcoind's tolerance.
//!
//! The serialisations with and without witness are ambiguous. The decoder tries both, witness first, and takes the first with
//! sane scripts. Each must consume all bytes. It always reads a block with witness, and ignores bytes after it.

use bitcoin::consensus::encode::{Error, VarInt};
use bitcoin::consensus::{Decodable, serialize};
use bitcoin::io::{Cursor, Read};
use bitcoin::{Block, MerkleBlock, Script, Transaction, TxIn, TxOut, Witness, block};

use super::kind::has_valid_ops;
use super::release::Rules;
use outrigger_script::limits::MAX_SCRIPT_SIZE;
use outrigger_values::params::decode_hex;

/// Decodes a transaction as `decoderawtransaction` does; `None` if invalid.
pub fn transaction_from_hex(hex: &str) -> Option<Transaction> {
    let bytes = decode_hex(hex).filter(|bytes| !bytes.is_empty())?;
    transaction_from_bytes(&bytes)
}

/// Decodes a transaction as `sendrawtransaction` does. An empty input list always announces a witness, so a
/// transaction with outputs but without inputs is `None`.
pub fn sendable_from_hex(hex: &str) -> Option<Transaction> {
    transaction_in_form(&decode_hex(hex)?, Form::Extended)
}

/// [`transaction_from_hex`] from bytes.
pub fn transaction_from_bytes(bytes: &[u8]) -> Option<Transaction> {
    let extended = transaction_in_form(bytes, Form::Extended);
    if extended.as_ref().is_some_and(is_sane) {
        return extended;
    }
    let legacy = transaction_in_form(bytes, Form::Legacy);
    if legacy.as_ref().is_some_and(is_sane) {
        return legacy;
    }
    extended.or(legacy)
}

/// Decodes a transaction as methods with an argument `iswitness` do. Without it, they take the form that makes sense.
pub fn transaction_as(bytes: &[u8], is_witness: Option<bool>) -> Option<Transaction> {
    match is_witness {
        None => transaction_from_bytes(bytes),
        Some(true) => transaction_in_form(bytes, Form::Extended),
        Some(false) => transaction_in_form(bytes, Form::Legacy),
    }
}

/// Decodes a block as `submitblock` does; `None` if invalid. Bytes after it are ignored.
pub fn block_from_bytes(bytes: &[u8]) -> Option<Block> {
    let mut reader = Cursor::new(bytes);
    let header = block::Header::consensus_decode(&mut reader).ok()?;
    let count = VarInt::consensus_decode(&mut reader).ok()?.0;
    let mut txdata = Vec::new();
    for _ in 0..count {
        txdata.push(read(&mut reader, Form::Extended).ok()?);
    }
    Some(Block { header, txdata })
}

/// Decodes gettxoutproof's proof that a block contains transactions (BIP 37). Bytes after it are ignored, as in
/// bitcoind. The error is bitcoind's message for invalid bytes.
pub fn merkle_block_from_bytes(mut bytes: &[u8], rules: &Rules) -> Result<MerkleBlock, String> {
    MerkleBlock::consensus_decode(&mut bytes).map_err(|error| match error {
        Error::NonMinimalVarInt => "non-canonical ReadCompactSize(): iostream error".to_owned(),
        Error::OversizedVectorAllocation { .. } => "ReadCompactSize(): size too large: iostream error".to_owned(),
        _ => format!("{}::read(): end of data: iostream error", rules.byte_reader),
    })
}

/// The serialisation of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// With witness (BIP 144): an empty input list announces flags.
    Extended,
    /// Without witness.
    Legacy,
}

/// Decodes a transaction in a single form.
pub fn transaction_in_form(bytes: &[u8], form: Form) -> Option<Transaction> {
    let mut reader = Cursor::new(bytes);
    let transaction = read(&mut reader, form).ok()?;
    (reader.position() == u64::try_from(bytes.len()).ok()?).then_some(transaction)
}

/// Reads a transaction in one form from the front of `reader`. Fails if the bytes are truncated or invalid.
pub fn read<R: Read>(reader: &mut R, form: Form) -> Result<Transaction, Error> {
    // All bytes are in memory, so the library's limit for streams of unknown length (4 MB) is not needed.
    let version = Decodable::consensus_decode(reader)?;
    let mut input = Vec::<TxIn>::consensus_decode_from_finite_reader(reader)?;
    let mut output = Vec::new();
    let mut flags = 0;
    if input.is_empty() && form == Form::Extended {
        flags = u8::consensus_decode(reader)?;
        if flags != 0 {
            input = Decodable::consensus_decode_from_finite_reader(reader)?;
            output = Decodable::consensus_decode_from_finite_reader(reader)?;
        }
    } else {
        output = Vec::<TxOut>::consensus_decode_from_finite_reader(reader)?;
    }
    if flags & 1 != 0 {
        for input in &mut input {
            input.witness = Witness::consensus_decode(reader)?;
        }
        if input.iter().all(|input| input.witness.is_empty()) {
            return Err(Error::ParseFailed("superfluous witness record"));
        }
    }
    if flags & !1 != 0 {
        return Err(Error::UnsupportedSegwitFlag(flags));
    }
    Ok(Transaction { version, lock_time: Decodable::consensus_decode(reader)?, input, output })
}

/// Whether all scripts of a transaction are sane; a coinbase's scriptSig may be anything.
fn is_sane(transaction: &Transaction) -> bool {
    let inputs_are = transaction.is_coinbase() || transaction.input.iter().all(|input| is_script(&input.script_sig));
    inputs_are && transaction.output.iter().all(|output| is_script(&output.script_pubkey))
}

fn is_script(script: &Script) -> bool {
    script.len() <= MAX_SCRIPT_SIZE && has_valid_ops(script)
}

/// Serialises a transaction, with witness if it has one. Without inputs it has the legacy form, as in bitcoind, since
/// the marker of the other form would make it unreadable.
pub fn transaction_to_bytes(transaction: &Transaction) -> Vec<u8> {
    if !transaction.input.is_empty() {
        return serialize(transaction);
    }
    let (version, lock_time) = (serialize(&transaction.version), serialize(&transaction.lock_time));
    [version, serialize(&transaction.input), serialize(&transaction.output), lock_time].concat()
}

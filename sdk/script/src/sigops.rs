//! Counting the signature operations of a transaction, by the rules that limit those of a block.
//!
//! The cost of a signature operation is four outside of the witness and one within it (BIP141).

use bitcoin::opcodes::all::{OP_CHECKMULTISIG, OP_CHECKMULTISIGVERIFY, OP_CHECKSIG, OP_CHECKSIGVERIFY};
use bitcoin::{OutPoint, Script, Transaction, TxIn, TxOut, Witness};

use super::Flags;
use super::limits::MAX_PUBKEYS_PER_MULTISIG;
use super::parse::{Reader, is_p2sh, is_push_only, small_number, witness_program};
use super::sighash::TxContext;
use super::witness::{KEY_HASH_SIZE, SCRIPT_HASH_SIZE};

/// What a signature operation outside of the witness costs.
pub const WITNESS_SCALE_FACTOR: u64 = 4;

/// The output that an input spends is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the spent output {0} is not known")]
pub struct MissingPrevoutError(pub OutPoint);

/// The signature operations of a script, up to where it can no longer be read.
///
/// A CHECKMULTISIG counts as twenty. With `accurate` it counts as its number of keys where an OP_1 to OP_16 before
/// it gives that: so it is in redeem and witness scripts.
pub fn script_sigop_count(script: &Script, accurate: bool) -> u64 {
    let mut count = 0;
    let mut keys = None;
    for op in Reader::new(script.as_bytes()).map_while(Result::ok) {
        const CHECKSIG: u8 = OP_CHECKSIG.to_u8();
        const CHECKSIGVERIFY: u8 = OP_CHECKSIGVERIFY.to_u8();
        const CHECKMULTISIG: u8 = OP_CHECKMULTISIG.to_u8();
        const CHECKMULTISIGVERIFY: u8 = OP_CHECKMULTISIGVERIFY.to_u8();
        count += match op.opcode {
            CHECKSIG | CHECKSIGVERIFY => 1,
            CHECKMULTISIG | CHECKMULTISIGVERIFY => {
                keys.filter(|_| accurate).map_or(MAX_PUBKEYS_PER_MULTISIG as u64, u64::from)
            }
            _ => 0,
        };
        keys = small_number(op.opcode);
    }
    count
}

/// The signature operations in all scriptSigs and scriptPubKeys of a transaction.
pub fn legacy_sigop_count(tx: &Transaction) -> u64 {
    let inputs = tx.input.iter().map(|input| &input.script_sig);
    let outputs = tx.output.iter().map(|output| &output.script_pubkey);
    inputs.chain(outputs).map(|script| script_sigop_count(script, false)).sum()
}

/// The signature operations of the redeem script of one input; none if it does not spend to a script hash.
pub fn p2sh_sigop_count(script_sig: &Script, script_pubkey: &Script) -> u64 {
    if !is_p2sh(script_pubkey.as_bytes()) || !is_push_only(script_sig.as_bytes()) {
        return 0;
    }
    script_sigop_count(last_push(script_sig), true)
}

/// The signature operations of the witness of one input.
pub fn witness_sigop_count(script_sig: &Script, script_pubkey: &Script, witness: &Witness) -> u64 {
    let redeem_script = if is_p2sh(script_pubkey.as_bytes()) && is_push_only(script_sig.as_bytes()) {
        last_push(script_sig)
    } else {
        script_pubkey
    };
    match witness_program(redeem_script.as_bytes()) {
        Some((0, program)) if program.len() == KEY_HASH_SIZE => 1,
        Some((0, program)) if program.len() == SCRIPT_HASH_SIZE => {
            witness.last().map_or(0, |script| script_sigop_count(Script::from_bytes(script), true))
        }
        _ => 0,
    }
}

/// The signature operation cost of a transaction (BIP141); a block may have 80,000.
///
/// The flags that count are P2SH and WITNESS. `spent` looks up the output of an outpoint; it is not asked for a
/// coinbase transaction.
///
/// # Errors
///
/// [`MissingPrevoutError`] with the first outpoint that `spent` does not know.
pub fn transaction_sigop_cost<'a>(
    tx: &Transaction,
    mut spent: impl FnMut(&OutPoint) -> Option<&'a TxOut>,
    flags: Flags,
) -> Result<u64, MissingPrevoutError> {
    let mut cost = legacy_sigop_count(tx) * WITNESS_SCALE_FACTOR;
    if tx.is_coinbase() {
        return Ok(cost);
    }
    for input in &tx.input {
        let outpoint = input.previous_output;
        let output = spent(&outpoint).ok_or(MissingPrevoutError(outpoint))?;
        cost += input_sigop_cost(input, output, flags);
    }
    Ok(cost)
}

impl TxContext<'_> {
    /// The [signature operation cost](transaction_sigop_cost) of the transaction.
    ///
    /// # Errors
    ///
    /// [`MissingPrevoutError`] with the first outpoint whose output is not known.
    pub fn sigop_cost(&self, flags: Flags) -> Result<u64, MissingPrevoutError> {
        let tx = self.tx();
        let mut cost = legacy_sigop_count(tx) * WITNESS_SCALE_FACTOR;
        if tx.is_coinbase() {
            return Ok(cost);
        }
        for (index, input) in tx.input.iter().enumerate() {
            let output = self.spent_output(index).ok_or(MissingPrevoutError(input.previous_output))?;
            cost += input_sigop_cost(input, output, flags);
        }
        Ok(cost)
    }
}

/// What one input costs beyond its scriptSig.
fn input_sigop_cost(input: &TxIn, spent: &TxOut, flags: Flags) -> u64 {
    let flags = flags.with_implied();
    let mut cost = 0;
    if flags.contains(Flags::P2SH) {
        cost += p2sh_sigop_count(&input.script_sig, &spent.script_pubkey) * WITNESS_SCALE_FACTOR;
    }
    if flags.contains(Flags::WITNESS) {
        cost += witness_sigop_count(&input.script_sig, &spent.script_pubkey, &input.witness);
    }
    cost
}

/// The data of a push-only script's last opcode, as a script. OP_1 to OP_16 carry none.
fn last_push(script: &Script) -> &Script {
    let last = Reader::new(script.as_bytes()).map_while(Result::ok).last();
    Script::from_bytes(last.map_or(&[], |op| op.data))
}

//! Counts signature operations by the consensus rules for the limit per block.
//!
//! A signature operation costs four outside of a witness, and one inside (BIP141).

use bitcoin::opcodes::all::{OP_CHECKMULTISIG, OP_CHECKMULTISIGVERIFY, OP_CHECKSIG, OP_CHECKSIGVERIFY};
use bitcoin::{OutPoint, Script, Transaction, TxIn, TxOut, Witness};

use super::Flags;
use super::limits::MAX_PUBKEYS_PER_MULTISIG;
use super::parse::{Reader, is_push_only, small_number, witness_program};
use super::witness::{KEY_HASH_SIZE, SCRIPT_HASH_SIZE};

/// The cost of a signature operation outside of a witness.
pub const WITNESS_SCALE_FACTOR: u64 = 4;

/// The signature operations of a script, up to a malformed push.
///
/// OP_CHECKMULTISIG counts as 20. With `accurate`, as in redeem and witness scripts, it counts as its number of keys if
/// the opcode before it is OP_1 to OP_16.
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

/// The signature operations of all scriptSigs and scriptPubKeys of a transaction, as consensus counted before BIP16.
pub fn legacy_sigop_count(tx: &Transaction) -> u64 {
    let inputs = tx.input.iter().map(|input| &input.script_sig);
    let outputs = tx.output.iter().map(|output| &output.script_pubkey);
    inputs.chain(outputs).map(|script| script_sigop_count(script, false)).sum()
}

/// The signature operations of an input's redeem script; 0 if it does not spend a P2SH output.
pub fn p2sh_sigop_count(script_sig: &Script, script_pubkey: &Script) -> u64 {
    if !script_pubkey.is_p2sh() || !is_push_only(script_sig.as_bytes()) {
        return 0;
    }
    script_sigop_count(last_push(script_sig), true)
}

/// The signature operations of an input's witness.
pub fn witness_sigop_count(script_sig: &Script, script_pubkey: &Script, witness: &Witness) -> u64 {
    let redeem_script = if script_pubkey.is_p2sh() && is_push_only(script_sig.as_bytes()) {
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

/// The signature operation cost of a transaction (BIP141). A block may have 80,000.
///
/// Only the flags P2SH and WITNESS matter. `spent` returns the output of an outpoint; it is not called for a coinbase.
/// `None` if `spent` does not find an output.
pub fn transaction_sigop_cost<'a>(
    tx: &Transaction,
    mut spent: impl FnMut(&OutPoint) -> Option<&'a TxOut>,
    flags: Flags,
) -> Option<u64> {
    let mut cost = legacy_sigop_count(tx) * WITNESS_SCALE_FACTOR;
    if tx.is_coinbase() {
        return Some(cost);
    }
    for input in &tx.input {
        cost += input_sigop_cost(input, spent(&input.previous_output)?, flags);
    }
    Some(cost)
}

/// The cost of an input beyond its scriptSig.
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

/// The data of a push-only script's last opcode as a script. OP_1 to OP_16 have none.
fn last_push(script: &Script) -> &Script {
    let last = Reader::new(script.as_bytes()).map_while(Result::ok).last();
    Script::from_bytes(last.map_or(&[], |op| op.data))
}

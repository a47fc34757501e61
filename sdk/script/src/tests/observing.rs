//! A wrapped checker observes which signatures verify, as a signer does.

use bitcoin::hashes::Hash;
use bitcoin::opcodes::all::OP_CHECKMULTISIG;
use bitcoin::script::{Builder, PushBytesBuf};
use bitcoin::{Amount, OutPoint, Script, ScriptBuf, Transaction, TxOut, Txid, Witness};
use secp256k1::{Keypair, Message, Secp256k1};

use super::random::Random;
use super::spending_tx;
use crate::{Checker, Flags, ScriptError, SigVersion, TransactionChecker, TxContext, verify_script};

struct Observer<C> {
    inner: C,
    seen: Vec<(Vec<u8>, Vec<u8>)>,
}

impl<C: Checker> Checker for Observer<C> {
    fn check_ecdsa_signature(
        &mut self,
        signature: &[u8],
        pubkey: &[u8],
        script_code: &Script,
        sig_version: SigVersion,
    ) -> bool {
        let valid = self.inner.check_ecdsa_signature(signature, pubkey, script_code, sig_version);
        if valid {
            self.seen.push((signature.to_vec(), pubkey.to_vec()));
        }
        valid
    }
}

fn two_of_three(keys: &[Keypair; 3]) -> ScriptBuf {
    let builder =
        keys.iter().fold(Builder::new().push_int(2), |builder, key| builder.push_key(&key.public_key().into()));
    builder.push_int(3).push_opcode(OP_CHECKMULTISIG).into_script()
}

fn sign(tx: &Transaction, script: &Script, key: &Keypair) -> Vec<u8> {
    let context = TxContext::new(tx, Vec::<TxOut>::new());
    let sighash = context.legacy_sighash(0, script, 1).expect("input 0 is there");
    let message = Message::from_digest(sighash.to_byte_array());
    let mut signature = Secp256k1::new().sign_ecdsa_low_r(&message, &key.secret_key()).serialize_der().to_vec();
    signature.push(1);
    signature
}

#[test]
fn the_signatures_of_an_incomplete_multisig_are_seen() {
    let mut random = Random::new(7);
    let keys = [random.keypair(), random.keypair(), random.keypair()];
    let script = two_of_three(&keys);
    let outpoint = OutPoint::new(Txid::all_zeros(), 0);
    let mut tx = spending_tx(outpoint, Script::new(), Witness::new(), Amount::from_sat(1));
    let signature = sign(&tx, &script, &keys[1]);
    let push = PushBytesBuf::try_from(signature.clone()).expect("a signature is short");
    // One of two signatures is missing.
    tx.input[0].script_sig = Builder::new().push_int(0).push_int(0).push_slice(push).into_script();

    let context = TxContext::new(&tx, vec![TxOut { value: Amount::from_sat(2), script_pubkey: script.clone() }]);
    let mut observer = Observer { inner: TransactionChecker::new(&context, 0), seen: Vec::new() };
    let input = &tx.input[0];
    let result = verify_script(&input.script_sig, &script, &input.witness, Flags::STANDARD, &mut observer);
    assert_eq!(result, Err(ScriptError::SigNullFail));
    assert_eq!(observer.seen, [(signature, keys[1].public_key().serialize().to_vec())]);
}

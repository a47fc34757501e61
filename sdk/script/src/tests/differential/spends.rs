//! Signed spends of all usual output types, and random mutations of them.

use bitcoin::absolute::LockTime;
use bitcoin::hashes::Hash;
use bitcoin::opcodes::all::*;
use bitcoin::script::{Builder, PushBytesBuf};
use bitcoin::taproot::{LeafVersion, TaprootBuilder};
use bitcoin::transaction::Version;
use bitcoin::{
    Amount, OutPoint, PubkeyHash, Script, ScriptBuf, Sequence, TapLeafHash, Transaction, TxIn, TxOut, Txid,
    WPubkeyHash, Witness,
};
use secp256k1::{Keypair, Message, Secp256k1};

use super::{Random, cases, compare, known, random_flags};
use crate::{Flags, TxContext, annex_hash};

const HASH_TYPES: [u8; 10] = [1, 1, 1, 2, 3, 0x81, 0x82, 0x83, 0, 0x43];
const TAPROOT_HASH_TYPES: [u8; 9] = [0, 0, 0, 1, 2, 3, 0x81, 0x82, 0x83];

#[derive(Clone, Copy, Debug)]
enum Wrapping {
    Bare,
    ScriptHash,
    Witness,
    NestedWitness,
}

/// A transaction under construction, and the input to sign.
struct Spend<'r> {
    random: &'r mut Random,
    secp: Secp256k1<secp256k1::All>,
    tx: Transaction,
    spent: Vec<TxOut>,
    input: usize,
}

impl<'r> Spend<'r> {
    fn new(random: &'r mut Random) -> Spend<'r> {
        let inputs = 1 + random.below(4);
        let outputs = 1 + random.below(4);
        let sequences = [0, 1, 5, 0x0040_0005, 0xffff_fffe, u32::MAX];
        let lock_times = [0, 0, 100, 499_999_999, 500_000_000, 1_700_000_000];
        let tx = Transaction {
            version: Version(*random.pick(&[1, 2, 2, 3, -1])),
            lock_time: LockTime::from_consensus(*random.pick(&lock_times)),
            input: (0..inputs).map(|_| random_input(random, &sequences)).collect(),
            output: (0..outputs).map(|_| random_output(random)).collect(),
        };
        let spent = (0..inputs).map(|_| random_output(random)).collect();
        let input = random.below(inputs);
        Spend { random, secp: Secp256k1::new(), tx, spent, input }
    }

    /// Spends a script with keys. The signatures are in the order of the keys.
    fn sign_keys(&mut self) {
        let key = self.random.keypair();
        match self.random.below(6) {
            0 => {
                let script = ScriptBuf::new_p2pkh(&PubkeyHash::hash(&self.serialized(&key)));
                let pubkey = self.serialized_like(&key, &script);
                self.sign_script(script, &[key], &[pubkey]);
            }
            1 => {
                let hash = WPubkeyHash::hash(&key.public_key().serialize());
                self.sign_key_hash(hash, &key);
            }
            2 => {
                let mut builder = Builder::new();
                if self.random.one_in(2) {
                    builder = builder.push_opcode(OP_CODESEPARATOR);
                }
                let script = builder.push_slice(push(self.serialized(&key))).push_opcode(OP_CHECKSIG).into_script();
                self.sign_script(script, &[key], &[]);
            }
            3 => self.sign_locked(&key),
            4 => self.sign_embedded(&key),
            _ => self.sign_multisig(),
        }
    }

    /// A locktime check before a key.
    fn sign_locked(&mut self, key: &Keypair) {
        let operand = *self.random.pick(&[-1, 0, 1, 5, 6, 100, 101, 500_000_000, 1 << 22 | 5, 1 << 31, 1 << 32]);
        let opcode = *self.random.pick(&[OP_CLTV, OP_CSV]);
        let script = Builder::new()
            .push_int(operand)
            .push_opcode(opcode)
            .push_opcode(OP_DROP)
            .push_slice(push(self.serialized(key)))
            .push_opcode(OP_CHECKSIG)
            .into_script();
        self.sign_script(script, &[*key], &[]);
    }

    /// A script that contains its own signature, which FindAndDelete removes before hashing.
    fn sign_embedded(&mut self, key: &Keypair) {
        let copies = 1 + self.random.below(3);
        let separated = self.random.one_in(3);
        let mut rest = Builder::new();
        for _ in 0..copies {
            rest = rest.push_opcode(OP_DROP);
        }
        if separated {
            rest = rest.push_opcode(OP_CODESEPARATOR);
        }
        let rest = rest.push_slice(push(self.serialized(key))).push_opcode(OP_CHECKSIG).into_script();
        let code = if separated { Script::from_bytes(&rest.as_bytes()[copies + 1..]) } else { &rest };
        let signature = self.sign_ecdsa(code, key, false);
        let pushed = Builder::new().push_slice(push(signature)).into_script();
        let script = [pushed.as_bytes().repeat(copies), rest.to_bytes()].concat();
        self.spent[self.input].script_pubkey = ScriptBuf::from_bytes(script);
        self.tx.input[self.input].script_sig = pushed;
    }

    fn sign_multisig(&mut self) {
        let count = 1 + self.random.below(4);
        let required = 1 + self.random.below(count);
        let keys: Vec<_> = (0..count).map(|_| self.random.keypair()).collect();
        let mut builder = Builder::new().push_int(required as i64);
        for key in &keys {
            builder = builder.push_slice(push(self.serialized(key)));
        }
        let script = builder.push_int(count as i64).push_opcode(OP_CHECKMULTISIG).into_script();
        // Random signers, mostly enough and in order.
        let mut signers = keys;
        while signers.len() > required {
            let index = self.random.below(signers.len());
            signers.remove(index);
        }
        if self.random.one_in(8) {
            signers.reverse();
        }
        self.spend_wrapped(script, &signers, &[], true);
    }

    fn sign_script(&mut self, script: ScriptBuf, signers: &[Keypair], extra: &[Vec<u8>]) {
        self.spend_wrapped(script, signers, extra, false);
    }

    /// Wraps a script in an output. The spend has the signatures, then `extra`, then the script if needed.
    fn spend_wrapped(&mut self, script: ScriptBuf, signers: &[Keypair], extra: &[Vec<u8>], dummy: bool) {
        let wrappings = [Wrapping::Bare, Wrapping::ScriptHash, Wrapping::Witness, Wrapping::NestedWitness];
        let wrapping = *self.random.pick(&wrappings);
        let witness = matches!(wrapping, Wrapping::Witness | Wrapping::NestedWitness);
        // The scriptCode begins after an executed OP_CODESEPARATOR.
        let code = script.as_bytes().strip_prefix(&[OP_CODESEPARATOR.to_u8()]).unwrap_or(script.as_bytes());
        let code = Script::from_bytes(code).to_owned();
        let mut elements = vec![Vec::new(); usize::from(dummy)];
        elements.extend(signers.iter().map(|key| self.sign_ecdsa(&code, key, witness)).collect::<Vec<_>>());
        elements.extend(extra.iter().cloned());

        let program = script.to_p2wsh();
        let (script_pubkey, redeem) = match wrapping {
            Wrapping::Bare => (script.clone(), None),
            Wrapping::ScriptHash => (script.to_p2sh(), Some(script.clone())),
            Wrapping::Witness => (program, None),
            Wrapping::NestedWitness => (program.to_p2sh(), Some(program)),
        };
        self.spent[self.input].script_pubkey = script_pubkey;
        let mut script_sig = Builder::new();
        if witness {
            elements.push(script.into_bytes());
            self.tx.input[self.input].witness = Witness::from_slice(&elements);
        } else {
            for element in elements {
                script_sig = script_sig.push_slice(push(element));
            }
        }
        if let Some(redeem) = redeem {
            script_sig = script_sig.push_slice(push(redeem.into_bytes()));
        }
        self.tx.input[self.input].script_sig = script_sig.into_script();
    }

    fn sign_key_hash(&mut self, hash: WPubkeyHash, key: &Keypair) {
        let program = ScriptBuf::new_p2wpkh(&hash);
        let code = ScriptBuf::new_p2pkh(&PubkeyHash::from_byte_array(hash.to_byte_array()));
        let signature = self.sign_ecdsa(&code, key, true);
        let pubkey = key.public_key().serialize().to_vec();
        self.tx.input[self.input].witness = Witness::from_slice(&[signature, pubkey]);
        if self.random.one_in(2) {
            self.spent[self.input].script_pubkey = program;
        } else {
            self.spent[self.input].script_pubkey = program.to_p2sh();
            let script_sig = Builder::new().push_slice(push(program.into_bytes())).into_script();
            self.tx.input[self.input].script_sig = script_sig;
        }
    }

    fn sign_taproot(&mut self) {
        let (internal, key) = (self.random.keypair(), self.random.keypair());
        let annex = self.random.one_in(3).then(|| [vec![0x50], self.random.bytes(3)].concat());
        let leaf = self.tapscript(&key);
        let info = TaprootBuilder::new()
            .add_leaf(1, leaf.clone())
            .and_then(|builder| builder.add_leaf(1, ScriptBuf::new()))
            .expect("a full tree")
            .finalize(&self.secp, internal.x_only_public_key().0)
            .expect("a complete tree");
        self.spent[self.input].script_pubkey = ScriptBuf::new_p2tr_tweaked(info.output_key());

        let mut witness = Vec::new();
        if self.random.one_in(2) {
            let tweak = secp256k1::Scalar::from_be_bytes(info.tap_tweak().to_byte_array()).expect("a scalar");
            let output_key = internal.add_xonly_tweak(&self.secp, &tweak).expect("a tweaked key");
            witness.push(self.sign_schnorr(&output_key, annex.as_deref(), None));
        } else {
            let leaf_hash = TapLeafHash::from_script(&leaf, LeafVersion::TapScript);
            let signature = self.sign_schnorr(&key, annex.as_deref(), Some((leaf_hash, u32::MAX)));
            let second = if self.random.one_in(2) { Vec::new() } else { signature.clone() };
            witness.extend([second, signature, leaf.to_bytes()]);
            let control = info.control_block(&(leaf, LeafVersion::TapScript));
            witness.push(control.expect("the leaf is in the tree").serialize());
        }
        witness.extend(annex);
        self.tx.input[self.input].witness = Witness::from_slice(&witness);
    }

    /// A script with two signatures of the same key. The lower one may be empty.
    fn tapscript(&mut self, key: &Keypair) -> ScriptBuf {
        let key = key.x_only_public_key().0;
        let first = Builder::new().push_x_only_key(&key);
        match self.random.below(3) {
            0 => first.push_opcode(OP_CHECKSIGVERIFY).push_opcode(OP_DROP).push_int(1).into_script(),
            1 => first.push_opcode(OP_CHECKSIG).push_opcode(OP_NIP).into_script(),
            _ => {
                let both = first.push_opcode(OP_CHECKSIG).push_x_only_key(&key).push_opcode(OP_CHECKSIGADD);
                both.push_int(1).push_opcode(OP_GREATERTHANOREQUAL).into_script()
            }
        }
    }

    fn sign_ecdsa(&mut self, code: &Script, key: &Keypair, witness: bool) -> Vec<u8> {
        let hash_type = *self.random.pick(&HASH_TYPES);
        let context = TxContext::new(&self.tx, known(&self.spent));
        let digest = if witness {
            let amount = self.spent[self.input].value;
            context.segwit_v0_sighash(self.input, code, amount, hash_type.into()).map(|hash| hash.to_byte_array())
        } else {
            context.legacy_sighash(self.input, code, hash_type.into()).map(|hash| hash.to_byte_array())
        };
        let message = Message::from_digest(digest.expect("the input is there"));
        let signature = self.secp.sign_ecdsa(&message, &key.secret_key());
        [signature.serialize_der().to_vec(), vec![hash_type]].concat()
    }

    fn sign_schnorr(&mut self, key: &Keypair, annex: Option<&[u8]>, leaf: Option<(TapLeafHash, u32)>) -> Vec<u8> {
        let hash_type = *self.random.pick(&TAPROOT_HASH_TYPES);
        let context = TxContext::new(&self.tx, known(&self.spent));
        let Some(sighash) = context.taproot_sighash(self.input, hash_type, annex.map(annex_hash), leaf) else {
            // Type SINGLE without a matching output.
            return self.random.bytes(65);
        };
        let message = Message::from_digest(sighash.to_byte_array());
        let mut signature = self.secp.sign_schnorr_no_aux_rand(&message, key).serialize().to_vec();
        if hash_type != 0 {
            signature.push(hash_type);
        }
        signature
    }

    /// A public key: compressed, uncompressed or hybrid.
    fn serialized(&mut self, key: &Keypair) -> Vec<u8> {
        let mut uncompressed = key.public_key().serialize_uncompressed().to_vec();
        match self.random.below(6) {
            0 => uncompressed,
            1 => {
                // The hybrid prefix includes the parity.
                uncompressed[0] = 6 | (uncompressed[64] & 1);
                uncompressed
            }
            _ => key.public_key().serialize().to_vec(),
        }
    }

    /// The form of the public key that a P2PKH script commits to.
    fn serialized_like(&self, key: &Keypair, script: &Script) -> Vec<u8> {
        let mut forms = vec![key.public_key().serialize().to_vec(), key.public_key().serialize_uncompressed().to_vec()];
        let mut hybrid = forms[1].clone();
        hybrid[0] = 6 | (hybrid[64] & 1);
        forms.push(hybrid);
        let wanted = forms.into_iter().find(|form| ScriptBuf::new_p2pkh(&PubkeyHash::hash(form)) == *script);
        wanted.expect("the script is for one of the forms")
    }

    /// A random mutation, which may or may not invalidate the spend.
    fn mutate(&mut self) {
        let index = self.input;
        match self.random.below(9) {
            0 => self.tx.input[index].sequence = Sequence(self.random.next() as u32),
            1 => self.tx.lock_time = LockTime::from_consensus(self.random.next() as u32),
            2 => self.tx.version = Version(self.random.next() as i32),
            3 => {
                let output = self.random.below(self.tx.output.len());
                self.tx.output[output] = random_output(self.random);
            }
            4 => {
                let input = self.random.below(self.tx.input.len());
                self.tx.input[input].sequence = Sequence(self.random.next() as u32);
            }
            5 => {
                let input = self.random.below(self.spent.len());
                self.spent[input].value += Amount::ONE_SAT;
            }
            6 => {
                let mut script = self.spent[index].script_pubkey.to_bytes();
                mutate_bytes(self.random, &mut script);
                self.spent[index].script_pubkey = ScriptBuf::from_bytes(script);
            }
            7 => {
                let mut script = self.tx.input[index].script_sig.to_bytes();
                mutate_bytes(self.random, &mut script);
                self.tx.input[index].script_sig = ScriptBuf::from_bytes(script);
            }
            _ => self.mutate_witness(),
        }
    }

    fn mutate_witness(&mut self) {
        let mut elements = self.tx.input[self.input].witness.to_vec();
        if elements.is_empty() || self.random.one_in(6) {
            let length = self.random.below(4);
            elements.push(self.random.bytes(length));
        } else if self.random.one_in(6) {
            let index = self.random.below(elements.len());
            elements.remove(index);
        } else {
            let index = self.random.below(elements.len());
            mutate_bytes(self.random, &mut elements[index]);
        }
        self.tx.input[self.input].witness = Witness::from_slice(&elements);
    }
}

fn random_input(random: &mut Random, sequences: &[u32]) -> TxIn {
    let txid = Txid::from_slice(&random.bytes(32)).expect("32 bytes");
    TxIn {
        previous_output: OutPoint::new(txid, random.below(5) as u32),
        script_sig: ScriptBuf::new(),
        sequence: Sequence(*random.pick(sequences)),
        witness: Witness::new(),
    }
}

fn random_output(random: &mut Random) -> TxOut {
    let length = random.below(40);
    let script_pubkey = ScriptBuf::from_bytes(random.bytes(length));
    TxOut { value: Amount::from_sat(random.next() >> 16), script_pubkey }
}

fn mutate_bytes(random: &mut Random, bytes: &mut Vec<u8>) {
    if bytes.is_empty() || random.one_in(5) {
        let index = random.below(bytes.len() + 1);
        bytes.insert(index, random.next() as u8);
    } else if random.one_in(5) {
        let index = random.below(bytes.len());
        bytes.remove(index);
    } else {
        // The last byte is a signature's hash type. Mutate it more often.
        let index = if random.one_in(4) { bytes.len() - 1 } else { random.below(bytes.len()) };
        bytes[index] ^= 1 << random.below(8);
    }
}

fn push(bytes: Vec<u8>) -> PushBytesBuf {
    PushBytesBuf::try_from(bytes).expect("far below the limit of a push")
}

/// A transaction, its spent outputs, the input to verify, and the flags.
pub(in super::super) fn random_spend(case: u64) -> (Transaction, Vec<TxOut>, usize, Flags) {
    let mut random = Random::new(case);
    let flags = random_flags(&mut random);
    let mut spend = Spend::new(&mut random);
    if spend.random.one_in(4) {
        spend.sign_taproot();
    } else {
        spend.sign_keys();
    }
    for _ in 0..spend.random.below(3) {
        spend.mutate();
    }
    (spend.tx, spend.spent, spend.input, flags)
}

#[test]
fn signed_spends_and_their_mutations_have_the_same_verdict() {
    let mut accepted = 0;
    for case in 0..cases() {
        let (tx, spent, input, flags) = random_spend(case);
        accepted += u64::from(compare(&tx, &spent, input, flags, case).is_ok());
    }
    println!("signed spends: {} cases, {accepted} accepted", cases());
    assert!(accepted > cases() / 4 && accepted < cases() * 3 / 4, "{accepted} of {} accepted", cases());
}

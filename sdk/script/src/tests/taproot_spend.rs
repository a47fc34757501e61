//! Examples of taproot spends: key path, script path, and each rule of tapscript with its error.

use bitcoin::absolute::LockTime;
use bitcoin::hashes::Hash;
use bitcoin::opcodes::all::*;
use bitcoin::script::Builder;
use bitcoin::sighash::TapSighashType;
use bitcoin::taproot::{LeafVersion, TaprootBuilder, TaprootSpendInfo};
use bitcoin::transaction::Version;
use bitcoin::{Amount, OutPoint, ScriptBuf, Sequence, TapLeafHash, Transaction, TxIn, TxOut, Txid, Witness};
use secp256k1::{Keypair, Message, Secp256k1};

use super::known;
use super::random::Random;
use crate::{Flags, ScriptError, TxContext, annex_hash, verify_input};

/// An undefined leaf version.
const FUTURE_VERSION: u8 = 0xc2;

/// An output with a script tree of four leaves; a spend uses the first.
struct Fixture {
    key: Keypair,
    info: TaprootSpendInfo,
    leaf: ScriptBuf,
    version: LeafVersion,
    tx: Transaction,
    spent: Vec<TxOut>,
}

impl Fixture {
    fn new(leaf: impl FnOnce(&Keypair) -> ScriptBuf) -> Fixture {
        Fixture::with_version(LeafVersion::TapScript, leaf)
    }

    fn with_version(version: LeafVersion, leaf: impl FnOnce(&Keypair) -> ScriptBuf) -> Fixture {
        let mut random = Random::new(341);
        let (internal, key) = (random.keypair(), random.keypair());
        let leaf = leaf(&key);
        let other = |number| Builder::new().push_int(number).into_script();
        let info = TaprootBuilder::new()
            .add_leaf_with_ver(2, leaf.clone(), version)
            .and_then(|builder| builder.add_leaf(2, other(2)))
            .and_then(|builder| builder.add_leaf(2, other(3)))
            .and_then(|builder| builder.add_leaf(2, other(4)))
            .expect("a full tree")
            .finalize(&Secp256k1::new(), internal.x_only_public_key().0)
            .expect("a complete tree");
        let script_pubkey = ScriptBuf::new_p2tr_tweaked(info.output_key());
        let input = |vout| TxIn {
            previous_output: OutPoint::new(Txid::from_byte_array([9; 32]), vout),
            script_sig: ScriptBuf::new(),
            sequence: Sequence::from_consensus(vout),
            witness: Witness::new(),
        };
        let output = |sat| TxOut { value: Amount::from_sat(sat), script_pubkey: other(1) };
        let tx = Transaction {
            version: Version::TWO,
            lock_time: LockTime::ZERO,
            input: vec![input(3), input(5)],
            output: vec![output(1_000), output(2_000)],
        };
        let spent = vec![output(10_000), TxOut { value: Amount::from_sat(20_000), script_pubkey }];
        Fixture { key, info, leaf, version, tx, spent }
    }

    fn control(&self) -> Vec<u8> {
        let leaf = (self.leaf.clone(), self.version);
        self.info.control_block(&leaf).expect("the leaf is in the tree").serialize()
    }

    /// Signs the leaf.
    fn sign(&self, hash_type: TapSighashType, annex: Option<&[u8]>, code_separator: u32) -> Vec<u8> {
        let leaf_hash = TapLeafHash::from_script(&self.leaf, self.version);
        let context = TxContext::new(&self.tx, known(&self.spent));
        let leaf = Some((leaf_hash, code_separator));
        let sighash = context.taproot_sighash(1, hash_type as u8, annex.map(annex_hash), leaf).expect("a hash");
        let message = Message::from_digest(sighash.to_byte_array());
        let mut signature = Secp256k1::new().sign_schnorr_no_aux_rand(&message, &self.key).serialize().to_vec();
        if hash_type != TapSighashType::Default {
            signature.push(hash_type as u8);
        }
        signature
    }

    fn plain_signature(&self) -> Vec<u8> {
        self.sign(TapSighashType::Default, None, u32::MAX)
    }

    /// Verifies the input with a witness of `inputs`, the leaf, its control block, and `annex`.
    fn verify(&self, inputs: &[&[u8]], annex: Option<&[u8]>, flags: Flags) -> Result<(), ScriptError> {
        let mut witness: Vec<&[u8]> = inputs.to_vec();
        let control = self.control();
        witness.extend([self.leaf.as_bytes(), &control]);
        witness.extend(annex);
        self.verify_witness(&witness, flags)
    }

    fn verify_witness(&self, witness: &[&[u8]], flags: Flags) -> Result<(), ScriptError> {
        let mut tx = self.tx.clone();
        tx.input[1].witness = Witness::from_slice(witness);
        verify_input(&TxContext::new(&tx, known(&self.spent)), 1, flags)
    }
}

fn check_sig(key: &Keypair) -> ScriptBuf {
    Builder::new().push_x_only_key(&key.x_only_public_key().0).push_opcode(OP_CHECKSIG).into_script()
}

fn script(opcodes: &[bitcoin::opcodes::Opcode]) -> ScriptBuf {
    opcodes.iter().fold(Builder::new(), |builder, opcode| builder.push_opcode(*opcode)).into_script()
}

#[test]
fn every_hash_type_signs() {
    use TapSighashType::*;
    let fixture = Fixture::new(check_sig);
    for hash_type in [Default, All, None, Single, AllPlusAnyoneCanPay, NonePlusAnyoneCanPay, SinglePlusAnyoneCanPay] {
        for annex in [Option::None, Some(&[0x50, 1, 2][..])] {
            let signature = fixture.sign(hash_type, annex, u32::MAX);
            assert_eq!(fixture.verify(&[&signature], annex, Flags::STANDARD), Ok(()), "{hash_type}");
            // The signature commits to the annex.
            assert_eq!(fixture.verify(&[&signature], Some(&[0x50]), Flags::STANDARD), Err(ScriptError::SchnorrSig));
        }
    }
}

#[test]
fn a_single_element_is_no_annex() {
    let fixture = Fixture::new(check_sig);
    let verify = |witness: &[&[u8]]| fixture.verify_witness(witness, Flags::CONSENSUS);
    assert_eq!(verify(&[&[0x50]]), Err(ScriptError::SchnorrSigSize));
    assert_eq!(verify(&[&[], &[0x50]]), Err(ScriptError::SchnorrSigSize));
    // Only the last element can be the annex, and not if it is empty.
    assert_eq!(verify(&[&[0x50], &[0x51]]), Err(ScriptError::TaprootWrongControlSize));
    assert_eq!(verify(&[&[0x50], &[]]), Err(ScriptError::TaprootWrongControlSize));
}

#[test]
fn bad_signatures_fail_the_script() {
    let fixture = Fixture::new(check_sig);
    let good = fixture.plain_signature();
    let mut wrong = good.clone();
    wrong[63] ^= 1;
    let with_type = |hash_type: u8| [good.clone(), vec![hash_type]].concat();
    for (signature, error) in [
        (wrong, ScriptError::SchnorrSig),
        (with_type(0), ScriptError::SchnorrSigHashtype),
        (with_type(4), ScriptError::SchnorrSigHashtype),
        (with_type(0x80), ScriptError::SchnorrSigHashtype),
        (with_type(1), ScriptError::SchnorrSig),
        (good[..63].to_vec(), ScriptError::SchnorrSigSize),
        (vec![0; 66], ScriptError::SchnorrSigSize),
        (vec![], ScriptError::EvalFalse),
    ] {
        assert_eq!(fixture.verify(&[&signature], None, Flags::CONSENSUS), Err(error), "{signature:?}");
    }
}

#[test]
fn single_needs_an_output_of_its_index() {
    let mut fixture = Fixture::new(check_sig);
    let signature = fixture.sign(TapSighashType::Single, None, u32::MAX);
    fixture.tx.output.pop();
    assert_eq!(fixture.verify(&[&signature], None, Flags::CONSENSUS), Err(ScriptError::SchnorrSigHashtype));
}

#[test]
fn control_blocks_commit_to_the_leaf() {
    let fixture = Fixture::new(check_sig);
    let signature = fixture.plain_signature();
    let control = fixture.control();
    let verify =
        |control: &[u8]| fixture.verify_witness(&[&signature, fixture.leaf.as_bytes(), control], Flags::STANDARD);
    assert_eq!(verify(&control), Ok(()));
    for index in [0, 1, 33, control.len() - 1] {
        let mut changed = control.clone();
        changed[index] ^= 1;
        assert_eq!(verify(&changed), Err(ScriptError::WitnessProgramMismatch), "byte {index}");
    }
    let too_long = [vec![0xc0; 33], vec![0; 129 * 32]].concat();
    for wrong in [&[][..], &control[..32], &control[..control.len() - 1], &too_long] {
        assert_eq!(verify(wrong), Err(ScriptError::TaprootWrongControlSize), "{} bytes", wrong.len());
    }
    assert_eq!(verify(&too_long[..33 + 128 * 32]), Err(ScriptError::WitnessProgramMismatch));
}

#[test]
fn versions_without_a_meaning_are_free() {
    let version = LeafVersion::from_consensus(FUTURE_VERSION).expect("a leaf version");
    let fixture = Fixture::with_version(version, |_| script(&[OP_RETURN]));
    assert_eq!(fixture.verify(&[], None, Flags::CONSENSUS), Ok(()));
    let error = ScriptError::DiscourageUpgradableTaprootVersion;
    assert_eq!(fixture.verify(&[], None, Flags::STANDARD), Err(error));
    // Without the taproot rules any witness is valid.
    assert_eq!(fixture.verify_witness(&[&[1]], Flags::CONSENSUS.difference(Flags::TAPROOT)), Ok(()));
    assert_eq!(fixture.verify_witness(&[], Flags::CONSENSUS), Err(ScriptError::WitnessProgramWitnessEmpty));
}

#[test]
fn check_sig_add_counts() {
    let fixture = Fixture::new(|key| {
        let key = key.x_only_public_key().0;
        Builder::new()
            .push_x_only_key(&key)
            .push_opcode(OP_CHECKSIG)
            .push_x_only_key(&key)
            .push_opcode(OP_CHECKSIGADD)
            .push_x_only_key(&key)
            .push_opcode(OP_CHECKSIGADD)
            .push_int(2)
            .push_opcode(OP_NUMEQUAL)
            .into_script()
    });
    let signature = fixture.plain_signature();
    for (inputs, expected) in [
        ([&signature[..], &[], &signature], Ok(())),
        ([&[], &signature, &signature], Ok(())),
        ([&signature, &signature, &signature], Err(ScriptError::EvalFalse)),
        ([&signature, &[], &[]], Err(ScriptError::EvalFalse)),
        ([&[], &[1], &signature], Err(ScriptError::SchnorrSigSize)),
    ] {
        assert_eq!(fixture.verify(&inputs, None, Flags::STANDARD), expected);
    }
    assert_eq!(fixture.verify(&[&signature], None, Flags::STANDARD), Err(ScriptError::InvalidStackOperation));
}

#[test]
fn code_separators_are_signed() {
    let fixture = Fixture::new(|key| {
        let key = key.x_only_public_key().0;
        Builder::new()
            .push_opcode(OP_NOP)
            .push_opcode(OP_CODESEPARATOR)
            .push_x_only_key(&key)
            .push_opcode(OP_CHECKSIG)
            .into_script()
    });
    let signature = fixture.sign(TapSighashType::Default, None, 1);
    assert_eq!(fixture.verify(&[&signature], None, Flags::STANDARD), Ok(()));
    let signature = fixture.plain_signature();
    assert_eq!(fixture.verify(&[&signature], None, Flags::STANDARD), Err(ScriptError::SchnorrSig));
}

#[test]
fn keys_of_other_types_accept_everything() {
    let fixture = Fixture::new(|_| Builder::new().push_slice([7; 33]).push_opcode(OP_CHECKSIG).into_script());
    assert_eq!(fixture.verify(&[&[1]], None, Flags::CONSENSUS), Ok(()));
    assert_eq!(fixture.verify(&[&[]], None, Flags::CONSENSUS), Err(ScriptError::EvalFalse));
    let error = ScriptError::DiscourageUpgradablePubkeyType;
    assert_eq!(fixture.verify(&[&[1]], None, Flags::STANDARD), Err(error));
    let fixture = Fixture::new(|_| Builder::new().push_int(0).push_opcode(OP_CHECKSIG).into_script());
    assert_eq!(fixture.verify(&[&[]], None, Flags::CONSENSUS), Err(ScriptError::PubkeyType));
}

#[test]
fn signatures_cost_weight() {
    // Four checks of a non-empty signature cost 50 each; NOPs enlarge the script.
    let checks = |padding| {
        let check = [OP_2DUP, OP_CHECKSIGVERIFY];
        script(&[&check.repeat(4)[..], &[OP_NOP].repeat(padding), &[OP_2DROP, OP_PUSHNUM_1]].concat())
    };
    let run = |padding, annex| Fixture::new(|_| checks(padding)).verify(&[&[1], &[1]], annex, Flags::CONSENSUS);
    // The allowance of 50, then the witness: a count, two elements, the script, the control block.
    let without_padding = 50 + 1 + 2 * 2 + (1 + 4 * 2 + 2) + (1 + 33 + 2 * 32);
    let padding = 4 * 50 - without_padding;
    assert_eq!(run(padding, None), Ok(()));
    assert_eq!(run(padding - 1, None), Err(ScriptError::TapscriptValidationWeight));
    // The annex counts, too.
    assert_eq!(run(padding - 2, Some(&[0x50])), Ok(()));
}

#[test]
fn op_success_overrides_everything() {
    let unbalanced = script(&[OP_ENDIF, OP_RESERVED, OP_IF]);
    let fixture = Fixture::new(|_| unbalanced);
    let large = [0; 521];
    assert_eq!(fixture.verify(&[&large], None, Flags::CONSENSUS), Ok(()));
    let error = ScriptError::DiscourageOpSuccess;
    assert_eq!(fixture.verify(&[], None, Flags::STANDARD), Err(error));
    // A malformed push before the OP_SUCCESSx fails first.
    let fixture = Fixture::new(|_| ScriptBuf::from_bytes(vec![0x02, 0x50]));
    assert_eq!(fixture.verify(&[], None, Flags::CONSENSUS), Err(ScriptError::BadOpcode));
}

#[test]
fn tapscript_has_rules_of_its_own() {
    let run = |leaf: ScriptBuf, inputs: &[&[u8]]| Fixture::new(|_| leaf).verify(inputs, None, Flags::CONSENSUS);
    let conditional = script(&[OP_IF, OP_PUSHNUM_1, OP_ELSE, OP_PUSHNUM_1, OP_ENDIF]);
    assert_eq!(run(conditional.clone(), &[&[1]]), Ok(()));
    assert_eq!(run(conditional.clone(), &[&[]]), Ok(()));
    assert_eq!(run(conditional.clone(), &[&[2]]), Err(ScriptError::TapscriptMinimalIf));
    assert_eq!(run(conditional, &[&[1, 0]]), Err(ScriptError::TapscriptMinimalIf));

    assert_eq!(run(script(&[OP_CHECKMULTISIG]), &[]), Err(ScriptError::TapscriptCheckMultisig));
    assert_eq!(run(script(&[OP_PUSHNUM_1, OP_PUSHNUM_1]), &[]), Err(ScriptError::CleanStack));
    assert_eq!(run(script(&[OP_NOP]), &[&[0; 521]]), Err(ScriptError::PushSize));
    // The initial stack is too large, even if the script would drop elements.
    let drops = |count| script(&[OP_DROP].repeat(count));
    assert_eq!(run(drops(1000), &[&[1][..]; 1001]), Err(ScriptError::StackSize));
    assert_eq!(run(drops(999), &[&[1][..]; 1000]), Ok(()));

    // The limits on opcodes and script size do not apply.
    let many = [vec![OP_NOP.to_u8(); 20_000], vec![OP_PUSHNUM_1.to_u8()]].concat();
    assert_eq!(run(ScriptBuf::from_bytes(many), &[]), Ok(()));
}

#[test]
fn every_spent_output_must_be_known() {
    let fixture = Fixture::new(check_sig);
    let signature = fixture.plain_signature();
    let control = fixture.control();
    let mut tx = fixture.tx.clone();
    tx.input[1].witness = Witness::from_slice(&[&signature, fixture.leaf.as_bytes(), &control]);
    let spent = vec![None, Some(fixture.spent[1].clone())];
    let context = TxContext::new(&tx, spent);
    assert_eq!(verify_input(&context, 1, Flags::STANDARD), Err(ScriptError::SchnorrSigHashtype));
    assert_eq!(verify_input(&context, 0, Flags::STANDARD), Err(ScriptError::UnknownError));
    assert_eq!(verify_input(&context, 2, Flags::STANDARD), Err(ScriptError::UnknownError));
}

//! Estimates the size of signed inputs: scriptSig and witness, with Bitcoin Core's arithmetic.
//!
//! A coin that lacks the needed solving data has no size, and coin selection skips it.

use bitcoin::secp256k1::constants::PUBLIC_KEY_SIZE;
use bitcoin::transaction::{InputWeightPrediction, predict_weight};
use bitcoin::{Script, TxOut, VarInt, Weight};
use outrigger_service::wallet::{SolvingData, TapLeaf, WalletInfo};
use outrigger_standard::{ScriptKind, classify};
use outrigger_values::amount::Saturating;

use crate::known::{public_key, redeem_script, witness_script};
use crate::miniscript_size::{self, Satisfaction};

/// The length of an ECDSA signature with its sighash type, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signatures {
    /// Low R and low S, as the host's signer makes it. One in 256 is a byte shorter.
    LowR = 71,
    /// Low S only, as other signers may make it.
    AnyR = 72,
}

impl Signatures {
    /// The length for the wallet's signer: the host, or an external signer if the wallet has no private keys.
    pub fn of(wallet: &WalletInfo) -> Self {
        if wallet.private_keys_enabled { Self::LowR } else { Self::AnyR }
    }
}

/// A Schnorr signature with a sighash type, in bytes: the type is not known yet, so it is counted.
const SCHNORR_LEN: usize = 65;
/// The weight of an input's outpoint and sequence.
const OUTPOINT_AND_SEQUENCE: Weight = Weight::from_non_witness_data_size(36 + 4);
const WPKH_SCRIPT_LEN: usize = 22;

/// The size of a signed input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InputSize {
    /// The weight of the input with its witness, if any.
    weight: Weight,
    /// Whether it has a witness.
    pub has_witness: bool,
    /// Whether `weight` leaves out the byte of an empty witness, which a segwit transaction adds.
    lacks_witness: bool,
}

impl InputSize {
    /// The size from the lengths of the scriptSig and of the witness elements, in bytes.
    pub fn new(script_sig: usize, witness: &[usize]) -> Self {
        let prediction = InputWeightPrediction::new(script_sig, witness);
        let weight = prediction.weight().saturating_add(OUTPOINT_AND_SEQUENCE);
        Self { weight, has_witness: !witness.is_empty(), lacks_witness: witness.is_empty() }
    }

    /// The size from the length of the scriptSig and a non-empty witness.
    fn of_witness(script_sig: usize, witness: Satisfaction) -> Self {
        let plain = InputWeightPrediction::new(script_sig, &[] as &[usize]).weight();
        let elements = Weight::from_witness_data_size((VarInt::from(witness.count).size() + witness.size) as u64);
        let weight = plain.saturating_add(OUTPOINT_AND_SEQUENCE).saturating_add(elements);
        Self { weight, has_witness: true, lacks_witness: false }
    }

    /// The size from a weight that includes the witness, even an empty one.
    pub fn of_weight(weight: Weight, has_witness: bool) -> Self {
        Self { weight, has_witness, lacks_witness: false }
    }

    /// The size if the script's form alone determines it: P2WPKH, or P2TR by key path. The caller must know that it is solvable.
    pub fn by_form(script: &Script, signatures: Signatures) -> Option<Self> {
        match classify(script) {
            ScriptKind::WitnessV0KeyHash { .. } => Some(Self::new(0, &[signatures as usize, PUBLIC_KEY_SIZE])),
            ScriptKind::Taproot { .. } => Some(Self::new(0, &[SCHNORR_LEN])),
            _ => None,
        }
    }

    /// The weight of the input. In a segwit transaction an input without witness counts the byte of an empty one.
    pub fn weight(&self, in_witness_transaction: bool) -> Weight {
        let empty = Weight::from_wu(u64::from(in_witness_transaction && self.lacks_witness));
        self.weight.saturating_add(empty)
    }

    /// The size of the input that spends a P2SH-P2WPKH output.
    pub fn nested_wpkh() -> Self {
        Self::new(push_len(WPKH_SCRIPT_LEN), &[Signatures::LowR as usize, PUBLIC_KEY_SIZE])
    }
}

/// The weight of an output with a script of this length, in bytes.
pub fn output_weight(script_len: usize) -> Weight {
    const VALUE_LEN: usize = 8;
    Weight::from_non_witness_data_size((VALUE_LEN + VarInt::from(script_len).size() + script_len) as u64)
}

/// The weight of a signed transaction with these outputs and inputs.
pub fn signed_weight(outputs: &[TxOut], inputs: &[InputSize]) -> Weight {
    const MARKER_AND_FLAG: u64 = 2;
    let witness = inputs.iter().any(|size| size.has_witness);
    let empty = predict_weight([], outputs.iter().map(|output| output.script_pubkey.len())).to_wu();
    // The prediction counts one byte for the number of inputs.
    let count = (VarInt::from(inputs.len()).size() as u64 - 1) * Weight::WITNESS_SCALE_FACTOR;
    let marker = if witness { MARKER_AND_FLAG } else { 0 };
    let inputs: u64 = inputs.iter().map(|size| size.weight(witness).to_wu()).sum();
    Weight::from_wu(empty + count + marker + inputs)
}

fn push_len(data: usize) -> usize {
    match data {
        0..=75 => 1 + data,
        76..=255 => 2 + data,
        256..=65535 => 3 + data,
        _ => 5 + data,
    }
}

fn pushes_len(elements: &[usize]) -> usize {
    elements.iter().copied().map(push_len).sum()
}

/// The public keys that may have to sign to spend a script.
pub fn keys_for(script: &Script, solving: &SolvingData) -> Vec<Vec<u8>> {
    match classify(script) {
        ScriptKind::PubKey { key } => vec![key.to_vec()],
        ScriptKind::PubKeyHash { hash } | ScriptKind::WitnessV0KeyHash { hash } => {
            public_key(hash, solving).map(<[u8]>::to_vec).into_iter().collect()
        }
        ScriptKind::Multisig { keys, .. } => keys.into_iter().map(<[u8]>::to_vec).collect(),
        ScriptKind::Taproot { .. } => {
            let data = solving.taproot.iter();
            let leaves = data.clone().flat_map(|data| &data.leaves);
            let keys = leaves.flat_map(|leaf| miniscript_size::leaf_keys(&leaf.script));
            data.map(|data| data.internal_key.to_vec()).chain(keys).collect()
        }
        ScriptKind::ScriptHash { hash } => match redeem_script(hash, solving) {
            // A redeem script that is P2SH again is not spendable.
            Some(script) if !script.is_p2sh() => keys_for(script, solving),
            _ => Vec::new(),
        },
        ScriptKind::WitnessV0ScriptHash { hash } => match witness_script(hash, solving) {
            Some(script) => plain_keys(script, solving),
            None => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// [`keys_for`] for a script that must not be P2SH or a witness program.
fn plain_keys(script: &Script, solving: &SolvingData) -> Vec<Vec<u8>> {
    match classify(script) {
        ScriptKind::PubKey { .. } | ScriptKind::PubKeyHash { .. } | ScriptKind::Multisig { .. } => {
            keys_for(script, solving)
        }
        _ => miniscript_size::keys(script, solving),
    }
}

/// Whether a script is a witness program, or P2SH of one.
pub fn is_witness(script: &Script, solving: &SolvingData) -> bool {
    match classify(script) {
        ScriptKind::ScriptHash { hash } => {
            redeem_script(hash, solving).is_some_and(|script| script.is_witness_program())
        }
        _ => script.is_witness_program(),
    }
}

/// Whether a public key can sign; `None` if every key can.
pub type CanSign<'a> = Option<&'a dyn Fn(&[u8]) -> bool>;

/// The size of the input that spends a script with the keys that `can_sign` accepts. `None` if they do not suffice.
pub fn input_size(
    script: &Script,
    solving: &SolvingData,
    signatures: Signatures,
    can_sign: CanSign<'_>,
) -> Option<InputSize> {
    Solver { solving, ecdsa: signatures as usize, can_sign }.size(script)
}

struct Solver<'a> {
    solving: &'a SolvingData,
    /// The length of an ECDSA signature, in bytes.
    ecdsa: usize,
    can_sign: CanSign<'a>,
}

impl Solver<'_> {
    fn can_sign(&self, key: &[u8]) -> bool {
        self.can_sign.is_none_or(|can_sign| can_sign(key))
    }

    fn size(&self, script: &Script) -> Option<InputSize> {
        let ScriptKind::ScriptHash { hash } = classify(script) else { return self.size_with(0, script) };
        let redeem = redeem_script(hash, self.solving)?;
        // Bitcoin Core counts one byte for the push opcode at any length.
        let push = 1 + redeem.len();
        match classify(redeem) {
            ScriptKind::WitnessV0KeyHash { .. } | ScriptKind::WitnessV0ScriptHash { .. } => {
                self.size_with(push, redeem)
            }
            _ => Some(InputSize::new(push + pushes_len(&self.elements(redeem)?), &[])),
        }
    }

    /// The size for a script that is not P2SH, with a scriptSig of `script_sig` bytes.
    fn size_with(&self, script_sig: usize, script: &Script) -> Option<InputSize> {
        match classify(script) {
            ScriptKind::WitnessV0KeyHash { hash } => {
                let key =
                    public_key(hash, self.solving).filter(|key| key.len() == PUBLIC_KEY_SIZE && self.can_sign(key))?;
                Some(InputSize::new(script_sig, &[self.ecdsa, key.len()]))
            }
            ScriptKind::WitnessV0ScriptHash { hash } => {
                let script = witness_script(hash, self.solving)?;
                if let Some(mut elements) = self.elements(script) {
                    elements.push(script.len());
                    return Some(InputSize::new(script_sig, &elements));
                }
                let signs =
                    |can_sign: &dyn Fn(&[u8]) -> bool| miniscript_size::can_sign(script, self.solving, can_sign);
                let Satisfaction { count, size } =
                    miniscript_size::satisfaction(script).filter(|_| self.can_sign.is_none_or(signs))?;
                let script = VarInt::from(script.len()).size() + script.len();
                Some(InputSize::of_witness(script_sig, Satisfaction { count: count + 1, size: size + script }))
            }
            ScriptKind::Taproot { key } => self.taproot_size(key),
            _ => Some(InputSize::new(script_sig + pushes_len(&self.elements(script)?), &[])),
        }
    }

    /// The size of a P2TR input: as in Bitcoin Core, a key path spend. If only leaf keys can sign, the largest leaf spend,
    /// so that the payment does not fall below the minimum relay feerate.
    fn taproot_size(&self, output_key: &[u8]) -> Option<InputSize> {
        let by_key = InputSize::new(0, &[SCHNORR_LEN]);
        let Some(can_sign) = self.can_sign else { return Some(by_key) };
        // Without taproot data the output key itself may sign.
        let data = self.solving.taproot.as_ref();
        if can_sign(data.map_or(output_key, |data| &data.internal_key)) {
            return Some(by_key);
        }
        let leaf_size = |leaf: &TapLeaf| {
            let mut elements = miniscript_size::leaf_elements(&leaf.script, self.solving, can_sign)?;
            elements.extend([leaf.script.len(), leaf.control_block.len()]);
            Some(InputSize::new(0, &elements))
        };
        let sizes = data?.leaves.iter().filter_map(leaf_size);
        sizes.max_by_key(|size| size.weight(true))
    }

    /// The lengths of the stack elements that satisfy a script other than miniscript.
    fn elements(&self, script: &Script) -> Option<Vec<usize>> {
        match classify(script) {
            ScriptKind::PubKey { key } => self.can_sign(key).then(|| vec![self.ecdsa]),
            ScriptKind::PubKeyHash { hash } => {
                let key = public_key(hash, self.solving).filter(|key| self.can_sign(key))?;
                Some(vec![self.ecdsa, key.len()])
            }
            ScriptKind::Multisig { required, keys } => {
                let required = usize::from(required);
                let signable = keys.iter().filter(|key| self.can_sign(key)).count();
                // OP_CHECKMULTISIG pops one more element, which is empty (BIP 147).
                let elements = || std::iter::once(0).chain(std::iter::repeat_n(self.ecdsa, required)).collect();
                (signable >= required).then(elements)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bitcoin::hashes::Hash;
    use bitcoin::{PubkeyHash, ScriptBuf, WPubkeyHash};
    use outrigger_service::wallet::TaprootData;

    const KEY: [u8; 33] = [2; 33];

    fn solving(scripts: &[&ScriptBuf]) -> SolvingData {
        let scripts = scripts.iter().map(|script| (*script).clone()).collect();
        SolvingData { scripts, public_keys: vec![KEY.to_vec().into()], taproot: None }
    }

    fn weight(script: &Script, solving: &SolvingData) -> Option<u64> {
        input_size(script, solving, Signatures::LowR, Some(&|key| key == KEY || key == [7; 32]))
            .map(|size| size.weight(false).to_wu())
    }

    fn multisig(required: u8, keys: &[[u8; 33]]) -> ScriptBuf {
        let mut bytes = vec![0x50 + required];
        for key in keys {
            bytes.push(33);
            bytes.extend(key);
        }
        bytes.extend([0x50 + keys.len() as u8, 0xae]);
        ScriptBuf::from_bytes(bytes)
    }

    #[test]
    fn input_weight_of_single_keys_is_that_on_the_chain() {
        let known = solving(&[]);
        let pkh = ScriptBuf::new_p2pkh(&PubkeyHash::hash(&KEY));
        let wpkh = ScriptBuf::new_p2wpkh(&WPubkeyHash::hash(&KEY));
        let sh = wpkh.to_p2sh();
        assert_eq!(weight(&pkh, &known), Some(147 * 4));
        assert_eq!(weight(&wpkh, &known), Some(41 * 4 + 107));
        assert_eq!(weight(&sh, &known), None);
        assert_eq!(weight(&sh, &solving(&[&wpkh])), Some(64 * 4 + 107));
        assert_eq!(InputSize::nested_wpkh().weight(true).to_wu(), 64 * 4 + 107);
        let pkh = input_size(&pkh, &known, Signatures::LowR, None).unwrap();
        assert_eq!(pkh.weight(true).to_wu(), 147 * 4 + 1);
    }

    #[test]
    fn input_weight_by_form_is_that_of_what_is_known() {
        let wpkh = ScriptBuf::new_p2wpkh(&WPubkeyHash::hash(&KEY));
        let taproot = ScriptBuf::from_bytes([&[0x51, 32][..], &[9; 32]].concat());
        for script in [wpkh, taproot] {
            for signatures in [Signatures::LowR, Signatures::AnyR] {
                let known = input_size(&script, &solving(&[]), signatures, None);
                assert_eq!((InputSize::by_form(&script, signatures), known.is_some()), (known, true));
            }
        }
        assert_eq!(InputSize::by_form(&ScriptBuf::new_p2pkh(&PubkeyHash::hash(&KEY)), Signatures::LowR), None);
    }

    #[test]
    fn input_weight_of_taproot_is_that_of_the_key_path() {
        let script = ScriptBuf::from_bytes([&[0x51, 32][..], &[9; 32]].concat());
        let taproot = |internal_key| {
            let data = TaprootData { internal_key, merkle_root: None, leaves: Vec::new() };
            SolvingData { taproot: Some(data), ..SolvingData::default() }
        };
        assert_eq!(weight(&script, &taproot([7; 32])), Some(41 * 4 + 67));
        assert_eq!(weight(&script, &taproot([8; 32])), None);
    }

    #[test]
    fn input_weight_of_multisig_needs_as_many_keys_as_it_says() {
        let one = multisig(1, &[KEY, [3; 33]]);
        let two = multisig(2, &[KEY, [3; 33]]);
        assert_eq!(weight(&one, &solving(&[])), Some((41 + 1 + 72) * 4));
        assert_eq!(weight(&two, &solving(&[])), None);
        // Count, empty element, signature, and the script of 71 bytes, each with its length.
        assert_eq!(weight(&one.to_p2wsh(), &solving(&[&one])), Some(41 * 4 + 1 + 1 + 72 + 72));
        let wsh = one.to_p2wsh();
        assert_eq!(weight(&wsh.to_p2sh(), &solving(&[&one, &wsh])), Some((41 + 35) * 4 + 1 + 1 + 72 + 72));
        assert_eq!(weight(&one.to_p2sh(), &solving(&[&one])), Some((41 + 1 + 72 + 72) * 4));
    }

    #[test]
    fn input_weight_finds_keys_through_hashes() {
        let one = multisig(1, &[KEY, [3; 33]]);
        assert_eq!(keys_for(&one.to_p2wsh(), &solving(&[&one])), [KEY.to_vec(), vec![3; 33]]);
        let wpkh = ScriptBuf::new_p2wpkh(&WPubkeyHash::hash(&KEY));
        assert_eq!(keys_for(&wpkh.to_p2sh(), &solving(&[&wpkh])), [KEY.to_vec()]);
        assert!(keys_for(&ScriptBuf::from_bytes(vec![0x51]), &solving(&[])).is_empty());
    }
}

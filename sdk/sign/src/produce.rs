//! Makes scriptSigs and witnesses from output scripts and signatures.
//!
//! The solver requests each signature that could help, and uses the available ones. It runs twice per input: first to
//! collect requests for signatures, then with the signatures.

use bitcoin::blockdata::opcodes::all::{OP_PUSHBYTES_0, OP_PUSHNUM_1, OP_PUSHNUM_NEG1};
use bitcoin::hashes::{Hash, hash160};
use bitcoin::script::{Builder, PushBytesBuf};
use bitcoin::{Script, ScriptBuf, TxIn, Witness};

use super::findings::{Elements, SolverFindings};
use super::job::Job;
use super::policy;
use super::taproot;
use outrigger_script::SigVersion;
use outrigger_standard::{ScriptKind, classify};

#[derive(Debug, Default)]
pub(super) struct Production {
    pub(super) script_sig: ScriptBuf,
    pub(super) witness: Witness,
}

impl Production {
    pub(super) fn is_of(&self, input: &TxIn) -> bool {
        (&self.script_sig, &self.witness) == (&input.script_sig, &input.witness)
    }

    /// The size in bytes.
    pub(super) fn size(&self) -> usize {
        self.script_sig.len() + self.witness.size()
    }
}

struct Step {
    elements: Elements,
    /// Whether the elements satisfy the script, as far as the solver knows.
    solved: bool,
}

impl Step {
    const UNSOLVED: Self = Self { elements: Vec::new(), solved: false };

    fn solved(elements: Elements) -> Self {
        Self { elements, solved: true }
    }
}

impl Job<'_> {
    /// Solves the input's output script as far as possible, with the signatures it has; `None` if the input stays as it is.
    pub(super) fn produce(&mut self) -> Option<Production> {
        let script_pubkey = self.script?;
        self.met = SolverFindings::default();
        Some(match classify(script_pubkey) {
            ScriptKind::ScriptHash { hash } => {
                let Some(redeem_script) = self.script(hash160::Hash::from_byte_array(*hash)) else {
                    self.met.missing_redeem_script = Some(*hash);
                    return Some(Production::default());
                };
                self.met.redeem_script = Some(redeem_script.clone());
                let (mut elements, witness) = self.redeem(&redeem_script);
                elements.push(redeem_script.into_bytes());
                Production { script_sig: push_all(&elements), witness }
            }
            ScriptKind::Taproot { key } => {
                self.met.witness = true;
                let witness = match taproot::solve(self, key) {
                    Some(elements) => Witness::from_slice(&elements),
                    None => self.original.witness.clone(),
                };
                Production { script_sig: ScriptBuf::new(), witness }
            }
            _ => {
                let (elements, witness) = self.redeem(script_pubkey);
                Production { script_sig: push_all(&elements), witness }
            }
        })
    }

    /// Solves an output script or a redeem script, which may be a witness program.
    fn redeem(&mut self, script: &Script) -> (Elements, Witness) {
        match classify(script) {
            ScriptKind::WitnessV0KeyHash { hash } => {
                self.met.witness = true;
                let hash = bitcoin::PubkeyHash::from_byte_array(*hash);
                let step = self.step(&ScriptBuf::new_p2pkh(&hash), SigVersion::WitnessV0);
                (Vec::new(), Witness::from_slice(&step.elements))
            }
            ScriptKind::WitnessV0ScriptHash { hash } => {
                let Some(witness_script) = self.witness_script(hash) else {
                    self.met.missing_witness_script = Some(*hash);
                    return Default::default();
                };
                self.met.witness = true;
                self.met.witness_script = Some(witness_script.clone());
                let elements = self.witness_elements(witness_script);
                (Vec::new(), Witness::from_slice(&elements))
            }
            _ => (self.step(script, SigVersion::Base).elements, Witness::new()),
        }
    }

    /// The witness of a P2WSH output. A script without a template may be a miniscript.
    fn witness_elements(&mut self, witness_script: ScriptBuf) -> Elements {
        let step = self.step(&witness_script, SigVersion::WitnessV0);
        let mut elements = step.elements;
        if !step.solved && elements.is_empty() {
            elements = policy::satisfy_witness_script(self, &witness_script).unwrap_or_default();
        }
        elements.push(witness_script.into_bytes());
        elements
    }

    /// Solves a script without following the hashes in it.
    fn step(&mut self, script: &Script, version: SigVersion) -> Step {
        match classify(script) {
            ScriptKind::PubKey { key } => match self.observer.signatures.ecdsa(key, script, version) {
                Some(signature) => Step::solved(vec![signature]),
                None => Step::UNSOLVED,
            },
            ScriptKind::PubKeyHash { hash } => {
                let hash = hash160::Hash::from_byte_array(*hash);
                let Some(key) = self.public_key(hash) else {
                    self.met.missing_public_keys.push(hash);
                    return Step::UNSOLVED;
                };
                match self.observer.signatures.ecdsa(&key, script, version) {
                    Some(signature) => Step::solved(vec![signature, key]),
                    None => Step::UNSOLVED,
                }
            }
            ScriptKind::Multisig { required, keys } => self.multisig(usize::from(required), &keys, script, version),
            // A nested script hash cannot be spent, but bitcoind pushes its script if it is known.
            ScriptKind::ScriptHash { hash } => Step {
                elements: self
                    .script(hash160::Hash::from_byte_array(*hash))
                    .map(ScriptBuf::into_bytes)
                    .into_iter()
                    .collect(),
                solved: false,
            },
            ScriptKind::WitnessV0ScriptHash { hash } => Step {
                elements: self.witness_script(hash).map(ScriptBuf::into_bytes).into_iter().collect(),
                solved: false,
            },
            ScriptKind::WitnessV0KeyHash { hash } => Step { elements: vec![hash.to_vec()], solved: false },
            ScriptKind::Anchor => Step::solved(Vec::new()),
            ScriptKind::NonStandard
            | ScriptKind::NullData
            | ScriptKind::Taproot { .. }
            | ScriptKind::WitnessUnknown { .. } => Step::UNSOLVED,
        }
    }

    /// The first signatures in the order of the keys, after OP_CHECKMULTISIG's extra element. bitcoind pads n missing
    /// ones with n/2 empty elements, rounded up: its loop counts up the stack and recomputes the number missing.
    fn multisig(&mut self, required: usize, keys: &[&[u8]], script: &Script, version: SigVersion) -> Step {
        let mut elements = vec![Vec::new()];
        for key in keys {
            if let Some(signature) = self.observer.signatures.ecdsa(key, script, version)
                && elements.len() <= required
            {
                elements.push(signature);
            }
        }
        let missing = (required + 1).saturating_sub(elements.len());
        elements.extend(std::iter::repeat_n(Vec::new(), missing.div_ceil(2)));
        Step { elements, solved: missing == 0 }
    }
}

fn push_all(elements: &[Vec<u8>]) -> ScriptBuf {
    elements.iter().fold(Builder::new(), |builder, element| push(builder, element)).into_script()
}

fn push(builder: Builder, element: &[u8]) -> Builder {
    match element {
        [] => builder.push_opcode(OP_PUSHBYTES_0),
        [number @ 1..=16] => builder.push_opcode((OP_PUSHNUM_1.to_u8() + number - 1).into()),
        [0x81] => builder.push_opcode(OP_PUSHNUM_NEG1),
        // Signatures, keys and scripts are far below the limit of a push, 4 GiB.
        _ => match PushBytesBuf::try_from(element.to_vec()) {
            Ok(bytes) => builder.push_slice(bytes),
            Err(_) => builder,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pushes_are_in_their_shortest_form() {
        for (element, script) in [
            (vec![], "00"),
            (vec![0], "0100"),
            (vec![1], "51"),
            (vec![16], "60"),
            (vec![17], "0111"),
            (vec![0x81], "4f"),
            (vec![1, 2], "020102"),
        ] {
            assert_eq!(push_all(&[element]).to_hex_string(), script);
        }
        assert_eq!(push_all(&[vec![7; 76]]).as_bytes().get(..3), Some(&[0x4c, 76, 7][..]));
        assert_eq!(push_all(&[vec![7; 256]]).as_bytes().get(..4), Some(&[0x4d, 0, 1, 7][..]));
    }
}

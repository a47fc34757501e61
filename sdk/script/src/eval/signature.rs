//! Opcodes that check signatures.

use std::borrow::Cow;

use bitcoin::Script;

use super::Machine;
use crate::encoding::{check_pubkey_encoding, check_signature_encoding};
use crate::limits::{MAX_PUBKEYS_PER_MULTISIG, VALIDATION_WEIGHT_PER_SIGOP_PASSED};
use crate::parse::find_and_delete;
use crate::{Checker, Element, Flags, ScriptError, SigVersion};

impl<'a, C: Checker + ?Sized> Machine<'_, 'a, C> {
    /// OP_CHECKSIG and OP_CHECKSIGVERIFY: `(signature pubkey -- bool)`.
    pub(super) fn check_sig(&mut self, verify: bool) -> Result<(), ScriptError> {
        let signature = self.stack.peek(1)?;
        let pubkey = self.stack.peek(0)?;
        let valid = self.is_signed(signature.as_bytes(), pubkey.as_bytes())?;
        self.stack.drop_top(2);
        self.finish(valid, verify, ScriptError::CheckSigVerify)
    }

    /// OP_CHECKSIGADD (BIP342): `(signature n pubkey -- n or n + 1)`.
    pub(super) fn check_sig_add(&mut self) -> Result<(), ScriptError> {
        if self.sig_version != SigVersion::Tapscript {
            return Err(ScriptError::BadOpcode);
        }
        let signature = self.stack.peek(2)?;
        let number = self.number(1)?;
        let pubkey = self.stack.peek(0)?;
        let valid = self.is_signed(signature.as_bytes(), pubkey.as_bytes())?;
        self.stack.drop_top(3);
        self.push(Element::number(number + i64::from(valid)))
    }

    /// Checks a signature by the rules of the signature version.
    fn is_signed(&mut self, signature: &[u8], pubkey: &[u8]) -> Result<bool, ScriptError> {
        if self.sig_version == SigVersion::Tapscript {
            self.is_signed_tapscript(signature, pubkey)
        } else {
            self.is_signed_ecdsa(signature, pubkey)
        }
    }

    fn is_signed_ecdsa(&mut self, signature: &[u8], pubkey: &[u8]) -> Result<bool, ScriptError> {
        let script_code = self.remove_signature(Cow::Borrowed(self.script_code()), signature)?;
        let valid = self.check_ecdsa(signature, pubkey, &script_code)?;
        if !valid && !signature.is_empty() {
            self.discourage(Flags::NULLFAIL, ScriptError::SigNullFail)?;
        }
        Ok(valid)
    }

    /// Checks the encodings of a signature and a key, then the signature.
    fn check_ecdsa(&mut self, signature: &[u8], pubkey: &[u8], script_code: &[u8]) -> Result<bool, ScriptError> {
        check_signature_encoding(signature, self.flags)?;
        check_pubkey_encoding(pubkey, self.flags, self.sig_version)?;
        let script_code = Script::from_bytes(script_code);
        Ok(self.checker.check_ecdsa_signature(signature, pubkey, script_code, self.sig_version))
    }

    /// Checks a signature in BIP342's order. A key of undefined type accepts any signature, at the same cost in weight. An
    /// empty signature is a failed check; any other invalid signature fails the script.
    fn is_signed_tapscript(&mut self, signature: &[u8], pubkey: &[u8]) -> Result<bool, ScriptError> {
        let present = !signature.is_empty();
        if present {
            self.execution.validation_weight_left -= VALIDATION_WEIGHT_PER_SIGOP_PASSED;
            if self.execution.validation_weight_left < 0 {
                return Err(ScriptError::TapscriptValidationWeight);
            }
        }
        if pubkey.is_empty() {
            return Err(ScriptError::PubkeyType);
        }
        match <&[u8; 32]>::try_from(pubkey) {
            Ok(pubkey) if present => {
                self.checker.check_schnorr_signature(signature, pubkey, self.sig_version, self.execution)?;
            }
            Ok(_) => {}
            Err(_) => {
                self.discourage(Flags::DISCOURAGE_UPGRADABLE_PUBKEYTYPE, ScriptError::DiscourageUpgradablePubkeyType)?
            }
        }
        Ok(present)
    }

    /// The script after its last executed OP_CODESEPARATOR.
    fn script_code(&self) -> &'a [u8] {
        self.script.get(self.code_start..).unwrap_or_default()
    }

    /// Removes a signature from the scriptCode, in scripts without a witness.
    fn remove_signature(&self, script_code: Cow<'a, [u8]>, signature: &[u8]) -> Result<Cow<'a, [u8]>, ScriptError> {
        if self.sig_version != SigVersion::Base {
            return Ok(script_code);
        }
        let removed = match script_code {
            Cow::Borrowed(code) => match find_and_delete(code, signature) {
                Cow::Borrowed(_) => return Ok(Cow::Borrowed(code)),
                Cow::Owned(removed) => removed,
            },
            Cow::Owned(code) => match find_and_delete(&code, signature) {
                Cow::Borrowed(_) => return Ok(Cow::Owned(code)),
                Cow::Owned(removed) => removed,
            },
        };
        self.discourage(Flags::CONST_SCRIPTCODE, ScriptError::SigFindAndDelete)?;
        Ok(Cow::Owned(removed))
    }

    /// OP_CHECKMULTISIG and OP_CHECKMULTISIGVERIFY: `(dummy signature... signatures pubkey... pubkeys -- bool)`. Both
    /// pop one extra element, the dummy: a bug of the first client that became consensus.
    pub(super) fn check_multisig(&mut self, verify: bool) -> Result<(), ScriptError> {
        if self.sig_version == SigVersion::Tapscript {
            return Err(ScriptError::TapscriptCheckMultisig);
        }
        let keys = self.count(0, MAX_PUBKEYS_PER_MULTISIG, ScriptError::PubkeyCount)?;
        self.count_ops(keys)?;
        let first_key = 1;
        let signatures = self.count(first_key + keys, keys, ScriptError::SigCount)?;
        let first_signature = first_key + keys + 1;
        let dummy = first_signature + signatures;
        self.stack.require(dummy + 1)?;

        let valid = self.match_signatures(first_signature, signatures, first_key, keys)?;
        if !valid && self.flags.contains(Flags::NULLFAIL) {
            for depth in first_signature..dummy {
                if !self.stack.element(depth)?.as_bytes().is_empty() {
                    return Err(ScriptError::SigNullFail);
                }
            }
        }
        if self.flags.contains(Flags::NULLDUMMY) && !self.stack.element(dummy)?.as_bytes().is_empty() {
            return Err(ScriptError::SigNullDummy);
        }
        self.stack.drop_top(dummy + 1);
        self.finish(valid, verify, ScriptError::CheckMultisigVerify)
    }

    /// The number of keys or signatures at `depth`, at most `most`.
    fn count(&self, depth: usize, most: usize, error: ScriptError) -> Result<usize, ScriptError> {
        match usize::try_from(self.number(depth)?) {
            Ok(count) if count <= most => Ok(count),
            _ => Err(error),
        }
    }

    /// Whether each signature verifies for a key. Goes through both from the top of the stack down. The order matters: the
    /// first invalid encoding fails the script, and encodings after the last comparison are not checked.
    fn match_signatures(
        &mut self,
        mut signature_depth: usize,
        signatures: usize,
        mut key_depth: usize,
        keys: usize,
    ) -> Result<bool, ScriptError> {
        let mut script_code = Cow::Borrowed(self.script_code());
        for depth in signature_depth..signature_depth + signatures {
            let signature = self.stack.peek(depth)?;
            script_code = self.remove_signature(script_code, signature.as_bytes())?;
        }
        let (mut signatures_left, mut keys_left) = (signatures, keys);
        while signatures_left > 0 {
            // Fewer keys than signatures are left.
            if signatures_left > keys_left {
                return Ok(false);
            }
            let signature = self.stack.peek(signature_depth)?;
            let pubkey = self.stack.peek(key_depth)?;
            if self.check_ecdsa(signature.as_bytes(), pubkey.as_bytes(), &script_code)? {
                signature_depth += 1;
                signatures_left -= 1;
            }
            key_depth += 1;
            keys_left -= 1;
        }
        Ok(true)
    }
}

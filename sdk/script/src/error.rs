//! Script errors in Bitcoin Core's terms.
//!
//! Each has two fixed texts, which clients see: its name in Core's test data, and Core's message.

macro_rules! script_errors {
    ($($variant:ident, $name:literal, $text:literal;)*) => {
        /// Why a script failed. `Display` yields Core's message.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
        pub enum ScriptError {
            $(#[doc = $text] #[doc = "."] #[error($text)] $variant,)*
        }

        impl ScriptError {
            /// All errors in Core's order.
            pub const ALL: &'static [ScriptError] = &[$(ScriptError::$variant),*];

            /// The name in Core's test data, for example `EVAL_FALSE`.
            pub const fn name(&self) -> &'static str {
                match self { $(ScriptError::$variant => $name,)* }
            }

            /// Core's message.
            pub const fn text(&self) -> &'static str {
                match self { $(ScriptError::$variant => $text,)* }
            }
        }
    };
}

script_errors! {
    UnknownError, "UNKNOWN_ERROR", "unknown error";
    EvalFalse, "EVAL_FALSE", "Script evaluated without error but finished with a false/empty top stack element";
    OpReturn, "OP_RETURN", "OP_RETURN was encountered";
    ScriptSize, "SCRIPT_SIZE", "Script is too big";
    PushSize, "PUSH_SIZE", "Push value size limit exceeded";
    OpCount, "OP_COUNT", "Operation limit exceeded";
    StackSize, "STACK_SIZE", "Stack size limit exceeded";
    SigCount, "SIG_COUNT", "Signature count negative or greater than pubkey count";
    PubkeyCount, "PUBKEY_COUNT", "Pubkey count negative or limit exceeded";
    Verify, "VERIFY", "Script failed an OP_VERIFY operation";
    EqualVerify, "EQUALVERIFY", "Script failed an OP_EQUALVERIFY operation";
    CheckMultisigVerify, "CHECKMULTISIGVERIFY", "Script failed an OP_CHECKMULTISIGVERIFY operation";
    CheckSigVerify, "CHECKSIGVERIFY", "Script failed an OP_CHECKSIGVERIFY operation";
    NumEqualVerify, "NUMEQUALVERIFY", "Script failed an OP_NUMEQUALVERIFY operation";
    BadOpcode, "BAD_OPCODE", "Opcode missing or not understood";
    DisabledOpcode, "DISABLED_OPCODE", "Attempted to use a disabled opcode";
    InvalidStackOperation, "INVALID_STACK_OPERATION", "Operation not valid with the current stack size";
    InvalidAltstackOperation, "INVALID_ALTSTACK_OPERATION", "Operation not valid with the current altstack size";
    UnbalancedConditional, "UNBALANCED_CONDITIONAL", "Invalid OP_IF construction";
    NegativeLocktime, "NEGATIVE_LOCKTIME", "Negative locktime";
    UnsatisfiedLocktime, "UNSATISFIED_LOCKTIME", "Locktime requirement not satisfied";
    SigHashtype, "SIG_HASHTYPE", "Signature hash type missing or not understood";
    SigDer, "SIG_DER", "Non-canonical DER signature";
    MinimalData, "MINIMALDATA", "Data push larger than necessary";
    SigPushOnly, "SIG_PUSHONLY", "Only push operators allowed in signatures";
    SigHighS, "SIG_HIGH_S", "Non-canonical signature: S value is unnecessarily high";
    SigNullDummy, "SIG_NULLDUMMY", "Dummy CHECKMULTISIG argument must be zero";
    PubkeyType, "PUBKEYTYPE", "Public key is neither compressed or uncompressed";
    CleanStack, "CLEANSTACK", "Stack size must be exactly one after execution";
    MinimalIf, "MINIMALIF", "OP_IF/NOTIF argument must be minimal";
    SigNullFail, "NULLFAIL", "Signature must be zero for failed CHECK(MULTI)SIG operation";
    DiscourageUpgradableNops, "DISCOURAGE_UPGRADABLE_NOPS", "NOPx reserved for soft-fork upgrades";
    DiscourageUpgradableWitnessProgram, "DISCOURAGE_UPGRADABLE_WITNESS_PROGRAM", "Witness version reserved for soft-fork upgrades";
    DiscourageUpgradableTaprootVersion, "DISCOURAGE_UPGRADABLE_TAPROOT_VERSION", "Taproot version reserved for soft-fork upgrades";
    DiscourageOpSuccess, "DISCOURAGE_OP_SUCCESS", "OP_SUCCESSx reserved for soft-fork upgrades";
    DiscourageUpgradablePubkeyType, "DISCOURAGE_UPGRADABLE_PUBKEYTYPE", "Public key version reserved for soft-fork upgrades";
    WitnessProgramWrongLength, "WITNESS_PROGRAM_WRONG_LENGTH", "Witness program has incorrect length";
    WitnessProgramWitnessEmpty, "WITNESS_PROGRAM_WITNESS_EMPTY", "Witness program was passed an empty witness";
    WitnessProgramMismatch, "WITNESS_PROGRAM_MISMATCH", "Witness program hash mismatch";
    WitnessMalleated, "WITNESS_MALLEATED", "Witness requires empty scriptSig";
    WitnessMalleatedP2sh, "WITNESS_MALLEATED_P2SH", "Witness requires only-redeemscript scriptSig";
    WitnessUnexpected, "WITNESS_UNEXPECTED", "Witness provided for non-witness script";
    WitnessPubkeyType, "WITNESS_PUBKEYTYPE", "Using non-compressed keys in segwit";
    SchnorrSigSize, "SCHNORR_SIG_SIZE", "Invalid Schnorr signature size";
    SchnorrSigHashtype, "SCHNORR_SIG_HASHTYPE", "Invalid Schnorr signature hash type";
    SchnorrSig, "SCHNORR_SIG", "Invalid Schnorr signature";
    TaprootWrongControlSize, "TAPROOT_WRONG_CONTROL_SIZE", "Invalid Taproot control block size";
    TapscriptValidationWeight, "TAPSCRIPT_VALIDATION_WEIGHT", "Too much signature validation relative to witness weight";
    TapscriptCheckMultisig, "TAPSCRIPT_CHECKMULTISIG", "OP_CHECKMULTISIG(VERIFY) is not available in tapscript";
    TapscriptMinimalIf, "TAPSCRIPT_MINIMALIF", "OP_IF/NOTIF argument must be minimal in tapscript";
    OpCodeSeparator, "OP_CODESEPARATOR", "Using OP_CODESEPARATOR in non-witness script";
    SigFindAndDelete, "SIG_FINDANDDELETE", "Signature is found in scriptCode";
}

impl ScriptError {
    /// The message in the signing RPCs. It differs from [`Self::text`] for the two errors that missing keys cause: too
    /// few stack elements, and a failed signature check.
    pub const fn signing_text(&self) -> &'static str {
        match self {
            ScriptError::InvalidStackOperation => "Unable to sign input, invalid stack size (possibly missing key)",
            ScriptError::SigNullFail => {
                "CHECK(MULTI)SIG failing with non-zero signature (possibly need more signatures)"
            }
            other => other.text(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_and_texts_are_distinct() {
        let names: BTreeSet<_> = ScriptError::ALL.iter().map(ScriptError::name).collect();
        let texts: BTreeSet<_> = ScriptError::ALL.iter().map(ScriptError::text).collect();
        assert_eq!(names.len(), ScriptError::ALL.len());
        assert_eq!(texts.len(), ScriptError::ALL.len());
    }
}

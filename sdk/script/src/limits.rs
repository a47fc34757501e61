//! The fixed limits of script execution. All but the last two are consensus since before segwit.

/// Longest script that is executed outside of tapscript, in bytes.
pub const MAX_SCRIPT_SIZE: usize = 10_000;
/// Longest element that a script may push, in bytes.
pub const MAX_SCRIPT_ELEMENT_SIZE: usize = 520;
/// Most opcodes above OP_16 that a script outside of tapscript may contain, executed or not.
pub const MAX_OPS_PER_SCRIPT: usize = 201;
/// Most public keys of one CHECKMULTISIG.
pub const MAX_PUBKEYS_PER_MULTISIG: usize = 20;
/// Most elements on the stack and the altstack together.
pub const MAX_STACK_SIZE: usize = 1000;
/// What a non-empty signature costs of a tapscript's validation weight (BIP342), in weight units.
pub const VALIDATION_WEIGHT_PER_SIGOP_PASSED: i64 = 50;
/// What a tapscript's validation weight has above the size of its witness (BIP342), in weight units.
pub const VALIDATION_WEIGHT_OFFSET: i64 = 50;

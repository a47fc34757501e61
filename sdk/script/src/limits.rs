//! The limits of script execution. All are consensus; the last two are BIP342's.

/// Longest script outside of tapscript, in bytes.
pub const MAX_SCRIPT_SIZE: usize = 10_000;
/// Longest element that a script may push, in bytes.
pub const MAX_SCRIPT_ELEMENT_SIZE: usize = 520;
/// Most opcodes above OP_16 in a script outside of tapscript, executed or not.
pub const MAX_OPS_PER_SCRIPT: usize = 201;
/// Most public keys of an OP_CHECKMULTISIG.
pub const MAX_PUBKEYS_PER_MULTISIG: usize = 20;
/// Most elements on the stack and the altstack together.
pub const MAX_STACK_SIZE: usize = 1000;
/// The weight units that a non-empty signature takes from a tapscript's budget (BIP342).
pub const VALIDATION_WEIGHT_PER_SIGOP_PASSED: i64 = 50;
/// The weight units of a tapscript's budget beyond the size of the witness (BIP342).
pub const VALIDATION_WEIGHT_OFFSET: i64 = 50;

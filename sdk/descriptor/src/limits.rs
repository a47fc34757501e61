//! Limits against hostile descriptors, far above the descriptors of wallets. The worst text takes milliseconds.

/// The longest descriptor text, in bytes, checksum included.
pub const MAX_LENGTH: usize = 100_000;

/// The deepest nesting of parentheses, braces and miniscript wrappers together. A script tree has up to 128 levels (BIP
/// 341); the miniscript parser needs stack for each level.
pub const MAX_NESTING: usize = 136;

/// The deepest script tree: a control block has at most 128 hashes (BIP 341).
pub const MAX_TREE_DEPTH: usize = 128;

/// The most alternatives in one multipath step `<0;1;...>` (BIP 389).
pub const MAX_MULTIPATH: usize = 64;

/// The most key expressions in a descriptor.
pub const MAX_KEYS: usize = 1_000;

/// The most key expressions in all descriptors of a multipath text, in total.
pub const MAX_UNFOLDED_KEYS: usize = 4_000;

/// The most derivation steps in a descriptor. Each costs a multiplication on the curve, once.
pub const MAX_DERIVATION_STEPS: usize = 10_000;

/// The most keys in `multi`: the limit of OP_CHECKMULTISIG.
pub const MAX_MULTISIG_KEYS: usize = 20;

/// The most keys in `multi` outside of `sh` and `wsh`: the limit of standardness.
pub const MAX_BARE_MULTISIG_KEYS: usize = 3;

/// The most keys in `multi_a` (BIP 387: the limit of the stack).
pub const MAX_MULTI_A_KEYS: usize = 999;

/// The largest redeem script, in bytes: the limit of a stack element.
pub const MAX_REDEEM_SCRIPT: usize = 520;

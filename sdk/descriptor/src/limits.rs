//! Bounds against hostile descriptor text. Each lies far above what any wallet writes, and keeps the worst text
//! within milliseconds of work and kilobytes of stack.

/// The longest descriptor text, in bytes, checksum included.
pub const MAX_LENGTH: usize = 100_000;

/// The deepest nesting: open parentheses, braces and miniscript wrappers together. A script tree of BIP 341 has at
/// most 128 levels; the parser of miniscript needs stack for each level.
pub const MAX_NESTING: usize = 136;

/// The deepest script tree of a taproot output (BIP 341: a control block has at most 128 hashes).
pub const MAX_TREE_DEPTH: usize = 128;

/// The most alternatives in one multipath step `<0;1;...>` (BIP 389).
pub const MAX_MULTIPATH: usize = 64;

/// The most key expressions in a descriptor.
pub const MAX_KEYS: usize = 1_000;

/// The most key expressions that a multipath text may unfold to, over all its descriptors.
pub const MAX_UNFOLDED_KEYS: usize = 4_000;

/// The most derivation steps in a descriptor, over all its keys. Each costs a curve multiplication once.
pub const MAX_DERIVATION_STEPS: usize = 10_000;

/// The most keys in `multi`: as many as OP_CHECKMULTISIG takes.
pub const MAX_MULTISIG_KEYS: usize = 20;

/// The most keys in `multi` outside of any `sh` or `wsh`.
pub const MAX_BARE_MULTISIG_KEYS: usize = 3;

/// The most keys in `multi_a` (BIP 387: as many as the stack has room for).
pub const MAX_MULTI_A_KEYS: usize = 999;

/// The largest redeem script, in bytes: it must be pushed as one stack element.
pub const MAX_REDEEM_SCRIPT: usize = 520;

//! Script verification flags.
//!
//! Each flag only restricts: a script that passes a set of flags passes each subset. The bits are Bitcoin Core's.

use bitflags::bitflags;

bitflags! {
    /// A set of script verification flags.
    #[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
    pub struct Flags: u32 {
        /// Execute the redeem scripts of P2SH outputs (BIP16).
        const P2SH = 1 << 0;
        /// Signatures are strict DER with a defined hash type; public keys are compressed or uncompressed. Policy.
        const STRICTENC = 1 << 1;
        /// Signatures are strict DER (BIP66).
        const DERSIG = 1 << 2;
        /// The S of an ECDSA signature is at most half the group order. Policy.
        const LOW_S = 1 << 3;
        /// The extra element that OP_CHECKMULTISIG pops is empty (BIP147).
        const NULLDUMMY = 1 << 4;
        /// The scriptSig is push-only. Policy.
        const SIGPUSHONLY = 1 << 5;
        /// Pushes and script numbers are minimal. Policy.
        const MINIMALDATA = 1 << 6;
        /// NOPs reserved for soft forks fail when executed. Policy.
        const DISCOURAGE_UPGRADABLE_NOPS = 1 << 7;
        /// Execution leaves exactly one element. Implies [`Flags::WITNESS`] and [`Flags::P2SH`]. Policy.
        const CLEANSTACK = 1 << 8;
        /// OP_CHECKLOCKTIMEVERIFY is active (BIP65).
        const CHECKLOCKTIMEVERIFY = 1 << 9;
        /// OP_CHECKSEQUENCEVERIFY is active (BIP112).
        const CHECKSEQUENCEVERIFY = 1 << 10;
        /// Segregated witness (BIP141, BIP143). Implies [`Flags::P2SH`].
        const WITNESS = 1 << 11;
        /// Undefined witness programs fail. Policy.
        const DISCOURAGE_UPGRADABLE_WITNESS_PROGRAM = 1 << 12;
        /// The argument of OP_IF in witness v0 scripts is empty or the byte 1. Policy.
        const MINIMALIF = 1 << 13;
        /// The signatures of a failed check are empty. Policy.
        const NULLFAIL = 1 << 14;
        /// Public keys in witness v0 scripts are compressed. Policy.
        const WITNESS_PUBKEYTYPE = 1 << 15;
        /// OP_CODESEPARATOR, and signatures in the scriptCode, fail outside of witness scripts. Policy.
        const CONST_SCRIPTCODE = 1 << 16;
        /// Taproot and tapscript (BIP341, BIP342).
        const TAPROOT = 1 << 17;
        /// Undefined taproot leaf versions fail. Policy.
        const DISCOURAGE_UPGRADABLE_TAPROOT_VERSION = 1 << 18;
        /// OP_SUCCESSx opcodes fail. Policy.
        const DISCOURAGE_OP_SUCCESS = 1 << 19;
        /// Undefined public key types in tapscript fail. Policy.
        const DISCOURAGE_UPGRADABLE_PUBKEYTYPE = 1 << 20;
    }
}

impl Flags {
    /// The consensus rules with every soft fork active: Bitcoin Core's mandatory flags.
    pub const CONSENSUS: Flags = Flags::P2SH
        .union(Flags::DERSIG)
        .union(Flags::NULLDUMMY)
        .union(Flags::CHECKLOCKTIMEVERIFY)
        .union(Flags::CHECKSEQUENCEVERIFY)
        .union(Flags::WITNESS)
        .union(Flags::TAPROOT);

    /// The rules of relay and of signing: Bitcoin Core 29's standard flags.
    pub const STANDARD: Flags = Flags::CONSENSUS
        .union(Flags::STRICTENC)
        .union(Flags::MINIMALDATA)
        .union(Flags::DISCOURAGE_UPGRADABLE_NOPS)
        .union(Flags::CLEANSTACK)
        .union(Flags::MINIMALIF)
        .union(Flags::NULLFAIL)
        .union(Flags::LOW_S)
        .union(Flags::DISCOURAGE_UPGRADABLE_WITNESS_PROGRAM)
        .union(Flags::WITNESS_PUBKEYTYPE)
        .union(Flags::CONST_SCRIPTCODE)
        .union(Flags::DISCOURAGE_UPGRADABLE_TAPROOT_VERSION)
        .union(Flags::DISCOURAGE_OP_SUCCESS)
        .union(Flags::DISCOURAGE_UPGRADABLE_PUBKEYTYPE);

    /// Adds the implied flags: CLEANSTACK implies WITNESS, and WITNESS implies P2SH. Without them, adding a flag could make
    /// a failing script pass. Verification calls this function itself.
    #[must_use]
    pub const fn with_implied(self) -> Flags {
        let mut flags = self;
        if flags.contains(Flags::CLEANSTACK) {
            flags = flags.union(Flags::WITNESS);
        }
        if flags.contains(Flags::WITNESS) {
            flags = flags.union(Flags::P2SH);
        }
        flags
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_have_the_known_bits() {
        assert_eq!(Flags::CONSENSUS.bits(), 0b10_0000_1110_0001_0101);
        // All 21 flags but SIGPUSHONLY.
        assert_eq!(Flags::STANDARD.bits(), ((1 << 21) - 1) & !Flags::SIGPUSHONLY.bits());
        assert_eq!(Flags::all().iter().count(), 21);
    }

    #[test]
    fn implied_flags_are_added() {
        assert!(Flags::CLEANSTACK.with_implied().contains(Flags::WITNESS | Flags::P2SH));
        assert_eq!(Flags::DERSIG.with_implied(), Flags::DERSIG);
    }
}

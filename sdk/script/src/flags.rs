//! Script verification flags.
//!
//! Each flag only restricts: a script that passes a set of flags passes each subset. The bits are Bitcoin Core's.

use std::fmt;
use std::ops::BitOr;

/// A set of script verification flags.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Flags(u32);

macro_rules! flags {
    ($($(#[$doc:meta])* $name:ident = $bit:literal;)*) => {
        impl Flags {
            $($(#[$doc])* pub const $name: Flags = Flags(1 << $bit);)*

            /// All flags with their names, lowest bit first.
            const NAMED: &'static [(&'static str, Flags)] = &[$((stringify!($name), Flags::$name)),*];
        }
    };
}

flags! {
    /// Execute the redeem scripts of P2SH outputs (BIP16).
    P2SH = 0;
    /// Signatures are strict DER with a defined hash type; public keys are compressed or uncompressed. Policy.
    STRICTENC = 1;
    /// Signatures are strict DER (BIP66).
    DERSIG = 2;
    /// The S of an ECDSA signature is at most half the group order. Policy.
    LOW_S = 3;
    /// The extra element that OP_CHECKMULTISIG pops is empty (BIP147).
    NULLDUMMY = 4;
    /// The scriptSig is push-only. Policy.
    SIGPUSHONLY = 5;
    /// Pushes and script numbers are minimal. Policy.
    MINIMALDATA = 6;
    /// NOPs reserved for soft forks fail when executed. Policy.
    DISCOURAGE_UPGRADABLE_NOPS = 7;
    /// Execution leaves exactly one element. Implies [`Flags::WITNESS`] and [`Flags::P2SH`]. Policy.
    CLEANSTACK = 8;
    /// OP_CHECKLOCKTIMEVERIFY is active (BIP65).
    CHECKLOCKTIMEVERIFY = 9;
    /// OP_CHECKSEQUENCEVERIFY is active (BIP112).
    CHECKSEQUENCEVERIFY = 10;
    /// Segregated witness (BIP141, BIP143). Implies [`Flags::P2SH`].
    WITNESS = 11;
    /// Undefined witness programs fail. Policy.
    DISCOURAGE_UPGRADABLE_WITNESS_PROGRAM = 12;
    /// The argument of OP_IF in witness v0 scripts is empty or the byte 1. Policy.
    MINIMALIF = 13;
    /// The signatures of a failed check are empty. Policy.
    NULLFAIL = 14;
    /// Public keys in witness v0 scripts are compressed. Policy.
    WITNESS_PUBKEYTYPE = 15;
    /// OP_CODESEPARATOR, and signatures in the scriptCode, fail outside of witness scripts. Policy.
    CONST_SCRIPTCODE = 16;
    /// Taproot and tapscript (BIP341, BIP342).
    TAPROOT = 17;
    /// Undefined taproot leaf versions fail. Policy.
    DISCOURAGE_UPGRADABLE_TAPROOT_VERSION = 18;
    /// OP_SUCCESSx opcodes fail. Policy.
    DISCOURAGE_OP_SUCCESS = 19;
    /// Undefined public key types in tapscript fail. Policy.
    DISCOURAGE_UPGRADABLE_PUBKEYTYPE = 20;
}

impl Flags {
    /// No flags.
    pub const NONE: Flags = Flags(0);

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

    /// The flags as bits in Bitcoin Core's positions.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The flags of `bits`. Undefined bits are dropped.
    pub const fn from_bits_truncate(bits: u32) -> Flags {
        Flags(bits & ((1 << Flags::NAMED.len()) - 1))
    }

    /// Whether no flag is set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether all flags of `other` are set.
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether at least one flag of `other` is set.
    pub const fn intersects(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }

    /// The flags of either set.
    #[must_use]
    pub const fn union(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// The flags that are not in `other`.
    #[must_use]
    pub const fn difference(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }

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

    /// Iterates over the single flags, lowest bit first.
    pub fn iter(self) -> impl Iterator<Item = Flags> {
        Flags::NAMED.iter().map(|(_, flag)| *flag).filter(move |flag| self.contains(*flag))
    }
}

impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("NONE");
        }
        let mut separator = "";
        for (name, _) in Flags::NAMED.iter().filter(|(_, flag)| self.contains(*flag)) {
            write!(f, "{separator}{name}")?;
            separator = ",";
        }
        Ok(())
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Flags({self})")
    }
}

impl BitOr for Flags {
    type Output = Flags;

    fn bitor(self, other: Flags) -> Flags {
        self.union(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_separated_by_commas() {
        assert_eq!(Flags::NONE.to_string(), "NONE");
        assert_eq!((Flags::STRICTENC | Flags::P2SH).to_string(), "P2SH,STRICTENC");
    }

    #[test]
    fn sets_have_the_known_bits() {
        assert_eq!(Flags::CONSENSUS.bits(), 0b10_0000_1110_0001_0101);
        // All 21 flags but SIGPUSHONLY.
        assert_eq!(Flags::STANDARD.bits(), ((1 << 21) - 1) & !Flags::SIGPUSHONLY.bits());
        assert_eq!(Flags::from_bits_truncate(u32::MAX).iter().count(), 21);
    }

    #[test]
    fn implied_flags_are_added() {
        assert!(Flags::CLEANSTACK.with_implied().contains(Flags::WITNESS | Flags::P2SH));
        assert_eq!(Flags::DERSIG.with_implied(), Flags::DERSIG);
    }
}

//! The best satisfaction of a miniscript. It chooses between several satisfactions as bitcoind does.
//!
//! Each fragment combines its parts' best satisfactions and dissatisfactions into its own. Between two stacks without a
//! signature, the smaller wins and is malleable. A stack without a signature beats a stack with one, since anyone could
//! switch to it. Between two with signatures, the non-malleable stack wins, then the smaller, then the first. Only a
//! non-malleable satisfaction with a signature is used.
//!
//! Stacks share their parts: a threshold of k in n costs O(k n). The miniscript parser bounds the nesting.

use std::rc::Rc;

use bitcoin::Script;
use bitcoin::hashes::Hash;
use bitcoin::taproot::{LeafVersion, TapLeafHash};
use miniscript::{Miniscript, ScriptContext, Terminal, ToPublicKey};

use super::findings::Elements;
use super::job::Job;
use super::solving::HashKind;
use outrigger_script::{Checker, SigVersion};
use outrigger_service::signer::Scheme;

/// The signatures, keys, preimages and timelocks for a satisfaction.
pub(super) struct Assets<'a, 'p> {
    pub(super) job: &'a mut Job<'p>,
    pub(super) script: &'a Script,
    /// The leaf of a tapscript, with Schnorr signatures; `None` for a witness script, with ECDSA signatures.
    pub(super) leaf: Option<TapLeafHash>,
}

impl Assets<'_, '_> {
    fn signature(&mut self, key: &impl ToPublicKey) -> Option<Vec<u8>> {
        let (script, signatures) = (self.script, &mut self.job.observer.signatures);
        match self.leaf {
            Some(leaf) => signatures.schnorr(key.to_x_only_pubkey().serialize(), Some(leaf), || Scheme::TaprootLeaf {
                script: script.to_owned(),
                version: LeafVersion::TapScript.to_consensus(),
                // No supported leaf script executes OP_CODESEPARATOR.
                code_separator: u32::MAX,
            }),
            None => signatures.ecdsa(&key.to_public_key().to_bytes(), script, SigVersion::WitnessV0),
        }
    }

    /// A key as the script has it.
    fn key_bytes(&self, key: &impl ToPublicKey) -> Vec<u8> {
        match self.leaf {
            Some(_) => key.to_x_only_pubkey().serialize().to_vec(),
            None => key.to_public_key().to_bytes(),
        }
    }
}

/// The elements that satisfy a miniscript; `None` if there is no non-malleable satisfaction with a signature.
pub(super) fn satisfy<Pk: ToPublicKey, Ctx: ScriptContext>(
    policy: &Miniscript<Pk, Ctx>,
    assets: &mut Assets<'_, '_>,
) -> Option<Elements> {
    let way = Ways::of(policy, assets).yes?;
    (way.has_signature && !way.malleable).then(|| way.elements())
}

/// Stack elements, bottom first.
#[derive(Debug)]
enum Stack {
    Empty,
    Element(Vec<u8>),
    Both(Rc<Stack>, Rc<Stack>),
}

/// A satisfaction or dissatisfaction of a fragment.
#[derive(Clone, Debug)]
struct Way {
    stack: Rc<Stack>,
    /// Its size in a witness, in bytes.
    size: usize,
    has_signature: bool,
    malleable: bool,
}

impl Way {
    fn empty() -> Self {
        Self { stack: Rc::new(Stack::Empty), size: 0, has_signature: false, malleable: false }
    }

    fn element(bytes: Vec<u8>) -> Self {
        let size = bytes.len() + 1;
        Self { stack: Rc::new(Stack::Element(bytes)), size, has_signature: false, malleable: false }
    }

    fn zero() -> Self {
        Self::element(Vec::new())
    }

    fn one() -> Self {
        Self::element(vec![1])
    }

    fn signature(bytes: Vec<u8>) -> Self {
        Self { has_signature: true, ..Self::element(bytes) }
    }

    fn malleable(self) -> Self {
        Self { malleable: true, ..self }
    }

    /// The elements of `self` below those of `other`.
    fn below(&self, other: &Self) -> Self {
        let stack = match (&*self.stack, &*other.stack) {
            (Stack::Empty, _) => other.stack.clone(),
            (_, Stack::Empty) => self.stack.clone(),
            _ => Rc::new(Stack::Both(self.stack.clone(), other.stack.clone())),
        };
        Self {
            stack,
            size: self.size + other.size,
            has_signature: self.has_signature || other.has_signature,
            malleable: self.malleable || other.malleable,
        }
    }

    fn elements(&self) -> Elements {
        let mut elements = Vec::new();
        let mut pending = vec![&*self.stack];
        while let Some(stack) = pending.pop() {
            match stack {
                Stack::Empty => {}
                Stack::Element(bytes) => elements.push(bytes.clone()),
                Stack::Both(lower, upper) => pending.extend([&**upper, &**lower]),
            }
        }
        elements
    }
}

/// `None` if impossible.
type Maybe = Option<Way>;

fn join(lower: &Maybe, upper: &Maybe) -> Maybe {
    Some(lower.as_ref()?.below(upper.as_ref()?))
}

fn choose(first: Maybe, second: Maybe) -> Maybe {
    let (mut first, mut second) = match (first, second) {
        (Some(first), Some(second)) => (first, second),
        (first, second) => return first.or(second),
    };
    match (first.has_signature, second.has_signature) {
        (false, true) => return Some(first),
        (true, false) => return Some(second),
        (false, false) => {
            first.malleable = true;
            second.malleable = true;
        }
        (true, true) => match (first.malleable, second.malleable) {
            (false, true) => return Some(first),
            (true, false) => return Some(second),
            _ => {}
        },
    }
    Some(if first.size <= second.size { first } else { second })
}

#[derive(Clone, Debug)]
struct Ways {
    no: Maybe,
    yes: Maybe,
}

impl Ways {
    fn of<Pk: ToPublicKey, Ctx: ScriptContext>(policy: &Miniscript<Pk, Ctx>, assets: &mut Assets<'_, '_>) -> Self {
        let empty = || Some(Way::empty());
        match policy.as_inner() {
            Terminal::True => Self { no: None, yes: empty() },
            Terminal::False => Self { no: empty(), yes: None },
            Terminal::PkK(key) => Self { no: Some(Way::zero()), yes: assets.signature(key).map(Way::signature) },
            Terminal::PkH(key) => {
                let shown = Some(Way::element(assets.key_bytes(key)));
                let signature = assets.signature(key).map(Way::signature);
                Self { no: join(&Some(Way::zero()), &shown), yes: join(&signature, &shown) }
            }
            // The parser has substituted known keys. A hash of an unknown key cannot be satisfied.
            Terminal::RawPkH(_) => Self { no: None, yes: None },
            Terminal::After(lock_time) => {
                let reached = assets.job.observer.checker.check_lock_time(lock_time.to_consensus_u32().into());
                Self { no: None, yes: reached.then(Way::empty) }
            }
            Terminal::Older(sequence) => {
                let reached = assets.job.observer.checker.check_sequence(sequence.to_consensus_u32().into());
                Self { no: None, yes: reached.then(Way::empty) }
            }
            Terminal::Sha256(hash) => Self::preimage(assets, HashKind::Sha256, Pk::to_sha256(hash).as_byte_array()),
            Terminal::Hash256(hash) => Self::preimage(assets, HashKind::Hash256, Pk::to_hash256(hash).as_byte_array()),
            Terminal::Ripemd160(hash) => {
                Self::preimage(assets, HashKind::Ripemd160, Pk::to_ripemd160(hash).as_byte_array())
            }
            Terminal::Hash160(hash) => Self::preimage(assets, HashKind::Hash160, Pk::to_hash160(hash).as_byte_array()),
            Terminal::Alt(part) | Terminal::Swap(part) | Terminal::Check(part) | Terminal::ZeroNotEqual(part) => {
                Self::of(part, assets)
            }
            Terminal::DupIf(part) => {
                Self { no: Some(Way::zero()), yes: join(&Self::of(part, assets).yes, &Some(Way::one())) }
            }
            Terminal::Verify(part) => Self { no: None, yes: Self::of(part, assets).yes },
            Terminal::NonZero(part) => Self::of(part, assets).non_zero(),
            Terminal::AndV(x, y) => Self::of(x, assets).and_v(&Self::of(y, assets)),
            Terminal::AndB(x, y) => Self::of(x, assets).and_b(&Self::of(y, assets)),
            Terminal::AndOr(x, y, z) => {
                let (x, y, z) = (Self::of(x, assets), Self::of(y, assets), Self::of(z, assets));
                Self {
                    no: choose(join(&y.no, &x.yes), join(&z.no, &x.no)),
                    yes: choose(join(&y.yes, &x.yes), join(&z.yes, &x.no)),
                }
            }
            Terminal::OrB(x, z) => Self::of(x, assets).or_b(&Self::of(z, assets)),
            Terminal::OrC(x, z) => {
                let (x, z) = (Self::of(x, assets), Self::of(z, assets));
                let through_z = join(&z.yes, &x.no);
                Self { no: None, yes: choose(x.yes, through_z) }
            }
            Terminal::OrD(x, z) => {
                let (x, z) = (Self::of(x, assets), Self::of(z, assets));
                let through_z = join(&z.yes, &x.no);
                Self { no: join(&z.no, &x.no), yes: choose(x.yes, through_z) }
            }
            Terminal::OrI(x, z) => Self::of(x, assets).or_i(&Self::of(z, assets)),
            Terminal::Thresh(thresh) => {
                let parts: Vec<Self> = thresh.iter().map(|part| Self::of(part, assets)).collect();
                Self::thresh(thresh.k(), &parts)
            }
            Terminal::Multi(thresh) => {
                let signatures = thresh.iter().map(|key| assets.signature(key)).collect();
                Self::multi(thresh.k(), signatures)
            }
            Terminal::MultiA(thresh) => {
                let signatures = thresh.iter().rev().map(|key| assets.signature(key)).collect();
                Self::multi_a(thresh.k(), signatures)
            }
        }
    }

    /// A preimage satisfies. Any other 32 bytes dissatisfy, so the dissatisfaction is malleable.
    fn preimage(assets: &Assets<'_, '_>, kind: HashKind, hash: &[u8]) -> Self {
        let yes = assets.job.preimage(kind, hash).map(Way::element);
        Self { no: Some(Way::element(vec![0; 32]).malleable()), yes }
    }

    /// A dissatisfaction without a signature may be malleable: anyone could replace it.
    fn non_zero(self) -> Self {
        let malleable = self.no.is_some_and(|no| !no.has_signature);
        Self { no: Some(Way { malleable, ..Way::zero() }), yes: self.yes }
    }

    fn and_v(&self, y: &Self) -> Self {
        Self { no: join(&y.no, &self.yes), yes: join(&y.yes, &self.yes) }
    }

    fn and_b(&self, y: &Self) -> Self {
        let only_y = join(&y.yes, &self.no).map(Way::malleable);
        let only_x = join(&y.no, &self.yes).map(Way::malleable);
        Self { no: choose(choose(join(&y.no, &self.no), only_y), only_x), yes: join(&y.yes, &self.yes) }
    }

    fn or_b(&self, z: &Self) -> Self {
        let both = join(&z.yes, &self.yes).map(Way::malleable);
        let one = choose(join(&z.no, &self.yes), join(&z.yes, &self.no));
        Self { no: join(&z.no, &self.no), yes: choose(one, both) }
    }

    fn or_i(&self, z: &Self) -> Self {
        let (one, zero) = (Some(Way::one()), Some(Way::zero()));
        let either = |x: &Maybe, z: &Maybe| choose(join(x, &one), join(z, &zero));
        Self { no: either(&self.no, &z.no), yes: either(&self.yes, &z.yes) }
    }

    /// `best[j]` satisfies j of the parts so far, from the last part on.
    fn thresh(k: usize, parts: &[Self]) -> Self {
        let mut best = vec![Some(Way::empty())];
        for part in parts.iter().rev() {
            best = extend(&best, usize::MAX, |so_far| join(so_far, &part.no), |so_far| join(so_far, &part.yes));
        }
        let yes = best.get(k).cloned().flatten();
        let mut no = None;
        for (count, way) in best.into_iter().enumerate().filter(|(count, _)| *count != k) {
            // Others can change every dissatisfaction that satisfies a part.
            let way = if count == 0 { way } else { way.map(Way::malleable) };
            no = choose(no, way);
        }
        Self { no, yes }
    }

    /// `best[j]` has j signatures of the keys so far, above the extra element of OP_CHECKMULTISIG.
    fn multi(k: usize, signatures: Vec<Option<Vec<u8>>>) -> Self {
        let mut best = vec![Some(Way::zero())];
        for signature in signatures {
            let signature = signature.map(Way::signature);
            best = extend(&best, k, Clone::clone, |so_far| join(so_far, &signature));
        }
        let zeros = (0..k).fold(Way::zero(), |way, _| way.below(&Way::zero()));
        Self { no: Some(zeros), yes: best.get(k).cloned().flatten() }
    }

    /// `best[j]` has j signatures of the keys so far, last key first.
    fn multi_a(k: usize, reversed: Vec<Option<Vec<u8>>>) -> Self {
        let zero = Some(Way::zero());
        let mut best = vec![Some(Way::empty())];
        for signature in reversed {
            let signature = signature.map(Way::signature);
            best = extend(&best, k, |so_far| join(so_far, &zero), |so_far| join(so_far, &signature));
        }
        Self { no: best.first().cloned().flatten(), yes: best.get(k).cloned().flatten() }
    }
}

/// Extends `best` by a part, up to entry `most`: entry j is the better of j `without` the part and j - 1 `with` it.
fn extend(
    best: &[Maybe],
    most: usize,
    without: impl Fn(&Maybe) -> Maybe,
    with: impl Fn(&Maybe) -> Maybe,
) -> Vec<Maybe> {
    let entry = |j: usize| {
        let out = best.get(j).and_then(&without);
        let added = j.checked_sub(1).and_then(|j| best.get(j)).and_then(&with);
        choose(out, added)
    };
    (0..=best.len().min(most)).map(entry).collect()
}

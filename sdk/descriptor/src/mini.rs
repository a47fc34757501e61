//! Miniscript in `wsh` and `tr`: adapts the crate `miniscript` to this crate's keys.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use bitcoin::hashes::{hash160, ripemd160, sha256};
use miniscript::expression::{FromTree as _, Tree};
use miniscript::miniscript::types::Base;
use miniscript::{
    Miniscript, MiniscriptKey, ScriptContext, Tap, Terminal, TranslateErr, Translator, hash256, translate_hash_clone,
};

use super::error::{DescriptorError, ExpandError};
use super::key::DerivedKey;
use super::key_parser::{Context, KeyParser, MUSIG};
use super::key_ref::KeyRef;
use super::lexer::{constant, expression};

macro_rules! hashes_of_bitcoin {
    () => {
        type Sha256 = sha256::Hash;
        type Hash256 = hash256::Hash;
        type Ripemd160 = ripemd160::Hash;
        type Hash160 = hash160::Hash;
    };
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct KeyText(String);

impl fmt::Display for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for KeyText {
    type Err = Infallible;
    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

impl MiniscriptKey for KeyText {
    hashes_of_bitcoin!();
}

impl fmt::Display for KeyRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl MiniscriptKey for KeyRef {
    hashes_of_bitcoin!();
}

/// Translates keys with a function, and keeps hashes.
struct Keys<F>(F);

impl<P, Q, E, F> Translator<P> for Keys<F>
where
    P: MiniscriptKey<
            Sha256 = sha256::Hash,
            Hash256 = hash256::Hash,
            Ripemd160 = ripemd160::Hash,
            Hash160 = hash160::Hash,
        >,
    Q: MiniscriptKey<Sha256 = P::Sha256, Hash256 = P::Hash256, Ripemd160 = P::Ripemd160, Hash160 = P::Hash160>,
    F: FnMut(&P) -> Result<Q, E>,
{
    type TargetPk = Q;
    type Error = E;
    fn pk(&mut self, key: &P) -> Result<Q, E> {
        self.0(key)
    }
    translate_hash_clone!(P);
}

/// Whether a text is miniscript in any context. Fails if a key in it is invalid.
pub(super) fn is_miniscript(text: &str, keys: &mut KeyParser) -> Result<bool, DescriptorError> {
    match read_with_keys::<Tap>(text, Context::Tr, keys)? {
        Ok(Some(parsed)) => translated(&parsed, Context::Tr, keys).map(|_| true),
        Ok(None) => Ok(false),
        Err(_) => Ok(true),
    }
}

/// Parses a miniscript; `None` if the text is not miniscript. Fails if a key is invalid, or the script not sane or satisfiable.
pub(super) fn parse<Ctx: ScriptContext>(
    text: &str,
    context: Context,
    keys: &mut KeyParser,
) -> Result<Option<Miniscript<KeyRef, Ctx>>, DescriptorError> {
    let Some(parsed) = read_with_keys::<Ctx>(text, context, keys)?? else { return Ok(None) };
    let translated = translated(&parsed, context, keys)?;
    // Repeated keys are found by their text, since equal keys have different numbers.
    let shown = |name: &KeyRef| Ok::<_, Infallible>(KeyText(keys.public_text(*name)));
    let shown = translated.translate_pk(&mut Keys(shown)).map_err(|_| invalid(text))?;
    if !(is_sane_part(&shown) && shown.ty.corr.base == Base::B && shown.requires_sig()) {
        return Err(insane(&shown));
    }
    if parsed.max_satisfaction_size().is_err() {
        return Err(format!("{shown} is not satisfiable").into());
    }
    Ok(Some(translated))
}

/// The aggregate keys of a miniscript. The crate would parse them as functions, so a name replaces each.
struct Musigs<'t>(Vec<&'t str>);

impl<'t> Musigs<'t> {
    /// The start of each name. No key begins with it.
    const NAME: &'static str = "musig@";

    /// Replaces aggregate keys by names, and returns the keys. A text that contains [`Self::NAME`] stays unchanged.
    fn take(text: &'t str) -> (String, Self) {
        let (mut named, mut keys, mut rest) = (String::with_capacity(text.len()), Vec::new(), text);
        while let Some(begin) = rest.find(MUSIG).filter(|_| !text.contains(Self::NAME)) {
            let (before, from) = rest.split_at(begin);
            let close = from.find(')').map_or(from.len(), |close| close + 1);
            let end = from.get(close..).and_then(|after| after.find([',', ')', '}']));
            let (key, after) = from.split_at(end.map_or(from.len(), |end| close + end));
            named = named + before + Self::NAME + &keys.len().to_string() + "@";
            keys.push(key);
            rest = after;
        }
        (named + rest, Self(keys))
    }

    /// Replaces the names in a text by their keys.
    fn restore(&self, text: &str) -> String {
        let name = |place: usize| format!("{}{place}@", Self::NAME);
        self.0.iter().enumerate().fold(text.to_owned(), |text, (place, key)| text.replace(&name(place), key))
    }
}

/// Parses a miniscript of any type, with keys as texts; `None` if the text is not miniscript. Fails if the types mismatch.
fn read<Ctx: ScriptContext>(text: &str, musig: bool) -> Result<Option<Miniscript<KeyText, Ctx>>, DescriptorError> {
    let (named, musigs) = if musig { Musigs::take(text) } else { (text.to_owned(), Musigs(Vec::new())) };
    let Ok(tree) = Tree::from_str(&named) else { return Ok(None) };
    match Miniscript::<KeyText, Ctx>::from_tree(tree.root()) {
        Ok(parsed) if parsed.contains_raw_pkh() => Ok(None),
        Ok(parsed) if musigs.0.is_empty() => Ok(Some(parsed)),
        Ok(parsed) => {
            let restored = |key: &KeyText| Ok::<_, Infallible>(KeyText(musigs.restore(&key.0)));
            parsed.translate_pk(&mut Keys(restored)).map(Some).map_err(|_| invalid(text))
        }
        Err(miniscript::Error::TypeCheck(reason)) => {
            // The message quotes the innermost part that fails.
            let part = reason.split_once('\u{ab}').and_then(|(_, rest)| rest.split_once('\u{bb}'));
            Err(invalid(&part.map_or_else(|| text.to_owned(), |(part, _)| musigs.restore(part))))
        }
        Err(_) => Ok(None),
    }
}

/// [`read`] of a text without empty keys. If that yields no miniscript, the outer error is that of an invalid key which bitcoind's parser
/// finds first.
fn read_with_keys<Ctx: ScriptContext>(
    text: &str,
    context: Context,
    keys: &mut KeyParser,
) -> Result<Result<Option<Miniscript<KeyText, Ctx>>, DescriptorError>, DescriptorError> {
    let has_keys = |parsed: &Miniscript<KeyText, Ctx>| parsed.iter_pk().all(|key| !key.0.is_empty());
    let read = read::<Ctx>(text, keys.syntax.musig).map(|parsed| parsed.filter(has_keys));
    if !matches!(read, Ok(Some(_))) {
        check_keys::<Ctx>(text, context, keys)?;
    }
    Ok(read)
}

/// Parses the keys of an expression from the left, as far as bitcoind's parser gets. Returns whether it gets to the end.
fn check_keys<Ctx: ScriptContext>(text: &str, context: Context, keys: &mut KeyParser) -> Result<bool, DescriptorError> {
    let unwrapped = match text.split_once(':') {
        Some((wrappers, rest))
            if !wrappers.is_empty() && wrappers.bytes().all(|wrapper| b"asctdvjnlu".contains(&wrapper)) =>
        {
            rest
        }
        _ => text,
    };
    let (name, mut rest) = unwrapped.strip_suffix(')').and_then(|call| call.split_once('(')).unwrap_or((unwrapped, ""));
    let mut key = |text: &str| match text.is_empty() && !keys.syntax.empty_keys {
        true => Ok(false),
        false => keys.key(text, context, false).map(|_| true),
    };
    if matches!(name, "pk" | "pkh" | "pk_k" | "pk_h") {
        return key(rest);
    }
    let mut parts = vec![expression(&mut rest)];
    while constant(',', &mut rest) {
        parts.push(expression(&mut rest));
    }
    let (first, others) = parts.split_first().map_or(("", &[][..]), |(first, others)| (*first, others));
    let threshold = first.parse::<i64>().ok();
    let (parts, count) = match (name, context) {
        ("multi", Context::Wsh) | ("multi_a", Context::Tr) if threshold.is_some() => {
            for part in others {
                if !key(part)? {
                    return Ok(false);
                }
            }
            (&[][..], 0)
        }
        ("thresh", _) if threshold.is_some_and(|least| least > 0) => (others, others.len()),
        ("andor", _) => (&parts[..], 3),
        ("and_n" | "and_b" | "and_v" | "or_b" | "or_c" | "or_d" | "or_i", _) => (&parts[..], 2),
        _ => (&[][..], 0),
    };
    if count == 0 && !matches!(read::<Ctx>(unwrapped, keys.syntax.musig), Ok(Some(_))) {
        return Ok(false);
    }
    for part in parts.iter().take(count) {
        if !check_keys::<Ctx>(part, context, keys)? {
            return Ok(false);
        }
    }
    Ok(parts.len() == count)
}

fn translated<Ctx: ScriptContext>(
    parsed: &Miniscript<KeyText, Ctx>,
    context: Context,
    keys: &mut KeyParser,
) -> Result<Miniscript<KeyRef, Ctx>, DescriptorError> {
    let translated = parsed.translate_pk(&mut Keys(|key: &KeyText| keys.key(&key.0, context, false)));
    translated.map_err(|error| match error {
        TranslateErr::TranslatorErr(error) => error,
        TranslateErr::OuterError(_) => invalid(&parsed.to_string()),
    })
}

fn invalid(expression: &str) -> DescriptorError {
    format!("{expression} is invalid").into()
}

/// Whether all satisfactions are within the resource limits, or there are none.
fn is_within_limits<Ctx: ScriptContext>(part: &Miniscript<KeyText, Ctx>) -> bool {
    part.within_resource_limits() || part.max_satisfaction_size().is_err()
}

/// Whether a part is sane. A whole expression must also require a signature.
fn is_sane_part<Ctx: ScriptContext>(part: &Miniscript<KeyText, Ctx>) -> bool {
    is_within_limits(part) && part.is_non_malleable() && !part.has_mixed_timelocks() && !part.has_repeated_keys()
}

/// The first innermost part that is not sane.
fn insane_part<Ctx: ScriptContext>(part: &Miniscript<KeyText, Ctx>) -> Option<&Miniscript<KeyText, Ctx>> {
    if is_sane_part(part) {
        // All parts of a sane expression are sane.
        return None;
    }
    part.branches().into_iter().find_map(insane_part).or(Some(part))
}

/// The error for an expression that is not sane, with bitcoind's messages and order of checks.
fn insane<Ctx: ScriptContext>(whole: &Miniscript<KeyText, Ctx>) -> DescriptorError {
    let inner = insane_part(whole);
    let part = inner.unwrap_or(whole);
    let is_whole = inner.is_none_or(|inner| std::ptr::eq(inner, whole));
    let reason = if !part.is_non_malleable() {
        ": malleable witnesses exist"
    } else if is_whole && !part.requires_sig() {
        ": witnesses without signature exist"
    } else if part.has_mixed_timelocks() {
        ": contains mixes of timelocks expressed in blocks and seconds"
    } else if part.has_repeated_keys() {
        ": contains duplicate public keys"
    } else if !is_within_limits(part) {
        ": needs witnesses that may exceed resource limits"
    } else {
        ""
    };
    format!("{part} is not sane{reason}").into()
}

/// The text of an expression, with keys shown by `key`.
pub(super) fn text<Ctx: ScriptContext>(expression: &Miniscript<KeyRef, Ctx>, key: &dyn Fn(KeyRef) -> String) -> String {
    let named = expression.translate_pk(&mut Keys(|name: &KeyRef| Ok::<_, Infallible>(KeyText(key(*name)))));
    named.map(|named| named.to_string()).unwrap_or_default()
}

/// The keys in `pk_h`. The script has only their hashes.
pub(super) fn hashed_keys(expression: &Miniscript<KeyRef, Tap>) -> Vec<KeyRef> {
    let hashed = |part: &Miniscript<KeyRef, Tap>| match part.as_inner() {
        Terminal::PkH(key) => Some(*key),
        _ => None,
    };
    expression.iter().filter_map(hashed).collect()
}

/// The script of an expression. In `tr`, the encoder takes the x-only form of each key.
pub(super) fn script<Ctx: ScriptContext>(
    expression: &Miniscript<KeyRef, Ctx>,
    derived: &[DerivedKey],
) -> Result<bitcoin::ScriptBuf, ExpandError> {
    let key = |name: &KeyRef| name.of(derived).map(|key| key.public);
    expression.translate_pk(&mut Keys(key)).map(|expression| expression.encode()).map_err(|_| ExpandError::Script)
}

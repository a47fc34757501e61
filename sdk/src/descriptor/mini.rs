//! Miniscript inside `wsh` and `tr`: what the crate `miniscript` reads, with this module's keys.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use bitcoin::PublicKey;
use bitcoin::hashes::{hash160, ripemd160, sha256};
use miniscript::miniscript::analyzable::AnalysisError;
use miniscript::{
    ExtParams, Miniscript, MiniscriptKey, ScriptContext, TranslateErr, Translator, hash256, translate_hash_clone,
};
use secp256k1::XOnlyPublicKey;

use super::error::{DescriptorError, ExpandError};
use super::key::Derived;
use super::key_parser::{Context, KeyParser};
use super::node::KeyRef;

macro_rules! hashes_of_bitcoin {
    () => {
        type Sha256 = sha256::Hash;
        type Hash256 = hash256::Hash;
        type Ripemd160 = ripemd160::Hash;
        type Hash160 = hash160::Hash;
    };
}

/// A key by its text.
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

/// Translates keys by a function and leaves hashes as they are.
struct Keys<F>(F);

impl<P, Q, E, F> Translator<P> for Keys<F>
where
    P: MiniscriptKey<
            Sha256 = sha256::Hash,
            Hash256 = hash256::Hash,
            Ripemd160 = ripemd160::Hash,
            Hash160 = hash160::Hash,
        >,
    Q: MiniscriptKey<
            Sha256 = sha256::Hash,
            Hash256 = hash256::Hash,
            Ripemd160 = ripemd160::Hash,
            Hash160 = hash160::Hash,
        >,
    F: FnMut(&P) -> Result<Q, E>,
{
    type TargetPk = Q;
    type Error = E;
    fn pk(&mut self, key: &P) -> Result<Q, E> {
        self.0(key)
    }
    translate_hash_clone!(P);
}

/// Reads a miniscript expression. None where the text is not one at all.
///
/// # Errors
/// When a key in it is bad, or when it is miniscript that cannot be used or should not be.
pub(super) fn parse<Ctx: ScriptContext>(
    text: &str,
    context: Context,
    keys: &mut KeyParser,
) -> Result<Option<Miniscript<KeyRef, Ctx>>, DescriptorError> {
    let invalid = || DescriptorError::MiniscriptInvalid(text.to_owned());
    let parsed = match Miniscript::<KeyText, Ctx>::from_str_ext(text, &ExtParams::insane()) {
        Ok(parsed) => parsed,
        Err(miniscript::Error::TypeCheck(_) | miniscript::Error::NonTopLevel(_)) => return Err(invalid()),
        Err(_) => return Ok(None),
    };
    let translated = parsed.translate_pk(&mut Keys(|key: &KeyText| keys.key(&key.0, context, false)));
    let translated = translated.map_err(|error| match error {
        TranslateErr::TranslatorErr(error) => error,
        TranslateErr::OuterError(_) => invalid(),
    })?;
    // Keys are compared as they were written: after the translation each has a number of its own.
    if let Err(error) = parsed.sanity_check() {
        return Err(DescriptorError::Insane { expression: text.to_owned(), reason: reason(&error) });
    }
    if parsed.max_satisfaction_size().is_err() {
        return Err(DescriptorError::Unsatisfiable(text.to_owned()));
    }
    Ok(Some(translated))
}

fn reason(error: &AnalysisError) -> &'static str {
    match error {
        AnalysisError::SiglessBranch => ": witnesses without signature exist",
        AnalysisError::Malleable => ": malleable witnesses exist",
        AnalysisError::HeightTimelockCombination => ": contains mixes of timelocks expressed in blocks and seconds",
        AnalysisError::RepeatedPubkeys => ": contains duplicate public keys",
        AnalysisError::BranchExceedResouceLimits => ": needs witnesses that may exceed resource limits",
        AnalysisError::ContainsRawPkh => "",
    }
}

/// The text of the expression with its keys as `key` shows them.
pub(super) fn text<Ctx: ScriptContext>(expression: &Miniscript<KeyRef, Ctx>, key: &dyn Fn(KeyRef) -> String) -> String {
    let named = expression.translate_pk(&mut Keys(|name: &KeyRef| Ok::<_, Infallible>(KeyText(key(*name)))));
    named.map(|named| named.to_string()).unwrap_or_default()
}

/// The script of an expression inside `wsh`.
pub(super) fn segwit_script(
    expression: &Miniscript<KeyRef, miniscript::Segwitv0>,
    derived: &[Derived],
) -> Result<bitcoin::ScriptBuf, ExpandError> {
    let key = |name: &KeyRef| -> Result<PublicKey, ExpandError> { Ok(name.of(derived)?.public) };
    expression.translate_pk(&mut Keys(key)).map(|expression| expression.encode()).map_err(|_| ExpandError::Script)
}

/// The script of an expression in a leaf of `tr`.
pub(super) fn tap_script(
    expression: &Miniscript<KeyRef, miniscript::Tap>,
    derived: &[Derived],
) -> Result<bitcoin::ScriptBuf, ExpandError> {
    let key = |name: &KeyRef| -> Result<XOnlyPublicKey, ExpandError> {
        Ok(name.of(derived)?.public.inner.x_only_public_key().0)
    };
    expression.translate_pk(&mut Keys(key)).map(|expression| expression.encode()).map_err(|_| ExpandError::Script)
}

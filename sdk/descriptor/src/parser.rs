//! Parses a descriptor: the checksum, then the expressions, with Bitcoin Core's checks, order and messages.

use bitcoin::address::NetworkUnchecked;
use bitcoin::{Address, Network, NetworkKind, ScriptBuf};
use miniscript::{Segwitv0, Tap};

use super::checksum::{CHECKSUM_LEN, checksum};
use super::error::DescriptorError as Error;
use super::key::Key;
use super::key_parser::{Context, KeyParser, uint32};
use super::key_ref::KeyRef;
use super::lexer::{arguments, check_nesting, constant, expression};
use super::limits::{
    MAX_BARE_MULTISIG_KEYS, MAX_LENGTH, MAX_MULTI_A_KEYS, MAX_MULTISIG_KEYS, MAX_REDEEM_SCRIPT, MAX_TREE_DEPTH,
};
use super::node::{Multi, Node};
use super::{Checksum, Syntax, mini};
use outrigger_values::params::decode_hex;

/// bitcoind's message for text after a complete expression: it is empty.
const TRAILING: &str = "";
const ADDRESS: &str = "Address is not valid";
const TREE_TOO_DEEP: &str = "tr() supports at most 128 nesting levels";

/// Parses the expressions of a descriptor, and its keys.
pub(super) fn parse(
    text: &str,
    network: Network,
    wanted: Checksum,
    syntax: Syntax,
) -> Result<(Node, KeyParser), Error> {
    if text.len() > MAX_LENGTH {
        return Err(format!("Descriptor has {} characters, more than {MAX_LENGTH}", text.len()).into());
    }
    let payload = check_checksum(text, wanted)?;
    check_nesting(payload)?;
    let mut parser = Parser { network, keys: KeyParser::new(NetworkKind::from(network), syntax) };
    let mut rest = payload;
    let node = parser.node(&mut rest, Context::Top)?;
    if rest.is_empty() { Ok((node, parser.keys)) } else { Err(TRAILING.into()) }
}

/// Checks the checksum. Returns the text before it.
fn check_checksum(text: &str, wanted: Checksum) -> Result<&str, Error> {
    let (payload, provided) = match text.split('#').collect::<Vec<_>>().as_slice() {
        [payload] if wanted == Checksum::Optional => (*payload, None),
        [_] => return Err("Missing checksum".into()),
        [payload, provided] => (*payload, Some(*provided)),
        _ => return Err("Multiple '#' symbols".into()),
    };
    if let Some(provided) = provided
        && provided.len() != CHECKSUM_LEN
    {
        return Err(format!("Expected 8 character checksum, not {} characters", provided.len()).into());
    }
    let computed = checksum(payload).ok_or("Invalid characters in payload")?;
    match provided {
        Some(provided) if provided != computed => {
            Err(format!("Provided checksum '{provided}' does not match computed checksum '{computed}'").into())
        }
        _ => Ok(payload),
    }
}

/// Refuses a function that is allowed at the top level only.
fn at_top(function: &str, context: Context) -> Result<(), Error> {
    if context == Context::Top { Ok(()) } else { Err(format!("Can only have {function} at top level").into()) }
}

struct Parser {
    network: Network,
    keys: KeyParser,
}

impl Parser {
    /// Removes an expression from `text` and parses it.
    fn node(&mut self, text: &mut &str, context: Context) -> Result<Node, Error> {
        let text = expression(text);
        if let Some(inner) = arguments("pk", text) {
            return Ok(Node::Pk(self.key("pk()", inner, context, true)?));
        }
        if let Some(inner) = arguments("pkh", text).filter(|_| context != Context::Tr) {
            return Ok(Node::Pkh(self.key("pkh()", inner, context, true)?));
        }
        if let Some(inner) = arguments("combo", text) {
            at_top("combo()", context)?;
            return Ok(Node::Combo(self.key("combo()", inner, context, true)?));
        }
        for (function, sorted, tap) in [
            ("sortedmulti", true, false),
            ("multi", false, false),
            ("sortedmulti_a", true, true),
            ("multi_a", false, true),
        ] {
            if let Some(inner) = arguments(function, text) {
                return self.multi(inner, sorted, tap, context);
            }
        }
        if let Some(inner) = arguments("wpkh", text) {
            return match context {
                Context::Top | Context::Sh => Ok(Node::Wpkh(self.key("wpkh()", inner, context, false)?)),
                _ => Err("Can only have wpkh() at top level or inside sh()".into()),
            };
        }
        self.nesting(text, context)
    }

    fn key(
        &mut self,
        function: &'static str,
        text: &str,
        context: Context,
        uncompressed: bool,
    ) -> Result<KeyRef, Error> {
        let key = self.keys.key(text, context, uncompressed);
        key.map_err(|error| format!("{function}: {error}").into())
    }

    /// Parses functions that contain others, and functions without keys.
    fn nesting(&mut self, text: &str, context: Context) -> Result<Node, Error> {
        if let Some(inner) = arguments("sh", text) {
            at_top("sh()", context)?;
            return Ok(Node::Sh(Box::new(self.inner(inner, Context::Sh)?)));
        }
        if let Some(inner) = arguments("wsh", text) {
            return match context {
                Context::Top | Context::Sh => Ok(Node::Wsh(Box::new(self.inner(inner, Context::Wsh)?))),
                _ => Err("Can only have wsh() at top level or inside sh()".into()),
            };
        }
        if let Some(inner) = arguments("tr", text) {
            at_top("tr", context)?;
            return self.taproot(inner);
        }
        if let Some(inner) = arguments("rawtr", text) {
            at_top("rawtr", context)?;
            return self.raw_taproot(inner);
        }
        if let Some(inner) = arguments("unused", text).filter(|_| self.keys.syntax.unused) {
            at_top("unused", context)?;
            return self.unused(inner);
        }
        if let Some(inner) = arguments("addr", text) {
            at_top("addr()", context)?;
            let address = inner.parse::<Address<NetworkUnchecked>>().map_err(|_| ADDRESS)?;
            return address.require_network(self.network).map(Node::Addr).map_err(|_| ADDRESS.into());
        }
        if let Some(inner) = arguments("raw", text) {
            at_top("raw()", context)?;
            let bytes = decode_hex(inner).filter(|bytes| !bytes.is_empty()).ok_or("Raw script is not hex")?;
            return Ok(Node::Raw(ScriptBuf::from_bytes(bytes)));
        }
        self.miniscript(text, context)
    }

    fn inner(&mut self, mut text: &str, context: Context) -> Result<Node, Error> {
        let node = self.node(&mut text, context)?;
        if text.is_empty() { Ok(node) } else { Err(TRAILING.into()) }
    }

    fn miniscript(&mut self, text: &str, context: Context) -> Result<Node, Error> {
        match context {
            Context::Wsh => match mini::parse::<Segwitv0>(text, context, &mut self.keys)? {
                Some(expression) => Ok(Node::Miniscript(Box::new(expression))),
                None => Err("A function is needed within P2WSH".into()),
            },
            Context::Tr => match mini::parse::<Tap>(text, context, &mut self.keys)? {
                Some(expression) => Ok(Node::TapMiniscript(Box::new(expression))),
                None => Err(format!("'{text}' is not a valid descriptor function").into()),
            },
            _ if mini::is_miniscript(text, &mut self.keys)? => {
                Err("Miniscript expressions can only be used in wsh or tr.".into())
            }
            Context::Sh => Err("A function is needed within P2SH".into()),
            Context::Top | Context::Musig => Err(format!("'{text}' is not a valid descriptor function").into()),
        }
    }

    /// Parses the threshold and the keys of `multi` and its variants.
    fn threshold_and_keys(&mut self, mut text: &str, sorted: bool, context: Context) -> Result<Multi, Error> {
        let threshold = expression(&mut text);
        let threshold = uint32(threshold, self.keys.syntax.strict)
            .ok_or_else(|| format!("Multi threshold '{threshold}' is not valid"))?;
        let mut keys = Vec::new();
        while let Some(found) = text.chars().next() {
            if !constant(',', &mut text) {
                return Err(format!("Multi: expected ',', got '{found}'").into());
            }
            keys.push(self.key("Multi", expression(&mut text), context, true)?);
        }
        Ok(Multi { threshold, keys, sorted })
    }

    /// Parses `multi` and `sortedmulti`, or with `tap` their variants in `tr`.
    fn multi(&mut self, text: &str, sorted: bool, tap: bool, context: Context) -> Result<Node, Error> {
        match (tap, context == Context::Tr) {
            (false, true) => return Err("Can only have multi/sortedmulti at top level, in sh(), or in wsh()".into()),
            (true, false) => return Err("Can only have multi_a/sortedmulti_a inside tr()".into()),
            _ => {}
        }
        let multi = self.threshold_and_keys(text, sorted, context)?;
        let (function, max) = if tap { ("multi_a", MAX_MULTI_A_KEYS) } else { ("multisig", MAX_MULTISIG_KEYS) };
        multi.check(function, max)?;
        match context {
            Context::Top if multi.keys.len() > MAX_BARE_MULTISIG_KEYS => {
                let count = multi.keys.len();
                Err(format!("Cannot have {count} pubkeys in bare multisig; only at most 3 pubkeys").into())
            }
            Context::Sh => {
                // A length byte per key; threshold, count and opcode take a byte each.
                let pushes = multi.keys.iter().filter_map(|key| self.keys.keys.get(key.0)).map(|key| key.size() + 1);
                match pushes.sum::<usize>() + 3 {
                    size if size > MAX_REDEEM_SCRIPT => {
                        Err(format!("P2SH script is too large, {size} bytes is larger than 520 bytes").into())
                    }
                    _ => Ok(Node::Multi(multi)),
                }
            }
            _ => Ok(Node::Multi(multi)),
        }
    }

    /// Parses the key of `unused()`, a key without scripts. As in bitcoind, errors of the key do not name the function.
    fn unused(&mut self, mut text: &str) -> Result<Node, Error> {
        let key = expression(&mut text);
        if !text.is_empty() {
            return Err("unused(): only one key expected".into());
        }
        let key = self.keys.key(key, Context::Top, true)?;
        if self.keys.keys.get(key.0).is_some_and(Key::is_ranged) {
            return Err("unused(): key cannot be ranged".into());
        }
        Ok(Node::Unused(key))
    }

    fn raw_taproot(&mut self, mut text: &str) -> Result<Node, Error> {
        let key = expression(&mut text);
        if !text.is_empty() {
            return Err("rawtr(): only one key expected.".into());
        }
        Ok(Node::RawTr(self.key("rawtr()", key, Context::Tr, false)?))
    }

    /// Parses `KEY` or `KEY,TREE`. A tree is a script or `{TREE,TREE}`.
    fn taproot(&mut self, mut text: &str) -> Result<Node, Error> {
        let internal = self.key("tr()", expression(&mut text), Context::Tr, false)?;
        let mut leaves = Vec::new();
        let Some(found) = text.chars().next() else {
            return Ok(Node::Tr(internal, leaves));
        };
        if !constant(',', &mut text) {
            return Err(format!("tr: expected ',', got '{found}'").into());
        }
        // For each open brace, whether its first half is complete.
        let mut path: Vec<bool> = Vec::new();
        loop {
            while constant('{', &mut text) {
                path.push(false);
                if path.len() > MAX_TREE_DEPTH {
                    return Err(TREE_TOO_DEEP.into());
                }
            }
            let depth = u8::try_from(path.len()).map_err(|_| TREE_TOO_DEEP)?;
            leaves.push((depth, self.node(&mut text, Context::Tr)?));
            while path.last() == Some(&true) {
                if !constant('}', &mut text) {
                    return Err("tr(): expected '}' after script expression".into());
                }
                path.pop();
            }
            let Some(half) = path.last_mut() else { break };
            if !constant(',', &mut text) {
                return Err("tr(): expected ',' after script expression".into());
            }
            *half = true;
        }
        if text.is_empty() {
            Ok(Node::Tr(internal, leaves))
        } else {
            Err("tr(): expected ')' after script expression".into())
        }
    }
}

impl Multi {
    fn check(&self, function: &'static str, max: usize) -> Result<(), Error> {
        match (self.threshold, self.keys.len()) {
            (_, count) if count == 0 || count > max => Err(format!(
                "Cannot have {count} keys in {function}; must have between 1 and {max} keys, inclusive"
            )
            .into()),
            (0, _) => Err("Multisig threshold cannot be 0, must be at least 1".into()),
            (threshold, keys) if usize::try_from(threshold).map_or(true, |threshold| threshold > keys) => {
                Err(format!(
                    "Multisig threshold cannot be larger than the number of keys; threshold is {threshold} but only {keys} keys specified"
                )
                .into())
            }
            _ => Ok(()),
        }
    }
}

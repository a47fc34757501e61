//! Parses a descriptor: the checksum, then the expressions, with Bitcoin Core 29's checks, order and messages.

use bitcoin::address::NetworkUnchecked;
use bitcoin::{Address, Network, NetworkKind, ScriptBuf};
use miniscript::{Segwitv0, Tap};

use super::checksum::{CHECKSUM_LEN, checksum};
use super::error::DescriptorError as Error;
use super::key_parser::{Context, KeyParser, uint32};
use super::key_ref::KeyRef;
use super::lexer::{arguments, check_nesting, constant, expression};
use super::limits::{
    MAX_BARE_MULTISIG_KEYS, MAX_LENGTH, MAX_MULTI_A_KEYS, MAX_MULTISIG_KEYS, MAX_REDEEM_SCRIPT, MAX_TREE_DEPTH,
};
use super::node::{Multi, Node};
use super::{Checksum, mini};
use outrigger_values::params::decode_hex;

/// Parses the expressions of a descriptor, and its keys.
pub(super) fn parse(text: &str, network: Network, wanted: Checksum) -> Result<(Node, KeyParser), Error> {
    if text.len() > MAX_LENGTH {
        return Err(Error::TooLong(text.len()));
    }
    let payload = check_checksum(text, wanted)?;
    check_nesting(payload)?;
    let mut parser = Parser { network, keys: KeyParser::new(NetworkKind::from(network)) };
    let mut rest = payload;
    let node = parser.node(&mut rest, Context::Top)?;
    if rest.is_empty() { Ok((node, parser.keys)) } else { Err(Error::Trailing) }
}

/// Checks the checksum. Returns the text before it.
fn check_checksum(text: &str, wanted: Checksum) -> Result<&str, Error> {
    let (payload, provided) = match text.split('#').collect::<Vec<_>>().as_slice() {
        [payload] if wanted == Checksum::Optional => (*payload, None),
        [_] => return Err(Error::MissingChecksum),
        [payload, provided] => (*payload, Some(*provided)),
        _ => return Err(Error::MultipleChecksums),
    };
    if let Some(provided) = provided
        && provided.len() != CHECKSUM_LEN
    {
        return Err(Error::ChecksumLength(provided.len()));
    }
    let computed = checksum(payload).ok_or(Error::InvalidCharacters)?;
    match provided {
        Some(provided) if provided != computed => {
            Err(Error::ChecksumMismatch { provided: provided.to_owned(), computed })
        }
        _ => Ok(payload),
    }
}

struct Parser {
    network: Network,
    keys: KeyParser,
}

impl Parser {
    /// Takes an expression off `text` and parses it.
    fn node(&mut self, text: &mut &str, context: Context) -> Result<Node, Error> {
        let text = expression(text);
        if let Some(inner) = arguments("pk", text) {
            return Ok(Node::Pk(self.key("pk()", inner, context, true)?));
        }
        if let Some(inner) = arguments("pkh", text).filter(|_| context != Context::Tr) {
            return Ok(Node::Pkh(self.key("pkh()", inner, context, true)?));
        }
        if let Some(inner) = arguments("combo", text) {
            return match context {
                Context::Top => Ok(Node::Combo(self.key("combo()", inner, context, true)?)),
                _ => Err(Error::Misplaced { function: "combo()", place: "at top level" }),
            };
        }
        for (function, sorted) in [("sortedmulti", true), ("multi", false)] {
            if let Some(inner) = arguments(function, text) {
                return self.multi(inner, sorted, context);
            }
        }
        for (function, sorted) in [("sortedmulti_a", true), ("multi_a", false)] {
            if let Some(inner) = arguments(function, text) {
                return self.multi_a(inner, sorted, context);
            }
        }
        if let Some(inner) = arguments("wpkh", text) {
            return match context {
                Context::Top | Context::Sh => Ok(Node::Wpkh(self.key("wpkh()", inner, context, false)?)),
                _ => Err(Error::Misplaced { function: "wpkh()", place: "at top level or inside sh()" }),
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
        key.map_err(|error| Error::KeyOf { function, error: Box::new(error) })
    }

    /// Parses functions that contain others, and functions without keys.
    fn nesting(&mut self, text: &str, context: Context) -> Result<Node, Error> {
        if let Some(inner) = arguments("sh", text) {
            return match context {
                Context::Top => Ok(Node::Sh(Box::new(self.inner(inner, Context::Sh)?))),
                _ => Err(Error::Misplaced { function: "sh()", place: "at top level" }),
            };
        }
        if let Some(inner) = arguments("wsh", text) {
            return match context {
                Context::Top | Context::Sh => Ok(Node::Wsh(Box::new(self.inner(inner, Context::Wsh)?))),
                _ => Err(Error::Misplaced { function: "wsh()", place: "at top level or inside sh()" }),
            };
        }
        for function in ["tr", "rawtr"] {
            if let Some(inner) = arguments(function, text) {
                return match (context, function) {
                    (Context::Top, "tr") => self.taproot(inner),
                    (Context::Top, _) => self.raw_taproot(inner),
                    _ => Err(Error::Misplaced { function, place: "at top level" }),
                };
            }
        }
        if context == Context::Top {
            if let Some(inner) = arguments("addr", text) {
                let address = inner.parse::<Address<NetworkUnchecked>>().map_err(|_| Error::Address)?;
                return address.require_network(self.network).map(Node::Addr).map_err(|_| Error::Address);
            }
            if let Some(inner) = arguments("raw", text) {
                let bytes = decode_hex(inner).filter(|bytes| !bytes.is_empty()).ok_or(Error::RawNotHex)?;
                return Ok(Node::Raw(ScriptBuf::from_bytes(bytes)));
            }
        }
        if context != Context::Top {
            for (function, name) in [("addr()", "addr"), ("raw()", "raw")] {
                if arguments(name, text).is_some() {
                    return Err(Error::Misplaced { function, place: "at top level" });
                }
            }
        }
        self.miniscript(text, context)
    }

    fn inner(&mut self, mut text: &str, context: Context) -> Result<Node, Error> {
        let node = self.node(&mut text, context)?;
        if text.is_empty() { Ok(node) } else { Err(Error::Trailing) }
    }

    fn miniscript(&mut self, text: &str, context: Context) -> Result<Node, Error> {
        match context {
            Context::Wsh => match mini::parse::<Segwitv0>(text, context, &mut self.keys)? {
                Some(expression) => Ok(Node::Miniscript(Box::new(expression))),
                None => Err(Error::FunctionNeeded("P2WSH")),
            },
            Context::Tr => match mini::parse::<Tap>(text, context, &mut self.keys)? {
                Some(expression) => Ok(Node::TapMiniscript(Box::new(expression))),
                None => Err(Error::UnknownFunction(text.to_owned())),
            },
            _ if mini::is_miniscript(text, &mut self.keys)? => Err(Error::MiniscriptMisplaced),
            Context::Sh => Err(Error::FunctionNeeded("P2SH")),
            Context::Top => Err(Error::UnknownFunction(text.to_owned())),
        }
    }

    /// Parses the threshold and the keys of `multi` and its variants.
    fn threshold_and_keys(&mut self, mut text: &str, sorted: bool, context: Context) -> Result<Multi, Error> {
        let threshold = expression(&mut text);
        let threshold = uint32(threshold).ok_or_else(|| Error::Threshold(threshold.to_owned()))?;
        let mut keys = Vec::new();
        while let Some(found) = text.chars().next() {
            if !constant(',', &mut text) {
                return Err(Error::Separator(found));
            }
            keys.push(self.key("Multi", expression(&mut text), context, true)?);
        }
        Ok(Multi { threshold, keys, sorted })
    }

    fn multi(&mut self, text: &str, sorted: bool, context: Context) -> Result<Node, Error> {
        if context == Context::Tr {
            let place = "at top level, in sh(), or in wsh()";
            return Err(Error::Misplaced { function: "multi/sortedmulti", place });
        }
        let multi = self.threshold_and_keys(text, sorted, context)?;
        multi.check("multisig", MAX_MULTISIG_KEYS)?;
        match context {
            Context::Top if multi.keys.len() > MAX_BARE_MULTISIG_KEYS => Err(Error::BareMultisig(multi.keys.len())),
            Context::Sh => {
                // A length byte per key; threshold, count and opcode take a byte each.
                let pushes = multi.keys.iter().filter_map(|key| self.keys.keys.get(key.0)).map(|key| key.size() + 1);
                match pushes.sum::<usize>() + 3 {
                    size if size > MAX_REDEEM_SCRIPT => Err(Error::RedeemScriptSize(size)),
                    _ => Ok(Node::Multi(multi)),
                }
            }
            _ => Ok(Node::Multi(multi)),
        }
    }

    fn multi_a(&mut self, text: &str, sorted: bool, context: Context) -> Result<Node, Error> {
        if context != Context::Tr {
            return Err(Error::Misplaced { function: "multi_a/sortedmulti_a", place: "inside tr()" });
        }
        let multi = self.threshold_and_keys(text, sorted, context)?;
        multi.check("multi_a", MAX_MULTI_A_KEYS)?;
        Ok(Node::Multi(multi))
    }

    fn raw_taproot(&mut self, mut text: &str) -> Result<Node, Error> {
        let key = expression(&mut text);
        if !text.is_empty() {
            return Err(Error::RawTrKeys);
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
            return Err(Error::TreeSeparator(found));
        }
        // For each open brace, whether its first half is complete.
        let mut path: Vec<bool> = Vec::new();
        loop {
            while constant('{', &mut text) {
                path.push(false);
                if path.len() > MAX_TREE_DEPTH {
                    return Err(Error::TreeTooDeep);
                }
            }
            let depth = u8::try_from(path.len()).map_err(|_| Error::TreeTooDeep)?;
            leaves.push((depth, self.node(&mut text, Context::Tr)?));
            while path.last() == Some(&true) {
                if !constant('}', &mut text) {
                    return Err(Error::TreeExpected('}'));
                }
                path.pop();
            }
            let Some(half) = path.last_mut() else { break };
            if !constant(',', &mut text) {
                return Err(Error::TreeExpected(','));
            }
            *half = true;
        }
        if text.is_empty() { Ok(Node::Tr(internal, leaves)) } else { Err(Error::TreeExpected(')')) }
    }
}

impl Multi {
    fn check(&self, function: &'static str, max: usize) -> Result<(), Error> {
        match (self.threshold, self.keys.len()) {
            (_, count) if count == 0 || count > max => Err(Error::KeyCount { function, count, max }),
            (0, _) => Err(Error::ThresholdZero),
            (threshold, keys) if usize::try_from(threshold).map_or(true, |threshold| threshold > keys) => {
                Err(Error::ThresholdTooLarge { threshold, keys })
            }
            _ => Ok(()),
        }
    }
}

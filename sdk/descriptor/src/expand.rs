//! Expands a descriptor at an index to scripts and solving data.

use std::borrow::Cow;

use bitcoin::key::TapTweak as _;
use bitcoin::opcodes::all::{OP_CHECKMULTISIG, OP_CHECKSIG, OP_CHECKSIGADD, OP_NUMEQUAL};
use bitcoin::script::Builder;
use bitcoin::taproot::{LeafVersion, TaprootBuilder};
use bitcoin::{Address, Network, ScriptBuf};

use super::checksum::with_checksum;
use super::error::ExpandError;
use super::key::DerivedKey;
use super::key_ref::KeyRef;
use super::mini;
use super::node::{Multi, Node};
use super::secp::SECP;
use super::{ExpandedScript, Expansion};
use outrigger_values::{Blob, KeyOrigin, SolvingData, TapLeaf, TaprootData};

pub(super) fn expand(node: &Node, derived: &[DerivedKey], network: Network) -> Result<Expansion, ExpandError> {
    let nodes = single(node, derived)?;
    let scripts = nodes.iter().map(|node| expanded(node, derived, network)).collect::<Result<_, _>>()?;
    Ok(Expansion { scripts })
}

/// The scripts without solving data.
pub(super) fn scripts(node: &Node, derived: &[DerivedKey]) -> Result<Vec<ScriptBuf>, ExpandError> {
    let mut solving = SolvingData::default();
    single(node, derived)?.iter().map(|node| script_pubkey(node, derived, &mut solving)).collect()
}

/// The definite descriptor of the script at index `place`; `None` if there is none.
pub(super) fn definite_at(
    node: &Node,
    derived: &[DerivedKey],
    place: usize,
    network: Network,
) -> Result<Option<String>, ExpandError> {
    let nodes = single(node, derived)?;
    let Some(node) = nodes.get(place) else { return Ok(None) };
    let script = script_pubkey(node, derived, &mut SolvingData::default())?;
    definite(node, derived, &script, network).map(|text| Some(with_checksum(&text)))
}

/// One expression for each script of `node`: several for `combo`, none for `unused`.
fn single<'n>(node: &'n Node, derived: &[DerivedKey]) -> Result<Vec<Cow<'n, Node>>, ExpandError> {
    let key = match node {
        Node::Combo(key) => key,
        Node::Unused(_) => return Ok(Vec::new()),
        _ => return Ok(vec![Cow::Borrowed(node)]),
    };
    let mut nodes = vec![Node::Pk(*key), Node::Pkh(*key)];
    if key.of(derived)?.public.compressed {
        nodes.push(Node::Wpkh(*key));
        nodes.push(Node::Sh(Box::new(Node::Wpkh(*key))));
    }
    Ok(nodes.into_iter().map(Cow::Owned).collect())
}

fn expanded(node: &Node, derived: &[DerivedKey], network: Network) -> Result<ExpandedScript, ExpandError> {
    let mut solving = SolvingData::default();
    let script_pubkey = script_pubkey(node, derived, &mut solving)?;
    let origin = |key: &DerivedKey| KeyOrigin {
        public_key: Blob(key.public.to_bytes()),
        fingerprint: key.fingerprint,
        path: key.path_text(),
    };
    let definite = with_checksum(&definite(node, derived, &script_pubkey, network)?);
    Ok(ExpandedScript { script_pubkey, solving, origins: derived.iter().map(origin).collect(), definite })
}

/// The script of an expression outside of script trees. Adds to `solving` the hashed scripts and all keys but those of
/// multisigs and `rawtr`, which bitcoind does not find by hash.
fn script_pubkey(node: &Node, derived: &[DerivedKey], solving: &mut SolvingData) -> Result<ScriptBuf, ExpandError> {
    let key = |name: &KeyRef| name.of(derived).map(|key| key.public);
    if let Node::Pk(name) | Node::Pkh(name) | Node::Wpkh(name) = node {
        solving.public_keys.push(Blob(key(name)?.to_bytes()));
    }
    Ok(match node {
        Node::Pk(name) => ScriptBuf::new_p2pk(&key(name)?),
        Node::Pkh(name) => ScriptBuf::new_p2pkh(&key(name)?.pubkey_hash()),
        Node::Wpkh(name) => ScriptBuf::new_p2wpkh(&key(name)?.wpubkey_hash().map_err(|_| ExpandError::Script)?),
        Node::Multi(multi) => multisig(multi, derived)?,
        Node::Miniscript(expression) => {
            for name in expression.iter_pk() {
                solving.public_keys.push(Blob(key(&name)?.to_bytes()));
            }
            mini::script(expression, derived)?
        }
        Node::Sh(inner) => nested(inner, derived, solving)?.to_p2sh(),
        Node::Wsh(inner) => nested(inner, derived, solving)?.to_p2wsh(),
        Node::Tr(internal, leaves) => taproot(*internal, leaves, derived, solving)?,
        Node::RawTr(name) => ScriptBuf::new_p2tr_tweaked(name.of(derived)?.x_only().dangerous_assume_tweaked()),
        Node::Addr(address) => address.script_pubkey(),
        Node::Raw(script) => script.clone(),
        Node::Combo(_) | Node::Unused(_) | Node::TapMiniscript(_) => return Err(ExpandError::Script),
    })
}

/// The script of an inner expression. Inserts it in `solving` before the scripts that it contains.
fn nested(inner: &Node, derived: &[DerivedKey], solving: &mut SolvingData) -> Result<ScriptBuf, ExpandError> {
    let place = solving.scripts.len();
    let script = script_pubkey(inner, derived, solving)?;
    solving.scripts.insert(place, script.clone());
    Ok(script)
}

impl Multi {
    /// The keys in the order of the script.
    fn in_order(&self, derived: &[DerivedKey], tap: bool) -> Vec<KeyRef> {
        let mut keys = self.keys.clone();
        let bytes = |key: &DerivedKey| if tap { key.x_only().serialize().to_vec() } else { key.public.to_bytes() };
        if self.sorted {
            keys.sort_by_cached_key(|name| name.of(derived).ok().map(bytes));
        }
        keys
    }
}

fn multisig(multi: &Multi, derived: &[DerivedKey]) -> Result<ScriptBuf, ExpandError> {
    let count = i64::try_from(multi.keys.len()).map_err(|_| ExpandError::Script)?;
    let mut script = Builder::new().push_int(multi.threshold.into());
    for name in multi.in_order(derived, false) {
        script = script.push_key(&name.of(derived)?.public);
    }
    Ok(script.push_int(count).push_opcode(OP_CHECKMULTISIG).into_script())
}

fn leaf_script(node: &Node, derived: &[DerivedKey]) -> Result<ScriptBuf, ExpandError> {
    match node {
        Node::Pk(name) => {
            Ok(Builder::new().push_x_only_key(&name.of(derived)?.x_only()).push_opcode(OP_CHECKSIG).into_script())
        }
        Node::Multi(multi) => {
            let mut script = Builder::new();
            for (index, name) in multi.in_order(derived, true).into_iter().enumerate() {
                let check = if index == 0 { OP_CHECKSIG } else { OP_CHECKSIGADD };
                script = script.push_x_only_key(&name.of(derived)?.x_only()).push_opcode(check);
            }
            Ok(script.push_int(multi.threshold.into()).push_opcode(OP_NUMEQUAL).into_script())
        }
        Node::TapMiniscript(expression) => mini::script(expression, derived),
        _ => Err(ExpandError::Script),
    }
}

fn taproot(
    internal: KeyRef,
    leaves: &[(u8, Node)],
    derived: &[DerivedKey],
    solving: &mut SolvingData,
) -> Result<ScriptBuf, ExpandError> {
    solving.public_keys.push(Blob(internal.of(derived)?.public.to_bytes()));
    for (_, leaf) in leaves {
        match leaf {
            Node::Pk(name) => solving.public_keys.push(Blob(name.of(derived)?.public.to_bytes())),
            Node::TapMiniscript(expression) => {
                for name in expression.iter_pk() {
                    solving.public_keys.push(Blob(name.of(derived)?.x_only().serialize().to_vec()));
                }
            }
            _ => {}
        }
    }
    let internal = internal.of(derived)?.x_only();
    let scripts = leaves.iter().map(|(depth, leaf)| Ok((*depth, leaf_script(leaf, derived)?)));
    let scripts = scripts.collect::<Result<Vec<_>, ExpandError>>()?;
    let builder = scripts.iter().try_fold(TaprootBuilder::new(), |builder, (depth, script)| {
        builder.add_leaf(*depth, script.clone()).map_err(|_| ExpandError::Script)
    })?;
    let spend_info = builder.finalize(&SECP, internal).map_err(|_| ExpandError::Script)?;
    let leaf = |(_, script): (u8, ScriptBuf)| {
        let leaf = (script, LeafVersion::TapScript);
        let control_block = spend_info.control_block(&leaf).ok_or(ExpandError::Script)?;
        Ok(TapLeaf { script: leaf.0, control_block: Blob(control_block.serialize()) })
    };
    solving.taproot = Some(TaprootData {
        internal_key: internal.serialize(),
        merkle_root: spend_info.merkle_root().map(|root| *bitcoin::hashes::Hash::as_byte_array(&root)),
        leaves: scripts.into_iter().map(leaf).collect::<Result<_, ExpandError>>()?,
    });
    Ok(ScriptBuf::new_p2tr_tweaked(spend_info.output_key()))
}

/// The definite descriptor of a script: with key origins and without `sortedmulti`; for `raw`, the address if any.
fn definite(node: &Node, derived: &[DerivedKey], script: &ScriptBuf, network: Network) -> Result<String, ExpandError> {
    if let Node::Raw(_) = node
        && let Ok(address) = Address::from_script(script, network)
    {
        return Ok(Node::Addr(address).text(&|_, _| String::new()));
    }
    let show = |name: KeyRef, x_only: bool| name.of(derived).map(|key| key.text(x_only)).unwrap_or_default();
    Ok(in_definite_order(node, derived, false)?.text(&show))
}

/// `node` with each `sortedmulti` as the equivalent `multi`.
fn in_definite_order(node: &Node, derived: &[DerivedKey], tap: bool) -> Result<Node, ExpandError> {
    Ok(match node {
        Node::Multi(multi) => {
            let (threshold, keys) = (multi.threshold, multi.in_order(derived, tap));
            Node::Multi(Multi { threshold, keys, sorted: false })
        }
        Node::Sh(inner) => Node::Sh(Box::new(in_definite_order(inner, derived, tap)?)),
        Node::Wsh(inner) => Node::Wsh(Box::new(in_definite_order(inner, derived, tap)?)),
        Node::Tr(internal, leaves) => {
            let leaf = |(depth, leaf): &(u8, Node)| Ok((*depth, in_definite_order(leaf, derived, true)?));
            let leaves = leaves.iter().map(leaf).collect::<Result<Vec<_>, ExpandError>>()?;
            Node::Tr(*internal, tree_in_definite_order(leaves, derived)?)
        }
        other => other.clone(),
    })
}

struct Subtree {
    depth: u8,
    least_script: ScriptBuf,
    leaves: Vec<(u8, Node)>,
}

/// The tree with each branch's halves ordered by their least script. bitcoind rebuilds trees from control blocks,
/// which do not distinguish left and right.
fn tree_in_definite_order(leaves: Vec<(u8, Node)>, derived: &[DerivedKey]) -> Result<Vec<(u8, Node)>, ExpandError> {
    let mut done: Vec<Subtree> = Vec::new();
    for (depth, leaf) in leaves {
        let mut right = Subtree { depth, least_script: leaf_script(&leaf, derived)?, leaves: vec![(depth, leaf)] };
        while let Some(left) = done.pop_if(|left| left.depth == right.depth && right.depth > 0) {
            let swap = right.least_script < left.least_script;
            let (mut first, second) = if swap { (right, left) } else { (left, right) };
            first.leaves.extend(second.leaves);
            first.depth -= 1;
            right = first;
        }
        done.push(right);
    }
    Ok(done.into_iter().flat_map(|subtree| subtree.leaves).collect())
}

//! Infers the descriptor of a scriptPubKey, as Bitcoin Core 29's `desc`.

use bitcoin::secp256k1::XOnlyPublicKey;
use bitcoin::{Network, PublicKey, Script};
use miniscript::descriptor::checksum::Engine;
use miniscript::{Miniscript, Segwitv0};

use super::address::from_script;
use super::kind::{ScriptKind, classify};
use outrigger_values::params::{encode_hex, push_hex};

/// The descriptor of a scriptPubKey without solving data, with checksum: `pk`, `multi` and `rawtr` for scripts that
/// contain their keys, otherwise `addr`, or `raw` without an address.
pub fn infer(script: &Script, network: Network) -> String {
    let text = of_keys(&classify(script))
        .or_else(|| from_script(script, network).map(|address| format!("addr({address})")))
        .unwrap_or_default();
    if !text.is_empty() {
        return with_checksum(text);
    }
    let mut raw = Vec::with_capacity(2 * script.len() + RAW_EXTRA);
    push_raw(&mut raw, script);
    // The text is ASCII.
    String::from_utf8(raw).unwrap_or_default()
}

/// At least the length of a `raw` descriptor without its script.
const RAW_EXTRA: usize = 16;

/// Appends the `raw` descriptor of a script, which may have megabytes, with checksum. JSON needs no escapes for it.
pub fn push_raw(text: &mut Vec<u8>, script: &Script) {
    let begin = text.len();
    text.extend_from_slice(b"raw(");
    push_hex(text, script.as_bytes());
    text.push(b')');
    let mut engine = Engine::new();
    let raw = text.get(begin..).and_then(|raw| std::str::from_utf8(raw).ok()).unwrap_or_default();
    // All its characters are valid.
    if engine.input(raw).is_ok() {
        text.extend_from_slice(format!("#{}", engine.checksum()).as_bytes());
    }
}

/// The `wsh` descriptor of a witness script without solving data, with checksum. `None` for scripts other than
/// multisigs and sane miniscripts, and for scripts with key hashes.
pub fn infer_witness_script(script: &Script) -> Option<String> {
    let inner = match classify(script) {
        kind @ ScriptKind::Multisig { .. } => of_keys(&kind)?,
        _ => Miniscript::<PublicKey, Segwitv0>::decode(script).ok()?.to_string(),
    };
    // `expr_raw` is the library's text for a hash without its key.
    (!inner.contains("expr_raw")).then(|| with_checksum(format!("wsh({inner})")))
}

/// Appends the checksum to a descriptor.
pub fn with_checksum(descriptor: String) -> String {
    let mut engine = Engine::new();
    match engine.input(&descriptor) {
        Ok(()) => format!("{descriptor}#{}", engine.checksum()),
        // All characters from this crate are valid.
        Err(_) => descriptor,
    }
}

fn of_keys(kind: &ScriptKind<'_>) -> Option<String> {
    match kind {
        ScriptKind::PubKey { key } => Some(format!("pk({})", key_text(key)?)),
        ScriptKind::Multisig { required, keys } => {
            let keys: Option<Vec<String>> = keys.iter().map(|key| key_text(key)).collect();
            Some(format!("multi({required},{})", keys?.join(",")))
        }
        ScriptKind::Taproot { key } => XOnlyPublicKey::from_slice(&key[..]).ok().map(|key| format!("rawtr({key})")),
        _ => None,
    }
}

/// A key in a descriptor; `None` for a hybrid key, which descriptors do not allow.
fn key_text(key: &[u8]) -> Option<String> {
    (!matches!(key.first(), Some(6 | 7))).then(|| encode_hex(key))
}

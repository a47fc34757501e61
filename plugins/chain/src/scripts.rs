//! `validateaddress` and `decodescript`.

use bitcoin::hashes::Hash;
use bitcoin::script::Instruction;
use bitcoin::{Script, ScriptBuf, WPubkeyHash};
use outrigger_sdk::methods::Json;
use outrigger_sdk::params::{self, encode_hex};
use outrigger_sdk::script::limits::MAX_SCRIPT_SIZE;
use outrigger_sdk::script::parse::is_unspendable;
use outrigger_sdk::standard::{
    ScriptKind, address_json, classify, descriptor, from_script, has_valid_ops, push_asm, script_json, to_script,
};
use outrigger_sdk::{Call, RpcError, methods};
use serde_json::{Map, Value, json};

use crate::ChainPlugin;

#[methods(inline)]
impl ChainPlugin {
    /// Tells whether a text is an address of this network, and describes its script.
    ///
    /// * `address` - The address.
    ///
    /// # Result
    /// {"isvalid": bool, "address": "address", "scriptPubKey": "hex", "isscript": bool, "iswitness": bool,
    /// "witness_version": n, "witness_program": "hex", "error_locations": [...], "error": "text"}    (json object)
    #[method(category = "Util")]
    fn validateaddress(call: &Call<'_>, address: &str) -> Result<Value, RpcError> {
        let network = call.network()?;
        match to_script(address, network) {
            Ok(script) => {
                let mut object = Map::new();
                object.insert("isvalid".into(), json!(true));
                object.insert("address".into(), json!(from_script(&script, network)));
                object.insert("scriptPubKey".into(), json!(encode_hex(script.as_bytes())));
                object.extend(address_json(&script));
                Ok(Value::Object(object))
            }
            Err(error) => Ok(json!({
                "isvalid": false,
                "error_locations": error.locations,
                "error": error.message,
            })),
        }
    }

    /// Decodes a script, and gives the addresses of its P2SH and segwit outputs.
    ///
    /// * `hexstring` - The script. It may be empty.
    ///
    /// # Result
    /// {"asm": "text", "desc": "descriptor", "address": "address", "type": "type", "p2sh": "address", "segwit":
    /// {...}}    (json object)
    ///
    /// # Example
    /// 51
    #[method(category = "Rawtransactions")]
    fn decodescript(call: &Call<'_>, #[arg(kind = "hex")] hexstring: String) -> Result<Json, RpcError> {
        let script = match hexstring.is_empty() {
            true => ScriptBuf::new(),
            // Passing the text by value frees it early. It may have many megabytes.
            false => ScriptBuf::from_bytes(params::hex(&Value::String(hexstring), "argument")?),
        };
        if script.len() > MAX_SCRIPT_SIZE {
            return Ok(Json(oversized_json(&script)));
        }
        Ok(Json(script_with_wrappers(call, &script)?.to_string().into_bytes()))
    }
}

/// The answer for a script above the size limit, which has no address and which no P2SH or P2WSH output can wrap. The script may
/// have many megabytes, so the function writes the JSON directly.
fn oversized_json(script: &Script) -> Vec<u8> {
    // `asm` and `desc` each contain the script in hexadecimal.
    let mut text = Vec::with_capacity(4 * script.len() + 256);
    text.extend_from_slice(b"{\"asm\":\"");
    push_asm(&mut text, script);
    text.extend_from_slice(b"\",\"desc\":\"");
    descriptor::push_raw(&mut text, script);
    text.extend_from_slice(format!("\",\"type\":\"{}\"}}", classify(script).name()).as_bytes());
    text
}

fn script_with_wrappers(call: &Call<'_>, script: &Script) -> Result<Value, RpcError> {
    let network = call.network()?;
    let mut object = script_json(script, network);
    object.shift_remove("hex");
    let kind = classify(script);
    if !can_be_wrapped(script, &kind) {
        return Ok(Value::Object(object));
    }
    let pays_to = |script: &Script| from_script(&script.to_p2sh(), network);
    object.insert("p2sh".into(), json!(pays_to(script)));
    if let Some(program) = witness_program(script, &kind) {
        let mut segwit = script_json(&program, network);
        if let (true, Some(text)) = (program.is_p2wsh(), descriptor::infer_witness_script(script)) {
            segwit.insert("desc".into(), json!(text));
        }
        segwit.insert("p2sh-segwit".into(), json!(pays_to(&program)));
        object.insert("segwit".into(), Value::Object(segwit));
    }
    Ok(Value::Object(object))
}

/// Whether bitcoind shows a P2SH address for a script.
fn can_be_wrapped(script: &Script, kind: &ScriptKind<'_>) -> bool {
    let wrapped_already = matches!(
        kind,
        ScriptKind::NullData
            | ScriptKind::ScriptHash { .. }
            | ScriptKind::WitnessUnknown { .. }
            | ScriptKind::Taproot { .. }
            | ScriptKind::Anchor
    );
    // The OP_SUCCESSx opcodes of tapscript (BIP 342) below OP_CHECKSIGADD.
    let is_success = |opcode: u8| matches!(opcode, 80 | 98 | 126..=129 | 131..=134 | 137 | 138 | 141 | 142 | 149..=153);
    let has_success = script
        .instructions()
        .any(|instruction| matches!(instruction, Ok(Instruction::Op(opcode)) if is_success(opcode.to_u8())));
    !wrapped_already && has_valid_ops(script) && !is_unspendable(script.as_bytes()) && !has_success
}

/// The witness program for a script or its key; `None` if segwit does not allow it.
fn witness_program(script: &Script, kind: &ScriptKind<'_>) -> Option<ScriptBuf> {
    /// The length of a compressed key, in bytes. Segwit allows no other keys.
    const COMPRESSED: usize = 33;
    match kind {
        ScriptKind::PubKey { key } => (key.len() == COMPRESSED).then(|| ScriptBuf::new_p2wpkh(&WPubkeyHash::hash(key))),
        ScriptKind::PubKeyHash { hash } => Some(ScriptBuf::new_p2wpkh(&WPubkeyHash::from_byte_array(**hash))),
        ScriptKind::Multisig { keys, .. } => keys.iter().all(|key| key.len() == COMPRESSED).then(|| script.to_p2wsh()),
        ScriptKind::NonStandard => Some(script.to_p2wsh()),
        _ => None,
    }
}

//! Decoded transactions in Bitcoin Core 29's format (`decoderawtransaction` and others).

use bitcoin::{Amount, Network, Script, SignedAmount, Transaction, TxIn};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value, json};

use super::address::from_script;
use super::asm::{asm, asm_sighash};
use super::descriptor;
use super::kind::{ScriptKind, classify};
use outrigger_values::params::encode_hex;
use outrigger_values::{Coin, amount};

/// The members that describe the script of an address: `isscript`, `iswitness`, `witness_version` and `witness_program`.
pub fn address_json(script: &Script) -> Map<String, Value> {
    let (is_script, program): (Option<bool>, Option<(u8, &[u8])>) = match classify(script) {
        ScriptKind::ScriptHash { .. } | ScriptKind::Anchor => (Some(true), None),
        ScriptKind::WitnessV0KeyHash { hash } => (Some(false), Some((0, hash))),
        ScriptKind::WitnessV0ScriptHash { hash } => (Some(true), Some((0, hash))),
        ScriptKind::Taproot { key } => (Some(true), Some((1, key))),
        ScriptKind::WitnessUnknown { version, program } => (None, Some((version, program))),
        _ => (Some(false), None),
    };
    let mut object = Map::new();
    if let Some(is_script) = is_script {
        object.insert("isscript".into(), json!(is_script));
    }
    object.insert("iswitness".into(), json!(script.is_witness_program()));
    // bitcoind shows no version and no program for an anchor.
    if let Some((version, program)) = program {
        object.insert("witness_version".into(), json!(version));
        object.insert("witness_program".into(), json!(encode_hex(program)));
    }
    object
}

/// The spent outputs of a decoded transaction.
#[derive(Clone, Copy)]
pub struct Spent<'a> {
    /// The outputs that it spends, in the order of the inputs.
    pub coins: &'a [Coin],
    /// Whether inputs get `prevout`; otherwise they serve only for the fee.
    pub show: bool,
}

/// A decoded transaction, without block and hex. With the spent outputs, it has `prevout` in inputs, and `fee` at the
/// end. A coinbase has neither.
pub fn transaction_json(transaction: &Transaction, network: Network, spent: Option<Spent<'_>>) -> Map<String, Value> {
    let spent = spent.filter(|_| !transaction.is_coinbase());
    let mut object = head_json(transaction);
    object.insert("vin".into(), inputs_json(transaction, network, spent).collect());
    object.insert("vout".into(), outputs_json(transaction, network, &[]).collect());
    if let Some(spent) = spent {
        let total = |values: &mut dyn Iterator<Item = u64>| values.fold(0_i64, |sum, v| sum.wrapping_add_unsigned(v));
        let paid = total(&mut spent.coins.iter().map(|coin| coin.output.value.to_sat()));
        let received = total(&mut transaction.output.iter().map(|output| output.value.to_sat()));
        object.insert("fee".into(), amount::to_json(SignedAmount::from_sat(paid.wrapping_sub(received))));
    }
    object
}

/// Serialises as [`transaction_json`], one input or output at a time: a `Value` tree takes up to a hundred times the memory.
#[derive(Clone, Copy)]
pub struct Shown<'a> {
    /// The transaction.
    pub transaction: &'a Transaction,
    /// The network of its addresses.
    pub network: Network,
    /// For each output, whether it is change of a wallet and gets `ischange`. Outputs beyond the list are not.
    pub change: &'a [bool],
}

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { transaction, network, change } = *self;
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in head_json(transaction) {
            map.serialize_entry(&name, &value)?;
        }
        map.serialize_entry("vin", &Each(|| inputs_json(transaction, network, None)))?;
        map.serialize_entry("vout", &Each(|| outputs_json(transaction, network, change)))?;
        map.end()
    }
}

/// A list that generates its elements during serialisation.
struct Each<F>(F);

impl<I: Iterator<Item = Value>, F: Fn() -> I> Serialize for Each<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

fn inputs_json<'a>(
    transaction: &'a Transaction,
    network: Network,
    spent: Option<Spent<'a>>,
) -> impl Iterator<Item = Value> + 'a {
    let is_coinbase = transaction.is_coinbase();
    let shown = move |index: usize| spent.filter(|spent| spent.show)?.coins.get(index);
    let inputs = transaction.input.iter().enumerate();
    inputs.map(move |(index, input)| Value::Object(input_json(input, is_coinbase, shown(index), network)))
}

fn outputs_json<'a>(
    transaction: &'a Transaction,
    network: Network,
    change: &'a [bool],
) -> impl Iterator<Item = Value> + 'a {
    transaction.output.iter().enumerate().map(move |(index, output)| {
        let mut object = json!({
            "value": amount::to_json(signed(output.value)),
            "n": index,
            "scriptPubKey": script_json(&output.script_pubkey, network),
        });
        if change.get(index) == Some(&true) {
            object["ischange"] = json!(true);
        }
        object
    })
}

/// The members before the inputs.
fn head_json(transaction: &Transaction) -> Map<String, Value> {
    let mut object = Map::new();
    // Without a witness both serialisations are equal, but without inputs the library would count the marker.
    let has_witness = transaction.input.iter().any(|input| !input.witness.is_empty());
    let size = if has_witness { transaction.total_size() } else { transaction.base_size() };
    let weight = transaction.base_size() * 3 + size;
    let txid = transaction.compute_txid();
    object.insert("txid".into(), json!(txid));
    object.insert("hash".into(), if has_witness { json!(transaction.compute_wtxid()) } else { json!(txid) });
    object.insert("version".into(), json!(transaction.version.0.cast_unsigned()));
    object.insert("size".into(), json!(size));
    object.insert("vsize".into(), json!(weight.div_ceil(4)));
    object.insert("weight".into(), json!(weight));
    object.insert("locktime".into(), json!(transaction.lock_time.to_consensus_u32()));
    object
}

/// A value as bitcoind reads it, signed: in a transaction that is only decoded, it may be any integer.
fn signed(value: Amount) -> SignedAmount {
    SignedAmount::from_sat(value.to_sat().cast_signed())
}

fn input_json(input: &TxIn, coinbase: bool, prevout: Option<&Coin>, network: Network) -> Map<String, Value> {
    let mut object = Map::new();
    if coinbase {
        object.insert("coinbase".into(), json!(encode_hex(input.script_sig.as_bytes())));
    } else {
        object.insert("txid".into(), json!(input.previous_output.txid));
        object.insert("vout".into(), json!(input.previous_output.vout));
        let script = json!({"asm": asm_sighash(&input.script_sig), "hex": encode_hex(input.script_sig.as_bytes())});
        object.insert("scriptSig".into(), script);
    }
    if !input.witness.is_empty() {
        let witness: Vec<String> = input.witness.iter().map(encode_hex).collect();
        object.insert("txinwitness".into(), json!(witness));
    }
    if let Some(coin) = prevout {
        let prevout = json!({
            "generated": coin.coinbase,
            "height": coin.height,
            "value": amount::to_json(signed(coin.output.value)),
            "scriptPubKey": script_json(&coin.output.script_pubkey, network),
        });
        object.insert("prevout".into(), prevout);
    }
    object.insert("sequence".into(), json!(input.sequence.0));
    object
}

/// A scriptPubKey in Bitcoin Core 29's format: `asm`, `desc`, `hex`, `address` if it has one, `type`.
pub fn script_json(script: &Script, network: Network) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("asm".into(), json!(asm(script)));
    object.insert("desc".into(), json!(descriptor::infer(script, network)));
    object.insert("hex".into(), json!(encode_hex(script.as_bytes())));
    if let Some(address) = from_script(script, network) {
        object.insert("address".into(), json!(address));
    }
    object.insert("type".into(), json!(classify(script).name()));
    object
}

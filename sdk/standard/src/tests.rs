//! Comparisons with recorded answers of Bitcoin Core 29, and with its address vectors.

use bitcoin::{Network, Script, ScriptBuf};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use outrigger_values::params::decode_hex;

fn script(hex: &str) -> ScriptBuf {
    ScriptBuf::from_bytes(decode_hex(hex).unwrap())
}

/// Outputs as Bitcoin Core 29 shows them on regtest.
#[test]
fn script_pub_key_of_outputs_reads_as_recorded() {
    let recorded: Vec<Value> = serde_json::from_str(include_str!("recorded.json")).unwrap();
    for row in recorded {
        let script = script(row["hex"].as_str().unwrap());
        assert_eq!(Value::Object(script_json(&script, Network::Regtest)).to_string(), row.to_string());
        let address = row["address"].as_str();
        assert_eq!(written(&script, Network::Regtest).as_deref(), address, "{row}");
        if let Some(address) = address {
            assert_eq!(to_script(address, Network::Regtest), Ok(script), "{address}");
        }
    }
}

#[test]
fn witness_scripts_that_hold_their_keys_have_a_descriptor() {
    let key = "033cc1e194f294477237e34145492a29d7161a3823ca0b619f1ee6d298d5aa19f2";
    let infer = |hex: String| descriptor::infer_witness_script(&script(&hex));
    let miniscript = infer(format!("21{key}ad5ab2"));
    assert_eq!(miniscript, Some(format!("wsh(and_v(v:pk({key}),older(10)))#c434ug6z")));
    assert_eq!(infer("51".into()), None);
    assert_eq!(infer(format!("76a914{}88ac", "11".repeat(20))), None);
    assert_eq!(infer(format!("5121{key}51ae")).unwrap().split('#').next(), Some(&*format!("wsh(multi(1,{key}))")));
}

#[test]
fn a_transaction_without_inputs_is_written_and_measured_without_a_marker() {
    let hex = "0200000000010100000000000000015100000000";
    let transaction = transaction_from_hex(hex).unwrap();
    assert_eq!(outrigger_values::params::encode_hex(&transaction_to_bytes(&transaction)), hex);
    let shown = transaction_json(&transaction, Network::Regtest, None);
    assert_eq!((&shown["size"], &shown["weight"], &shown["hash"]), (&json!(20), &json!(80), &shown["txid"]));
}

fn written(script: &Script, network: Network) -> Option<String> {
    let mut text = String::new();
    address::write_address(script, network, &mut text).then_some(text)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_addresses_of_witness_programs_are_those_of_the_library(
        version in 0..=16_u8,
        program in prop::collection::vec(any::<u8>(), 0..45),
        plain in prop::bool::weighted(0.3),
    ) {
        let opcode = if version == 0 { 0 } else { 0x50 + version };
        // Version 0 has addresses for only two lengths.
        let program = if plain { vec![7; if version % 2 == 0 { 20 } else { 32 }] } else { program };
        let script = ScriptBuf::from_bytes([vec![opcode, program.len() as u8], program].concat());
        for network in [Network::Bitcoin, Network::Testnet, Network::Signet, Network::Regtest] {
            let expected = bitcoin::Address::from_script(&script, network).ok().map(|address| address.to_string());
            prop_assert_eq!(written(&script, network), expected);
        }
    }
}

#[test]
fn multisig_counts_are_numbers_in_their_shortest_form() {
    let key = "21033cc1e194f294477237e34145492a29d7161a3823ca0b619f1ee6d298d5aa19f2";
    let kind = |hex: String| classify(&script(&hex)).name();
    // OP_PUSHDATA1 before a key is accepted; the count must be minimal.
    assert_eq!(kind(format!("514c{key}51ae")), "multisig");
    assert_eq!(kind(format!("0101{key}51ae")), "nonstandard");
    assert_eq!(kind(format!("51{key}0101ae")), "nonstandard");
    assert_eq!(kind(format!("01{:02x}{}01{:02x}ae", 17, key.repeat(17), 17)), "multisig");
    assert_eq!(kind(format!("51{}01{:02x}ae", key.repeat(20), 20)), "multisig");
    assert_eq!(kind(format!("51{}01{:02x}ae", key.repeat(21), 21)), "nonstandard");
    for bad in [format!("52{key}51ae"), format!("00{key}51ae"), format!("51{key}52ae"), format!("51{key}5151ae")] {
        assert_eq!(kind(bad.clone()), "nonstandard", "{bad}");
    }
    // Hybrid keys are valid, but descriptors do not allow them.
    let hybrid = format!("41{}{}ac", "06", "11".repeat(64));
    assert_eq!(kind(hybrid.clone()), "pubkey");
    assert!(descriptor::infer(&script(&hybrid), Network::Regtest).starts_with("raw("));
}

const WITH_WITNESS: &str = "0200000000010222222222222222222222222222222222222222222222222222222222222222220100000000ffffffff3333333333333333333333333333333333333333333333333333333333333333000000001716001463f3ebd51cd47966cd53fee3b3187ccdbdb5c9ed00000000010100000000000000225120d2c4a205fd9ffc9f8ec27431a91bfca1f35233532f4d28f48845ab03a31dc35b01400101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010101010102013001024d000000";
const COINBASE: &str = "020000000001010000000000000000000000000000000000000000000000000000000000000000ffffffff04028c0000ffffffff024e03062a0100000016001424dcd9f21213f4d30a70e35fac188c8cdd8de8660000000000000000266a24aa21a9ed9d3ecad319c8aa6955d8fc0779b9d9214cf0dc641b467ff971873e7a5863124d0120000000000000000000000000000000000000000000000000000000000000000000000000";

#[test]
fn transactions_with_witness_are_shown_as_recorded() {
    let transaction = transaction_from_hex(WITH_WITNESS).unwrap();
    let shown = Value::Object(transaction_json(&transaction, Network::Regtest, None));
    let expected = concat!(
        r#"{"txid":"2409c740913ce836472c050ed6367ae379cdc0acd8372838d999c05571f54d35","#,
        r#""hash":"a25bc52a428a1924846fca7ebd37d6e547fc4ef69aaeb256acafc03364935c46","version":2,"size":231,"#,
        r#""vsize":177,"weight":705,"locktime":77,"vin":[{"txid":"#,
        r#""2222222222222222222222222222222222222222222222222222222222222222","vout":1,"#,
        r#""scriptSig":{"asm":"","hex":""},"txinwitness":["01010101010101010101010101010101010101010101010101"#,
        r#"010101010101010101010101010101010101010101010101010101010101010101010101010101"],"sequence":4294967295},"#,
        r#"{"txid":"3333333333333333333333333333333333333333333333333333333333333333","vout":0,"#,
        r#""scriptSig":{"asm":"001463f3ebd51cd47966cd53fee3b3187ccdbdb5c9ed","#,
        r#""hex":"16001463f3ebd51cd47966cd53fee3b3187ccdbdb5c9ed"},"txinwitness":["30","02"],"sequence":0}],"#,
        r#""vout":[{"value":0.00000001,"n":0,"scriptPubKey":{"#,
        r#""asm":"1 d2c4a205fd9ffc9f8ec27431a91bfca1f35233532f4d28f48845ab03a31dc35b","#,
        r#""desc":"rawtr(d2c4a205fd9ffc9f8ec27431a91bfca1f35233532f4d28f48845ab03a31dc35b)#hjkttuwh","#,
        r#""hex":"5120d2c4a205fd9ffc9f8ec27431a91bfca1f35233532f4d28f48845ab03a31dc35b","#,
        r#""address":"bcrt1p6tz2yp0anl7flrkzwsc6jxlu58e4yv6n9axj3ayggk4s8gcacddsdh6e3c","#,
        r#""type":"witness_v1_taproot"}}]}"#
    );
    assert_eq!(shown.to_string(), expected);
    assert_eq!(
        serde_json::to_string(&Shown { transaction: &transaction, network: Network::Regtest, change: &[] }).unwrap(),
        expected
    );
}

#[test]
fn coinbases_show_their_script_alone() {
    let shown = Value::Object(transaction_json(&transaction_from_hex(COINBASE).unwrap(), Network::Regtest, None));
    let input = json!({"coinbase": "028c0000", "txinwitness": ["00".repeat(32)], "sequence": 4294967295_u32});
    assert_eq!(shown["vin"], json!([input]));
    assert_eq!(shown["vout"][0]["value"].to_string(), "50.00004430");
    assert_eq!(shown["vout"][1]["scriptPubKey"]["type"], "nulldata");
}

#[test]
fn transactions_are_read_in_the_form_that_makes_sense() {
    let transaction = transaction_from_hex(WITH_WITNESS).unwrap();
    assert!(!transaction.input[0].witness.is_empty());
    assert_eq!(transaction_from_hex(&WITH_WITNESS.to_uppercase()).as_ref(), Some(&transaction));
    for bad in [String::new(), "0".into(), "zz".into(), format!("{WITH_WITNESS}00"), WITH_WITNESS[..60].into()] {
        assert_eq!(transaction_from_hex(&bad), None, "{bad}");
    }
    // Without inputs and outputs both forms are valid; with one output only the legacy form.
    assert_eq!(transaction_from_hex("02000000000000000000").unwrap().output.len(), 0);
    let funded_later = transaction_from_hex("0200000000010100000000000000015100000000").unwrap();
    assert_eq!((funded_later.input.len(), funded_later.output.len()), (0, 1));
    // The marker without any witness is invalid in the extended form, and in the legacy form.
    let superfluous = format!("02000000000101{}00000000000000000001000000000000000001510000000000", "11".repeat(32));
    assert_eq!(transaction_from_hex(&superfluous), None);
}

#[test]
fn blocks_may_be_followed_by_anything() {
    let read = |hex: &str| block_from_bytes(&decode_hex(hex).unwrap());
    let header = "00".repeat(80);
    let block = format!("{header}01{COINBASE}");
    assert_eq!(read(&block).unwrap().txdata.len(), 1);
    assert!(read(&format!("{block}c0ffee")).is_some());
    assert!(read(&format!("{header}02{COINBASE}")).is_none());
    assert!(read(&block[..block.len() - 2]).is_none());
    assert!(read("").is_none());
}

#[test]
fn validateaddress_errors_of_an_address_are_as_recorded() {
    let checksum = "Invalid checksum or length of Base58 address (P2PKH or P2SH)";
    let encoding = "Invalid or unsupported Segwit (Bech32) or Base58 encoding.";
    for (text, message, locations) in [
        ("garbage", checksum, vec![]),
        ("", checksum, vec![]),
        ("mipcBbFg9gMiCh81Kj8tqqdgoZub1ZJRfo", checksum, vec![]),
        ("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", encoding, vec![]),
        ("1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", "Invalid or unsupported Base58-encoded address.", vec![]),
        ("bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt081", "Invalid separator position", vec![43]),
        ("bcrt1Qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080", "Invalid character or mixed case", vec![5]),
    ] {
        let error = to_script(text, Network::Regtest).unwrap_err();
        assert_eq!((&*error.message, error.locations), (message, locations), "{text}");
    }
}

/// The rows of a file of Bitcoin Core's vectors; empty if it is missing.
fn vectors(file: &str) -> Vec<Value> {
    outrigger_vectors::read(file).and_then(|rows| rows.as_array().cloned()).unwrap_or_default()
}

const NETWORKS: [(&str, Network); 4] = [
    ("main", Network::Bitcoin),
    ("test", Network::Testnet),
    ("signet", Network::Signet),
    ("regtest", Network::Regtest),
];

#[test]
fn valid_addresses_give_their_scripts() {
    let rows = vectors("key_io_valid.json");
    for row in rows.iter().filter(|row| row[2]["isPrivkey"] == json!(false)) {
        let (text, expected) = (row[0].as_str().unwrap(), script(row[1].as_str().unwrap()));
        let network = NETWORKS.iter().find(|(name, _)| row[2]["chain"] == *name).map(|(_, network)| *network).unwrap();
        assert_eq!(to_script(text, network).as_deref(), Ok::<&Script, _>(&expected), "{text}");
        if row[2]["tryCaseFlip"] == json!(true) {
            let lower = text.bytes().any(|byte| byte.is_ascii_lowercase());
            let flipped = if lower { text.to_uppercase() } else { text.to_lowercase() };
            assert_eq!(to_script(&flipped, network).as_deref(), Ok::<&Script, _>(&expected), "{flipped}");
        }
        assert_eq!(from_script(&expected, network).unwrap().to_lowercase(), text.to_lowercase());
    }
}

#[test]
fn invalid_addresses_are_refused_on_every_network() {
    for row in vectors("key_io_invalid.json") {
        for (_, network) in NETWORKS {
            let text = row[0].as_str().unwrap();
            assert!(to_script(text, network).is_err(), "{text}");
        }
    }
}

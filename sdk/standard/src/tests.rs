//! Comparisons with recorded answers of Bitcoin Core 29, and with its address vectors.

use bitcoin::{Network, Script, ScriptBuf};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use outrigger_values::params::decode_hex;

/// An output and Bitcoin Core 29's results on regtest. An empty address means none.
struct Row {
    hex: &'static str,
    kind: &'static str,
    asm: &'static str,
    desc: &'static str,
    address: &'static str,
}

const RECORDED: &[Row] = &[
    Row {
        hex: "76a91463f3ebd51cd47966cd53fee3b3187ccdbdb5c9ed88ac",
        kind: "pubkeyhash",
        asm: "OP_DUP OP_HASH160 63f3ebd51cd47966cd53fee3b3187ccdbdb5c9ed OP_EQUALVERIFY OP_CHECKSIG",
        desc: "addr(mpdTPzJRwTaKt4GtpYX5LHfja39rfJ62Xm)#wsfvwfkc",
        address: "mpdTPzJRwTaKt4GtpYX5LHfja39rfJ62Xm",
    },
    Row {
        hex: "21033cc1e194f294477237e34145492a29d7161a3823ca0b619f1ee6d298d5aa19f2ac",
        kind: "pubkey",
        asm: "033cc1e194f294477237e34145492a29d7161a3823ca0b619f1ee6d298d5aa19f2 OP_CHECKSIG",
        desc: "pk(033cc1e194f294477237e34145492a29d7161a3823ca0b619f1ee6d298d5aa19f2)#4f6ru7w0",
        address: "",
    },
    Row {
        hex: "4104a48b2aa38ccb5e48361c89d16b398047006b7eb2c4a9bc3a2cedaeedf332cfcc18881aa43570165972d68a5aa7890e950a5b2517c3cebb16cf5f0ab7dccda10bac",
        kind: "pubkey",
        asm: "04a48b2aa38ccb5e48361c89d16b398047006b7eb2c4a9bc3a2cedaeedf332cfcc18881aa43570165972d68a5aa7890e950a5b2517c3cebb16cf5f0ab7dccda10b OP_CHECKSIG",
        desc: "pk(04a48b2aa38ccb5e48361c89d16b398047006b7eb2c4a9bc3a2cedaeedf332cfcc18881aa43570165972d68a5aa7890e950a5b2517c3cebb16cf5f0ab7dccda10b)#n3dalp3r",
        address: "",
    },
    Row {
        hex: "a914da1745e9b549bd0bfa1a569971c77eba30cd5a4b87",
        kind: "scripthash",
        asm: "OP_HASH160 da1745e9b549bd0bfa1a569971c77eba30cd5a4b OP_EQUAL",
        desc: "addr(2ND8PB9RrfCaAcjfjP1Y6nAgFd9zWHYX4DN)#pn0u88a8",
        address: "2ND8PB9RrfCaAcjfjP1Y6nAgFd9zWHYX4DN",
    },
    Row {
        hex: "001463f3ebd51cd47966cd53fee3b3187ccdbdb5c9ed",
        kind: "witness_v0_keyhash",
        asm: "0 63f3ebd51cd47966cd53fee3b3187ccdbdb5c9ed",
        desc: "addr(bcrt1qv0e7h4gu63ukdn2nlm3mxxruek7mtj0d7gagxw)#6qxtkqd5",
        address: "bcrt1qv0e7h4gu63ukdn2nlm3mxxruek7mtj0d7gagxw",
    },
    Row {
        hex: "00204ae81572f06e1b88fd5ced7a1a000945432e83e1551e6f721ee9c00b8cc33260",
        kind: "witness_v0_scripthash",
        asm: "0 4ae81572f06e1b88fd5ced7a1a000945432e83e1551e6f721ee9c00b8cc33260",
        desc: "addr(bcrt1qft5p2uhsdcdc3l2ua4ap5qqfg4pjaqlp250x7us7a8qqhrxrxfsqseac85)#vch92e55",
        address: "bcrt1qft5p2uhsdcdc3l2ua4ap5qqfg4pjaqlp250x7us7a8qqhrxrxfsqseac85",
    },
    Row {
        hex: "51203cc1e194f294477237e34145492a29d7161a3823ca0b619f1ee6d298d5aa19f2",
        kind: "witness_v1_taproot",
        asm: "1 3cc1e194f294477237e34145492a29d7161a3823ca0b619f1ee6d298d5aa19f2",
        desc: "rawtr(3cc1e194f294477237e34145492a29d7161a3823ca0b619f1ee6d298d5aa19f2)#d3gksrmf",
        address: "bcrt1p8nq7r98jj3rhydlrg9z5j23f6utp5wpreg9kr8c7umff34d2r8eqrkj2qh",
    },
    Row {
        hex: "5121033cc1e194f294477237e34145492a29d7161a3823ca0b619f1ee6d298d5aa19f22102d2c4a205fd9ffc9f8ec27431a91bfca1f35233532f4d28f48845ab03a31dc35b52ae",
        kind: "multisig",
        asm: "1 033cc1e194f294477237e34145492a29d7161a3823ca0b619f1ee6d298d5aa19f2 02d2c4a205fd9ffc9f8ec27431a91bfca1f35233532f4d28f48845ab03a31dc35b 2 OP_CHECKMULTISIG",
        desc: "multi(1,033cc1e194f294477237e34145492a29d7161a3823ca0b619f1ee6d298d5aa19f2,02d2c4a205fd9ffc9f8ec27431a91bfca1f35233532f4d28f48845ab03a31dc35b)#g8p7te5q",
        address: "",
    },
    Row {
        hex: "5221033cc1e194f294477237e34145492a29d7161a3823ca0b619f1ee6d298d5aa19f22102d2c4a205fd9ffc9f8ec27431a91bfca1f35233532f4d28f48845ab03a31dc35b21027586962630d9e9b13451e5707b813a2e26bf51a435566de9da26ccec76e0b92253ae",
        kind: "multisig",
        asm: "2 033cc1e194f294477237e34145492a29d7161a3823ca0b619f1ee6d298d5aa19f2 02d2c4a205fd9ffc9f8ec27431a91bfca1f35233532f4d28f48845ab03a31dc35b 027586962630d9e9b13451e5707b813a2e26bf51a435566de9da26ccec76e0b922 3 OP_CHECKMULTISIG",
        desc: "multi(2,033cc1e194f294477237e34145492a29d7161a3823ca0b619f1ee6d298d5aa19f2,02d2c4a205fd9ffc9f8ec27431a91bfca1f35233532f4d28f48845ab03a31dc35b,027586962630d9e9b13451e5707b813a2e26bf51a435566de9da26ccec76e0b922)#2ez7hu7w",
        address: "",
    },
    Row { hex: "6a026162", kind: "nulldata", asm: "OP_RETURN 25185", desc: "raw(6a026162)#vm6atmp5", address: "" },
    Row { hex: "6a", kind: "nulldata", asm: "OP_RETURN", desc: "raw(6a)#4mhr9ur5", address: "" },
    Row { hex: "", kind: "nonstandard", asm: "", desc: "raw()#58lrscpx", address: "" },
    Row {
        hex: "51026162",
        kind: "witness_unknown",
        asm: "1 25185",
        desc: "addr(bcrt1pv93qnl7h40)#7pk9k3pg",
        address: "bcrt1pv93qnl7h40",
    },
    Row {
        hex: "52206161616161616161616161616161616161616161616161616161616161616161",
        kind: "witness_unknown",
        asm: "2 6161616161616161616161616161616161616161616161616161616161616161",
        desc: "addr(bcrt1zv9skzctpv9skzctpv9skzctpv9skzctpv9skzctpv9skzctpv9ssv3f0qj)#4vvgv48c",
        address: "bcrt1zv9skzctpv9skzctpv9skzctpv9skzctpv9skzctpv9skzctpv9ssv3f0qj",
    },
    Row {
        hex: "51024e73",
        kind: "anchor",
        asm: "1 29518",
        desc: "addr(bcrt1pfeesnyr2tx)#swxgse0y",
        address: "bcrt1pfeesnyr2tx",
    },
    Row { hex: "00026162", kind: "nonstandard", asm: "0 25185", desc: "raw(00026162)#lkh9h2fw", address: "" },
    Row { hex: "4c", kind: "nonstandard", asm: "[error]", desc: "raw(4c)#w8vxm298", address: "" },
    Row {
        hex: "baff",
        kind: "nonstandard",
        asm: "OP_CHECKSIGADD OP_INVALIDOPCODE",
        desc: "raw(baff)#4t8kxrqt",
        address: "",
    },
    Row { hex: "51", kind: "nonstandard", asm: "1", desc: "raw(51)#8lvh9jxk", address: "" },
    Row {
        hex: "6a0461626364056162636465",
        kind: "nulldata",
        asm: "OP_RETURN 1684234849 6162636465",
        desc: "raw(6a0461626364056162636465)#ts04n063",
        address: "",
    },
    Row {
        hex: "5253938b",
        kind: "nonstandard",
        asm: "2 3 OP_ADD OP_1ADD",
        desc: "raw(5253938b)#94rjatvt",
        address: "",
    },
];

fn script(hex: &str) -> ScriptBuf {
    ScriptBuf::from_bytes(decode_hex(hex).unwrap())
}

#[test]
fn script_pub_key_of_outputs_reads_as_recorded() {
    for row in RECORDED {
        let script = script(row.hex);
        assert_eq!(classify(&script).name(), row.kind, "{}", row.hex);
        assert_eq!(asm(&script), row.asm, "{}", row.hex);
        assert_eq!(descriptor::infer(&script, Network::Regtest), row.desc, "{}", row.hex);
        assert_eq!(from_script(&script, Network::Regtest).unwrap_or_default(), row.address, "{}", row.hex);
        assert_eq!(written(&script, Network::Regtest).unwrap_or_default(), row.address, "{}", row.hex);
        if !row.address.is_empty() {
            assert_eq!(to_script(row.address, Network::Regtest), Ok(script), "{}", row.address);
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
    let shown = transaction_json(&transaction, Network::Regtest);
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
    let shown = Value::Object(transaction_json(&transaction, Network::Regtest));
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
    assert_eq!(serde_json::to_string(&Shown(&transaction, Network::Regtest)).unwrap(), expected);
}

#[test]
fn coinbases_show_their_script_alone() {
    let shown = Value::Object(transaction_json(&transaction_from_hex(COINBASE).unwrap(), Network::Regtest));
    let input = json!({"coinbase": "028c0000", "txinwitness": ["00".repeat(32)], "sequence": 4294967295_u32});
    assert_eq!(shown["vin"], json!([input]));
    assert_eq!(shown["vout"][0]["value"].to_string(), "50.00004430");
    assert_eq!(shown["vout"][1]["scriptPubKey"]["type"], "nulldata");
}

#[test]
fn script_pub_key_without_address_has_no_other_keys() {
    let key = "21033cc1e194f294477237e34145492a29d7161a3823ca0b619f1ee6d298d5aa19f2";
    for (hex, kind) in
        [(format!("51{key}51ae"), "multisig"), (format!("{key}ac"), "pubkey"), ("51".into(), "nonstandard")]
    {
        let shown = script_json(&script(&hex), Network::Regtest);
        assert_eq!(shown.keys().collect::<Vec<_>>(), ["asm", "desc", "hex", "type"], "{kind}");
        assert_eq!(shown["type"], kind);
    }
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

//! Every field of a PSBT, valid and invalid.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use outrigger_psbt_format::Psbt;
use outrigger_standard::release::{LAST, rules};
use serde_json::json;

use super::Both;

/// A transaction with an unknown input and an anyone-can-spend output.
pub(super) const TRANSACTION: &str = "02000000011111111111111111111111111111111111111111111111111111111111111111\
    0000000000ffffffff01e803000000000000015100000000";
pub(super) const KEY: &str = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";

/// The base64 text of a PSBT given in hexadecimal.
fn base64(hex: &str) -> String {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    BASE64_STANDARD.encode(digits.chunks(2).map(byte).collect::<Vec<_>>())
}

/// A field: key length, key, value length and value.
fn field(key: &str, value: &str) -> String {
    format!("{:02x}{key}{:02x}{value}", key.len() / 2, value.len() / 2)
}

/// A PSBT with these global, input and output fields.
pub(super) fn psbt(global: &str, input: &str, output: &str) -> String {
    base64(&format!("70736274ff{}{global}00{input}00{output}00", field("00", TRANSACTION)))
}

/// The same in version 2.
pub(super) fn psbt_of_two(global: &str, input: &str, output: &str) -> String {
    let globals = [field("02", "02000000"), field("04", "01"), field("05", "01"), field("fb", "02000000")].concat();
    let input = [field("0e", &"11".repeat(32)), field("0f", "00000000"), input.into()].concat();
    let output = [field("03", "e803000000000000"), field("04", "51"), output.into()].concat();
    base64(&format!("70736274ff{globals}{global}00{input}00{output}00"))
}

/// A PSBT with this sighash type in each input.
pub(super) fn with_sighash(text: &str, sighash: Option<i32>) -> String {
    let mut psbt = Psbt::from_base64(text, &rules(Some(LAST))).unwrap();
    psbt.inputs.iter_mut().for_each(|input| input.sighash_type = sighash);
    psbt.to_base64()
}

/// A PSBT without the previous transactions of inputs that have a witness UTXO.
pub(super) fn without_previous(text: &str) -> String {
    let mut psbt = Psbt::from_base64(text, &rules(Some(LAST))).unwrap();
    let known = psbt.inputs.iter_mut().filter(|input| input.witness_utxo.is_some());
    known.for_each(|input| input.non_witness_utxo = None);
    psbt.to_base64()
}

/// A PSBT without the spent outputs.
pub(super) fn without_spent(text: &str) -> String {
    let mut psbt = Psbt::from_base64(text, &rules(Some(LAST))).unwrap();
    psbt.inputs.iter_mut().for_each(|input| (input.non_witness_utxo, input.witness_utxo) = (None, None));
    psbt.to_base64()
}

fn input_fields() -> Vec<String> {
    let (zeros, ones, hash20) = ("00".repeat(32), "11".repeat(32), "22".repeat(20));
    let signature = "3006020101020101";
    let x = &KEY[2..];
    let leaf_key = format!("15c1{x}");
    let mut fields = vec![
        field("01", &format!("e803000000000000160014{hash20}")),
        field("01", &format!("ffffffffffffffff160014{hash20}")),
        field("01", "e803000000000000"),
        field("01", &format!("e803000000000000160014{hash20}00")),
        field(&format!("02{KEY}"), &format!("{signature}01")),
        field(&format!("02{KEY}"), ""),
        field(&format!("02{KEY}00"), &format!("{signature}01")),
        field(&format!("0202{ones}"), &format!("{signature}01")),
        field("04", "51"),
        field("05", "5121"),
        field("05", ""),
        field(&format!("06{KEY}"), "d34db33f0000008001000000"),
        field(&format!("06{KEY}"), "d34db33f"),
        field(&format!("06{KEY}"), "d34db33f00"),
        field(&format!("06{KEY}"), ""),
        field("07", "51"),
        field("08", "020151015100"),
        field("08", "02015101"),
        field("08", "00"),
        field(&format!("13{x}"), &ones.repeat(2)),
        field("13", &ones.repeat(2)),
        field("13", &ones),
        field("13", &ones.repeat(3)),
        field(&format!("14{x}{ones}"), &ones.repeat(2)),
        field(&format!("14{x}{ones}"), &ones),
        field(&format!("14{x}"), &ones.repeat(2)),
        field(&leaf_key, "51c0"),
        field(&format!("{leaf_key}{ones}"), "51c0"),
        field(&leaf_key, "c0"),
        field(&leaf_key, ""),
        field("15c1", "51c0"),
        field(&format!("{leaf_key}00"), "51c0"),
        field(&format!("16{x}"), "00d34db33f01000000"),
        field(&format!("16{x}"), &format!("02{ones}{zeros}d34db33f01000080")),
        field(&format!("16{x}"), &format!("01{ones}")),
        field(&format!("16{x}00"), "00d34db33f01000000"),
        field("17", x),
        field("17", &zeros),
        field("17", &ones[2..]),
        field("18", &ones),
        field("18", &zeros),
        field("1800", &ones),
        field("19", "aa"),
        field("fc04746573740700", "aabb"),
        field("fc0474657374", "aabb"),
        field("fc05746573740700", "aabb"),
        field("aabbcc", "dd"),
        field("aabbcc", ""),
        "03fdaa0001bb".into(),
        "04fdaa000001bb".into(),
        "04fdffff0001bb".into(),
        "06feffffffff0001bb".into(),
        "01aa".into(),
        "05aa".into(),
        field("00", TRANSACTION),
        field("00", "00"),
    ];
    let pair = format!("{KEY}{KEY}");
    for (key, value) in [
        (format!("1a{KEY}"), pair.clone()),
        (format!("1a{KEY}"), String::new()),
        (format!("1a{KEY}"), format!("{KEY}00")),
        (format!("1a{KEY}"), format!("{KEY}05{x}")),
        (format!("1a05{x}"), KEY.into()),
        (format!("1a{KEY}00"), KEY.into()),
        (format!("1b{pair}"), "02".repeat(66)),
        (format!("1b{pair}{ones}"), "02".repeat(66)),
        (format!("1b{pair}{zeros}"), "03".repeat(66)),
        (format!("1b{pair}"), "02".repeat(65)),
        (format!("1b{KEY}"), "02".repeat(66)),
        (format!("1b{KEY}05{x}"), "02".repeat(66)),
        (format!("1b05{x}{KEY}"), "02".repeat(66)),
        (format!("1c{pair}"), ones.clone()),
        (format!("1c{pair}{ones}"), ones.clone()),
        (format!("1c{pair}00"), ones.clone()),
        (format!("1c{pair}"), ones[2..].into()),
        ("0e".into(), ones.clone()),
        ("0f".into(), "00000000".into()),
        ("10".into(), "fdffffff".into()),
        ("10".into(), "fdffff".into()),
        ("1000".into(), "fdffffff".into()),
        ("11".into(), "0065cd1d".into()),
        ("11".into(), "ff64cd1d".into()),
        ("12".into(), "01000000".into()),
        ("12".into(), "00000000".into()),
        ("12".into(), "0065cd1d".into()),
    ] {
        fields.push(field(&key, &value));
    }
    for sighash in ["00000000", "01000000", "83000000", "ff000000", "01010000", "010000", "0100000000"] {
        fields.push(field("03", sighash));
    }
    for (kind, hash) in [("0a", &hash20), ("0b", &ones), ("0c", &hash20), ("0d", &ones)] {
        fields.push(field(&format!("{kind}{hash}"), "abcd"));
        fields.push(field(&format!("{kind}{hash}00"), "abcd"));
    }
    fields
}

fn output_fields() -> Vec<String> {
    let (zeros, ones, x) = ("00".repeat(32), "11".repeat(32), &KEY[2..]);
    vec![
        field("00", "51"),
        field("0000", "51"),
        field("01", "52"),
        field("0100", "52"),
        field(&format!("02{KEY}"), "d34db33f01000080"),
        field("02", "d34db33f01000080"),
        field("05", x),
        field("0500", x),
        field("05", &zeros),
        field("06", "00c00151"),
        field("06", "01c0015101c00152"),
        field("06", "01c0015102c0015202c20153"),
        field("06", "01c00151"),
        field("06", "01c1015101c00152"),
        field("06", "81c00151"),
        field("06", "01c005"),
        field("06", ""),
        field(&format!("07{x}"), &format!("01{ones}d34db33f01000080")),
        field(&format!("07{x}"), "00"),
        field("07", "00d34db33f"),
        field("03", "aa"),
        field("03", "e803000000000000"),
        field("0300", "e803000000000000"),
        field("04", "51"),
        field(&format!("08{KEY}"), &format!("{KEY}{KEY}")),
        field(&format!("08{KEY}"), &format!("{KEY}00")),
        field(&format!("08{KEY}"), &format!("{KEY}05{x}")),
        field(&format!("0805{x}"), KEY),
        field("08", KEY),
        field("fc0474657374fd0001", "aabb"),
        field("fc04", "aabb"),
        "05aa".into(),
    ]
}

fn global_fields() -> Vec<String> {
    let xpub = format!("01043587cf0000000000000000{}{KEY}", "22".repeat(32).get(8..).unwrap().to_owned() + "33333333");
    vec![
        field(&xpub, "d34db33f01000080"),
        field(&xpub, "1111111101000080"),
        field(&xpub, "d34db33f010000"),
        field(&xpub[..80], "d34db33f"),
        field(&xpub.replace("043587cf00000000000", "043587cf00000000010"), "d34db33f"),
        field("fb", "00000000"),
        field("fb", "01000000"),
        field("fb", "02000000"),
        field("fb", "0000"),
        field("fb00", "00000000"),
        field("00", TRANSACTION),
        field("fc0474657374fd0001", "aabb"),
        field("02", "aa"),
        field("03", "aa"),
        field("03", "07000000"),
        field("0300", "07000000"),
        field("04", "01"),
        field("05", "01"),
        field("06", "05"),
        field("06", "ff"),
        field("06", "0100"),
        field("fb", "03000000"),
        field("aa", "bb"),
    ]
}

/// decodepsbt reports every field and every error as the node.
pub(super) fn check_decodepsbt(both: &mut Both) {
    let makers: &[fn(&str, &str, &str) -> String] = if both.has_version_two() { &[psbt, psbt_of_two] } else { &[psbt] };
    let (inputs, outputs, globals) = (input_fields(), output_fields(), global_fields());
    let mut texts = vec!["!".into(), String::new(), base64("70736274ff"), base64("70736274fe00"), base64("0102")];
    let whole = format!("70736274ff{}000000", field("00", TRANSACTION));
    texts.extend((0..whole.len()).step_by(2).map(|end| base64(&whole[..end])));
    texts.extend([base64(&whole), base64(&format!("{whole}00")), base64("70736274ff00")]);
    let signed = TRANSACTION.replace("0000000000ffffffff", "000000000151ffffffff");
    texts.push(base64(&format!("70736274ff{}000000", field("00", &signed))));
    for (index, (fields, place)) in [(&globals, 0), (&inputs, 1), (&outputs, 2)].into_iter().enumerate() {
        for make in makers {
            let with = |text: &str| {
                let part = |at| if at == place { text } else { "" };
                make(part(0), part(1), part(2))
            };
            texts.extend(fields.iter().map(|field| with(field)));
            texts.extend(fields.iter().map(|field| with(&field.repeat(2))));
            // Two fields in the wrong order.
            texts.extend(fields.iter().zip(fields.iter().rev()).map(|(one, other)| with(&format!("{other}{one}"))));
        }
        assert!(index == place);
    }
    let mut good = Vec::new();
    for text in texts {
        if both.ask("decodepsbt", &json!([text])).is_ok() {
            good.push(text);
        }
    }
    assert!(good.len() > 40, "{}", good.len());
    for text in &good {
        // The parsed fields are serialised again.
        both.call("combinepsbt", json!([[text]]));
        both.call("finalizepsbt", json!([text]));
        both.call("analyzepsbt", json!([text]));
        both.call("utxoupdatepsbt", json!([text]));
    }
    for pair in good.windows(2) {
        let _ = both.ask("combinepsbt", &json!([pair]));
    }
    // All PSBTs of version 0 have the same transaction.
    good.retain(|text| both.ours.call("decodepsbt", json!([text]))["psbt_version"] == 0);
    both.call("combinepsbt", json!([good]));
}

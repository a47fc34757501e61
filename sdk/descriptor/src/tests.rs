//! Comparisons with recorded answers and error messages of bitcoind.

mod extremes;
mod later;

use bitcoin::{Address, Network};
use serde::Deserialize;

use super::*;

const K: &str = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
const K2: &str = "02c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5";
const U: &str = "04a34b99f22c790c4e36b2b3c2c35a36db06226e41c692fc82b8b56ac1c540c5bd5b8dec5235a0fa8722476c7709c02559e3aa73aa03918ba2d492eea75abea235";
const X: &str =
    "tpubDC5FSnBiZDMmhiuCmWAYsLwgLYrrT9rAqvTySfuCCrgsWz8wxMXUS9Tb9iVMvcRbvFcAHGkMD5Kx8koh4GquNGNTfohfk7pgjhaPCdXpoba";
const S: &str =
    "tprv8ZgxMBicQKsPd7Uf69XL1XwhmjHopUGep8GuEiJDZmbQz6o58LninorQAfcKZWARbtRtfnLcJ5MQ2AtHcQJCCRUcMRvmDUjyEmNUWwx8UbK";
const WIF: &str = "cMcfH8sRgBgDMfpBNG6H3haaxLkaYXgqMRef8Nev6tWyBSNr6c3n";

/// A line of `vectors/bitcoind.json`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vector {
    text: String,
    checksum: String,
    ranged: bool,
    solvable: bool,
    private: bool,
    public: Vec<String>,
    addresses: Vec<Vec<String>>,
    normalized: Vec<String>,
    definite: Vec<(String, String)>,
    expands: bool,
}

fn vectors() -> Vec<Vector> {
    let of = |text| -> Vec<Vector> { serde_json::from_str(text).unwrap() };
    let musig = of(include_str!("vectors/musig.json"));
    of(include_str!("vectors/bitcoind.json")).into_iter().chain(musig).collect()
}

fn parse(text: &str) -> Vec<Descriptor> {
    Descriptor::parse(text, Network::Regtest, Checksum::Optional).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn one(text: &str) -> Descriptor {
    parse(text).remove(0)
}

#[track_caller]
fn refused(text: &str, expected: &str) {
    let error = Descriptor::parse(text, Network::Regtest, Checksum::Optional).expect_err(text);
    assert_eq!(error.to_string(), expected, "{text}");
}

#[test]
fn texts_and_flags_equal_those_of_bitcoind() {
    for vector in vectors() {
        assert_eq!(checksum(&vector.text).as_deref(), Some(vector.checksum.as_str()), "{}", vector.text);
        let parsed = parse(&format!("{}#{}", vector.text, vector.checksum));
        let public: Vec<String> = parsed.iter().map(Descriptor::to_public_string).collect();
        assert_eq!(public, vector.public);
        for descriptor in &parsed {
            assert_eq!(descriptor.is_ranged(), vector.ranged, "{}", vector.text);
            assert_eq!(descriptor.is_solvable(), vector.solvable, "{}", vector.text);
            assert_eq!(descriptor.has_private_keys(), vector.private, "{}", vector.text);
        }
        if vector.expands {
            let mut normalized: Vec<String> = parsed.iter().map(Descriptor::to_normalized_string).collect();
            normalized.sort();
            assert_eq!(normalized, vector.normalized, "{}", vector.text);
        }
    }
}

#[test]
fn scripts_equal_those_of_bitcoind() {
    for vector in vectors() {
        let parsed = parse(&vector.text);
        if !vector.expands {
            assert_eq!(parsed[0].expand(0), Err(ExpandError::HardenedWithoutPrivateKey), "{}", vector.text);
            continue;
        }
        let indexes = if vector.ranged { 0..3 } else { 0..1 };
        let scripts: Vec<ExpandedScript> = parsed
            .iter()
            .flat_map(|descriptor| indexes.clone().flat_map(|index| descriptor.expand(index).unwrap().scripts))
            .collect();
        let addresses: Vec<String> = scripts
            .iter()
            .filter_map(|script| Address::from_script(&script.script_pubkey, Network::Regtest).ok())
            .map(|address| address.to_string())
            .collect();
        let expected: Vec<String> = vector.addresses.into_iter().flatten().collect();
        assert_eq!(addresses, expected, "{}", vector.text);
        for (script, definite) in vector.definite {
            let found = scripts.iter().find(|found| found.script_pubkey.to_hex_string() == script);
            assert_eq!(found.unwrap().definite, definite, "{}", vector.text);
        }
    }
}

#[test]
fn definite_descriptors_expand_to_their_own_script() {
    for vector in vectors().into_iter().filter(|vector| vector.expands) {
        for script in parse(&vector.text).iter().flat_map(|descriptor| descriptor.expand(1).unwrap().scripts) {
            let again = Descriptor::parse(&script.definite, Network::Regtest, Checksum::Required).unwrap().remove(0);
            assert_eq!(again.expand(0).unwrap().scripts[0].script_pubkey, script.script_pubkey, "{}", vector.text);
        }
    }
}

#[test]
fn scripts_of_derived_keys_are_those_of_the_expansion() {
    for vector in vectors().into_iter().filter(|vector| vector.expands) {
        for descriptor in parse(&vector.text) {
            let (keys, expanded) = (descriptor.derive(2).unwrap(), descriptor.expand(2).unwrap().scripts);
            let scripts = descriptor.scripts(&keys).unwrap();
            assert!(scripts.iter().eq(expanded.iter().map(|script| &script.script_pubkey)), "{}", vector.text);
            for (place, script) in expanded.into_iter().enumerate() {
                assert_eq!(descriptor.definite(&keys, place), Ok(Some(script.definite)), "{}", vector.text);
            }
            assert_eq!(descriptor.definite(&keys, scripts.len()), Ok(None));
        }
    }
}

#[test]
fn private_texts_keep_their_keys_and_public_ones_never_show_them() {
    for vector in vectors() {
        for descriptor in parse(&vector.text) {
            let private = descriptor.to_private_string();
            assert_eq!(private.is_some(), vector.private);
            let Some(private) = private else { continue };
            let again = one(private.expose());
            assert_eq!(again.to_private_string(), Some(private));
            assert_eq!(again.to_public_string(), descriptor.to_public_string());
            for text in [descriptor.to_public_string(), descriptor.to_normalized_string(), format!("{descriptor:?}")] {
                assert!(!text.contains("tprv") && !text.contains(WIF), "{text}");
            }
        }
    }
}

#[test]
fn private_keys_belong_to_the_public_keys_of_the_scripts() {
    for text in [
        format!("wpkh({S}/84h/1h/0h/0/*)"),
        format!("pkh({S}/44h/*h)"),
        format!("tr({S}/86h/1h/0h/1/*,pk({WIF}))"),
        format!("wsh(and_v(v:pk({S}/*),pk({K})))"),
        "pkh(91bMubQfDW9tHTvHPwd5zhuvTavpvpHGwULQbJ98xFqvxsUsWbZ)".to_owned(),
    ] {
        let descriptor = one(&text);
        let origins = descriptor.expand(7).unwrap().scripts.remove(0).origins;
        let branches = descriptor.private_branches();
        let keys = branches.private_keys(7);
        assert!(!keys.is_empty());
        for (public, secret) in keys {
            let point = secret.public_key(&secp::SECP);
            let place = origins.iter().position(|known| known.public_key.0 == public).unwrap();
            assert!(branches.secret_keys(7).contains(&(place, secret)), "{text}");
            assert!(public == point.serialize() || public == point.serialize_uncompressed(), "{text}");
        }
    }
    assert!(one(&format!("wpkh({X}/*)")).private_branches().private_keys(0).is_empty());
    let mixed = one(&format!("wsh(multi(1,{S}/0,{X}/0))"));
    assert!(mixed.has_private_keys() && !mixed.has_all_private_keys());
    assert_eq!(mixed.private_branches().private_keys(0).len(), 1);
    assert!(mixed.to_private_string().unwrap().expose().contains(S));
}

#[test]
fn solving_data_has_the_scripts_behind_hashes() {
    let expansion = one(&format!("sh(wsh(multi(1,{K},{K2})))")).expand(0).unwrap();
    let solving = &expansion.scripts[0].solving;
    let [redeem, witness] = solving.scripts.as_slice() else { panic!("two scripts") };
    assert_eq!(redeem.to_p2sh(), expansion.scripts[0].script_pubkey);
    assert_eq!(&witness.to_p2wsh(), redeem);

    let combo = one(&format!("combo({K})")).expand(0).unwrap();
    let scripts = combo.scripts.iter().map(|script| script.solving.scripts.len()).collect::<Vec<_>>();
    assert_eq!(scripts, [0, 0, 0, 1]);
    assert_eq!(one(&format!("combo({U})")).expand(0).unwrap().scripts.len(), 2);
}

#[test]
fn control_blocks_prove_their_leaves() {
    let text = format!("tr({K},{{{{pk({K2}),multi_a(1,{K},{X}/*)}},and_v(v:pk({K}),older(3))}})");
    let script = one(&text).expand(3).unwrap().scripts.remove(0);
    let taproot = script.solving.taproot.unwrap();
    assert_eq!(taproot.leaves.len(), 3);
    let output_key = secp256k1::XOnlyPublicKey::from_slice(&script.script_pubkey.as_bytes()[2..]).unwrap();
    for leaf in taproot.leaves {
        let block = bitcoin::taproot::ControlBlock::decode(&leaf.control_block).unwrap();
        assert_eq!(block.internal_key.serialize(), taproot.internal_key);
        assert!(block.verify_taproot_commitment(&secp::SECP, output_key, &leaf.script));
    }
}

#[test]
fn origins_lead_from_the_master_key() {
    let expansion = one(&format!("wpkh([d34db33f/84'/1h]{X}/1/*)")).expand(5).unwrap();
    let [origin] = expansion.scripts[0].origins.as_slice() else { panic!("one key") };
    assert_eq!((origin.fingerprint, origin.path.as_str()), ([0xd3, 0x4d, 0xb3, 0x3f], "m/84h/1h/1/5"));
    let expansion = one(&format!("wpkh({K})")).expand(0).unwrap();
    assert_eq!(expansion.scripts[0].origins[0].path, "m");
}

#[test]
fn identity_ignores_the_marks_of_hardened_steps() {
    let (apostrophes, letters) = (one(&format!("pkh({S}/44'/*h)")), one(&format!("pkh({S}/44h/*')")));
    assert_ne!(apostrophes.to_public_string(), letters.to_public_string());
    assert_eq!(apostrophes.identity(), letters.identity());
    assert_ne!(letters.identity(), one(&format!("pkh({S}/44h/*)")).identity());
}

#[test]
fn output_types_follow_the_outermost_functions() {
    for (text, expected) in [
        (format!("pk({K})"), None),
        (format!("multi(1,{K})"), None),
        (format!("combo({K})"), None),
        (format!("pkh({K})"), Some(AddressType::Legacy)),
        (format!("sh(multi(1,{K}))"), Some(AddressType::Legacy)),
        (format!("sh(wpkh({K}))"), Some(AddressType::P2shSegwit)),
        (format!("sh(wsh(pk({K})))"), Some(AddressType::P2shSegwit)),
        (format!("wpkh({K})"), Some(AddressType::Bech32)),
        (format!("wsh(pk({K}))"), Some(AddressType::Bech32)),
        (format!("tr({K})"), Some(AddressType::Bech32m)),
        ("addr(mrCDrCybB6J1vRfbwM5hemdJz73FwDBC8r)".to_owned(), Some(AddressType::Legacy)),
        ("raw(0014751e76e8199196d454941c45d1b3a323f1433bd6)".to_owned(), Some(AddressType::Bech32)),
        ("raw(00)".to_owned(), None),
    ] {
        assert_eq!(one(&text).output_type(), expected, "{text}");
    }
}

#[test]
fn checksum_errors_have_the_messages_of_bitcoind() {
    let text = "raw(00)";
    refused("raw(00)#qwfjgwf6#", "Multiple '#' symbols");
    refused("raw(00)#abc", "Expected 8 character checksum, not 3 characters");
    refused("raw(Ü)#qwfjgwf6", "Invalid characters in payload");
    refused("raw(00)#qwfjgwf7", "Provided checksum 'qwfjgwf7' does not match computed checksum 'qwfjgwf6'");
    let missing = Descriptor::parse(text, Network::Regtest, Checksum::Required).unwrap_err();
    assert_eq!(missing.to_string(), "Missing checksum");
}

/// bitcoind's recorded answers to invalid and barely valid texts.
#[derive(Deserialize)]
struct Refusals {
    rows: Vec<(String, Option<String>)>,
}

/// The rules of Bitcoin Core 29.
const PRESENT: Syntax = Syntax { musig: false, unused: false, strict: false, empty_keys: false };
/// The rules of Bitcoin Core 32.
const LATEST: Syntax = Syntax { musig: true, unused: true, strict: true, empty_keys: true };

#[test]
fn recorded_texts_are_refused_with_the_messages_of_bitcoind() {
    for (file, least, syntax) in
        [(include_str!("vectors/refusals.json"), 200, PRESENT), (include_str!("vectors/refusals-32.json"), 80, LATEST)]
    {
        let Refusals { rows } = serde_json::from_str(file).unwrap();
        let message = |text: &str| {
            let parsed = Descriptor::parse_as(text, Network::Regtest, Checksum::Optional, syntax);
            parsed.err().map(|error| error.to_string())
        };
        // Messages of bitcoind may quote private keys.
        let expected = |said: &Option<String>| said.as_deref().map(without_private_keys);
        let differ = rows.iter().filter(|(text, said)| message(text) != expected(said));
        let differ: Vec<String> = differ.map(|row| format!("{}: {:?}, {:?}", row.0, row.1, message(&row.0))).collect();
        assert!(rows.len() > least && differ.is_empty(), "{} of {}:\n{}", differ.len(), rows.len(), differ.join("\n"));
    }
}

#[test]
fn texts_without_a_recording_are_refused_with_the_messages_of_bitcoind() {
    let many = |count| vec![K; count].join(",");
    for (text, expected) in [
        (format!("pkh({K})x"), format!("'pkh({K})x' is not a valid descriptor function")),
        (format!("sh(pk({K}),)"), String::new()),
        (format!("sh(pk({K})x)"), "A function is needed within P2SH".to_owned()),
        (format!("multi(1,{K}){K})"), format!("'multi(1,{K}){K}' is not a valid descriptor function")),
        (format!("multi(1,{K})x({K})"), "Multi: expected ',', got ')'".to_owned()),
        (
            format!("multi(1,{})", many(21)),
            "Cannot have 21 keys in multisig; must have between 1 and 20 keys, inclusive".to_owned(),
        ),
        (
            format!("wpkh(]{K})"),
            "wpkh(): Key origin start '[ character expected but not found, got ']' instead".to_owned(),
        ),
        (
            "wpkh(91bMubQfDW9tHTvHPwd5zhuvTavpvpHGwULQbJ98xFqvxsUsWbZ)".to_owned(),
            "wpkh(): Uncompressed keys are not allowed".to_owned(),
        ),
        (format!("wsh(rawtr({K}))"), "Can only have rawtr at top level".to_owned()),
        (format!("tr({K},raw(00))"), "Can only have raw() at top level".to_owned()),
        (format!("tr({K},{{pk({K}),pk({K}),pk({K})}})"), "tr(): expected '}' after script expression".to_owned()),
        (format!("tr({K},pk({K}),pk({K}))"), "tr(): expected ')' after script expression".to_owned()),
    ] {
        refused(&text, &expected);
    }
    let expression = format!("or_i(pk({X}),older(5))");
    refused(&format!("wsh({expression})"), &format!("{expression} is not sane: witnesses without signature exist"));
}

#[test]
fn miniscript_is_refused_with_the_messages_of_bitcoind() {
    let public = one(&format!("pkh({S})")).to_public_string();
    let public = public.strip_prefix("pkh(").and_then(|text| text.split_once(')')).unwrap().0;
    for (expression, expected) in [
        ("or_i(older(1),older(2))".to_owned(), "or_i(older(1),older(2)) is not sane: malleable witnesses exist"),
        (
            "or_i(pk(K),or_i(older(1),older(2)))".to_owned(),
            "or_i(older(1),older(2)) is not sane: malleable witnesses exist",
        ),
        ("pk_k(S/0)".to_owned(), "pk_k(P/0) is not sane"),
        ("v:pk(S/0)".to_owned(), "v:pk(P/0) is not sane"),
        ("older(1)".to_owned(), "older(1) is not sane: witnesses without signature exist"),
        ("or_d(pk(S/0),older(1))".to_owned(), "or_d(pk(P/0),older(1)) is not sane: witnesses without signature exist"),
        ("and_v(pk(S/0),older(10))".to_owned(), "and_v(pk(P/0),older(10)) is invalid"),
        ("and_v(v:pk(S/0),pk(S/0))".to_owned(), "and_v(v:pk(P/0),pk(P/0)) is not sane: contains duplicate public keys"),
        (
            "and_v(v:pk(S),and_v(v:older(1),older(4194305)))".to_owned(),
            "and_v(v:older(1),older(4194305)) is not sane: contains mixes of timelocks expressed in blocks and seconds",
        ),
        ("0".to_owned(), "0 is not satisfiable"),
        ("and_v(v:pk(K),0)".to_owned(), "and_v(v:pk(K),0) is not satisfiable"),
    ] {
        let text = expression.replace("(S", &format!("({S}")).replace("(K)", &format!("({K})"));
        refused(
            &format!("wsh({text})"),
            &expected.replace("(P", &format!("({public}")).replace("(K)", &format!("({K})")),
        );
    }
    let nowhere = "Miniscript expressions can only be used in wsh or tr.";
    refused(&format!("sh(and_v(v:pk({K}),older(10)))"), nowhere);
    refused(&format!("and_v(v:pk({K}),older(10))"), nowhere);
    refused(&format!("sh(and_v(pk({K}),older(10)))"), nowhere);
}

#[test]
fn no_error_shows_a_private_key() {
    for text in [
        WIF.to_owned(),
        format!("foo({S})"),
        format!("multi({S},{K})"),
        format!("wpkh({WIF}/0)"),
        format!("wpkh({WIF},{WIF})"),
        format!("wpkh({S}x)"),
        format!("wpkh({S}/{S})"),
        format!("wpkh([01020304/<{S};1>]{K})"),
        format!("wsh(pk_k({S}))"),
        format!("wsh(and_v(pk({S}),older(1)))"),
        format!("tr({K},{S})"),
    ] {
        let error = Descriptor::parse(&text, Network::Regtest, Checksum::Optional).expect_err(&text);
        let said = format!("{error} {error:?}");
        assert!(!said.contains(S) && !said.contains(WIF), "{said}");
    }
}

#[test]
fn spaces_around_a_base58_key_are_ignored() {
    for (text, same) in [
        (format!("wpkh( {WIF} )"), format!("wpkh({WIF})")),
        (format!("wpkh( {S} /0)"), format!("wpkh({S}/0)")),
        (format!("wpkh([01020304/1] {WIF})"), format!("wpkh([01020304/1]{WIF})")),
    ] {
        assert_eq!(one(&text).to_public_string(), one(&same).to_public_string());
    }
    refused(&format!("wpkh( {K})"), &format!("wpkh(): key ' {K}' is not valid"));
}

#[test]
fn witness_scripts_hold_twenty_keys() {
    let keys: Vec<String> = (0..20).map(|number| format!("{X}/{number}")).collect();
    let parsed = one(&format!("wsh(multi(17,{}))", keys.join(",")));
    let script = parsed.expand(0).unwrap().scripts.remove(0).solving.scripts.remove(0);
    assert_eq!(script.len(), 2 + 20 * 34 + 2 + 1);
    assert!(script.as_bytes().starts_with(&[1, 17]) && script.as_bytes().ends_with(&[1, 20, 0xae]));
}

#[test]
fn equal_public_keys_share_a_private_key() {
    let public = one(&format!("pkh({S})")).to_public_string();
    let public = public.strip_prefix("pkh(").and_then(|text| text.split_once(')')).unwrap().0;
    let both = one(&format!("multi(1,{S}/4/*,{public}/*)"));
    assert!(both.has_all_private_keys());
    assert_eq!(both.private_branches().private_keys(3).len(), 2);
    let expanded = both.expand(3).unwrap().scripts.remove(0).origins;
    for ((public, _), shown) in both.private_branches().private_keys(3).iter().zip(&expanded) {
        assert_eq!(public, &shown.public_key.0);
    }
    assert!(!one(&format!("multi(1,{S}/4/*,{X}/*)")).has_all_private_keys());
    let pair = one(&format!(
        "multi(1,{WIF},{})",
        one(&format!("pk({WIF})")).expand(0).unwrap().scripts[0].origins[0]
            .public_key
            .0
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    ));
    assert!(pair.has_all_private_keys());
}

#[test]
fn text_with_an_empty_key_is_not_miniscript_but_an_invalid_key_before_it_is_reported() {
    for (text, expected) in [
        ("wsh(and_v(v:pk(),older(5)))", "A function is needed within P2WSH"),
        ("wsh(or_d(pk(),pk(zz)))", "A function is needed within P2WSH"),
        ("wsh(or_d(pk(zz),pk()))", "key 'zz' is not valid"),
        ("wsh(and_v(v:pk([d34db33f]),older(5)))", "No key provided"),
        ("sh(and_v(v:pk(),older(5)))", "A function is needed within P2SH"),
        ("and_v(v:pk(),older(5))", "'and_v(v:pk(),older(5))' is not a valid descriptor function"),
        ("wsh(pk())", "pk(): No key provided"),
    ] {
        let error = Descriptor::parse(text, Network::Regtest, Checksum::Optional).unwrap_err();
        assert_eq!(error.to_string(), expected, "{text}");
    }
}

#[test]
fn solving_data_has_the_public_keys_that_bitcoind_finds_by_hash() {
    let (x, other, both) = (&K[2..], K2, vec![K, K2]);
    for (text, known) in [
        (format!("pk({K})"), vec![K]),
        (format!("sh(multi(1,{K},{K2}))"), vec![]),
        (format!("wsh(sortedmulti(1,{K},{K2}))"), vec![]),
        (format!("wsh(pk({K}))"), vec![K]),
        (format!("rawtr({K})"), vec![]),
        (format!("pkh({K})"), vec![K]),
        (format!("pkh({U})"), vec![U]),
        (format!("sh(wpkh({K}))"), vec![K]),
        (format!("wsh(pkh({K}))"), vec![K]),
        (format!("wsh(and_v(v:pk({K}),pkh({K2})))"), both),
        (format!("tr({K},multi_a(1,{K2},{K}))"), vec![K]),
        (format!("tr({K2},{{pk({K}),and_v(v:pk({K}),older(1))}})"), vec![other, K, x]),
    ] {
        let expansion = one(&text).expand(0).unwrap();
        let public_keys = |script: &ExpandedScript| {
            script.solving.public_keys.iter().map(|key| outrigger_values::params::encode_hex(key)).collect::<Vec<_>>()
        };
        assert_eq!(public_keys(&expansion.scripts[0]), known, "{text}");
    }
    for script in one(&format!("combo({K})")).expand(0).unwrap().scripts {
        assert_eq!(outrigger_values::params::encode_hex(&script.solving.public_keys[0]), K);
    }
}

//! `verifymessage` and `createmultisig`, compared with recorded answers of bitcoind.

use outrigger_sdk::testing::StubHost;
use serde_json::json;

use super::{check, start};

const KEYS: [&str; 2] = [
    "03789ed0bb717d88f7d321a368d905e7430207ebbd82bd342cf11ae157a7ace5fd",
    "03dbc6764b8884a92e871274b87583e6d5c2a58819473e17e107ef3f6aa5a61626",
];
const UNCOMPRESSED: &str = "0411db93e1dcdb8a016b49840f8c53bc1eb68a382e97b1482ecad7b148a6909a5cb2e0eaddfb84ccf9744464f82e160bfa9b8b64f9d4c03f999b8643f656b412a3";

#[test]
fn verifymessage_accepts_only_the_key_of_the_address() {
    // The addresses of the key 1, compressed and not.
    let (address, other) = ("mrCDrCybB6J1vRfbwM5hemdJz73FwDBC8r", "mtoKs9V381UAhUia3d7Vb9GNak8Qvmcsme");
    let signed = "H66jIHB2WmwUPiItsyz4AJR7FWHf9teidvWMbxcC4126H6/5UyRsSwFwBeqLJ5uvIWKfFE6GG2GD6FAm8yqYe28=";
    let key = "mg8Jz5776UdyiYcBb9Z873NTozEiADRW5H";
    let plugin = start(&StubHost::new());
    check(&plugin, "verifymessage", &[(json!([key, signed, "hello"]), json!(true))]);
    // The first byte of the signature encodes the form of the key, which determines the address.
    let shared = "Bi1zgUhc9Vx29ybrszSStIpQXDCHd5pSWObPGIilIzWA5nzHe1nlRbKWKKbmyfu4ZuLrgt8oTMpOypC40TwA14=";
    for (address, first, expected) in
        [(address, "I", true), (other, "H", true), (address, "H", false), (other, "I", false)]
    {
        let arguments = json!([address, format!("{first}{shared}"), "h\u{e9}llo\n"]);
        check(&plugin, "verifymessage", &[(arguments, json!(expected))]);
    }
    let none = [json!([address, signed, "hello"]), json!([other, signed, "hello"]), json!([key, signed, "hallo"])];
    check(&plugin, "verifymessage", &none.map(|arguments| (arguments, json!(false))));
    // An empty or short signature is invalid, but not an error.
    check(&plugin, "verifymessage", &["", "aaaa"].map(|text| (json!([key, text, "hello"]), json!(false))));
    let segwit = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";
    plugin.refuses(
        "verifymessage",
        &[
            (json!(["x", "!", ""]), -5, "Invalid address"),
            (json!([segwit, "!", ""]), -3, "Address does not refer to key"),
            (json!([key, "!", ""]), -3, "Malformed base64 encoding"),
            (json!([key, "aaa", ""]), -3, "Malformed base64 encoding"),
        ],
    );
}

#[test]
fn createmultisig_answers_as_recorded() {
    let plugin = start(&StubHost::new());
    let script = format!("5221{}21{}52ae", KEYS[0], KEYS[1]);
    let multi = format!("multi(2,{},{})", KEYS[0], KEYS[1]);
    let made = |address: &str, descriptor: String| json!({"address": address, "redeemScript": script, "descriptor": descriptor});
    let legacy = made("2NGRTbZBLGV4tJ3y4Avz7sa2Dea9o93UaPH", format!("sh({multi})#4djp057k"));
    let address = "bcrt1q0jnggjwnn22a4ywxc2pcw86c0d6tghqkgk3hlryrxl7nmxkylmnqqp8kfy";
    check(
        &plugin,
        "createmultisig",
        &[
            (json!([2, KEYS]), legacy.clone()),
            (json!([2, KEYS, "legacy"]), legacy),
            (json!([2, KEYS, "bech32"]), made(address, format!("wsh({multi})#5wacx8g6"))),
            (
                json!([2, KEYS, "p2sh-segwit"]),
                made("2MtrgHUaouokgnbFVdrbJCwtrcTnyKUWi3o", format!("sh(wsh({multi}))#du4tngj2")),
            ),
        ],
    );
    let warned = plugin.call("createmultisig", json!([1, [KEYS[0], UNCOMPRESSED], "bech32"])).unwrap();
    assert_eq!(warned["address"], json!("2MsPeSCvcDF715bRGCgAMHzoTsSJxYyLwsG"));
    let warning = "Unable to make chosen address type, please ensure no uncompressed public keys are present.";
    assert_eq!(warned["warnings"], json!([warning]));
}

#[test]
fn createmultisig_refuses_in_order() {
    let plugin = start(&StubHost::new());
    let no_point = format!("02{}", "00".repeat(32));
    let invalid = format!("Pubkey \"{no_point}\" must be cryptographically valid.");
    let many = |count: usize| vec![KEYS[0]; count];
    plugin.refuses(
        "createmultisig",
        &[
            (json!([0, ["xy"]]), -5, "Pubkey \"xy\" must be a hex string"),
            (json!([0, ["aa"]]), -5, "Pubkey \"aa\" must have a length of either 33 or 65 bytes"),
            (json!([1, [no_point]]), -5, &invalid),
            (json!([0, KEYS, "foo"]), -5, "Unknown address type 'foo'"),
            (json!([0, KEYS, "bech32m"]), -5, "createmultisig cannot create bech32m multisig addresses"),
            (json!([-1, KEYS]), -8, "a multisignature address must require at least one key to redeem"),
            (json!([3, [KEYS[0]]]), -8, "not enough keys supplied (got 1 keys, but need at least 3 to redeem)"),
            (
                json!([17, many(21)]),
                -8,
                "Number of keys involved in the multisignature address creation > 20\nReduce the number",
            ),
            (json!([16, many(16)]), -8, "redeemScript exceeds size limit: 547 > 520"),
            (json!([1, vec![UNCOMPRESSED; 8], "bech32"]), -8, "redeemScript exceeds size limit: 531 > 520"),
        ],
    );
    // The limit of 520 bytes does not apply to segwit.
    assert!(plugin.call("createmultisig", json!([17, many(20), "bech32"])).is_ok());
}

//! The errors of the plugin. The end-to-end tests compare its answers with a bitcoind's.

use bitcoin::hashes::Hash;
use bitcoin::{Amount, OutPoint, ScriptBuf, TxOut, Txid};
use outrigger_sdk::service::chain::Coin;
use outrigger_sdk::testing::{StubHost, TestPlugin};
use serde_json::json;

use crate::PsbtPlugin;

const TRANSACTION: &str = "02000000010707070707070707070707070707070707070707070707070707070707070707\
    0100000000ffffffff01e803000000000000015100000000";
const MUSIG: &str = "tr(musig(0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798,\
    02f9308a019258c31049344f85f89d5229b531c845836f99b08601f113bce036f9))";
const SCRIPT: &str = "0014751e76e8199196d454941c45d1b3a323f1433bd6";

fn start() -> (StubHost, TestPlugin<PsbtPlugin>) {
    let host = StubHost::new();
    let output = TxOut { value: Amount::from_sat(2_000), script_pubkey: ScriptBuf::from_hex(SCRIPT).unwrap() };
    let outpoint = OutPoint::new(Txid::from_byte_array([7; 32]), 1);
    host.chain.add_coin(outpoint, Coin { output, height: 1, coinbase: false });
    let plugin = host.start(json!({}));
    (host, plugin)
}

#[test]
fn psbt_rpcs_refuse_bad_arguments() {
    let (_host, plugin) = start();
    let psbt = plugin.call("converttopsbt", json!([TRANSACTION])).unwrap();
    let other = plugin.call("createpsbt", json!([[], {"data": "00"}])).unwrap();
    let twice = format!("Input {}:1 exists in multiple PSBTs", "07".repeat(32));
    let no_key = format!("tr(): key '{}' is not valid", &MUSIG[3..MUSIG.len() - 1]);
    plugin.refuses(
        "decodepsbt",
        &[
            (json!(["!"]), -22, "TX decode failed invalid base64"),
            (json!([""]), -22, "TX decode failed DataStream::read(): end of data: iostream error"),
            (json!(["AAAAAAAA"]), -22, "TX decode failed Invalid PSBT magic bytes: iostream error"),
        ],
    );
    plugin.refuses(
        "combinepsbt",
        &[
            (json!([[]]), -8, "Parameter 'txs' cannot be empty"),
            (json!([[psbt, other]]), -8, "PSBTs not compatible (different transactions)"),
            (json!([[5]]), -3, "JSON value of type number is not of expected type string"),
        ],
    );
    plugin.refuses(
        "joinpsbts",
        &[(json!([[psbt]]), -8, "At least two PSBTs are required to join PSBTs."), (json!([[psbt, psbt]]), -8, &twice)],
    );
    plugin.refuses(
        "descriptorprocesspsbt",
        &[
            (json!([psbt, [5]]), -8, "Scan object needs to be either a string or an object"),
            (json!([psbt, [{}]]), -8, "Descriptor needs to be provided in scan object"),
            // Below release 30.
            (json!([psbt, [MUSIG]]), -5, &no_key),
            (json!([psbt, [], "x"]), -8, "'x' is not a valid sighash parameter."),
        ],
    );
    let signed = TRANSACTION.replace("0100000000ffffffff", "010000000151ffffffff");
    plugin.refuses(
        "converttopsbt",
        &[
            (json!(["00"]), -22, "TX decode failed"),
            (json!([signed]), -22, "Inputs must not have scriptSigs and scriptWitnesses"),
        ],
    );
}

//! importprivkey, importpubkey, importaddress and dumpprivkey, which clients of former releases call.

use outrigger_tests::Host;
use serde_json::{Value, json};

const ADDRESS: &str = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080";

fn text(value: Value) -> String {
    value.as_str().unwrap().to_owned()
}

#[test]
fn importprivkey_spends_with_the_key_of_dumpprivkey_and_importpubkey_watches_it() {
    let host = Host::start();
    let (mut first, mut second) = (host.new_wallet("first"), host.new_wallet("second"));
    let addresses: Vec<String> =
        ["legacy", "p2sh-segwit", "bech32"].map(|kind| text(first.call("getnewaddress", json!(["", kind])))).into();
    for address in &addresses {
        host.client().call("generatetoaddress", json!([1, address]));
    }
    host.client().call("generatetoaddress", json!([100, ADDRESS]));
    for (height, address) in (1..).zip(&addresses) {
        let key = text(first.call("dumpprivkey", json!([address])));
        assert_eq!(second.call("importprivkey", json!([key, "moved"])), Value::Null);
        let received = second.call("listreceivedbyaddress", json!([1, false, false, "", true]));
        assert_eq!(received.as_array().unwrap().len(), height, "{received}");
        assert_eq!(second.call("getaddressinfo", json!([address]))["labels"], json!(["moved"]));
        assert_eq!(text(second.call("dumpprivkey", json!([address]))), key);
    }
    let mut watching = host.new_wallet("watching");
    let key = text(first.call("getaddressinfo", json!([addresses[0]]))["pubkey"].clone());
    watching.call("importpubkey", json!([key, "watched"]));
    let received = watching.call("listreceivedbyaddress", json!([1, false, true, "", true]));
    assert_eq!((&received[0]["address"], &received[0]["involvesWatchonly"]), (&json!(addresses[0]), &json!(true)));
    watching.call("importaddress", json!([addresses[1], "watched", false]));
    let start = watching.call("rescanblockchain", json!([2, 2]));
    assert_eq!(start, json!({"start_height": 2, "stop_height": 2}));
    let received = watching.call("getreceivedbyaddress", json!([addresses[1], 1, true]));
    assert_eq!(received.to_string(), "50.00000000");
    let balances = watching.call("getbalances", json!([]));
    let trusted = ["mine", "watchonly"].map(|part| balances[part]["trusted"].to_string());
    assert_eq!(trusted, ["0.00000000", "100.00000000"]);
    let balances = [json!([]), json!(["*", 0, false]), json!(["*", 0, true])];
    let balances = balances.map(|arguments| watching.call("getbalance", arguments).to_string());
    assert_eq!(balances, ["0.00000000", "0.00000000", "100.00000000"]);
    // A wallet without private keys has only watch-only coins, and counts them without an option.
    let mut public = host.client().create_wallet("public", json!({"disable_private_keys": true}));
    public.call("importaddress", json!([addresses[1]]));
    let txid = public.call("listunspent", json!([]))[0]["txid"].clone();
    assert_eq!(public.call("gettransaction", json!([txid]))["amount"].to_string(), "50.00000000");
    assert_eq!(public.call("getbalance", json!([])).to_string(), "50.00000000");
    // A label is watch-only if its last address is.
    first.call("setlabel", json!([addresses[0], "both"]));
    first.call("importaddress", json!([ADDRESS, "both"]));
    let listed = first.call("listreceivedbyaddress", json!([1, false, true, "", true]));
    let last = listed.as_array().unwrap().iter().rfind(|entry| entry["label"] == "both").unwrap().clone();
    let labels = first.call("listreceivedbylabel", json!([1, false, true, true]));
    let label = labels.as_array().unwrap().iter().find(|entry| entry["label"] == "both").unwrap();
    assert_eq!(label.get("involvesWatchonly"), last.get("involvesWatchonly"));
    let signed = first.call("signmessage", json!([addresses[0], "hello"]));
    assert_eq!(host.client().call("verifymessage", json!([addresses[0], signed, "hello"])), true);
}

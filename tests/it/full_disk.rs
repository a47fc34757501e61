//! A disk without room: the import says so, nothing of it is stored, and the wallet opens.

use outrigger_tests::{Host, HostOptions, built};
use serde_json::json;

/// What a file may grow beyond the largest plugin, whose copy must fit, in bytes: enough for a chain and a wallet.
const ROOM: u64 = 4 << 20;

/// The most bytes of a request, which must hold more than there is room for.
const MAX_BODY: u64 = 1 << 30;

/// A master key of regtest.
const XPRV: &str =
    "tprv8ZgxMBicQKsPd7Uf69XL1XwhmjHopUGep8GuEiJDZmbQz6o58LninorQAfcKZWARbtRtfnLcJ5MQ2AtHcQJCCRUcMRvmDUjyEmNUWwx8UbK";

#[test]
fn an_import_without_room_is_refused_whole_and_the_wallet_stays() {
    // A file that may not grow stands for a full disk: the system refuses the write in the same place.
    let largest = built().libraries.values().map(|library| library.metadata().unwrap().len()).max().unwrap();
    let limit = largest + ROOM;
    // Two labels of this length have no room together.
    let long = usize::try_from(limit / 3 * 2).unwrap();
    let set = vec![format!("rpc.max_body_bytes={MAX_BODY}")];
    let mut host = Host::start_with(HostOptions { file_limit: Some(limit), set, ..HostOptions::default() });
    let mut client = host.client();
    client.call("createwallet", json!({"wallet_name": "w", "load_on_startup": true}));
    let mut wallet = client.wallet("w");
    let address = wallet.call("getnewaddress", json!(["kept"]));
    wallet.call("generatetoaddress", json!([2, address]));
    let before = wallet.call("listdescriptors", json!([]));
    let checked = |client: &mut outrigger_tests::Client, text: String| {
        let info = client.call("getdescriptorinfo", json!([text]));
        format!("{text}#{}", info["checksum"].as_str().unwrap())
    };
    let [one, other] = [1, 2].map(|step| checked(&mut client, format!("wpkh({XPRV}/1/{step})")));
    let small = checked(&mut client, format!("wpkh({XPRV}/2/3)"));
    let requests = json!([[
        {"desc": small, "timestamp": "now"},
        {"desc": one, "timestamp": "now", "label": "1".repeat(long)},
        {"desc": other, "timestamp": "now", "label": "2".repeat(long)},
    ]]);
    let (code, message) = wallet.refused("importdescriptors", requests);
    assert_eq!(code, -20, "{message}");
    assert!(message.contains("the wallet's storage is full or fails, so nothing was stored"), "{message}");
    assert_eq!(wallet.call("listdescriptors", json!([])), before);
    assert_eq!(wallet.call("getwalletinfo", json!([]))["scanning"], json!(false));
    // What fits is still taken, and is there after a kill.
    let imported = wallet.call("importdescriptors", json!([[{"desc": small, "timestamp": "now"}]]));
    assert_eq!(imported, json!([{"success": true}]));
    host = host.kill_and_restart();
    let mut wallet = host.client().wallet("w");
    let texts = wallet.call("listdescriptors", json!([]));
    assert_eq!(texts["descriptors"].as_array().unwrap().len(), before["descriptors"].as_array().unwrap().len() + 1);
    assert_eq!(wallet.call("getaddressinfo", json!([address]))["labels"], json!(["kept"]));
    assert_eq!(wallet.call("getwalletinfo", json!([]))["txcount"], json!(2));
}

//! A wallet of the host and one of the node with the same keys report the same receipts of addresses, and rescan alike.

use serde_json::json;

use super::ADDRESS;
use super::twins::Wallets;

/// Compares all methods that report receipts of these addresses.
#[track_caller]
fn check_received(wallets: &mut Wallets, addresses: &[String], labels: &[&str]) {
    for min_depth in [json!(null), json!(0), json!(1), json!(3), json!(-9)] {
        for immature in [json!(null), json!(true)] {
            for address in addresses {
                wallets.check("getreceivedbyaddress", json!([address, min_depth, immature])).ok();
                let filtered = json!([min_depth, true, null, address, immature]);
                wallets.check("listreceivedbyaddress", filtered).unwrap();
            }
            for label in labels {
                wallets.check("getreceivedbylabel", json!([label, min_depth, immature])).ok();
            }
            for empty in [false, true] {
                wallets.check("listreceivedbyaddress", json!([min_depth, empty, true, "", immature])).unwrap();
                wallets.check("listreceivedbylabel", json!([min_depth, empty, null, immature])).unwrap();
            }
        }
    }
    wallets.check("listaddressgroupings", json!([])).unwrap();
    if outrigger_tests::bitcoind::release(&mut wallets.theirs) < 30 {
        wallets.check("getunconfirmedbalance", json!([])).unwrap();
    }
}

#[test]
fn listreceivedbyaddress_rescanblockchain_and_related_methods_answer_as_the_node() {
    let Some(mut wallets) = Wallets::start() else { return };
    // Refusals of getreceivedbyaddress and related methods.
    let address = wallets.address("a", "bech32");
    for params in [
        json!(["x"]),
        json!([5]),
        json!([ADDRESS]),
        json!([address, "x"]),
        json!([address, 1.5]),
        json!([address, 1, 1]),
    ] {
        wallets.check("getreceivedbyaddress", params).unwrap_err();
    }
    for params in [json!(["*"]), json!([5]), json!(["no"]), json!(["a", "x"])] {
        wallets.check("getreceivedbylabel", params).unwrap_err();
    }
    for params in
        [json!(["x"]), json!([1, 1]), json!([1, true, 1]), json!([1, true, true, 1]), json!([1, true, true, "zz"])]
    {
        wallets.check("listreceivedbyaddress", params).unwrap_err();
    }
    wallets.check("listreceivedbylabel", json!([1, true, true, ""])).unwrap_err();
    wallets.mine(20, ADDRESS);
    for params in [
        json!([-1]),
        json!([21]),
        json!([5, 21]),
        json!([5, -1]),
        json!([5, 3]),
        json!([1.5]),
        json!(["x"]),
        json!([0, "x"]),
    ] {
        wallets.check("rescanblockchain", params).unwrap_err();
    }
    for params in
        [json!([]), json!([0, 10]), json!([5]), json!([null, 4]), json!([20]), json!([3, 3]), json!([3, null])]
    {
        wallets.check("rescanblockchain", params).unwrap();
    }
    check_receipts(&mut wallets);
}

/// Payments, blocks and a reorganisation of a chain of 20 blocks.
fn check_receipts(wallets: &mut Wallets) {
    let kinds = [("rent", "legacy"), ("rent", "p2sh-segwit"), ("", "bech32"), ("pay", "bech32m"), ("unused", "bech32")];
    let mut addresses: Vec<String> = kinds.map(|(label, kind)| wallets.address(label, kind)).into();
    let labels = ["rent", "", "pay", "unused", "theirs", "none"];
    for address in &addresses[..4] {
        wallets.mine(1, address);
    }
    wallets.mine(100, ADDRESS);
    addresses.push(ADDRESS.to_owned());
    check_received(wallets, &addresses, &labels);
    wallets.check("setlabel", json!([ADDRESS, "theirs"])).unwrap();
    wallets.mine(1, &addresses[3].clone());
    for (to, amount) in [(0, 1.5), (3, 0.25), (5, 2.0)] {
        let params = json!([addresses[to], amount, "", "", false, true, null, "unset", null, 10]);
        wallets.ours.call("sendtoaddress", params);
    }
    check_received(wallets, &addresses, &labels);
    wallets.mine(1, ADDRESS);
    wallets.ours.call(
        "sendmany",
        json!(["", {addresses[1].as_str(): 70, addresses[2].as_str(): 1}, null, "", [], true, null, "unset", 10]),
    );
    check_received(wallets, &addresses, &labels);
    // A reorganisation removes a coinbase and makes the payments unconfirmed.
    let mut node = wallets.host.client();
    let tip = node.call("getblockhash", json!([125]));
    node.call("invalidateblock", json!([tip]));
    wallets.mine(2, ADDRESS);
    check_received(wallets, &addresses, &labels);
}

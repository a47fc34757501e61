//! Nodes with features disabled: the wallets work with the remaining ones.

use outrigger_tests::Client;
use serde_json::{Value, json};

use super::{ADDRESS, start};

#[test]
fn node_without_wallets_relay_and_rest_takes_payments_of_the_wallets() {
    let Some(host) = start(&["-blocksonly", "-disablewallet", "-rest=0", "-blockfilterindex=1"]) else { return };
    let mut client = host.client();
    let (mut one, mut two) = (host.new_wallet("one"), host.new_wallet("two"));
    one.mine(101);
    let to = two.call("getnewaddress", json!([]));
    let paid = one.call("sendtoaddress", json!([to, 1]));
    assert_eq!(two.call("gettransaction", json!([paid]))["confirmations"], json!(0));
    client.call("generatetoaddress", json!([1, ADDRESS]));
    assert_eq!(two.call("gettransaction", json!([paid]))["confirmations"], json!(1));
}

/// Imports an address into a new wallet and rescans the whole chain.
pub fn import(client: &mut Client, name: &str, address: &Value) -> (Client, Value) {
    let mut wallet = client.create_wallet(name, json!({"disable_private_keys": true, "blank": true}));
    let described = client.call("getdescriptorinfo", json!([format!("addr({})", address.as_str().unwrap())]));
    let answer = wallet.call("importdescriptors", json!([[{"desc": described["descriptor"], "timestamp": 0}]]));
    (wallet, answer[0].clone())
}

#[test]
fn rescan_of_a_pruned_node_fails_only_if_it_needs_a_pruned_block() {
    for filters in ["-blockfilterindex=1", "-blockfilterindex=0"] {
        let Some(host) = start(&["-prune=1", "-fastprune", filters]) else { return };
        let mut client = host.client();
        let mut owner = host.new_wallet("owner");
        let [early, late] = ["", ""].map(|label| owner.call("getnewaddress", json!([label])));
        client.call("generatetoaddress", json!([1, early]));
        let (mut unloaded, _) = import(&mut client, "away", &late);
        let folder = tempfile::tempdir().unwrap();
        let backup = folder.path().join("away.dat");
        unloaded.call("backupwallet", json!([backup]));
        unloaded.call("unloadwallet", json!([]));
        client.call("generatetoaddress", json!([800, ADDRESS]));
        client.call("generatetoaddress", json!([1, late]));
        let dropped = client.call("pruneblockchain", json!([500])).as_u64().unwrap();
        assert!(dropped > 1, "{dropped}");
        let (mut wallet, answer) = import(&mut client, "late", &late);
        // Without filters, the rescan needs all blocks; it finds payments in the available ones either way.
        assert_eq!(answer["success"], json!(filters == "-blockfilterindex=1"), "{answer}");
        assert_eq!(wallet.call("getwalletinfo", json!([]))["txcount"], json!(1));
        let (mut wallet, answer) = import(&mut client, "early", &early);
        let said = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(said.starts_with("Rescan failed for descriptor with timestamp 0."), "{answer}");
        assert_eq!(wallet.call("getwalletinfo", json!([]))["txcount"], json!(0));
        // The host refuses imports that rescan the whole chain.
        let mut keys = client.create_wallet("keys", json!({}));
        let wif = "cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87K7XCyj5v";
        let public_key = "02c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5";
        for (method, given) in
            [("importaddress", json!(early)), ("importpubkey", json!(public_key)), ("importprivkey", json!(wif))]
        {
            let refused = (-4, "Rescan is disabled when blocks are pruned".to_owned());
            assert_eq!(keys.refused(method, json!([given])), refused, "{method}");
            assert_eq!(keys.call(method, json!([given, "", false])), Value::Null, "{method}");
        }
        // Loading a wallet needs the blocks since it was last loaded.
        match client.try_call("loadwallet", json!(["away"])) {
            Ok(_) => {
                assert_eq!(filters, "-blockfilterindex=1");
                assert_eq!(unloaded.call("getwalletinfo", json!([]))["txcount"], json!(1));
                assert_eq!(unloaded.call("getwalletinfo", json!([]))["lastprocessedblock"]["height"], json!(802));
            }
            Err(error) => {
                assert_eq!((filters, error.code), ("-blockfilterindex=0", -4), "{error:?}");
                let theirs = "Wallet loading failed. Prune: last wallet synchronisation goes beyond pruned data. You need to -reindex (download the whole blockchain again in case of a pruned node). ";
                assert!(error.message.starts_with(&format!("{theirs}Or let the host use a node")), "{error:?}");
            }
        }
        // A failed restore leaves nothing behind, so that it can be retried.
        let restore = json!(["restored", backup]);
        if filters == "-blockfilterindex=0" {
            let refused = client.refused("restorewallet", restore.clone());
            assert!(refused.0 == -4 && refused.1.starts_with("Wallet loading failed. Prune: "), "{refused:?}");
            assert!(!host.network_folder().join("wallets/restored").exists());
            assert_eq!(client.refused("restorewallet", restore), refused);
        } else {
            client.call("restorewallet", restore);
        }
    }
}

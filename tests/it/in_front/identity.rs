//! The node's chain: each network at its genesis block, and nodes and wallets of another chain.

use outrigger_tests::{Bitcoind, Host, HostOptions, bitcoind, configuration};
use serde_json::json;

use super::failures::until_answered;
use super::{before, start};

/// The signet challenge that any block satisfies (OP_TRUE).
const ANY: &str = "-signetchallenge=51";

pub fn in_front_of(chain: &'static str, arguments: &[&str], set: &[&str]) -> Option<Host> {
    let (node, _) = Bitcoind::start_on(bitcoind::installed()?, chain, arguments);
    Some(before(node, set))
}

#[test]
fn node_that_comes_back_on_another_chain_gets_no_call() {
    let Some(mut host) = start(&[]) else { return };
    let (mut client, mut wallet) = (host.client(), host.new_wallet("w"));
    client.call("getblockcount", json!([]));
    host.bitcoind().stop();
    host.bitcoind().start_again_on("signet");
    let foreign = "the node is on signet, but the host is configured for regtest";
    // The host checks the chain on each new connection before it passes a call.
    for _ in 0..10 {
        assert_eq!(client.refused("getblockcount", json!([])), (-1, foreign.to_owned()));
    }
    let batch = json!([{"id": 1, "method": "getblockcount"}, {"id": 2, "method": "getbestblockhash"}]).to_string();
    let batch = client.post(&batch).body;
    assert!(batch.matches(foreign).count() == 2 && batch.matches("\"result\":null").count() == 2, "{batch}");
    wallet.call("getnewaddress", json!([]));
    wallet.call("getbalances", json!([]));
    host.bitcoind().stop();
    host.bitcoind().start_again_on("regtest");
    until_answered(&mut client, "getblockcount");
    assert_eq!(wallet.call("listsinceblock", json!([]))["lastblock"], client.call("getbestblockhash", json!([])));
}

#[test]
fn every_network_is_served_at_its_genesis_block_and_takes_no_wallet_of_a_custom_signet() {
    let folder = tempfile::tempdir().unwrap();
    let backup = folder.path().join("backup").display().to_string();
    if check_custom_signet(&backup).is_none() {
        return;
    }
    let networks = [
        ("main", "bc1", None),
        ("test", "tb1", None),
        ("testnet4", "tb1", None),
        ("signet", "tb1", Some("signet with challenge 5121")),
        ("regtest", "bcrt1", Some("regtest.")),
    ];
    for (chain, prefix, named) in networks {
        let Some(host) = in_front_of(chain, &[], &[]) else { return };
        let mut client = host.client();
        if let Some(named) = named {
            let (code, said) = client.refused("restorewallet", json!(["w", backup]));
            let words = "Wallet loading failed. Wallet files should not be reused across chains. The wallet is of signet \
                         with challenge 51, and the node is on";
            assert!(code == -4 && said.starts_with(&format!("{words} {named}")), "{code} {said}");
            assert_eq!(client.call("listwalletdir", json!([]))["wallets"], json!([]));
        }
        let mut wallet = host.new_wallet("w");
        assert_eq!(client.call("getblockchaininfo", json!([]))["chain"], chain);
        let address = wallet.call("getnewaddress", json!([]));
        assert!(address.as_str().unwrap().starts_with(prefix), "{chain}: {address}");
        let genesis = client.call("getblockhash", json!([0]));
        assert_eq!(wallet.call("listsinceblock", json!([]))["lastblock"], genesis, "{chain}");
        assert!(host.network_folder().ends_with(chain));
    }
}

/// Checks that a custom signet has a separate folder, and backs up a wallet; `None`, with a message, if no bitcoind is installed.
fn check_custom_signet(backup: &str) -> Option<()> {
    let host = in_front_of("signet", &[ANY], &["backend.signet_challenge=\"51\""])?;
    let (mut client, mut wallet) = (host.client(), host.new_wallet("w"));
    assert!(host.network_folder().ends_with("signet_54d26fbd"));
    let mine = wallet.call("getnewaddress", json!([]));
    client.call("generatetoaddress", json!([2, mine, 1_000_000_000]));
    assert_eq!(wallet.call("getwalletinfo", json!([]))["txcount"], 2);
    wallet.call("backupwallet", json!([backup]));
    client.call("restorewallet", json!(["same", backup]));
    // A host configured for the public signet does not start in front of this node.
    let said = Host::refused(&HostOptions::configured(&configuration(host.node.as_ref().unwrap())));
    let words = "the node is on signet with challenge 51, but the host is configured for signet with challenge 5121";
    assert!(said.contains(words), "{said}");
    Some(())
}

//! Reorganisations between two nodes that are split and joined: the host's wallet reports the same as bitcoind's.

use outrigger_tests::bitcoind::{self, twin};
use outrigger_tests::{Bitcoind, Client, Host, HostOptions, free_port, wait_until};
use serde_json::{Value, json};

use super::ADDRESS;

/// A host in front of a node, another node, and a wallet of the first node with the same addresses as the host's wallet.
struct Split {
    host: Host,
    other: Bitcoind,
    /// Where the other node listens for the first.
    peer: String,
}

impl Split {
    fn start() -> Option<Self> {
        let path = bitcoind::installed()?;
        let peer = format!("127.0.0.1:{}", free_port());
        let (other, _) = Bitcoind::start_with(path, &["-listen=1", &format!("-bind={peer}")]);
        let host = Host::start_with(HostOptions::in_front_of(&[]));
        Some(Self { host, other, peer })
    }

    fn node(&self) -> Client {
        self.host.node_client()
    }

    /// Cuts the connection between the nodes.
    fn part(&self) {
        self.node().call("setnetworkactive", json!([false]));
    }

    /// Connects the nodes again, and waits until they have the same height.
    fn join(&self) {
        let (mut node, mut other) = (self.node(), self.other.client());
        node.call("setnetworkactive", json!([true]));
        node.call("addnode", json!([self.peer, "onetry"]));
        wait_until("the nodes have the same height", || {
            node.call("getblockcount", json!([])) == other.call("getblockcount", json!([]))
        });
    }
}

/// Waits until both wallets report the same since a block: the host follows the node's mempool up to a second later.
fn compare(split: &Split, ours: &mut Client, theirs: &mut Client, block: &Value) {
    let mut client = split.host.client();
    wait_until("both wallets tell the same", || {
        client.call("getbestblockhash", json!([]));
        since(ours, block) == since(theirs, block)
    });
}

/// The answer of listsinceblock, in a comparable form.
fn since(wallet: &mut Client, block: &Value) -> Value {
    let told = wallet.call("listsinceblock", json!([block, 1, true, true]));
    let entries = |list: &Value| {
        let entry = |one: &Value| {
            let keys = ["txid", "category", "vout", "amount", "confirmations", "blockhash", "blockheight"];
            json!(keys.map(|key| one[key].clone())).to_string()
        };
        let mut entries: Vec<String> = list.as_array().unwrap().iter().map(entry).collect();
        entries.sort_unstable();
        entries
    };
    json!({"transactions": entries(&told["transactions"]), "removed": entries(&told["removed"]), "lastblock": told["lastblock"]})
}

#[test]
fn listsinceblock_reports_reorganisations_as_bitcoind_does() {
    let Some(mut split) = Split::start() else { return };
    let mut ours = split.host.new_wallet("w");
    let mut theirs = twin(split.node(), &mut ours);
    let mine = ours.mine(110);
    split.join();
    let mut before = split.node().call("getbestblockhash", json!([]));
    // Deep reorganisations, while the host runs and while it is stopped.
    for (depth, is_on) in [(1, true), (6, true), (20, false), (150, true), (150, false)] {
        split.part();
        let to = ours.call("getnewaddress", json!([]));
        ours.call("sendtoaddress", json!([to, 1]));
        split.node().call("generatetoaddress", json!([depth, mine]));
        split.other.client().call("generatetoaddress", json!([depth + 1, ADDRESS]));
        let stale = split.node().call("getbestblockhash", json!([]));
        compare(&split, &mut ours, &mut theirs, &before);
        if is_on {
            split.join();
        } else {
            assert!(split.host.terminate().success());
            split.join();
            split.host = split.host.start_again();
            split.host.client().call("loadwallet", json!(["w"]));
            ours = split.host.client().wallet("w");
        }
        for block in [&before, &stale] {
            // The payment returns to the mempool of both.
            compare(&split, &mut ours, &mut theirs, block);
        }
        before = split.node().call("getbestblockhash", json!([]));
        // Two branches of the same height: no wallet changes its branch.
        split.part();
        split.node().call("generatetoaddress", json!([1, mine]));
        let kept = split.node().call("getbestblockhash", json!([]));
        split.other.client().call("generatetoaddress", json!([1, ADDRESS]));
        split.join();
        compare(&split, &mut ours, &mut theirs, &before);
        assert_eq!(ours.call("listsinceblock", json!([]))["lastblock"], kept);
        // Both nodes begin the next split on one branch.
        split.node().call("generatetoaddress", json!([1, mine]));
        let next = split.node().call("getbestblockhash", json!([]));
        wait_until("both nodes are on one branch", || split.other.client().call("getbestblockhash", json!([])) == next);
        before = next;
    }
}

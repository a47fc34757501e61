//! Node configuration mistakes that both `run --check` and the start refuse.

use std::net::SocketAddr;

use outrigger_tests::{Bitcoind, bitcoind};

use crate::mistakes::{CHAIN, mistake};
use crate::users::ALICE;

/// The configuration of a host in front of the node; `login` holds its credential lines.
fn in_front(node: SocketAddr, network: &str, login: &str) -> String {
    format!("network = \"{network}\"\n[backend]\nurl = \"http://{node}\"\n{login}\n")
}

#[test]
fn run_check_and_the_start_refuse_a_node_alike() {
    let Some(path) = bitcoind::installed() else { return };
    let rpcauth = format!("-rpcauth={ALICE}");
    let methods = "getblockcount,getblockchaininfo,getnetworkinfo,stop";
    let (node, _) =
        Bitcoind::start_with(path, &[&rpcauth, &format!("-rpcwhitelist=alice:{methods}"), "-rpcwhitelistdefault=0"]);
    let (address, cookie) = (node.address, format!("cookie = \"{}\"", node.cookie().display()));
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        file.display().to_string()
    };
    let (wrong, right, stale) =
        (file("wrong", "wrong\n"), file("right", "pass:word\n"), file("stale", "__cookie__:00\n"));
    let alice = |password: &str| format!("user = \"alice\"\npassword_file = \"{password}\"");
    for mistake in [
        mistake(
            "a network",
            in_front(address, "main", &cookie),
            "FILE:1: network: the node is on regtest, but the host is configured for main",
        ),
        mistake(
            "a cookie of a former start",
            in_front(address, "regtest", &format!("cookie = \"{stale}\"")),
            format!("FILE:2: backend: http://{address} refuses the credentials"),
        ),
        mistake(
            "a password",
            in_front(address, "regtest", &alice(&wrong)),
            format!("FILE:2: backend: http://{address} refuses the credentials"),
        ),
        mistake(
            "a missing file of a password",
            in_front(address, "regtest", &alice("/nonexistent/password")),
            "FILE:5: backend.password_file: /nonexistent/password: No such file",
        ),
        mistake(
            "a user of the node without methods",
            in_front(address, "regtest", &alice(&right)),
            "FILE:2: backend: rpcwhitelist: the node does not allow its user 'alice' to call getbestblockhash, getblockhash, getblockheader (the chain)",
        ),
        mistake(
            "a user of the node, with the remedy",
            in_front(address, "regtest", &alice(&right)),
            "\nrpcwhitelist=alice:estimatesmartfee,getbestblockhash,getblock,",
        ),
        mistake(
            "a user without a password",
            in_front(address, "regtest", "user = \"alice\""),
            "FILE:4: backend.user: needs backend.password_file",
        ),
        mistake(
            "a group of the embedded chain",
            in_front(address, "regtest", &cookie) + CHAIN,
            "FILE:6: plugins.file: plugin 'chain' is for the embedded chain: in front of a bitcoind, the node answers its methods",
        ),
        mistake("a URL", in_front(address, "regtest", &cookie).replace("http://", "https://"), "FILE:3: backend.url: "),
        mistake("a typo", in_front(address, "regtest", "cookei = \"x\""), "did you mean 'cookie'?"),
    ] {
        mistake.judge();
    }
}

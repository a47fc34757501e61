//! The example `address-index` in front of a node, which serves the blocks and the outputs that they spend.

use outrigger_tests::bitcoind;

use super::start_behind_relay_with;
use crate::address_index::{World, section};

#[test]
fn address_index_has_the_balances_of_the_node_with_and_without_rest() {
    for arguments in [&["-rest=1"][..], &[]] {
        let group = |file: &str, grants: &str| format!("{{ file = \"{file}\", trusted = true, grants = [{grants}] }}");
        let wallet = "\"chain/1\", \"mempool/1\", \"wallet-read/1\", \"wallet-book/1\", \"wallet-pay/1\", \
                      \"wallet-import/1\", \"wallet-admin/1\", \"wallet-keys/1\", \"signer/1\", \"log/1\"";
        let import = "\"chain/1\", \"wallet-read/1\", \"wallet-book/1\", \"wallet-import/1\", \"events/1\", \"log/1\"";
        let plugins = [group("wallet", wallet), group("import", import), format!("{{ {} }}", section(", "))];
        let plugins = format!("plugins=[{}]", plugins.join(", "));
        let Some((host, relay)) = start_behind_relay_with(arguments, &[&plugins]) else { return };
        // At the start, the host checks whether the node's rpcwhitelist allows this method.
        let asked = relay.count("getblock");
        let mut node = host.node_client();
        let mut world = World::new(&host, 11);
        // The coins stay mature when the last hundred blocks are disconnected.
        world.mine(&mut node, 200);
        world.pay(&mut node, 6);
        let paid = world.compare();
        assert!(paid > 100, "{paid}");
        world.check_history();
        world.reorganise(&mut node);
        world.compare();
        world.pay(&mut node, 2);
        world.compare();
        // The node's REST interface serves blocks and, since release 30, the outputs that they spend.
        let has_all = !arguments.is_empty() && bitcoind::release(&mut node) >= 30;
        assert_eq!(relay.count("getblock") == asked, has_all);
    }
}

//! Random taproot trees: how PSBTs describe them in change outputs, and how both wallets sign them.
//!
//! `OUTRIGGER_PSBTS` sets how many PSBTs are signed, three for each tree. `OUTRIGGER_PSBTS_SEED` seeds the trees.

use bitcoin::Network;
use bitcoin::bip32::{Xpriv, Xpub};
use bitcoin::secp256k1::Secp256k1;
use outrigger_tests::Host;
use serde_json::{Value, json};

use super::super::{ADDRESS, start_set};
use super::Both;
use crate::kills::{Numbers, setting};

const MAX_LEAVES: u64 = 16;
/// The greatest depth of a leaf: the reference node allows no more, Bitcoin Core allows 128.
const MAX_DEPTH: usize = 7;

/// Makes descriptors with random trees.
struct Trees {
    numbers: Numbers,
    /// A master key of the wallets, and a foreign one of which the wallets have only the public key.
    masters: [String; 2],
    keys: u64,
}

impl Trees {
    fn new(seed: u64) -> Self {
        let [own, other] = [1, 2].map(|seed| Xpriv::new_master(Network::Regtest, &[seed; 32]).unwrap());
        let other = Xpub::from_priv(&Secp256k1::new(), &other);
        Self { numbers: Numbers(seed), masters: [own.to_string(), other.to_string()], keys: 0 }
    }

    /// A key that no other descriptor has. `#` stands for receive (0) or change (1).
    fn key(&mut self, own: bool) -> String {
        self.keys += 1;
        format!("{}/{}/#/*", self.masters[usize::from(!own)], self.keys)
    }

    fn leaf(&mut self) -> String {
        let [one, two, three] = [(); 3].map(|()| {
            let own = self.numbers.below(2) == 0;
            self.key(own)
        });
        match self.numbers.below(8) {
            0 => format!("pkh({one})"),
            1 => format!("multi_a(2,{one},{two},{three})"),
            2 => format!("sortedmulti_a(1,{one},{two})"),
            3 => format!("and_v(v:pk({one}),older(5))"),
            4 => format!("and_v(v:pkh({one}),after(20))"),
            _ => format!("pk({one})"),
        }
    }

    /// Makes a tree whose root is at `depth`, and adds the depths of its leaves to `depths`.
    fn tree(&mut self, leaves: u64, depth: usize, depths: &mut Vec<usize>) -> String {
        if leaves == 1 {
            depths.push(depth);
            return self.leaf();
        }
        let most = 1 << (MAX_DEPTH - depth - 1);
        let (least, most) = (leaves.saturating_sub(most).max(1), most.min(leaves - 1));
        let left = least + self.numbers.below(most - least + 1);
        let [left, right] = [left, leaves - left].map(|leaves| self.tree(leaves, depth + 1, depths));
        format!("{{{left},{right}}}")
    }

    /// A descriptor with a tree, and the depths of its leaves.
    fn descriptor(&mut self, leaves: u64) -> (String, Vec<usize>) {
        let mut depths = Vec::new();
        let tree = self.tree(leaves, 0, &mut depths);
        // A wallet with private keys refuses a descriptor without any.
        let own = self.numbers.below(2) == 0 || !tree.contains(&self.masters[0]);
        (format!("tr({},{tree})", self.key(own)), depths)
    }
}

/// A wallet on both sides with the descriptor and one coin of it.
fn wallets(host: &Host, name: &str, descriptor: &str) -> Both {
    let node = || host.node_client();
    let imports = ["0", "1"].map(|side| {
        let text = node().with_checksum(&descriptor.replace('#', side));
        json!({"desc": text, "timestamp": "now", "active": true, "internal": side == "1", "range": [0, 1]})
    });
    let mut sides = [host.client(), node()].map(|mut client| {
        let mut wallet = client.create_wallet(name, json!({"blank": true}));
        wallet.import(&json!(imports));
        wallet
    });
    let [ours, theirs] = sides.each_mut().map(|wallet| wallet.call("getnewaddress", json!(["", "bech32m"])));
    assert_eq!(ours, theirs, "{descriptor}");
    node().call("generatetoaddress", json!([1, ours]));
    let [ours, theirs] = sides;
    Both { ours, theirs }
}

/// The same payment as a PSBT without any data of its scripts.
fn plain(both: &mut Both, decoded: &Value) -> Value {
    let inputs: Vec<&Value> = decoded["tx"]["vin"].as_array().unwrap().iter().collect();
    let output = |output: &Value| json!({output["scriptPubKey"]["address"].as_str().unwrap(): output["value"]});
    let outputs: Vec<Value> = decoded["tx"]["vout"].as_array().unwrap().iter().map(output).collect();
    let params = both.with_version(json!([inputs, outputs, decoded["tx"]["locktime"], true]), 0);
    both.call("createpsbt", params)
}

#[test]
fn host_describes_and_signs_random_taproot_trees_as_the_node_does() {
    let Some(host) = start_set(&["-keypool=2", "-txindex=1"], &["wallet.keypool=2"]) else { return };
    let seed = setting("OUTRIGGER_PSBTS_SEED", 0x7a96_0711);
    eprintln!("OUTRIGGER_PSBTS_SEED={seed}");
    let mut trees = Trees::new(seed);
    let mut made = Vec::new();
    for number in 0..(setting("OUTRIGGER_PSBTS", 60) / 3).max(MAX_LEAVES) {
        let (descriptor, depths) = trees.descriptor(1 + number % MAX_LEAVES);
        made.push((wallets(&host, &format!("tree{number}"), &descriptor), descriptor, depths));
    }
    host.client().call("generatetoaddress", json!([100, ADDRESS]));
    let (mut complete, count) = (0, made.len());
    for (mut both, descriptor, depths) in made {
        let options = json!({"change_type": "bech32m", "changePosition": 1, "fee_rate": 10});
        let params = both.with_version(json!([[], [{ADDRESS: 1}], 0, options, true]), 0);
        let funded = both.ours.call("walletcreatefundedpsbt", params)["psbt"].clone();
        let decoded = both.call("decodepsbt", json!([funded]));
        both.analyze(json!([funded]));
        // The PSBT lists the last leaf first.
        let leaves = decoded["outputs"][1]["taproot_tree"].as_array().unwrap().iter().rev();
        let told: Vec<Value> = leaves.map(|leaf| json!([leaf["depth"], leaf["leaf_ver"]])).collect();
        assert_eq!(json!(told), depths.iter().map(|depth| json!([depth, 192])).collect::<Value>(), "{descriptor}");
        let plain = plain(&mut both, &decoded);
        for psbt in [&plain, &funded] {
            let updated = both.call("walletprocesspsbt", json!([psbt, false, "DEFAULT", true, false]))["psbt"].clone();
            let again = both.call("decodepsbt", json!([updated]));
            assert_eq!(again["outputs"], decoded["outputs"], "{descriptor}");
            let signed = both.call("walletprocesspsbt", json!([psbt, true, "DEFAULT", true, false]))["psbt"].clone();
            both.call("decodepsbt", json!([signed]));
            both.analyze(json!([signed]));
            let done = both.call("finalizepsbt", json!([signed]));
            if done["complete"] == true {
                let accepted = both.theirs.call("testmempoolaccept", json!([[done["hex"]]]));
                assert_eq!(accepted[0]["allowed"], true, "{descriptor}: {accepted}");
                complete += 1;
            }
        }
    }
    eprintln!("{complete} of {} are complete", 2 * count);
    assert!(complete > count / 2, "{complete}");
}

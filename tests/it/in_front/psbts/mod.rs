//! The group psbt beside the real bitcoind: the same questions to both, and equal answers, byte for byte.

mod fields;
mod known;
mod random;
mod trees;

use outrigger_tests::{Client, Host, bitcoind};
use serde_json::{Value, json};

use super::{ADDRESS, start};

struct Both {
    ours: Client,
    theirs: Client,
}

impl Both {
    fn of(host: &Host) -> Self {
        Self { ours: host.client(), theirs: host.node.as_ref().unwrap().client() }
    }

    /// The answer, which is the same of both.
    #[track_caller]
    fn ask(&mut self, method: &str, params: &Value) -> Result<Value, (i64, String)> {
        let answers = [&mut self.ours, &mut self.theirs].map(|client| {
            let answer = client.try_call(method, params.clone());
            answer.map_err(|failure| (failure.code, failure.message))
        });
        let [ours, theirs] = answers;
        let text = |answer: &Result<Value, _>| answer.as_ref().map(Value::to_string).map_err(Clone::clone);
        assert_eq!(text(&ours), text(&theirs), "{method} {params}");
        ours
    }

    #[track_caller]
    fn call(&mut self, method: &str, params: Value) -> Value {
        self.ask(method, &params).unwrap_or_else(|error| panic!("{method} {params}: {error:?}"))
    }

    /// The analyses are the same, but for the sizes: those of scripts with lock times are estimated otherwise.
    #[track_caller]
    fn analyze(&mut self, params: Value) {
        let [ours, theirs] = [&mut self.ours, &mut self.theirs].map(|client| {
            let mut analysis = client.call("analyzepsbt", params.clone());
            let members = analysis.as_object_mut().unwrap();
            members.retain(|key, _| !key.starts_with("estimated"));
            analysis
        });
        assert_eq!(ours, theirs, "analyzepsbt {params}");
    }
}

#[test]
fn psbt_methods_refuse_as_the_node() {
    let Some(host) = start(&[]) else { return };
    let mut both = Both::of(&host);
    let plain = fields::psbt("", "", "");
    let other = both.call("createpsbt", json!([[], [{ADDRESS: 1}], 7]));
    let signed = fields::TRANSACTION.replace("0000000000ffffffff", "000000000151ffffffff");
    for (method, params) in [
        ("createpsbt", json!([[{"txid": "11".repeat(32), "vout": 0}], [{ADDRESS: 1}, {"data": "aabb"}], 5, false])),
        ("createpsbt", json!([[{"txid": "11".repeat(32), "vout": 0, "sequence": 4_294_967_295_u32}], {}, 5, true])),
        ("createpsbt", json!([[{"vout": 0}], {}])),
        ("createpsbt", json!([["x"], {}])),
        ("createpsbt", json!([[], {"x": 1}])),
        ("createpsbt", json!(["x", {}])),
        ("converttopsbt", json!([fields::TRANSACTION])),
        ("converttopsbt", json!([signed])),
        ("converttopsbt", json!([signed, true])),
        ("converttopsbt", json!([signed, true, false])),
        ("converttopsbt", json!([signed, true, true])),
        ("converttopsbt", json!(["00"])),
        ("converttopsbt", json!([fields::TRANSACTION, 1])),
        ("combinepsbt", json!([[]])),
        ("combinepsbt", json!([[5]])),
        ("combinepsbt", json!([["x"]])),
        ("combinepsbt", json!([[plain, other]])),
        ("combinepsbt", json!(["x"])),
        ("joinpsbts", json!([[]])),
        ("joinpsbts", json!([[plain]])),
        ("joinpsbts", json!([[plain, plain]])),
        ("joinpsbts", json!([[plain, "x"]])),
        ("joinpsbts", json!([[plain, 5]])),
        ("decodepsbt", json!([5])),
        ("finalizepsbt", json!([plain, "x"])),
        ("finalizepsbt", json!(["x"])),
        ("finalizepsbt", json!([other])),
        ("finalizepsbt", json!([other, false])),
        ("analyzepsbt", json!([other])),
        ("analyzepsbt", json!(["x"])),
        ("utxoupdatepsbt", json!([plain, 5])),
        ("utxoupdatepsbt", json!([plain, [5]])),
        ("utxoupdatepsbt", json!(["x", [{}]])),
        ("utxoupdatepsbt", json!([plain, [{"desc": format!("pkh({})", fields::KEY), "range": [5, 3]}]])),
        ("utxoupdatepsbt", json!([plain, [format!("pkh({})", fields::KEY)]])),
        ("descriptorprocesspsbt", json!([plain, [], "x"])),
        ("descriptorprocesspsbt", json!(["x", []])),
        ("descriptorprocesspsbt", json!([plain, []])),
    ] {
        let _ = both.ask(method, &params);
    }
}

#[test]
fn walletprocesspsbt_signs_as_the_node() {
    let Some(host) = start(&[]) else { return };
    let mut client = host.client();
    client.call("createwallet", json!(["w"]));
    let theirs = bitcoind::twin(host.node.as_ref().unwrap().client(), &mut client);
    let mut both = Both { ours: client.wallet("w"), theirs };
    let mut coins = Vec::new();
    for kind in ["legacy", "p2sh-segwit", "bech32", "bech32m"] {
        let mine = both.call("getnewaddress", json!(["", kind]));
        let block = both.theirs.call("generatetoaddress", json!([1, mine]))[0].clone();
        let coinbase = both.theirs.call("getblock", json!([block]))["tx"][0].clone();
        coins.push(json!({"txid": coinbase, "vout": 0}));
    }
    host.client().call("generatetoaddress", json!([100, ADDRESS]));
    let change: Vec<Value> = ["legacy", "p2sh-segwit", "bech32", "bech32m"]
        .iter()
        .map(|kind| both.call("getrawchangeaddress", json!([kind])))
        .collect();
    let mut texts = Vec::new();
    for selected in [&coins[..], &coins[..1], &coins[1..2], &coins[2..3], &coins[3..]] {
        for to in &change {
            texts.push(both.call("createpsbt", json!([selected, [{to.as_str().unwrap(): 1}, {ADDRESS: 2}]])));
        }
    }
    for text in &texts {
        for bits in 0..8 {
            let (sign, origins, finalize) = (bits & 1 == 0, bits & 2 == 0, bits & 4 == 0);
            for sighash in ["DEFAULT", "ALL", "SINGLE|ANYONECANPAY"] {
                let answer = both.call("walletprocesspsbt", json!([text, sign, sighash, origins, finalize]));
                both.call("analyzepsbt", json!([answer["psbt"]]));
                both.call("decodepsbt", json!([answer["psbt"]]));
                if !sighash.contains("SINGLE") {
                    assert_eq!(answer["complete"], json!(sign && finalize));
                }
            }
        }
    }
    for params in [json!(["x"]), json!([texts[0], true, "x"])] {
        let _ = both.ask("walletprocesspsbt", &params);
    }
}

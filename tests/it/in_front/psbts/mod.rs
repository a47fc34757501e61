//! The psbt group and a real bitcoind give byte-identical answers to the same calls.

mod fields;
mod known;
mod random;
mod trees;

use outrigger_tests::{Client, Host, XPRV, bitcoind, skip};
use serde_json::{Value, json};

use super::{ADDRESS, start};

struct Both {
    ours: Client,
    theirs: Client,
}

impl Both {
    fn of(host: &Host) -> Self {
        Self { ours: host.client(), theirs: host.node_client() }
    }

    /// A wallet on the host and one on the node, with the same keys.
    fn with_wallet(host: &Host) -> Self {
        let mut ours = host.new_wallet("w");
        let theirs = bitcoind::twin(host.node_client(), &mut ours);
        Self { ours, theirs }
    }

    /// Whether the node creates PSBTs of version 2.
    fn has_version_two(&mut self) -> bool {
        bitcoind::release(&mut self.theirs) >= 32
    }

    /// Adds a PSBT version to the parameters of createpsbt or walletcreatefundedpsbt, if the node has the argument. `params` must
    /// end with the flag before `version`.
    fn with_version(&mut self, mut params: Value, version: u64) -> Value {
        if self.has_version_two() {
            params.as_array_mut().unwrap().extend([json!(2), json!(version)]);
        }
        params
    }

    /// Makes a call on both; returns the answer, which must be the same.
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

    /// Compares the analyses without the estimates, which differ for scripts with lock times.
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
fn psbt_methods_without_a_wallet_answer_as_the_node() {
    let Some(host) = start(&[]) else { return };
    let mut both = Both::of(&host);
    check_refusals(&mut both);
    fields::check_decodepsbt(&mut both);
    known::check_descriptors(&mut both);
    if both.has_version_two() {
        check_versions(&mut both);
    } else {
        skip("the node makes no PSBTs of version 2");
    }
}

fn check_refusals(both: &mut Both) {
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

/// The host creates and refuses PSBTs of both versions as the node.
fn check_versions(both: &mut Both) {
    let (zero, two) = (fields::psbt("", "", ""), fields::psbt_of_two("", "", ""));
    let input = json!([{"txid": "11".repeat(32), "vout": 0}]);
    for version in [json!(null), json!(0), json!(1), json!(2), json!(3), json!(-1), json!(2.5), json!("2")] {
        let _ = both.ask("createpsbt", &json!([input, [{ADDRESS: 1}], 5, false, 2, version]));
        let _ = both.ask("converttopsbt", &json!([fields::TRANSACTION, false, null, version]));
        let _ = both.ask("createpsbt", &json!([input, [{ADDRESS: 1}], 0, null, version, 0]));
        let named = json!({"inputs": input, "outputs": [{ADDRESS: 1}], "psbt_version": version});
        let _ = both.ask("createpsbt", &named);
    }
    for params in [
        json!([[{"vout": 0}], {}, 0, true, 2, 1]),
        json!([[{"vout": 0}], {}, 0, true, 4, 1]),
        json!(["x", {}, 0, true, 4, 1]),
    ] {
        let _ = both.ask("createpsbt", &params);
    }
    let _ = both.ask("converttopsbt", &json!(["zz", false, null, 1]));
    for texts in [[&zero, &two], [&two, &zero], [&two, &two]] {
        let _ = both.ask("joinpsbts", &json!([texts]));
        let _ = both.ask("combinepsbt", &json!([texts]));
    }
    for params in [json!([[two]]), json!([[two, "x"]]), json!([["x", two]]), json!([[two, 5]])] {
        let _ = both.ask("joinpsbts", &params);
    }
}

#[test]
fn wallets_make_and_sign_psbts_as_the_node() {
    let Some(host) = start(&["-fallbackfee=0.0001"]) else { return };
    let mut both = Both::with_wallet(&host);
    check_walletprocesspsbt(&mut both);
    if both.has_version_two() {
        check_versions_of_wallets(&mut both);
    } else {
        skip("the node makes no PSBTs of version 2");
    }
}

/// Wallets create PSBTs of the requested version.
fn check_versions_of_wallets(both: &mut Both) {
    both.theirs.call("syncwithvalidationinterfacequeue", json!([]));
    let txid = both.ours.call("sendtoaddress", json!([ADDRESS, 1]));
    let told = |client: &mut Client, method: &str, params: &Value| {
        client.call("syncwithvalidationinterfacequeue", json!([]));
        let made = client.try_call(method, params.clone()).map_err(|failure| (failure.code, failure.message))?;
        let decoded = client.call("decodepsbt", json!([made["psbt"]]));
        Ok::<_, (i64, String)>((decoded["psbt_version"].clone(), decoded["fallback_locktime"].is_u64()))
    };
    for version in [json!(null), json!(0), json!(1), json!(2), json!("2"), json!(-1)] {
        for (method, params) in [
            ("walletcreatefundedpsbt", json!([[], [{ADDRESS: 1}], 0, {"fee_rate": 2}, true, 2, version])),
            ("walletcreatefundedpsbt", json!([[], [{ADDRESS: 100_000}], 0, {"fee_rate": 2}, true, 2, version])),
            ("psbtbumpfee", json!([txid, {"psbt_version": version, "fee_rate": 50}])),
            ("psbtbumpfee", json!(["11".repeat(32), {"psbt_version": version}])),
            ("psbtbumpfee", json!([txid, {"psbt_version": version, "fee_rate": "x"}])),
            ("send", json!([[{ADDRESS: 1}], null, "unset", 3, {"psbt": true}])),
            ("send", json!([[{ADDRESS: 1}], null, "unset", 3, {"psbt": true, "psbt_version": version}])),
            ("sendall", json!([[ADDRESS], null, "unset", 3, {"psbt": true}])),
        ] {
            let [ours, theirs] = [&mut both.ours, &mut both.theirs].map(|client| told(client, method, &params));
            assert_eq!(ours, theirs, "{method} {params}");
        }
    }
}

#[test]
fn psbts_of_coins_in_the_index_are_signed_as_by_the_node() {
    let Some(host) = start(&["-txindex=1"]) else { return };
    let mut both = Both::of(&host);
    check_sighash_types(&mut both);
    known::check_output_keys(&mut both);
    known::check_knowledge(&mut Both::with_wallet(&host));
}

/// The host stores and compares sighash types of PSBTs as the node.
fn check_sighash_types(both: &mut Both) {
    for form in ["wpkh(ROOT/0)", "tr(ROOT/0)", "pkh(ROOT/0)"] {
        let private = form.replace("ROOT", XPRV);
        let descriptor = both.call("getdescriptorinfo", json!([private]))["descriptor"].clone();
        let mine = both.call("deriveaddresses", json!([descriptor]))[0].clone();
        let block = both.theirs.call("generatetoaddress", json!([1, mine]))[0].clone();
        let coinbase = both.theirs.call("getblock", json!([block]))["tx"][0].clone();
        both.ours.call("generatetoaddress", json!([1, ADDRESS]));
        let plain = both.call("createpsbt", json!([[{"txid": coinbase, "vout": 0}], [{ADDRESS: 1}]]));
        for stored in [json!(null), json!("DEFAULT"), json!("ALL"), json!("ALL|ANYONECANPAY"), json!("SINGLE")] {
            let signed = both.call("descriptorprocesspsbt", json!([plain, [private], stored, true, false]));
            let mut texts = vec![signed["psbt"].as_str().unwrap().to_owned()];
            for field in [None, Some(0), Some(1), Some(0x81), Some(0xff)] {
                texts.push(fields::with_sighash(&texts[0], field));
            }
            // Sign without the origins that the descriptor knows.
            let bare = both.call("descriptorprocesspsbt", json!([plain, [private], stored, false, false]));
            let _ = both.ask("utxoupdatepsbt", &json!([bare["psbt"], [private]]));
            for text in &texts {
                both.call("decodepsbt", json!([text]));
                both.call("finalizepsbt", json!([text, false]));
                both.call("analyzepsbt", json!([text]));
                both.call("analyzepsbt", json!([fields::without_previous(text)]));
                let _ = both.ask("utxoupdatepsbt", &json!([text, [private]]));
                for asked in [json!(null), json!("DEFAULT"), json!("ALL"), json!("ALL|ANYONECANPAY"), json!("SINGLE")] {
                    for descriptors in [json!([private]), json!([])] {
                        let _ = both.ask("descriptorprocesspsbt", &json!([text, descriptors, asked, true, true]));
                    }
                }
            }
        }
    }
}

fn check_walletprocesspsbt(both: &mut Both) {
    let mut coins = Vec::new();
    for kind in ["legacy", "p2sh-segwit", "bech32", "bech32m"] {
        let mine = both.call("getnewaddress", json!(["", kind]));
        let block = both.theirs.call("generatetoaddress", json!([1, mine]))[0].clone();
        let coinbase = both.theirs.call("getblock", json!([block]))["tx"][0].clone();
        coins.push(json!({"txid": coinbase, "vout": 0}));
    }
    both.ours.call("generatetoaddress", json!([100, ADDRESS]));
    let change: Vec<Value> = ["legacy", "p2sh-segwit", "bech32", "bech32m"]
        .iter()
        .map(|kind| both.call("getrawchangeaddress", json!([kind])))
        .collect();
    let mut texts = Vec::new();
    for selected in [&coins[..], &coins[..1], &coins[1..2], &coins[2..3], &coins[3..]] {
        for to in &change {
            let params = json!([selected, [{to.as_str().unwrap(): 1}, {ADDRESS: 2}], 0, true]);
            // Half of the PSBTs have version 2.
            let params = both.with_version(params, 2 * (texts.len() as u64 % 2));
            texts.push(both.call("createpsbt", params));
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
    // A final input without its spent output is not complete. descriptorprocesspsbt finds native segwit coins in the chain; for
    // others, Bitcoin Core 29 fails with an internal error.
    for (text, is_found) in texts.iter().step_by(change.len()).zip([false, false, false, true, true]) {
        let signed = both.call("walletprocesspsbt", json!([text]));
        let bare = fields::without_spent(signed["psbt"].as_str().unwrap());
        for method in ["finalizepsbt", "walletprocesspsbt"] {
            assert_eq!(both.call(method, json!([bare]))["complete"], json!(false), "{method} {bare}");
        }
        let processed = both.ours.call("descriptorprocesspsbt", json!([bare, []]));
        assert_eq!((&signed["complete"], &processed["complete"]), (&json!(true), &json!(is_found)), "{bare}");
    }
    for params in [json!(["x"]), json!([texts[0], true, "x"])] {
        let _ = both.ask("walletprocesspsbt", &params);
    }
}

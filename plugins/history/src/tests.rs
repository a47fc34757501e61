mod received;

use bitcoin::absolute::LockTime;
use bitcoin::hashes::Hash;
use bitcoin::{Amount, BlockHash, OutPoint, ScriptBuf, Sequence, Transaction, TxIn, TxOut, Witness, consensus};
use outrigger_sdk::service::wallet::{
    Ownership, Replaceable, TxState, UnsettledState, WalletOutput, WalletTransaction,
};
use outrigger_sdk::service::{Chain, Scope};
use outrigger_sdk::testing::{KnownTransaction, StubHost, TestPlugin, WalletState};
use serde_json::{Value, json};

use crate::HistoryPlugin;

/// A host with a wallet, and a plugin on it.
struct Harness {
    host: StubHost,
    plugin: TestPlugin<HistoryPlugin>,
    order_position: u64,
}

/// The script of a P2WPKH output whose key hash is all `byte`.
fn script(byte: u8) -> ScriptBuf {
    ScriptBuf::from_bytes([vec![0x00, 0x14], vec![byte; 20]].concat())
}

fn transaction(salt: u32, outputs: &[(u64, u8)]) -> Transaction {
    Transaction {
        version: bitcoin::transaction::Version::TWO,
        lock_time: LockTime::from_consensus(salt),
        input: vec![TxIn {
            previous_output: OutPoint::new(bitcoin::Txid::from_byte_array([7; 32]), salt),
            script_sig: ScriptBuf::new(),
            sequence: Sequence::MAX,
            witness: Witness::new(),
        }],
        output: outputs
            .iter()
            .map(|(value, byte)| TxOut { value: Amount::from_sat(*value), script_pubkey: script(*byte) })
            .collect(),
    }
}

impl Harness {
    fn new() -> Self {
        let host = StubHost::new();
        host.wallet.set(Some(WalletState::empty("w")));
        let plugin = host.start::<HistoryPlugin>(include_str!("../manifest.json"), json!({}));
        let harness = Self { host, plugin, order_position: 0 };
        harness.sync();
        harness
    }

    /// Mines blocks and lets the wallet follow.
    fn mine(&self, count: u32) -> Vec<BlockHash> {
        let hashes = (0..count).map(|_| self.host.chain.mine(vec![])).collect();
        self.sync();
        hashes
    }

    fn sync(&self) {
        let tip = self.host.chain.tip(Scope::NONE).unwrap();
        self.host
            .wallet
            .with(|state| {
                state.info.synced.hash = tip.hash;
                state.info.synced.height = tip.height;
            })
            .unwrap();
    }

    /// Puts a transaction into the wallet, after `change` had its way with the row.
    fn add(
        &mut self,
        transaction: &Transaction,
        state: TxState,
        change: impl FnOnce(&mut WalletTransaction),
    ) -> String {
        self.order_position += 1;
        let mut row = WalletTransaction {
            contested: false,
            txid: transaction.compute_txid(),
            wtxid: transaction.compute_wtxid(),
            state,
            order_position: self.order_position,
            time: 1000,
            time_received: 1001,
            coinbase: false,
            signals: false,
            lock_time: 0,
            total_output: transaction.output.iter().map(|output| output.value).sum(),
            debit_spendable: Amount::ZERO,
            debit_watch_only: Amount::ZERO,
            outputs: transaction
                .output
                .iter()
                .map(|output| WalletOutput {
                    value: output.value,
                    script: output.script_pubkey.clone(),
                    ownership: Ownership::None,
                    change: false,
                    label: None,
                    descriptors: Vec::new(),
                })
                .collect(),
            inputs: transaction.input.iter().map(|input| input.previous_output).collect(),
            metadata: Vec::new(),
        };
        change(&mut row);
        let unsettled = UnsettledState {
            conflicts: Vec::new(),
            mempool_conflicts: Vec::new(),
            trusted: false,
            replaceable: Replaceable::No,
        };
        let unsettled = (!matches!(row.state, TxState::Confirmed { .. })).then_some(unsettled);
        let known = KnownTransaction { transaction: row, unsettled, raw: consensus::serialize(transaction) };
        self.host.wallet.with(|state| state.transactions.push(known)).unwrap();
        transaction.compute_txid().to_string()
    }

    /// Changes what the moment says of the last transaction that was added.
    fn change_unsettled(&self, change: impl FnOnce(&mut UnsettledState)) {
        let last = |state: &mut WalletState| change(state.transactions.last_mut().unwrap().unsettled.as_mut().unwrap());
        self.host.wallet.with(last).unwrap();
    }

    fn call(&self, method: &str, arguments: Value) -> Value {
        self.plugin.call(method, arguments).unwrap()
    }

    #[track_caller]
    fn refused(&self, method: &str, arguments: Value, code: i32, message: &str) {
        let error = self.plugin.call(method, arguments).unwrap_err();
        assert_eq!((error.code.0, error.message.as_str()), (code, message));
    }
}

fn ours(row: &mut WalletTransaction, vout: usize, label: Option<&str>) {
    row.outputs[vout].ownership = Ownership::Spendable;
    row.outputs[vout].label = label.map(str::to_owned);
    row.outputs[vout].change = label.is_none();
}

fn confirmed(block: BlockHash, height: u32) -> TxState {
    TxState::Confirmed { block, height, index: 1, time: 900 }
}

#[test]
fn gettransaction_shows_amount_fee_and_no_change() {
    let mut harness = Harness::new();
    let block = harness.mine(1)[0];
    harness.mine(2);
    let payment = transaction(1, &[(30_000, 1), (60_000, 2)]);
    let txid = harness.add(&payment, confirmed(block, 1), |row| {
        row.debit_spendable = Amount::from_sat(100_000);
        ours(row, 1, None);
        row.metadata = vec![("comment".into(), "rent".into())];
    });
    let json = harness.plugin.call_json("gettransaction", json!([txid])).unwrap();
    let expected = format!(
        "{{\"amount\":-0.00030000,\"fee\":-0.00010000,\"confirmations\":3,\"blockhash\":\"{block}\",\"blockheight\":1,\
         \"blockindex\":1,\"blocktime\":900,\"txid\":\"{txid}\",\"wtxid\":\"{}\",\"walletconflicts\":[],\
         \"mempoolconflicts\":[],\"time\":1000,\"timereceived\":1001,\"bip125-replaceable\":\"no\",\"comment\":\"rent\",\
         \"details\":[{{\"address\":\"bcrt1qqyqszqgpqyqszqgpqyqszqgpqyqszqgpvxat9t\",\"category\":\"send\",\
         \"amount\":-0.00030000,\"vout\":0,\"fee\":-0.00010000,\"abandoned\":false}}],\"hex\":\"{}\",\
         \"lastprocessedblock\":{{",
        payment.compute_wtxid(),
        consensus::encode::serialize_hex(&payment),
    );
    assert_eq!(&json[..expected.len()], expected);
}

#[test]
fn gettransaction_verbose_decodes_and_a_payment_to_oneself_appears_twice() {
    let mut harness = Harness::new();
    let payment = transaction(1, &[(30_000, 1)]);
    let txid = harness.add(&payment, TxState::InMempool, |row| {
        row.debit_spendable = Amount::from_sat(31_000);
        ours(row, 0, Some("mine"));
    });
    harness.change_unsettled(|unsettled| unsettled.trusted = true);
    let answer = harness.call("gettransaction", json!([txid, null, true]));
    assert_eq!(answer["decoded"]["txid"], json!(txid));
    assert_eq!((&answer["trusted"], &answer["confirmations"]), (&json!(true), &json!(0)));
    let categories: Vec<_> = answer["details"].as_array().unwrap().iter().map(|entry| &entry["category"]).collect();
    assert_eq!(categories, ["send", "receive"]);
    assert_eq!(answer["amount"].to_string(), "0.00000000");
}

#[test]
fn gettransaction_coinbase_matures_at_101_and_is_an_orphan_without_its_block() {
    let mut harness = Harness::new();
    let block = harness.mine(1)[0];
    let coinbase = transaction(1, &[(5_000_000_000, 1)]);
    let txid = harness.add(&coinbase, confirmed(block, 1), |row| {
        row.coinbase = true;
        ours(row, 0, Some(""));
    });
    let state = |harness: &Harness| {
        let answer = harness.call("gettransaction", json!([txid]));
        (answer["details"][0]["category"].clone(), answer["amount"].to_string(), answer["generated"].clone())
    };
    harness.mine(99);
    assert_eq!(state(&harness), (json!("immature"), "0.00000000".into(), json!(true)));
    harness.mine(1);
    assert_eq!(state(&harness), (json!("generate"), "50.00000000".into(), json!(true)));
    harness.host.wallet.with(|wallet| wallet.transactions[0].transaction.state = TxState::Inactive).unwrap();
    assert_eq!(state(&harness), (json!("orphan"), "0.00000000".into(), json!(true)));
}

#[test]
fn gettransaction_counts_watched_scripts_only_when_asked_for() {
    let mut harness = Harness::new();
    let txid = harness.add(&transaction(1, &[(30_000, 1)]), TxState::InMempool, |row| {
        row.outputs[0].ownership = Ownership::WatchOnly;
    });
    let answer = harness.call("gettransaction", json!([txid]));
    assert_eq!((answer["amount"].to_string().as_str(), &answer["details"]), ("0.00000000", &json!([])));
    let answer = harness.call("gettransaction", json!([txid, true]));
    assert_eq!(answer["details"][0]["involvesWatchonly"], json!(true));
    harness.host.wallet.with(|wallet| wallet.info.private_keys_enabled = false).unwrap();
    assert_eq!(harness.call("gettransaction", json!([txid]))["amount"].to_string(), "0.00030000");
}

#[test]
fn listsinceblock_lists_what_is_above_the_block_and_what_is_unconfirmed() {
    let mut harness = Harness::new();
    let blocks = harness.mine(5);
    let mut txids = Vec::new();
    for (salt, block) in [(1, 0), (2, 2), (3, 4)] {
        let state = confirmed(blocks[block], block as u32 + 1);
        txids.push(harness.add(&transaction(salt, &[(1000, 1)]), state, |row| ours(row, 0, Some(""))));
    }
    txids.push(harness.add(&transaction(4, &[(1000, 1)]), TxState::Abandoned, |row| ours(row, 0, Some(""))));
    let conflicted = TxState::Conflicted { block: blocks[4], height: 5 };
    txids.push(harness.add(&transaction(5, &[(1000, 1)]), conflicted, |row| {
        row.debit_spendable = Amount::from_sat(2000);
        ours(row, 0, Some(""));
    }));
    let listed = |arguments: Value| {
        let answer = harness.call("listsinceblock", arguments);
        let found = answer["transactions"].as_array().unwrap().iter();
        let numbers: Vec<usize> =
            found.map(|entry| txids.iter().position(|txid| entry["txid"] == **txid).unwrap() + 1).collect();
        (numbers, answer["lastblock"].as_str().unwrap().to_owned(), answer.get("removed").is_some())
    };
    let tip = blocks[4].to_string();
    assert_eq!(listed(json!([])), (vec![1, 2, 3, 4, 5], tip.clone(), true));
    assert_eq!(listed(json!([""])).0, [1, 2, 3, 4, 5]);
    assert_eq!(listed(json!([blocks[0].to_string(), 3])), (vec![2, 3, 4, 5], blocks[2].to_string(), true));
    assert_eq!(listed(json!([tip, 100, null, false])).0, [4]);
    let genesis =
        harness.host.chain.block_info(Scope::NONE, outrigger_sdk::service::chain::BlockRef::Height { height: 0 });
    assert_eq!(listed(json!([tip, 100, null, false])).1, genesis.unwrap().unwrap().hash.to_string());
    assert!(!listed(json!([tip, 1, null, false])).2);
}

#[test]
fn listsinceblock_removed_lists_what_a_reorganisation_took_away() {
    let mut harness = Harness::new();
    harness.mine(2);
    let payment = transaction(1, &[(1000, 1)]);
    let stale = harness.host.chain.mine(vec![payment.clone()]);
    harness.host.chain.disconnect();
    let fork = harness.host.chain.tip(Scope::NONE).unwrap();
    let block = harness.mine(1)[0];
    let txid = harness.add(&payment, confirmed(block, 3), |row| ours(row, 0, Some("")));
    let answer = harness.call("listsinceblock", json!([stale.to_string()]));
    assert_eq!(answer["transactions"][0]["txid"], json!(txid));
    assert_eq!((&answer["removed"][0]["txid"], &answer["removed"][0]["confirmations"]), (&json!(txid), &json!(1)));
    let answer = harness.call("listsinceblock", json!([fork.hash.to_string()]));
    assert_eq!(answer["removed"], json!([]));
}

/// The keys of an entry, in their order.
fn keys(entry: &Value) -> Vec<&str> {
    entry.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn listtransactions_says_abandoned_of_received_entries_before_the_confirmations() {
    let mut harness = Harness::new();
    harness.add(&transaction(1, &[(1000, 1)]), TxState::Abandoned, |row| ours(row, 0, Some("")));
    harness.add(&transaction(2, &[(1000, 1)]), TxState::InMempool, |row| row.debit_spendable = Amount::from_sat(2000));
    let listed = harness.call("listtransactions", json!([]));
    let shared = [
        "confirmations",
        "trusted",
        "txid",
        "wtxid",
        "walletconflicts",
        "mempoolconflicts",
        "time",
        "timereceived",
        "bip125-replaceable",
    ];
    let received = [&["address", "parent_descs", "category", "amount", "label", "vout", "abandoned"][..], &shared];
    assert_eq!(keys(&listed[0]), received.concat());
    assert_eq!(listed[0]["abandoned"], json!(true));
    let sent = [&["address", "category", "amount", "vout", "fee"][..], &shared, &["abandoned"]];
    assert_eq!(keys(&listed[1]), sent.concat());
    let details = |entry: &Value| harness.call("gettransaction", json!([entry["txid"]]))["details"][0].clone();
    let own = ["address", "parent_descs", "category", "amount", "label", "vout", "abandoned"];
    assert_eq!(keys(&details(&listed[0])), own);
    assert_eq!(keys(&details(&listed[1])), ["address", "category", "amount", "vout", "fee", "abandoned"]);
}

#[test]
fn listsinceblock_shows_change_and_selects_by_label_where_it_is_asked_to() {
    let mut harness = Harness::new();
    // A payment with change, one to an address with a label, and one from others to an address without entry.
    harness.add(&transaction(1, &[(1, 1), (2, 2)]), TxState::InMempool, |row| {
        row.debit_spendable = Amount::from_sat(10);
        ours(row, 1, None);
    });
    harness.add(&transaction(2, &[(3, 1)]), TxState::InMempool, |row| ours(row, 0, Some("rent")));
    harness.add(&transaction(3, &[(4, 1)]), TxState::InMempool, |row| ours(row, 0, None));
    let listed = |change: Value, label: Value| -> Vec<String> {
        let answer = harness.call("listsinceblock", json!(["", 1, null, true, change, label]));
        let entries = answer["transactions"].as_array().unwrap().iter();
        entries.map(|entry| format!("{} {}", entry["category"].as_str().unwrap(), entry["amount"])).collect()
    };
    let (sent, change) = ("send -0.00000001".to_owned(), "send -0.00000002".to_owned());
    let receive = |satoshi: u8| format!("receive 0.0000000{satoshi}");
    assert_eq!(listed(json!(null), json!(null)), [sent.clone(), receive(3), receive(4)]);
    assert_eq!(listed(json!(true), json!(null)), [sent, change, receive(2), receive(3), receive(4)]);
    assert_eq!(listed(json!(false), json!("rent")), [receive(3)]);
    assert_eq!(listed(json!(false), json!("")), [receive(4)], "an address without entry counts as one without a label");
    assert_eq!(listed(json!(true), json!("")), [receive(2), receive(4)]);
    harness.refused("listsinceblock", json!(["", 1, null, true, true, "*"]), -11, "Invalid label name");
}

#[test]
fn listtransactions_latest_entries_come_oldest_first() {
    let mut harness = Harness::new();
    for salt in 1..=4 {
        harness.add(&transaction(salt, &[(u64::from(salt), 1), (u64::from(salt) * 10, 2)]), TxState::Inactive, |row| {
            ours(row, 0, Some("a"));
            ours(row, 1, Some("b"));
        });
    }
    let amounts = |arguments: Value| -> Vec<String> {
        let answer = harness.call("listtransactions", arguments);
        answer.as_array().unwrap().iter().map(|entry| entry["amount"].to_string()[8..].to_owned()).collect()
    };
    assert_eq!(amounts(json!(["*", 3, 1])), ["30", "03", "40"]);
    assert_eq!(amounts(json!(["b", 2])), ["30", "40"]);
    assert_eq!(amounts(json!(["*", 0])), Vec::<String>::new());
    harness.refused("listtransactions", json!([""]), -8, "Label argument must be a valid label name or \"*\".");
    harness.refused("listtransactions", json!(["*", -1]), -8, "Negative count");
    harness.refused("listtransactions", json!(["*", 1, -1]), -8, "Negative from");
}

#[test]
fn history_rpcs_refuse_bad_arguments_in_order() {
    let harness = Harness::new();
    let unknown = "ab".repeat(32);
    harness.refused("gettransaction", json!([unknown]), -5, "Invalid or non-wallet transaction id");
    harness.refused("gettransaction", json!(["ab"]), -8, "txid must be of length 64 (not 2, for 'ab')");
    harness.refused("listsinceblock", json!([unknown]), -5, "Block not found");
    harness.refused("listsinceblock", json!(["", 0]), -8, "Invalid parameter");
    harness.refused("listsinceblock", json!(["", 1.5]), -1, "JSON integer out of range");
    harness.refused("abandontransaction", json!([unknown]), -5, "Invalid or non-wallet transaction id");
    harness.refused("setcomment", json!([unknown, "rent"]), -5, "Invalid or non-wallet transaction id");
    let long = "x".repeat(16_385);
    harness.refused("setcomment", json!([unknown, long]), -8, "A comment has at most 16384 bytes, this one has 16385");
    harness.host.wallet.set(None);
    let error = harness.plugin.call("gettransaction", json!([unknown])).unwrap_err();
    assert_eq!(error.code.0, -18);
}

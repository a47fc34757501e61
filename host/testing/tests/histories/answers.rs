//! The answers that the history plugin should give, computed from the naive model.

use bitcoin::consensus::encode::serialize_hex;
use bitcoin::{BlockHash, ScriptBuf, Txid};
use outrigger_service::wallet::Ownership;
use serde_json::{Map, Value, json};

use super::cast::Role;
use super::naive::{Met, Naive};

pub struct Answers<'a> {
    pub naive: &'a Naive,
    pub roles: &'a [Role],
}

/// The options of a listing.
#[derive(Clone, Copy, Default)]
pub struct Asked<'a> {
    /// Whether watched scripts count.
    pub watch: bool,
    /// Only outputs received with this label.
    pub label: Option<&'a str>,
    /// Whether change counts, too.
    pub change: bool,
}

/// An amount as a JSON number of BTC with eight decimals.
pub fn amount(satoshi: i128) -> Value {
    let sign = if satoshi < 0 { "-" } else { "" };
    let text = format!("{sign}{}.{:08}", satoshi.abs() / 100_000_000, satoshi.abs() % 100_000_000);
    serde_json::from_str(&text).unwrap()
}

pub fn satoshi(amount: &Value) -> i128 {
    let text = amount.to_string();
    let (whole, part) = text.split_once('.').unwrap();
    assert_eq!(part.len(), 8, "{text}");
    format!("{whole}{part}").parse().unwrap()
}

fn texts(txids: Vec<Txid>) -> Value {
    txids.iter().map(Txid::to_string).collect()
}

impl Answers<'_> {
    fn role(&self, script: &ScriptBuf) -> Option<&Role> {
        self.roles.iter().find(|role| role.script == *script)
    }

    fn label(&self, script: &ScriptBuf) -> Option<&String> {
        self.naive.labels.get(self.role(script)?.address_script.as_ref()?)
    }

    fn counts(watch: bool) -> impl Fn(Ownership) -> bool {
        move |ownership| ownership == Ownership::Spendable || watch && ownership == Ownership::WatchOnly
    }

    /// The value of the transaction's outputs to the wallet, immature or not, in satoshi.
    fn received(&self, met: &Met, watch: bool) -> i128 {
        let ours = met.named.tx.output.iter().filter(|output| Self::counts(watch)(self.naive.owner(output)));
        ours.map(|output| i128::from(output.value.to_sat())).sum()
    }

    /// The negative fee in satoshi: all outputs less the wallet's spent coins; `None` if the transaction spends none.
    fn fee(&self, met: &Met, watch: bool) -> Option<i128> {
        let debit = i128::from(self.naive.debit(met, Self::counts(watch)));
        let total: i128 = met.named.tx.output.iter().map(|output| i128::from(output.value.to_sat())).sum();
        (debit > 0).then_some(total - debit)
    }

    fn shared(&self, met: &Met) -> Map<String, Value> {
        let (naive, txid) = (self.naive, met.named.txid);
        let mut keys = Map::new();
        let mut key = |name: &str, value: Value| keys.insert(name.to_owned(), value);
        key("confirmations", naive.depth(txid).into());
        if met.named.tx.is_coinbase() {
            key("generated", true.into());
        }
        match naive.place(txid) {
            Some(place) => {
                key("blockhash", place.block.hash.to_string().into());
                key("blockheight", place.block.height.into());
                key("blockindex", place.index.into());
                key("blocktime", place.block.time.into());
            }
            None => {
                key("trusted", naive.trusted(txid).into());
            }
        }
        key("txid", txid.to_string().into());
        key("wtxid", met.named.tx.compute_wtxid().to_string().into());
        key("walletconflicts", texts(naive.conflicts(met)));
        key("mempoolconflicts", texts(naive.pool_conflicts(met)));
        key("time", met.time.into());
        key("timereceived", met.received.into());
        key("bip125-replaceable", naive.replaceable(txid).into());
        for (name, value) in naive.remarks.get(&txid).into_iter().flatten() {
            key(name, value.clone().into());
        }
        keys
    }

    fn entry(&self, met: &Met, vout: usize, fee: Option<i128>, shared: bool) -> Value {
        let output = &met.named.tx.output[vout];
        let value = i128::from(output.value.to_sat());
        let watched = |ownership| ownership == Ownership::WatchOnly;
        let mut entry = Map::new();
        if self.naive.debit(met, watched) > 0 || watched(self.naive.owner(output)) {
            entry.insert("involvesWatchonly".into(), true.into());
        }
        let role = self.role(&output.script_pubkey);
        if let Some(address) = role.and_then(Role::address) {
            entry.insert("address".into(), address.into());
        }
        if fee.is_none() {
            let parents = self.naive.owned.get(&output.script_pubkey).map(|(_, parents)| parents.clone());
            entry.insert("parent_descs".into(), parents.unwrap_or_default().into());
        }
        let depth = self.naive.depth(met.named.txid);
        let category = match (fee, met.named.tx.is_coinbase()) {
            (Some(_), _) => "send",
            (None, false) => "receive",
            (None, true) if depth < 1 => "orphan",
            (None, true) if depth <= 100 => "immature",
            (None, true) => "generate",
        };
        entry.insert("category".into(), category.into());
        entry.insert("amount".into(), amount(if fee.is_some() { -value } else { value }));
        if let Some(label) = self.label(&output.script_pubkey) {
            entry.insert("label".into(), label.clone().into());
        }
        entry.insert("vout".into(), vout.into());
        let abandoned = Value::from(self.naive.given_up.contains(&met.named.txid));
        match fee {
            Some(fee) => entry.insert("fee".into(), amount(fee)),
            None => entry.insert("abandoned".into(), abandoned.clone()),
        };
        if shared {
            entry.extend(self.shared(met));
        }
        if fee.is_some() {
            entry.insert("abandoned".into(), abandoned);
        }
        Value::Object(entry)
    }

    /// The sent entries in the order of the outputs, then the received entries.
    fn entries(&self, met: &Met, asked: Asked<'_>, any_depth: bool, shared: bool) -> Vec<Value> {
        let Asked { watch, label, change: with_change } = asked;
        let fee = self.fee(met, watch);
        let (mut sent, mut received) = (Vec::new(), Vec::new());
        for (vout, output) in met.named.tx.output.iter().enumerate() {
            let (owner, entered) = (self.naive.owner(output), self.label(&output.script_pubkey));
            let change = owner != Ownership::None && entered.is_none();
            if fee.is_some() && change && !with_change {
                continue;
            }
            if fee.is_some() && label.is_none() {
                sent.push(self.entry(met, vout, fee, shared));
            }
            let wanted = label.is_none_or(|label| entered.map_or("", String::as_str) == label);
            if Self::counts(watch)(owner) && wanted && (any_depth || self.naive.depth(met.named.txid) >= 0) {
                received.push(self.entry(met, vout, None, shared));
            }
        }
        sent.append(&mut received);
        sent
    }

    pub fn transaction(&self, txid: Txid, watch: bool) -> Option<Value> {
        let met = self.naive.find(txid)?;
        let fee = self.fee(met, watch);
        let debit = i128::from(self.naive.debit(met, Self::counts(watch)));
        let immature = met.named.tx.is_coinbase() && self.naive.depth(txid) <= 100;
        let credit = if immature { 0 } else { self.received(met, watch) };
        let mut answer = Map::new();
        answer.insert("amount".into(), amount(credit - debit - fee.unwrap_or(0)));
        if let Some(fee) = fee {
            answer.insert("fee".into(), amount(fee));
        }
        answer.extend(self.shared(met));
        answer.insert("details".into(), self.entries(met, Asked { watch, ..Asked::default() }, false, false).into());
        answer.insert("hex".into(), serialize_hex(&met.named.tx).into());
        let tip = self.naive.tip();
        answer.insert("lastprocessedblock".into(), json!({"hash": tip.hash.to_string(), "height": tip.height}));
        Some(answer.into())
    }

    pub fn since(&self, block: Option<BlockHash>, target: u32, asked: Asked<'_>, include_removed: bool) -> Value {
        let naive = self.naive;
        let tip = i64::from(naive.tip().height);
        let fork = block.map(|hash| naive.fork(hash));
        let within = |depth: i64| fork.is_none_or(|fork| depth.abs() < tip + 1 - i64::from(fork));
        let (mut confirmed, mut others) = (Vec::new(), Vec::new());
        for met in naive.met.iter().filter(|met| within(naive.depth(met.named.txid))) {
            match naive.place(met.named.txid) {
                Some(place) => confirmed.push((place.block.height, place.index, met)),
                None => others.push(met),
            }
        }
        confirmed.sort_by_key(|(height, index, _)| (*height, *index));
        let listed = confirmed.into_iter().map(|(_, _, met)| met).chain(others);
        let listed: Vec<Value> = listed.flat_map(|met| self.entries(met, asked, false, true)).collect();
        let mut answer = Map::new();
        answer.insert("transactions".into(), listed.into());
        if include_removed {
            let mut removed = Vec::new();
            let mut at = block.map(|hash| &naive.blocks[&hash]);
            while let Some(block) = at.filter(|block| !naive.is_in_chain(block)) {
                for met in block.transactions.iter().filter_map(|named| naive.find(named.txid)) {
                    removed.append(&mut self.entries(met, asked, true, true));
                }
                at = Some(&naive.blocks[&block.previous]);
            }
            answer.insert("removed".into(), removed.into());
        }
        let last = (tip + 1 - i64::from(target)).max(0);
        answer.insert("lastblock".into(), naive.chain[last as usize].hash.to_string().into());
        answer.into()
    }

    pub fn latest(&self, label: Option<&str>, count: usize, skip: usize, watch: bool) -> Value {
        let asked = Asked { watch, label, change: false };
        let newest = self.naive.met.iter().rev().flat_map(|met| self.entries(met, asked, false, true));
        let mut listed: Vec<Value> = newest.skip(skip).take(count).collect();
        listed.reverse();
        listed.into()
    }
}

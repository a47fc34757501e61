//! The node's template of the next block, for mining plugins.

use std::sync::Arc;

use bitcoin::{Amount, BlockHash, Network, SignedAmount, Txid, Weight, Wtxid};
use outrigger_node::{NodeError, Result};
use outrigger_service::chain::{Deployment, DeploymentRule, DeploymentStage, NextBlock, SignalledDeployment, Tip};
use outrigger_service::json::from_json;
use outrigger_service::mempool::{Candidate, Prioritised, Selected};
use outrigger_values::amount::Saturating;
use outrigger_values::{Blob, RpcErrorCode};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::answers::Hex;
use super::blocks::transaction;
use super::error::known;
use super::rpc::Rpc;

/// `getblocktemplate`.
#[derive(Deserialize)]
pub struct Template {
    version: i32,
    rules: Vec<String>,
    vbavailable: Map<String, Value>,
    pub previousblockhash: BlockHash,
    transactions: Vec<TemplateTransaction>,
    coinbasevalue: u64,
    longpollid: String,
    mintime: u32,
    curtime: u64,
    bits: String,
    signet_challenge: Option<Hex>,
}

#[derive(Deserialize)]
struct TemplateTransaction {
    data: Hex,
    txid: Txid,
    hash: Wtxid,
    depends: Vec<u32>,
    fee: u64,
    sigops: u64,
    weight: u64,
}

impl Template {
    /// Requests a template on the node's tip. Fails with `Unconnected` if the node has no peers, and with `Downloading` if it is in its
    /// initial download.
    pub fn ask(rpc: &Rpc, network: Network) -> Result<Self> {
        let rules: &[&str] = if network == Network::Signet { &["segwit", "signet"] } else { &["segwit"] };
        Ok(rpc.ask("getblocktemplate", &json!([{"rules": rules}]))?)
    }

    fn fees(&self) -> Amount {
        self.transactions.iter().map(|one| Amount::from_sat(one.fee)).fold(Amount::ZERO, Amount::saturating_add)
    }

    /// The rules for a block on `tip`.
    pub fn next(&self, tip: Tip) -> Result<NextBlock> {
        let form = |what: &str| NodeError::Internal(format!("getblocktemplate: {what}"));
        let bit = |bit: &Value| bit.as_u64().and_then(|bit| u8::try_from(bit).ok()).ok_or_else(|| form("vbavailable"));
        let available = self.vbavailable.iter().map(|(rule, value)| Ok((rule.clone(), bit(value)?)));
        Ok(NextBlock {
            tip,
            version: self.version,
            bits: u32::from_str_radix(&self.bits, 16).map_err(|_| form("bits"))?,
            min_time: self.mintime,
            time: u32::try_from(self.curtime).map_err(|_| form("curtime"))?,
            subsidy: Amount::from_sat(self.coinbasevalue)
                .checked_sub(self.fees())
                .ok_or_else(|| form("coinbasevalue"))?,
            rules: self.rules.clone(),
            available: available.collect::<Result<_>>()?,
            signet_challenge: self.signet_challenge.as_ref().map(|challenge| challenge.0.clone().into()),
        })
    }
}

/// The node's last selection of transactions. An unchanged selection keeps its version.
#[derive(Default)]
pub struct Selections(Mutex<Last>);

#[derive(Default)]
struct Last {
    version: u64,
    previous: Option<BlockHash>,
    wtxids: Vec<Wtxid>,
    longpollid: String,
    sequence: u64,
}

impl Selections {
    /// The selection of a template that was requested at this sequence of the mempool; `None` if its version is
    /// `known`.
    pub fn candidate(
        &self,
        template: Template,
        tip: Tip,
        sequence: u64,
        known: Option<u64>,
    ) -> Result<Option<Candidate>> {
        let (version, sequence) = self.note(&template, sequence);
        if known == Some(version) {
            return Ok(None);
        }
        let (next, fees) = (template.next(tip)?, template.fees());
        let selected = |one: TemplateTransaction| Selected {
            raw: Arc::new(Blob(one.data.0)),
            txid: one.txid,
            wtxid: one.hash,
            fee: Amount::from_sat(one.fee),
            sigops: one.sigops,
            weight: Weight::from_wu(one.weight),
            depends: one.depends,
        };
        let transactions: Vec<Selected> = template.transactions.into_iter().map(selected).collect();
        Ok(Some(Candidate { version, next, transactions: transactions.into(), fees, sequence }))
    }

    /// Records a template. Returns its version and its mempool sequence.
    fn note(&self, template: &Template, sequence: u64) -> (u64, u64) {
        let wtxids: Vec<Wtxid> = template.transactions.iter().map(|one| one.hash).collect();
        let mut last = self.0.lock();
        if last.previous != Some(template.previousblockhash) || last.wtxids != wtxids {
            last.version += 1;
            (last.previous, last.wtxids) = (Some(template.previousblockhash), wtxids);
        }
        // The node caches a template for some seconds, so the sequence applies only to a new template.
        if last.longpollid != template.longpollid {
            (last.longpollid, last.sequence) = (template.longpollid.clone(), sequence);
        }
        (last.version, last.sequence)
    }
}

/// Returns the selection if its transactions have the listed ids.
pub fn proven(rpc: &Rpc, candidate: Candidate) -> Result<Candidate> {
    for Selected { raw, txid, wtxid, .. } in &*candidate.transactions {
        if transaction(rpc, *txid, raw)?.compute_wtxid() != *wtxid {
            return Err(rpc.unproven(format!("its transaction {txid} has another witness")).into());
        }
    }
    Ok(candidate)
}

/// `getdeploymentinfo`.
#[derive(Deserialize)]
pub struct DeploymentsAnswer {
    height: u32,
    deployments: Map<String, Value>,
}

#[derive(Deserialize)]
struct RuleAnswer {
    height: Option<u32>,
    bip9: Option<SignalsAnswer>,
}

#[derive(Deserialize)]
struct SignalsAnswer {
    #[serde(default)]
    bit: u8,
    start_time: i64,
    timeout: i64,
    min_activation_height: u32,
    status: String,
    since: u32,
    status_next: String,
    #[serde(default)]
    statistics: StatisticsAnswer,
    #[serde(default)]
    signalling: String,
}

#[derive(Deserialize, Default)]
struct StatisticsAnswer {
    period: u32,
    #[serde(default)]
    threshold: u32,
}

/// The deployments as of a block; `None` if the node does not know it.
pub fn deployments(rpc: &Rpc, hash: BlockHash) -> Result<Option<Vec<Deployment>>> {
    let answer = known(rpc.ask::<DeploymentsAnswer>("getdeploymentinfo", &json!([hash])))?;
    answer.map(DeploymentsAnswer::read).transpose()
}

impl DeploymentsAnswer {
    pub fn read(self) -> Result<Vec<Deployment>> {
        let next = self.height.saturating_add(1);
        let deployment = |(name, rule): (String, Value)| {
            let form = |reason: String| NodeError::Internal(format!("getdeploymentinfo: {name}: {reason}"));
            let rule: RuleAnswer = serde_json::from_value(rule).map_err(|error| form(error.to_string()))?;
            let rule = match (rule.bip9, rule.height) {
                (Some(signals), _) => DeploymentRule::Signalled { progress: progress(signals, next).map_err(form)? },
                (None, Some(height)) => DeploymentRule::Buried { height },
                (None, None) => return Err(form("neither a height nor bip9".to_owned())),
            };
            Ok(Deployment { name, rule })
        };
        self.deployments.into_iter().map(deployment).collect()
    }
}

/// `next` is the height after the block's.
fn progress(answer: SignalsAnswer, next: u32) -> std::result::Result<SignalledDeployment, String> {
    let (stage, next_stage) = (stage(answer.status)?, stage(answer.status_next)?);
    Ok(SignalledDeployment {
        bit: answer.bit,
        start_time: answer.start_time,
        timeout: answer.timeout,
        min_activation_height: answer.min_activation_height,
        stage,
        since: answer.since,
        next_stage,
        next_since: if stage == next_stage { answer.since } else { next },
        period: answer.statistics.period,
        threshold: answer.statistics.threshold,
        signals: answer.signalling.bytes().map(|mark| mark == b'#').collect(),
    })
}

/// bitcoind's names are those of BIP 9, as in the JSON form of a stage.
fn stage(status: String) -> std::result::Result<DeploymentStage, String> {
    from_json(&json!(status)).map_err(|_| format!("the status '{status}'"))
}

/// In satoshi.
#[derive(Deserialize)]
struct PrioritisedAnswer {
    fee_delta: i64,
    modified_fee: Option<i64>,
}

/// The transactions with a fee delta, by txid. `Unsupported` before Bitcoin Core 26.
pub fn prioritised(rpc: &Rpc) -> Result<Vec<Prioritised>> {
    type Answer = std::collections::BTreeMap<Txid, PrioritisedAnswer>;
    let answer: Answer = match rpc.ask("getprioritisedtransactions", &json!([])) {
        Err(error) if error.code() == Some(RpcErrorCode::METHOD_NOT_FOUND) => {
            return Err(NodeError::Unsupported(
                "'prioritised' needs a node of Bitcoin Core 26 or later, which has getprioritisedtransactions".into(),
            ));
        }
        answer => answer?,
    };
    // A cancelled delta may still be listed.
    let given = answer.into_iter().filter(|(_, one)| one.fee_delta != 0);
    let one = |(txid, one): (Txid, PrioritisedAnswer)| Prioritised {
        txid,
        fee_delta: SignedAmount::from_sat(one.fee_delta),
        modified_fee: one.modified_fee.map(SignedAmount::from_sat),
    };
    Ok(given.map(one).collect())
}

#[cfg(test)]
mod tests {
    use bitcoin::hashes::Hash;

    use super::*;

    fn template(mark: u8, longpollid: &str) -> Template {
        let hash = BlockHash::from_byte_array([mark; 32]);
        let id = Txid::from_byte_array([mark; 32]);
        serde_json::from_value(json!({
            "version": 0x2000_0000, "rules": ["csv", "!segwit"], "vbavailable": {"testdummy": 28}, "previousblockhash": hash,
            "transactions": [{"data": "00ff", "txid": id, "hash": id, "depends": [], "fee": 7, "sigops": 4, "weight": 400}],
            "coinbasevalue": 5_000_000_007_u64, "longpollid": longpollid, "mintime": 11, "curtime": 12, "bits": "207fffff",
        }))
        .unwrap()
    }

    #[test]
    fn candidate_is_the_template_of_the_node_under_a_version() {
        let tip = Tip { hash: BlockHash::from_byte_array([1; 32]), height: 5, time: 10, median_time: 10 };
        let selections = Selections::default();
        let ask = |mark, longpollid: &str, sequence, known| {
            selections.candidate(template(mark, longpollid), tip, sequence, known).unwrap()
        };
        let first = ask(1, "a", 3, None).unwrap();
        assert_eq!((first.version, first.sequence, first.fees), (1, 3, Amount::from_sat(7)));
        assert_eq!((first.next.subsidy, first.next.bits), (Amount::from_int_btc(50), 0x207f_ffff));
        assert_eq!(
            (&first.next.rules[1], &first.next.available),
            (&"!segwit".to_owned(), &vec![("testdummy".to_owned(), 28)])
        );
        assert_eq!(
            (&**first.transactions[0].raw, first.transactions[0].weight),
            (&[0, 0xff][..], Weight::from_wu(400))
        );
        assert_eq!(ask(1, "a", 4, Some(1)), None);
        // The node made no new template, so the sequence stays.
        assert_eq!(ask(1, "a", 4, None).map(|again| (again.version, again.sequence)), Some((1, 3)));
        assert_eq!(ask(1, "b", 4, None).map(|again| (again.version, again.sequence)), Some((1, 4)));
        assert_eq!(ask(2, "c", 5, Some(1)).map(|other| (other.version, other.sequence)), Some((2, 5)));
    }
}

//! `getdeploymentinfo`: the consensus changes and the stage of each.

use outrigger_kit::blocks::block_not_found;
use outrigger_kit::without_nulls;
use outrigger_sdk::service::chain::{Deployment, DeploymentRule, DeploymentStage, SignalledDeployment};
use outrigger_sdk::service::json::to_json;
use outrigger_sdk::{Call, RpcError, methods};
use serde_json::{Map, Value, json};

use crate::ChainPlugin;
use crate::statistics::block_or_tip;

#[methods(category = "Blockchain", inline)]
impl ChainPlugin {
    /// Lists the changes of the consensus rules, and whether each is active for the block after the given one.
    ///
    /// * `blockhash` (default: the best block) - The block.
    ///
    /// # Result
    /// {"hash": "hash", "height": n, "deployments": {"name": {"type": "buried|bip9", "active": bool, "height": n,
    /// "bip9": {...}}, ...}}    (json object) A bip9 deployment has a height once it is active. bip9 gives its stage
    /// and the signals of the period.
    #[method]
    fn getdeploymentinfo(call: &Call<'_>, blockhash: Option<&str>) -> Result<Value, RpcError> {
        let block = block_or_tip(call, blockhash)?;
        let deployments = call.host.chain.deployments(call.scope, block.hash)?.ok_or_else(block_not_found)?;
        let next = block.height.saturating_add(1);
        let flags = call.rules.script_flags.then(|| script_flags(&deployments, block.height));
        let shown =
            deployments.into_iter().filter(|deployment| call.rules.taproot_deployment || deployment.name != "taproot");
        let all: Map<String, Value> = shown.map(|Deployment { name, rule }| (name, rule_json(&rule, next))).collect();
        let (hash, height) = (block.hash, block.height);
        Ok(without_nulls(json!({"hash": hash, "height": height, "script_flags": flags, "deployments": all})))
    }
}

/// The script verification flags of a block at this height, without bitcoind's exceptions for two blocks of main.
fn script_flags(deployments: &[Deployment], height: u32) -> Vec<&'static str> {
    let is_in_force = |name: &str| {
        let rule = deployments.iter().find(|deployment| deployment.name == name).map(|deployment| &deployment.rule);
        matches!(rule, Some(DeploymentRule::Buried { height: first }) if height >= *first)
    };
    let by_deployment = [
        ("bip65", "CHECKLOCKTIMEVERIFY"),
        ("csv", "CHECKSEQUENCEVERIFY"),
        ("bip66", "DERSIG"),
        ("segwit", "NULLDUMMY"),
    ];
    let flags = by_deployment.into_iter().filter(|(name, _)| is_in_force(name)).map(|(_, flag)| flag);
    flags.chain(["P2SH", "TAPROOT", "WITNESS"]).collect()
}

/// The state of a deployment for the block at the height `next`.
fn rule_json(rule: &DeploymentRule, next: u32) -> Value {
    match rule {
        DeploymentRule::Buried { height } => json!({"type": "buried", "active": next >= *height, "height": height}),
        DeploymentRule::Signalled { progress } => {
            let active = progress.next_stage == DeploymentStage::Active;
            let height = active.then_some(progress.next_since);
            without_nulls(json!({"type": "bip9", "height": height, "active": active, "bip9": signalled_json(progress)}))
        }
    }
}

fn signalled_json(progress: &SignalledDeployment) -> Value {
    let is_signalled = matches!(progress.stage, DeploymentStage::Started | DeploymentStage::LockedIn);
    let mark = |signals: &bool| if *signals { '#' } else { '-' };
    without_nulls(json!({
        "bit": is_signalled.then_some(progress.bit),
        "start_time": progress.start_time,
        "timeout": progress.timeout,
        "min_activation_height": progress.min_activation_height,
        "status": name(progress.stage),
        "since": progress.since,
        "status_next": name(progress.next_stage),
        "statistics": is_signalled.then(|| statistics(progress)),
        "signalling": is_signalled.then(|| progress.signals.iter().map(mark).collect::<String>()),
    }))
}

/// The signals of the current period. Like bitcoind, a locked-in deployment has no `threshold` and no `possible`.
fn statistics(progress: &SignalledDeployment) -> Value {
    let elapsed = u32::try_from(progress.signals.len()).unwrap_or(u32::MAX);
    let count = u32::try_from(progress.signals.iter().filter(|signals| **signals).count()).unwrap_or(u32::MAX);
    let is_open = progress.stage != DeploymentStage::LockedIn;
    // The deployment can still lock in if at most this many blocks of the period lack the signal.
    let silent = progress.period.saturating_sub(progress.threshold);
    without_nulls(json!({
        "period": progress.period,
        "elapsed": elapsed,
        "count": count,
        "threshold": is_open.then_some(progress.threshold),
        "possible": is_open.then_some(silent >= elapsed - count),
    }))
}

/// The name of a stage in BIP 9, which is its JSON form.
fn name(stage: DeploymentStage) -> Value {
    to_json(&stage).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(stage: DeploymentStage, next_stage: DeploymentStage, signals: Vec<bool>) -> DeploymentRule {
        let progress = SignalledDeployment {
            bit: 28,
            start_time: 0,
            timeout: i64::MAX,
            min_activation_height: 0,
            stage,
            since: 288,
            next_stage,
            next_since: 432,
            period: 144,
            threshold: 108,
            signals,
        };
        DeploymentRule::Signalled { progress }
    }

    #[test]
    fn getdeploymentinfo_shows_each_stage_as_release_29_does() {
        use DeploymentStage as Stage;
        let all = |rest: &str| {
            format!(
                r#""start_time":0,"timeout":9223372036854775807,"min_activation_height":0,{}"#,
                rest.replace('N', "\"")
            )
        };
        let check = |rule: DeploymentRule, expected: String| assert_eq!(rule_json(&rule, 10).to_string(), expected);
        check(
            progress(Stage::Defined, Stage::Started, vec![]),
            format!(
                r#"{{"type":"bip9","active":false,"bip9":{{{}}}}}"#,
                all("NstatusN:NdefinedN,NsinceN:288,Nstatus_nextN:NstartedN")
            ),
        );
        let statistics =
            r#""statistics":{"period":144,"elapsed":3,"count":2,"threshold":108,"possible":true},"signalling":"#;
        check(
            progress(Stage::Started, Stage::Started, vec![true, false, true]),
            format!(
                r##"{{"type":"bip9","active":false,"bip9":{{"bit":28,{},{statistics}"#-#"}}}}"##,
                all("NstatusN:NstartedN,NsinceN:288,Nstatus_nextN:NstartedN")
            ),
        );
        check(
            progress(Stage::LockedIn, Stage::Active, vec![false]),
            format!(
                r#"{{"type":"bip9","height":432,"active":true,"bip9":{{"bit":28,{},{}}}}}"#,
                all("NstatusN:Nlocked_inN,NsinceN:288,Nstatus_nextN:NactiveN"),
                r#""statistics":{"period":144,"elapsed":1,"count":0},"signalling":"-""#
            ),
        );
        check(
            progress(Stage::Active, Stage::Active, vec![]),
            format!(
                r#"{{"type":"bip9","height":432,"active":true,"bip9":{{{}}}}}"#,
                all("NstatusN:NactiveN,NsinceN:288,Nstatus_nextN:NactiveN")
            ),
        );
        check(DeploymentRule::Buried { height: 11 }, r#"{"type":"buried","active":false,"height":11}"#.to_owned());
    }

    #[test]
    fn getdeploymentinfo_shows_when_too_few_blocks_remain_to_lock_in() {
        let possible = |silent: usize| {
            let rule = progress(DeploymentStage::Started, DeploymentStage::Started, vec![false; silent]);
            rule_json(&rule, 10)["bip9"]["statistics"]["possible"].clone()
        };
        assert_eq!((possible(36), possible(37)), (json!(true), json!(false)));
    }
}

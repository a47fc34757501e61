//! The standardness rules of the mempool, which are stricter than consensus (bitcoind's `policy.cpp`).

use bitcoin::taproot::{TAPROOT_ANNEX_PREFIX, TAPROOT_LEAF_MASK, TAPROOT_LEAF_TAPSCRIPT};
use bitcoin::{Amount, Script, ScriptBuf, SignedAmount, Transaction, TxIn, TxOut, Witness};
use outrigger_service::chain::Coin;
use outrigger_standard::policy::{DUST_FEERATE, MAX_STANDARD_WEIGHT, dust_threshold};
use outrigger_standard::{ScriptKind, classify};

use crate::params::MempoolLimits;
use crate::validation::ValidationError;
use outrigger_script::{
    ExecutionData, Flags, NoTransaction, ScriptError, SigVersion, Stack, eval_script, p2sh_sigop_count,
    script_sigop_count,
};

/// The least size without witnesses, in bytes: one of 64 bytes can pass for an inner node of a Merkle tree.
const MIN_SIZE: usize = 65;
/// The longest scriptSig, in bytes: enough for a P2SH multisig of 15 of 15 keys.
const MAX_SCRIPT_SIG: usize = 1_650;
/// The most signature operations of a redeem script.
const MAX_REDEEM_SIGOPS: u64 = 15;
/// The most keys of a bare multisig output.
const MAX_BARE_KEYS: usize = 3;
/// The most dust outputs of a transaction without a fee.
const MAX_DUST_OUTPUTS: usize = 1;
/// The longest witness script, in bytes.
const MAX_WITNESS_SCRIPT: usize = 3_600;
/// The most stack items beside a witness script.
const MAX_WITNESS_ITEMS: usize = 100;
/// The longest such item, in bytes.
const MAX_WITNESS_ITEM: usize = 80;

/// Checks that a transaction is standard by itself (bitcoind's `IsStandardTx`).
pub fn check_standard(tx: &Transaction, limits: &MempoolLimits) -> Result<(), ValidationError> {
    if !(1..=3).contains(&tx.version.0) {
        return Err(ValidationError::new("version"));
    }
    if tx.weight() > MAX_STANDARD_WEIGHT {
        return Err(ValidationError::new("tx-size"));
    }
    for input in &tx.input {
        if input.script_sig.len() > MAX_SCRIPT_SIG {
            return Err(ValidationError::new("scriptsig-size"));
        }
        if !input.script_sig.is_push_only() {
            return Err(ValidationError::new("scriptsig-not-pushonly"));
        }
    }
    let (mut data, mut data_size) = (0, 0);
    for output in &tx.output {
        let standard = match classify(&output.script_pubkey) {
            ScriptKind::NonStandard => false,
            ScriptKind::Multisig { keys, .. } => keys.len() <= MAX_BARE_KEYS,
            ScriptKind::NullData => {
                data += 1;
                let own = output.script_pubkey.len();
                data_size = if limits.several_data_carriers { data_size + own } else { own };
                data_size <= limits.max_data_carrier
            }
            _ => true,
        };
        if !standard {
            return Err(ValidationError::new("scriptpubkey"));
        }
    }
    if dust(tx).count() > MAX_DUST_OUTPUTS {
        return Err(ValidationError::new("dust"));
    }
    if data > 1 && !limits.several_data_carriers {
        return Err(ValidationError::new("multi-op-return"));
    }
    Ok(())
}

/// Checks that a transaction is too long to pass for an inner node of a Merkle tree (`tx-size-small`).
pub fn check_size(tx: &Transaction) -> Result<(), ValidationError> {
    if tx.base_size() < MIN_SIZE { Err(ValidationError::new("tx-size-small")) } else { Ok(()) }
}

/// Checks that a transaction with dust pays no fee, so that nobody mines it without a child that spends the dust.
pub fn check_dust(tx: &Transaction, fee: Amount, delta: SignedAmount) -> Result<(), ValidationError> {
    if (fee != Amount::ZERO || delta != SignedAmount::ZERO) && dust(tx).next().is_some() {
        return Err(ValidationError::new("dust").with_detail("tx with dust output must be 0-fee".to_owned()));
    }
    Ok(())
}

/// The indexes of outputs that are not worth spending.
pub fn dust(tx: &Transaction) -> impl Iterator<Item = u32> {
    let is_dust = |output: &TxOut| output.value < dust_threshold(&output.script_pubkey, DUST_FEERATE);
    (0..).zip(&tx.output).filter(move |(_, output)| is_dust(output)).map(|(vout, _)| vout)
}

/// Checks that the spent outputs are standard, then the witnesses (bitcoind's `AreInputsStandard`,
/// `IsWitnessStandard`).
pub fn check_spends(tx: &Transaction, coins: &[Coin], limits: &MempoolLimits) -> Result<(), ValidationError> {
    let inputs = || tx.input.iter().zip(coins.iter().map(|coin| coin.output.script_pubkey.as_script()));
    // Signature operations outside of witnesses, as BIP 54 counts them.
    let legacy = |(input, spent): (&TxIn, &Script)| {
        let own = script_sigop_count(&input.script_sig, true);
        own + if spent.is_p2sh() { p2sh_sigop_count(&input.script_sig, spent) } else { script_sigop_count(spent, true) }
    };
    let refuse = |detail: String| {
        let detail = if limits.names_nonstandard_input { detail } else { String::new() };
        Err(ValidationError::new("bad-txns-nonstandard-inputs").with_detail(detail))
    };
    if limits.max_legacy_sigops.is_some_and(|limit| inputs().map(legacy).sum::<u64>() > limit) {
        return refuse("non-witness sigops exceed bip54 limit".to_owned());
    }
    for (index, (input, script)) in inputs().enumerate() {
        match classify(script) {
            ScriptKind::ScriptHash { .. } => match last_pushed(&input.script_sig) {
                Ok(Some(redeem)) => {
                    let sigops = script_sigop_count(&redeem, true);
                    if sigops > MAX_REDEEM_SIGOPS {
                        let counts = format!("input {index}: {sigops} > {MAX_REDEEM_SIGOPS}");
                        return refuse(format!("p2sh redeemscript sigops exceed limit ({counts})"));
                    }
                }
                Ok(None) => return refuse(format!("input {index} P2SH redeemscript missing")),
                Err(error) => return refuse(format!("p2sh scriptsig malformed (input {index}: {error})")),
            },
            ScriptKind::NonStandard => return refuse(format!("input {index} script unknown")),
            ScriptKind::WitnessUnknown { .. } => {
                return refuse(format!("input {index} witness program is undefined"));
            }
            _ => {}
        }
    }
    let witnesses = inputs().all(|(input, script)| {
        input.witness.is_empty() || is_standard_witness(&input.witness, &input.script_sig, script)
    });
    if witnesses { Ok(()) } else { Err(ValidationError::new("bad-witness-nonstandard")) }
}

/// The last element that a scriptSig pushes, as a script; `None` if it pushes nothing.
fn last_pushed(script_sig: &Script) -> Result<Option<ScriptBuf>, ScriptError> {
    let (mut stack, mut execution) = (Stack::new(), ExecutionData::default());
    eval_script(&mut stack, script_sig, Flags::empty(), &mut NoTransaction, SigVersion::Base, &mut execution)?;
    Ok(stack.last().map(|element| ScriptBuf::from_bytes(element.as_bytes().to_vec())))
}

fn is_standard_witness(witness: &Witness, script_sig: &Script, spent: &Script) -> bool {
    let nested = spent.is_p2sh();
    let redeem = if nested { last_pushed(script_sig) } else { Ok(Some(spent.to_owned())) };
    let Ok(Some(script)) = redeem.as_ref().map(Option::as_deref) else { return false };
    let items: Vec<&[u8]> = witness.iter().collect();
    let small = |items: &[&[u8]]| items.iter().all(|item| item.len() <= MAX_WITNESS_ITEM);
    match (classify(script), items.as_slice()) {
        (ScriptKind::Anchor, _) if !nested => false,
        (ScriptKind::WitnessV0ScriptHash { .. }, [rest @ .., script]) => {
            script.len() <= MAX_WITNESS_SCRIPT && rest.len() <= MAX_WITNESS_ITEMS && small(rest)
        }
        (ScriptKind::Taproot { .. }, [_, .., last]) if !nested && last.first() == Some(&TAPROOT_ANNEX_PREFIX) => false,
        (ScriptKind::Taproot { .. }, [rest @ .., _, control]) if !nested => match control.first() {
            Some(version) if version & TAPROOT_LEAF_MASK == TAPROOT_LEAF_TAPSCRIPT => small(rest),
            Some(_) => true,
            None => false,
        },
        // The script verification judges other programs.
        _ => script.is_witness_program(),
    }
}

#[cfg(test)]
mod tests {
    use bitcoin::absolute::LockTime;
    use bitcoin::transaction::Version;
    use bitcoin::{OutPoint, Sequence};
    use outrigger_standard::release::rules;

    use super::*;

    fn paying(outputs: Vec<(u64, Vec<u8>)>) -> Transaction {
        let output =
            |(value, script)| TxOut { value: Amount::from_sat(value), script_pubkey: ScriptBuf::from_bytes(script) };
        Transaction {
            version: Version::TWO,
            lock_time: LockTime::ZERO,
            input: vec![TxIn { previous_output: OutPoint::null(), sequence: Sequence::MAX, ..TxIn::default() }],
            output: outputs.into_iter().map(output).collect(),
        }
    }

    fn reason(tx: &Transaction) -> Option<String> {
        check_standard(tx, &MempoolLimits::default()).err().map(|error| error.reason.into_owned())
    }

    fn wpkh() -> Vec<u8> {
        [&[0, 20][..], &[7; 20]].concat()
    }

    #[test]
    fn check_standard_gives_bitcoinds_reasons() {
        assert_eq!(reason(&paying(vec![(1_000, wpkh())])), None);
        let mut version = paying(vec![(1_000, wpkh())]);
        version.version = Version(4);
        assert_eq!(reason(&version).as_deref(), Some("version"));
        assert_eq!(reason(&paying(vec![(1_000, wpkh()); 4_000])).as_deref(), Some("tx-size"));
        let mut long = paying(vec![(1_000, wpkh())]);
        long.input[0].script_sig = ScriptBuf::from_bytes(vec![0; 1_651]);
        assert_eq!(reason(&long).as_deref(), Some("scriptsig-size"));
        long.input[0].script_sig = ScriptBuf::from_bytes(vec![0xac]);
        assert_eq!(reason(&long).as_deref(), Some("scriptsig-not-pushonly"));
        assert_eq!(reason(&paying(vec![(1_000, vec![0x93])])).as_deref(), Some("scriptpubkey"));
        assert_eq!(reason(&paying(vec![(0, vec![0x6a; 1]), (0, vec![0x6a])])).as_deref(), Some("multi-op-return"));
        assert_eq!(reason(&paying(vec![(1, wpkh()), (1, wpkh())])).as_deref(), Some("dust"));
        let carried = |len: u8| [&[0x6a, 0x4c, len][..], &vec![0; usize::from(len)]].concat();
        assert_eq!(reason(&paying(vec![(0, carried(80))])), None);
        assert_eq!(reason(&paying(vec![(0, carried(80)); 2])).as_deref(), Some("multi-op-return"));
        assert_eq!(reason(&paying(vec![(0, carried(81))])).as_deref(), Some("scriptpubkey"));
    }

    #[test]
    fn check_spends_names_the_nonstandard_input_and_the_cause_from_release_32_on() {
        let p2sh = [&[0xa9, 20][..], &[7; 20], &[0x87]].concat();
        let unknown_program = [&[0x52, 20][..], &[7; 20]].concat();
        let malformed = "p2sh scriptsig malformed (input 1: Push value size limit exceeded)";
        for (spent, script_sig, cause) in [
            (&p2sh, vec![], "input 1 P2SH redeemscript missing"),
            (&p2sh, [&[0x4d, 9, 2][..], &[0; 521]].concat(), malformed),
            (&p2sh, [&[16][..], &[0xac; 16]].concat(), "p2sh redeemscript sigops exceed limit (input 1: 16 > 15)"),
            (&vec![0x93], vec![], "input 1 script unknown"),
            (&unknown_program, vec![], "input 1 witness program is undefined"),
            (&vec![0xac; 2_501], vec![], "non-witness sigops exceed bip54 limit"),
        ] {
            let mut tx = paying(vec![]);
            tx.input.push(TxIn { script_sig: ScriptBuf::from_bytes(script_sig), ..tx.input[0].clone() });
            let coins = [wpkh(), spent.clone()].map(|script| {
                let output = TxOut { value: Amount::ONE_SAT, script_pubkey: ScriptBuf::from_bytes(script) };
                Coin { output, height: 1, coinbase: false }
            });
            for (release, detail) in [(31, ""), (32, cause)] {
                let error = check_spends(&tx, &coins, &MempoolLimits::of(&rules(Some(release)))).unwrap_err();
                assert_eq!((&*error.reason, &*error.detail), ("bad-txns-nonstandard-inputs", detail), "{cause}");
            }
        }
    }

    #[test]
    fn bare_multisigs_have_up_to_three_keys() {
        let multisig = |required: u8, keys: u8| {
            let mut script = vec![0x50 + required];
            for _ in 0..keys {
                script.extend([33, 2].into_iter().chain([9; 32]));
            }
            script.extend([0x50 + keys, 0xae]);
            script
        };
        let scriptpubkey = |script| reason(&paying(vec![(10_000, script)]));
        assert_eq!(scriptpubkey(multisig(1, 1)), None);
        assert_eq!(scriptpubkey(multisig(3, 3)), None);
        assert_eq!(scriptpubkey(multisig(1, 4)).as_deref(), Some("scriptpubkey"));
        assert_eq!(scriptpubkey(multisig(2, 1)).as_deref(), Some("scriptpubkey"));
    }
}

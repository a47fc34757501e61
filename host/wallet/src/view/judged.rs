//! The description of a transaction that policy plugins (`policy/1`) judge.

use std::collections::{BTreeMap, BTreeSet};

use bitcoin::consensus::serialize;
use bitcoin::{Amount, EcdsaSighashType, Transaction};
use outrigger_service::Result as ServiceResult;
use outrigger_service::policy::{JudgedInput, JudgedOutput, JudgedTransaction, Owner};
use outrigger_service::signer::SignRequest;
use outrigger_service::wallet::Ownership;
use outrigger_service::wire::Blob;

use super::{Signing, WalletView};
use crate::error::Result;

/// Whether a signature commits to an output and to all inputs. If it does not commit to all inputs, somebody could add another
/// input of the wallet, and its signature could rely on the same output.
fn commits(request: &SignRequest, output: usize) -> bool {
    match EcdsaSighashType::from_consensus(request.sighash.into()) {
        EcdsaSighashType::All => true,
        EcdsaSighashType::Single => usize::try_from(request.input) == Ok(output),
        // To no output, or not to all inputs.
        _ => false,
    }
}

/// The amount that the wallet gives away: its inputs minus its outputs. `None` if one of its inputs is not verified.
fn gives(inputs: &[JudgedInput], outputs: &[JudgedOutput]) -> Option<Amount> {
    let own = inputs.iter().filter(|input| input.own);
    let mut spent = own.map(|input| input.output.as_ref().filter(|_| input.verified).map(|output| output.value));
    let spent = spent.try_fold(Amount::ZERO, |sum, value| sum.checked_add(value?))?;
    let own = outputs.iter().filter(|output| output.owner != Owner::Foreign && output.committed);
    let kept = own.map(|output| output.output.value).try_fold(Amount::ZERO, Amount::checked_add)?;
    Some(spent.checked_sub(kept).unwrap_or(Amount::ZERO))
}

impl WalletView {
    /// Describes a transaction to sign, with the requested signatures, for the policies.
    pub fn judged(&self, signing: &Signing, requests: &[SignRequest]) -> Result<JudgedTransaction> {
        let transaction = &signing.transaction;
        let ownership = |script| -> Result<Ownership> {
            let row = self.t().script(&self.txn, script)?;
            Ok(row.map_or(Ownership::None, |row| row.ownership()))
        };
        // A watched script may be anybody's. Its inputs count as given by the wallet, but its outputs do not count as kept.
        let is_own = |script| ownership(script).map(|ownership| ownership != Ownership::None);
        let mut sighashes: BTreeMap<u32, BTreeSet<u8>> = BTreeMap::new();
        for request in requests {
            sighashes.entry(request.input).or_default().insert(request.sighash);
        }
        let mut inputs = Vec::with_capacity(transaction.input.len());
        for ((at, input), output) in transaction.input.iter().enumerate().zip(&signing.spent) {
            let asked = u32::try_from(at).ok().and_then(|at| sighashes.get(&at));
            inputs.push(JudgedInput {
                outpoint: input.previous_output,
                verified: signing.known.get(at).copied().unwrap_or_default(),
                own: asked.is_some()
                    || output.as_ref().map(|output| is_own(&output.script_pubkey)).transpose()?.unwrap_or_default(),
                output: output.clone(),
                sighashes: Blob(asked.into_iter().flatten().copied().collect()),
            });
        }
        let (labels, mut outputs) = (self.all_labels()?, Vec::with_capacity(transaction.output.len()));
        for (at, output) in transaction.output.iter().enumerate() {
            let owner = match ownership(&output.script_pubkey)? {
                Ownership::None | Ownership::WatchOnly => Owner::Foreign,
                Ownership::Spendable if labels.get(&output.script_pubkey).is_none() => Owner::Change,
                Ownership::Spendable => Owner::Own,
            };
            let committed = requests.iter().all(|request| commits(request, at));
            outputs.push(JudgedOutput { output: output.clone(), owner, committed });
        }
        let gives = gives(&inputs, &outputs);
        Ok(JudgedTransaction { transaction: Blob(serialize(transaction)), inputs, outputs, gives })
    }

    /// Describes a signed transaction to send for the policies.
    pub fn judged_payment(&self, transaction: Transaction) -> ServiceResult<JudgedTransaction> {
        let signing = self.signing(transaction, &[])?;
        Ok(self.judged(&signing, &[])?)
    }
}

#[cfg(test)]
mod tests {
    use bitcoin::{OutPoint, ScriptBuf, TxOut};
    use outrigger_service::signer::Scheme;

    use super::*;

    fn request(input: u32, sighash: u8) -> SignRequest {
        let scheme = Scheme::Legacy { script_code: ScriptBuf::new() };
        SignRequest { input, public_key: Blob::default(), scheme, sighash, annex: None }
    }

    #[test]
    fn signatures_commit_as_their_sighash_byte_says() {
        for all in [0, 1, 4, 0x41] {
            assert!(commits(&request(1, all), 0), "{all}");
        }
        for none in [2, 0x22, 0x80, 0x81, 0x82, 0x83, 0xff] {
            assert!(!commits(&request(1, none), 1), "{none}");
        }
        assert!(commits(&request(1, 3), 1) && !commits(&request(1, 3), 0));
    }

    #[test]
    fn uncommitted_outputs_count_as_given_and_unverified_inputs_give_none() {
        let output = |sat| TxOut { value: Amount::from_sat(sat), script_pubkey: ScriptBuf::new() };
        let input = |sat, verified, own| JudgedInput {
            outpoint: OutPoint::null(),
            output: Some(output(sat)),
            verified,
            own,
            sighashes: Blob::default(),
        };
        let paid = |sat, owner, committed| JudgedOutput { output: output(sat), owner, committed };
        let inputs = [input(100, true, true), input(50, true, true), input(1000, false, false)];
        let change = paid(90, Owner::Change, true);
        let foreign = paid(55, Owner::Foreign, true);
        assert_eq!(gives(&inputs, &[foreign.clone(), change.clone()]), Some(Amount::from_sat(60)));
        assert_eq!(gives(&inputs, &[foreign, paid(90, Owner::Change, false)]), Some(Amount::from_sat(150)));
        assert_eq!(gives(&inputs, &[paid(500, Owner::Own, true)]), Some(Amount::ZERO));
        assert_eq!(gives(&[input(100, false, true)], &[change]), None);
    }
}

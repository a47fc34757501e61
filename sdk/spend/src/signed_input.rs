//! The weight of an input that another party signs again: its current weight, with signatures of the greatest length
//! (`SignatureWeightChecker` of Bitcoin Core).

use bitcoin::ecdsa::Signature;
use bitcoin::{TxIn, Weight};

/// The greatest length of an ECDSA signature with low S and its sighash type, in bytes.
const MAX_SIGNATURE_LEN: u64 = 72;

/// The greatest weight of an input. An empty witness counts, too.
pub fn max_weight(input: &TxIn) -> Weight {
    let growth = |bytes: &[u8]| {
        let length = Signature::from_slice(bytes).ok().map(|_| bytes.len() as u64);
        length.map_or(0, |length| MAX_SIGNATURE_LEN.saturating_sub(length))
    };
    let pushes = input.script_sig.instructions().filter_map(Result::ok);
    let in_script: u64 = pushes.filter_map(|push| push.push_bytes().map(|bytes| growth(bytes.as_bytes()))).sum();
    let in_witness: u64 = input.witness.iter().map(growth).sum();
    let now = input.segwit_weight();
    Weight::from_wu(now.to_wu() + in_script * Weight::WITNESS_SCALE_FACTOR + in_witness)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bitcoin::script::{Builder, PushBytesBuf};
    use bitcoin::secp256k1::ecdsa;
    use bitcoin::{ScriptBuf, Witness};

    /// A signature with a short R.
    fn signature() -> Vec<u8> {
        let mut bytes = [1; 64];
        bytes[..3].copy_from_slice(&[0, 0, 0]);
        Signature::sighash_all(ecdsa::Signature::from_compact(&bytes).unwrap()).to_vec()
    }

    #[test]
    fn signatures_count_at_their_longest() {
        let signature = signature();
        let missing = MAX_SIGNATURE_LEN - signature.len() as u64;
        assert!(missing >= 3, "{missing}");
        let key = [2; 33];
        let plain = TxIn::default();
        let witness = Witness::from_slice(&[signature.as_slice(), &key]);
        let segwit = TxIn { witness, ..plain.clone() };
        assert_eq!(max_weight(&segwit).to_wu(), segwit.segwit_weight().to_wu() + missing);
        assert_eq!(max_weight(&segwit).to_wu(), 41 * 4 + 1 + 73 + 34);
        let push = PushBytesBuf::try_from(signature).unwrap();
        let script_sig: ScriptBuf = Builder::new().push_slice(push).push_slice(key).into_script();
        let legacy = TxIn { script_sig, ..plain };
        assert_eq!(max_weight(&legacy).to_wu(), (41 + 73 + 34) * 4 + 1);
    }
}

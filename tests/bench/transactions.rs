//! Signed transactions that any node accepts.

use std::collections::VecDeque;

use bitcoin::secp256k1::{Message, Secp256k1, SecretKey, SignOnly};
use bitcoin::sighash::{EcdsaSighashType, SighashCache};
use bitcoin::{Amount, CompressedPublicKey, OutPoint, ScriptBuf, Transaction, Witness, ecdsa};

use crate::payments::{output, spend};

/// The outputs of a transaction that makes spendable outputs: nearly the most that relay allows.
const FAN: usize = 3_000;
/// The inputs and outputs of transactions, in turn: a payment, one of two coins with change, one to many, and a consolidation.
const KINDS: [(usize, u64); 4] = [(1, 2), (2, 2), (1, 20), (5, 1)];
/// The total inputs of one transaction of each kind.
pub const INPUTS: usize = 9;

pub struct Purse {
    secp: Secp256k1<SignOnly>,
    key: SecretKey,
    public: CompressedPublicKey,
    coins: VecDeque<(OutPoint, u64)>,
    coinbases: VecDeque<(OutPoint, u64)>,
    paid: usize,
}

impl Default for Purse {
    fn default() -> Self {
        let key = SecretKey::from_slice(&[0x17; 32]).unwrap();
        let public = CompressedPublicKey(key.public_key(&Secp256k1::new()));
        let (coins, coinbases) = Default::default();
        Self { secp: Secp256k1::signing_only(), key, public, coins, coinbases, paid: 0 }
    }
}

impl Purse {
    pub fn script(&self) -> ScriptBuf {
        ScriptBuf::new_p2wpkh(&self.public.wpubkey_hash())
    }

    /// Adds a coinbase that pays to the purse.
    pub fn earned(&mut self, coinbase: &Transaction) {
        let outpoint = OutPoint { txid: coinbase.compute_txid(), vout: 0 };
        self.coinbases.push_back((outpoint, coinbase.output[0].value.to_sat()));
    }

    /// The next transaction, with a fee of 1 to 50 satoshi per virtual byte. Every tenth spends the one before.
    pub fn pay(&mut self) -> Transaction {
        let (count, outputs) = KINDS[self.paid % KINDS.len()];
        self.paid += 1;
        let inputs: Vec<_> = self.coins.drain(..count).collect();
        let value: u64 = inputs.iter().map(|(_, value)| value).sum();
        let size = 11 + 68 * count as u64 + 31 * outputs;
        let fee = size * (1 + (self.paid as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) % 50);
        let tx = self.spend(&inputs, outputs, (value - fee) / outputs);
        if self.paid % 10 == 9 {
            let child = (OutPoint { txid: tx.compute_txid(), vout: 0 }, tx.output[0].value.to_sat());
            self.coins.push_front(child);
        }
        tx
    }

    fn spend(&self, inputs: &[(OutPoint, u64)], outputs: u64, value: u64) -> Transaction {
        let coins: Vec<OutPoint> = inputs.iter().map(|(outpoint, _)| *outpoint).collect();
        let mut tx = spend(&coins, vec![output(value, self.script()); usize::try_from(outputs).unwrap()]);
        let mut cache = SighashCache::new(&mut tx);
        for (index, (_, value)) in inputs.iter().enumerate() {
            let kind = EcdsaSighashType::All;
            let value = Amount::from_sat(*value);
            let digest = cache.p2wpkh_signature_hash(index, &self.script(), value, kind).unwrap();
            let signature = self.secp.sign_ecdsa(&Message::from(digest), &self.key);
            let signature = ecdsa::Signature { signature, sighash_type: kind };
            *cache.witness_mut(index).unwrap() = Witness::p2wpkh(&signature, &self.public.0);
        }
        tx
    }
}

/// Transactions that split coinbases into at least `outputs` spendable outputs. Confirm them before these are spent.
pub fn funding(purse: &mut Purse, outputs: usize) -> Vec<Transaction> {
    let mut transactions = Vec::new();
    while purse.coins.len() < outputs {
        let coinbase = purse.coinbases.pop_front().unwrap();
        let fan = FAN as u64;
        let value = (coinbase.1 - 40 * fan) / fan;
        let tx = purse.spend(&[coinbase], fan, value);
        let txid = tx.compute_txid();
        purse.coins.extend((0..).take(FAN).map(|vout| (OutPoint { txid, vout }, value)));
        transactions.push(tx);
    }
    transactions
}

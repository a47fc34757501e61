//! Parses a result of the node as each type, for a test that no result causes a panic.

use bitcoin::{BlockHash, Txid};
use outrigger_service::chain::Tip;
use serde::de::DeserializeOwned;

use super::answers::{
    AcceptAnswer, BlockAnswer, ChainAnswer, ChallengeAnswer, CoinAnswer, EntryAnswer, FeeAnswer, Hex, MempoolAnswer,
    PrevoutAnswer, SignedBtc, SpenderAnswer, StatesAnswer, TipAnswer, read_spent,
};
use super::template::{DeploymentsAnswer, Selections, Template};

/// Parses the text of a result as each type, and converts it as the host does, on this tip. Returns the number of
/// types that accept it.
pub fn read_all(text: &[u8], tip: Tip) -> usize {
    let was_read = [
        read(text, |answer: ChainAnswer| drop(answer.warnings())),
        read(text, |_: MempoolAnswer| ()),
        read(text, |answer: CoinAnswer| drop(answer.coin(tip.height))),
        read(text, |answer: BlockAnswer| {
            let inputs = answer.tx.into_iter().flat_map(|transaction| transaction.vin);
            inputs.filter_map(|input| input.prevout).for_each(|prevout| drop(PrevoutAnswer::coin(prevout)));
        }),
        read(text, |template: Template| drop(Selections::default().candidate(template, tip, 0, None))),
        read(text, |answer: DeploymentsAnswer| drop(answer.read())),
        read(text, |_: FeeAnswer| ()),
        read(text, |_: ChallengeAnswer| ()),
        read(text, |answer: StatesAnswer| _ = answer.unvalidated()),
        read(text, |_: EntryAnswer| ()),
        read(text, |_: Vec<TipAnswer>| ()),
        read(text, |_: Vec<SpenderAnswer>| ()),
        read(text, |_: Vec<AcceptAnswer>| ()),
        read(text, |_: Vec<Txid>| ()),
        read(text, |_: BlockHash| ()),
        read(text, |_: SignedBtc| ()),
        read(text, |_: Hex| ()),
        read_spent(text).is_some(),
    ];
    was_read.into_iter().filter(|read| *read).count()
}

fn read<T: DeserializeOwned>(text: &[u8], take: impl FnOnce(T)) -> bool {
    serde_json::from_slice(text).map(take).is_ok()
}

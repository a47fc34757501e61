//! The messages between host and plugins. The first byte selects the kind.

use outrigger_sdk::service::chain::{BlockRef, Coin, Tip};
use outrigger_sdk::service::events::Event;
use outrigger_sdk::service::json::{from_json, to_json};
use outrigger_sdk::service::mempool::Selected;
use outrigger_sdk::service::signer::{SignBatch, SignRequest};
use outrigger_sdk::service::wallet::{
    CoinBatch, CreateOptions, DescriptorInfo, HistoryBatch, HistoryQuery, Import, ScriptInfo, SolvingData, WalletInfo,
};
use outrigger_sdk::wire::{Wire, from_bytes, to_bytes};

fn check<T: Wire>(bytes: &[u8]) {
    if let Ok(message) = from_bytes::<T>(bytes) {
        let written = to_bytes(&message);
        assert_eq!(to_bytes(&from_bytes::<T>(&written).unwrap()), written);
        assert_eq!(to_bytes(&from_json::<T>(&to_json(&message).unwrap()).unwrap()), written);
    }
    // JSON that is no valid message is refused without a panic.
    if let Ok(json) = serde_json::from_slice(bytes) {
        drop(from_json::<T>(&json));
    }
}

const KINDS: [fn(&[u8]); 16] = [
    check::<SignBatch>,
    check::<SignRequest>,
    check::<HistoryQuery>,
    check::<HistoryBatch>,
    check::<CoinBatch>,
    check::<ScriptInfo>,
    check::<SolvingData>,
    check::<WalletInfo>,
    check::<DescriptorInfo>,
    check::<Import>,
    check::<CreateOptions>,
    check::<Coin>,
    check::<Tip>,
    check::<BlockRef>,
    check::<Event>,
    check::<Selected>,
];

pub fn messages(bytes: &[u8]) {
    if let Some((kind, message)) = bytes.split_first()
        && let Some(check) = KINDS.get(usize::from(*kind) % KINDS.len())
    {
        check(message);
    }
}

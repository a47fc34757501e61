//! Transactions as messages: a view shows the written data, and damage is an error.

use std::fmt::Debug;

use bitcoin::hashes::Hash;
use bitcoin::{Amount, BlockHash, OutPoint, Script, ScriptBuf, Txid, Wtxid};
use proptest::prelude::*;

use super::*;
use crate::ErrorKind;
use crate::wire::{Blob, Encoded, Framed, from_bytes, to_bytes};

fn block() -> impl Strategy<Value = BlockHash> {
    any::<[u8; 32]>().prop_map(BlockHash::from_byte_array)
}

fn txid() -> impl Strategy<Value = Txid> {
    any::<[u8; 32]>().prop_map(Txid::from_byte_array)
}

fn state() -> impl Strategy<Value = TxState> {
    prop_oneof![
        (block(), any::<(u32, u32, u32)>()).prop_map(|(block, (height, index, time))| TxState::Confirmed {
            block,
            height,
            index,
            time
        }),
        Just(TxState::InMempool),
        Just(TxState::Inactive),
        Just(TxState::Abandoned),
        (block(), any::<u32>()).prop_map(|(block, height)| TxState::Conflicted { block, height }),
    ]
}

fn amount() -> impl Strategy<Value = Amount> {
    any::<u64>().prop_map(Amount::from_sat)
}

fn output() -> impl Strategy<Value = WalletOutput> {
    let ownership = prop_oneof![Just(Ownership::None), Just(Ownership::WatchOnly), Just(Ownership::Spendable)];
    let script = prop::collection::vec(any::<u8>(), 0..40).prop_map(ScriptBuf::from_bytes);
    let descriptors = prop::collection::vec(any::<u32>(), 0..3);
    (amount(), script, ownership, any::<bool>(), any::<Option<String>>(), descriptors).prop_map(
        |(value, script, ownership, change, label, descriptors)| WalletOutput {
            value,
            script,
            ownership,
            change,
            label,
            descriptors,
        },
    )
}

prop_compose! {
    fn transaction()(
        state in state(),
        (txid, wtxid) in (txid(), any::<[u8; 32]>()),
        (contested, coinbase, signals) in any::<(bool, bool, bool)>(),
        (order_position, time, time_received, lock_time) in any::<(u64, u64, u64, u32)>(),
        (total_output, debit_spendable, debit_watch_only) in (amount(), amount(), amount()),
        metadata in prop::collection::vec(any::<(String, String)>(), 0..3),
        inputs in prop::collection::vec((txid(), any::<u32>()), 0..4),
        outputs in prop::collection::vec(output(), 0..4),
    ) -> WalletTransaction {
        WalletTransaction {
            contested,
            state,
            txid,
            wtxid: Wtxid::from_byte_array(wtxid),
            order_position,
            time,
            time_received,
            coinbase,
            signals,
            lock_time,
            total_output,
            debit_spendable,
            debit_watch_only,
            metadata,
            inputs: inputs.into_iter().map(|(txid, vout)| OutPoint { txid, vout }).collect(),
            outputs,
        }
    }
}

prop_compose! {
    fn unsettled()(
        conflicts in prop::collection::vec(txid(), 0..3),
        mempool_conflicts in prop::collection::vec(txid(), 0..3),
        trusted in any::<bool>(),
        replaceable in prop_oneof![Just(Replaceable::No), Just(Replaceable::Yes), Just(Replaceable::Unknown)],
    ) -> UnsettledState {
        UnsettledState { conflicts, mempool_conflicts, trusted, replaceable }
    }
}

fn row() -> impl Strategy<Value = HistoryRow> {
    (transaction(), prop::option::of(unsettled()))
        .prop_map(|(transaction, unsettled)| HistoryRow { transaction: Framed(transaction), unsettled })
}

/// All parts of a message or of its view, which has the same fields.
fn shown(message: &impl Debug) -> String {
    format!("{message:?}").replace("View {", " {")
}

/// Reads every part of a batch. Damage gives an error, without a panic or an endless loop.
fn look_at_all(bytes: Vec<u8>) -> crate::Result<usize> {
    let batch = <Encoded<HistoryBatch> as crate::wire::Wire>::from_message(bytes.into())?;
    let mut seen = 0;
    for row in batch.view()?.rows.iter() {
        seen += shown(&row.open()?).len();
    }
    Ok(seen)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_view_shows_the_transaction(expected in row()) {
        let bytes = to_bytes(&vec![expected.clone()]);
        let encoded: Encoded<Vec<HistoryRow>> = from_bytes(&bytes).unwrap();
        let view = encoded.view().unwrap().iter().next().unwrap();
        let (transaction, unsettled) = view.open().unwrap();
        prop_assert_eq!(shown(&transaction), shown(&expected.transaction.0));
        let settled = shown(&UnsettledStateView::SETTLED);
        prop_assert_eq!(shown(&unsettled), expected.unsettled.as_ref().map_or(settled, shown));
        let settled = !transaction.contested && matches!(transaction.state, TxState::Confirmed { .. });
        prop_assert_eq!(WalletTransaction::is_settled(view.transaction.bytes()), settled);
        prop_assert_eq!(view.transaction.read().unwrap(), expected.transaction.0);
    }

    #[test]
    fn rows_written_as_they_are_stored_make_the_same_message_with_labels(
        mut rows in prop::collection::vec(row(), 0..4),
        next in prop::option::of(prop::collection::vec(any::<u8>(), 0..12)),
    ) {
        let mut batch = HistoryWriter::with_capacity(0);
        let labels: Vec<(ScriptBuf, String)> = rows.iter().flat_map(|row| &row.transaction.0.outputs)
            .filter_map(|output| Some((output.script.clone(), output.label.clone()?))).collect();
        let label = |script: &Script| labels.iter().find(|(of, _)| of == script).map(|(_, label)| label.as_str());
        for row in &mut rows {
            for output in &mut row.transaction.0.outputs {
                (output.change, output.label) = (output.ownership != Ownership::None, None);
            }
            batch.push(&to_bytes(&row.transaction.0), row.unsettled.as_ref(), label).unwrap();
            for output in &mut row.transaction.0.outputs {
                output.label = label(&output.script).map(str::to_owned);
                output.change &= output.label.is_none();
            }
        }
        prop_assert_eq!(batch.count(), rows.len());
        let expected = HistoryBatch { rows, next: next.clone().map(Blob) };
        let batch = batch.finish(next.as_deref());
        prop_assert_eq!(batch.bytes(), to_bytes(&expected));
        prop_assert_eq!(batch.read().unwrap(), expected);
    }

    #[test]
    fn a_truncated_transaction_is_an_error(transaction in transaction(), cut in any::<prop::sample::Index>()) {
        let bytes = to_bytes(&transaction);
        let len = cut.index(bytes.len());
        let framed = to_bytes(&Blob(bytes[..len].to_vec()));
        let framed: Encoded<Framed<WalletTransaction>> = from_bytes(&framed).unwrap();
        prop_assert!(framed.view().unwrap().open().is_err(), "{} of {}", len, bytes.len());
        prop_assert!(from_bytes::<WalletTransaction>(&bytes[..len]).is_err());
    }

    #[test]
    fn a_damaged_batch_never_panics(
        rows in prop::collection::vec(row(), 0..4),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = to_bytes(&HistoryBatch { rows, next: None });
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Err(error) = look_at_all(bytes) {
            prop_assert_eq!(error.kind, ErrorKind::Malformed);
        }
    }

    #[test]
    fn a_transaction_from_a_newer_writer_is_read(mut transaction in transaction()) {
        transaction.outputs.clear();
        let stored = [to_bytes(&transaction), b"something new".to_vec()].concat();
        let row = HistoryRow { transaction: Framed(transaction), unsettled: None };
        let mut batch = HistoryWriter::with_capacity(0);
        batch.push(&stored, None, |_| None).unwrap();
        batch.push(&stored, None, |_| None).unwrap();
        prop_assert_eq!(batch.finish(None).read().unwrap().rows, [row.clone(), row]);
    }
}

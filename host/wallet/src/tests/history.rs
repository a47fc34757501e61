use bitcoin::ScriptBuf;
use outrigger_service::wallet::{HistoryQuery, HistoryRange};
use outrigger_service::wire::Blob;

use super::{Harness, elsewhere, foreign, spend};

/// The values of a range's transactions, and the sizes of the batches.
fn read(harness: &Harness, range: HistoryRange, reverse: bool, limit: u32) -> (Vec<u64>, Vec<usize>) {
    let view = harness.view();
    let (mut sums, mut sizes, mut after) = (Vec::new(), Vec::new(), None);
    loop {
        let batch = view.history(&HistoryQuery { range, reverse, after, limit }).unwrap();
        sizes.push(batch.bytes().len());
        let batch = batch.view().unwrap();
        assert!(batch.rows.len() <= limit as usize);
        sums.extend(batch.rows.iter().map(|row| row.open().unwrap().0.total_output.to_sat()));
        after = batch.next.map(|next| Blob(next.to_vec()));
        if after.is_none() {
            return (sums, sizes);
        }
    }
}

#[test]
fn the_order_is_that_of_the_block_and_not_that_of_the_arrivals() {
    let harness = Harness::with_wallet();
    let script = harness.address(Some(""));
    let payments: Vec<_> = (1..=100).map(|n| spend(&[elsewhere(n)], &[(&script, u64::from(n))])).collect();
    payments.iter().for_each(|payment| harness.accept(payment));
    // A block order in which few neighbours have consecutive order positions.
    let position = |n: usize| (n % 3, if n < 50 { n } else { 1000 - n });
    let mut order: Vec<usize> = (0..payments.len()).collect();
    order.sort_by_key(|n| position(*n));
    harness.mine(order.iter().map(|n| payments[*n].clone()).collect());
    let expected: Vec<u64> = order.iter().map(|n| *n as u64 + 1).collect();
    let range = HistoryRange::Confirmed { from_height: 0 };
    for limit in [1, 7, 32, 33, 99, 100, u32::MAX] {
        assert_eq!(read(&harness, range, false, limit).0, expected, "limit {limit}");
        let backwards: Vec<u64> = expected.iter().rev().copied().collect();
        assert_eq!(read(&harness, range, true, limit).0, backwards, "limit {limit}");
        assert_eq!(read(&harness, HistoryRange::All, false, limit).0, (1..=100).collect::<Vec<_>>(), "limit {limit}");
    }
}

#[test]
fn batches_are_bounded_in_bytes() {
    let harness = Harness::with_wallet();
    let script = harness.address(Some(""));
    let large = ScriptBuf::from_bytes(vec![0x6a; 9000]);
    let payments: Vec<_> =
        (1..=30).map(|n| spend(&[elsewhere(n)], &[(&script, u64::from(n)), (&large, 0), (&foreign(1), 0)])).collect();
    harness.mine(payments);
    let range = HistoryRange::Confirmed { from_height: 0 };
    let (sums, sizes) = read(&harness, range, false, u32::MAX);
    assert_eq!(sums, (1..=30).collect::<Vec<_>>());
    assert!(sizes.len() > 1 && sizes.iter().all(|size| *size < 150_000), "{sizes:?}");
}

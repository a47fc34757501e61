//! Payments at the end of the derived scripts, and beyond.

use bitcoin::ScriptBuf;
use outrigger_service::events::RescanOutcome;

use super::rescans::{finished_of, scripts_of};
use super::{Harness, descriptor, elsewhere, foreign, spend};

/// A descriptor that another wallet also uses.
const TEXT: &str = "wpkh(tprv8ZgxMBicQKsPd7Uf69XL1XwhmjHopUGep8GuEiJDZmbQz6o58LninorQAfcKZWARbtRtfnLcJ5MQ2AtHcQJCCRUcMRvmDUjyEmNUWwx8UbK/0/*)";

fn script(index: u32) -> ScriptBuf {
    scripts_of(TEXT)(index)
}

/// A wallet with 20 derived scripts, as many as are kept ahead.
fn wallet() -> Harness {
    let harness = Harness::blank();
    let import = descriptor(TEXT, |import| (import.range, import.active) = (Some((0, 19)), true));
    harness.view().wallet().import(vec![import]).unwrap();
    harness
}

fn range(harness: &Harness) -> (u32, u32) {
    let row = harness.view().descriptors(false).unwrap().remove(0);
    (row.range.unwrap().1, row.next_index)
}

#[test]
fn keypool_grows_within_a_block_so_that_payments_beyond_its_end_are_found() {
    let harness = wallet();
    assert_eq!(range(&harness), (19, 0));
    let pay = |number: u8, index: u32| spend(&[elsewhere(number)], &[(&script(index), 70)]);
    // Each pays to the last script that the payment before it derives.
    harness.mine(vec![pay(1, 19), pay(2, 39), pay(3, 59)]);
    assert_eq!((harness.coins().len(), range(&harness)), (3, (79, 60)));
    // The same in the mempool, within one transaction.
    let (first, second, third) = (script(79), script(99), script(119));
    harness.accept(&spend(&[elsewhere(4)], &[(&first, 1), (&foreign(1), 1), (&second, 1), (&third, 1)]));
    assert_eq!((harness.coins().len(), range(&harness)), (6, (139, 120)));
    // The same where a later payment or output derives the script of an earlier one.
    harness.mine(vec![pay(5, 178), pay(6, 159), pay(7, 139)]);
    assert_eq!((harness.coins().len(), range(&harness)), (9, (198, 179)));
    let (first, second) = (script(218), script(198));
    harness.mine(vec![spend(&[elsewhere(8)], &[(&first, 1), (&second, 1)])]);
    assert_eq!((harness.coins().len(), range(&harness)), (11, (238, 219)));
}

#[test]
fn keypool_of_change_grows_with_payments_near_its_end() {
    let harness = Harness::blank();
    let change = descriptor(TEXT, |import| {
        (import.range, import.active, import.internal) = (Some((0, 19)), true, Some(true));
    });
    harness.view().wallet().import(vec![change]).unwrap();
    for (number, index) in [(1, 19), (2, 38), (3, 57)] {
        harness.mine(vec![spend(&[elsewhere(number)], &[(&script(index), 70)])]);
        assert_eq!((harness.coins().len(), range(&harness)), (usize::from(number), (index + 20, index + 1)));
    }
}

#[test]
fn a_restored_or_loaded_wallet_scans_again_where_payments_came_near_the_end_of_what_was_derived() {
    // Of 20 scripts, the last 4 count as the end. The later blocks derive the scripts that the earlier ones pay to.
    for (paid, found, widened) in [(&[70, 52, 35, 18][..], &[18, 35, 52, 70][..], true), (&[25, 15], &[15], false)] {
        let harness = wallet();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("w.backup");
        harness.view().wallet().backup(&file, &None, &[]).unwrap();
        harness.manager.unload("w".into(), None).unwrap();
        for (number, index) in (1_u8..).zip(paid) {
            harness.mine(vec![spend(&[elsewhere(number)], &[(&script(*index), u64::from(*index))])]);
        }
        for name in ["copy", "w"] {
            harness.events.lock().clear();
            let warnings = match name {
                "w" => harness.manager.load(name.into(), None),
                _ => harness.manager.restore(name.into(), &file, &None, None, &|_| Ok(())),
            };
            let warnings = warnings.unwrap();
            assert_eq!(
                warnings.iter().any(|warning| warning.contains("are being scanned again")),
                widened,
                "{warnings:?}"
            );
            if widened {
                assert_eq!(finished_of(&harness, name), RescanOutcome::Complete);
            }
            let view = harness.manager.select(Some(name)).unwrap();
            let mut values: Vec<u64> = super::coins(&view).iter().map(|coin| coin.value.to_sat()).collect();
            values.sort_unstable();
            assert_eq!(values, found, "{name}");
        }
    }
}

//! Payments at the end of the derived scripts, and beyond.

use bitcoin::ScriptBuf;

use super::rescans::scripts_of;
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

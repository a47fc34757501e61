//! The check of files written by LMDB, intact and damaged.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::{DATA_FILE, Environment, Opening, examine};

const OPENING: Opening = Opening { map_size: 1 << 30, max_readers: 8, tables: 4, lazy: false };
const NAMES: [&str; 3] = ["index", "meta", "values"];

/// A change: the table, the number of a key, and the length of its new value; `None` deletes it.
type Step = (usize, u16, Option<usize>);

fn key(number: u16) -> Vec<u8> {
    // Keys have several lengths, and an order unlike that of the numbers.
    let number = number.wrapping_mul(40_503);
    [number.to_be_bytes().as_slice(), &vec![b'k'; usize::from(number % 30)]].concat()
}

fn make(changes: &[Vec<Step>]) -> (TempDir, PathBuf) {
    let dir = TempDir::new().unwrap();
    let env = Environment::open(dir.path(), &OPENING).unwrap();
    for change in changes {
        let mut txn = env.write().unwrap();
        let tables = NAMES.map(|name| env.make_table(&mut txn, name).unwrap());
        for (table, number, length) in change {
            match length {
                Some(length) => tables[*table].put(&mut txn, &key(*number), &vec![*number as u8; *length]).unwrap(),
                None => drop(tables[*table].delete(&mut txn, &key(*number)).unwrap()),
            }
        }
        txn.commit().unwrap();
    }
    let closing = env.closing();
    drop(env);
    closing.wait();
    let file = dir.path().join(DATA_FILE);
    (dir, file)
}

type StoredRows = BTreeMap<(String, Vec<u8>), Vec<u8>>;

fn rows(file: &Path) -> Result<StoredRows, Fault> {
    let mut rows = StoredRows::new();
    let file = DataFile::open(file)?;
    file.walk(&mut |table, key, value| {
        rows.insert((table.to_owned(), key.to_vec()), value.to_vec());
        Ok(())
    })?;
    examine(&file, b"no such row")?;
    Ok(rows)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Splits, merges, long values, shorter replacements, and free lists: all pages pass, and every row is seen.
    #[test]
    fn pages_that_lmdb_wrote_pass(changes in prop::collection::vec(prop::collection::vec(
        (0_usize..3, 0_u16..400, prop_oneof![
            2 => Just(None),
            6 => (0_usize..200).prop_map(Some),
            1 => (1_000_usize..30_000).prop_map(Some),
        ]), 0..250), 1..12)) {
        let (_dir, file) = make(&changes);
        let mut model = StoredRows::new();
        for (table, number, length) in changes.iter().flatten() {
            let place = (NAMES[*table].to_owned(), key(*number));
            match length {
                Some(length) => drop(model.insert(place, vec![*number as u8; *length])),
                None => drop(model.remove(&place)),
            }
        }
        let found = rows(&file).unwrap();
        prop_assert_eq!(found.len(), model.len());
        for ((table, key), value) in &model {
            let stored = &found[&(table.clone(), key.clone())];
            prop_assert_eq!(&stored[..value.len()], &value[..]);
            let again = DataFile::open(&file).unwrap().get(table, key).unwrap();
            prop_assert_eq!(again.as_ref(), Some(stored));
        }
        prop_assert_eq!(DataFile::open(&file).unwrap().get("index", b"not there").unwrap(), None);
    }
}

/// A file with branch pages, long values and free pages.
fn sample() -> (TempDir, PathBuf) {
    let fill = |from: u16, to: u16, length| (from..to).map(|number| (2, number, Some(length))).collect::<Vec<_>>();
    let index = (0..60).map(|number| (0, number, Some(0))).collect();
    make(&[
        fill(0, 160, 60),
        index,
        vec![(1, 1, Some(9_000)), (1, 2, Some(5))],
        fill(20, 40, 70),
        vec![(1, 1, Some(8_500))],
    ])
}

#[test]
fn pages_with_a_flipped_bit_read_the_same_or_are_refused() {
    let (_dir, file) = sample();
    let whole = fs::read(&file).unwrap();
    let before = rows(&file).unwrap();
    let (mut refused, mut same) = (0, 0);
    // More bits of page headers than of the rest. Both steps are odd, so every bit of a byte is flipped somewhere.
    let places = (0..whole.len() * 8).filter(|bit| bit / 8 % 4096 < 220 && bit % 7 == 0 || bit % 211 == 0);
    for bit in places {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        fs::write(&file, &damaged).unwrap();
        match rows(&file) {
            Ok(after) => {
                assert!(after == before, "bit {bit} changes what is read, unnoticed");
                same += 1;
            }
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 0 && same > 0, "{refused} were refused, {same} made no difference");
}

#[test]
fn pages_of_a_truncated_file_are_refused() {
    let (_dir, file) = sample();
    let whole = fs::read(&file).unwrap();
    let before = rows(&file).unwrap();
    fs::write(&file, []).unwrap();
    assert!(matches!(rows(&file), Err(Fault::Empty)));
    for length in (1..whole.len()).step_by(509) {
        fs::write(&file, &whole[..length]).unwrap();
        // Free pages at the end may be missing.
        assert!(rows(&file).map_or(true, |after| after == before), "{length} of {} bytes", whole.len());
    }
    fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    rows(&file).unwrap_err();
    fs::write(&file, vec![b'x'; 10_000]).unwrap();
    assert!(matches!(rows(&file), Err(Fault::Foreign)));
}

#[test]
fn pages_with_a_lowered_transaction_id_are_refused() {
    let (_dir, file) = sample();
    let whole = fs::read(&file).unwrap();
    let changes = [0, 1].map(|page: usize| {
        let at = page * 4096 + 16 + 24 + 2 * 48 + 8;
        (u64::from_le_bytes(whole[at..at + 8].try_into().unwrap()), at)
    });
    let (newest, at) = changes.into_iter().max().unwrap();
    let mut damaged = whole.clone();
    damaged[at..at + 8].copy_from_slice(&(newest - 2).to_le_bytes());
    fs::write(&file, &damaged).unwrap();
    assert!(matches!(rows(&file), Err(Fault::Meta { .. })), "change {newest} was taken for {}", newest - 2);
}

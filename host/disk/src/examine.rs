//! Checks of an LMDB file before it is opened: whether it is intact, and its layout.

use std::path::Path;

use super::environment::DATA_FILE;
use super::error::StoreError;
use super::make::finish;
use super::pages::{DataFile, Fault};
use super::table::{Checksum, META, PROGRAM, shown};

/// Checks every page and row of the file in a folder before it is opened. The value of the row `layout_key` must begin with `layout`.
pub fn check(folder: &Path, layout_key: &[u8], layout: &[u8]) -> Result<(), StoreError> {
    let file = folder.join(DATA_FILE);
    let bad = |fault| StoreError::BadFile { file: file.clone(), fault };
    finish(folder)?;
    check_file(&DataFile::open(&file).map_err(bad)?, &file, layout_key, layout)
}

/// As [`check`], for an open file. Errors name the path `file`.
pub fn check_file(data: &DataFile, file: &Path, layout_key: &[u8], layout: &[u8]) -> Result<(), StoreError> {
    let bad = |fault| StoreError::BadFile { file: file.to_owned(), fault };
    let stored = |key: &[u8]| intact(data, key).map_err(bad);
    // Checked first: another version's file may look damaged to this one.
    let found = stored(layout_key)?;
    if let Some(found) = found.as_deref().and_then(|row| row.get(..layout.len())).filter(|found| *found != layout) {
        let (file, found, known) = (file.to_owned(), number(found), number(layout));
        let program = stored(PROGRAM)?.map(|text| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default();
        return Err(StoreError::OtherLayout { file, found, known, program });
    }
    if examine(data, layout_key).map_err(bad)? { Ok(()) } else { Err(bad(Fault::Foreign)) }
}

/// The value of a row of [`META`]; `None` if the row is missing, or its checksum does not match. Reads only the pages on the path to it.
fn intact(file: &DataFile, key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
    Ok(file.get(META, key)?.and_then(|stored| Checksum::of(META).open(key, &stored).map(<[u8]>::to_vec)))
}

/// A little-endian number of up to eight bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Reads the whole file: every page of every tree, and the checksum of each row. Returns whether it has the row `layout_key`.
pub fn examine(file: &DataFile, layout_key: &[u8]) -> Result<bool, Fault> {
    let mut has_layout = false;
    let mut checksum: Option<(String, Checksum)> = None;
    file.walk(&mut |table, key, stored| {
        let sums = match &checksum {
            Some((of, sums)) if of == table => *sums,
            _ => checksum.insert((table.to_owned(), Checksum::of(table))).1,
        };
        if sums.open(key, stored).is_none() {
            return Err(Fault::Row { table: table.to_owned(), key: shown(key) });
        }
        has_layout |= table == META && key == layout_key;
        Ok(())
    })?;
    Ok(has_layout)
}

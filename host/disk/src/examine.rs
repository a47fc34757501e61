//! Checks of an LMDB file before it is opened: whether it is intact, and its layout.

use std::path::Path;

use super::environment::DATA_FILE;
use super::error::StoreError;
use super::make::finish;
use super::pages::{DataFile, Fault};
use super::table::{Checksum, META, PROGRAM, shown};

#[derive(Debug, Default)]
pub struct Examination {
    /// The row with the layout's version, including its checksum.
    layout: Option<Vec<u8>>,
    /// The version of the program that created the file, if stated.
    program: Option<String>,
    /// The first row with a wrong or missing checksum.
    damage: Option<Fault>,
}

impl Examination {
    /// Fails with the first damaged row.
    pub fn check(self) -> Result<(), Fault> {
        self.damage.map_or(Ok(()), Err)
    }
}

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
    let glance = glance(data, layout_key).map_err(bad)?;
    // Checked first: another version's file may look damaged to this one.
    let sure = glance.layout.as_deref().filter(|_| glance.damage.is_none());
    if let Some(found) = sure.and_then(|row| row.get(..layout.len())).filter(|found| *found != layout) {
        let (found, known) = (number(found), number(layout));
        let (file, program) = (file.to_owned(), glance.program.unwrap_or_default());
        return Err(StoreError::OtherLayout { file, found, known, program });
    }
    let examined = examine(data, layout_key).map_err(bad)?;
    let states_layout = examined.layout.is_some();
    examined.check().map_err(bad)?;
    if states_layout { Ok(()) } else { Err(bad(Fault::Foreign)) }
}

/// A little-endian number of up to eight bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Reads the whole file: every page of every tree, and the checksum of each row.
pub fn examine(file: &DataFile, layout_key: &[u8]) -> Result<Examination, Fault> {
    let mut examined = Examination::default();
    let mut checksum: Option<(String, Checksum)> = None;
    file.walk(&mut |table, key, stored| {
        let sums = match &checksum {
            Some((of, sums)) if of == table => *sums,
            _ => checksum.insert((table.to_owned(), Checksum::of(table))).1,
        };
        examined.see(table, key, sums.open(key, stored), stored, layout_key);
        Ok(())
    })?;
    Ok(examined)
}

/// Reads only the meta pages, and the pages on the path to the rows of layout and program.
fn glance(file: &DataFile, layout_key: &[u8]) -> Result<Examination, Fault> {
    let sums = Checksum::of(META);
    let mut examined = Examination::default();
    for key in [layout_key, PROGRAM] {
        if let Some(stored) = file.get(META, key)? {
            examined.see(META, key, sums.open(key, &stored), &stored, layout_key);
        }
    }
    Ok(examined)
}

impl Examination {
    /// Examines a row. `value` is `None` if the checksum does not match.
    fn see(&mut self, table: &str, key: &[u8], value: Option<&[u8]>, stored: &[u8], layout_key: &[u8]) {
        if value.is_none() && self.damage.is_none() {
            self.damage = Some(Fault::Row { table: table.to_owned(), key: shown(key) });
        }
        if table == META && key == layout_key {
            self.layout = Some(stored.to_vec());
        } else if table == META && key == PROGRAM {
            self.program = value.map(|text| String::from_utf8_lossy(text).into_owned());
        }
    }
}

//! What a file of LMDB is, before it is opened: whether it is whole, and of which layout.

use super::pages::{DataFile, Fault};
use super::table::{Checksum, shown};

/// The table and the keys that all layouts have in common.
pub const META: &str = "meta";
/// Where the version of the program stands that made the file, as text.
pub const PROGRAM: &[u8] = b"program";

/// What a file is.
#[derive(Debug, Default)]
pub struct Examined {
    /// The row that the layout is read from, with the checksum behind it.
    pub layout: Option<Vec<u8>>,
    /// The version of the program that made it, where it says so.
    pub program: Option<String>,
    /// The first row whose checksum is of other bytes, or that has none.
    damage: Option<Fault>,
}

impl Examined {
    /// Whether each row that was read is as it was written.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(self) -> Result<(), Fault> {
        self.damage.map_or(Ok(()), Err)
    }
}

/// Reads all of a file: every page of every tree, and the checksum of each row.
///
/// # Errors
/// What is wrong with its pages.
pub fn examine(file: &DataFile, layout_key: &[u8]) -> Result<Examined, Fault> {
    let mut examined = Examined::default();
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

/// Reads of a file only what it is: its meta pages, and the ways to the rows that say so.
///
/// # Errors
/// What is wrong with the pages on the way.
pub fn glance(file: &DataFile, layout_key: &[u8]) -> Result<Examined, Fault> {
    let sums = Checksum::of(META);
    let mut examined = Examined::default();
    for key in [layout_key, PROGRAM] {
        if let Some(stored) = file.get(META, key)? {
            examined.see(META, key, sums.open(key, &stored), &stored, layout_key);
        }
    }
    Ok(examined)
}

impl Examined {
    /// The row that the layout is read from, where its checksum says that it is what was written.
    pub fn sure_layout(&self) -> Option<&[u8]> {
        self.layout.as_deref().filter(|_| self.damage.is_none())
    }

    /// Takes note of a row, of which `value` is what its checksum agrees with.
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

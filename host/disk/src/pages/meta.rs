//! The two meta pages. Each commit overwrites the older one.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use super::Fault;
use super::page::{HEADER, META, TreeRecord, u16_at, u32_at, u64_at};

/// The number of meta pages, at the beginning of the file.
pub const META_PAGES: u64 = 2;
/// LMDB's magic number, after the header of each meta page.
const MAGIC: u32 = 0xBEEF_C0DE;
/// The version of LMDB's data format.
const VERSION: u32 = 1;
/// The page sizes that LMDB allows, in bytes.
const PAGE_SIZES: std::ops::RangeInclusive<u32> = 512..=0x8000;
/// The flags of the tree of free pages: integer keys (MDB_INTEGERKEY), and no persistent flags of the environment.
const FREE_FLAGS: u16 = 0x08;

/// Offsets in a meta page, in bytes.
mod at {
    use super::HEADER;
    pub const MAGIC: usize = HEADER;
    pub const VERSION: usize = HEADER + 4;
    pub const FREE: usize = HEADER + 24;
    pub const MAIN: usize = FREE + super::TreeRecord::SIZE;
    pub const LAST_PAGE: usize = MAIN + super::TreeRecord::SIZE;
    pub const CHANGE: usize = LAST_PAGE + 8;
    pub const END: usize = CHANGE + 8;
}

#[derive(Clone, Copy)]
pub struct Meta {
    /// 0 or 1.
    pub page: u64,
    /// In bytes.
    pub page_size: usize,
    pub free: TreeRecord,
    pub main: TreeRecord,
    /// The last page ever used. If the last pages are free, the file may end before it.
    pub last_page: u64,
    /// The number of the commit that wrote this page.
    pub change: u64,
}

/// Reads both meta pages. Returns the newer one first.
pub fn read(file: &File) -> Result<(Meta, Meta), Fault> {
    let first = read_one(file, 0, 0)?;
    let second = read_one(file, 1, first.page_size as u64)?;
    let fault = |what| Fault::Meta { page: 0, what };
    if first.page_size != second.page_size {
        return Err(fault("the meta pages disagree on the page size"));
    }
    // LMDB creates the file with number 0 in both pages. Later commits alternate: even numbers are on page 0.
    if (first.change, second.change) != (0, 0) {
        if first.change % 2 != 0 || second.change % 2 != 1 {
            return Err(fault("a meta page has a transaction ID of the wrong parity"));
        }
        if first.change.abs_diff(second.change) != 1 {
            return Err(fault("the transaction IDs of the meta pages are not consecutive"));
        }
    }
    Ok(if first.change > second.change { (first, second) } else { (second, first) })
}

fn read_one(file: &File, page: u64, offset: u64) -> Result<Meta, Fault> {
    let fault = |what| Fault::Meta { page, what };
    let mut bytes = [0; at::END];
    file.read_exact_at(&mut bytes, offset).map_err(|error| match error.kind() {
        // LMDB never writes less than a page, so a shorter file is not from LMDB.
        std::io::ErrorKind::UnexpectedEof if page == 0 => Fault::Foreign,
        std::io::ErrorKind::UnexpectedEof => fault("the file is truncated"),
        _ => error.into(),
    })?;
    let short = || fault("the file is truncated");
    let magic = u32_at(&bytes, at::MAGIC).ok_or_else(short)?;
    let marked = u16_at(&bytes, 10).ok_or_else(short)? == META;
    if page == 0 && magic != MAGIC && !marked {
        return Err(Fault::Foreign);
    }
    if u64_at(&bytes, 0).ok_or_else(short)? != page || !marked {
        return Err(fault("it is not a meta page"));
    }
    if magic != MAGIC {
        return Err(fault("it has no LMDB magic number"));
    }
    if u32_at(&bytes, at::VERSION).ok_or_else(short)? != VERSION {
        return Err(fault("it has an unknown LMDB format version"));
    }
    let free = TreeRecord::read(bytes.get(at::FREE..at::MAIN).ok_or_else(short)?).ok_or_else(short)?;
    let main = TreeRecord::read(bytes.get(at::MAIN..at::LAST_PAGE).ok_or_else(short)?).ok_or_else(short)?;
    // LMDB stores the page size and its flags in unused fields of this record.
    if !PAGE_SIZES.contains(&free.pad) || !free.pad.is_power_of_two() {
        return Err(fault("its page size is invalid"));
    }
    if free.flags != FREE_FLAGS || main.flags != 0 || main.pad != 0 {
        return Err(fault("it has unknown flags"));
    }
    let last_page = u64_at(&bytes, at::LAST_PAGE).ok_or_else(short)?;
    if last_page < META_PAGES - 1 || last_page >= u64::from(u32::MAX) << 16 {
        return Err(fault("its last page number is invalid"));
    }
    let change = u64_at(&bytes, at::CHANGE).ok_or_else(short)?;
    Ok(Meta { page, page_size: free.pad as usize, free: TreeRecord { pad: 0, ..free }, main, last_page, change })
}

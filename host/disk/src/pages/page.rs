//! A page of a tree, and its nodes. All numbers are little-endian, as on all supported systems.

/// The size of a page header: page number (8), padding (2), kind (2), lower and upper bound of the free space (2 each),
/// or for an overflow page its number of pages (4).
pub const HEADER: usize = 16;
/// The size of a node header: the lower 32 bits of the value's length or of a page number (4); flags, or the upper bits
/// of that page number (2); the key's length (2).
const NODE_HEADER: usize = 8;

/// Kinds of pages.
pub const BRANCH: u16 = 0x01;
/// Contains rows.
pub const LEAF: u16 = 0x02;
/// The first page of a long value.
pub const OVERFLOW: u16 = 0x04;
pub const META: u16 = 0x08;

/// The node's value is in overflow pages.
pub const LONG_VALUE: u16 = 0x01;
/// The node's value is the record of a table.
pub const TABLE: u16 = 0x02;

const NO_PAGE: u64 = u64::MAX;

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array_at(bytes, at).map(u16::from_le_bytes)
}

pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array_at(bytes, at).map(u32::from_le_bytes)
}

pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    array_at(bytes, at).map(u64::from_le_bytes)
}

/// The record of a tree (`MDB_db`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TreeRecord {
    /// 0 in tables of this program.
    pub pad: u32,
    /// The kind of keys; 0 in tables of this program.
    pub flags: u16,
    /// The number of pages on the path to a row, including the root and the row's page.
    pub depth: u16,
    pub branches: u64,
    pub leaves: u64,
    pub overflow: u64,
    pub rows: u64,
    /// `None` if it has no rows.
    pub root: Option<u64>,
}

impl TreeRecord {
    /// The size of a record, in bytes.
    pub const SIZE: usize = 48;

    /// Parses a record; `None` if the length is wrong.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != Self::SIZE {
            return None;
        }
        let root = u64_at(bytes, 40)?;
        Some(Self {
            pad: u32_at(bytes, 0)?,
            flags: u16_at(bytes, 4)?,
            depth: u16_at(bytes, 6)?,
            branches: u64_at(bytes, 8)?,
            leaves: u64_at(bytes, 16)?,
            overflow: u64_at(bytes, 24)?,
            rows: u64_at(bytes, 32)?,
            root: (root != NO_PAGE).then_some(root),
        })
    }
}

#[derive(Clone, Copy)]
pub struct Node<'p> {
    /// In a branch page, the upper bits of the child's page number.
    pub flags: u16,
    pub key: &'p [u8],
    /// In a leaf page, the length of the value, in bytes.
    pub length: usize,
    /// In a leaf page, the value, or the number of its first overflow page.
    pub value: &'p [u8],
    /// In a branch page, the number of the child page, whose keys start at `key`.
    pub child: u64,
}

/// A page whose bounds have been checked.
pub struct Page {
    bytes: Vec<u8>,
    leaf: bool,
    pub count: usize,
}

impl Page {
    /// Checks the branch or leaf page at `number`.
    pub fn check(bytes: Vec<u8>, number: u64, leaf: bool) -> Result<Self, &'static str> {
        let header = |at| u16_at(&bytes, at).map(usize::from).ok_or("it is too short");
        if u64_at(&bytes, 0) != Some(number) {
            return Err("its page number is wrong");
        }
        if u16_at(&bytes, 10) != Some(if leaf { LEAF } else { BRANCH }) {
            return Err("its page type is wrong");
        }
        let (lower, upper) = (header(12)?, header(14)?);
        if lower < HEADER || !lower.is_multiple_of(2) || upper < lower || upper > bytes.len() {
            return Err("its bounds are invalid");
        }
        let page = Self { count: (lower - HEADER) / 2, bytes, leaf };
        if page.count == 0 {
            return Err("it has no nodes");
        }
        page.check_packing(upper)?;
        Ok(page)
    }

    /// Nodes are packed at the page's end without gaps, as LMDB assumes when it adds and removes them.
    fn check_packing(&self, upper: usize) -> Result<(), &'static str> {
        let mut filled = 0;
        for index in 0..self.count {
            let offset = self.offset(index).ok_or("a node lies outside the page")?;
            if offset < upper || !offset.is_multiple_of(2) {
                return Err("a node lies outside the page");
            }
            filled += self.node_size(offset).ok_or("a node ends outside the page")?.next_multiple_of(2);
        }
        if filled != self.bytes.len() - upper { Err("its nodes and free space do not add up") } else { Ok(()) }
    }

    fn offset(&self, index: usize) -> Option<usize> {
        u16_at(&self.bytes, HEADER + 2 * index).map(usize::from)
    }

    /// The size of the node at an offset; `None` if it exceeds the page.
    fn node_size(&self, offset: usize) -> Option<usize> {
        let (low, flags) = (u32_at(&self.bytes, offset)?, u16_at(&self.bytes, offset + 4)?);
        let key = usize::from(u16_at(&self.bytes, offset + 6)?);
        let value = match (self.leaf, flags & LONG_VALUE) {
            (false, _) => 0,
            (true, 0) => low as usize,
            (true, _) => size_of::<u64>(),
        };
        let size = NODE_HEADER + key + value;
        (offset + size <= self.bytes.len()).then_some(size)
    }

    pub fn node(&self, index: usize) -> Option<Node<'_>> {
        if index >= self.count {
            return None;
        }
        let offset = self.offset(index)?;
        let (low, flags) = (u32_at(&self.bytes, offset)?, u16_at(&self.bytes, offset + 4)?);
        let key = usize::from(u16_at(&self.bytes, offset + 6)?);
        let size = self.node_size(offset)?;
        let node = self.bytes.get(offset + NODE_HEADER..offset + size)?;
        let (key, value) = node.split_at_checked(key)?;
        Some(Node { flags, key, length: low as usize, value, child: u64::from(low) | u64::from(flags) << 32 })
    }

    pub fn nodes(&self) -> impl Iterator<Item = Node<'_>> {
        (0..self.count).map_while(|index| self.node(index))
    }
}

//! A page of a tree, and the nodes in it. All numbers are little-endian, as on all systems this runs on.

/// The bytes of a page's header: its number (8), padding (2), its kind (2), and where its free space begins and ends (2 each),
/// or, of an overflow page, how many pages it takes (4).
pub const HEADER: usize = 16;
/// The bytes of a node's header: the lower 32 bits of the value's length, or of a page's number; flags, or that number's
/// upper bits; the key's length.
const NODE_HEADER: usize = 8;

/// The kinds of pages.
pub const BRANCH: u16 = 0x01;
/// A page with rows.
pub const LEAF: u16 = 0x02;
/// A page that a long value begins with.
pub const OVERFLOW: u16 = 0x04;
/// One of the first two.
pub const META: u16 = 0x08;

/// The flag of a node whose value stands in overflow pages.
pub const LONG_VALUE: u16 = 0x01;
/// The flag of a node whose value is the tree of a table.
pub const TABLE: u16 = 0x02;

/// The number that stands for no page.
const NO_PAGE: u64 = u64::MAX;

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// The number in two bytes.
pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array_at(bytes, at).map(u16::from_le_bytes)
}

/// The number in four bytes.
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array_at(bytes, at).map(u32::from_le_bytes)
}

/// The number in eight bytes.
pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    array_at(bytes, at).map(u64::from_le_bytes)
}

/// What is stated of a tree, where it is rooted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stated {
    /// Of the first two trees something else; 0 in tables of this program.
    pub pad: u32,
    /// What keys it has; 0 in tables of this program.
    pub flags: u16,
    /// How many pages lie on the way to a row, it and the root included.
    pub depth: u16,
    /// How many branch pages it has.
    pub branches: u64,
    /// How many leaf pages.
    pub leaves: u64,
    /// How many overflow pages.
    pub overflow: u64,
    /// How many rows.
    pub rows: u64,
    /// Its first page; none where it has no rows.
    pub root: Option<u64>,
}

impl Stated {
    /// The bytes of it.
    pub const SIZE: usize = 48;

    /// Reads it; none where it is not of its length.
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

/// A node of a page.
#[derive(Clone, Copy)]
pub struct Node<'p> {
    /// Its flags; in a branch page a part of the page's number.
    pub flags: u16,
    pub key: &'p [u8],
    /// In a leaf page, how long its value is, in bytes.
    pub length: usize,
    /// In a leaf page, its value, or the number of the page where it stands.
    pub value: &'p [u8],
    /// In a branch page, the page with the rows from its key on.
    pub child: u64,
}

/// A page of a tree, whose bounds have been checked.
pub struct Page {
    bytes: Vec<u8>,
    leaf: bool,
    count: usize,
}

impl Page {
    /// Checks a page that a tree leads to, as one with rows or with pages, and gives what is wrong with it.
    pub fn check(bytes: Vec<u8>, number: u64, leaf: bool) -> Result<Self, &'static str> {
        let header = |at| u16_at(&bytes, at).map(usize::from).ok_or("it is too short");
        if u64_at(&bytes, 0) != Some(number) {
            return Err("it is another page");
        }
        if u16_at(&bytes, 10) != Some(if leaf { LEAF } else { BRANCH }) {
            return Err("it is of another kind");
        }
        let (lower, upper) = (header(12)?, header(14)?);
        if lower < HEADER || !lower.is_multiple_of(2) || upper < lower || upper > bytes.len() {
            return Err("its bounds lie outside of it");
        }
        let page = Self { count: (lower - HEADER) / 2, bytes, leaf };
        if page.count == 0 {
            return Err("it has no nodes");
        }
        page.check_packing(upper)?;
        Ok(page)
    }

    /// Nodes fill the page from its end on, without gaps: LMDB reckons with that where it adds and removes them.
    fn check_packing(&self, upper: usize) -> Result<(), &'static str> {
        let mut filled = 0;
        for index in 0..self.count {
            let offset = self.offset(index).ok_or("a node lies outside of it")?;
            if offset < upper || !offset.is_multiple_of(2) {
                return Err("a node lies outside of it");
            }
            filled += self.node_size(offset).ok_or("a node ends outside of it")?.next_multiple_of(2);
        }
        if filled != self.bytes.len() - upper { Err("its nodes do not fill it") } else { Ok(()) }
    }

    fn offset(&self, index: usize) -> Option<usize> {
        u16_at(&self.bytes, HEADER + 2 * index).map(usize::from)
    }

    /// How many bytes the node at an offset takes; none where it does not end within the page.
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

    /// How many nodes it has.
    pub fn count(&self) -> usize {
        self.count
    }

    /// A node; none where there are not so many.
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

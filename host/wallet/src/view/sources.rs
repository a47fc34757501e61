//! Sources of new addresses: active descriptors and the imported keypool.

use outrigger_service::wallet::{AddressSource, AddressType};

use crate::error::Result;
use crate::keypool::LAST_INDEX;
use crate::live::Wallet;
use crate::store::{DescriptorRow, Reading, number_from};

const KINDS: [AddressType; 4] =
    [AddressType::Legacy, AddressType::P2shSegwit, AddressType::Bech32, AddressType::Bech32m];

pub fn has_next(row: &DescriptorRow) -> bool {
    row.next_index < row.range_end.min(LAST_INDEX)
}

/// Whether a descriptor can provide a new address: it is ranged, and has private keys, derived indexes left, or no
/// hardened step below its public keys.
fn can_derive(wallet: &Wallet, number: u32, row: &DescriptorRow) -> Result<bool> {
    if !row.ranged || row.has_private || has_next(row) {
        return Ok(row.ranged);
    }
    Ok(wallet.descriptors.get(number, &row.public)?.expand(row.next_index).is_ok())
}

/// The sources of addresses for receiving (external) or for change (internal).
pub struct Side {
    /// Active descriptors by type, and whether each can provide an address.
    active: Vec<(AddressType, DescriptorRow, bool)>,
    pool: u64,
    internal: bool,
}

impl Side {
    pub fn read(wallet: &Wallet, txn: &Reading<'_>, internal: bool) -> Result<Self> {
        let t = &wallet.store.tables;
        let mut active = Vec::new();
        for kind in KINDS {
            let number = t.active.get(txn, &[kind as u8, u8::from(internal)])?.map(number_from).transpose()?;
            let Some(number) = number else { continue };
            if let Some(row) = t.descriptor(txn, number)? {
                let available = can_derive(wallet, number, &row)?;
                active.push((kind, row, available));
            }
        }
        let pool = t.imported_pool.prefix_iter(txn, &[u8::from(internal)])?.count() as u64;
        Ok(Self { active, pool, internal })
    }

    /// Whether it can provide a new address of some type.
    pub fn gives_addresses(&self) -> bool {
        self.pool > 0 || self.active.iter().any(|(.., available)| *available)
    }

    /// Sorted by type.
    pub fn sources(&self) -> Vec<AddressSource> {
        let source = |kind, available| AddressSource { kind, internal: self.internal, available };
        let mut sources: Vec<_> = self.active.iter().map(|(kind, _, available)| source(*kind, *available)).collect();
        if self.pool > 0 {
            let missing = |kind: &AddressType| {
                *kind != AddressType::Bech32m && !self.active.iter().any(|(active, ..)| active == kind)
            };
            sources.extend(KINDS.into_iter().filter(missing).map(|kind| source(kind, true)));
            sources.sort_by_key(|source| source.kind as u8);
        }
        sources
    }

    /// The number of scripts derived ahead, of all types, plus the keys of the pool.
    pub fn ahead(&self) -> u64 {
        let ahead = |row: &DescriptorRow| u64::from(row.range_end.min(LAST_INDEX).saturating_sub(row.next_index));
        self.active.iter().map(|(_, row, _)| ahead(row)).sum::<u64>() + self.pool
    }
}

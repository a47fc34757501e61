//! Where new addresses come from: active descriptors and the imported keypool, and how much lies ahead in them.

use heed::RoTxn;
use outrigger_service::wallet::{AddressSource, AddressType, WalletKind};

use crate::draw::can_derive;
use crate::error::{Result, WalletError};
use crate::keypool::LAST_INDEX;
use crate::live::Wallet;
use crate::store::rows::DescriptorRow;
use crate::store::tables::number_from;

/// The types of addresses.
const KINDS: [AddressType; 4] =
    [AddressType::Legacy, AddressType::P2shSegwit, AddressType::Bech32, AddressType::Bech32m];

/// What new addresses of one side come from.
pub struct Side {
    /// The active descriptors, by type, and whether each can give an address.
    active: Vec<(AddressType, DescriptorRow, bool)>,
    /// When the keys of the imported keypool were born, in seconds, the oldest of the pool first.
    pool: Vec<u64>,
    internal: bool,
    legacy: bool,
}

impl Side {
    /// Reads a side of a wallet of a kind.
    pub fn read(wallet: &Wallet, txn: &RoTxn<'_>, kind: WalletKind, internal: bool) -> Result<Self> {
        let (t, legacy) = (&wallet.store.tables, kind == WalletKind::Legacy);
        let mut active = Vec::new();
        for kind in KINDS.into_iter().filter(|kind| !legacy || *kind != AddressType::Bech32m) {
            let number = t.active.get(txn, &[kind as u8, u8::from(internal)])?.map(number_from).transpose()?;
            let Some(number) = number else { continue };
            if let Some(mut row) = t.descriptor(txn, number)? {
                if let Some(next) = t.successor(txn, kind as u8, internal)?
                    && let Some(next) = t.descriptor(txn, next)?
                {
                    // As bitcoind fills its keypool from the new seed as far as the former one's keys are used up.
                    row.range_end = row.range_end.max(row.next_index.saturating_add(next.range_end));
                }
                let available = can_derive(wallet, number, &row)?;
                active.push((kind, row, available));
            }
        }
        let mut pool = Vec::new();
        for entry in t.imported_pool.prefix_iter(txn, &[u8::from(internal)])? {
            let (_, hash) = entry?;
            let hash = <[u8; 20]>::try_from(hash).map_err(|_| WalletError::damaged(hash.len()))?;
            pool.push(t.imported_key(txn, &hash)?.map_or(0, |key| key.timestamp));
        }
        Ok(Self { active, pool, internal, legacy })
    }

    /// The sources, by type.
    pub fn sources(&self) -> Vec<AddressSource> {
        let source = |kind, available| AddressSource { kind, internal: self.internal, available };
        let mut sources: Vec<_> = self.active.iter().map(|(kind, _, available)| source(*kind, *available)).collect();
        if !self.pool.is_empty() {
            let missing = |kind: &AddressType| {
                *kind != AddressType::Bech32m && !self.active.iter().any(|(active, ..)| active == kind)
            };
            sources.extend(KINDS.into_iter().filter(missing).map(|kind| source(kind, true)));
            sources.sort_by_key(|source| source.kind as u8);
        }
        sources
    }

    /// How many scripts lie ahead: of all types together, or in a legacy wallet, whose keys give addresses of all types, of the
    /// type with the fewest.
    pub fn ahead(&self) -> u64 {
        let derived = self
            .active
            .iter()
            .map(|(_, row, _)| u64::from(row.range_end.min(LAST_INDEX).saturating_sub(row.next_index)));
        let derived = if self.legacy { derived.min().unwrap_or(0) } else { derived.sum() };
        derived + self.pool.len() as u64
    }

    /// When the oldest unused key was made or born, in seconds; none where there is no key.
    fn oldest(&self) -> Option<u64> {
        let made = self.active.iter().map(|(_, row, _)| row.timestamp);
        made.chain(self.pool.iter().copied()).min().filter(|_| self.ahead() > 0)
    }
}

/// `keypool_oldest` of a wallet: for a legacy wallet with keys on both sides the later of these; 0 for any other.
pub fn keypool_oldest(external: &Side, internal: &Side) -> u64 {
    match (external.oldest(), internal.oldest()) {
        (Some(external_time), Some(internal_time)) if external.legacy => external_time.max(internal_time),
        _ => 0,
    }
}

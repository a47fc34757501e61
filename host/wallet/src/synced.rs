use outrigger_service::chain::BlockInfo;
use outrigger_service::wallet::Synced;

/// The time in a block's header, in seconds.
pub fn header_time(info: &BlockInfo) -> u32 {
    info.header.get(68..72).and_then(|time| time.try_into().ok()).map_or(0, u32::from_le_bytes)
}

/// The position of a wallet that has followed the chain to this block.
pub fn synced_at(info: &BlockInfo) -> Synced {
    Synced { hash: info.hash, height: info.height, time: header_time(info), median_time: info.median_time }
}

use outrigger_service::chain::BlockInfo;
use outrigger_service::wallet::Synced;

/// The time in the block's header, in seconds; 0 if the header is too short.
pub fn header_time(info: &BlockInfo) -> u32 {
    info.header.get(68..72).and_then(|time| time.try_into().ok()).map_or(0, u32::from_le_bytes)
}

pub fn synced_at(info: &BlockInfo) -> Synced {
    Synced { hash: info.hash, height: info.height, time: header_time(info), median_time: info.median_time }
}

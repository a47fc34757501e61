//! The library of the group history, which the host loads.

// A history is private. The allocator also serves long replies from huge pages.
outrigger_sdk::wipe_freed_memory!();

outrigger_sdk::export_plugin!(outrigger_history::HistoryPlugin);

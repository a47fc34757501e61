//! The library of the group import, which the host loads.

// Arguments hold private keys, and libraries free copies of them unwiped.
outrigger_sdk::wipe_freed_memory!();

outrigger_sdk::export_plugin!(outrigger_import::ImportPlugin);

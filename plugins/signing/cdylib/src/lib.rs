//! The library of the group signing, which the host loads.

// Arguments may hold private keys, and parsing leaves copies in freed memory.
outrigger_sdk::wipe_freed_memory!();

outrigger_sdk::export_plugin!(outrigger_signing::SigningPlugin);

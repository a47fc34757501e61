//! The library of the group wallet, which the host loads.

// Arguments may hold private keys, and parsing frees copies of them.
outrigger_sdk::wipe_freed_memory!();

outrigger_sdk::export_plugin!(outrigger_wallet::WalletPlugin);

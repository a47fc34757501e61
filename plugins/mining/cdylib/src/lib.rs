//! The library of the group mining, which the host loads.

outrigger_sdk::export_plugin!(outrigger_mining::MiningPlugin);

//! The program `outrigger`. Its code is in the library, for tests and fuzz targets. Only the program links the bundled
//! groups.

use std::process::ExitCode;

use outrigger_host::LinkedPlugin;

// Libraries leave keys and passphrases in buffers and parsed text that nothing else wipes.
outrigger_memory::wipe_freed_memory!();

/// The bundled groups, each with its library's file name.
static GROUPS: [LinkedPlugin; 8] = [
    LinkedPlugin::of::<outrigger_chain::ChainPlugin>("chain"),
    LinkedPlugin::of::<outrigger_history::HistoryPlugin>("history"),
    LinkedPlugin::of::<outrigger_import::ImportPlugin>("import"),
    LinkedPlugin::of::<outrigger_mining::MiningPlugin>("mining"),
    LinkedPlugin::of::<outrigger_psbt::PsbtPlugin>("psbt"),
    LinkedPlugin::of::<outrigger_signing::SigningPlugin>("signing"),
    LinkedPlugin::of::<outrigger_wallet::WalletPlugin>("wallet"),
    LinkedPlugin::of::<outrigger_webhooks::WebhooksPlugin>("webhooks"),
];

fn main() -> ExitCode {
    outrigger_host::main(&GROUPS)
}

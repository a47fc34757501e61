//! The program `outrigger`. Its code is in the library, for tests and fuzz targets. The program alone knows the bundled
//! groups by name.

use std::process::ExitCode;

use outrigger_host::LinkedPlugin;

// Keys and passphrases pass through buffers of libraries and parsed texts, which are not wiped otherwise.
outrigger_memory::wipe_freed_memory!();

/// The groups, by the names of their files.
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

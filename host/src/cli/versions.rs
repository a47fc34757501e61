//! `outrigger --version --formats`.

use outrigger_abi::{ABI_MAJOR, ABI_MINOR};

use super::wallet::EXPORT_VERSION;

/// The version of the program, and with `formats` that of each file format that it reads and writes.
pub fn versions(formats: bool) -> String {
    let mut lines = vec![format!("outrigger {}", env!("CARGO_PKG_VERSION"))];
    if formats {
        let rows = [
            ("wallet", outrigger_wallet_engine::LAYOUT.to_string(), "wallets/NAME/data.mdb, and each backup of it"),
            ("store", outrigger_services::STORE_LAYOUT.to_string(), "plugins/ID/store/data.mdb, and each backup of it"),
            ("chain", outrigger_embedded::LAYOUT.to_string(), "chain/data.mdb, of the embedded chain"),
            ("headers", outrigger_bitcoind::HEADERS_LAYOUT.to_string(), "the node's headers, made again if missing"),
            ("filters", outrigger_bitcoind::FILTERS_LAYOUT.to_string(), "the node's filters, made again if missing"),
            ("export", EXPORT_VERSION.to_string(), "files of `outrigger wallet export`"),
            (
                "plugins",
                format!("{ABI_MAJOR}.{ABI_MINOR}"),
                "the interface of plugins: the same major version, at most this minor one",
            ),
        ];
        lines.extend(rows.iter().map(|(name, version, what)| format!("{name} {version}  {what}")));
    }
    lines.join("\n")
}

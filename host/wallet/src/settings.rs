use std::path::PathBuf;

use bitcoin::BlockHash;
use outrigger_service::wallet::SpendSettings;
use serde::Deserialize;

/// The wallet settings of the host's configuration.
#[derive(Clone, Debug)]
pub struct Settings {
    pub keypool: u32,
    pub spending: SpendSettings,
    /// Whether wallets' transactions are offered to the node (`-walletbroadcast`).
    pub broadcast: bool,
    /// The least address space reserved per loaded wallet, in bytes. A wallet with a large file reserves four times its
    /// size. A full wallet has to be unloaded and loaded again.
    pub least_map: usize,
    pub max_readers: u32,
    /// The memory of Argon2id, in KiB.
    pub kdf_memory_kib: u32,
    pub kdf_passes: u32,
    /// A folder in which clients may not name files, besides the wallets' own.
    pub data_directory: Option<PathBuf>,
    /// The deepest rewind without consent, in blocks; `None` for any.
    pub max_rewind: Option<u32>,
    /// A block of the node's chain to which wallets may rewind beyond `max_rewind`.
    pub allow_rewind_to: Option<BlockHash>,
    /// The least depth of an announced reorganisation; `None` announces none.
    pub reorganisation_notice: Option<u32>,
    /// The number of blocks behind the tip from which a wallet lets the node search them for its scripts.
    pub search_from: u32,
    /// The plugin that signs for new wallets with an external signer.
    pub signer: Option<String>,
    /// Which plugins judge for which wallets.
    pub policies: Vec<PolicyRule>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            keypool: 1000,
            spending: SpendSettings::default(),
            broadcast: true,
            least_map: 4 << 30,
            max_readers: 512,
            kdf_memory_kib: 64 << 10,
            kdf_passes: 3,
            data_directory: None,
            max_rewind: None,
            allow_rewind_to: None,
            reorganisation_notice: None,
            search_from: 144,
            signer: None,
            policies: Vec::new(),
        }
    }
}

/// A setting `[[wallet.policies]]`.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyRule {
    /// The names of wallets. One that ends with `*` means all names that begin so.
    pub wallets: Vec<String>,
    /// The id of the plugin.
    pub plugin: String,
    /// Takes the policy away from these wallets.
    #[serde(default)]
    pub remove: bool,
}

impl PolicyRule {
    pub fn concerns(&self, wallet: &str) -> bool {
        let is_named =
            |name: &String| name.strip_suffix('*').map_or(name == wallet, |beginning| wallet.starts_with(beginning));
        self.wallets.iter().any(is_named)
    }
}

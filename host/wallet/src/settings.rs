use std::path::PathBuf;
use std::sync::Arc;

use bitcoin::BlockHash;
use outrigger_service::wallet::SpendSettings;
use serde::Deserialize;

/// Hears that the configuration has removed a policy from a wallet: the names of the wallet and of the policy.
pub type PolicyRemoved = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// The wallet settings of the host's configuration.
#[derive(Clone)]
pub struct Settings {
    pub keypool: u32,
    pub spending: SpendSettings,
    /// Whether the host submits wallet transactions to the node (`-walletbroadcast`).
    pub broadcast: bool,
    /// The minimum address space to reserve per loaded wallet, in bytes. A wallet reserves at least four times its file
    /// size. To give a full wallet more space, unload and reload it.
    pub least_map: usize,
    pub max_readers: u32,
    /// The memory of Argon2id, in KiB.
    pub kdf_memory_kib: u32,
    pub kdf_passes: u32,
    /// A folder, besides the wallets' own, in which file names from clients are refused.
    pub data_directory: Option<PathBuf>,
    /// The maximum depth, in blocks, of a rewind without `allow_rewind_to`; `None` for no limit.
    pub max_rewind: Option<u32>,
    /// A block of the node's chain to which wallets may rewind beyond `max_rewind`.
    pub allow_rewind_to: Option<BlockHash>,
    /// The minimum depth, in blocks, of a reorganisation that the host announces; `None` to announce none.
    pub reorganisation_notice: Option<u32>,
    /// A wallet at least this many blocks behind the tip lets the node search these blocks for its scripts.
    pub search_from: u32,
    /// The plugin that signs for new wallets with an external signer.
    pub signer: Option<String>,
    /// Which policy plugins judge the transactions of which wallets.
    pub policies: Vec<PolicyRule>,
    pub policy_removed: PolicyRemoved,
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
            policy_removed: Arc::new(|_, _| ()),
        }
    }
}

/// A setting `[[wallet.policies]]`.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyRule {
    /// The names of wallets. A name that ends with `*` matches all names with that prefix.
    pub wallets: Vec<String>,
    /// The id of the plugin.
    pub plugin: String,
    /// Removes the plugin's policy from these wallets instead of adding it.
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

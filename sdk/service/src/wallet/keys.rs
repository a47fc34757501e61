//! `wallet-keys/1`, the descriptors of a wallet and their extended keys.

use crate::service;
use crate::wire::{Secret, wire_struct};

wire_struct! {
    /// A descriptor of the wallet.
    #[derive(Clone, Debug)]
    pub struct DescriptorInfo {
        /// Its text with checksum: public, or with private keys where these were asked for.
        pub text: Secret,
        /// When it was born, in seconds.
        pub timestamp: u64,
        /// Whether new addresses come from it.
        pub active: bool,
        /// Whether these are for change; none for one that is not active.
        pub internal: Option<bool>,
        /// The indexes in use: first and last, for a ranged one.
        pub range: Option<(u32, u32)>,
        /// The next index to hand out.
        pub next_index: u32,
    }
}

wire_struct! {
    /// An extended key (BIP 32) of the wallet's descriptors.
    #[derive(Clone, Debug)]
    pub struct HdKey {
        /// It, without the private key.
        pub xpub: String,
        /// Whether the private key is held.
        pub has_private: bool,
        /// It with the private key, where that was asked for and is held.
        pub xprv: Option<Secret>,
        /// The descriptors that are written with it, as listdescriptors shows them, and whether new addresses come from each.
        pub descriptors: Vec<(String, bool)>,
    }
}

service! {
    /// Gives private keys out. A plugin with this service can spend every coin of the wallet elsewhere. Only the group wallet needs it.
    pub trait WalletKeys as WalletKeysClient = "wallet-keys/1" {
        /// The descriptors as [`super::WalletRead::descriptors`] gives them, with private keys where these are held, as they were
        /// imported. `WalletLocked`.
        fn private_descriptors() -> Vec<DescriptorInfo>;
        /// What was imported as [`super::WalletRead::imported_descriptors`] gives it, with private keys where these are held.
        /// `WalletLocked`.
        fn private_imported_descriptors() -> Vec<DescriptorInfo>;
        /// The extended keys as [`super::WalletRead::hd_keys`] gives them, with private keys where these are held. `WalletLocked`.
        fn private_hd_keys() -> Vec<HdKey>;
        /// The private key of a public key of this HASH160, as WIF: of a descriptor that is written with it, or derives a P2PKH,
        /// P2WPKH or P2SH-P2WPKH script of it, or imported. None where the wallet does not hold it. `WalletLocked`.
        fn private_key(public_key_hash: [u8; 20]) -> Option<Secret>;
    }
}

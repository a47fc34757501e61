//! `wallet-keys/1`, the descriptors of a wallet and their extended keys.

use crate::service;
use crate::wire::{Secret, wire_struct};

wire_struct! {
    /// A descriptor of the wallet.
    #[derive(Clone, Debug)]
    pub struct DescriptorInfo {
        /// Its text with checksum: public, or with private keys if requested.
        pub text: Secret,
        /// Its birth time, in Unix seconds.
        pub timestamp: u64,
        /// Whether new addresses come from it.
        pub active: bool,
        /// Whether those addresses are for change; none for an inactive descriptor.
        pub internal: Option<bool>,
        /// The first and the last index in use, for a ranged descriptor.
        pub range: Option<(u32, u32)>,
        /// The next index to hand out.
        pub next_index: u32,
    }
}

wire_struct! {
    /// An extended key (BIP 32) of the wallet's descriptors.
    #[derive(Clone, Debug)]
    pub struct HdKey {
        /// The key without its private key.
        pub xpub: String,
        /// Whether the wallet holds the private key.
        pub has_private: bool,
        /// The key with its private key, if requested and held.
        pub xprv: Option<Secret>,
        /// The descriptors that contain it, as listdescriptors shows them, each with whether new addresses come from it.
        pub descriptors: Vec<(String, bool)>,
    }
}

service! {
    /// Returns private keys. A plugin with this service can spend every coin of the wallet elsewhere. Only the group wallet needs it.
    pub trait WalletKeys = "wallet-keys/1" {
        /// The descriptors as [`super::WalletRead::descriptors`] returns them, as imported, with the private keys that the wallet holds.
        /// `WalletLocked`.
        fn private_descriptors() -> Vec<DescriptorInfo>;
        /// The imports as [`super::WalletRead::imported_descriptors`] returns them, with the private keys that the wallet holds.
        /// `WalletLocked`.
        fn private_imported_descriptors() -> Vec<DescriptorInfo>;
        /// The extended keys as [`super::WalletRead::hd_keys`] returns them, with the private keys that the wallet holds. `WalletLocked`.
        fn private_hd_keys() -> Vec<HdKey>;
        /// The private key for the public key with this HASH160, as WIF: a key that was imported, that a descriptor contains, or whose
        /// P2PKH, P2WPKH or P2SH-P2WPKH script a descriptor derives. None if the wallet does not hold it. `WalletLocked`.
        fn private_key(public_key_hash: [u8; 20]) -> Option<Secret>;
    }
}

//! The descriptors of a wallet and their extended keys.

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

//! The curve, prepared once.

use std::sync::LazyLock;

use secp256k1::{All, Secp256k1};

/// The one context: making it costs as much as a signature.
pub(super) static SECP: LazyLock<Secp256k1<All>> = LazyLock::new(Secp256k1::new);

//! The secp256k1 context.

use std::sync::LazyLock;

use secp256k1::{All, Secp256k1};

/// The signing context of the process. Creating one costs as much as a signature.
pub(super) static SECP: LazyLock<Secp256k1<All>> = LazyLock::new(Secp256k1::new);

//! A wallet makes its payments one after the other: each keeps its turn from its choice of coins until the wallet has
//! stored that they are spent or locked. Concurrent payments would choose the same coins, and the later one would fail. A
//! payment whose signer hangs loses its turn; if it then spends the same coin as another, the payment that is stored later is
//! refused.

use std::sync::Arc;

use outrigger_service::{ErrorKind, Result as ServiceResult};

use super::live::Wallet;

/// Held by a payment, released on drop.
pub struct Turn {
    wallet: Arc<Wallet>,
    number: u64,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.wallet.turns.end(self.number);
    }
}

impl Wallet {
    /// Waits for the payments before this one. Polls `wanted`, and fails with `Stale` once it returns false.
    pub fn begin_payment(self: &Arc<Self>, wanted: &dyn Fn() -> bool) -> ServiceResult<Turn> {
        match self.turns.take(wanted) {
            Some(number) => Ok(Turn { wallet: self.clone(), number }),
            None => Err(ErrorKind::Stale.into()),
        }
    }
}

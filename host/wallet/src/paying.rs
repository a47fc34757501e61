//! Payments of a wallet are made one after the other: each from before it looks at the coins until what spends or locks them is
//! stored. Two at once would else choose the same coins, and the later one fail. One whose signer hangs is passed over; should two
//! then spend the same coin, the later one is refused.

use std::sync::Arc;

use outrigger_service::{ErrorKind, Result as ServiceResult};

use super::live::Wallet;

/// A turn of a wallet, until it is dropped.
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
    /// Waits until no other payment of the wallet is made, and keeps others waiting until what is given is dropped.
    ///
    /// # Errors
    /// `Stale` once it is not `wanted` any more, which is asked from time to time.
    pub fn begin_payment(self: &Arc<Self>, wanted: &dyn Fn() -> bool) -> ServiceResult<Turn> {
        match self.turns.take(wanted) {
            Some(number) => Ok(Turn { wallet: self.clone(), number }),
            None => Err(ErrorKind::Stale.into()),
        }
    }
}

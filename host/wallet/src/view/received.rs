//! Sums of payments by script. Reading all rows takes most of the time, so the payments are cached with their
//! snapshot's number.

use std::sync::Arc;

use outrigger_service::Result as ServiceResult;
use outrigger_service::wallet::{Received, ReceivedQuery};
use outrigger_service::wire::Encoded;

use super::WalletView;
use crate::credits::Credits;
use crate::error::Result;

/// The most bytes of cached payments: about 150,000 transactions. Payments of a larger wallet are read each time.
const MAX_KEPT: usize = 16 << 20;

impl WalletView {
    pub fn received(&self, query: &ReceivedQuery) -> ServiceResult<Encoded<Vec<Received>>> {
        Ok(self.read_received(query)?)
    }

    fn read_received(&self, query: &ReceivedQuery) -> Result<Encoded<Vec<Received>>> {
        Ok(Encoded::new(&self.credits()?.sums(query, self.synced.height, self.all_labels()?)))
    }

    fn credits(&self) -> Result<Arc<Credits>> {
        let number = self.txn.id();
        let kept = || self.wallet.credits.lock();
        if let Some((of, credits)) = &*kept()
            && *of == number
        {
            return Ok(credits.clone());
        }
        let credits = Arc::new(Credits::read(self.t(), &self.txn)?);
        *kept() = (credits.size() <= MAX_KEPT).then(|| (number, credits.clone()));
        Ok(credits)
    }
}

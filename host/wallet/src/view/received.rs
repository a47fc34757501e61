//! Sums up what scripts of the wallet received. Rows hold much more than that, and reading them takes most of the time: what they
//! pay is kept with the number of its snapshot, and read anew once anything was written since.

use std::sync::Arc;

use outrigger_service::Result as ServiceResult;
use outrigger_service::wallet::{Received, ReceivedQuery};
use outrigger_service::wire::Encoded;

use super::WalletView;
use crate::credits::Credits;
use crate::error::Result;

/// The most bytes of what a wallet's transactions pay that are kept: some 150,000 transactions. Those of a larger wallet are read
/// each time.
const MAX_KEPT: usize = 16 << 20;

impl WalletView {
    /// What scripts of the wallet received.
    ///
    /// # Errors
    /// `Storage`.
    pub fn received(&self, query: &ReceivedQuery) -> ServiceResult<Encoded<Vec<Received>>> {
        Ok(self.read_received(query)?)
    }

    fn read_received(&self, query: &ReceivedQuery) -> Result<Encoded<Vec<Received>>> {
        Ok(Encoded::new(&self.credits()?.sums(query, self.synced.height, self.all_labels()?)))
    }

    /// What the transactions of the snapshot pay to the wallet.
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

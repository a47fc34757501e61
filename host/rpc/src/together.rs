//! Calls of a batch that are cheaper to answer together.

use std::future::Future;
use std::pin::Pin;

use super::dispatch::{Call, Failure};
use super::result::ResultText;

/// The answers to several calls, one for each and in their order.
pub type Answers = Pin<Box<dyn Future<Output = Vec<Result<ResultText, Failure>>> + Send>>;

/// Answers calls that follow one another in a batch together. They do not pass through the layers of the service: what these do for
/// a call, the one who answers does for all.
pub trait Together: Send + Sync {
    /// Whether calls of this method can be answered together with their neighbours.
    fn takes(&self, method: &str) -> bool;

    /// Answers these calls, of which each [`Self::takes`] the method: one answer for each.
    fn answer(&self, calls: Vec<Call>) -> Answers;
}

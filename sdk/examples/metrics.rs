//! Metrics of a plugin: the number of payments by wallet, and their amounts.

use outrigger_sdk::options::NoOptions;
use outrigger_sdk::serde_json::json;
use outrigger_sdk::service::metrics::Measure;
use outrigger_sdk::testing::StubHost;
use outrigger_sdk::{Host, Plugin, RpcError, methods, plugin};

/// Upper bounds of the histogram's buckets, in satoshi.
const BOUNDS: [u64; 3] = [100_000, 10_000_000, 1_000_000_000];

struct Payments {
    host: Host,
}

#[plugin(id = "payments", summary = "Measures payments", services = ["metrics/1"])]
impl Plugin for Payments {
    fn new(host: Host, _: NoOptions) -> Result<Self, String> {
        Ok(Self { host })
    }
}

#[methods(category = "Test")]
impl Payments {
    /// Measures a payment.
    ///
    /// * `wallet` - The wallet.
    /// * `satoshi` - The amount.
    #[method]
    fn notepayment(&self, wallet: String, satoshi: u64) -> Result<(), RpcError> {
        let size = Measure::Observed { value: satoshi, bounds: BOUNDS.to_vec() };
        self.host.measure("payments", "Payments", &[("wallet", &wallet)], Measure::Count { by: 1 });
        self.host.measure("payment_satoshi", "Amounts of payments", &[], size);
        Ok(())
    }
}

fn main() {
    let host = StubHost::new();
    let plugin = host.start::<Payments>(json!({}));
    assert_eq!(plugin.call("notepayment", json!(["hot", 50_000])), Ok(json!(null)));
    let samples = host.metrics.take();
    assert_eq!(samples.iter().map(|sample| &*sample.name).collect::<Vec<_>>(), ["payments", "payment_satoshi"]);
    assert_eq!(samples[0].labels, [("wallet".to_owned(), "hot".to_owned())]);
}

//! Keeping state: a plugin that counts payments of each customer and knows the latest ones, also after a restart.
#![allow(clippy::unwrap_used, reason = "a broken expectation fails the example")]

use outrigger_sdk::options::NoOptions;
use outrigger_sdk::serde_json::{Value, json};
use outrigger_sdk::service::Scope;
use outrigger_sdk::service::store::KeyRange;
use outrigger_sdk::store::{Batch, open_store};
use outrigger_sdk::testing::StubHost;
use outrigger_sdk::wire::Blob;
use outrigger_sdk::{Call, Host, Plugin, RpcError, methods, plugin};

/// The version of the store that this code reads and writes.
const VERSION: u32 = 2;

/// The key of the count of all payments.
const COUNT: &[u8] = b"count";

struct Payments {
    host: Host,
    /// Locked from the read of the count until the commit.
    counting: std::sync::Mutex<()>,
}

/// The key of a payment. Numbers are big-endian, so that keys are in the order of the numbers.
fn payment(number: u64) -> Vec<u8> {
    [b"payment/", &number.to_be_bytes()[..]].concat()
}

#[plugin(id = "payments", summary = "Counts payments", services = ["store/1"])]
impl Plugin for Payments {
    fn new(host: Host, _: NoOptions) -> Result<Self, String> {
        Ok(Self { host, counting: std::sync::Mutex::default() })
    }

    fn start(&self) -> Result<(), String> {
        open_store(&self.host, Scope::NONE, VERSION, |older, batch| {
            match older {
                // A new store.
                0 => batch.put(COUNT, &0_u64.to_be_bytes()),
                // Version 1 had the payments under another name.
                _ => batch.delete_range(KeyRange::prefix(b"paid/")),
            }
            Ok(())
        })
    }
}

#[methods(category = "Test")]
impl Payments {
    /// Stores a payment.
    ///
    /// * `customer` - Who paid.
    #[method]
    fn addpayment(&self, call: &Call<'_>, customer: String) -> Result<u64, RpcError> {
        let _counting = self.counting.lock().map_err(|_| RpcError::internal("a payment was not counted"))?;
        let found = call.host.store.get(call.scope, vec![Blob(COUNT.to_vec())])?;
        let count = found.first().and_then(Option::as_ref).and_then(|count| count.first_chunk());
        let number = count.map_or(0, |count| u64::from_be_bytes(*count)) + 1;
        // The commit stores both rows or none. The client gets the number only once both are on disk.
        let mut batch = Batch::default();
        batch.put(COUNT, &number.to_be_bytes());
        batch.put(&payment(number), customer.as_bytes());
        batch.commit_durably(call.host, call.scope)?;
        Ok(number)
    }

    /// Gives the customers of the latest payments, the newest first.
    ///
    /// * `limit` - How many.
    #[method]
    fn latestpayments(call: &Call<'_>, limit: u32) -> Result<Value, RpcError> {
        let rows = call.host.store.range(call.scope, KeyRange::prefix(b"payment/"), limit, true)?;
        let rows = rows.view()?;
        let customers: Vec<_> = rows.rows.iter().map(|row| String::from_utf8_lossy(row.value)).collect();
        Ok(json!({"customers": customers, "more": rows.more}))
    }
}

fn main() {
    let test = StubHost::new();
    let plugin = test.start::<Payments>(json!({}));
    for (number, customer) in ["alice", "bob", "carol"].into_iter().enumerate() {
        assert_eq!(plugin.call("addpayment", json!([customer])), Ok(json!(number + 1)));
    }
    plugin.stop();
    let again = test.start::<Payments>(json!({}));
    assert_eq!(again.call("latestpayments", json!([2])), Ok(json!({"customers": ["carol", "bob"], "more": true})));
    assert_eq!(again.call("addpayment", json!(["dave"])), Ok(json!(4)));
}

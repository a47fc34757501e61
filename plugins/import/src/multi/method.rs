//! The method importmulti.

use outrigger_sdk::params::{Type, check_types, flag};
use outrigger_sdk::service::{ErrorKind, ServiceError};
use outrigger_sdk::{Call, Reply, methods};
use serde_json::Value;

use super::Checks;
use crate::request::{self, stored_time};
use crate::rescan::{KEY, Reservation};
use crate::{ImportPlugin, imported, store};

#[methods(category = "Wallet", long_running, private_keys, unchecked)]
impl ImportPlugin {
    /// Imports addresses, scripts, public and private keys, then rescans the chain from the earliest of their
    /// creation times. The wallet watches an import that lacks a private key for spending. The call returns after the
    /// rescan; getwalletinfo shows the progress.
    ///
    /// * `requests` - The imports, each an object with: desc or scriptPubKey (hexadecimal script, or {"address":
    ///   "..."}), timestamp (creation time in seconds, or "now"), redeemscript, witnessscript, pubkeys, keys, range,
    ///   internal, watchonly, label, keypool.
    /// * `options` (default: {}) - Options, also accepted as named arguments:
    ///   * `rescan` (boolean; default: true) - Whether to rescan the chain afterwards.
    ///
    /// # Result
    /// [{"success": true|false, "error": {"code": n, "message": "..."}, "warnings": ["..."]}, ...]    (json array)
    /// One outcome per request; error and warnings are optional.
    ///
    /// # Example
    /// '[{"scriptPubKey": {"address": "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080"}, "timestamp": 1455191480, "watchonly": true}]' '{"rescan": false}'
    #[method]
    fn importmulti(
        &self,
        call: &Call<'_>,
        #[arg(kind = "array")] requests: &Value,
        #[arg(kind = "object")] options: Option<&Value>,
        reply: Reply,
    ) {
        self.answer(reply, || {
            let wallet = call.wallet()?;
            // Omitted options count as empty; null has a wrong type.
            let given = [requests, options.unwrap_or(&Value::Null)].into_iter().take(call.given());
            check_types(given, &[Type::Array, Type::Object])?;
            let rescan = options.and_then(|options| options.get("rescan")).map_or(Ok(true), flag)?;
            let reservation = if rescan { Some(Reservation::new(call)?) } else { None };
            wallet.check_unlocked()?;
            let requests = requests.as_array().map(Vec::as_slice).unwrap_or_default();
            let timestamps = requests
                .iter()
                .map(|request| request::timestamp(request, wallet.synced))
                .collect::<Result<Vec<_>, _>>()?;
            let mut checks = Checks::new(call.network()?, &wallet, &self.stopping);
            let times = timestamps.iter().map(|timestamp| stored_time(*timestamp));
            let checked = requests.iter().zip(times).map(|(request, time)| checks.request(request, time)).collect();
            if checks.aborted {
                return Err(ServiceError::from(ErrorKind::ShuttingDown).into());
            }
            let outcomes = store(call, checked)?;
            Ok(imported(&wallet, reservation, outcomes, timestamps, KEY))
        });
    }
}

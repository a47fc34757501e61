//! importdescriptors: checks requests, and turns them into imports.

use std::collections::HashSet;

use bitcoin::Network;
use outrigger_kit::descriptor::Descriptor;
use outrigger_kit::{descriptor_syntax, invalid_label};
use outrigger_sdk::params::descriptor_range;
use outrigger_sdk::service::wallet::{DescriptorImport, Import, WalletInfo};
use outrigger_sdk::wire::Secret;
use outrigger_sdk::{Call, Reply, RpcError, RpcErrorCode, methods, typed};
use serde_json::Value;

use crate::locktimes;
use crate::outcome::{
    Accepted, Checked, Item, MISSING_PRIVATE_KEYS, Outcome, no_private_keys, not_expandable, private_keys_disabled,
};
use crate::request::{self, Fields, malformed, stored_time};
use crate::rescan::{DESCRIPTOR, Reservation};
use crate::{ImportPlugin, imported, store};

/// bitcoind's default keypool, for a wallet that does not state its own.
const DEFAULT_KEYPOOL: u32 = 1000;

/// The maximum number of keys that one request may derive: the twenty keys of the largest multisig script, at each index of the
/// largest range. Each key costs a curve multiplication; the wallet derives them in batches.
const MAX_DERIVED_KEYS: u64 = 20_000_000;

/// The warning of a ranged descriptor without a range.
const RANGE_NOT_GIVEN: &str = "Range not given, using default keypool range";

#[methods(category = "Wallet", long_running, private_keys)]
impl ImportPlugin {
    /// Imports descriptors, then rescans the chain from the earliest of their creation times. The call returns after
    /// the rescan; getwalletinfo shows the progress.
    ///
    /// * `requests` - The imports, each an object with: desc (with checksum), timestamp (creation time in seconds, or
    ///   "now"), active, range, next_index, internal, label.
    ///
    /// # Result
    /// [{"success": true|false, "error": {"code": n, "message": "..."}, "warnings": ["..."]}, ...]    (json array)
    /// One outcome per request; error and warnings are optional.
    ///
    /// # Example
    /// '[{"desc": "wpkh(tprv.../84h/1h/0h/0/*)#checksum", "timestamp": "now", "range": [0, 100], "active": true}]'
    #[method]
    fn importdescriptors(&self, call: &Call<'_>, requests: &[Value], reply: Reply) {
        self.answer(reply, || {
            let wallet = call.wallet()?;
            let reservation = Reservation::new(call)?;
            wallet.check_unlocked()?;
            let mut checks = Checks { call, network: call.network()?, wallet: &wallet, accepted: HashSet::new() };
            let (mut timestamps, mut checked) = (Vec::new(), Vec::new());
            let all_checked: Result<(), RpcError> = requests.iter().try_for_each(|request| {
                let timestamp = request::timestamp(request, wallet.synced)?;
                checked.push(checks.request(request, stored_time(timestamp))?);
                timestamps.push(timestamp);
                Ok(())
            });
            let outcomes = store(call, checked)?;
            all_checked?;
            Ok(imported(&wallet, Some(reservation), outcomes, timestamps, DESCRIPTOR))
        });
    }
}

/// Checks the requests of a call.
struct Checks<'h> {
    call: &'h Call<'h>,
    network: Network,
    wallet: &'h WalletInfo,
    /// The extended public keys of the accepted requests so far that came with their private keys.
    accepted: HashSet<String>,
}

/// An error in a request, by its effect.
enum Refusal {
    /// A field of a wrong type (except `range`), or a number that is not a 64-bit integer, fails the whole call.
    Call(RpcError),
    /// Any other error fails only the request.
    Request(RpcError),
}

impl From<RpcError> for Refusal {
    fn from(error: RpcError) -> Self {
        Self::Request(error)
    }
}

fn refuse<T>(message: &str) -> Result<T, Refusal> {
    Err(Refusal::Request(RpcError::invalid_parameter(message)))
}

/// The first and the last index of a ranged descriptor, and the next one.
type Indexes = ((u32, u32), u32);

impl Checks<'_> {
    /// Checks a request. An error fails the whole call.
    fn request<'a>(&mut self, request: &'a Value, timestamp: u64) -> Result<Checked<'a>, RpcError> {
        let mut warnings = Vec::new();
        match self.import(request, timestamp, &mut warnings) {
            Ok((descriptor, text)) => {
                let names_range = self.call.rules.range_refusal_names_descriptor;
                let item = Item::Descriptor { text, names_range };
                let accepted = Accepted { warnings, item, ranged: descriptor.range.is_some() };
                Ok(Ok((Import::Descriptor { descriptor }, accepted)))
            }
            Err(Refusal::Request(error)) => Ok(Err(Outcome::failed(error, warnings))),
            Err(Refusal::Call(error)) => Err(error),
        }
    }

    /// The import, and the text of its descriptor.
    fn import<'a>(
        &mut self,
        request: &'a Value,
        timestamp: u64,
        warnings: &mut Vec<String>,
    ) -> Result<(DescriptorImport, &'a str), Refusal> {
        let fields = Fields::of(request)?;
        let Some(text) = fields.get("desc") else { return refuse("Descriptor not found.") };
        let given = typed::text(text).map_err(Refusal::Call)?;
        let active = fields.get("active").map_or(Ok(false), typed::flag).map_err(Refusal::Call)?;
        let label = fields.get("label").filter(|label| !label.is_null());
        let label = label.map_or(Ok(""), typed::text).map_err(Refusal::Call)?;
        if label == "*" {
            return Err(invalid_label().into());
        }
        // A null label counts here, too.
        let has_label = fields.has("label");
        let descriptors = request::descriptors(given, self.network, descriptor_syntax(&self.call.rules))?;
        let first = descriptors.first().ok_or_else(malformed)?;
        if descriptors.len() > 1 && fields.has("internal") {
            return Err(internal_of_multipath().into());
        }
        let internal = fields.get("internal").map(typed::flag).transpose().map_err(Refusal::Call)?;
        let indexes = self.indexes(fields, &descriptors, warnings)?;
        if active && indexes.is_none() {
            return refuse("Active descriptors must be ranged");
        }
        if descriptors.len() > 1 && has_label {
            return Err(label_of_multipath().into());
        }
        if indexes.is_some() && has_label {
            return refuse("Ranged descriptors should not have a label");
        }
        if internal == Some(true) && has_label {
            return Err(label_of_internal().into());
        }
        if active && first.is_combo() {
            return Err(RpcError::wallet("Combo descriptors cannot be set to active").into());
        }
        if self.call.rules.warns_of_locktimes {
            descriptors.iter().for_each(|descriptor| locktimes::warn(&descriptor.to_public_string(), warnings));
        }
        self.check_keys(&descriptors, warnings)?;
        // The wallet gets the multipath descriptor unsplit, so that it stores all of its paths or none.
        let text = match descriptors.as_slice() {
            [one] => one.to_private_string().unwrap_or_else(|| Secret::new(one.to_public_string())),
            _ => Secret::new(given.to_owned()),
        };
        let descriptor = DescriptorImport {
            text,
            range: indexes.map(|(range, _)| range),
            next_index: indexes.map(|(_, next)| next),
            active,
            internal,
            label: (!label.is_empty()).then(|| label.to_owned()),
            timestamp,
        };
        let private = descriptors.iter().filter(|descriptor| descriptor.has_private_keys());
        self.accepted.extend(private.flat_map(extended_keys));
        Ok((descriptor, given))
    }

    /// The indexes to import; `None` for a descriptor without a wildcard.
    fn indexes(
        &self,
        fields: Fields<'_>,
        descriptors: &[Descriptor],
        warnings: &mut Vec<String>,
    ) -> Result<Option<Indexes>, Refusal> {
        let ranged = descriptors.iter().any(Descriptor::is_ranged);
        let (begin, end) = match (ranged, fields.get("range")) {
            (false, Some(_)) => return Err(range_of_unranged().into()),
            (false, None) => return Ok(None),
            (true, Some(range)) => descriptor_range(range).map_err(|error| match error.code {
                RpcErrorCode::MISC => Refusal::Call(error),
                _ => Refusal::Request(error),
            })?,
            (true, None) => {
                warnings.push(RANGE_NOT_GIVEN.to_owned());
                // The range is the number of scripts that the wallet derives ahead; 0 if unknown.
                (0, if self.wallet.keypool == 0 { DEFAULT_KEYPOOL } else { self.wallet.keypool } - 1)
            }
        };
        let keys: usize = descriptors.iter().map(Descriptor::key_count).sum();
        if (u64::from(end - begin) + 1) * keys as u64 > MAX_DERIVED_KEYS {
            return Err(range_too_large().into());
        }
        let next = match fields.get("next_index") {
            None => begin,
            Some(value) => {
                let next: i64 = typed::integer(value).map_err(Refusal::Call)?;
                match u32::try_from(next) {
                    Ok(next) if (begin..=end).contains(&next) => next,
                    _ => return refuse("next_index is out of range"),
                }
            }
        };
        Ok(Some(((begin, end), next)))
    }

    /// Checks the rules about private keys, and that the descriptors can be expanded, as bitcoind does before it looks at the wallet's
    /// descriptors. The wallet checks them again when it stores.
    fn check_keys(&self, descriptors: &[Descriptor], warnings: &mut Vec<String>) -> Result<(), RpcError> {
        let private_keys_enabled = self.wallet.private_keys_enabled;
        if !private_keys_enabled && descriptors.iter().any(Descriptor::has_private_keys) {
            return Err(private_keys_disabled());
        }
        for descriptor in descriptors {
            descriptor.expand(0).map_err(|_| not_expandable())?;
            if !private_keys_enabled {
                if descriptor.is_unused() {
                    return Err(RpcError::wallet("Cannot import unused() to wallet without private keys enabled"));
                }
                continue;
            }
            if !descriptor.has_private_keys() {
                return Err(no_private_keys());
            }
            if descriptor.is_unused() {
                self.check_unused(descriptor)?;
            }
        }
        if private_keys_enabled && !descriptors.iter().all(Descriptor::has_all_private_keys) {
            warnings.push(MISSING_PRIVATE_KEYS.to_owned());
        }
        Ok(())
    }

    /// Refuses `unused(KEY)` if the wallet, or an earlier request of the call, has the private key.
    fn check_unused(&self, descriptor: &Descriptor) -> Result<(), RpcError> {
        let held = self.call.host.wallet.hd_keys(self.call.scope)?;
        let is_held =
            |xpub: String| self.accepted.contains(&xpub) || held.iter().any(|key| key.has_private && key.xpub == xpub);
        if extended_keys(descriptor).any(is_held) {
            return Err(RpcError::wallet(
                "Cannot import an unused() descriptor when its private key is already in the wallet",
            ));
        }
        Ok(())
    }
}

fn extended_keys(descriptor: &Descriptor) -> impl Iterator<Item = String> {
    descriptor.extended_keys().into_iter().map(|(xpub, _)| xpub.to_string())
}

pub fn internal_of_multipath() -> RpcError {
    RpcError::not_found("Cannot have multipath descriptor while also specifying 'internal'")
}

pub fn label_of_multipath() -> RpcError {
    RpcError::invalid_parameter("Multipath descriptors should not have a label")
}

pub fn label_of_internal() -> RpcError {
    RpcError::invalid_parameter("Internal addresses should not have a label")
}

pub fn range_of_unranged() -> RpcError {
    RpcError::invalid_parameter("Range should not be specified for an un-ranged descriptor")
}

pub fn range_too_large() -> RpcError {
    RpcError::invalid_parameter("Range is too large")
}

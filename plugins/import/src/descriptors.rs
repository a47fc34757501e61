//! importdescriptors: the checks of one request, and what it has the wallet store.

use bitcoin::Network;
use outrigger_sdk::descriptor::{Checksum, Descriptor, without_private_keys};
use outrigger_sdk::params::descriptor_range;
use outrigger_sdk::service::wallet::{DescriptorImport, Import};
use outrigger_sdk::wire::Secret;
use outrigger_sdk::{RpcErrorCode, typed};
use serde_json::Value;

use crate::error::ImportError;
use crate::outcome::{Checked, MISSING_PRIVATE_KEYS};
use crate::request::Fields;

/// The keypool of a wallet that does not say how large it is: bitcoind's.
const DEFAULT_KEYPOOL: u32 = 1000;

/// The most keys that one request may derive: those of twenty keys, as many as a multisig script has, at as many indexes as a
/// range may have. Each costs a curve multiplication; the wallet derives them in pieces.
const MAX_DERIVED_KEYS: u64 = 20_000_000;

/// The warning of a ranged descriptor without a range.
const RANGE_NOT_GIVEN: &str = "Range not given, using default keypool range";

/// Checks the requests of a call.
pub struct Checks {
    /// The network of the chain.
    pub network: Network,
    /// Whether the wallet may hold private keys.
    pub private_keys_enabled: bool,
    /// How many scripts the wallet keeps ahead: the range of a request without one. 0 where it does not say.
    pub keypool: u32,
}

/// The fields that are read before the descriptor, of the right types.
struct Given<'a> {
    text: &'a str,
    active: bool,
    label: &'a str,
    /// Whether there is a label, be it null.
    has_label: bool,
}

/// The indexes of a ranged descriptor.
#[derive(Clone, Copy)]
struct Indexes {
    begin: u32,
    end: u32,
    next: u32,
}

impl Checks {
    /// Checks a request.
    ///
    /// # Errors
    /// [`ImportError::WrongType`], which ends the call. Other errors are the request's own.
    pub fn request(&self, request: &Value, timestamp: u64) -> Result<Checked, ImportError> {
        let mut warnings = Vec::new();
        Ok(match self.import(request, timestamp, &mut warnings) {
            Ok((import, given)) => Checked {
                ranged: matches!(&import, Import::Descriptor { descriptor } if descriptor.range.is_some()),
                import: Ok(Some(import)),
                warnings,
                not_stored: ImportError::DescriptorNotStored(without_private_keys(given.text)),
                active: given.active,
            },
            Err(error @ ImportError::WrongType(_)) => return Err(error),
            Err(error) => Checked::refused(error, warnings),
        })
    }

    fn import<'a>(
        &self,
        request: &'a Value,
        timestamp: u64,
        warnings: &mut Vec<String>,
    ) -> Result<(Import, Given<'a>), ImportError> {
        let fields = Fields(request.as_object().ok_or(ImportError::Malformed)?);
        let given = Given::read(fields)?;
        let descriptors = Descriptor::parse(given.text, self.network, Checksum::Required)?;
        let first = descriptors.first().ok_or(ImportError::Malformed)?;
        if descriptors.len() > 1 && fields.has("internal") {
            return Err(ImportError::MultipathInternal);
        }
        let internal = fields.get("internal").map(typed::flag).transpose().map_err(ImportError::WrongType)?;
        let indexes = self.indexes(fields, &descriptors, warnings)?;
        if given.active && indexes.is_none() {
            return Err(ImportError::ActiveUnranged);
        }
        if descriptors.len() > 1 && given.has_label {
            return Err(ImportError::MultipathLabel);
        }
        if indexes.is_some() && given.has_label {
            return Err(ImportError::RangedLabel);
        }
        if internal == Some(true) && given.has_label {
            return Err(ImportError::InternalLabel);
        }
        if given.active && first.is_combo() {
            return Err(ImportError::ActiveCombo);
        }
        self.check_keys(&descriptors, warnings)?;
        // The paths of one text stand or fall together, so that it goes to the wallet whole.
        let text = match descriptors.as_slice() {
            [one] => one.to_private_string().unwrap_or_else(|| Secret::new(one.to_public_string())),
            _ => Secret::new(given.text.to_owned()),
        };
        let descriptor = DescriptorImport {
            text,
            range: indexes.map(|indexes| (indexes.begin, indexes.end)),
            next_index: indexes.map(|indexes| indexes.next),
            active: given.active,
            internal,
            label: (!given.label.is_empty()).then(|| given.label.to_owned()),
            timestamp,
        };
        Ok((Import::Descriptor { descriptor }, given))
    }

    /// The indexes to import; none for a descriptor without a wildcard.
    fn indexes(
        &self,
        fields: Fields<'_>,
        descriptors: &[Descriptor],
        warnings: &mut Vec<String>,
    ) -> Result<Option<Indexes>, ImportError> {
        let ranged = descriptors.iter().any(Descriptor::is_ranged);
        let (begin, end) = match (ranged, fields.get("range")) {
            (false, Some(_)) => return Err(ImportError::RangeOfUnranged),
            (false, None) => return Ok(None),
            (true, Some(range)) => descriptor_range(range).map_err(|error| match error.code {
                RpcErrorCode::MISC => ImportError::WrongType(error),
                _ => ImportError::Argument(error),
            })?,
            (true, None) => {
                warnings.push(RANGE_NOT_GIVEN.to_owned());
                (0, if self.keypool == 0 { DEFAULT_KEYPOOL } else { self.keypool } - 1)
            }
        };
        let keys: usize = descriptors.iter().map(Descriptor::key_count).sum();
        if (u64::from(end - begin) + 1) * keys as u64 > MAX_DERIVED_KEYS {
            return Err(ImportError::RangeTooLarge);
        }
        let next = match fields.get("next_index") {
            None => begin,
            Some(value) => {
                let next: i64 = typed::integer(value).map_err(ImportError::WrongType)?;
                let next = u32::try_from(next).map_err(|_| ImportError::NextIndex)?;
                if !(begin..=end).contains(&next) {
                    return Err(ImportError::NextIndex);
                }
                next
            }
        };
        Ok(Some(Indexes { begin, end, next }))
    }

    /// The rules about private keys, and that there is something to derive at all.
    fn check_keys(&self, descriptors: &[Descriptor], warnings: &mut Vec<String>) -> Result<(), ImportError> {
        if !self.private_keys_enabled && descriptors.iter().any(Descriptor::has_private_keys) {
            return Err(ImportError::PrivateKeysDisabled);
        }
        for descriptor in descriptors {
            descriptor.expand(0).map_err(|_| ImportError::NotExpandable)?;
            if !self.private_keys_enabled {
                continue;
            }
            if !descriptor.has_private_keys() {
                return Err(ImportError::NoPrivateKeys);
            }
            if !descriptor.has_all_private_keys() && !warnings.iter().any(|warning| warning == MISSING_PRIVATE_KEYS) {
                warnings.push(MISSING_PRIVATE_KEYS.to_owned());
            }
        }
        Ok(())
    }
}

impl<'a> Given<'a> {
    fn read(fields: Fields<'a>) -> Result<Self, ImportError> {
        let text = typed::text(fields.get("desc").ok_or(ImportError::NoDescriptor)?).map_err(ImportError::WrongType)?;
        let active = fields.get("active").map_or(Ok(false), typed::flag).map_err(ImportError::WrongType)?;
        let label = fields.get("label").filter(|label| !label.is_null());
        let label = label.map_or(Ok(""), typed::text).map_err(ImportError::WrongType)?;
        if label == "*" {
            return Err(ImportError::Label);
        }
        Ok(Self { text, active, label, has_label: fields.has("label") })
    }
}

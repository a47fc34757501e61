//! importdescriptors: the checks of one request, and what it has the wallet store.

use bitcoin::Network;
use outrigger_sdk::descriptor::{Checksum, Descriptor};
use outrigger_sdk::params::{descriptor_range, int64};
use outrigger_sdk::service::wallet::{DescriptorImport, Import};
use outrigger_sdk::wire::Secret;
use serde_json::Value;

use crate::error::ImportError;
use crate::outcome::{Checked, MISSING_PRIVATE_KEYS};
use crate::request::Fields;

/// The last index of the range that a request without one means: bitcoind's default keypool of 1000.
const DEFAULT_LAST_INDEX: u32 = 999;

/// The most keys that one descriptor may derive: a wallet expands from index 0 up to the range's end. Each costs a curve
/// multiplication.
const MAX_DERIVED_KEYS: u64 = 4_000_000;

/// The warning of a ranged descriptor without a range.
const RANGE_NOT_GIVEN: &str = "Range not given, using default keypool range";

/// Checks the requests of a call.
pub struct Checks {
    /// The network of the chain.
    pub network: Network,
    /// Whether the wallet may hold private keys.
    pub private_keys_enabled: bool,
}

/// The fields, of the right types.
struct Given<'a> {
    text: &'a str,
    active: bool,
    internal: Option<bool>,
    label: Option<&'a str>,
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
    pub fn request(&self, request: &Value, timestamp: u64) -> Checked {
        let mut warnings = Vec::new();
        match self.parts(request, timestamp, &mut warnings) {
            Ok((parts, given)) => Checked {
                parts: Ok(parts),
                warnings,
                not_stored: ImportError::DescriptorNotStored(given.text.to_owned()),
                active: given.active,
            },
            Err(error) => Checked::refused(error, warnings),
        }
    }

    fn parts<'a>(
        &self,
        request: &'a Value,
        timestamp: u64,
        warnings: &mut Vec<String>,
    ) -> Result<(Vec<Import>, Given<'a>), ImportError> {
        let fields = Fields(request.as_object().ok_or(ImportError::Malformed)?);
        let given = Given::read(fields)?;
        let descriptors = Descriptor::parse(given.text, self.network, Checksum::Required)?;
        let first = descriptors.first().ok_or(ImportError::Malformed)?;
        if descriptors.len() > 1 && given.internal.is_some() {
            return Err(ImportError::MultipathInternal);
        }
        let indexes = indexes(fields, first, warnings)?;
        if given.active && indexes.is_none() {
            return Err(ImportError::ActiveUnranged);
        }
        if descriptors.len() > 1 && given.label.is_some() {
            return Err(ImportError::MultipathLabel);
        }
        if fields.has("range") && given.label.is_some() {
            return Err(ImportError::RangedLabel);
        }
        if given.internal == Some(true) && given.label.is_some() {
            return Err(ImportError::InternalLabel);
        }
        if given.active && first.is_combo() {
            return Err(ImportError::ActiveCombo);
        }
        self.check_keys(&descriptors, warnings)?;
        // A ranged descriptor whose request has a label but no range is taken, and the label dropped.
        let label = given.label.filter(|_| indexes.is_none()).map(str::to_owned);
        let part = |(place, descriptor): (usize, &Descriptor)| Import::Descriptor {
            descriptor: DescriptorImport {
                text: descriptor.to_private_string().unwrap_or_else(|| Secret::new(descriptor.to_public_string())),
                range: indexes.map(|indexes| (indexes.begin, indexes.end)),
                next_index: indexes.map(|indexes| indexes.next),
                active: given.active,
                internal: if descriptors.len() == 2 { Some(place == 1) } else { given.internal },
                label: label.clone(),
                timestamp,
            },
        };
        Ok((descriptors.iter().enumerate().map(part).collect(), given))
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
        if !fields.has("desc") {
            return Err(ImportError::NoDescriptor);
        }
        Ok(Self {
            text: fields.text("desc")?.ok_or(ImportError::NoDescriptor)?,
            active: fields.flag("active")?,
            internal: if fields.has("internal") { Some(fields.flag("internal")?) } else { None },
            label: fields.text("label")?,
        })
    }
}

/// The indexes to import; none for a descriptor without a wildcard.
fn indexes(
    fields: Fields<'_>,
    descriptor: &Descriptor,
    warnings: &mut Vec<String>,
) -> Result<Option<Indexes>, ImportError> {
    let (begin, end) = match (descriptor.is_ranged(), fields.get("range")) {
        (false, Some(_)) => return Err(ImportError::RangeOfUnranged),
        (false, None) => return Ok(None),
        (true, Some(range)) => descriptor_range(range)?,
        (true, None) => {
            warnings.push(RANGE_NOT_GIVEN.to_owned());
            (0, DEFAULT_LAST_INDEX)
        }
    };
    if (u64::from(end) + 1) * descriptor.key_count() as u64 > MAX_DERIVED_KEYS {
        return Err(ImportError::RangeTooLarge);
    }
    let next = match fields.get("next_index") {
        None => begin,
        Some(value) => {
            let next = int64(value).map_err(|_| ImportError::Malformed)?;
            let next = u32::try_from(next).map_err(|_| ImportError::NextIndex)?;
            if !(begin..=end).contains(&next) {
                return Err(ImportError::NextIndex);
            }
            next
        }
    };
    Ok(Some(Indexes { begin, end, next }))
}

//! The data from outside a PSBT that helps to sign its inputs and to describe its outputs.
//!
//! Descriptors give one provider for the whole PSBT. A wallet gives a provider for each input and output.

use std::collections::{HashMap, HashSet};

use bitcoin::Script;
use bitcoin::bip32::DerivationPath;
use outrigger_kit::psbt::Origin;
use outrigger_sdk::service::wallet::{KeyOrigin, ScriptInfo};
use outrigger_sdk::sign::SolvingSet;

/// The origins of public keys. If a key is added again, it keeps its first origin.
#[derive(Default)]
pub struct Origins(HashMap<Vec<u8>, Origin>);

impl Origins {
    pub fn add(&mut self, origin: &KeyOrigin) {
        let path = origin.path.parse().map(|path: DerivationPath| path.to_u32_vec()).unwrap_or_default();
        let fingerprint = origin.fingerprint;
        self.0.entry(origin.public_key.to_vec()).or_insert(Origin { fingerprint, path });
    }

    pub fn of(&self, key: &[u8]) -> Option<&Origin> {
        self.0.get(key)
    }

    /// The origin of the key with this x coordinate; of two such keys, that with the even y coordinate.
    pub fn of_x_only(&self, x: &[u8; 32]) -> Option<&Origin> {
        [2, 3].iter().find_map(|prefix| self.of(&[&[*prefix], &x[..]].concat()))
    }
}

/// bitcoind's `SigningProvider`, without private keys.
#[derive(Default)]
pub struct SigningProvider {
    pub solving: SolvingSet,
    pub origins: Origins,
    /// The public keys that may sign, each in its full and its x-only form. `None` means all keys.
    pub signers: Option<HashSet<Vec<u8>>>,
}

impl SigningProvider {
    /// Adds a script of a wallet. Its keys may sign.
    pub fn add(&mut self, script: &Script, info: &ScriptInfo) {
        self.solving.add(script, info.solving.clone());
        for origin in &info.origins {
            self.origins.add(origin);
            let key = origin.public_key.to_vec();
            let signers = self.signers.get_or_insert_default();
            signers.extend(key.get(1..33).map(<[u8]>::to_vec));
            signers.insert(key);
        }
    }
}

/// The providers of a PSBT.
pub enum Providers {
    /// One provider for all inputs and outputs.
    Shared(Box<SigningProvider>),
    /// A provider for each input and output, by position. The key of one input does not help to sign another.
    Each { inputs: Vec<SigningProvider>, outputs: Vec<SigningProvider> },
}

impl Providers {
    pub fn input(&self, index: usize) -> Option<&SigningProvider> {
        match self {
            Self::Shared(provider) => Some(provider),
            Self::Each { inputs, .. } => inputs.get(index),
        }
    }

    pub fn output(&self, index: usize) -> Option<&SigningProvider> {
        match self {
            Self::Shared(provider) => Some(provider),
            Self::Each { outputs, .. } => outputs.get(index),
        }
    }
}

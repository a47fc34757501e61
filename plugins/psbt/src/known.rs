//! What is known of a PSBT's inputs and outputs beside what it says itself: the same of all, as descriptors tell it, or of each, as
//! a wallet does.

use std::collections::{HashMap, HashSet};

use bitcoin::Script;
use outrigger_sdk::psbt::Origin;
use outrigger_sdk::service::wallet::{KeyOrigin, ScriptInfo};
use outrigger_sdk::sign::SolvingSet;

/// Where public keys come from. Of several origins of a key, the first counts.
#[derive(Default)]
pub struct Origins(HashMap<Vec<u8>, Origin>);

impl Origins {
    /// Adds what is known of a key.
    pub fn add(&mut self, origin: &KeyOrigin) {
        const HARDENED: u32 = 1 << 31;
        let step = |text: &str| {
            let number = text.trim_end_matches(['h', '\'']);
            Some(number.parse::<u32>().ok()? | if number.len() < text.len() { HARDENED } else { 0 })
        };
        let path = origin.path.split('/').skip(1).filter_map(step).collect();
        let known = Origin { fingerprint: origin.fingerprint, path };
        self.0.entry(origin.public_key.to_vec()).or_insert(known);
    }

    /// The origin of a key.
    pub fn of(&self, key: &[u8]) -> Option<&Origin> {
        self.0.get(key)
    }

    /// The origin of the key with this x coordinate: of the one with the even y, where both have one.
    pub fn of_x_only(&self, x: &[u8; 32]) -> Option<&Origin> {
        [2, 3].iter().find_map(|prefix| self.of(&[&[*prefix], &x[..]].concat()))
    }
}

/// What is known of an input or an output.
#[derive(Default)]
pub struct Knowledge {
    /// For spending it.
    pub solving: SolvingSet,
    /// Where its keys come from.
    pub origins: Origins,
    /// The public keys whose signatures may be asked for, as scripts and as tapscripts have them; none where all may be.
    pub signers: Option<HashSet<Vec<u8>>>,
}

impl Knowledge {
    /// Adds what a wallet knows of a script, whose keys may sign.
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

/// What is known of a PSBT's inputs and outputs.
pub enum Known {
    /// The same of all.
    All(Box<Knowledge>),
    /// Of each by itself: what a wallet knows of one input, a key for instance, is of no use for another.
    Each {
        /// Of the inputs, in their order.
        inputs: Vec<Knowledge>,
        /// Of the outputs, in theirs.
        outputs: Vec<Knowledge>,
    },
}

impl Known {
    /// What is known of the input of an index.
    pub fn input(&self, index: usize) -> Option<&Knowledge> {
        match self {
            Self::All(known) => Some(known),
            Self::Each { inputs, .. } => inputs.get(index),
        }
    }

    /// What is known of the output of an index.
    pub fn output(&self, index: usize) -> Option<&Knowledge> {
        match self {
            Self::All(known) => Some(known),
            Self::Each { outputs, .. } => outputs.get(index),
        }
    }
}

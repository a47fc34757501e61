//! The labels of the address book, by script. Rows of transactions and coins do not contain labels, so a label changes
//! in one place, however many payments an address has.

use std::collections::HashMap;
use std::sync::Arc;

use bitcoin::{Script, ScriptBuf};
use foldhash::fast::RandomState;
use outrigger_service::wire::from_bytes;

use super::error::{Result, WalletError};
use super::latest::Derived;
use super::store::{Reading, ScriptRow, Tables};

/// The number of parts of [`Labels`]. A change copies one part.
const PARTS: usize = 256;

#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    pub label: Arc<str>,
    /// Whether the script is in the table `address_book`: it was labelled as a foreign address.
    pub entered: bool,
}

type Part = HashMap<ScriptBuf, Entry, RandomState>;

#[derive(Clone, PartialEq, Debug)]
pub struct Labels {
    parts: Vec<Arc<Part>>,
}

/// Changed entries of a write, in order.
pub type LabelChanges = Vec<(ScriptBuf, Entry)>;

impl Labels {
    /// The label of a script's address; `None` if the address book has no entry.
    pub fn get(&self, script: &Script) -> Option<&str> {
        self.parts.get(part_of(script))?.get(script).map(|entry| &*entry.label)
    }

    /// Unordered.
    pub fn iter(&self) -> impl Iterator<Item = (&ScriptBuf, &Entry)> {
        self.parts.iter().flat_map(|part| part.iter())
    }

    fn part(&mut self, script: &Script) -> Option<&mut Part> {
        self.parts.get_mut(part_of(script)).map(Arc::make_mut)
    }
}

/// Picks a part by a byte from the middle of the script: in standard scripts it is a byte of a hash or key.
fn part_of(script: &Script) -> usize {
    let bytes = script.as_bytes();
    bytes.get(bytes.len() / 2).map_or(0, |byte| usize::from(*byte) % PARTS)
}

impl Derived for Labels {
    type Change = LabelChanges;

    fn read(t: &Tables, txn: &Reading<'_>) -> Result<Self> {
        let mut labels = Self { parts: vec![Arc::default(); PARTS] };
        for entry in t.labels.iter(txn)? {
            let (key, label) = entry?;
            let entered = t.address_book.get(txn, key)?;
            let script = match entered {
                Some(script) => ScriptBuf::from_bytes(script.to_vec()),
                None => match t.scripts.get(txn, key)? {
                    Some(row) => from_bytes::<ScriptRow>(row)?.script,
                    None => return Err(WalletError::damaged(label.len())),
                },
            };
            if let Some(part) = labels.part(&script) {
                let label = String::from_utf8_lossy(label).into();
                part.insert(script, Entry { label, entered: entered.is_some() });
            }
        }
        Ok(labels)
    }

    fn change(kept: &mut Arc<Self>, change: LabelChanges) {
        if change.is_empty() {
            return;
        }
        let labels = Arc::make_mut(kept);
        for (script, entry) in change {
            if let Some(part) = labels.part(&script) {
                part.insert(script, entry);
            }
        }
    }
}

//! What spending a script requires, found by a walk from the scriptPubKey through the redeem and witness scripts that come
//! with it (bitcoind's `RecurseImportData`).

use std::collections::BTreeMap;

use bitcoin::ScriptBuf;
use outrigger_sdk::standard::{ScriptKind, classify};

use super::{KeyId, key_id};
use crate::error::ImportError;

/// The scripts of a request that the walk has not used yet.
pub(super) struct Sources {
    pub redeem_script: Option<ScriptBuf>,
    pub witness_script: Option<ScriptBuf>,
}

/// The context of a script: bitcoind's `ScriptContext`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Top,
    Sh,
    Wsh,
}

/// The walk through a script.
pub(super) struct Analysis {
    /// The scripts that the walk has not used.
    pub sources: Sources,
    /// The keys that can be used, and whether spending requires the public key, because the script has only its hash.
    pub keys: BTreeMap<KeyId, bool>,
    /// The scripts that the wallet must know.
    pub scripts: Vec<ScriptBuf>,
}

/// Why a script is imported without solving data.
type Reason = &'static str;

impl Analysis {
    /// An analysis before its walk.
    pub fn new(sources: Sources) -> Self {
        Self { sources, keys: BTreeMap::new(), scripts: Vec::new() }
    }

    /// Walks a scriptPubKey. The inner result is the reason where it cannot be solved.
    ///
    /// # Errors
    /// When scripts are nested in a way that cannot be spent.
    pub fn walk(&mut self, script_pubkey: &ScriptBuf) -> Result<Result<(), Reason>, ImportError> {
        let (mut script, mut position) = (script_pubkey.clone(), Position::Top);
        // Each turn goes one level down, and nothing nests in a witness script: there are at most three turns.
        loop {
            let inner = match self.level(&script, position)? {
                Ok(Some(inner)) => inner,
                Ok(None) => return Ok(Ok(())),
                Err(reason) => return Ok(Err(reason)),
            };
            self.scripts.push(inner.0.clone());
            (script, position) = inner;
        }
    }

    /// Analyses one script. Gives the script nested in it; none at the end of the walk.
    fn level(
        &mut self,
        script: &ScriptBuf,
        position: Position,
    ) -> Result<Result<Option<(ScriptBuf, Position)>, Reason>, ImportError> {
        let nested = |text| Err(ImportError::Nesting(text));
        match (classify(script), position) {
            (ScriptKind::PubKey { key }, _) => {
                self.keys.entry(key_id(key)).or_insert(false);
            }
            (ScriptKind::Multisig { keys, .. }, _) => {
                for key in keys {
                    self.keys.entry(key_id(key)).or_insert(false);
                }
            }
            (ScriptKind::PubKeyHash { hash }, _) => {
                self.keys.insert(*hash, true);
            }
            (ScriptKind::WitnessV0KeyHash { .. }, Position::Wsh) => return nested("P2WPKH inside P2WSH"),
            (ScriptKind::WitnessV0KeyHash { hash }, _) => {
                self.keys.insert(*hash, true);
                self.keep_top(script, position);
            }
            (ScriptKind::ScriptHash { .. }, Position::Sh) => return nested("P2SH inside another P2SH"),
            (ScriptKind::ScriptHash { .. }, Position::Wsh) => return nested("P2SH inside a P2WSH"),
            (ScriptKind::ScriptHash { .. }, Position::Top) => {
                return Ok(match self.sources.redeem_script.take() {
                    None => Err("missing redeemscript"),
                    Some(inner) if inner.to_p2sh() != *script => Err("redeemScript does not match the scriptPubKey"),
                    Some(inner) => Ok(Some((inner, Position::Sh))),
                });
            }
            (ScriptKind::WitnessV0ScriptHash { .. }, Position::Wsh) => return nested("P2WSH inside another P2WSH"),
            (ScriptKind::WitnessV0ScriptHash { .. }, _) => {
                return Ok(match self.sources.witness_script.take() {
                    None => Err("missing witnessscript"),
                    Some(inner) if inner.to_p2wsh() != *script => {
                        Err("witnessScript does not match the scriptPubKey or redeemScript")
                    }
                    Some(inner) => {
                        self.keep_top(script, position);
                        Ok(Some((inner, Position::Wsh)))
                    }
                });
            }
            (ScriptKind::NullData, _) => return Ok(Err("unspendable script")),
            _ => return Ok(Err("unrecognized script")),
        }
        Ok(Ok(None))
    }

    /// Keeps a native witness program: it is only ours when the wallet knows it as a script (bitcoind's `IsMine`).
    fn keep_top(&mut self, script: &ScriptBuf, position: Position) {
        if position == Position::Top {
            self.scripts.push(script.clone());
        }
    }
}

//! A walk from a scriptPubKey through its redeem and witness scripts, which collects the keys and scripts that spending
//! requires (bitcoind's `RecurseImportData`).

use std::collections::BTreeMap;

use bitcoin::ScriptBuf;
use outrigger_sdk::RpcError;
use outrigger_sdk::standard::{ScriptKind, classify};

use super::{KeyId, key_id};

/// The context of a script: bitcoind's `ScriptContext`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Top,
    Sh,
    Wsh,
}

#[derive(Default)]
pub(super) struct Analysis {
    /// The request's scripts that the walk has not used yet.
    pub redeem_script: Option<ScriptBuf>,
    pub witness_script: Option<ScriptBuf>,
    /// The keys that can sign. The value is true if spending requires the public key, because the script has only its hash.
    pub keys: BTreeMap<KeyId, bool>,
    /// The scripts that the wallet must know.
    pub scripts: Vec<ScriptBuf>,
}

/// Why a script is imported without solving data.
type Reason = &'static str;

impl Analysis {
    /// Walks a scriptPubKey. The inner error is the reason why the script cannot be solved. The outer error is for nested scripts
    /// that nobody can spend.
    pub fn walk(&mut self, script_pubkey: &ScriptBuf) -> Result<Result<(), Reason>, RpcError> {
        self.level(script_pubkey, Position::Top)
    }

    /// Walks a nested script. A witness script has none of its own, so there are at most three levels.
    fn descend(&mut self, script: &ScriptBuf, position: Position) -> Result<Result<(), Reason>, RpcError> {
        self.scripts.push(script.clone());
        self.level(script, position)
    }

    /// Walks a script from its level down.
    fn level(&mut self, script: &ScriptBuf, position: Position) -> Result<Result<(), Reason>, RpcError> {
        let nested = |text| Err(RpcError::not_found(format!("Trying to nest {text}")));
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
                return match self.redeem_script.take() {
                    None => Ok(Err("missing redeemscript")),
                    Some(inner) if inner.to_p2sh() != *script => {
                        Ok(Err("redeemScript does not match the scriptPubKey"))
                    }
                    Some(inner) => self.descend(&inner, Position::Sh),
                };
            }
            (ScriptKind::WitnessV0ScriptHash { .. }, Position::Wsh) => return nested("P2WSH inside another P2WSH"),
            (ScriptKind::WitnessV0ScriptHash { .. }, _) => {
                return match self.witness_script.take() {
                    None => Ok(Err("missing witnessscript")),
                    Some(inner) if inner.to_p2wsh() != *script => {
                        Ok(Err("witnessScript does not match the scriptPubKey or redeemScript"))
                    }
                    Some(inner) => {
                        self.keep_top(script, position);
                        self.descend(&inner, Position::Wsh)
                    }
                };
            }
            (ScriptKind::NullData, _) => return Ok(Err("unspendable script")),
            _ => return Ok(Err("unrecognized script")),
        }
        Ok(Ok(()))
    }

    /// Keeps a native witness program: the wallet owns it only if the wallet stores it as a script (bitcoind's `IsMine`).
    fn keep_top(&mut self, script: &ScriptBuf, position: Position) {
        if position == Position::Top {
            self.scripts.push(script.clone());
        }
    }
}

//! The solver's findings for one input.

use bitcoin::ScriptBuf;
use bitcoin::hashes::hash160;
use outrigger_service::wallet::TaprootData;

/// The initial stack of a script, bottom first.
pub(super) type Elements = Vec<Vec<u8>>;

/// The solver's findings in an output's scripts.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SolverFindings {
    /// Whether a witness spends the output, as far as its scripts are known.
    pub witness: bool,
    /// The redeem script, if known.
    pub redeem_script: Option<ScriptBuf>,
    /// The witness script, if known.
    pub witness_script: Option<ScriptBuf>,
    /// The taproot data, if known.
    pub taproot: Option<TaprootData>,
    /// The hash of an unknown redeem script.
    pub missing_redeem_script: Option<[u8; 20]>,
    /// The hash of an unknown witness script.
    pub missing_witness_script: Option<[u8; 32]>,
    /// The hashes of unknown public keys.
    pub missing_public_keys: Vec<hash160::Hash>,
}

//! The address that a payment's change goes to.
//!
//! It is drawn before coins are chosen, so that change is weighed as what it will be, and given back where no payment comes of
//! it. That there is none to be had matters only where there is change.

use bitcoin::ScriptBuf;
use outrigger_sdk::RpcError;
use outrigger_sdk::service::ErrorKind;
use outrigger_sdk::service::log::Level;
use outrigger_sdk::service::wallet::{AddressType, WalletInfo};
use outrigger_sdk::standard::{ScriptKind, classify};

use crate::CallContext;
use crate::arguments::{DEFAULT_ADDRESS_TYPE, type_name};
use crate::error::WalletError;
use crate::payment::{ChangeScript, Recipient};
use crate::signable::signable_keys;
use crate::weight::input_size;

/// A fresh address for change, or why there is none.
#[derive(Debug)]
pub struct Change(Result<ScriptBuf, String>);

impl Change {
    /// Draws an address of the type that suits these recipients.
    ///
    /// # Errors
    /// Where the wallet fails; that it has no address is an error only once it is needed.
    pub fn reserve(
        context: &CallContext<'_>,
        wallet: &WalletInfo,
        recipients: &[Recipient],
    ) -> Result<Self, WalletError> {
        let kind = change_type(recipients, wallet);
        let missing = || format!("Error: No {} addresses available.", type_name(kind));
        if !has_source(wallet, kind) {
            return Ok(Self(Err(missing())));
        }
        match context.host.wallet.new_address(context.scope, kind, true, None) {
            Ok(script) => Ok(Self(Ok(script))),
            Err(error) if error.kind == ErrorKind::KeypoolRanOut => Ok(Self(Err(RpcError::from(error).message))),
            Err(error) if error.kind == ErrorKind::Refused => Ok(Self(Err(missing()))),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives the address back, since no payment came of it. A failure is only logged: the client is told why there is no
    /// payment.
    pub fn give_back(self, context: &CallContext<'_>) {
        let Ok(script) = self.0 else { return };
        if let Err(error) = context.host.wallet.return_address(context.scope, script) {
            context.host.log(Level::Warn, format!("an unused change address could not be given back: {error}"));
        }
    }

    /// The script, where there is one.
    pub fn script(&self) -> Result<&ScriptBuf, WalletError> {
        self.0.as_ref().map_err(|reason| WalletError::NoChangeAddress(reason.clone()))
    }

    /// What matters of it for weights and fees. Where the wallet cannot say what spending it takes, that of P2WPKH in P2SH is
    /// assumed, as Bitcoin Core does.
    pub fn size(&self, context: &CallContext<'_>) -> Result<ChangeScript, WalletError> {
        let Ok(script) = &self.0 else { return Ok(ChangeScript::unknown()) };
        let infos = context.host.wallet.scripts(context.scope, vec![script.clone()])?;
        let known = infos.into_iter().flatten().map(|info| (script.clone(), info)).collect();
        let signable = signable_keys(context, &known)?;
        let solving = known.get(script).map(|info| &info.solving);
        let spending = solving.and_then(|solving| input_size(script, solving, &|key| signable.contains(key)));
        Ok(ChangeScript::new(script, spending))
    }
}

fn has_source(wallet: &WalletInfo, kind: AddressType) -> bool {
    wallet.sources.iter().any(|source| source.internal && source.kind == kind)
}

/// The address type for change, so that it does not stand out beside the other outputs: of the types that the recipients have
/// and the wallet has change addresses of, the one that Bitcoin Core prefers; else taproot or P2WPKH where the wallet has it.
pub fn change_type(recipients: &[Recipient], wallet: &WalletInfo) -> AddressType {
    /// Types in the order in which they are preferred, where a recipient has them.
    const AS_RECIPIENTS: [AddressType; 4] =
        [AddressType::Bech32m, AddressType::Bech32, AddressType::P2shSegwit, AddressType::Legacy];
    const OTHERWISE: [AddressType; 2] = [AddressType::Bech32m, AddressType::Bech32];
    let paid = |kind: &AddressType| recipients.iter().any(|to| address_type(&to.script) == Some(*kind));
    let mut wished = AS_RECIPIENTS.into_iter().filter(paid).chain(OTHERWISE);
    wished.find(|kind| has_source(wallet, *kind)).unwrap_or(DEFAULT_ADDRESS_TYPE)
}

fn address_type(script: &ScriptBuf) -> Option<AddressType> {
    match classify(script) {
        ScriptKind::PubKeyHash { .. } => Some(AddressType::Legacy),
        ScriptKind::ScriptHash { .. } => Some(AddressType::P2shSegwit),
        ScriptKind::WitnessV0KeyHash { .. } => Some(AddressType::Bech32),
        ScriptKind::Taproot { .. } => Some(AddressType::Bech32m),
        _ => None,
    }
}

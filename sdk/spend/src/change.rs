//! The change address.
//!
//! The wallet reserves it before coin selection, so that the size of the change output is known, and gets it back if no
//! transaction is made. A payment without a change address fails only if it has change.

use bitcoin::ScriptBuf;
use outrigger_service::log::Level;
use outrigger_service::wallet::{AddressType, WalletInfo};
use outrigger_service::{ErrorKind, Result};
use outrigger_standard::{ScriptKind, classify};
use outrigger_values::RpcError;

use crate::Services;
use crate::SpendSettings;
use crate::control::{ChangeChoice, Recipient};
use crate::error::SpendError;
use crate::weight::{InputSize, Signatures, input_size};

#[derive(Clone, Debug)]
pub enum Change {
    /// An address that the wallet reserved.
    Drawn(ScriptBuf),
    /// The sender's script.
    Named(ScriptBuf),
    /// No address, for this reason.
    Missing(String),
}

impl Change {
    /// Takes the sender's choice, or reserves an address of the type that suits these recipients. Returns
    /// [`Change::Missing`] if the wallet has no change address.
    pub fn reserve(
        services: Services<'_>,
        settings: &SpendSettings,
        wallet: &WalletInfo,
        choice: &ChangeChoice,
        recipients: &[Recipient],
    ) -> Result<Self> {
        let wished = match choice {
            ChangeChoice::To(script) => return Ok(Self::Named(script.clone())),
            ChangeChoice::Fresh(wished) => wished.or(settings.change_type),
        };
        let kind = wished.unwrap_or_else(|| change_type(recipients, wallet, settings.address_type));
        if !has_source(wallet, kind) {
            return Ok(Self::Missing(format!("Error: No {} addresses available.", kind.name())));
        }
        match services.host.book.new_address(services.scope, kind, true, None) {
            Ok(script) => Ok(Self::Drawn(script)),
            Err(error) if error.kind == ErrorKind::KeypoolRanOut => Ok(Self::Missing(RpcError::from(error).message)),
            Err(error) => Err(error),
        }
    }

    /// Returns a reserved address to the wallet. A failure is only logged: the client gets the payment's error.
    pub fn give_back(self, services: Services<'_>) {
        let Self::Drawn(script) = self else { return };
        if let Err(error) = services.host.book.return_address(services.scope, script) {
            services.host.log(Level::Warn, format!("an unused change address could not be given back: {error}"));
        }
    }

    /// The script of the change output. Fails if the wallet has no address.
    pub fn script(&self) -> std::result::Result<&ScriptBuf, SpendError> {
        match self {
            Self::Drawn(script) | Self::Named(script) => Ok(script),
            Self::Missing(reason) => {
                let text = format!("Transaction needs a change address, but we can't generate it. {reason}");
                Err(SpendError::Rule(text.into()))
            }
        }
    }

    /// The size of the input that spends the change; that of P2SH-P2WPKH if unknown, as in Bitcoin Core.
    pub fn spending(&self, services: Services<'_>, signatures: Signatures) -> Result<InputSize> {
        let Ok(script) = self.script() else { return Ok(InputSize::nested_wpkh()) };
        let info = services.host.wallet.scripts(services.scope, vec![script.clone()])?.pop().flatten();
        let size = info.and_then(|info| input_size(script, &info.solving, signatures, None));
        Ok(size.unwrap_or_else(InputSize::nested_wpkh))
    }
}

fn has_source(wallet: &WalletInfo, kind: AddressType) -> bool {
    wallet.sources.iter().any(|source| source.internal && source.kind == kind)
}

/// The address type for change, which should not stand out among the outputs. It is the recipients' type that Bitcoin
/// Core prefers, if the wallet has such change addresses; else P2TR or P2WPKH, if the wallet has them; else `own`, the
/// wallet's address type. A legacy `own` always wins.
pub fn change_type(recipients: &[Recipient], wallet: &WalletInfo, own: AddressType) -> AddressType {
    /// The recipients' types by preference.
    const AS_RECIPIENTS: [AddressType; 4] =
        [AddressType::Bech32m, AddressType::Bech32, AddressType::P2shSegwit, AddressType::Legacy];
    const OTHERWISE: [AddressType; 2] = [AddressType::Bech32m, AddressType::Bech32];
    if own == AddressType::Legacy {
        return own;
    }
    let paid = |kind: &AddressType| recipients.iter().any(|to| address_type(&to.script) == Some(*kind));
    let mut wished = AS_RECIPIENTS.into_iter().filter(paid).chain(OTHERWISE);
    wished.find(|kind| has_source(wallet, *kind)).unwrap_or(own)
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

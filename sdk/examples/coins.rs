//! Reading coins in batches: sums the coins with a label.
#![allow(clippy::unwrap_used, reason = "a broken expectation fails the example")]

use outrigger_sdk::Host;
use outrigger_sdk::amount::Saturating;
use outrigger_sdk::bitcoin::{Amount, OutPoint, ScriptBuf};
use outrigger_sdk::service::wallet::{Ownership, TxState, WalletCoin};
use outrigger_sdk::service::{ErrorKind, Scope, ServiceError};
use outrigger_sdk::testing::{StubHost, WalletState};

/// The most coins in a batch.
const BATCH: u32 = 256;

/// The sum of the spendable coins with a label.
fn labelled(host: &Host, scope: Scope, label: &str) -> Result<Amount, ServiceError> {
    let (mut total, mut after) = (Amount::ZERO, None);
    loop {
        let batch = host.wallet.coins(scope, false, after, BATCH)?;
        let coins = batch.coins.iter().filter(|coin| coin.ownership == Ownership::Spendable);
        let labelled = coins.filter(|coin| coin.label.as_deref() == Some(label));
        // `+` on amounts panics on overflow.
        total = labelled.map(|coin| coin.value).fold(total, Amount::saturating_add);
        match batch.next {
            None => return Ok(total),
            next => after = next,
        }
    }
}

fn main() {
    let coin = |vout: u32, label: &str| WalletCoin {
        outpoint: OutPoint { vout, ..OutPoint::null() },
        value: Amount::from_sat(1000),
        script: ScriptBuf::new(),
        state: TxState::InMempool,
        coinbase: false,
        ownership: Ownership::Spendable,
        change: false,
        label: Some(label.to_owned()),
        trusted: true,
        from_us: false,
    };
    let test = StubHost::new();
    assert_eq!(labelled(&test.handle(), Scope::NONE, "rent").unwrap_err().kind, ErrorKind::NoWallet);
    let mut wallet = WalletState::empty("home");
    wallet.coins = vec![coin(0, "rent"), coin(1, "food"), coin(2, "rent")];
    test.wallet.set(Some(wallet));
    assert_eq!(labelled(&test.handle(), Scope::NONE, "rent"), Ok(Amount::from_sat(2000)));
}

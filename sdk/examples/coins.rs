//! Reading coins in batches: what the coins with a label are worth.
#![allow(clippy::unwrap_used, reason = "an example says what it expects by failing")]

use outrigger_sdk::Host;
use outrigger_sdk::bitcoin::{OutPoint, ScriptBuf};
use outrigger_sdk::service::wallet::{Ownership, TxState, WalletCoin};
use outrigger_sdk::service::{ErrorKind, Scope, ServiceError};
use outrigger_sdk::testing::{StubHost, WalletState};

/// The most coins that are asked for at a time.
const BATCH: u32 = 256;

/// What can be spent of the coins with a label, in satoshi.
fn labelled(host: &Host, scope: Scope, label: &str) -> Result<u64, ServiceError> {
    let (mut total, mut after) = (0, None);
    loop {
        let batch = host.wallet.coins(scope, after, BATCH)?;
        let coins = batch.coins.iter().filter(|coin| coin.ownership == Ownership::Spendable);
        total += coins.filter(|coin| coin.label.as_deref() == Some(label)).map(|coin| coin.value).sum::<u64>();
        match batch.next {
            None => return Ok(total),
            next => after = next,
        }
    }
}

fn main() {
    let coin = |vout: u32, label: &str| WalletCoin {
        outpoint: OutPoint { vout, ..OutPoint::null() },
        value: 1000,
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
    assert_eq!(labelled(&test.handle(), Scope::NONE, "rent"), Ok(2000));
}

#[test]
fn example_coins_does_what_it_says() {
    main();
}

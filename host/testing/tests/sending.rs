//! Tests concurrent payments of a wallet.
#![allow(clippy::unwrap_used, reason = "a broken expectation fails the test")]

use outrigger_service::wallet::AddressType;
use outrigger_service::{ErrorKind, Scope};
use outrigger_testing::TestHost;

#[test]
fn a_payment_waits_for_the_one_before_it_and_sees_what_it_left() {
    let host = TestHost::new();
    for name in ["one", "two"] {
        host.create_wallet(name, |_| {}).unwrap();
    }
    let handle = host.handle();
    let next = |scope| handle.wallet.descriptors(scope).unwrap().iter().map(|info| info.next_index).max();
    let (first, ending) = host.open_call(Some("one"));
    handle.pay.begin_payment(first).unwrap();
    // Neither the same call nor another wallet's payment waits.
    handle.pay.begin_payment(first).unwrap();
    let (other, _call) = host.open_call(Some("two"));
    handle.pay.begin_payment(other).unwrap();
    std::thread::scope(|threads| {
        let second = threads.spawn(|| {
            let (scope, _call) = host.open_call(Some("one"));
            let before = next(scope);
            handle.pay.begin_payment(scope).unwrap();
            (before, next(scope))
        });
        handle.book.new_address(first, AddressType::Bech32, true, None).unwrap();
        handle.book.new_address(first, AddressType::Bech32, true, None).unwrap();
        drop(ending);
        let (before, after) = second.join().unwrap();
        assert!(before <= Some(2) && after == Some(2), "{before:?} {after:?}");
    });
    let outside = handle.pay.begin_payment(Scope::NONE).unwrap_err();
    assert_eq!(outside.kind, ErrorKind::Unsupported);
}

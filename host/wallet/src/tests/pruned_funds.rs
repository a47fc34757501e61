//! importprunedfunds, removeprunedfunds, and dumpprivkey.

use bitcoin::consensus::serialize;
use bitcoin::hashes::Hash;
use bitcoin::{OutPoint, PrivateKey};
use outrigger_service::ErrorKind;
use outrigger_service::wallet::AddressType;
use outrigger_service::wire::Secret;

use super::{Harness, elsewhere, foreign, kind_of, spend};
use crate::store::hash160;

#[test]
fn removeprunedfunds_leaves_nothing_and_importprunedfunds_brings_all_back() {
    let harness = Harness::with_wallet();
    let (mine, change) = (harness.address(Some("a")), harness.address(None));
    let paid = spend(&[elsewhere(1)], &[(&mine, 1000)]);
    let spent = spend(&[OutPoint::new(paid.compute_txid(), 0)], &[(&foreign(1), 300), (&change, 600)]);
    let (first, second) = (harness.mine(vec![paid.clone()]), harness.mine(vec![spent.clone()]));
    let coins = harness.coins();
    let known = [paid.compute_txid(), spent.compute_txid()].map(|txid| harness.known(txid).row);
    let wallet = harness.view().wallet().clone();

    wallet.remove_transaction(paid.compute_txid()).unwrap();
    assert!(harness.transaction(paid.compute_txid()).is_none());
    assert_eq!(harness.known(spent.compute_txid()).debit_spendable.to_sat(), 0, "what it spends is not known");
    assert_eq!(
        harness.coins(),
        coins
            .iter()
            .cloned()
            .map(|coin| outrigger_service::wallet::WalletCoin { from_us: false, ..coin })
            .collect::<Vec<_>>()
    );
    assert_eq!(kind_of(wallet.remove_transaction(paid.compute_txid())), ErrorKind::NotFound);
    wallet.remove_transaction(spent.compute_txid()).unwrap();
    assert!(harness.coins().is_empty());

    // The later transaction first: its inputs become ours when the earlier one arrives.
    for (transaction, block) in [(&spent, second), (&paid, first)] {
        wallet.add_confirmed(&serialize(transaction), block, 1).unwrap();
    }
    assert_eq!(harness.coins(), coins);
    for before in known {
        let now = harness.known(before.txid).row;
        assert_eq!(
            (now.state, now.debit_spendable, now.outputs),
            (before.state, before.debit_spendable, before.outputs)
        );
    }
}

#[test]
fn importprunedfunds_takes_only_what_pays_the_wallet_in_a_block_of_its_chain() {
    let harness = Harness::with_wallet();
    let paid = spend(&[elsewhere(1)], &[(&harness.address(Some("a")), 1000)]);
    let raw = serialize(&paid);
    let left = harness.mine(vec![paid.clone()]);
    let wallet = harness.view().wallet().clone();
    wallet.remove_transaction(paid.compute_txid()).unwrap();
    harness.disconnect();
    harness.view();
    assert_eq!(kind_of(wallet.add_confirmed(&raw, left, 1)), ErrorKind::NotFound);
    assert_eq!(kind_of(wallet.add_confirmed(&raw, bitcoin::BlockHash::all_zeros(), 1)), ErrorKind::NotFound);
    let block = harness.mine(vec![]);
    harness.view();
    let other = serialize(&spend(&[elsewhere(2)], &[(&foreign(1), 1000)]));
    assert_eq!(kind_of(wallet.add_confirmed(&other, block, 1)), ErrorKind::Refused);
    assert_eq!(kind_of(wallet.add_confirmed(b"no transaction", block, 1)), ErrorKind::Refused);
    assert!(harness.coins().is_empty());
}

#[test]
fn gethdkeys_and_dumpprivkey_tell_the_keys_of_descriptors() {
    let harness = Harness::with_wallet();
    let keys = harness.view().hd_keys(true).unwrap();
    let [key] = keys.as_slice() else { panic!("one master key: {keys:?}") };
    assert!(key.has_private && key.xprv.is_some());
    assert_eq!((key.descriptors.len(), key.descriptors.iter().filter(|(_, active)| *active).count()), (8, 8));
    for kind in [AddressType::Legacy, AddressType::P2shSegwit, AddressType::Bech32] {
        let script = harness.view().wallet().new_address(kind, false, None).unwrap();
        let info = harness.view().scripts(vec![script]).unwrap().remove(0).unwrap();
        let public_key = &info.solving.public_keys[0];
        let wif = harness.view().private_key(&hash160(public_key)).unwrap().expect("the wallet has the key");
        let told = PrivateKey::from_wif(wif.expose()).unwrap().public_key(&crate::descriptors::SECP);
        assert_eq!(told.to_bytes(), public_key.0, "{kind:?}");
    }
    assert!(harness.view().private_key(&[7; 20]).unwrap().is_none());
    harness.view().wallet().encrypt(Secret::new("secret".into())).unwrap();
    assert_eq!(kind_of(harness.view().hd_keys(true)), ErrorKind::WalletLocked);
    assert_eq!(kind_of(harness.view().private_key(&[7; 20])), ErrorKind::WalletLocked);
    let keys = harness.view().hd_keys(false).unwrap();
    assert!(keys.iter().all(|key| key.has_private && key.xprv.is_none()));
}

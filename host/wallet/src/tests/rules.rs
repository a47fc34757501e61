//! Rules of Bitcoin Core 29 for the address book, hardened wildcards, the keypool and conflicts with the mempool.

use bitcoin::ScriptBuf;
use outrigger_service::events::RescanOutcome;
use outrigger_service::wallet::{Import, ImportOutcome, TxState};

use super::rescans::{finished, scripts_of};
use super::{Harness, IMPORTED, XPRV, descriptor, elsewhere, foreign, spend};
use crate::write::Write;
use outrigger_node::events::Removal;

impl Harness {
    fn take(&self, import: Import) {
        assert_eq!(self.view().wallet().import(vec![import]).unwrap(), [IMPORTED]);
    }

    fn rescan_w(&self) {
        let rescan = self.view().wallet().rescan_reserve().unwrap();
        self.view().wallet().rescan_start(rescan, 1).unwrap();
        assert_eq!(finished(self), RescanOutcome::Complete);
    }

    fn label_of(&self, script: &ScriptBuf) -> Option<String> {
        self.view().scripts(vec![script.clone()]).unwrap().remove(0)?.label
    }

    fn change_of(&self, scripts: &[ScriptBuf]) -> Vec<bool> {
        let infos = self.view().scripts(scripts.to_vec()).unwrap();
        infos.into_iter().map(|info| info.unwrap().change).collect()
    }
}

#[test]
fn importdescriptors_of_an_inactive_descriptor_enters_nothing_until_it_is_active() {
    let harness = Harness::blank();
    let text = format!("wpkh({XPRV}/0/*)");
    harness.take(descriptor(&text, |import| import.range = Some((0, 9))));
    let parsed = harness.view().descriptors(false).unwrap()[0].text.expose().to_owned();
    let at = scripts_of(&parsed);
    let payment = spend(&[elsewhere(1)], &[(&at(3), 7)]);
    harness.mine(vec![payment.clone()]);
    let told = || {
        let told = harness.view().descriptors(false).unwrap().remove(0);
        (told.next_index, told.range.unwrap().1)
    };
    assert_eq!(told(), (4, 23), "the indexes move on all the same");
    assert_eq!(harness.change_of(&[at(3)]), [true]);
    // Activation resets the next index to the start of the range. A rescan adds the earlier addresses.
    let active = |import: &mut _| {
        let import: &mut outrigger_service::wallet::DescriptorImport = import;
        (import.range, import.active) = (Some((0, 23)), true);
    };
    harness.take(descriptor(&text, active));
    assert_eq!((told().0, harness.label_of(&at(3))), (0, None));
    harness.rescan_w();
    assert_eq!((told().0, harness.label_of(&at(0)), harness.label_of(&at(3))), (4, Some("".into()), Some("".into())));
    assert_eq!(harness.known(payment.compute_txid()).outputs[0].label.as_deref(), Some(""));
    // Entries outlive deactivation.
    harness.take(descriptor(&text, |import| import.range = Some((0, 23))));
    assert_eq!(harness.label_of(&at(3)).as_deref(), Some(""));
}

#[test]
fn importdescriptors_of_a_single_key_with_internal_removes_no_entry() {
    let harness = Harness::blank();
    let text = format!("wpkh({XPRV}/0/1)");
    harness.take(descriptor(&text, |import| import.label = Some("kept".into())));
    harness.take(descriptor(&text, |import| import.internal = Some(true)));
    let script = scripts_of(&text)(0);
    assert_eq!(harness.label_of(&script).as_deref(), Some("kept"));
}

#[test]
fn createwalletdescriptor_clears_the_blank_flag_once_it_stores_a_descriptor() {
    let harness = Harness::blank();
    let add = |text: &str| {
        let Import::Descriptor { descriptor } = descriptor(text, |import| {
            (import.range, import.active) = (Some((0, 9)), true);
        }) else {
            panic!("no descriptor")
        };
        harness.view().wallet().add_own_descriptors(vec![descriptor]).unwrap()
    };
    assert!(matches!(&add("wpkh(x)")[..], [ImportOutcome::BadDescriptor { .. }]));
    assert!(harness.view().info().unwrap().blank);
    assert!(matches!(&add(&format!("wpkh({XPRV}/0/*)"))[..], [ImportOutcome::Imported { .. }]));
    assert!(!harness.view().info().unwrap().blank);
}

#[test]
fn a_restart_forgets_conflicts_with_what_has_left_the_mempool_meanwhile() {
    let mut harness = Harness::with_wallet();
    let script = harness.address(Some(""));
    let coins = [1, 2].map(|number| spend(&[elsewhere(number)], &[(&script, 70)]));
    harness.mine(coins.to_vec());
    let outpoint = |number: usize| bitcoin::OutPoint { txid: coins[number].compute_txid(), vout: 0 };
    let first = spend(&[outpoint(0), outpoint(1)], &[(&foreign(1), 100)]);
    let second = spend(&[outpoint(0)], &[(&foreign(2), 60)]);
    harness.accept(&first);
    harness.take_out(first.compute_txid(), Removal::Dropped);
    harness.accept(&second);
    let free = |harness: &Harness| harness.coins().into_iter().map(|coin| coin.outpoint).collect::<Vec<_>>();
    assert_eq!(free(&harness), [outpoint(1)]);
    assert_eq!(harness.known(first.compute_txid()).mempool_conflicts, [second.compute_txid()]);
    // The conflict outlives a restart with the rival in the mempool. It ends if the rival leaves the mempool while the
    // host is stopped.
    harness.restart(|_| {});
    assert_eq!(free(&harness), [outpoint(1)]);
    let mempool = harness.mempool.clone();
    harness.restart(|_| mempool.clear());
    let known = harness.known(first.compute_txid());
    assert!(known.mempool_conflicts.is_empty() && !matches!(known.state, TxState::Abandoned));
    assert_eq!(free(&harness), []);
}

/// The row of a foreign transaction may be as long as a block, and each of its outputs may be a coin.
#[test]
fn unconfirmed_coins_of_a_stranger_are_judged_without_reading_the_transaction() {
    let harness = Harness::with_wallet();
    let script = harness.address(Some(""));
    let payment = spend(&[elsewhere(1)], &[(&script, 1000); 10]);
    harness.accept(&payment);
    assert_eq!(harness.coins().len(), 10);
    let wallet = harness.view().wallet().clone();
    // After this, reading the transaction's row fails as damage.
    let remove_row = |write: &mut Write<'_>| {
        let row = write.t.transaction(write.reads(), &payment.compute_txid())?.expect("the wallet has it");
        write.delete(write.t.transactions, &row.order_position.to_be_bytes())
    };
    assert!(wallet.write(remove_row).unwrap());
    assert!(harness.view().transactions(&[payment.compute_txid()]).is_err());
    let coins = harness.coins();
    assert_eq!(coins.len(), 10);
    assert!(coins.iter().all(|coin| !coin.trusted));
}

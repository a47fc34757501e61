//! Rules of Bitcoin Core 29 for the address book, hardened wildcards and the keypool.

use bitcoin::ScriptBuf;
use outrigger_service::events::RescanOutcome;
use outrigger_service::wallet::{Import, ImportOutcome};

use super::rescans::{finished, scripts_of};
use super::{Harness, IMPORTED, XPRV, descriptor, elsewhere, spend};
use crate::write::Write;

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

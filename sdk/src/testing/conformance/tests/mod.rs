//! The suite over the store in memory, and over stores that each break one promise.

mod broken;

use std::sync::atomic::{AtomicU64, Ordering};

use super::{Happening, Subject, TestNode, compare, run};
use crate::service::{Scope, Signer, Wallet};
use crate::testing::MemoryWallet;
use broken::{Break, Broken};

/// The store in memory.
pub struct InMemory {
    pub node: TestNode,
    pub wallet: MemoryWallet,
    calls: AtomicU64,
}

impl InMemory {
    pub fn new() -> Self {
        let node = TestNode::new();
        let wallet = MemoryWallet::over(node.chain.clone(), node.mempool.clone());
        Self { node, wallet, calls: AtomicU64::new(1) }
    }
}

impl Subject for InMemory {
    fn node(&self) -> &TestNode {
        &self.node
    }
    fn tell(&self, _: &Happening) {
        self.wallet.list(Scope::NONE).unwrap();
    }
    fn wallet(&self) -> &dyn Wallet {
        &self.wallet
    }
    fn signer(&self) -> &dyn Signer {
        &self.wallet
    }
    fn open(&self, wallet: Option<&str>) -> Scope {
        let scope = Scope(self.calls.fetch_add(1, Ordering::Relaxed));
        if let Some(wallet) = wallet {
            self.wallet.open_call(scope, wallet);
        }
        scope
    }
    fn close(&self, scope: Scope) {
        self.wallet.close_call(scope);
    }
    fn keypool(&self) -> u32 {
        MemoryWallet::KEYPOOL
    }
    fn backup_file(&self, name: &str) -> String {
        name.to_owned()
    }
}

fn fresh() -> Box<dyn Subject> {
    Box::new(InMemory::new())
}

#[test]
fn the_store_in_memory_keeps_the_contract() {
    let report = run(&fresh);
    assert!(report.is_clean(), "{report}");
    assert!(report.held.len() > 70);
}

#[test]
fn two_stores_in_memory_answer_the_same() {
    for seed in 0..3 {
        compare(seed, 40, &*fresh(), &*fresh()).unwrap();
    }
}

/// Each broken promise, and a case that must say so.
const BREAKS: [(Break, &str); 30] = [
    (Break::RowTwice, "no_row_comes_twice_and_none_is_left_out"),
    (Break::RowLost, "no_row_comes_twice_and_none_is_left_out"),
    (Break::RowsReversed, "each_range_has_its_order_and_its_reverse"),
    (Break::RowsSortedById, "transactions_come_in_the_order_asked_for"),
    (Break::RawLeftOut, "transactions_come_in_the_order_asked_for"),
    (Break::TooManyCoins, "coins_come_by_outpoint"),
    (Break::CoinsInOtherOrder, "coins_come_by_outpoint"),
    (Break::CoinsDistrusted, "what_is_ours_and_waits_is_trusted"),
    (Break::AnyPlaceTaken, "a_place_that_no_batch_gave_is_malformed"),
    (Break::ReservedTwice, "there_is_one_rescan"),
    (Break::ReleasedByAnyNumber, "a_reservation_is_given_back_by_its_number_only"),
    (Break::RescannedFromTheBeginning, "a_rescan_begins_two_hours_before_its_time"),
    (Break::AbortedWhatDoesNotRun, "a_reservation_is_told_of_and_is_none_to_abort"),
    (Break::ImportedWhileLocked, "a_locked_wallet_answers_all_that_needs_no_key"),
    (Break::ImportedUntilTheFirstRefusal, "each_request_has_its_own_outcome"),
    (Break::OthersLabelsForgotten, "labels_are_entries_of_the_address_book"),
    (Break::LabelsOfOwnScriptsOnly, "labels_are_entries_of_the_address_book"),
    (Break::GivenUpWhateverItIs, "only_what_is_idle_can_be_given_up"),
    (Break::EmptyTextKept, "metadata_is_kept_sorted_by_key"),
    (Break::EncryptedAndNotLocked, "passphrases_are_asked_for_in_the_right_state_only"),
    (Break::LockedWithoutAPassphrase, "passphrases_are_asked_for_in_the_right_state_only"),
    (Break::UnlockedForLonger, "an_unlocked_wallet_says_until_when"),
    (Break::AddressTwice, "addresses_are_fresh_and_entered_with_their_label"),
    (Break::NewestMomentSeen, "a_call_sees_one_moment"),
    (Break::UnloadedOnesNotListed, "loaded_wallets_are_listed_in_their_order_and_all_by_name"),
    (Break::BackupStillNeeded, "a_backup_is_the_wallet_as_it_was"),
    (Break::SignaturesReversed, "signatures_come_in_the_order_of_the_requests"),
    (Break::MissingSignaturesLeftOut, "signatures_come_in_the_order_of_the_requests"),
    (Break::EveryKeyAvailable, "a_descriptors_keys_sign_for_its_own_scripts_only"),
    (Break::SignaturesForAnyScript, "a_descriptors_keys_sign_for_its_own_scripts_only"),
];

#[test]
fn a_broken_promise_is_named_and_the_others_still_hold() {
    for (what, case) in BREAKS {
        let report = run(&|| Box::new(Broken::new(what)));
        assert!(report.broken.iter().any(|(name, _)| *name == case), "{what:?} is not found by {case}: {report}");
        assert!(report.held.len() > 40, "{what:?} is found where it is not: {report}");
    }
}

#[test]
fn a_panic_is_a_failure_of_its_case_alone() {
    struct Panics(InMemory);
    impl Subject for Panics {
        fn node(&self) -> &TestNode {
            &self.0.node
        }
        fn tell(&self, happening: &Happening) {
            self.0.tell(happening);
        }
        fn wallet(&self) -> &dyn Wallet {
            self.0.wallet()
        }
        fn signer(&self) -> &dyn Signer {
            panic!("there is no signer")
        }
        fn open(&self, wallet: Option<&str>) -> Scope {
            self.0.open(wallet)
        }
        fn close(&self, scope: Scope) {
            self.0.close(scope);
        }
        fn keypool(&self) -> u32 {
            self.0.keypool()
        }
        fn backup_file(&self, name: &str) -> String {
            self.0.backup_file(name)
        }
    }
    let report = run(&|| Box::new(Panics(InMemory::new())));
    assert_eq!(report.broken.len(), 6, "{report}");
}

#[test]
fn two_stores_that_differ_are_told_apart() {
    let breaks = [Break::CoinsDistrusted, Break::RowsReversed, Break::OthersLabelsForgotten, Break::SignaturesReversed];
    for what in breaks.into_iter().chain([Break::GivenUpWhateverItIs, Break::EmptyTextKept, Break::ReservedTwice]) {
        let differs = |seed| compare(seed, 80, &*fresh(), &Broken::new(what)).is_err();
        assert!((0..6).any(differs), "{what:?} makes no difference");
    }
}

//! The promises, one small function each.

/// Lists the cases by the modules that they stand in.
macro_rules! cases {
    ($($module:ident: $($case:ident),* $(,)?;)*) => {
        $(mod $module;)*

        /// A test for each.
        mod promises {
            $($(
                #[test]
                fn $case() -> crate::Outcome {
                    super::$module::$case(&crate::Tester::new())
                }
            )*)*
        }
    };
}

cases! {
    wallets:
        the_wallet_of_a_call_is_the_named_or_the_only_one,
        loaded_wallets_are_listed_in_their_order_and_all_by_name,
        a_wallet_that_cannot_be_made_leaves_nothing_behind,
        loading_and_unloading_are_refused_where_there_is_nothing_to_do,
        what_a_wallet_holds_outlives_its_unloading,
        a_wallet_catches_up_when_it_is_loaded,
        a_new_wallet_says_what_it_was_made_as,
        a_wallet_with_keys_of_its_own_has_an_address_of_each_kind,
        a_backup_is_the_wallet_as_it_was,
        a_backup_is_restored_under_a_free_name_only,
        a_call_sees_one_moment,
        a_call_sees_what_it_wrote,
        avoid_reuse_is_kept;
    history:
        a_payment_is_told_with_all_that_is_stored_of_it,
        what_does_not_concern_the_wallet_is_not_there,
        each_range_has_its_order_and_its_reverse,
        heights_bound_what_is_confirmed,
        no_row_comes_twice_and_none_is_left_out,
        a_batch_holds_at_least_one_row,
        a_place_in_the_history_outlives_what_happens_meanwhile,
        a_place_that_no_batch_gave_is_malformed,
        transactions_come_in_the_order_asked_for,
        the_newest_witness_is_the_one_that_is_told,
        metadata_is_kept_sorted_by_key;
    states:
        a_block_confirms_and_its_end_takes_that_back,
        what_leaves_the_mempool_is_inactive_until_it_comes_back,
        a_block_makes_impossible_what_it_contradicts_and_what_builds_on_that,
        the_deeper_of_two_conflicts_counts,
        a_disconnected_coinbase_makes_no_coin,
        what_builds_on_a_disconnected_coinbase_is_given_up,
        what_the_mempool_replaced_frees_what_it_spent,
        only_what_is_idle_can_be_given_up,
        what_was_given_up_can_come_back,
        contested_transactions_name_one_another,
        only_what_is_confirmed_and_uncontested_needs_no_outlook,
        what_is_ours_and_waits_is_trusted,
        replaceability_is_told_where_it_can_be_known;
    coins:
        coins_come_by_outpoint,
        a_place_among_the_coins_outlives_what_happens_meanwhile,
        what_anything_of_the_wallet_spends_is_no_coin,
        a_coin_says_what_its_transaction_says,
        labels_are_entries_of_the_address_book,
        an_address_that_was_labelled_as_anothers_stays_so_when_it_is_imported,
        a_label_changes_rows_coins_and_scripts_at_once,
        a_script_without_an_address_takes_no_label,
        a_bare_key_has_no_label,
        the_address_book_comes_whole_and_each_entry_once;
    imports:
        each_request_has_its_own_outcome,
        an_import_says_what_it_made_of_the_wallet,
        what_the_wallet_may_not_hold_is_refused,
        a_descriptor_owns_what_it_derives,
        a_known_descriptor_is_replaced_and_keeps_its_scripts,
        descriptors_are_told_in_the_order_of_their_import,
        only_an_address_for_receiving_is_entered_in_the_address_book,
        of_two_paths_the_second_is_for_change,
        a_watched_script_becomes_ours_with_its_key_at_once,
        a_compressed_key_owns_all_its_forms,
        a_multisig_is_ours_with_its_last_key,
        a_second_watch_moves_the_birth_time,
        what_is_ours_is_not_imported_again,
        what_came_before_the_import_waits_for_a_rescan;
    addresses:
        addresses_are_fresh_and_entered_with_their_label,
        a_payment_enters_the_addresses_that_it_passes_over,
        a_payment_to_an_address_that_was_passed_over_enters_nothing,
        an_address_that_is_not_needed_is_given_back,
        the_newest_active_descriptor_gives_the_addresses,
        a_used_address_is_not_handed_out_and_more_are_derived,
        what_was_paid_before_is_used_once_it_is_met_again,
        without_a_descriptor_of_the_kind_there_is_no_address,
        an_address_that_is_given_back_is_handed_out_again,
        a_legacy_wallet_counts_keys_and_not_the_types_of_their_addresses,
        imported_public_keys_are_handed_out_in_their_order,
        a_refill_derives_so_many_ahead;
    keys:
        passphrases_are_asked_for_in_the_right_state_only,
        a_locked_wallet_answers_all_that_needs_no_key,
        encryption_gives_fresh_descriptors_and_keeps_the_old,
        encryption_leaves_the_descriptors_of_a_wallet_that_was_made_blank,
        a_locked_wallet_knows_how_what_it_derived_is_spent,
        an_unlocked_wallet_says_until_when,
        a_wallet_is_locked_when_it_is_loaded,
        without_private_keys_there_is_nothing_to_encrypt,
        a_passphrase_can_be_changed,
        signatures_come_in_the_order_of_the_requests,
        a_descriptors_keys_sign_for_its_own_scripts_only,
        an_imported_key_signs_for_any_script,
        a_key_signs_by_the_form_that_is_its_own,
        schnorr_signatures_are_made_with_and_without_the_tweak,
        a_locked_wallet_says_what_it_could_sign_and_signs_nothing;
    rescans:
        there_is_one_rescan,
        a_reservation_is_given_back_by_its_number_only,
        what_is_not_reserved_cannot_be_started,
        a_wallet_with_a_reserved_rescan_stays_loaded,
        a_rescan_finds_what_was_paid_before,
        a_rescan_begins_two_hours_before_its_time,
        a_rescan_offers_what_is_idle_to_the_mempool,
        a_reservation_is_told_of_and_is_none_to_abort;
}

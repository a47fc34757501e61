use outrigger_sdk::service::wallet::RescanProgress;

use super::*;

#[test]
fn encryptwallet_walletpassphrase_and_walletlock_seal_and_open_the_keys() {
    let test = Fixture::new();
    test.check(
        "encryptwallet",
        json!(["secret"]),
        r#""wallet encrypted; The keypool has been flushed and a new HD seed was generated. You need to make a new backup with the backupwallet RPC.""#,
    );
    let wrong = "Error: The wallet passphrase entered was incorrect.";
    test.refuse("walletpassphrase", json!(["wrong", 10]), -14, wrong);
    test.check("walletpassphrase", json!(["secret", 10]), "null");
    // The host in memory keeps the seconds it was told; longer times are cut.
    test.info(|info| assert_eq!((info.locked, info.unlocked_until), (false, 10)));
    test.check("walletpassphrase", json!(["secret", 200_000_000]), "null");
    test.info(|info| assert_eq!(info.unlocked_until, 100_000_000));
    test.check("walletlock", json!([]), "null");
    test.info(|info| assert!(info.locked));
    test.check("walletlock", json!([]), "null");
    test.refuse("walletpassphrasechange", json!(["wrong", "new"]), -14, wrong);
    test.check("walletpassphrasechange", json!(["secret", "new"]), "null");
    test.check("walletpassphrase", json!(["new", 10]), "null");
    test.check("walletpassphrasechange", json!(["new", "new"]), "null");
    test.info(|info| assert!(!info.locked));
    test.refuse("walletpassphrasechange", json!(["wrong", "new"]), -14, wrong);
    test.info(|info| assert!(info.locked));
}

#[test]
fn walletpassphrase_and_walletpassphrasechange_hint_at_a_null_character_of_a_wrong_passphrase() {
    let test = Fixture::new();
    test.plugin.call("encryptwallet", json!(["se\0cret"])).unwrap();
    let refusal = |whose: &str, end: &str| {
        let what = if whose.is_empty() { "passphrase" } else { "old passphrase" };
        format!(
            "Error: The {whose}wallet passphrase entered is incorrect. It contains a null character (ie - a zero byte). If the {what} was set with a version of this software prior to 25.0, please try again with only the characters up to — but not including — the first null character.{end}"
        )
    };
    let again = " If this is successful, please set a new passphrase to avoid this issue in the future.";
    test.refuse("walletpassphrase", json!(["se\0", 10]), -14, &refusal("", again));
    test.refuse("walletpassphrasechange", json!(["se\0", "new"]), -14, &refusal("old ", ""));
    test.refuse("walletpassphrase", json!(["se", 10]), -14, "Error: The wallet passphrase entered was incorrect.");
    test.check("walletpassphrase", json!(["se\0cret", 10]), "null");
}

#[test]
fn walletpassphrase_and_its_kin_refuse_states_that_do_not_fit() {
    let test = Fixture::new();
    let unencrypted = |method: &str| format!("Error: running with an unencrypted wallet, but {method} was called.");
    test.refuse("walletlock", json!([]), -15, &unencrypted("walletlock"));
    test.refuse("walletpassphrase", json!(["", -1]), -15, &unencrypted("walletpassphrase"));
    test.refuse("walletpassphrasechange", json!(["", ""]), -15, &unencrypted("walletpassphrasechange"));
    test.info(|info| info.private_keys_enabled = false);
    let message = "Error: wallet does not contain private keys, nothing to encrypt.";
    test.refuse("encryptwallet", json!([""]), -16, message);
    test.info(|info| {
        info.private_keys_enabled = true;
        info.encrypted = true;
    });
    let message = "Error: running with an encrypted wallet, but encryptwallet was called.";
    test.refuse("encryptwallet", json!([""]), -15, message);
}

#[test]
fn walletpassphrase_and_its_kin_check_passphrases_and_timeouts() {
    let test = Fixture::new();
    test.refuse("encryptwallet", json!([""]), -8, "passphrase cannot be empty");
    test.info(|info| info.encrypted = true);
    test.refuse("walletpassphrase", json!(["", -1]), -8, "Timeout cannot be negative.");
    test.refuse("walletpassphrase", json!(["", 1]), -8, "passphrase cannot be empty");
    test.refuse("walletpassphrase", json!(["x", 1.5]), -1, "JSON integer out of range");
    test.refuse("walletpassphrasechange", json!(["new", ""]), -8, "passphrase cannot be empty");
    test.refuse("walletpassphrasechange", json!(["", "new"]), -8, "passphrase cannot be empty");
}

#[test]
fn encryptwallet_walletlock_and_walletpassphrasechange_are_refused_during_a_rescan() {
    let test = Fixture::new();
    let message = |what: &str| {
        format!(
            "Error: the wallet is currently being used to rescan the blockchain for related transactions. Please call `abortrescan` before {what}."
        )
    };
    test.info(|info| info.rescan = Some(RescanProgress { duration: 0, millionths: 0 }));
    test.refuse("encryptwallet", json!(["x"]), -4, &message("proceeding"));
    test.info(|info| info.encrypted = true);
    test.refuse("walletlock", json!([]), -4, &message("locking the wallet"));
    test.refuse("walletpassphrasechange", json!(["a", "b"]), -4, &message("changing the passphrase"));
}

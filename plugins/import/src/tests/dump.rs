//! importwallet.

use bitcoin::ScriptBuf;
use outrigger_sdk::service::events::RescanOutcome;
use outrigger_sdk::wire::Secret;

use super::*;

/// A file as bitcoind writes it.
const DUMP: &str = "# Wallet dump created by Bitcoin Core\n\
    # extended private masterkey: tprv8ZgxMBicQKsPd7Uf69XL1XwhmjHopUGep8GuEiJDZmbQz6o58LninorQAfcKZWARbtRtfnLcJ5MQ2AtHcQJCCRUcMRvmDUjyEmNUWwx8UbK\n\n\
    cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87JcbXMTcA 2017-07-14T02:40:00Z label=a%20b # addr=x hdkeypath=m/0'\n\
    cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87K7XCyj5v 2017-07-14T02:40:00Z reserve=1 # addr=y\n\
    notakey 2017-07-14T02:40:00Z label= # addr=z\n\
    51 0 script=1 # addr=p\n\
    52 2017-07-14T02:40:01Z script=1 # addr=q\n\
    alone\n\
    # End of dump\n";

fn harness(dump: &str) -> Harness {
    let harness = Harness::new();
    harness.wallet(|wallet| wallet.dumps.insert("/dump".into(), Secret::new(dump.into())));
    harness
}

/// The answer of a call whose rescan ends well, and from when it scanned.
fn ended(harness: &Harness) -> (Result<String, outrigger_sdk::RpcError>, Option<u64>) {
    let call = harness.plugin.begin("importwallet", json!(["/dump"]));
    let from_time = harness.wallet(|wallet| wallet.rescan).and_then(|(_, from_time)| from_time);
    harness.finish_rescan(RescanOutcome::Complete);
    (call.json().unwrap(), from_time)
}

#[test]
fn importwallet_takes_keys_and_scripts_with_their_birth_times() {
    let harness = harness(DUMP);
    assert_eq!(ended(&harness), (Ok("null".into()), Some(1_500_000_000)));
    let told: Vec<_> = harness.wallet(|wallet| {
        let keys = wallet.imports.iter().map(|import| match import {
            Import::Keys { keys } => keys,
            _ => panic!("keys"),
        });
        let wifs = |keys: &KeysImport| keys.private_keys.iter().map(|key| key.expose().to_owned()).collect::<Vec<_>>();
        keys.map(|keys| (keys.timestamp, wifs(keys), keys.scripts.clone(), keys.internal)).collect()
    });
    let script = |byte: u8| vec![ScriptBuf::from_bytes(vec![byte])];
    let keys = vec![K_WIF.to_owned(), K2_WIF.to_owned()];
    let expected = [
        (1, vec![], script(0x51), true),
        (1_500_000_000, keys, vec![], true),
        (1_500_000_001, vec![], script(0x52), true),
    ];
    assert_eq!(told, expected);
}

#[test]
fn importwallet_rescans_from_the_tip_where_no_birth_time_counts() {
    assert_eq!(ended(&harness("51 0 script=1\n")), (Ok("null".into()), Some(TIP_TIME.into())));
    let unknown = harness(&format!("{K_WIF} unknown label=\n"));
    assert_eq!(ended(&unknown), (Ok("null".into()), Some(0)));
}

#[test]
fn importwallet_is_refused_in_bitcoinds_words() {
    let refused = |harness: &Harness, file: &str, code: i32, message: &str| {
        let error = harness.plugin.call("importwallet", json!([file])).unwrap_err();
        assert_eq!((error.code.0, error.message.as_str()), (code, message));
    };
    let harness = harness(DUMP);
    refused(&harness, "/none", -8, "Cannot open wallet dump file");
    harness.wallet(|wallet| wallet.info.private_keys_enabled = false);
    refused(&harness, "/dump", -4, "Importing wallets is disabled when private keys are disabled");
    harness.wallet(|wallet| {
        wallet.info.private_keys_enabled = true;
        wallet.outcomes.push_back(ImportOutcome::NotStored);
    });
    let error = ended(&harness).0.unwrap_err();
    assert_eq!((error.code.0, error.message.as_str()), (-4, "Error adding some keys/scripts to wallet"));
    harness.wallet(|wallet| wallet.info.locked = true);
    let message = "Error: Please enter the wallet passphrase with walletpassphrase first.";
    refused(&harness, "/none", -13, message);
    harness.wallet(|wallet| wallet.info.kind = WalletKind::Descriptors);
    refused(&harness, "/none", -4, "Only legacy wallets are supported by this command");
}

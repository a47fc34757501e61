//! Tests wallets' policies (`policy/1`): the queries that they receive, and that no service bypasses them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a broken expectation fails the test")]

use std::sync::{Arc, Mutex};

use bitcoin::absolute::LockTime;
use bitcoin::bip32::{DerivationPath, Xpriv, Xpub};
use bitcoin::consensus::serialize;
use bitcoin::secp256k1::Secp256k1;
use bitcoin::transaction::Version;
use bitcoin::{Amount, OutPoint, ScriptBuf, Transaction, TxIn, TxOut};
use outrigger_sdk::RpcError;
use outrigger_service::policy::{Act, JudgedTransaction, Judgement, Owner, Policy, PolicyQuery, SavedPolicy};
use outrigger_service::signer::{Scheme, SignBatch, SignRequest};
use outrigger_service::wallet::{AddressType, CreateOptions, Import, KeysImport};
use outrigger_service::wire::{Blob, Secret};
use outrigger_service::{ErrorKind, Scope};
use outrigger_testing::{ANYONE, TestHost};

const KEY: &str =
    "tprv8ZgxMBicQKsPd7Uf69XL1XwhmjHopUGep8GuEiJDZmbQz6o58LninorQAfcKZWARbtRtfnLcJ5MQ2AtHcQJCCRUcMRvmDUjyEmNUWwx8UbK";

/// A policy that records its queries, and refuses while it has a reason.
#[derive(Clone, Default)]
struct Watch {
    seen: Arc<Mutex<Vec<PolicyQuery>>>,
    reason: Arc<Mutex<Option<String>>>,
    restored: Arc<Mutex<Vec<SavedPolicy>>>,
}

impl Watch {
    fn refuse(&self, reason: Option<&str>) {
        *self.reason.lock().unwrap() = reason.map(str::to_owned);
    }

    fn take(&self) -> Vec<PolicyQuery> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

impl Policy for Watch {
    fn judge(&self, _: Scope, query: &PolicyQuery) -> Result<Judgement, RpcError> {
        self.seen.lock().unwrap().push(query.clone());
        Ok(match self.reason.lock().unwrap().clone() {
            Some(reason) => Judgement::Refuse { reason },
            None => Judgement::Allow,
        })
    }

    fn save(&self, _: Scope, wallet: &String) -> Result<Option<Blob>, RpcError> {
        Ok(Some(Blob(format!("kept of {wallet}").into_bytes())))
    }

    fn restore(&self, _: Scope, saved: &SavedPolicy) -> Result<(), RpcError> {
        if let Some(reason) = self.reason.lock().unwrap().clone() {
            return Err(RpcError::wallet(reason));
        }
        self.restored.lock().unwrap().push(saved.clone());
        Ok(())
    }
}

/// A host with a wallet under a policy, the policy, and a mature coin of the wallet.
fn guarded() -> (TestHost, Watch, (OutPoint, TxOut)) {
    let (mut host, watch) = (TestHost::new(), Watch::default());
    host.guard(&["guarded*"], watch.clone());
    host.create_wallet("guarded", |_| {}).unwrap();
    let script = new_script(&host, "guarded");
    host.mine_to(&script);
    host.mine(100);
    let coin = {
        let (scope, _call) = host.open_call(Some("guarded"));
        host.handle().wallet.coins(scope, false, None, 1).unwrap().coins.remove(0)
    };
    (host, watch, (coin.outpoint, TxOut { value: coin.value, script_pubkey: coin.script }))
}

fn new_script(host: &TestHost, wallet: &str) -> ScriptBuf {
    let (scope, _call) = host.open_call(Some(wallet));
    host.handle().book.new_address(scope, AddressType::Bech32, false, None).unwrap()
}

/// A request to sign a transaction that spends a P2WPKH coin and has these outputs.
fn batch(host: &TestHost, wallet: &str, coin: &(OutPoint, TxOut), outputs: Vec<TxOut>, sighash: u8) -> SignBatch {
    let (outpoint, output) = coin;
    let transaction = Transaction {
        version: Version::TWO,
        lock_time: LockTime::ZERO,
        input: vec![TxIn { previous_output: *outpoint, ..TxIn::default() }],
        output: outputs,
    };
    let script = output.script_pubkey.clone();
    let (scope, _call) = host.open_call(Some(wallet));
    let info = host.handle().wallet.scripts(scope, vec![script.clone()]).unwrap().remove(0).unwrap();
    let scheme = Scheme::SegwitV0 { script_code: script.p2wpkh_script_code().unwrap() };
    let public_key = info.origins[0].public_key.clone();
    SignBatch {
        transaction: Blob(serialize(&transaction)),
        spent: vec![None],
        scripts: vec![script],
        requests: vec![SignRequest { input: 0, public_key, scheme, sighash, annex: None }],
    }
}

fn paid(sat: u64, script_pubkey: ScriptBuf) -> TxOut {
    TxOut { value: Amount::from_sat(sat), script_pubkey }
}

fn signed(query: &PolicyQuery) -> &JudgedTransaction {
    match &query.act {
        Act::Sign { transaction } => transaction,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_policy_sees_whose_each_output_is_and_what_is_given_away() {
    let (host, watch, coin) = guarded();
    let (change, own) = (new_script(&host, "guarded"), new_script(&host, "guarded"));
    let (scope, _call) = host.open_call(Some("guarded"));
    host.handle().book.set_label(scope, own.clone(), "savings".into()).unwrap();
    let value = coin.1.value.to_sat();
    let outputs = vec![paid(1_000, ScriptBuf::from(ANYONE.to_vec())), paid(2_000, own), paid(value - 4_000, change)];
    for (sighash, gives, committed) in
        [(1, 2_000, [true; 3]), (3, value, [true, false, false]), (0x81, value, [false; 3])]
    {
        let batch = batch(&host, "guarded", &coin, outputs.clone(), sighash);
        assert!(host.handle().signer.sign(scope, batch).unwrap()[0].is_some());
        let [query] = &watch.take()[..] else { panic!("asked once") };
        assert_eq!((query.wallet.as_str(), query.method.as_str()), ("guarded", ""));
        let seen = signed(query);
        assert_eq!(seen.gives, Some(Amount::from_sat(gives)), "{sighash}");
        let owners: Vec<Owner> = seen.outputs.iter().map(|output| output.owner).collect();
        assert_eq!(owners, [Owner::Foreign, Owner::Own, Owner::Change]);
        assert_eq!(seen.outputs.iter().map(|output| output.committed).collect::<Vec<_>>(), committed);
        let input = &seen.inputs[0];
        assert_eq!((input.verified, input.own, &input.sighashes[..]), (true, true, &[sighash][..]));
        assert_eq!((input.outpoint, input.output.as_ref()), (coin.0, Some(&coin.1)));
    }
    // The caller states an amount that nothing proves.
    let stranger = (OutPoint::new(coin.0.txid, 7), coin.1.clone());
    let mut unknown = batch(&host, "guarded", &stranger, outputs, 1);
    unknown.transaction = {
        let mut transaction: Transaction = bitcoin::consensus::deserialize(&unknown.transaction).unwrap();
        transaction.input[0].previous_output.txid = "11".repeat(32).parse().unwrap();
        Blob(serialize(&transaction))
    };
    unknown.spent = vec![Some(coin.1.clone())];
    assert!(host.handle().signer.sign(scope, unknown).unwrap()[0].is_some());
    let seen = watch.take();
    assert_eq!((signed(&seen[0]).gives, signed(&seen[0]).inputs[0].verified), (None, false));
}

type Attempt<'a> = Box<dyn Fn() -> outrigger_service::Result<()> + 'a>;

#[test]
fn a_refusal_keeps_a_wallet_from_signing_sending_and_giving_anything_out() {
    let (host, watch, coin) = guarded();
    let (handle, (scope, _call)) = (host.handle(), host.open_call(Some("guarded")));
    let batch = batch(&host, "guarded", &coin, vec![paid(1_000, ScriptBuf::from(ANYONE.to_vec()))], 1);
    let raw = batch.transaction.clone();
    let public_key = batch.requests[0].public_key.clone();
    let script = coin.1.script_pubkey.clone();
    let file = |name: &str| host.path(name).display().to_string();
    watch.refuse(Some("It is Sunday"));
    let acts: [(&str, Attempt<'_>); 11] = [
        ("Sign", Box::new(|| handle.signer.sign(scope, batch.clone()).map(drop))),
        (
            "SignMessage",
            Box::new(|| handle.signer.sign_message(scope, script.clone(), public_key.clone(), "text".into()).map(drop)),
        ),
        ("Send", Box::new(|| handle.pay.send(scope, raw.clone(), Vec::new()).map(drop))),
        ("Send", Box::new(|| handle.pay.replace(scope, coin.0.txid, raw.clone(), Vec::new()).map(drop))),
        ("GiveKeys", Box::new(|| handle.keys.private_descriptors(scope).map(drop))),
        ("GiveKeys", Box::new(|| handle.keys.private_imported_descriptors(scope).map(drop))),
        ("GiveKeys", Box::new(|| handle.keys.private_hd_keys(scope).map(drop))),
        ("Backup", Box::new(|| handle.admin.backup(scope, file("backup")))),
        ("Export", Box::new(|| handle.admin.export_watch_only(scope, file("export")))),
        ("Import", Box::new(|| handle.import.import(scope, Vec::new()).map(drop))),
        ("Import", Box::new(|| handle.import.add_confirmed(scope, raw.clone(), host.node.tip().hash, 0))),
    ];
    for (name, act) in &acts {
        let refused = act().unwrap_err();
        assert_eq!((refused.kind, &*refused.detail), (ErrorKind::Refused, "The policy 'policy' refuses: It is Sunday"));
        let seen = watch.take();
        assert!(format!("{:?}", seen[0].act).starts_with(name), "{seen:?}");
        assert_eq!(seen.len(), 1);
    }
    assert!(handle.keys.private_key(scope, [0; 20]).is_err());
    assert!(!host.path("backup").exists() && !host.path("export").exists());
    watch.refuse(None);
    assert_eq!(acts[7].1(), Ok(()));
    assert!(host.path("backup").exists());
}

#[test]
fn copies_of_a_guarded_wallet_are_guarded_whatever_their_names() {
    let (mut host, watch, coin) = guarded();
    let (scope, call) = host.open_call(Some("guarded"));
    let handle = host.handle();
    let file = host.path("backup").display().to_string();
    handle.admin.backup(scope, file.clone()).unwrap();
    let descriptors = handle.keys.private_descriptors(scope).unwrap();
    drop(call);
    handle.admin.restore(Scope::NONE, "restored".into(), file.clone(), None).unwrap();
    let saved = watch.restored.lock().unwrap().clone();
    assert_eq!(saved, [SavedPolicy { wallet: "restored".into(), state: Blob(b"kept of guarded".to_vec()) }]);
    host.create_wallet("imported", |options| options.blank = true).unwrap();
    let wpkh = descriptors.iter().find(|one| one.text.expose().starts_with("wpkh(") && one.internal == Some(false));
    let text = wpkh.unwrap().text.expose().to_owned();
    let root = text.split_once('#').unwrap().0.to_owned();
    // Before the import, no policy applies to the wallet.
    watch.refuse(Some("no"));
    host.create_wallet("free", |_| {}).unwrap();
    assert!(handle.keys.private_descriptors(host.open_call(Some("imported")).0).is_ok());
    host.import("imported", text, false);
    let check = |host: &TestHost| {
        for (wallet, is_guarded) in [("restored", true), ("imported", true), ("free", false)] {
            let (scope, _call) = host.open_call(Some(wallet));
            let outcome = host.handle().keys.private_descriptors(scope);
            assert_eq!(outcome.is_err(), is_guarded, "{wallet}");
            if is_guarded {
                let signed = host.handle().signer.sign(scope, batch(host, wallet, &coin, Vec::new(), 1));
                assert_eq!(signed.unwrap_err().detail, "The policy 'policy' refuses: no", "{wallet}");
            }
        }
    };
    check(&host);
    // The policies of the copies are stored, so the original wallet need not be loaded.
    for wallet in ["guarded", "restored", "imported"] {
        handle.admin.unload(Scope::NONE, wallet.into(), None).unwrap();
    }
    for wallet in ["restored", "imported"] {
        handle.admin.load(Scope::NONE, wallet.into(), Some(true)).unwrap();
    }
    handle.admin.load(Scope::NONE, "free".into(), Some(true)).unwrap_err();
    check(&host);
    // The same keys in another script type.
    host.create_wallet("other", |options| options.blank = true).unwrap();
    host.import("other", root.replacen("wpkh(", "pkh(", 1), false);
    assert!(handle.keys.private_descriptors(host.open_call(Some("other")).0).is_err());
    // A restore that a policy refuses leaves nothing.
    let refused = handle.admin.restore(Scope::NONE, "again".into(), file, None).unwrap_err();
    assert_eq!(refused.detail, "no");
    assert!(!handle.admin.directory(Scope::NONE).unwrap().contains(&"again".to_owned()));
    host.restart(|_| {});
    watch.take();
}

#[test]
fn copies_of_keys_along_a_path_and_of_derived_keys_are_guarded() {
    let (host, watch, _) = guarded();
    let sealed = |options: &mut CreateOptions| options.passphrase = Secret::new("open".into());
    host.create_wallet("guarded sealed", sealed).unwrap();
    let texts = |wallet: &str| host.handle().keys.private_descriptors(host.open_call(Some(wallet)).0);
    host.handle().admin.unlock(host.open_call(Some("guarded sealed")).0, Secret::new("open".into()), 60).unwrap();
    let text = texts("guarded sealed").unwrap().remove(0).text.expose().to_owned();
    let of_sealed: Xpriv = text.split(['(', '/']).find_map(|part| part.parse().ok()).unwrap();
    let root: Xpriv = KEY.parse().unwrap();
    let other = Xpub::from_priv(&Secp256k1::new(), &of_sealed);
    for text in [
        format!("wpkh({KEY}/84h/1h/0h/0/*)"),
        format!("wpkh({KEY}/8h/*h)"),
        format!("wsh(multi(1,{KEY}/48h/1h/7h/0/*,{other}/0/*))"),
        format!("tr({KEY}/86h/*)"),
    ] {
        host.import("guarded", text, false);
    }
    watch.refuse(Some("no"));
    let at =
        |key: &Xpriv, path: &str| key.derive_priv(&Secp256k1::new(), &path.parse::<DerivationPath>().unwrap()).unwrap();
    let wif = |path: &str| at(&root, path).to_priv().to_wif();
    for (number, (text, is_copy)) in [
        (format!("wpkh({}/*)", at(&root, "84h/1h/0h/0")), true),
        (format!("tr({}/1h/5h/*)", at(&root, "84h")), true),
        (format!("wpkh({}/5/*)", at(&root, "48h/1h/7h")), true),
        (format!("pkh({}/3h/*)", at(&of_sealed, "44h")), true),
        (format!("wpkh({})", wif("84h/1h/0h/0/3")), true),
        (format!("wpkh({})", at(&root, "84h/1h/0h/0/3")), true),
        (format!("wpkh({})", wif("8h/3h")), true),
        (format!("wsh(multi(1,{},{other}/*))", wif("86h/4")), true),
        (format!("pkh({})", wif("48h/1h/7h/0/2")), true),
        (format!("wpkh({}/*)", at(&root, "3h")), false),
        (format!("wpkh({})", wif("3h/1")), false),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("copy {number}");
        host.create_wallet(&name, |options| options.blank = true).unwrap();
        host.import(&name, text, false);
        assert_eq!(texts(&name).is_err(), is_copy, "{name}");
    }
    host.create_wallet("single", |options| options.blank = true).unwrap();
    let keys =
        KeysImport { private_keys: vec![Secret::new(wif("84h/1h/0h/0/4"))], timestamp: 1, ..KeysImport::default() };
    host.handle().import.import(host.open_call(Some("single")).0, vec![Import::Keys { parts: vec![keys] }]).unwrap();
    assert_eq!(texts("single").unwrap_err().detail, "The policy 'policy' refuses: no");
}

#[test]
fn a_wallet_that_is_loaded_is_guarded_once_another_with_its_key_is() {
    let (host, watch, _) = guarded();
    let text = |path: &str| format!("wpkh({KEY}/{path}/*)");
    host.create_wallet("early", |options| options.blank = true).unwrap();
    host.import("early", text("1"), false);
    let keys = || host.handle().keys.private_descriptors(host.open_call(Some("early")).0).map(drop);
    assert_eq!(keys(), Ok(()));
    host.import("guarded", text("2"), false);
    watch.refuse(Some("no"));
    assert_eq!(keys().unwrap_err().detail, "The policy 'policy' refuses: no");
}

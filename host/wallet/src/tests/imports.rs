use std::str::FromStr as _;
use std::sync::atomic::Ordering;

use bitcoin::bip32::{Xpriv, Xpub};
use bitcoin::secp256k1::Secp256k1;
use bitcoin::{Network, ScriptBuf};
use outrigger_descriptor::{Checksum, Descriptor};
use outrigger_service::ErrorKind;
use outrigger_service::wallet::{AddressType, Import, ImportOutcome, KeyOrigin, Ownership, ScriptInfo};
use outrigger_service::wire::{Blob, Secret};
use outrigger_testing::made::{p2pkh, p2wpkh, public, wif};

use super::rescans::scripts_of;
use super::{Harness, IMPORTED, XPRV, descriptor, elsewhere, keys, kind_of, spend};

impl Harness {
    fn import(&self, imports: Vec<Import>) -> Vec<ImportOutcome> {
        self.view().wallet().import(imports).unwrap()
    }

    fn import_one(&self, import: Import) -> ImportOutcome {
        self.import(vec![import]).remove(0)
    }

    fn script(&self, script: &ScriptBuf) -> Option<ScriptInfo> {
        self.view().scripts(vec![script.clone()]).unwrap().remove(0)
    }

    fn ownership(&self, script: &ScriptBuf) -> Ownership {
        self.script(script).map_or(Ownership::None, |info| info.ownership)
    }

    fn watching() -> Self {
        let harness = Self::new();
        harness.create("w", |options| options.disable_private_keys = true);
        harness
    }
}

#[test]
fn import_refuses_what_the_wallet_may_not_hold() {
    let harness = Harness::watching();
    let script = p2pkh(1);
    let import = keys(|keys| (keys.script_pubkeys, keys.private_keys) = (vec![script.clone()], vec![wif(1)]));
    assert_eq!(harness.import_one(import), ImportOutcome::PrivateKeysDisabled);
    let private = descriptor(&format!("pkh({})", wif(1).expose()), |_| {});
    assert_eq!(harness.import_one(private.clone()), ImportOutcome::PrivateKeysDisabled);
    assert_eq!(harness.ownership(&script), Ownership::None);

    let harness = Harness::blank();
    let outcomes = harness.import(vec![
        descriptor(&format!("pkh({})", public(1)), |_| {}),
        descriptor("nonsense(1)", |_| {}),
        descriptor(&format!("multi(1,{},{})", public(2), wif(1).expose()), |import| import.active = true),
        private,
    ]);
    assert_eq!(outcomes[0], ImportOutcome::NoPrivateKeys);
    assert!(matches!(outcomes[1], ImportOutcome::BadDescriptor { .. }));
    assert_eq!(outcomes[2], ImportOutcome::Imported { missing_private_keys: true, unknown_output_type: true });
    assert_eq!(outcomes[3], IMPORTED);
    assert_eq!(harness.view().descriptors(false).unwrap().len(), 2);
    assert!(harness.view().info().unwrap().blank, "imports leave the flag of createwallet");
}

#[test]
fn descriptors_that_need_a_missing_key_are_not_expandable() {
    let harness = Harness::watching();
    let master = Xpriv::from_str(XPRV).unwrap();
    let xpub = Xpub::from_priv(&Secp256k1::new(), &master);
    let outcome =
        |path| harness.import_one(descriptor(&format!("wpkh({xpub}{path}/*)"), |import| import.range = Some((0, 5))));
    assert_eq!(outcome("/0h"), ImportOutcome::NotExpandable);
    assert_eq!(outcome("/0"), IMPORTED);
}

#[test]
fn known_descriptors_are_replaced_and_never_lose_a_script() {
    let harness = Harness::blank();
    let text = format!("wpkh({XPRV}/84h/1h/0h/0/*)");
    let import = |begin, end, active| {
        descriptor(&text, |import| (import.range, import.active, import.timestamp) = (Some((begin, end)), active, 500))
    };
    assert_eq!(harness.import_one(import(5, 30, true)), IMPORTED);
    let info = &harness.view().descriptors(false).unwrap()[0];
    assert_eq!((info.range, info.next_index, info.active, info.timestamp), (Some((5, 30)), 5, true, 500));
    assert_eq!(harness.import_one(import(6, 40, true)), ImportOutcome::RangeShrinks { begin: 5, end: 30 });
    assert_eq!(harness.import_one(import(5, 29, true)), ImportOutcome::RangeShrinks { begin: 5, end: 30 });
    // Indexes below the range are also ours.
    let text_of = harness.view().descriptors(false).unwrap()[0].text.expose().to_owned();
    let at = scripts_of(&text_of);
    assert_eq!(harness.ownership(&at(0)), Ownership::Spendable);
    assert_eq!(harness.ownership(&at(30)), Ownership::Spendable);
    assert_eq!(harness.ownership(&at(31)), Ownership::None);
    assert_eq!(harness.view().wallet().new_address(AddressType::Bech32, false, None).unwrap(), at(5));

    assert_eq!(harness.import_one(import(0, 45, false)), IMPORTED);
    let infos = harness.view().descriptors(false).unwrap();
    assert_eq!((infos.len(), infos[0].range, infos[0].active, infos[0].next_index), (1, Some((0, 45)), false, 0));
    let texts = harness.view().descriptor_texts(&[0, 1]).unwrap();
    assert!(matches!(texts.as_slice(), [Some(_), None]), "it keeps its number");
    assert_eq!(harness.ownership(&at(45)), Ownership::Spendable);
    let refused = harness.view().wallet().new_address(AddressType::Bech32, false, None);
    assert_eq!(kind_of(refused), ErrorKind::Refused);
}

#[test]
fn combo_labels_all_its_addresses() {
    let harness = Harness::blank();
    let text = format!("combo({})", wif(3).expose());
    harness.import_one(descriptor(&text, |import| import.label = Some("all".into())));
    let wpkh = p2wpkh(3);
    for script in [p2pkh(3), wpkh.clone(), ScriptBuf::new_p2sh(&wpkh.script_hash())] {
        let info = harness.script(&script).unwrap();
        assert_eq!((info.label.as_deref(), info.change), (Some("all"), false));
    }
    // An import of keys reports a script of a descriptor as already owned.
    let again = keys(|keys| (keys.script_pubkeys, keys.private_keys) = (vec![wpkh.clone()], vec![wif(3)]));
    assert_eq!(harness.import_one(again), ImportOutcome::AlreadyOwned { script: wpkh });
}

#[test]
fn each_of_many_keys_has_its_own_origin_and_the_first_of_two_counts() {
    let harness = Harness::blank();
    let key = |number: u8| Blob(public(number).to_bytes());
    let origin =
        |number: u8| KeyOrigin { public_key: key(number), fingerprint: [number; 4], path: format!("m/{number}") };
    let other = KeyOrigin { public_key: key(1), fingerprint: [0xff; 4], path: "m/9".into() };
    harness.import_one(keys(|keys| {
        keys.script_pubkeys = (1..=60).map(p2wpkh).collect();
        keys.public_keys = (1..=60).map(key).collect();
        keys.origins = (1..=60).map(origin).chain([other]).collect();
    }));
    for number in 1..=60 {
        let info = harness.script(&p2wpkh(number)).unwrap();
        assert_eq!(info.origins, [origin(number)]);
    }
}

#[test]
fn the_marks_of_hardened_steps_do_not_make_another_descriptor() {
    let harness = Harness::blank();
    harness.import_one(descriptor(&format!("wpkh([01020304/84h]{XPRV}/0h/*)"), |import| import.range = Some((0, 9))));
    for text in [format!("wpkh([01020304/84']{XPRV}/0'/*)"), format!("wpkh([01020304/84h]{XPRV}/0'/*)")] {
        let smaller = descriptor(&text, |import| import.range = Some((0, 3)));
        assert!(matches!(harness.import_one(smaller), ImportOutcome::RangeShrinks { begin: 0, .. }));
        let larger = descriptor(&text, |import| import.range = Some((0, 60)));
        assert_eq!(harness.import_one(larger), IMPORTED);
        assert_eq!(harness.view().descriptors(false).unwrap().len(), 1);
    }
}

#[test]
fn keys_within_miniscript_are_told_as_given_before_release_31() {
    let harness = Harness::blank();
    let text = |mark: &str| {
        format!("tr([01020304/84{mark}]{XPRV}/0{mark}/*,and_v(v:pk([01020304/85{mark}]{XPRV}/1{mark}/*),older(5)))")
    };
    let mut end = 9;
    let mut told = |mark: &str, release: u32| {
        harness.node.release.store(release, Ordering::Relaxed);
        // A larger range each time, since a smaller one is refused.
        end += 100;
        assert_eq!(harness.import_one(descriptor(&text(mark), |import| import.range = Some((0, end)))), IMPORTED);
        let infos = harness.view().descriptors(false).unwrap();
        assert_eq!(infos.len(), 1, "marks make no other descriptor");
        let told = infos[0].text.expose().to_owned();
        let at_0 = &Descriptor::parse(&told, Network::Regtest, Checksum::Required).unwrap()[0];
        assert_eq!((at_0.key_count(), told.starts_with("tr([01020304/84h/0h]tpub")), (2, true), "{told}");
        told
    };
    let root = Xpub::from_priv(&Secp256k1::new(), &Xpriv::from_str(XPRV).unwrap());
    for (mark, release) in [("h", 0), ("'", 0), ("'", 29), ("h", 30)] {
        let told = told(mark, release);
        assert!(told.contains(&format!("pk([01020304/85{mark}]{root}/1{mark}/*)")), "{release}: {told}");
    }
    for mark in ["h", "'"] {
        let told = told(mark, 31);
        assert!(told.contains("pk([01020304/85h/1h]tpub"), "{told}");
    }
}

#[test]
fn the_parts_of_a_request_are_stored_together_or_not_at_all() {
    let harness = Harness::blank();
    let text = |path: &str| format!("wpkh({XPRV}/{path}/*)");
    harness.import_one(descriptor(&text("0"), |import| import.range = Some((0, 60))));
    let both = descriptor(&text("<7;0>"), |import| import.range = Some((0, 3)));
    assert!(matches!(harness.import_one(both), ImportOutcome::RangeShrinks { begin: 0, end: 60 }));
    assert_eq!(harness.view().descriptors(false).unwrap().len(), 1);

    let of = |number: u8, wif: Vec<Secret>| {
        let import = keys(|keys| (keys.script_pubkeys, keys.private_keys) = (vec![p2wpkh(number)], wif));
        let Import::Keys { parts } = import else { panic!("keys") };
        parts
    };
    harness.import_one(Import::Keys { parts: of(2, vec![wif(2)]) });
    let parts = Import::Keys { parts: [of(1, vec![]), of(2, vec![])].concat() };
    let known = harness.script(&p2wpkh(1)).is_some();
    assert_eq!(harness.import_one(parts), ImportOutcome::AlreadyOwned { script: p2wpkh(2) });
    assert!(!known && harness.script(&p2wpkh(1)).is_none());
}

#[test]
fn next_index_ends_at_the_last_index() {
    let harness = Harness::blank();
    let last = i32::MAX.unsigned_abs();
    let text = format!("wpkh({XPRV}/0/*)");
    let import = descriptor(&text, |import| {
        (import.range, import.next_index, import.active) = (Some((last - 5, last)), Some(last - 1), true);
    });
    assert_eq!(harness.import_one(import), IMPORTED);
    let next = || harness.view().descriptors(false).unwrap()[0].next_index;
    let draw = || harness.view().wallet().new_address(AddressType::Bech32, false, None);
    assert!(draw().is_ok() && next() == last);
    assert_eq!((kind_of(draw()), next()), (ErrorKind::KeypoolRanOut, last));
    harness.accept(&spend(&[elsewhere(1)], &[(&scripts_of(&text)(last), 70_000)]));
    assert_eq!((harness.coins().len(), next()), (1, last), "a payment to the last index is seen");
}

#[test]
fn the_cost_of_a_distant_range_depends_only_on_its_length() {
    let harness = Harness::blank();
    let far = descriptor(&format!("wpkh({XPRV}/0/*)"), |import| import.range = Some((5_000_000, 5_000_010)));
    assert_eq!(harness.import_one(far), IMPORTED);
    let range = &harness.view().descriptors(false).unwrap()[0].range;
    assert!(range.is_some_and(|(begin, _)| begin == 5_000_000), "{range:?}");
}

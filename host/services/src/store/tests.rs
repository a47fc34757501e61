use outrigger_service::store::StoreRow;

use super::*;

const MIB: u64 = 1 << 20;

fn blob(bytes: &[u8]) -> Blob {
    Blob(bytes.to_vec())
}

fn put(key: &[u8], value: &[u8]) -> StoreChange {
    StoreChange { puts: vec![StoreRow { key: blob(key), value: blob(value) }], ..StoreChange::default() }
}

fn keys(service: &StoreService, range: KeyRange, limit: u32, reverse: bool) -> (Vec<Vec<u8>>, bool) {
    let rows = service.range(Scope::NONE, range, limit, reverse).unwrap().read().unwrap();
    (rows.rows.into_iter().map(|row| row.key.0).collect(), rows.more)
}

fn stores() -> (tempfile::TempDir, Stores) {
    let folder = tempfile::tempdir().unwrap();
    let stores = Stores::new(folder.path().to_owned());
    (folder, stores)
}

#[test]
fn a_store_keeps_rows_in_order_and_its_version() {
    let (folder, stores) = stores();
    let service = stores.of("acme", 1, 16 * MIB);
    let ranges = |range: KeyRange, reverse| keys(&service, range, 2, reverse);
    assert_eq!(ranges(KeyRange::default(), false), (vec![], false));
    let puts = [b"a", b"b", b"c"].map(|key| StoreRow { key: blob(key), value: blob(b"1") }).to_vec();
    service.commit(Scope::NONE, StoreChange { puts, version: Some(3), durable: true, ..Default::default() }).unwrap();
    let key = |byte: u8| vec![byte];
    assert_eq!(ranges(KeyRange::default(), false), (vec![key(b'a'), key(b'b')], true));
    assert_eq!(ranges(KeyRange::default(), true), (vec![key(b'c'), key(b'b')], true));
    let from = KeyRange { from: Some(blob(b"b")), to: None };
    assert_eq!(ranges(from.clone(), false), (vec![key(b'b'), key(b'c')], false));
    assert_eq!(ranges(KeyRange { from: None, to: Some(blob(b"b")) }, true), (vec![key(b'a')], false));
    // A commit deletes ranges, then keys, and then stores new rows.
    let change = StoreChange { deleted_ranges: vec![from], deletes: vec![blob(b"a")], ..put(b"c", b"2") };
    service.commit(Scope::NONE, change).unwrap();
    let values = service.get(Scope::NONE, [b"c", b"a"].map(|key| blob(key)).to_vec()).unwrap();
    assert_eq!(values, [Some(blob(b"2")), None]);
    drop((service, stores));
    let again = Stores::new(folder.path().to_owned()).of("acme", 1, MIB);
    assert_eq!((keys(&again, KeyRange::default(), 9, false).0, again.version(Scope::NONE)), (vec![key(b'c')], Ok(3)));
}

#[test]
fn plugins_have_stores_of_their_own() {
    let (_folder, stores) = stores();
    let [one, other] = ["one", "other"].map(|plugin| stores.of(plugin, 1, MIB));
    one.commit(Scope::NONE, put(b"k", b"v")).unwrap();
    assert_eq!(other.get(Scope::NONE, vec![blob(b"k")]), Ok(vec![None]));
}

#[test]
fn a_commit_beyond_the_bound_changes_nothing_and_a_shrinking_one_succeeds() {
    let (_folder, stores) = stores();
    let service = stores.of("acme", 1, MIB);
    let large = vec![7; 900 << 10];
    service.commit(Scope::NONE, put(b"large", &large)).unwrap();
    assert!(stores.open.lock()["acme"].is_nearly_full.load(Ordering::Relaxed));
    let change = StoreChange {
        deletes: vec![blob(b"large")],
        version: Some(9),
        ..put(b"larger", &[large.clone(), large].concat())
    };
    let refused = service.commit(Scope::NONE, change).unwrap_err();
    let text = "the store of the plugin 'acme' may take 1 MiB (max_store_mib), so nothing was stored";
    assert_eq!(refused, ServiceError::new(ErrorKind::Refused, text));
    assert_eq!(
        (keys(&service, KeyRange::default(), 9, false).0, service.version(Scope::NONE)),
        (vec![b"large".to_vec()], Ok(0))
    );
    // The operator lowers the bound.
    let service = stores.of("acme", 2, MIB / 2);
    assert_eq!(service.commit(Scope::NONE, put(b"more", &[1; 100_000])).unwrap_err().kind, ErrorKind::Refused);
    let shrink = StoreChange { deleted_ranges: vec![KeyRange::default()], ..StoreChange::default() };
    service.commit(Scope::NONE, shrink).unwrap();
    let StoreUsage { bytes, bound } = service.usage(Scope::NONE).unwrap();
    assert!(bytes < 10_000 && bound == MIB / 2, "{bytes} {bound}");
    assert!(!stores.open.lock()["acme"].is_nearly_full.load(Ordering::Relaxed));
}

#[test]
fn the_instance_that_serves_is_the_only_writer() {
    let (_folder, stores) = stores();
    let writes = |service: &StoreService| match service.commit(Scope::NONE, put(b"k", b"v")) {
        Ok(()) => true,
        Err(error) => {
            assert_eq!(error.kind, ErrorKind::Stale);
            false
        }
    };
    let first = stores.of("acme", 1, MIB);
    assert!(writes(&first), "in its start");
    stores.serving(&[("acme", 1), ("other", 7)]);
    let second = stores.of("acme", 2, MIB);
    assert!(writes(&first) && !writes(&second), "while the second one starts");
    stores.serving(&[("acme", 2)]);
    assert!(!writes(&first) && writes(&second), "once the second one serves");
    assert_eq!(first.get(Scope::NONE, vec![blob(b"k")]), Ok(vec![Some(blob(b"v"))]));
    stores.serving(&[]);
    let third = stores.of("acme", 3, MIB);
    assert!(!writes(&first) && !writes(&second) && writes(&third), "after the plugin was stopped");
}

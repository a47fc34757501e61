//! What is generated is what is committed.

use std::path::{Path, PathBuf};

use super::super::names::stem;
use super::super::{EVENT, Part, SERVICES, header, record};
use outrigger_abi::{ABI_MAJOR, ABI_MINOR};
use outrigger_service::wire::{FieldShape, Shape};

/// The minor versions that have been released: what they promise is never written again.
const RELEASED: &[u32] = &[];

/// With this variable set, the tests write what they would compare.
const FREEZE: &str = "OUTRIGGER_FREEZE";

const COMMAND: &str = "OUTRIGGER_FREEZE=1 cargo test -p outrigger-header";

fn beside(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Compares a file with what is generated, or writes it where that is asked for and allowed.
#[track_caller]
fn check(path: &Path, generated: &str, may_write: bool, way_out: &str) {
    if may_write && std::env::var_os(FREEZE).is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, generated).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (mut old, mut new) = (committed.lines(), generated.lines());
    for line in 1.. {
        let (old, new) = (old.next(), new.next());
        assert_eq!(old, new, "{}:{line} is not what is generated. {way_out}", path.display());
        if old.is_none() {
            break;
        }
    }
    assert_eq!(committed, generated, "{}: the ends of lines differ. {way_out}", path.display());
}

#[test]
fn the_header_is_current() {
    let way_out = format!("To write it anew: {COMMAND}");
    for part in Part::ALL {
        check(&beside("../include").join(part.file()), &header(part, ABI_MINOR), true, &way_out);
    }
}

/// The most lines of the file that every plugin includes.
const MAX_CORE_LINES: usize = 2_500;

#[test]
fn c_header_that_every_plugin_includes_is_short() {
    assert!(header(Part::Core, ABI_MINOR).lines().count() <= MAX_CORE_LINES);
}

#[test]
fn frozen_interface_of_minor_versions_stands() {
    for minor in 0..=ABI_MINOR {
        let released = RELEASED.contains(&minor);
        let way_out = if released {
            "That version is released: take the change back, and add to the interface instead, marked as #[since] the next \
             minor version, with ABI_MINOR raised to it."
                .to_owned()
        } else {
            format!("That version is not released yet; if the change is meant, promise it anew: {COMMAND}")
        };
        check(&beside(&format!("frozen/{ABI_MAJOR}.{minor}.txt")), &record(minor), !released, &way_out);
    }
}

#[test]
fn the_header_of_the_first_version_is_kept_for_a_plugin_that_is_built_against_it() {
    // Once it is released it stays as it was then, with whatever its helpers did.
    if !RELEASED.contains(&0) {
        let way_out = format!("To write it anew: {COMMAND}");
        for part in Part::ALL {
            check(&beside("../../tests/data/abi/1.0").join(part.file()), &header(part, 0), true, &way_out);
        }
    }
}

#[test]
fn messages_grow_only_where_nothing_follows() {
    assert_eq!(misplaced_growth(), Vec::<String>::new(), "these are read by older plugins as they were");
}

/// A message that has grown where nothing may follow it, and that stands where something does: its type's name.
///
/// Only the end of a whole message, and of a frame, can grow: a reader of an older version would take what was added anywhere
/// else for what comes next.
fn misplaced_growth() -> Vec<String> {
    let mut found = Vec::new();
    for function in SERVICES.iter().flat_map(|service| service.functions) {
        look(function.response, true, &mut found);
        for (at, field) in function.request.iter().enumerate() {
            look(field.shape, at + 1 == function.request.len(), &mut found);
        }
    }
    look(EVENT, true, &mut found);
    found
}

/// Looks at a type that stands at the end of something that may grow, or before something else.
fn look(shape: &'static Shape, last: bool, found: &mut Vec<String>) {
    match shape {
        Shape::Option(inner) => look(inner, last, found),
        Shape::List(item) => look(item, false, found),
        Shape::Framed(inner) => look(inner, true, found),
        Shape::Tuple(items) => {
            for (at, item) in items.iter().enumerate() {
                look(item, last && at + 1 == items.len(), found);
            }
        }
        Shape::Struct(known) => look_at_fields(shape, known.fields, last, found),
        Shape::Enum(known) => known.variants.iter().for_each(|case| look_at_fields(shape, case.fields, last, found)),
        _ => {}
    }
}

fn look_at_fields(shape: &'static Shape, fields: &'static [FieldShape], last: bool, found: &mut Vec<String>) {
    if !last && fields.iter().any(|field| field.since > 0) {
        found.push(stem(shape));
    }
    for (at, field) in fields.iter().enumerate() {
        look(field.shape, last && at + 1 == fields.len(), found);
    }
}

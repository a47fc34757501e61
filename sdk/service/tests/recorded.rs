//! Compares the services and their binary messages with `recorded.txt`. Functions, fields and variants may be added to it as the ABI
//! allows; nothing in it may change after its release.
//!
//! `OUTRIGGER_RECORD=1 cargo test -p outrigger-service --test recorded` rewrites the file.
#![allow(clippy::unwrap_used, reason = "a broken expectation fails the test")]

use std::collections::BTreeMap;
use std::path::Path;

use outrigger_service::events::Event;
use outrigger_service::wire::{FieldShape, Shape, Wire};
use outrigger_service::{PROVIDED, SERVICES};

/// The name of a type. Adds types with fields to `known`, with their lines.
fn name(shape: &Shape, known: &mut BTreeMap<String, Vec<String>>) -> String {
    let line = |field: &FieldShape, known: &mut BTreeMap<_, _>| {
        format!("{}: {}{}", field.name, name(field.shape, known), since(field.since))
    };
    match shape {
        Shape::Option(inner) => format!("option({})", name(inner, known)),
        Shape::List(item) => format!("list({})", name(item, known)),
        Shape::Framed(inner) => format!("framed({})", name(inner, known)),
        Shape::Tuple(items) => {
            let items: Vec<String> = items.iter().map(|item| name(item, known)).collect();
            format!("({})", items.join(", "))
        }
        Shape::Struct(message) => {
            if !known.contains_key(message.name) {
                // A type may contain itself.
                known.insert(message.name.to_owned(), Vec::new());
                let lines = message.fields.iter().map(|field| line(field, known)).collect();
                known.insert(message.name.to_owned(), lines);
            }
            message.name.to_owned()
        }
        Shape::Enum(choice) => {
            if !known.contains_key(choice.name) {
                known.insert(choice.name.to_owned(), Vec::new());
                let variant = |variant: &outrigger_service::wire::VariantShape, known: &mut BTreeMap<_, _>| {
                    let fields: Vec<String> = variant.fields.iter().map(|field| line(field, known)).collect();
                    format!("{} = {} {{{}}}{}", variant.name, variant.tag, fields.join(", "), since(variant.since))
                };
                let lines = choice.variants.iter().map(|one| variant(one, known)).collect();
                known.insert(choice.name.to_owned(), lines);
            }
            choice.name.to_owned()
        }
        plain => format!("{plain:?}").to_lowercase(),
    }
}

fn since(minor: u32) -> String {
    if minor == 0 { String::new() } else { format!(" since {minor}") }
}

fn record() -> String {
    let (mut known, mut lines) = (BTreeMap::new(), Vec::new());
    for service in SERVICES.iter().chain(&PROVIDED) {
        lines.push(service.name.to_owned());
        for function in service.functions {
            let arguments = function.request.iter().map(|one| format!("{}: {}", one.name, name(one.shape, &mut known)));
            let arguments: Vec<String> = arguments.collect();
            let response = name(function.response, &mut known);
            lines.push(format!("  {}({}) -> {response}{}", function.name, arguments.join(", "), since(function.since)));
        }
    }
    name(Event::SHAPE, &mut known);
    for (name, fields) in known {
        lines.push(name);
        lines.extend(fields.into_iter().map(|field| format!("  {field}")));
    }
    lines.join("\n") + "\n"
}

#[test]
fn services_and_messages_are_those_of_the_record() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("recorded.txt");
    if std::env::var_os("OUTRIGGER_RECORD").is_some() {
        std::fs::write(&path, record()).unwrap();
    }
    let recorded = std::fs::read_to_string(&path).unwrap();
    let changed: Vec<String> = record()
        .lines()
        .zip(recorded.lines())
        .filter(|(now, then)| now != then)
        .map(|(now, then)| format!("{then}\n{now}"))
        .take(1)
        .collect();
    assert_eq!(changed, Vec::<String>::new(), "recorded, and now");
    assert_eq!(record().lines().count(), recorded.lines().count());
}

//! The page of all services, in Markdown.

use super::snake;
use crate::events::Event;
use crate::wire::{Docs, FieldShape, FunctionShape, Shape, Wire};
use crate::{ErrorKind, PROVIDED, SERVICES};

/// The services, their functions and messages.
pub fn page() -> String {
    let mut messages = Vec::new();
    let mut out = format!("# The services of a host\n\n{}\n## Statuses\n\n", include_str!("form.md"));
    out +=
        "A failed function returns one of these, and an object with `code` and `message` as in bitcoind's errors.\n\n";
    for (kind, name, docs) in ErrorKind::ALL {
        out += &format!("* {} `{name}`: {}\n", *kind as i32, docs.trim());
    }
    for service in SERVICES.iter().chain(&PROVIDED) {
        out += &format!("\n## {}\n\n{}\n", service.name, prose(service.docs));
        for known in service.functions {
            out += &function(known);
            known.request.iter().for_each(|field| gather(field.shape, &mut messages));
            gather(known.response, &mut messages);
        }
    }
    gather(Event::SHAPE, &mut messages);
    out += "\n## Messages\n\nEvents are of the type `Event`.\n";
    messages.sort_by_key(|shape| name(shape));
    messages.iter().for_each(|shape| out += &message(shape));
    out
}

fn function(known: &FunctionShape) -> String {
    let arguments: Vec<String> =
        known.request.iter().map(|field| format!("{}: {}", field.name, name(field.shape))).collect();
    let head = format!("{}({}) -> {}", known.name, arguments.join(", "), name(known.response));
    format!("\n### {}\n\n`{head}`\n\n{}{}\n", known.name, prose(known.docs), since(known.since))
}

fn message(shape: &Shape) -> String {
    match shape {
        Shape::Struct(known) => format!("\n### {}\n\n{}\n{}", known.name, prose(known.docs), fields("", known.fields)),
        Shape::Enum(known) => {
            let mut out = format!("\n### {}\n\n{}\n", known.name, prose(known.docs));
            for variant in known.variants {
                let about = format!("{}{}", prose(variant.docs), since(variant.since));
                out += &format!("\n* `\"{}\"`{}{about}", snake(variant.name), colon(&about));
                out += &fields("  ", variant.fields);
            }
            out + "\n"
        }
        _ => String::new(),
    }
}

fn fields(margin: &str, fields: &[FieldShape]) -> String {
    let line = |field: &FieldShape| {
        let about = format!("{}{}", prose(field.docs), since(field.since));
        format!("\n{margin}* `{}` ({}){}{about}", field.name, name(field.shape), colon(&about))
    };
    fields.iter().map(line).chain((margin.is_empty()).then(|| "\n".to_owned())).collect()
}

fn colon(about: &str) -> &'static str {
    if about.is_empty() { "" } else { ": " }
}

fn since(minor: u32) -> String {
    if minor == 0 { String::new() } else { format!(" Since minor {minor}.") }
}

/// Adds the structs and enums in a type, with the types of their fields, to `messages`.
pub(super) fn gather(shape: &'static Shape, messages: &mut Vec<&'static Shape>) {
    let parts: Vec<&FieldShape> = match shape {
        Shape::Option(inner) | Shape::List(inner) | Shape::Framed(inner) => return gather(inner, messages),
        Shape::Tuple(items) => return items.iter().for_each(|item| gather(item, messages)),
        Shape::Struct(known) => known.fields.iter().collect(),
        Shape::Enum(known) => known.variants.iter().flat_map(|variant| variant.fields).collect(),
        _ => return,
    };
    if !messages.contains(&shape) {
        messages.push(shape);
        parts.iter().for_each(|field| gather(field.shape, messages));
    }
}

/// The name of a type, as the page defines it (`form.md`).
pub fn name(shape: &Shape) -> String {
    match shape {
        Shape::Bool => "bool".to_owned(),
        Shape::U8 => "u8".to_owned(),
        Shape::U16 => "u16".to_owned(),
        Shape::U32 => "u32".to_owned(),
        Shape::U64 => "u64".to_owned(),
        Shape::I32 => "i32".to_owned(),
        Shape::I64 => "i64".to_owned(),
        Shape::Array(len) => format!("{len} bytes"),
        Shape::Hash => "hash".to_owned(),
        Shape::Text => "text".to_owned(),
        Shape::Secret => "secret".to_owned(),
        Shape::ByteString => "bytes".to_owned(),
        Shape::Option(inner) => format!("{} or null", name(inner)),
        Shape::List(item @ Shape::Option(_)) => format!("list of ({})", name(item)),
        Shape::List(item) => format!("list of {}", name(item)),
        Shape::Framed(inner) => name(inner),
        Shape::Tuple([]) => "null".to_owned(),
        Shape::Tuple(items) => format!("[{}]", items.iter().map(|item| name(item)).collect::<Vec<_>>().join(", ")),
        Shape::Struct(known) => known.name.to_owned(),
        Shape::Enum(known) => known.name.to_owned(),
    }
}

/// Documentation with Rust names replaced by the names in JSON.
pub(super) fn prose(docs: Docs) -> String {
    let text = docs.iter().map(|line| line.trim()).collect::<Vec<_>>().join("\n");
    let text = text.replace("[`", "`").replace("`]", "`");
    let words = text.trim().split('`').enumerate();
    words.map(|(at, part)| if at % 2 == 0 { part.to_owned() } else { format!("`{}`", word(part)) }).collect()
}

/// `Ownership::Spendable` as `spendable`, `WalletRead::info` as `wallet-read/1 info`.
fn word(quoted: &str) -> String {
    let path = quoted.trim_start_matches("crate::").trim_start_matches("super::");
    let Some((owner, item)) = path.rsplit_once("::") else { return path.to_owned() };
    let service = format!("{}/1", snake(owner).replace('_', "-"));
    match SERVICES.iter().find(|known| known.name == service) {
        _ if owner == "ErrorKind" => item.to_owned(),
        Some(service) => format!("{} {item}", service.name),
        None if item.starts_with(char::is_uppercase) => snake(item),
        None => format!("{owner}.{item}"),
    }
}

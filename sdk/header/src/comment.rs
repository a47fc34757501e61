//! Rust documentation as C comments.

use std::collections::HashMap;

use super::names::{abi_type, encoding, index, service, upper, variant};
use outrigger_abi::layout::Declaration;
use outrigger_service::ErrorKind;
use outrigger_service::wire::{Docs, ServiceShape, Shape};
use outrigger_values::error::RpcErrorCode;

const WIDTH: usize = 120;

/// The C names of Rust names in documentation.
pub(super) struct Glossary(HashMap<String, String>);

impl Glossary {
    /// The names of the ABI, of these services, and of these message types.
    pub(super) fn new(
        declarations: &[Declaration],
        services: &[&'static ServiceShape],
        types: &[&'static Shape],
    ) -> Self {
        let mut words = HashMap::new();
        for (rust, c) in
            [("u32::MAX", "UINT32_MAX"), ("u64::MAX", "UINT64_MAX"), ("PLUGIN_MAGIC", "OUTRIGGER_PLUGIN_MAGIC")]
        {
            words.insert(rust.to_owned(), c.to_owned());
        }
        words.insert("ErrorKind".to_owned(), "OUTRIGGER_STATUS_...".to_owned());
        for (_, name, _) in ErrorKind::ALL {
            words.insert((*name).to_owned(), format!("OUTRIGGER_STATUS_{}", upper(name)));
        }
        for (_, name, _) in RpcErrorCode::ALL {
            words.insert(format!("Code::{name}"), format!("OUTRIGGER_CODE_{name}"));
        }
        for declaration in declarations {
            let names: Vec<&str> = match declaration {
                Declaration::Struct(layout) => vec![layout.name],
                Declaration::Functions(functions) => functions.iter().map(|function| function.name).collect(),
            };
            words.extend(names.into_iter().map(|name| (name.to_owned(), abi_type(name))));
        }
        for shape in types {
            match shape {
                Shape::Struct(known) => {
                    words.insert(known.name.to_owned(), format!("`{}`", encoding(shape)));
                }
                Shape::Enum(known) => {
                    words.insert(known.name.to_owned(), format!("`{}`", encoding(shape)));
                    for case in known.variants {
                        words.insert(format!("{}::{}", known.name, case.name), variant(known.name, case.name));
                    }
                }
                _ => {}
            }
        }
        for shape in services {
            for function in shape.functions {
                words.insert(format!("{}::{}", service(shape), function.name), index(shape, function.name));
            }
        }
        Self(words)
    }

    /// The C name of a quoted word.
    fn word(&self, quoted: &str) -> String {
        let parts: Vec<&str> = quoted.split("::").collect();
        let last_two = parts.get(parts.len().saturating_sub(2)..).unwrap_or_default().join("::");
        let last = parts.last().copied().unwrap_or(quoted);
        let function = last_two.to_ascii_lowercase();
        let known = [quoted, &last_two, &function, last].into_iter().find_map(|name| self.0.get(name));
        known.cloned().unwrap_or_else(|| format!("`{last}`"))
    }

    /// A line with Rust names replaced by C names.
    fn line(&self, line: &str) -> String {
        let line = line.replace("[`", "`").replace("`]", "`");
        let mut out = String::new();
        for (at, part) in line.split('`').enumerate() {
            out += &if at % 2 == 0 { part.to_owned() } else { self.word(part) };
        }
        out
    }

    pub(super) fn paragraphs(&self, docs: Docs) -> Vec<String> {
        let mut paragraphs = vec![String::new()];
        for line in docs.iter().map(|line| line.trim()) {
            match paragraphs.last_mut() {
                Some(last) if line.is_empty() && !last.is_empty() => paragraphs.push(String::new()),
                Some(last) if last.is_empty() => *last += line,
                Some(last) => *last += &format!(" {line}"),
                None => {}
            }
        }
        paragraphs.iter().map(|paragraph| self.line(paragraph)).filter(|paragraph| !paragraph.is_empty()).collect()
    }

    /// Documentation as one paragraph.
    pub(super) fn sentence(&self, docs: Docs) -> String {
        self.paragraphs(docs).join(" ")
    }
}

pub(super) fn first_sentence(text: &str) -> &str {
    text.split_once(". ").map_or(text, |(first, _)| first).trim_end_matches('.')
}

/// The note on the minor version that added an item.
pub(super) fn since(minor: u32) -> String {
    if minor == 0 { String::new() } else { format!(" Since minor {minor}.") }
}

/// A documentation comment with this indentation.
pub(super) fn comment(indent: usize, paragraphs: &[String]) -> String {
    let margin = " ".repeat(indent);
    if let [only] = paragraphs
        && indent + only.len() + "/**  */".len() <= WIDTH
    {
        return format!("{margin}/** {only} */\n");
    }
    let mut out = format!("{margin}/**\n");
    for (at, paragraph) in paragraphs.iter().enumerate() {
        let row =
            is_label(paragraph) && at.checked_sub(1).and_then(|at| paragraphs.get(at)).is_some_and(|p| is_label(p));
        if at > 0 && !row {
            out += &format!("{margin} *\n");
        }
        for line in wrap(paragraph, WIDTH - indent - 3) {
            out += &format!("{margin} * {line}\n");
        }
    }
    out + &format!("{margin} */\n")
}

/// Code with a short comment, behind it if the line has room, else above it.
pub(super) fn noted(indent: usize, code: &str, text: &str) -> String {
    let margin = " ".repeat(indent);
    let line = format!("{margin}{code} /* {text} */\n");
    if line.len() <= WIDTH {
        return line;
    }
    note(indent, text) + &format!("{margin}{code}\n")
}

pub(super) fn note(indent: usize, text: &str) -> String {
    let margin = " ".repeat(indent);
    let lines = wrap(&format!("/* {text} */"), WIDTH - indent - 3);
    format!("{margin}{}\n", lines.join(&format!("\n{margin}   ")))
}

/// Whether a paragraph belongs to the rows without blank lines between them.
fn is_label(paragraph: &str) -> bool {
    ["Threads:", "Ownership:", "Lifetime:"].iter().any(|label| paragraph.starts_with(label))
}

fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => *line += word,
            Some(line) if line.len() + 1 + word.len() <= width => *line += &format!(" {word}"),
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

pub(super) fn heading(title: &str) -> String {
    format!("\n/* {title} {} */\n", "-".repeat(WIDTH.saturating_sub(title.len() + "/*   */".len())))
}

pub(super) fn with_parameters(head: &str, parameters: &[String]) -> String {
    let none = ["void".to_owned()];
    let parameters = if parameters.is_empty() { &none } else { parameters };
    let one_line = format!("{head}({})", parameters.join(", "));
    if one_line.len() < WIDTH {
        return one_line;
    }
    let lines = wrap_items(parameters, WIDTH - 5);
    format!("{head}(\n    {})", lines.join(",\n    "))
}

fn wrap_items(items: &[String], width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for item in items {
        match lines.last_mut() {
            Some(line) if line.len() + 2 + item.len() <= width => *line += &format!(", {item}"),
            _ => lines.push(item.clone()),
        }
    }
    lines
}

//! Rust documentation as C comments.

use std::collections::HashMap;

use super::names::{abi_type, snake, upper};
use outrigger_abi::layout::{Declaration, Docs};
use outrigger_abi::{DECLARATIONS, ErrorKind};

pub(super) const WIDTH: usize = 120;

/// The C names of Rust names in documentation.
pub(super) struct Glossary(HashMap<String, String>);

impl Glossary {
    /// The names of the ABI. A function type maps to the name of its struct member.
    pub(super) fn new() -> Self {
        let constants = [("PLUGIN_MAGIC", "OUTRIGGER_PLUGIN_MAGIC"), ("ErrorKind", "OUTRIGGER_STATUS_...")];
        let constants = constants.map(|(rust, c)| (rust.to_owned(), c.to_owned()));
        let status = |name| (format!("ErrorKind::{name}"), format!("OUTRIGGER_STATUS_{}", upper(name)));
        let statuses = ErrorKind::ALL.iter().map(|(_, name, _)| status(name));
        let types = DECLARATIONS.iter().flat_map(|declaration| match declaration {
            Declaration::Struct(layout) => vec![(layout.name.to_owned(), abi_type(layout.name))],
            Declaration::Functions(functions) => functions.iter().map(|function| member(function.name)).collect(),
        });
        Self(constants.into_iter().chain(statuses).chain(types).collect())
    }

    /// The C name of a quoted word.
    fn word(&self, quoted: &str) -> String {
        self.0.get(quoted).cloned().unwrap_or_else(|| format!("`{quoted}`"))
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
}

fn member(function: &str) -> (String, String) {
    (function.to_owned(), format!("`{}`", snake(function.trim_end_matches("Fn"))))
}

/// The note on the minor version that added an item.
pub(super) fn since(minor: u32) -> String {
    if minor == 0 { String::new() } else { format!(" Since minor {minor}.") }
}

/// A documentation comment, indented by `margin`.
pub(super) fn comment(margin: &str, paragraphs: &[String]) -> String {
    if let [only] = paragraphs
        && margin.len() + only.len() + "/**  */".len() <= WIDTH
    {
        return format!("{margin}/** {only} */\n");
    }
    let lines = paragraphs.iter().flat_map(|text| wrap(text, " ", WIDTH - margin.len() - 3));
    let lines: String = lines.map(|line| format!("{margin} * {line}\n")).collect();
    format!("{margin}/**\n{lines}{margin} */\n")
}

/// A line of a struct or an enum with a short comment: at its end if it fits, otherwise above it.
pub(super) fn noted(code: &str, text: &str) -> String {
    let line = format!("    {code} /* {text} */\n");
    if line.len() <= WIDTH {
        return line;
    }
    let lines = wrap(&format!("/* {text} */"), " ", WIDTH - 7);
    format!("    {}\n    {code}\n", lines.join("\n       "))
}

pub(super) fn with_parameters(head: &str, parameters: &[String]) -> String {
    let list = if parameters.is_empty() { "void".to_owned() } else { parameters.join(", ") };
    if head.len() + list.len() + 2 < WIDTH {
        return format!("{head}({list})");
    }
    format!("{head}(\n        {})", wrap(&list, ", ", WIDTH - 9).join(",\n        "))
}

/// Wraps a text at `separator`s into lines of at most `width` bytes.
pub(super) fn wrap(text: &str, separator: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(separator).filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line) if line.len() + separator.len() + word.len() <= width => *line += &format!("{separator}{word}"),
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

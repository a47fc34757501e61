//! Parses the documentation comment of a method: help, parameters, result and an example.

use proc_macro2::Span;
use syn::{Attribute, Error, Expr, ExprLit, Lit, Meta, Result};

/// A documentation comment.
#[derive(Default)]
pub struct Docs {
    /// The text before the list of parameters.
    pub help: String,
    /// The list of parameters.
    pub params: Vec<Param>,
    /// The text below `# Result`.
    pub result: String,
    /// The text below `# Example`.
    pub example: String,
}

/// An item of the list: `` * `name` (default: 1) - Its help. ``, or, for a member, `` * `name` (boolean; default: true) - Its help. ``
#[derive(Default)]
pub struct Param {
    pub name: String,
    /// The text in brackets before `default: `: the type. Only members have one.
    pub kind: String,
    pub default: String,
    pub help: String,
    /// The items of the list below this item.
    pub members: Vec<Self>,
}

/// The section of the comment to which a line belongs.
enum Place {
    Help,
    Params,
    Result,
    Example,
    /// A section that only rustdoc shows.
    Other,
}

/// Appends a line to a text. Joins the lines of a paragraph, and keeps those of a fenced block.
fn append(text: &mut String, line: &str, fenced: bool) {
    match line {
        "" if text.is_empty() => {}
        "" => text.push_str("\n\n"),
        line => {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push(if fenced { '\n' } else { ' ' });
            }
            text.push_str(if fenced { line } else { line.trim() });
        }
    }
}

/// The lines of the documentation comments among these attributes.
pub fn lines(attributes: &[Attribute]) -> Vec<(String, Span)> {
    let mut lines = Vec::new();
    for attribute in attributes {
        if let Meta::NameValue(pair) = &attribute.meta
            && pair.path.is_ident("doc")
            && let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &pair.value
        {
            let value = text.value();
            lines.extend(value.lines().map(|line| (line.strip_prefix(' ').unwrap_or(line).to_owned(), text.span())));
            if value.is_empty() {
                lines.push((String::new(), text.span()));
            }
        }
    }
    lines
}

/// The documentation comments among these attributes as one text.
pub fn text(attributes: &[Attribute]) -> String {
    let mut text = String::new();
    for (line, _) in lines(attributes) {
        append(&mut text, line.trim(), false);
    }
    text.trim_end().to_owned()
}

/// The source text of a list item, with its lines joined.
struct Item {
    text: String,
    is_member: bool,
    span: Span,
}

impl Docs {
    pub fn read(attributes: &[Attribute]) -> Result<Self> {
        let (mut docs, mut items) = (Self::default(), Vec::<Item>::new());
        let (mut place, mut fenced) = (Place::Help, false);
        for (line, span) in lines(attributes) {
            if line.starts_with("```") {
                fenced = !fenced;
                continue;
            }
            if !fenced && let Some(heading) = line.strip_prefix("# ") {
                place = match heading.trim() {
                    "Result" => Place::Result,
                    "Example" => Place::Example,
                    _ => Place::Other,
                };
                continue;
            }
            if matches!(place, Place::Help | Place::Params) && line.trim_start().starts_with("* `") {
                place = Place::Params;
                items.push(Item { text: String::new(), is_member: line.starts_with(' '), span });
            }
            let text = match place {
                Place::Help => &mut docs.help,
                Place::Params => match items.last_mut() {
                    Some(item) => &mut item.text,
                    None => continue,
                },
                Place::Result => &mut docs.result,
                Place::Example => &mut docs.example,
                Place::Other => continue,
            };
            append(text, line.trim_end(), fenced);
        }
        for text in [&mut docs.help, &mut docs.result, &mut docs.example] {
            text.truncate(text.trim_end().len());
        }
        for item in items {
            let param = Param::read(item.text.trim()).map_err(|message| Error::new(item.span, message))?;
            match docs.params.last_mut() {
                Some(object) if item.is_member => object.members.push(param),
                _ => docs.params.push(param),
            }
        }
        Ok(docs)
    }
}

impl Param {
    /// Parses an item.
    fn read(item: &str) -> std::result::Result<Self, String> {
        let expected = || format!("expected * `name` (default: ...) - ..., got: {item}");
        let (name, rest) = item.strip_prefix("* `").and_then(|rest| rest.split_once('`')).ok_or_else(expected)?;
        let (about, help) = match rest.strip_prefix(" - ") {
            Some(help) => ("", help),
            None => {
                let rest = rest.strip_prefix(" (").ok_or_else(expected)?;
                rest.split_once(") - ").ok_or_else(expected)?
            }
        };
        let (kind, default) = match about.split_once("default: ") {
            Some((kind, default)) => (kind.trim_end_matches("; "), default),
            None => (about, ""),
        };
        let (name, kind, default) = (name.to_owned(), kind.to_owned(), default.to_owned());
        Ok(Self { name, kind, default, help: help.to_owned(), members: Vec::new() })
    }
}

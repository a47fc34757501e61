//! The files that `outrigger wallet export` writes and `import` reads: JSON lines of our own, labels of BIP 329, and descriptors as Sparrow
//! and Specter write them.
//!
//! Our own file begins with a [`Head`], and ends with the number of its lines. The lines between are descriptors, and labels, comments
//! and locked outputs as BIP 329 has them.

use std::collections::BTreeMap;
use std::io::{self, Write};

use bitcoin::{BlockHash, OutPoint, Txid};
use outrigger_node_wallet::{Active, Comment, Content, Descriptor};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use zeroize::Zeroizing;

/// The name of our own format in its first line.
const FORMAT: &str = "outrigger-wallet";
/// The version of the format that this program reads and writes.
pub const VERSION: u32 = 1;
/// How many addresses are derived from another program's descriptor.
const FOREIGN_RANGE: u32 = 1000;

/// The first line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    format: String,
    version: u32,
    pub name: String,
    /// The network's name, as bitcoind has it.
    pub chain: String,
    pub genesis: BlockHash,
    /// The best block at the time of the export.
    pub block: BlockHash,
    /// The result of getbalances at that time.
    pub balances: Value,
    private_keys: bool,
    encrypted: bool,
    avoid_reuse: bool,
    blank: bool,
}

#[derive(Serialize, Deserialize)]
struct DescriptorLine {
    r#type: Type,
    r#ref: String,
    timestamp: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<(u32, u32)>,
    next_index: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    active: Option<Active>,
}

/// A line of BIP 329.
#[derive(Serialize, Deserialize)]
struct LabelLine {
    r#type: Type,
    r#ref: String,
    #[serde(default)]
    label: String,
    /// For a transaction: who was paid. Not in BIP 329.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    to: String,
    /// For an output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spendable: Option<bool>,
}

#[derive(Serialize, Deserialize)]
struct EndLine {
    r#type: Type,
    /// The number of lines before it.
    lines: usize,
}

#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Type {
    Descriptor,
    Addr,
    Tx,
    Output,
    End,
    /// Inputs, keys, and types of later versions of BIP 329, which the wallets here do not store.
    #[serde(other)]
    Other,
}

#[derive(Default)]
pub struct Parsed {
    pub content: Content,
    /// The first line of our own files.
    pub head: Option<Head>,
    /// The name that the file gives the wallet.
    pub name: Option<String>,
    /// The height of the wallet's first block.
    pub birth_height: Option<u32>,
    /// Whether the descriptors are another program's: their checksums are missing, and their birth is not known.
    pub is_foreign: bool,
    /// The number of labels that were not imported.
    pub left_out: usize,
}

impl Head {
    pub fn new(
        content: &Content,
        name: &str,
        chain: String,
        [genesis, block]: [BlockHash; 2],
        balances: Value,
    ) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            name: name.to_owned(),
            chain,
            genesis,
            block,
            balances,
            private_keys: content.private_keys,
            encrypted: content.encrypted,
            avoid_reuse: content.avoid_reuse,
            blank: content.blank,
        }
    }
}

pub fn write(head: &Head, content: &Content, out: &mut impl Write) -> io::Result<()> {
    let mut lines = 0;
    put(out, head, &mut lines)?;
    for Descriptor { text, timestamp, range, next_index, active } in &content.descriptors {
        let (r#ref, timestamp, range, next_index, active) =
            (text.to_string(), *timestamp, *range, *next_index, *active);
        let line = DescriptorLine { r#type: Type::Descriptor, r#ref, timestamp, range, next_index, active };
        put(out, &line, &mut lines)?;
    }
    let line = |r#type, r#ref: String, label: &str| LabelLine {
        r#type,
        r#ref,
        label: label.to_owned(),
        to: String::new(),
        spendable: None,
    };
    for (address, label) in &content.labels {
        put(out, &line(Type::Addr, address.clone(), label), &mut lines)?;
    }
    for Comment { txid, comment, to } in &content.comments {
        put(out, &LabelLine { to: to.clone(), ..line(Type::Tx, txid.to_string(), comment) }, &mut lines)?;
    }
    for output in &content.locked {
        let line = LabelLine { spendable: Some(false), ..line(Type::Output, output.to_string(), "") };
        put(out, &line, &mut lines)?;
    }
    put(out, &EndLine { r#type: Type::End, lines }, &mut 0)?;
    out.flush()
}

fn put(out: &mut impl Write, line: &impl Serialize, lines: &mut usize) -> io::Result<()> {
    *lines += 1;
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}

/// Reads a file of any of the formats.
///
/// # Errors
/// What is wrong with the file, with the line if known.
pub fn parse(text: &str) -> Result<Parsed, String> {
    let lines = || text.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty());
    let Some((_, first)) = lines().next() else { return Err("the file is empty".to_owned()) };
    if !first.starts_with('{') {
        return descriptors(lines().map(|(_, line)| line).filter(|line| !line.starts_with('#')));
    }
    match serde_json::from_str::<Value>(first) {
        Ok(line) if line.get("format").is_some() => own(&line, lines().skip(1)),
        Ok(line) if line.get("type").is_some() => {
            let mut parsed = Parsed::default();
            lines().try_for_each(|line| parsed.take(line, None))?;
            Ok(parsed)
        }
        _ => specter(text),
    }
}

fn own<'t>(first: &Value, lines: impl Iterator<Item = (usize, &'t str)>) -> Result<Parsed, String> {
    if first["format"] != FORMAT {
        return Err(format!("the format is {}, not \"{FORMAT}\"", first["format"]));
    }
    let version = first["version"].as_u64().unwrap_or_default();
    if version != u64::from(VERSION) {
        return Err(format!("the file has version {version} of the format; this program reads version {VERSION}"));
    }
    let head: Head = serde_json::from_value(first.clone()).map_err(|error| format!("line 1: {error}"))?;
    let mut parsed = Parsed { name: Some(head.name.clone()), ..Parsed::default() };
    let content = &mut parsed.content;
    (content.private_keys, content.encrypted) = (head.private_keys, head.encrypted);
    (content.avoid_reuse, content.blank) = (head.avoid_reuse, head.blank);
    parsed.head = Some(head);
    let (mut taken, mut end) = (1, None);
    for line in lines {
        if end.is_some() {
            return Err(format!("line {}: it follows the last line", line.0 + 1));
        }
        parsed.take(line, Some(&mut end))?;
        taken += 1;
    }
    match end {
        None => Err("the file is cut off: its last line has no number of lines".to_owned()),
        Some(lines) if lines + 1 == taken => Ok(parsed),
        Some(_) => Err("lines are missing".to_owned()),
    }
}

impl Parsed {
    /// Takes a line. `end` gets the number in the last line of our own files; others have neither that line nor descriptors.
    fn take(&mut self, (number, text): (usize, &str), end: Option<&mut Option<usize>>) -> Result<(), String> {
        let wrong = |error: &dyn std::fmt::Display| format!("line {}: {error}", number + 1);
        // The parser's buffers are wiped like all freed memory.
        let line: Value = serde_json::from_str(text).map_err(|error| wrong(&error))?;
        let kind: Type = serde_json::from_value(line["type"].clone()).map_err(|_| wrong(&"it has no type"))?;
        let content = &mut self.content;
        match (kind, end) {
            (Type::Descriptor, Some(_)) => {
                let line: DescriptorLine = serde_json::from_value(line).map_err(|error| wrong(&error))?;
                let DescriptorLine { r#ref: text, timestamp, range, next_index, active, .. } = line;
                let text = Zeroizing::new(text);
                content.descriptors.push(Descriptor { text, timestamp, range, next_index, active });
                return Ok(());
            }
            (Type::End, Some(end)) => {
                let line: EndLine = serde_json::from_value(line).map_err(|error| wrong(&error))?;
                *end = Some(line.lines);
                return Ok(());
            }
            _ => {}
        }
        let line: LabelLine = serde_json::from_value(line).map_err(|error| wrong(&error))?;
        match kind {
            Type::Addr => content.labels.push((line.r#ref, line.label)),
            Type::Tx => {
                let txid: Txid = line.r#ref.parse().map_err(|error| wrong(&error))?;
                content.comments.push(Comment { txid, comment: line.label, to: line.to });
            }
            Type::Output => {
                let output: OutPoint = line.r#ref.parse().map_err(|error| wrong(&error))?;
                match line.spendable {
                    Some(false) => {
                        content.locked.push(output);
                        self.left_out += usize::from(!line.label.is_empty());
                    }
                    _ => self.left_out += 1,
                }
            }
            Type::Descriptor | Type::End | Type::Other => self.left_out += 1,
        }
        Ok(())
    }
}

/// Descriptors as lines, as Sparrow writes them: those for receiving and for change, and one for both (BIP 389).
fn descriptors<'t>(lines: impl Iterator<Item = &'t str>) -> Result<Parsed, String> {
    let all: Vec<&str> = lines.collect();
    let both = all.iter().find(|line| line.contains('<'));
    let descriptors = match (both, all.as_slice()) {
        (Some(both), _) => {
            let sides = sides(both)?;
            let is_known = |line: &&str| body(line) == body(both) || sides.iter().any(|side| *side.text == body(line));
            if !all.iter().all(is_known) {
                return Err(
                    "it has other descriptors beside one for both sides (<0;1>): import each from a file of its own"
                        .to_owned(),
                );
            }
            sides
        }
        (None, [one]) => sides(one)?,
        (None, several) => several.iter().map(|one| foreign(one, side(one))).collect(),
    };
    Ok(Parsed { content: Content { descriptors, ..Content::default() }, is_foreign: true, ..Parsed::default() })
}

/// A wallet file of Specter: an export with one `descriptor`, or a backup with two.
fn specter(text: &str) -> Result<Parsed, String> {
    let file: BTreeMap<String, Value> =
        serde_json::from_str(text).map_err(|error| format!("it is no file of a known format: {error}"))?;
    let string = |key: &str| file.get(key).and_then(Value::as_str);
    let descriptors = match (string("recv_descriptor"), string("change_descriptor"), string("descriptor")) {
        (Some(receiving), Some(change), _) => {
            vec![foreign(receiving, Some(Active::Receiving)), foreign(change, Some(Active::Change))]
        }
        (Some(one), ..) | (.., Some(one)) => sides(one)?,
        _ => return Err("it is no file of a known format: it has no descriptor".to_owned()),
    };
    Ok(Parsed {
        name: string("label").or_else(|| string("name")).map(str::to_owned),
        birth_height: file.get("blockheight").and_then(Value::as_u64).and_then(|height| u32::try_from(height).ok()),
        content: Content { descriptors, ..Content::default() },
        is_foreign: true,
        ..Parsed::default()
    })
}

/// The descriptors for receiving and for change, from a combined one with `<0;1>` (BIP 389), or from one for receiving with `/0/*`.
fn sides(one: &str) -> Result<Vec<Descriptor>, String> {
    let (receiving, change) = match one.contains('<') {
        true => (one_path(one, 0)?, one_path(one, 1)?),
        false if one.contains("/0/*") => (one.to_owned(), body(one).replace("/0/*", "/1/*")),
        false => return Ok(vec![foreign(one, side(one))]),
    };
    Ok(vec![foreign(&receiving, Some(Active::Receiving)), foreign(&change, Some(Active::Change))])
}

/// A descriptor with only one path of each `<RECEIVING;CHANGE>`.
fn one_path(descriptor: &str, which: usize) -> Result<String, String> {
    let mut parts = body(descriptor).split('<');
    let mut path = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (paths, rest) = part.split_once('>').ok_or("a descriptor has '<' without '>'")?;
        match paths.split(';').collect::<Vec<_>>().as_slice() {
            two @ [_, _] => path.extend([two.get(which).copied().unwrap_or_default(), rest]),
            _ => return Err(format!("a descriptor has other than two paths: <{paths}>")),
        }
    }
    Ok(path)
}

/// Whether a descriptor is for receiving or for change, by its last steps; `None` if they do not show it.
fn side(descriptor: &str) -> Option<Active> {
    let is = |steps: &str| body(descriptor).contains(steps);
    match (is("/0/*"), is("/1/*")) {
        (true, false) => Some(Active::Receiving),
        (false, true) => Some(Active::Change),
        _ => None,
    }
}

/// A descriptor without its checksum.
fn body(descriptor: &str) -> &str {
    descriptor.split_once('#').map_or(descriptor, |(body, _)| body)
}

fn foreign(text: &str, active: Option<Active>) -> Descriptor {
    let range = text.contains('*').then_some((0, FOREIGN_RANGE));
    Descriptor { text: Zeroizing::new(text.to_owned()), timestamp: 0, range, next_index: 0, active }
}

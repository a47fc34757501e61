//! The tool's output: a line for each check, its findings below it, and a summary.

use std::io::Write;

use outrigger_values::text::printable;
use serde::Serialize;
use serde_json::{Value, json};

use super::Check;
use super::supervisor::Part;
use outrigger_plugins::file::PluginFile;

const MAX_SHOWN: usize = 20;

/// How many of the plugin's last output lines are shown.
const LAST_WORDS: usize = 8;

/// The verdicts of a check.
const OK: &str = "ok";
const FAILED: &str = "FAILED";
const SKIPPED: &str = "skipped";

/// The line of a check, and the lines below it.
#[derive(Serialize, Default)]
struct Line {
    check: String,
    verdict: &'static str,
    detail: String,
    findings: Vec<String>,
    last_words: Vec<String>,
}

pub struct Report {
    /// Whether lines are printed as they come.
    print: bool,
    plugin: Value,
    lines: Vec<Line>,
}

impl Report {
    pub fn new(print: bool) -> Self {
        Self { print, plugin: Value::Null, lines: Vec::new() }
    }

    pub fn refused(&mut self, error: &str) {
        self.push("manifest".to_owned(), Line { verdict: FAILED, findings: vec![error.to_owned()], ..Line::default() });
    }

    /// Reports a file whose manifest and header are valid.
    pub fn manifest(&mut self, file: &PluginFile) {
        let (manifest, header) = (&file.manifest, &file.header);
        self.plugin = json!({"id": manifest.id, "version": manifest.version, "sha256": file.hash.to_string()});
        let detail = format!(
            "{} {}, {} methods, built with ABI {}.{}, runs on {}.{} and later",
            manifest.id,
            manifest.version,
            manifest.methods.len(),
            header.abi_major,
            header.abi_minor_built,
            header.abi_major,
            header.abi_minor_needed
        );
        self.push("manifest".to_owned(), Line { verdict: OK, detail, ..Line::default() });
    }

    pub fn skipped(&mut self, check: Check, why: &str) {
        self.push(check.name(), Line { verdict: SKIPPED, detail: why.to_owned(), ..Line::default() });
    }

    pub fn add(&mut self, check: Check, part: &Part) {
        let findings: Vec<String> = part.findings.iter().map(ToString::to_string).collect();
        let (verdict, mut detail) = match (&part.skipped, findings.is_empty()) {
            (_, false) => (FAILED, part.done.clone()),
            (Some(why), true) => (SKIPPED, why.clone()),
            (None, true) => (OK, part.done.clone()),
        };
        if !part.without.is_empty() {
            let separator = if detail.is_empty() { "" } else { "; " };
            detail = format!("{detail}{separator}went on without {}", part.without.join(", "));
        }
        let mut last_words = part.last_words.clone();
        last_words.dedup();
        if verdict == FAILED {
            last_words.drain(..last_words.len().saturating_sub(LAST_WORDS));
        } else {
            last_words.clear();
        }
        self.push(check.name(), Line { verdict, detail, findings, last_words, ..Line::default() });
    }

    fn push(&mut self, check: String, line: Line) {
        let line = Line { check, ..line };
        if self.print {
            // A broken stream is reported by the summary, which goes to the same stream.
            let _ = writeln!(std::io::stdout(), "{}", line.text());
        }
        self.lines.push(line);
    }

    pub fn passed(&self) -> bool {
        self.count(FAILED) == 0
    }

    fn count(&self, verdict: &str) -> usize {
        self.lines.iter().filter(|line| line.verdict == verdict).count()
    }

    /// The last line of the text.
    pub fn summary(&self) -> String {
        let (ok, failed) = (self.count(OK), self.count(FAILED));
        format!("{ok} ok, {failed} failed, {} skipped", self.count(SKIPPED))
    }

    pub fn json(&self) -> String {
        json!({"plugin": self.plugin, "passed": self.passed(), "checks": self.lines}).to_string()
    }
}

impl Line {
    fn text(&self) -> String {
        // Each part may contain text from the plugin.
        let mut text = match (self.verdict, &*printable(&self.detail)) {
            (verdict, "") => format!("{verdict:8} {}", self.check),
            (SKIPPED, why) => format!("{SKIPPED:8} {} ({why})", self.check),
            (verdict, detail) => format!("{verdict:8} {}: {detail}", self.check),
        };
        for finding in self.findings.iter().take(MAX_SHOWN) {
            text += &format!("\n           {}", printable(finding));
        }
        if self.findings.len() > MAX_SHOWN {
            text += &format!("\n           and {} more", self.findings.len() - MAX_SHOWN);
        }
        if !self.last_words.is_empty() {
            text += "\n           the plugin's last lines of log and standard error:";
        }
        for line in &self.last_words {
            text += &format!("\n             {}", printable(line));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Finding;

    #[test]
    fn report_lines_cannot_be_forged_by_plugin_text() {
        let forged = "x\nok       lifecycle\u{1b}[2J";
        let findings = vec![Finding::new(forged)];
        let part = Part { findings, done: forged.into(), last_words: vec![forged.into()], ..Part::default() };
        let mut report = Report::new(false);
        report.add(Check::Lifecycle, &part);
        let text = report.lines[0].text();
        assert_eq!(text.lines().filter(|line| line.starts_with("ok")).count(), 0, "{text}");
        assert!(!text.contains('\u{1b}') && text.matches(r"x\nok       lifecycle\u{1b}[2J").count() == 3, "{text}");
    }

    #[test]
    fn each_check_has_a_line_and_its_findings_below() {
        let mut report = Report::new(false);
        report.add(Check::Lifecycle, &Part { done: "started".into(), ..Part::default() });
        report.add(Check::Options, &Part { skipped: Some("it has none".into()), ..Part::default() });
        let part = Part { findings: vec![Finding::new("it is wrong")], without: vec!["m".into()], ..Part::default() };
        report.add(Check::Parameters, &part);
        let lines: Vec<String> = report.lines.iter().map(Line::text).collect();
        assert_eq!(
            lines,
            [
                "ok       lifecycle: started",
                "skipped  options (it has none)",
                "FAILED   parameters: went on without m\n           it is wrong"
            ]
        );
        assert_eq!((report.summary().as_str(), report.passed()), ("1 ok, 1 failed, 1 skipped", false));
        let json: Value = serde_json::from_str(&report.json()).unwrap();
        assert_eq!((&json["passed"], &json["checks"][2]["findings"]), (&json!(false), &json!(["it is wrong"])));
    }
}

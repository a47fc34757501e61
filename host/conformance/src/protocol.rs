//! The protocol between the tool and the process that runs the plugin: a job on the command line, and messages on a socket,
//! one line of JSON each.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use outrigger_sandbox::Reach;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How many characters of a call's arguments a report shows.
const SHOWN_CHARACTERS: usize = 120;

/// A call that the user adds (`--call`).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ExtraCall {
    pub method: String,
    /// A JSON array.
    pub arguments: String,
}

/// The job of one process: one check.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    pub file: PathBuf,
    /// The private folder of the process, for its copy of the plugin's file.
    pub copies: PathBuf,
    pub check: super::Check,
    pub methods: Vec<String>,
    /// Options other than the defaults.
    pub options: Map<String, Value>,
    /// A service that the manifest requests and the tool does not grant.
    pub withheld: Option<String>,
    /// Calls beyond the generated ones.
    pub calls: Vec<ExtraCall>,
    /// The `reach` of an isolated plugin; `None` if the plugin is not isolated.
    pub isolated: Option<Vec<Reach>>,
    /// The time limit of each step, in milliseconds.
    pub deadline_ms: u64,
}

impl Job {
    pub fn deadline(&self) -> Duration {
        Duration::from_millis(self.deadline_ms)
    }
}

/// An entry into the plugin's code.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Step {
    /// The function or functions that the thread entered: `start`, `call`, ...
    pub entry: String,
    /// The method, if it belongs to a call.
    pub method: Option<String>,
    pub arguments: Option<String>,
}

impl Step {
    /// A step that belongs to no call.
    pub fn of(entry: &str) -> Self {
        Self { entry: entry.to_owned(), method: None, arguments: None }
    }

    /// A step that belongs to a call: its `call`, or its `cancel`.
    pub fn of_call(entry: &str, method: &str, arguments: &str) -> Self {
        Self { entry: entry.to_owned(), method: Some(method.to_owned()), arguments: Some(shortened(arguments)) }
    }
}

/// A defect of the plugin.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// The affected method, if any.
    pub method: Option<String>,
    /// The first arguments that triggered the defect.
    pub arguments: Option<String>,
    pub what: String,
}

impl Finding {
    /// A finding that affects no particular method.
    pub fn new(what: impl Into<String>) -> Self {
        Self { method: None, arguments: None, what: what.into() }
    }

    /// A finding made during a step.
    pub fn at(step: &Step, what: &str) -> Self {
        let of_call = step.method.is_some() && step.entry == "call";
        let what = if of_call { what.to_owned() } else { format!("{}: {what}", step.entry) };
        Self { method: step.method.clone(), arguments: step.arguments.clone(), what }
    }

    /// Prefixes the description with the setting of the check, such as a withheld service.
    pub fn in_setting(self, setting: &str) -> Self {
        Self { what: format!("{setting}: {}", self.what), ..self }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.method, &self.arguments) {
            (Some(method), Some(arguments)) => write!(f, "{method} {arguments}: {}", self.what),
            (Some(method), None) => write!(f, "{method}: {}", self.what),
            _ => f.write_str(&self.what),
        }
    }
}

/// Truncates arguments to [`SHOWN_CHARACTERS`] for a report.
fn shortened(arguments: &str) -> String {
    match arguments.char_indices().nth(SHOWN_CHARACTERS) {
        None => arguments.to_owned(),
        Some((end, _)) => {
            format!("{}... ({} bytes)", arguments.get(..end).unwrap_or_default(), arguments.len())
        }
    }
}

/// A message from the process to the tool.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Message {
    /// A thread enters the plugin's code.
    Enter { thread: String, step: Step },
    /// A thread has left the plugin's code.
    Leave { thread: String },
    /// An instance has started.
    Started,
    /// Something is wrong with the plugin.
    Found(Finding),
    /// The check has ended, with a summary.
    Done(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finding_names_method_arguments_and_entry() {
        let long = format!("[\"{}\"]", "ä".repeat(200));
        let text = Finding::at(&Step::of_call("call", "m", &long), "it is wrong").to_string();
        assert!(text.starts_with("m [\"ää") && text.ends_with("... (404 bytes): it is wrong"), "{text}");
        let step = Step::of_call("cancel", "m", "[]");
        assert_eq!(Finding::at(&step, "it ended").to_string(), "m []: cancel: it ended");
        assert_eq!(Finding::at(&Step::of("start"), "it ended").to_string(), "start: it ended");
    }
}

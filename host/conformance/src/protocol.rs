//! What the tool and the process that runs the plugin tell each other: a job on the command line, and messages on a socket,
//! each a line of JSON.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::probe::{CallName, Entry, Fault};

/// The characters of arguments that a report shows.
const SHOWN_CHARACTERS: usize = 120;

/// A call that the user wants to be made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ExtraCall {
    /// The method.
    pub method: String,
    /// Its arguments, a JSON array.
    pub arguments: String,
}

/// What one process does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// The plugin's file.
    pub file: PathBuf,
    /// A folder of our own for the copy that is opened.
    pub copies: PathBuf,
    /// The check.
    pub check: super::Check,
    /// The methods it calls.
    pub methods: Vec<String>,
    /// The settings that it goes on without, as [`Message::Setting`] named them.
    pub without: Vec<String>,
    /// Options other than the defaults.
    pub options: Map<String, Value>,
    /// Calls beyond those that are made up.
    pub calls: Vec<ExtraCall>,
    /// How long anything may take, in milliseconds.
    pub deadline_ms: u64,
}

/// Code of the plugin that runs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Step {
    /// What was entered: `init`, `call`, ...
    pub entry: String,
    /// The method, of a call.
    pub method: Option<String>,
    /// Its arguments.
    pub arguments: Option<String>,
}

impl Step {
    /// Code that belongs to no call.
    pub fn of(entry: &str) -> Self {
        Self { entry: entry.to_owned(), method: None, arguments: None }
    }

    /// Code that belongs to a call and is not its function.
    pub fn after(call: &CallName, entry: &str) -> Self {
        let CallName { method, arguments } = call;
        Self { entry: entry.to_owned(), method: Some(method.clone()), arguments: Some(shortened(arguments)) }
    }
}

impl From<Entry<'_>> for Step {
    fn from(entry: Entry<'_>) -> Self {
        let of_call = |entry: &str, method: &str, arguments: &str| Self {
            entry: entry.to_owned(),
            method: Some(method.to_owned()),
            arguments: Some(shortened(arguments)),
        };
        match entry {
            Entry::Create => Self::of("create"),
            Entry::Init => Self::of("init"),
            Entry::Start => Self::of("start"),
            Entry::Call { method, arguments } => of_call("call", method, arguments),
            Entry::Cancel { method, arguments } => of_call("cancel", method, arguments),
            Entry::Event => Self::of("event"),
            Entry::Quiesce => Self::of("quiesce"),
            Entry::Stop => Self::of("stop"),
            Entry::Destroy => Self::of("destroy"),
        }
    }
}

/// Something that is wrong with the plugin.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// The method it is about.
    pub method: Option<String>,
    /// The arguments with which it was seen first.
    pub arguments: Option<String>,
    /// What it is.
    pub what: String,
}

impl Finding {
    /// Something that is about no method.
    pub fn new(what: impl Into<String>) -> Self {
        Self { method: None, arguments: None, what: what.into() }
    }

    /// Something that was seen while a step ran.
    pub fn at(step: &Step, what: &str) -> Self {
        let of_call = step.method.is_some() && step.entry == "call";
        let what = if of_call { what.to_owned() } else { format!("{}: {what}", step.entry) };
        Self { method: step.method.clone(), arguments: step.arguments.clone(), what }
    }

    /// The same, seen in a setting.
    pub fn in_setting(self, setting: Option<&str>) -> Self {
        match setting {
            Some(setting) => Self { what: format!("{setting}: {}", self.what), ..self },
            None => self,
        }
    }

    /// Something about a call.
    pub fn of(call: &CallName, what: impl Into<String>) -> Self {
        let CallName { method, arguments } = call;
        Self { method: Some(method.clone()), arguments: Some(shortened(arguments)), what: what.into() }
    }
}

impl From<Fault> for Finding {
    fn from(fault: Fault) -> Self {
        match &fault.call {
            Some(call) => Self::of(call, fault.what),
            None => Self::new(fault.what),
        }
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

/// Arguments as a report shows them.
fn shortened(arguments: &str) -> String {
    match arguments.char_indices().nth(SHOWN_CHARACTERS) {
        None => arguments.to_owned(),
        Some((end, _)) => {
            format!("{}... ({} bytes)", arguments.get(..end).unwrap_or_default(), arguments.len())
        }
    }
}

/// What the process tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Message {
    /// A thread enters the plugin's code.
    Enter {
        /// The thread.
        thread: u64,
        /// What it enters.
        step: Step,
    },
    /// A thread has left the plugin's code.
    Leave {
        /// The thread.
        thread: u64,
    },
    /// An instance came up.
    Started,
    /// What follows is done in a setting of its own: `with the option depth = 0`.
    Setting(Option<String>),
    /// The plugin logged an error.
    Logged(String),
    /// Something is wrong with the plugin.
    Found(Finding),
    /// There is nothing to check, for a reason.
    Skipped(String),
    /// The check is over, with what it did.
    Done(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_name_method_arguments_and_phase() {
        let long = format!("[\"{}\"]", "ä".repeat(200));
        let call = CallName { method: "m".into(), arguments: long.clone() };
        let text = Finding::of(&call, "it is wrong").to_string();
        assert!(text.starts_with("m [\"ää") && text.ends_with("... (404 bytes): it is wrong"), "{text}");
        let step = Step::from(Entry::Cancel { method: "m", arguments: "[]" });
        assert_eq!(Finding::at(&step, "it ended").to_string(), "m []: cancel: it ended");
        let call = CallName { method: "m".into(), arguments: "[]".into() };
        let step = Step::after(&call, "release of its answer");
        assert_eq!(Finding::at(&step, "it ended").to_string(), "m []: release of its answer: it ended");
        assert_eq!(Finding::at(&Step::of("init"), "it ended").to_string(), "init: it ended");
    }
}

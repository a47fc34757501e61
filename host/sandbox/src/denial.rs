//! What a confined process tried and was refused.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The most characters of an argument that are kept.
const MAX_ARGUMENT: usize = 256;

/// What was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// To open a file, to change a folder, or to ask about a file.
    Open,
    /// To connect to an address.
    Connect,
    /// To make a socket, or to listen on one.
    Socket,
    /// To start a process.
    Fork,
    /// To run a program.
    Exec,
    /// To look into another process.
    Ptrace,
    /// To signal another process.
    Kill,
    /// To change mounts, roots or namespaces.
    Mount,
    /// Shared memory, semaphores or message queues of the system.
    Ipc,
    /// Any other system call.
    Other,
}

impl Kind {
    /// Its name in lists and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Connect => "connect",
            Self::Socket => "socket",
            Self::Fork => "fork",
            Self::Exec => "exec",
            Self::Ptrace => "ptrace",
            Self::Kill => "kill",
            Self::Mount => "mount",
            Self::Ipc => "ipc",
            Self::Other => "other",
        }
    }
}

/// One refused attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denial {
    /// What was tried.
    pub kind: Kind,
    /// The system call's name.
    pub call: String,
    /// A path, an address or a process; empty if there is none to tell. Without control characters.
    pub argument: String,
}

impl Denial {
    /// An attempt; the argument is made fit to print.
    #[must_use]
    pub fn new(kind: Kind, call: &str, argument: &str) -> Self {
        let printable = argument.chars().map(|letter| if letter.is_control() { '?' } else { letter });
        Self { kind, call: call.to_owned(), argument: printable.take(MAX_ARGUMENT).collect() }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.argument.as_str() {
            "" => write!(to, "{}", self.call),
            argument => write!(to, "{} {argument}", self.call),
        }
    }
}

/// The refused attempts of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfKind {
    /// How many.
    pub count: u64,
    /// The last one, in words: the system call and its argument.
    pub last: String,
}

/// All refused attempts of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denials {
    /// How many.
    pub count: u64,
    /// Those of each kind. Those of kind [`Kind::Other`] are counted by the name of their system call.
    pub by_kind: BTreeMap<String, OfKind>,
    /// The last one.
    pub last: Option<Denial>,
}

impl Denials {
    /// Counts one.
    pub fn add(&mut self, denial: Denial) {
        self.count = self.count.saturating_add(1);
        let name = if denial.kind == Kind::Other { denial.call.as_str() } else { denial.kind.name() };
        let of = self.by_kind.entry(name.to_owned()).or_default();
        of.count = of.count.saturating_add(1);
        of.last = denial.to_string();
        self.last = Some(denial);
    }
}

/// What the host is told of a confined process while it runs.
#[derive(Debug)]
pub enum Event<'a> {
    /// It was refused something.
    Denied(&'a Denial),
    /// More than [`FLOOD`] of its calls were refused within a second, or five times as many done by the host or with its leave. Told
    /// once in each such second: whoever hears it ends the process.
    Flood,
}

/// The refused attempts within one second that are a flood. At some 10 us each they would keep a tenth of a processor busy.
pub const FLOOD: u32 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denials_are_counted_by_kind_and_others_by_their_call() {
        let mut all = Denials::default();
        all.add(Denial::new(Kind::Open, "openat", "/etc/shadow"));
        all.add(Denial::new(Kind::Other, "bpf", ""));
        all.add(Denial::new(Kind::Open, "open", "/a\nb\u{1b}"));
        assert_eq!(all.count, 3);
        let of = |count, last: &str| OfKind { count, last: last.to_owned() };
        let by_kind = BTreeMap::from([("open".into(), of(2, "open /a?b?")), ("bpf".into(), of(1, "bpf"))]);
        assert_eq!(all.by_kind, by_kind);
        assert_eq!(all.last.unwrap().to_string(), "open /a?b?");
        assert_eq!(Denial::new(Kind::Open, "open", &"x".repeat(5000)).argument.len(), MAX_ARGUMENT);
    }
}

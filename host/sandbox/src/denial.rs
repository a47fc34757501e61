//! System calls that were denied to a confined process.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// In characters. Longer arguments are truncated.
const MAX_ARGUMENT: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Opening or querying a file, or changing a folder.
    Open,
    Connect,
    /// Making a socket, or listening on one.
    Socket,
    Fork,
    Exec,
    Ptrace,
    Kill,
    /// Changing mounts, roots or namespaces.
    Mount,
    /// System V shared memory, semaphores or message queues.
    Ipc,
    Other,
}

impl Kind {
    /// The name in lists and metrics.
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

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denial {
    pub kind: Kind,
    pub call: String,
    /// A path, an address or a process; may be empty. It has no control characters.
    pub argument: String,
}

impl Denial {
    /// Replaces control characters, and truncates the argument.
    pub fn new(kind: Kind, call: &str, argument: &str) -> Self {
        let printable = argument.chars().map(|letter| if letter.is_control() { '?' } else { letter });
        Self { kind, call: call.to_owned(), argument: printable.take(MAX_ARGUMENT).collect() }
    }
}

/// The files that a C library reads to resolve a name.
const RESOLVING: [&str; 5] =
    ["/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/host.conf", "/var/run/nscd/socket"];

impl Denial {
    /// Whether the process probably tried to resolve a name. The name is unknown: the process could not send its query.
    pub fn is_lookup(&self) -> bool {
        let argument = self.argument.trim_start_matches("unix:");
        RESOLVING.contains(&argument)
            || (self.kind == Kind::Connect && argument.starts_with("tcp:") && argument.ends_with(":53"))
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

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfKind {
    pub count: u64,
    /// The last system call with its argument.
    pub last: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denials {
    pub count: u64,
    /// By kind. Denials of [`Kind::Other`] are counted by the name of the system call.
    pub by_kind: BTreeMap<String, OfKind>,
    pub last: Option<Denial>,
}

impl Denials {
    pub fn add(&mut self, denial: Denial) {
        self.count = self.count.saturating_add(1);
        let name = if denial.kind == Kind::Other { denial.call.as_str() } else { denial.kind.name() };
        let of = self.by_kind.entry(name.to_owned()).or_default();
        of.count = of.count.saturating_add(1);
        of.last = denial.to_string();
        self.last = Some(denial);
    }
}

#[derive(Debug)]
pub enum Event<'a> {
    Denied(&'a Denial),
    /// More than [`FLOOD`] calls were denied within a second, or five times as many executed with the host's help or
    /// permission. Reported once in that second. The receiver ends the process.
    Flood,
}

/// Denied calls per second. At about 10 us each, this many would use a tenth of a CPU.
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
        let is_lookup = |kind, argument| Denial::new(kind, "call", argument).is_lookup();
        assert!(is_lookup(Kind::Open, "/etc/resolv.conf") && is_lookup(Kind::Connect, "tcp:127.0.0.53:53"));
        assert!(
            is_lookup(Kind::Connect, "unix:/var/run/nscd/socket") && !is_lookup(Kind::Connect, "tcp:127.0.0.1:8053")
        );
        assert_eq!(Denial::new(Kind::Open, "open", &"x".repeat(5000)).argument.len(), MAX_ARGUMENT);
    }
}

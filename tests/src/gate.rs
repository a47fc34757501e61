//! A place where a plugin for tests waits: who listens there knows that it has come, and lets it go on.

use std::net::{TcpListener, TcpStream};

/// Where calls of the plugin `faulty` wait.
pub struct Gate(TcpListener);

/// A call that waits at a gate. Dropping it lets the call go on.
pub struct Waiting(TcpStream);

impl Gate {
    /// A gate on a port that the system picks.
    pub fn new() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    /// Where it is, as a method's argument.
    pub fn address(&self) -> String {
        self.0.local_addr().unwrap().to_string()
    }

    /// What the section of a plugin says that may come to these gates from a process of its own.
    pub fn reach(gates: &[&Self]) -> String {
        let addresses = gates.iter().map(|gate| format!("\"connect:tcp:{}\"", gate.address()));
        format!("reach = [{}]\n", addresses.collect::<Vec<_>>().join(", "))
    }

    /// Waits until a call has come.
    pub fn wait(&self) -> Waiting {
        Waiting(self.0.accept().unwrap().0)
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

impl Waiting {
    /// Waits until the call goes away by itself.
    pub fn gone(mut self) {
        let mut rest = Vec::new();
        // An error is an end as well.
        let _ = std::io::Read::read_to_end(&mut self.0, &mut rest);
    }
}

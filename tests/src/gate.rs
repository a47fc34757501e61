//! Gates: sockets at which calls of a test plugin wait. The test sees when a call has come, and lets it continue.

use std::net::{TcpListener, TcpStream};

/// Where calls of the plugin `faulty` wait.
pub struct Gate(TcpListener);

/// A call that waits at a gate. Dropping it lets the call continue.
pub struct Waiting(TcpStream);

impl Gate {
    /// A gate on a port that the system picks.
    pub fn new() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    /// The gate's address, as a method's argument.
    pub fn address(&self) -> String {
        self.0.local_addr().unwrap().to_string()
    }

    /// The line of a plugin's section that lets it reach these gates from its own process.
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
    /// Waits until the call closes its connection.
    pub fn gone(mut self) {
        let mut rest = Vec::new();
        // An error ends the wait as well.
        let _ = std::io::Read::read_to_end(&mut self.0, &mut rest);
    }
}

//! Whether a store of wallets keeps the contract of [`Wallet`] and [`Signer`]: a suite that any backend can run.
//!
//! The contract stands with the functions of the two traits. A backend under test is a [`Subject`]: it follows the node in
//! memory that the suite drives ([`TestNode`]), and answers the services. [`run`] checks one promise after the other, each
//! with a fresh subject, and reports all that were broken, by name. [`compare()`] plays a random sequence of operations on two
//! subjects at once, and holds every answer that the contract determines against that of the other.
//!
//! ```
//! use outrigger_service::{Scope, Signer, Wallet};
//! use outrigger_sdk::testing::MemoryWallet;
//! use outrigger_sdk::testing::conformance::{self, Happening, Subject, TestNode};
//! use std::sync::atomic::{AtomicU64, Ordering};
//!
//! struct InMemory {
//!     node: TestNode,
//!     wallet: MemoryWallet,
//!     calls: AtomicU64,
//! }
//!
//! impl Subject for InMemory {
//!     fn node(&self) -> &TestNode {
//!         &self.node
//!     }
//!     fn tell(&self, _: &Happening) {
//!         // It follows the node at each call. A backend that is told hands the event on here.
//!         self.wallet.list(Scope::NONE).unwrap();
//!     }
//!     fn wallet(&self) -> &dyn Wallet {
//!         &self.wallet
//!     }
//!     fn signer(&self) -> &dyn Signer {
//!         &self.wallet
//!     }
//!     fn open(&self, wallet: Option<&str>) -> Scope {
//!         let scope = Scope(self.calls.fetch_add(1, Ordering::Relaxed));
//!         if let Some(wallet) = wallet {
//!             self.wallet.open_call(scope, wallet);
//!         }
//!         scope
//!     }
//!     fn close(&self, scope: Scope) {
//!         self.wallet.close_call(scope);
//!     }
//!     fn keypool(&self) -> u32 {
//!         MemoryWallet::KEYPOOL
//!     }
//!     fn backup_file(&self, name: &str) -> String {
//!         name.to_owned()
//!     }
//! }
//!
//! fn fresh() -> Box<dyn Subject> {
//!     let node = TestNode::new();
//!     let wallet = MemoryWallet::over(node.chain.clone(), node.mempool.clone());
//!     Box::new(InMemory { node, wallet, calls: AtomicU64::new(1) })
//! }
//!
//! let report = conformance::run(&fresh);
//! assert!(report.is_clean(), "{report}");
//! conformance::compare(7, 30, &*fresh(), &*fresh()).unwrap();
//! ```
//!
//! Not checked is what only a medium can break (a full disk, a crash between two writes), what takes a clock to pass (that an
//! unlocked wallet locks itself), a rescan that is still under way, the limits of large answers, and of imported keys and
//! scripts the ones that contradict each other: uncompressed keys in witness scripts, and scripts nested deeper than
//! pay-to-script-hash around a witness script.

mod bench;
mod cases;
mod compare;
mod node;
#[cfg(test)]
mod tests;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

pub use compare::compare;
pub use node::{Happening, TestNode};

use outrigger_service::{Scope, ServiceError, Signer, Wallet};
use outrigger_service::wire::WireError;
use bench::Bench;

/// A backend under test: wallets without any wallet yet, over a node of its own.
pub trait Subject {
    /// The node that the backend follows; the suite makes things happen there.
    fn node(&self) -> &TestNode;
    /// Something has happened at the node. Called in the order of the happenings, after them, and for some after further
    /// ones: the node may have gone on. A backend that asks the node at each call need not do more than ask it now.
    fn tell(&self, happening: &Happening);
    /// The store.
    fn wallet(&self) -> &dyn Wallet;
    /// The signatures by its keys; for a store that needs a grant for them, with it.
    fn signer(&self) -> &dyn Signer;
    /// Begins a call that names a wallet, or names none. Its scope is one of no other call.
    fn open(&self, wallet: Option<&str>) -> Scope;
    /// Ends a call.
    fn close(&self, scope: Scope);
    /// How many scripts the store keeps derived ahead for each descriptor, at least 3.
    fn keypool(&self) -> u32;
    /// A place that backups can be written to, another one for another name.
    fn backup_file(&self, name: &str) -> String;
}

/// Why a promise counts as broken.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Failure(pub String);

impl From<ServiceError> for Failure {
    fn from(error: ServiceError) -> Self {
        Self(format!("refused with {error}"))
    }
}

impl From<WireError> for Failure {
    fn from(error: WireError) -> Self {
        Self(format!("an answer is damaged: {error}"))
    }
}

impl From<secp256k1::Error> for Failure {
    fn from(error: secp256k1::Error) -> Self {
        Self(format!("a key or signature is none: {error}"))
    }
}

/// What checking a promise gives.
pub type Outcome = Result<(), Failure>;

/// One promise, and the check of it.
pub struct Case {
    /// Its name.
    pub name: &'static str,
    check: fn(&Bench<'_>) -> Outcome,
}

impl Case {
    /// Checks it with a fresh subject. A panic of the subject is a failure.
    ///
    /// # Errors
    /// What was found instead.
    pub fn check(&self, subject: &dyn Subject) -> Outcome {
        let checked = catch_unwind(AssertUnwindSafe(|| (self.check)(&Bench::new(subject))));
        checked.unwrap_or_else(|_| Err(Failure("it panicked".into())))
    }
}

/// All promises that are checked.
pub fn cases() -> Vec<Case> {
    cases::all()
}

/// What a run of the suite found.
#[derive(Default, Debug)]
pub struct Report {
    /// The names of the cases that held.
    pub held: Vec<&'static str>,
    /// Those that did not, with what was found.
    pub broken: Vec<(&'static str, Failure)>,
}

impl Report {
    /// Whether every promise was kept.
    pub fn is_clean(&self) -> bool {
        self.broken.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} promises held, {} did not", self.held.len(), self.broken.len())?;
        self.broken.iter().try_for_each(|(name, failure)| writeln!(f, "  {name}: {failure}"))
    }
}

/// Checks all promises, each with a subject that `fresh` makes.
pub fn run(fresh: &dyn Fn() -> Box<dyn Subject>) -> Report {
    let mut report = Report::default();
    for case in cases() {
        match case.check(&*fresh()) {
            Ok(()) => report.held.push(case.name),
            Err(failure) => report.broken.push((case.name, failure)),
        }
    }
    report
}

//! Tests of the node as a whole, and comparisons with bitcoind's recorded answers.

mod branches;
mod coins;
mod deployments;
mod entries;
mod mempool;
mod miner;
mod packages;
mod recorded;
mod restart;
mod search;
mod selection;
mod storage;

use std::path::PathBuf;
use std::sync::Arc;

use outrigger_node::Node;
use tempfile::TempDir;

use super::{EmbeddedNode, Settings};

/// A node in its own directory.
struct TestNode {
    node: Option<Arc<EmbeddedNode>>,
    dir: TempDir,
    settings: Settings,
}

impl TestNode {
    fn new() -> Self {
        Self::with(Settings::default())
    }

    fn with(settings: Settings) -> Self {
        let dir = TempDir::new().unwrap();
        let node = EmbeddedNode::open(dir.path(), settings.clone()).unwrap();
        Self { node: Some(node), dir, settings }
    }

    /// Closes the database and opens it again.
    fn reopen(&mut self) {
        let time = self.time();
        self.node = None;
        self.node = Some(EmbeddedNode::open(self.dir.path(), self.settings.clone()).unwrap());
        self.set_mock_time(time).unwrap();
    }
}

impl std::ops::Deref for TestNode {
    type Target = Arc<EmbeddedNode>;

    fn deref(&self) -> &Self::Target {
        self.node.as_ref().unwrap()
    }
}

/// A file of bitcoind's recorded answers.
fn recorded_file(name: &str) -> String {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../../tests/data", name].iter().collect();
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    bitcoin::hex::FromHex::from_hex(text).ok()
}

mod branches;
mod coins;
mod deployments;
mod entries;
mod mempool;
mod miner;
mod packages;
mod restart;
mod search;
mod selection;
mod storage;

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
        // In memory if possible: each block is synced, and the tests do not depend on fsync.
        let dir = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).unwrap();
        let node = EmbeddedNode::open(dir.path(), settings.clone()).unwrap();
        Self { node: Some(node), dir, settings }
    }

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

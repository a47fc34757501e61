//! Systems without memory files that can be sealed: lanes are sockets alone there, and of what is of memory nothing is ever made.

use std::convert::Infallible;
use std::io::{Error, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use crate::body::Received;
use crate::budget::Budget;
use crate::frame::{FrameError, Head};

/// What one side writes of all lanes.
pub struct Region(Infallible);

impl Region {
    /// There is none.
    ///
    /// # Errors
    /// Always.
    pub fn create(_theirs: bool) -> std::io::Result<(Arc<Self>, OwnedFd)> {
        Err(Error::from(ErrorKind::Unsupported))
    }

    /// There is none.
    ///
    /// # Errors
    /// Always.
    pub fn open(_file: impl AsFd, _is_ours: bool) -> std::io::Result<Arc<Self>> {
        Err(Error::from(ErrorKind::Unsupported))
    }
}

/// Whether the writer of a region has ended.
#[derive(Default)]
pub struct End;

impl End {
    /// Nobody waits.
    pub fn tell(&self, theirs: &Arc<Region>) {
        match theirs.0 {}
    }
}

/// Which end of a lane.
pub enum Side {
    /// The host's.
    Host {
        /// Whether the runner has ended.
        end: Arc<End>,
        /// For the long messages of all lanes of the runner.
        budget: Arc<Budget>,
    },
    /// The runner's.
    Runner,
}

/// One end of a lane.
pub struct MemoryLane(Infallible);

impl MemoryLane {
    /// There is none.
    pub fn new(_: Side, _: usize, ours: &Arc<Region>, _: &Arc<Region>) -> Option<Self> {
        match ours.0 {}
    }

    /// Is never called.
    ///
    /// # Errors
    /// None.
    pub fn send(&mut self, _head: Head, _parts: &[&[u8]]) -> Result<(), FrameError> {
        match self.0 {}
    }

    /// Is never called.
    ///
    /// # Errors
    /// None.
    pub fn send_without_waking(&mut self, _head: Head, _parts: &[&[u8]]) -> Result<(), FrameError> {
        match self.0 {}
    }

    /// Is never called.
    pub fn has_message(&self) -> bool {
        match self.0 {}
    }

    /// Is never called.
    pub fn sent(&self) -> u32 {
        match self.0 {}
    }

    /// Is never called.
    pub fn close(&self) -> u32 {
        match self.0 {}
    }

    /// Is never called.
    ///
    /// # Errors
    /// None.
    pub fn receive(&mut self, _limit: usize, _until: Option<Instant>) -> Result<Received, FrameError> {
        match self.0 {}
    }
}

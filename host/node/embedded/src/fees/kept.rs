//! Where the fee estimates are kept over a restart: a file in the chain's folder, written each hour that brings blocks, and at the end.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::FeeEstimates;

/// The file, and where it is written anew.
const FILE: &str = "fee_estimates.dat";
const NEW_FILE: &str = "fee_estimates.dat.new";
/// How long estimates that were written are not written again while the node runs.
const INTERVAL: Duration = Duration::from_secs(60 * 60);
/// Estimates that are older say nothing any more.
const MAX_AGE: Duration = Duration::from_secs(60 * 60 * 60);

/// The file of the fee estimates. No failure stops the node.
pub struct KeptEstimates {
    dir: PathBuf,
    written: Mutex<Instant>,
}

impl KeptEstimates {
    /// Reads the estimates of the last run, where there are any. What cannot be read is logged, and not there.
    pub fn open(dir: &Path) -> (Self, FeeEstimates) {
        let kept = Self { dir: dir.to_owned(), written: Mutex::new(Instant::now()) };
        let path = dir.join(FILE);
        let estimates = read(&path).unwrap_or_else(|error| {
            tracing::warn!(path = %path.display(), %error, "the fee estimates cannot be read");
            None
        });
        (kept, estimates.unwrap_or_default())
    }

    /// Writes the estimates where that was not done for an hour.
    pub fn tend(&self, estimates: impl FnOnce() -> Vec<u8>) {
        {
            let mut written = self.written.lock();
            if written.elapsed() < INTERVAL {
                return;
            }
            *written = Instant::now();
        }
        self.write(&estimates());
    }

    /// Writes the estimates, in place of the former ones.
    pub fn write(&self, estimates: &[u8]) {
        let write = || -> io::Result<()> {
            let fresh = self.dir.join(NEW_FILE);
            let mut file = fs::File::create(&fresh)?;
            file.write_all(estimates)?;
            file.sync_all()?;
            fs::rename(fresh, self.dir.join(FILE))
        };
        if let Err(error) = write() {
            tracing::warn!(%error, "the fee estimates cannot be written");
        }
    }
}

fn read(path: &Path) -> Result<Option<FeeEstimates>, Box<dyn std::error::Error>> {
    let age = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        metadata => metadata?.modified()?.elapsed().unwrap_or_default(),
    };
    if age > MAX_AGE {
        tracing::info!(path = %path.display(), "the fee estimates are too old");
        return Ok(None);
    }
    Ok(Some(FeeEstimates::from_bytes(&fs::read(path)?)?))
}

//! Connections and listening sockets that the host makes for plugins, by their entries of `reach`.
//!
//! Each instance has a Unix socket in a folder of the host's user. The plugin connects to it and sends a line with an entry of its
//! `reach`. The host answers with a line:
//!
//! - `ok`: the bytes of the connection follow in both directions; or the listening socket came with this line (`SCM_RIGHTS`);
//! - `refused REASON`: the entry is not in `reach`;
//! - `failed REASON`.
//!
//! After `check:`, the entry is only looked up in `reach`: nothing is connected.
//!
//! A plugin in the host's process connects to that socket itself. The sandbox of an isolated plugin grants it, and the host's
//! notifier connects. So the host resolves names, checks certificates and compares entries in one place for both.

mod connect;
mod listen;
mod serve;

use std::fs::{self, DirBuilder};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use outrigger_sandbox::Reach;
use tokio::runtime::{Builder, Runtime};
use tokio::task::AbortHandle;

pub use listen::{Listening, Place};

/// The most threads that resolve names. A name server that does not answer blocks one for a while.
const MAX_RESOLVING: usize = 16;

/// Why the sockets of a plugin could not be created.
#[derive(Debug, thiserror::Error)]
pub enum SocketsError {
    #[error("{entry}: {source}")]
    Listen { entry: String, source: io::Error },
    #[error("the socket for its connections: {0}")]
    Own(#[from] io::Error),
}

/// Called with the text of a request that `reach` does not grant.
pub type Denied = Box<dyn Fn(&str) + Send + Sync>;

/// The sockets of one instance. Its connections end when this is dropped.
#[derive(Debug)]
pub struct Sockets {
    folder: PathBuf,
    path: PathBuf,
    listening: Vec<Arc<Listening>>,
    serving: AbortHandle,
}

impl Sockets {
    /// Listens for a plugin's requests, and at the addresses of its `reach`. The instances of a plugin share its listening sockets. `None`
    /// if `reach` has no connections.
    pub fn open(plugin: &str, reach: &[Reach], place: Place, denied: Denied) -> Result<Option<Self>, SocketsError> {
        let granted: Vec<Reach> = reach.iter().filter(|one| one.is_connect() || one.is_listen()).cloned().collect();
        if granted.is_empty() {
            return Ok(None);
        }
        let listens = granted.iter().filter(|one| one.is_listen());
        let listening = listens.map(|entry| {
            let failed = |source| SocketsError::Listen { entry: entry.to_string(), source };
            Listening::open(plugin, entry, place).map_err(failed)
        });
        let listening = listening.collect::<Result<Vec<_>, _>>()?;
        let runtime = runtime()?;
        // Below the data folder the path could be too long for a socket.
        let folder = own_path()?;
        DirBuilder::new().mode(0o700).create(&folder)?;
        let path = folder.join("sockets");
        let _inside = runtime.enter();
        let bound = tokio::net::UnixListener::bind(&path).inspect_err(|_| remove(&folder, &path))?;
        let granted = serve::Granted { reach: granted, listening: listening.clone(), denied };
        let serving = runtime.spawn(serve::serve(bound, Arc::new(granted))).abort_handle();
        Ok(Some(Self { folder, path, listening, serving }))
    }

    /// The absolute path of the socket for requests.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn listening(&self) -> &[Arc<Listening>] {
        &self.listening
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        self.serving.abort();
        remove(&self.folder, &self.path);
    }
}

fn remove(folder: &Path, path: &Path) {
    let _ = fs::remove_file(path);
    let _ = fs::remove_dir(folder);
}

/// A random absolute path in the folder for temporary files.
fn own_path() -> io::Result<PathBuf> {
    let number = RandomState::new().build_hasher().finish();
    Ok(fs::canonicalize(std::env::temp_dir())?.join(format!("outrigger-{number:016x}")))
}

/// The runtime for the connections of all plugins, with one thread.
fn runtime() -> io::Result<&'static Runtime> {
    static RUNTIME: OnceLock<io::Result<Runtime>> = OnceLock::new();
    let start = || {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(1).max_blocking_threads(MAX_RESOLVING).thread_name("sockets").enable_all().build()
    };
    RUNTIME.get_or_init(start).as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string()))
}

#[cfg(test)]
mod tests;

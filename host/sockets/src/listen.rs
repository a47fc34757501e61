//! Listening sockets. The instances of a plugin share one for each entry, so connections wait in it during a reload.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use outrigger_base::unix_socket::bind_unix;
use outrigger_sandbox::Reach;
use parking_lot::Mutex;

/// A listening socket. Dropping the last reference closes it.
#[derive(Debug)]
pub struct Listening {
    pub(crate) entry: Reach,
    plugin: String,
    socket: OwnedFd,
    /// The path of a Unix socket, to be removed with it.
    path: Option<PathBuf>,
}

/// Where a listening socket is bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// At the address or path of its entry.
    Entry,
    /// At a free port or path: `plugin check` must not take the address of a running plugin.
    Free,
}

static OPEN: Mutex<Vec<Weak<Listening>>> = Mutex::new(Vec::new());

impl Listening {
    /// The plugin's socket of this entry: the open one, or a new one.
    pub(crate) fn open(plugin: &str, entry: &Reach, place: Place) -> io::Result<Arc<Self>> {
        let mut all = OPEN.lock();
        all.retain(|one| one.strong_count() > 0);
        let mut open = all.iter().filter_map(Weak::upgrade);
        if let Some(own) = open.find(|one| one.plugin == plugin && one.entry == *entry) {
            return Ok(own);
        }
        let bind = |path: &Path| bind_unix(path, || UnixListener::bind(path));
        let (socket, path) = match (entry, place) {
            (Reach::ListenTcp(address), Place::Entry) => (TcpListener::bind(address)?.into(), None),
            (Reach::ListenTcp(address), Place::Free) => (TcpListener::bind((address.ip(), 0))?.into(), None),
            (Reach::ListenUnix(path), Place::Entry) => (bind(path)?.into(), Some(path.clone())),
            (Reach::ListenUnix(_), Place::Free) => {
                let path = crate::own_path()?;
                (bind(&path)?.into(), Some(path))
            }
            _ => return Err(io::ErrorKind::InvalidInput.into()),
        };
        let new = Arc::new(Self { entry: entry.clone(), plugin: plugin.to_owned(), socket, path });
        all.push(Arc::downgrade(&new));
        Ok(new)
    }
}

impl AsFd for Listening {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }
}

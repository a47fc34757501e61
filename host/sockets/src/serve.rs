//! Answers the requests of one instance.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use outrigger_sandbox::{MAX_CONNECTIONS, Reach, send_descriptors};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::Denied;
use crate::connect::{Stream, connect};
use crate::listen::Listening;

/// The longest request, in bytes: an entry with the longest name.
const MAX_REQUEST: usize = 300;

/// The longest answer, in characters.
const MAX_LINE: usize = 400;

const REQUEST_TIME: Duration = Duration::from_secs(5);

/// The time limit for resolving, connecting and the handshake.
const CONNECT_TIME: Duration = Duration::from_secs(30);

/// How long one direction may continue after the other has ended. The host cannot tell a closed socket from a closed direction.
const HALF_CLOSED_TIME: Duration = Duration::from_secs(30);

/// The pause after a failed accept, as with too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

pub(crate) struct Granted {
    pub(crate) reach: Vec<Reach>,
    pub(crate) listening: Vec<Arc<Listening>>,
    pub(crate) denied: Denied,
}

pub(crate) async fn serve(own: UnixListener, granted: Arc<Granted>) {
    // Dropped with this task, and the connections with it.
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            accepted = own.accept() => match accepted {
                Ok((mut stream, _)) if open.len() >= MAX_CONNECTIONS => {
                    let _ = say(&mut stream, &format!("failed there are {MAX_CONNECTIONS} open connections")).await;
                }
                Ok((stream, _)) => {
                    let granted = granted.clone();
                    open.spawn(async move { granted.answer(stream).await });
                }
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
            Some(_) = open.join_next() => {}
        }
    }
}

async fn say(to: &mut UnixStream, line: &str) -> io::Result<()> {
    let line: String = line.chars().filter(|letter| !letter.is_control()).take(MAX_LINE).collect();
    to.write_all(format!("{line}\n").as_bytes()).await
}

/// Reads one line, and no byte after it.
async fn request(from: &mut UnixStream) -> io::Result<String> {
    let mut line = Vec::new();
    loop {
        match from.read_u8().await? {
            b'\n' => return String::from_utf8(line).map_err(io::Error::other),
            _ if line.len() == MAX_REQUEST => return Err(io::ErrorKind::InvalidData.into()),
            byte => line.push(byte),
        }
    }
}

impl Granted {
    /// Answers one request. An error is one of the connection to the plugin, and is ignored.
    async fn answer(&self, mut stream: UnixStream) -> io::Result<()> {
        let asked = timeout(REQUEST_TIME, request(&mut stream)).await??;
        let checked = asked.strip_prefix("check:");
        let asked = checked.unwrap_or(&asked);
        let entry = asked.parse::<Reach>().ok().and_then(|asked| self.reach.iter().find(|one| **one == asked));
        let Some(entry) = entry else {
            (self.denied)(asked);
            return say(&mut stream, &format!("refused the plugin's reach has no \"{asked}\"")).await;
        };
        if checked.is_some() {
            return say(&mut stream, "ok").await;
        }
        if let Some(listening) = self.listening.iter().find(|one| one.entry == *entry) {
            // The socket's buffer is empty, so the answer is sent at once.
            return send_descriptors(&stream, b"ok\n", &[listening.as_fd()]);
        }
        match timeout(CONNECT_TIME, connect(entry)).await {
            Ok(Ok(other)) => {
                say(&mut stream, "ok").await?;
                pump(stream, other).await;
                Ok(())
            }
            Ok(Err(error)) => say(&mut stream, &format!("failed {error}")).await,
            Err(_) => say(&mut stream, &format!("failed no connection within {} s", CONNECT_TIME.as_secs())).await,
        }
    }
}

/// Copies in both directions until both have ended.
async fn pump(own: UnixStream, other: Box<dyn Stream>) {
    let (mut from_own, mut to_own) = own.into_split();
    let (mut from_other, mut to_other) = tokio::io::split(other);
    let up = async {
        let _ = copy(&mut from_own, &mut to_other).await;
        let _ = to_other.shutdown().await;
    };
    let down = async {
        let _ = copy(&mut from_other, &mut to_own).await;
        let _ = to_own.shutdown().await;
    };
    tokio::pin!(up, down);
    let _ = tokio::select! {
        () = &mut up => timeout(HALF_CLOSED_TIME, down).await,
        () = &mut down => timeout(HALF_CLOSED_TIME, up).await,
    };
}

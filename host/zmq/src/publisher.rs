use std::future::poll_fn;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use outrigger_base::unix_socket::bind_unix;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::AbortHandle;

use super::endpoint::ZmqEndpoint;
use super::wire::{self, Frame, GREETING_LEN, ZmqError};

/// The maximum number of subscribers per socket. The socket disconnects further ones.
pub const MAX_SUBSCRIBERS: usize = 256;
/// The maximum number of topics per subscriber, and of bytes per topic. A subscription message is one byte longer.
const MAX_TOPICS: usize = 64;
const MAX_TOPIC: u64 = 255;
/// The time limit of the handshake, as in libzmq.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);
/// The pause after a failed accept, for example for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// An encoded message, shared by all subscribers.
type Bytes = Arc<[u8]>;

/// A PUB socket. Any client may connect and subscribe to topic prefixes. Dropping the value closes the socket.
pub struct PubSocket {
    shared: Arc<Subscribers>,
    accepting: AbortHandle,
    /// The file of a Unix domain socket, removed on drop.
    file: Option<PathBuf>,
}

struct Subscribers {
    /// The maximum number of queued messages per subscriber; further ones are dropped.
    high_water_mark: usize,
    subscribers: Mutex<Vec<Subscriber>>,
}

struct Subscriber {
    topics: Arc<Mutex<Vec<Vec<u8>>>>,
    queue: Sender<Bytes>,
}

impl PubSocket {
    /// Listens at an endpoint, on the current tokio runtime. Replaces a Unix socket on which no process
    /// listens. Fails if the endpoint cannot be bound.
    pub async fn bind(endpoint: &ZmqEndpoint, high_water_mark: usize) -> io::Result<Self> {
        let shared = Arc::new(Subscribers { high_water_mark: high_water_mark.max(1), subscribers: Mutex::default() });
        let weak = Arc::downgrade(&shared);
        let (accepting, file) = match endpoint {
            ZmqEndpoint::Tcp(host, port) => {
                let host = if host == "*" { "0.0.0.0" } else { host };
                let listener = TcpListener::bind((host, *port)).await?;
                let next = move |cx: &mut Context<'_>| {
                    listener.poll_accept(cx).map_ok(|(stream, _)| {
                        let _ = stream.set_nodelay(true);
                        stream
                    })
                };
                (tokio::spawn(accept(next, weak)).abort_handle(), None)
            }
            ZmqEndpoint::Ipc(path) => {
                let listener = bind_unix(path, || UnixListener::bind(path))?;
                let next = move |cx: &mut Context<'_>| listener.poll_accept(cx).map_ok(|(stream, _)| stream);
                (tokio::spawn(accept(next, weak)).abort_handle(), Some(path.clone()))
            }
        };
        Ok(Self { shared, accepting, file })
    }

    /// Sends a message to all subscribers to a prefix of its first part. Never waits: a full queue drops it.
    pub fn send(&self, parts: &[&[u8]]) {
        let topic = parts.first().copied().unwrap_or_default();
        let mut message: Option<Bytes> = None;
        self.shared.subscribers.lock().retain(|subscriber| {
            if subscriber.topics.lock().iter().any(|prefix| topic.starts_with(prefix)) {
                let message = message.get_or_insert_with(|| wire::message(parts).into());
                let _ = subscriber.queue.try_send(message.clone());
            }
            !subscriber.queue.is_closed()
        });
    }
}

impl Drop for PubSocket {
    fn drop(&mut self) {
        self.accepting.abort();
        if let Some(file) = &self.file {
            let _ = std::fs::remove_file(file);
        }
    }
}

async fn accept<S: AsyncRead + AsyncWrite + Send + 'static>(
    mut next: impl FnMut(&mut Context<'_>) -> Poll<io::Result<S>>,
    shared: Weak<Subscribers>,
) {
    loop {
        match poll_fn(&mut next).await {
            Ok(stream) => drop(tokio::spawn(serve(stream, shared.clone()))),
            Err(error) => {
                tracing::warn!(%error, "a ZMQ subscriber cannot be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Serves one subscriber until it disconnects or breaks the protocol, or the socket is dropped.
async fn serve<S: AsyncRead + AsyncWrite>(stream: S, shared: Weak<Subscribers>) {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let greeted = tokio::time::timeout(HANDSHAKE_TIMEOUT, greet(&mut reader, &mut writer)).await;
    let Ok(Ok(())) = greeted else { return };
    let topics = Arc::<Mutex<Vec<Vec<u8>>>>::default();
    let (sender, receiver) = {
        let Some(shared) = shared.upgrade() else { return };
        let mut subscribers = shared.subscribers.lock();
        subscribers.retain(|subscriber| !subscriber.queue.is_closed());
        if subscribers.len() >= MAX_SUBSCRIBERS {
            tracing::warn!(MAX_SUBSCRIBERS, "a ZMQ subscriber is refused");
            return;
        }
        let (sender, receiver) = channel(shared.high_water_mark);
        subscribers.push(Subscriber { topics: topics.clone(), queue: sender.clone() });
        (sender.downgrade(), receiver)
    };
    let answer = |pong: Vec<u8>| {
        if let Some(sender) = sender.upgrade() {
            let _ = sender.try_send(pong.into());
        }
    };
    tokio::select! {
        _ = hear(&mut reader, &topics, answer) => {}
        _ = write(&mut writer, receiver) => {}
    }
}

async fn greet(reader: &mut (impl AsyncRead + Unpin), writer: &mut (impl AsyncWrite + Unpin)) -> Result<(), ZmqError> {
    writer.write_all(&wire::greeting()).await?;
    let mut theirs = [0; GREETING_LEN];
    reader.read_exact(&mut theirs).await?;
    wire::check_greeting(&theirs)?;
    writer.write_all(&wire::ready(*b"PUB")).await?;
    wire::check_ready(&read(reader).await?)
}

async fn read(reader: &mut (impl AsyncRead + Unpin)) -> Result<Frame, ZmqError> {
    let flags = reader.read_u8().await?;
    let mut bytes = [0; 8];
    let bytes = &mut bytes[..wire::length_bytes(flags)?];
    reader.read_exact(bytes).await?;
    // `wire::length` bounds the length, so the allocation is small.
    let mut body = vec![0; usize::try_from(wire::length(bytes, MAX_TOPIC + 1)?).unwrap_or_default()];
    reader.read_exact(&mut body).await?;
    Ok(Frame { flags, body })
}

async fn hear(
    reader: &mut (impl AsyncRead + Unpin),
    topics: &Mutex<Vec<Vec<u8>>>,
    answer: impl Fn(Vec<u8>),
) -> Result<(), ZmqError> {
    loop {
        let frame = read(reader).await?;
        if frame.is_command() {
            // After the name: the peer's timeout in tenths of a second, and a context for the answer.
            if let Some(rest) = frame.body.strip_prefix(wire::PING) {
                answer(wire::frame(wire::COMMAND, &[wire::PONG, rest.get(2..).unwrap_or_default()].concat()));
            }
            continue;
        }
        let mut topics = topics.lock();
        match frame.body.split_first() {
            Some((1, topic)) if topics.len() < MAX_TOPICS => topics.push(topic.to_vec()),
            Some((1, _)) => return Err(ZmqError::Protocol("it subscribes to too many topics")),
            // Removes one of several equal subscriptions.
            Some((0, topic)) => {
                if let Some(position) = topics.iter().position(|known| known == topic) {
                    topics.swap_remove(position);
                }
            }
            // Other messages of a subscriber are ignored.
            _ => {}
        }
    }
}

/// For fuzzing: reads the bytes of one connection until they end or break the protocol. Returns the topics subscribed
/// at that point, and the answers to heartbeats.
pub fn hear_all(bytes: &[u8]) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let (topics, answers) = (Mutex::default(), Mutex::<Vec<Vec<u8>>>::default());
    let mut reader = bytes;
    let mut work = Box::pin(async {
        if greet(&mut reader, &mut tokio::io::sink()).await.is_ok() {
            let _ = hear(&mut reader, &topics, |pong| answers.lock().push(pong)).await;
        }
    });
    // All bytes are in memory, so no wake-up is needed.
    let mut context = Context::from_waker(std::task::Waker::noop());
    while work.as_mut().poll(&mut context).is_pending() {}
    drop(work);
    (topics.into_inner(), answers.into_inner())
}

async fn write(writer: &mut (impl AsyncWrite + Unpin), mut queue: Receiver<Bytes>) -> io::Result<()> {
    while let Some(message) = queue.recv().await {
        writer.write_all(&message).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits until the socket has received its only subscription.
    fn wait_until_known(socket: &PubSocket) {
        let is_known = || socket.shared.subscribers.lock().iter().any(|one| !one.topics.lock().is_empty());
        while !is_known() {
            std::thread::yield_now();
        }
    }

    fn socket(high_water_mark: usize) -> (tempfile::TempDir, tokio::runtime::Runtime, PubSocket, ZmqEndpoint) {
        let folder = tempfile::tempdir().unwrap();
        let endpoint = ZmqEndpoint::Ipc(folder.path().join("socket"));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let socket = runtime.block_on(PubSocket::bind(&endpoint, high_water_mark)).unwrap();
        (folder, runtime, socket, endpoint)
    }

    #[test]
    fn subscribers_get_what_begins_with_their_topics() {
        let (_folder, _runtime, socket, endpoint) = socket(1_000);
        let limit = Duration::from_secs(60);
        let mut some = endpoint.subscribe(&[b"raw"], 1 << 20, limit).unwrap();
        wait_until_known(&socket);
        let long = vec![7; 70_000];
        socket.send(&[b"hash", b"1"]);
        socket.send(&[b"rawblock", &long, b"0"]);
        socket.send(&[b"ra", b"2"]);
        socket.send(&[b"raw", b""]);
        assert_eq!(some.read().unwrap(), [b"rawblock".to_vec(), long, b"0".to_vec()]);
        assert_eq!(some.read().unwrap(), [b"raw".to_vec(), Vec::new()]);
        drop(socket);
        assert!(matches!(some.read(), Err(ZmqError::Io(_))));
    }

    #[test]
    fn only_an_abandoned_socket_is_replaced() {
        let (folder, runtime, _socket, live) = socket(3);
        let bind = |endpoint: &ZmqEndpoint| runtime.block_on(PubSocket::bind(endpoint, 3)).map(drop);
        let in_use = |bound: io::Result<()>| bound.is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse);
        assert!(in_use(bind(&live)));
        let file = folder.path().join("file");
        std::fs::write(&file, "kept").unwrap();
        assert!(in_use(bind(&ZmqEndpoint::Ipc(file.clone()))));
        assert_eq!(std::fs::read(&file).unwrap(), b"kept");
        let left = folder.path().join("left");
        drop(std::os::unix::net::UnixListener::bind(&left).unwrap());
        bind(&ZmqEndpoint::Ipc(left)).unwrap();
    }

    #[test]
    fn read_timeout_does_not_end_the_subscription() {
        let (_folder, _runtime, socket, endpoint) = socket(1_000);
        let mut quiet = endpoint.subscribe(&[b"raw"], 1 << 20, Duration::from_millis(20)).unwrap();
        wait_until_known(&socket);
        assert!(matches!(quiet.read(), Err(ZmqError::Silent)));
        socket.send(&[b"raw"]);
        let heard = loop {
            match quiet.read() {
                Err(ZmqError::Silent) => {}
                heard => break heard,
            }
        };
        assert_eq!(heard.unwrap(), [b"raw"]);
        drop(socket);
        let end = std::iter::repeat_with(|| quiet.read()).find(|read| !matches!(read, Err(ZmqError::Silent)));
        assert!(matches!(end, Some(Err(ZmqError::Io(_)))));
    }

    #[test]
    fn slow_subscriber_loses_messages_and_does_not_block_the_publisher() {
        let (_folder, _runtime, socket, endpoint) = socket(3);
        let limit = Duration::from_secs(60);
        let mut slow = endpoint.subscribe(&[b""], 1 << 20, limit).unwrap();
        wait_until_known(&socket);
        // More than the system buffers for a connection.
        let body = vec![1; 1 << 20];
        for number in 0..100_u8 {
            socket.send(&[b"x", &body, &[number]]);
        }
        // The first messages arrive whole and in order.
        let first = slow.read().unwrap();
        assert_eq!((first[1].len(), &first[2]), (body.len(), &vec![0]));
        let second = slow.read().unwrap();
        assert_eq!(second[2], [1]);
        assert!(socket.shared.subscribers.lock()[0].queue.capacity() <= 3);
    }

    #[test]
    fn peer_that_breaks_the_protocol_is_disconnected() {
        use std::io::{Read, Write};
        let (_folder, _runtime, socket, endpoint) = socket(3);
        let ZmqEndpoint::Ipc(path) = &endpoint else { panic!("{endpoint:?}") };
        let greeted = |rest: &[u8]| {
            let mut stream = std::os::unix::net::UnixStream::connect(path).unwrap();
            stream.write_all(&[&wire::greeting()[..], &wire::ready(*b"SUB"), rest].concat()).unwrap();
            stream
        };
        let long = wire::frame(0, &vec![1; 300]);
        let many = wire::frame(0, b"\x01a").repeat(MAX_TOPICS + 1);
        for wrong in [&long[..], &[0xff, 1, 2], &many] {
            let mut heard = Vec::new();
            let _ = greeted(wrong).read_to_end(&mut heard);
            assert!(heard.starts_with(&wire::greeting()));
        }
        // A heartbeat is answered with its context.
        let mut alive = greeted(&wire::frame(wire::COMMAND, b"\x04PING\x00\x0ahere"));
        let mut expected = [&wire::greeting()[..], &wire::ready(*b"PUB")].concat();
        expected.extend(wire::frame(wire::COMMAND, b"\x04PONGhere"));
        let mut heard = vec![0; expected.len()];
        alive.read_exact(&mut heard).unwrap();
        assert_eq!(heard, expected);
        drop(socket);
    }
}

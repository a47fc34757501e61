//! The stream sockets of connections.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use rustix::net::{RecvFlags, recv};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, Ready};
use tokio::net::{TcpStream, UnixStream};

/// A stream socket of one of the kinds that the server listens on.
pub(super) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// Evaluates an expression for the stream of either kind.
macro_rules! on_stream {
    ($socket:expr, $stream:ident => $do:expr) => {
        match $socket {
            Socket::Tcp($stream) => $do,
            Socket::Unix($stream) => $do,
        }
    };
}

impl Socket {
    /// Takes the socket off its tokio runtime, and registers it with the runtime that this thread has entered.
    pub(super) fn moved(self) -> io::Result<Self> {
        Ok(match self {
            Self::Tcp(stream) => Self::Tcp(TcpStream::from_std(stream.into_std()?)?),
            Self::Unix(stream) => Self::Unix(UnixStream::from_std(stream.into_std()?)?),
        })
    }

    pub(super) fn tcp(&self) -> Option<&TcpStream> {
        match self {
            Self::Tcp(stream) => Some(stream),
            Self::Unix(_) => None,
        }
    }

    /// Waits for the first byte, and leaves it in the socket. `None` at the end of the stream.
    pub(super) async fn peek(&self) -> io::Result<Option<u8>> {
        let mut first = [0];
        loop {
            self.ready(Interest::READABLE).await?;
            let peeked = self.try_io(Interest::READABLE, || Ok(recv(self, &mut first[..], RecvFlags::PEEK)?));
            match peeked {
                Ok((_, count)) => return Ok((count > 0).then_some(first[0])),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        on_stream!(self, stream => stream.ready(interest).await)
    }

    pub(super) fn poll_read_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_stream!(self, stream => stream.poll_read_ready(context))
    }

    pub(super) fn poll_write_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_stream!(self, stream => stream.poll_write_ready(context))
    }

    pub(super) fn try_io<R>(&self, interest: Interest, io: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        on_stream!(self, stream => stream.try_io(interest, io))
    }

    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        on_stream!(self, stream => stream.try_write(bytes))
    }

    pub(super) fn try_write_vectored(&self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        on_stream!(self, stream => stream.try_write_vectored(bufs))
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        on_stream!(self, stream => stream.as_fd())
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        on_stream!(self.get_mut(), stream => Pin::new(stream).poll_read(cx, buf))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        on_stream!(self.get_mut(), stream => Pin::new(stream).poll_write(cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_stream!(self.get_mut(), stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_stream!(self.get_mut(), stream => Pin::new(stream).poll_shutdown(cx))
    }
}

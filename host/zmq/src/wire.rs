//! The messages of both sides: a greeting, commands, and messages of one or more frames.

use std::io;

/// The length of a greeting, in bytes, and the offset of the mechanism in it.
pub const GREETING_LEN: usize = 64;
const MECHANISM: std::ops::Range<usize> = 12..32;

/// Bits of a frame's flags: more frames follow; the length has eight bytes; it is a command.
pub const MORE: u8 = 1;
const LONG: u8 = 2;
pub const COMMAND: u8 = 4;

/// The beginnings of commands: the length of the name, and the name.
pub const READY: &[u8] = b"\x05READY";
pub const PING: &[u8] = b"\x04PING";
pub const PONG: &[u8] = b"\x04PONG";

#[derive(Debug, thiserror::Error)]
pub enum ZmqError {
    /// No message arrived before the timeout. The subscription continues.
    #[error("no message arrived in time")]
    Silent,
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The peer breaks the protocol, or speaks another one.
    #[error("not a ZMQ peer of bitcoind: {0}")]
    Protocol(&'static str),
}

/// Signature, version 3.0 and mechanism. The rest is zero: without authentication, neither side is the server.
pub fn greeting() -> [u8; GREETING_LEN] {
    let mut greeting = [0; GREETING_LEN];
    greeting[..12].copy_from_slice(&[0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0]);
    greeting[MECHANISM][..4].copy_from_slice(b"NULL");
    greeting
}

/// Checks that the peer speaks ZMTP 3 or later, without authentication.
pub fn check_greeting(theirs: &[u8; GREETING_LEN]) -> Result<(), ZmqError> {
    let ours = greeting();
    if theirs[0] != 0xff || theirs[9] != 0x7f || theirs[10] < 3 || theirs[MECHANISM] != ours[MECHANISM] {
        return Err(ZmqError::Protocol("its greeting is not that of ZMTP 3 without authentication"));
    }
    Ok(())
}

/// The command that ends the handshake of a socket of this type.
pub fn ready(socket_type: [u8; 3]) -> Vec<u8> {
    frame(COMMAND, &[READY, b"\x0bSocket-Type\x00\x00\x00\x03", &socket_type].concat())
}

pub fn check_ready(frame: &Frame) -> Result<(), ZmqError> {
    if frame.is_command() && frame.body.starts_with(READY) {
        return Ok(());
    }
    Err(ZmqError::Protocol("it sent no READY command"))
}

pub fn frame(flags: u8, body: &[u8]) -> Vec<u8> {
    let length = body.len() as u64;
    match u8::try_from(length) {
        Ok(length) => [&[flags, length], body].concat(),
        Err(_) => [&[flags | LONG][..], &length.to_be_bytes(), body].concat(),
    }
}

pub fn message(parts: &[&[u8]]) -> Vec<u8> {
    let last = parts.len().saturating_sub(1);
    let frames = parts.iter().enumerate().map(|(at, part)| frame(if at < last { MORE } else { 0 }, part));
    frames.collect::<Vec<_>>().concat()
}

/// One frame: a part of a message, or a command.
pub struct Frame {
    pub flags: u8,
    pub body: Vec<u8>,
}

impl Frame {
    pub fn is_command(&self) -> bool {
        self.flags & COMMAND != 0
    }
}

/// The size of the length field that follows these flags, in bytes.
pub fn length_bytes(flags: u8) -> Result<usize, ZmqError> {
    if flags > (MORE | LONG | COMMAND) {
        return Err(ZmqError::Protocol("a frame with unknown flags"));
    }
    Ok(if flags & LONG == 0 { 1 } else { 8 })
}

/// The length of a frame's body, in bytes.
pub fn length(bytes: &[u8], most: u64) -> Result<u64, ZmqError> {
    let length = bytes.iter().fold(0, |length, byte| length << 8 | u64::from(*byte));
    if length > most { Err(ZmqError::Protocol("a frame is too long")) } else { Ok(length) }
}

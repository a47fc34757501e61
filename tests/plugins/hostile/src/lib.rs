//! A plugin that makes attempts for tests: accesses that a sandbox must refuse, and accesses that were granted.
//!
//! If the system refuses an attempt, the answer is the error -90 with the `errno` as its message.

mod lie;
mod raw;

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;
use std::time::Duration;

use outrigger_sdk::options::NoOptions;
use outrigger_sdk::params::int64;
use outrigger_sdk::{Call, Host, Plugin, Reply, RpcError, RpcErrorCode, net};
use serde_json::{Value, json};

use crate::raw::Argument;

/// The code of an attempt that the system refuses.
const REFUSED: RpcErrorCode = RpcErrorCode(-90);

/// How long its threads sleep, and how long it waits before it tries to start another one.
const FOR_LONG: Duration = Duration::from_secs(3600);
const SOON: Duration = Duration::from_millis(1);

pub struct Hostile;

impl Plugin for Hostile {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    type Options = NoOptions;

    fn new(_: Host, _: NoOptions) -> Result<Self, String> {
        Ok(Self)
    }

    fn call(&self, call: Call<'_>, reply: Reply) {
        let outcome = match call.method {
            "hostilelie" => {
                call.params.text(0).and_then(|how| lie::lie(how, reply.token()).map(|()| Value::Null).map_err(refused))
            }
            _ => answer(&call),
        };
        reply.send(outcome);
    }
}

fn answer(call: &Call<'_>) -> Result<Value, RpcError> {
    match call.method {
        "hostilecall" => {
            let number = int64(call.params.get(0))?;
            let arguments = match call.params.get(1) {
                Value::Array(arguments) => arguments.iter().map(argument).collect::<Result<Vec<_>, _>>()?,
                _ => Vec::new(),
            };
            Ok(json!(raw::system_call(number, &arguments)))
        }
        "hostileread" => read(call.params.text(0)?).map(Value::from).map_err(refused),
        "hostilewrite" => fs::write(call.params.text(0)?, "written").map(|()| Value::Null).map_err(refused),
        "hostileconnect" => connect(call.params.text(0)?).map(Value::from).map_err(refused),
        "hostilereach" => {
            let (entry, count) = (call.params.text(0)?, if call.given() > 1 { int64(call.params.get(1))? } else { 1 });
            let connect = |_| net::connect(call.host, entry);
            let streams = (0..count).map(connect).collect::<Result<Vec<_>, _>>().map_err(told)?;
            let answers = streams.into_iter().map(talk).collect::<Result<Vec<_>, _>>().map_err(told)?;
            Ok(json!(answers.last()))
        }
        "hostileaccept" => accept(call).map(Value::from),
        "hostileaccepts" => {
            let listener = net::listener(call.host, call.params.text(0)?).map_err(told)?;
            Ok(json!(TcpListener::from(listener).local_addr().map_err(told)?))
        }
        "hostilelookup" => {
            let found = (call.params.text(0)?, 80).to_socket_addrs().map_err(told)?;
            Ok(json!(found.collect::<Vec<_>>()))
        }
        "hostilesay" => {
            let text = call.params.text(0)?;
            writeln!(io::stderr(), "{text}").map(|()| Value::Null).map_err(refused)
        }
        "hostilememory" => {
            let mebibytes = usize::try_from(int64(call.params.get(0))?).unwrap_or(0);
            // The write to each part commits its memory.
            let parts: Vec<Vec<u8>> = (0..mebibytes).map(|part| vec![part as u8 | 1; 1 << 20]).collect();
            Ok(json!(parts.iter().map(|part| usize::from(part[0])).sum::<usize>()))
        }
        "hostiletables" => {
            let gibibytes = usize::try_from(int64(call.params.get(0))?).unwrap_or(0);
            Ok(json!(raw::read_mapped(gibibytes << 30)))
        }
        "hostilethreads" => {
            let wanted = int64(call.params.get(0))?;
            let mut started = 0;
            while started < wanted {
                let sleeper = thread::Builder::new().stack_size(1 << 16);
                match sleeper.spawn(|| thread::sleep(FOR_LONG)) {
                    Ok(_) => started += 1,
                    // The plugin retries until it is killed: other threads may end.
                    Err(_) => thread::sleep(SOON),
                }
            }
            thread::sleep(FOR_LONG);
            Ok(json!(started))
        }
        "hostileflood" => {
            for line in 0..int64(call.params.get(0))? {
                writeln!(io::stderr(), "line {line} of a flood").map_err(refused)?;
            }
            Ok(Value::Null)
        }
        "hostilespin" => loop {
            std::hint::spin_loop();
        },
        "hostilecrash" => raw::crash(),
        _ => Ok(Value::Null),
    }
}

fn refused(error: io::Error) -> RpcError {
    let number = error.raw_os_error().map_or_else(|| error.to_string(), |number| number.to_string());
    RpcError::new(REFUSED, number)
}

/// The answer for an error of a connection that the host makes, with its kind.
fn told(error: io::Error) -> RpcError {
    RpcError::new(REFUSED, format!("{:?}: {error}", error.kind()))
}

/// Accepts one connection, reads a line and answers `welcome`.
fn accept(call: &Call<'_>) -> Result<String, RpcError> {
    let at = call.params.text(0)?;
    let listener = net::listener(call.host, at).map_err(told)?;
    let heard = match at.starts_with("tcp:") {
        true => TcpListener::from(listener).accept().and_then(|(stream, _)| hear(stream)),
        false => UnixListener::from(listener).accept().and_then(|(stream, _)| hear(stream)),
    };
    heard.map_err(told)
}

fn hear(stream: impl Read + Write) -> io::Result<String> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line)?;
    stream.get_mut().write_all(b"welcome\n")?;
    Ok(line.trim_end().to_owned())
}

fn argument(value: &Value) -> Result<Argument, RpcError> {
    match value {
        Value::String(text) => Ok(Argument::Bytes([text.as_bytes(), b"\0"].concat())),
        Value::Object(bytes) => {
            let hex = bytes.get("hex").and_then(Value::as_str).unwrap_or_default();
            let digits: Vec<char> = hex.chars().collect();
            let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16);
            let bytes: Result<Vec<u8>, _> = digits.chunks(2).map(byte).collect();
            bytes.map(Argument::Bytes).map_err(|error| RpcError::invalid_parameter(error.to_string()))
        }
        number => int64(number).map(Argument::Number),
    }
}

fn read(path: &str) -> io::Result<String> {
    // Open it first: a sandbox reports each open that it refuses.
    let file = fs::File::open(path)?;
    if file.metadata()?.is_dir() {
        let names = fs::read_dir(path)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        return Ok(names.collect::<io::Result<Vec<_>>>()?.join(" "));
    }
    let mut text = Vec::new();
    file.take(1 << 16).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn connect(address: &str) -> io::Result<String> {
    if address.starts_with('/') { talk(UnixStream::connect(address)?) } else { talk(TcpStream::connect(address)?) }
}

fn talk(mut stream: impl Read + Write) -> io::Result<String> {
    stream.write_all(b"hello\n")?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}

outrigger_sdk::export_plugin!(Hostile);

//! Copies a runner's standard output and error to the host's log.

use std::io::Read;

use outrigger_base::rate::Rate;

/// Longer lines are truncated.
const MAX_LINE: usize = 1000;

/// How many lines of a runner are logged per second; the rest are counted.
const LINES_PER_SECOND: u32 = 100;

/// Copies lines to the log until the runner closes its end.
pub fn copy(plugin: &str, mut from: impl Read) {
    let mut line = Vec::new();
    let rate = Rate::per_second(LINES_PER_SECOND);
    let mut buffer = [0; 4096];
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        for byte in buffer.iter().take(count) {
            match byte {
                b'\n' => write(plugin, &mut line, &rate),
                byte if line.len() < MAX_LINE => line.push(*byte),
                _ => {}
            }
        }
    }
    write(plugin, &mut line, &rate);
    tell(plugin, rate.left_out());
}

fn write(plugin: &str, line: &mut Vec<u8>, rate: &Rate) {
    if !line.is_empty() && rate.allows(|left_out| tell(plugin, left_out)) {
        tracing::warn!(plugin, "{}", printable(line));
    }
    line.clear();
}

fn tell(plugin: &str, left_out: u64) {
    if left_out > 0 {
        tracing::warn!(plugin, left_out, "the plugin writes too many lines; some were dropped");
    }
}

/// Replaces control characters, so that a runner cannot control a terminal.
pub fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

//! What a runner writes to its standard output and error, as lines of the host's log.

use std::io::Read;
use std::time::{Duration, Instant};

/// The longest line, in bytes; the rest of it is left out.
const MAX_LINE: usize = 1000;

/// How many lines of a runner are written in a second; the rest are counted.
const LINES_PER_SECOND: u32 = 100;

/// Copies lines to the log until the runner has closed its end.
pub fn copy(plugin: &str, mut from: impl Read) {
    let mut line = Vec::new();
    let mut rate = Rate::default();
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
                b'\n' => write(plugin, &mut line, &mut rate),
                byte if line.len() < MAX_LINE => line.push(*byte),
                _ => {}
            }
        }
    }
    write(plugin, &mut line, &mut rate);
    rate.tell(plugin);
}

fn write(plugin: &str, line: &mut Vec<u8>, rate: &mut Rate) {
    if !line.is_empty() && rate.allows(plugin) {
        // Of nothing that a terminal obeys.
        let text: String =
            String::from_utf8_lossy(line).chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        tracing::warn!(plugin, "{text}");
    }
    line.clear();
}

/// How many lines were written in the present second.
#[derive(Default)]
struct Rate {
    since: Option<Instant>,
    written: u32,
    left_out: u64,
}

impl Rate {
    fn allows(&mut self, plugin: &str) -> bool {
        if self.since.is_none_or(|since| since.elapsed() >= Duration::from_secs(1)) {
            self.tell(plugin);
            (self.since, self.written) = (Some(Instant::now()), 0);
        }
        self.written += 1;
        let allows = self.written <= LINES_PER_SECOND;
        self.left_out += u64::from(!allows);
        allows
    }

    fn tell(&mut self, plugin: &str) {
        let left_out = std::mem::take(&mut self.left_out);
        if left_out > 0 {
            tracing::warn!(plugin, left_out, "the plugin writes too much; lines were left out");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_beyond_the_rate_are_counted() {
        let mut rate = Rate::default();
        let allowed = (0..LINES_PER_SECOND + 50).filter(|_| rate.allows("x")).count();
        assert!(allowed >= LINES_PER_SECOND as usize);
        assert_eq!(allowed as u64 + rate.left_out, u64::from(LINES_PER_SECOND) + 50);
    }
}

//! Bytes in and out of words of memory that another process may write meanwhile.

use std::sync::atomic::{AtomicU64, Ordering};

/// The bytes of a word.
pub const WORD: usize = 8;

/// Wipes the first of these words.
pub fn wipe(slot: &[AtomicU64], words: usize) {
    slot.iter().take(words).for_each(|word| word.store(0, Ordering::Relaxed));
}

/// Copies as many bytes as there is a place for.
pub fn copy_out(words: &[AtomicU64], to: &mut [u8]) {
    // Whole words apart from the rest of one: copying bytes of a length that is not known would take ten times as long.
    let (whole, rest) = to.as_chunks_mut::<WORD>();
    let (front, back) = words.split_at_checked(whole.len()).unwrap_or((words, &[]));
    for (bytes, word) in whole.iter_mut().zip(front) {
        *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
    }
    if let Some(last) = back.first() {
        rest.iter_mut().zip(last.load(Ordering::Relaxed).to_ne_bytes()).for_each(|(byte, from)| *byte = from);
    }
}

/// Writes bytes into words, one part behind the other.
pub struct Writer<'a> {
    slot: &'a [AtomicU64],
    /// How many bytes were written.
    at: usize,
    /// Those that fill no word yet.
    word: [u8; WORD],
}

impl<'a> Writer<'a> {
    /// Writes from the start of these words on.
    pub fn new(slot: &'a [AtomicU64]) -> Self {
        Self { slot, at: 0, word: [0; WORD] }
    }

    /// Writes as much of the bytes as there is room for, and gives the rest.
    pub fn push<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let room = self.slot.len() * WORD - self.at;
        let (now, later) = bytes.split_at(bytes.len().min(room));
        self.write(now);
        later
    }

    fn write(&mut self, mut part: &[u8]) {
        let filled = self.at % WORD;
        if filled > 0 {
            let (front, rest) = part.split_at(part.len().min(WORD - filled));
            if let Some(place) = self.word.get_mut(filled..filled + front.len()) {
                place.copy_from_slice(front);
            }
            self.at += front.len();
            part = rest;
            if !self.at.is_multiple_of(WORD) {
                return;
            }
            self.store(self.at / WORD - 1, self.word);
        }
        let mut chunks = part.chunks_exact(WORD);
        let slot = self.slot.get(self.at / WORD..).unwrap_or_default();
        for (chunk, word) in (&mut chunks).zip(slot) {
            word.store(u64::from_ne_bytes(chunk.try_into().unwrap_or_default()), Ordering::Relaxed);
        }
        let rest = chunks.remainder();
        self.at += part.len();
        if let Some(place) = self.word.get_mut(..rest.len()) {
            place.copy_from_slice(rest);
        }
    }

    /// How many words were written.
    pub fn finish(self) -> usize {
        if !self.at.is_multiple_of(WORD) {
            self.store(self.at / WORD, self.word);
        }
        self.at.div_ceil(WORD)
    }

    fn store(&self, place: usize, word: [u8; WORD]) {
        if let Some(place) = self.slot.get(place) {
            place.store(u64::from_ne_bytes(word), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_in_parts_is_read_as_one(parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..20), 0..8)) {
            let slot: Vec<AtomicU64> = (0..8).map(|_| AtomicU64::new(0)).collect();
            let mut writer = Writer::new(&slot);
            let left: usize = parts.iter().map(|part| writer.push(part).len()).sum();
            let whole = parts.concat();
            let written = whole.len().min(8 * WORD);
            prop_assert_eq!(left, whole.len() - written);
            prop_assert_eq!(writer.finish(), written.div_ceil(WORD));
            let mut read = vec![0; written];
            copy_out(&slot, &mut read);
            prop_assert_eq!(&read[..], &whole[..written]);
        }
    }
}

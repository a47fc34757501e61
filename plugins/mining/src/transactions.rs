//! The transactions of a template, as the JSON they become.
//!
//! What is said of a transaction never changes but for where its parents stand, so what was written for the last template is
//! copied into the next one.

use std::collections::HashMap;
use std::io::Write;
use std::ops::Range;

use bitcoin::Wtxid;
use bitcoin::hashes::Hash;
use outrigger_sdk::params::push_hex;
use outrigger_sdk::service::mempool::Selected;

/// What an entry takes beside the transaction itself, in bytes.
const ENTRY_SIZE: usize = 256;

/// Transactions as a JSON array.
#[derive(Default)]
pub struct TransactionsJson {
    json: Vec<u8>,
    /// Where that part of each entry stands which says nothing of other transactions.
    parts: HashMap<Wtxid, Range<usize>>,
}

impl TransactionsJson {
    /// The JSON of these transactions. What `before` has is taken from there.
    pub fn of(transactions: &[Selected], before: Option<&Self>) -> Self {
        let size = transactions.iter().map(|selected| selected.raw.len() * 2 + ENTRY_SIZE).sum();
        let mut rendered = Self { json: Vec::with_capacity(size), parts: HashMap::with_capacity(transactions.len()) };
        rendered.json.push(b'[');
        for (index, selected) in transactions.iter().enumerate() {
            if index > 0 {
                rendered.json.push(b',');
            }
            rendered.entry(selected, before.and_then(|before| before.part(&selected.wtxid)));
        }
        rendered.json.push(b']');
        rendered
    }

    /// The array.
    pub fn as_bytes(&self) -> &[u8] {
        &self.json
    }

    fn part(&self, wtxid: &Wtxid) -> Option<&[u8]> {
        self.json.get(self.parts.get(wtxid)?.clone())
    }

    fn entry(&mut self, selected: &Selected, before: Option<&[u8]>) {
        let start = self.json.len();
        match before {
            Some(part) => self.json.extend_from_slice(part),
            None => push_part(&mut self.json, selected),
        }
        self.parts.insert(selected.wtxid, start..self.json.len());
        for (index, position) in selected.depends.iter().enumerate() {
            push_text(&mut self.json, format_args!("{}{position}", if index > 0 { "," } else { "" }));
        }
        let Selected { fee, sigops, weight, .. } = selected;
        push_text(&mut self.json, format_args!("],\"fee\":{fee},\"sigops\":{sigops},\"weight\":{weight}}}"));
    }
}

/// The part of an entry that says nothing of other transactions.
fn push_part(json: &mut Vec<u8>, selected: &Selected) {
    json.extend_from_slice(b"{\"data\":\"");
    push_hex(json, &selected.raw);
    json.extend_from_slice(b"\",\"txid\":\"");
    push_hash(json, selected.txid.to_byte_array());
    json.extend_from_slice(b"\",\"hash\":\"");
    push_hash(json, selected.wtxid.to_byte_array());
    json.extend_from_slice(b"\",\"depends\":[");
}

/// A hash as it is shown: its last byte first.
fn push_hash(json: &mut Vec<u8>, mut hash: [u8; 32]) {
    hash.reverse();
    push_hex(json, &hash);
}

fn push_text(json: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to memory cannot fail.
    let _ = json.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use bitcoin::Txid;

    use super::*;

    fn selected(number: u8, depends: Vec<u32>) -> Selected {
        Selected {
            raw: vec![number; 3].into(),
            txid: Txid::from_byte_array([number; 32]),
            wtxid: Wtxid::from_byte_array([number + 1; 32]),
            fee: 7,
            sigops: 8,
            weight: 9,
            depends,
        }
    }

    #[test]
    fn what_is_copied_is_what_would_be_written() {
        let first = TransactionsJson::of(&[selected(1, vec![]), selected(3, vec![1, 1])], None);
        let id = |byte: &str| byte.repeat(32);
        let expected = format!(
            "[{{\"data\":\"010101\",\"txid\":\"{}\",\"hash\":\"{}\",\"depends\":[],\"fee\":7,\"sigops\":8,\"weight\":9}},\
             {{\"data\":\"030303\",\"txid\":\"{}\",\"hash\":\"{}\",\"depends\":[1,1],\"fee\":7,\"sigops\":8,\"weight\":9}}]",
            id("01"),
            id("02"),
            id("03"),
            id("04")
        );
        assert_eq!(String::from_utf8_lossy(first.as_bytes()), expected);
        let next = [selected(5, vec![]), selected(3, vec![1]), selected(1, vec![])];
        let (fresh, copied) = (TransactionsJson::of(&next, None), TransactionsJson::of(&next, Some(&first)));
        assert_eq!(fresh.as_bytes(), copied.as_bytes());
        assert_eq!(TransactionsJson::of(&[], Some(&copied)).as_bytes(), b"[]");
    }
}

//! The transactions of a template as JSON.
//!
//! In a transaction's entry, only the positions of its parents can change. So a new template copies the part before them from
//! the previous template.

use std::collections::HashMap;
use std::io::Write;
use std::ops::Range;

use bitcoin::Wtxid;
use bitcoin::hashes::Hash;
use foldhash::fast::RandomState;
use outrigger_sdk::params::push_hex;
use outrigger_sdk::service::mempool::{Selected, SelectedView};
use outrigger_sdk::wire::ListView;

/// The approximate size of an entry without the transaction's data, in bytes.
const ENTRY_SIZE: usize = 256;

/// The position of each transaction's constant part in an answer.
#[derive(Default)]
pub struct Parts(HashMap<Wtxid, Range<usize>, RandomState>);

impl Parts {
    /// The approximate size of the JSON of transactions, in bytes.
    pub fn size(transactions: ListView<'_, Selected>) -> usize {
        transactions.iter().map(|selected| selected.raw.len() * 2 + ENTRY_SIZE).sum()
    }

    /// Appends the JSON array of transactions. Copies the parts that `before`, the previous answer, has.
    pub fn push(json: &mut Vec<u8>, transactions: ListView<'_, Selected>, before: Option<(&Self, &[u8])>) -> Self {
        let mut parts = Self(HashMap::with_capacity_and_hasher(transactions.len(), RandomState::default()));
        json.push(b'[');
        for (index, selected) in transactions.iter().enumerate() {
            if index > 0 {
                json.push(b',');
            }
            let start = json.len();
            match before.and_then(|(parts, text)| text.get(parts.0.get(&selected.wtxid)?.clone())) {
                Some(part) => json.extend_from_slice(part),
                None => push_part(json, &selected),
            }
            parts.0.insert(selected.wtxid, start..json.len());
            push_rest(json, &selected);
        }
        json.push(b']');
        parts
    }
}

/// Appends the rest of an entry, from the positions of its parents on.
fn push_rest(json: &mut Vec<u8>, selected: &SelectedView<'_>) {
    for (index, position) in selected.depends.iter().enumerate() {
        push_text(json, format_args!("{}{position}", if index > 0 { "," } else { "" }));
    }
    let (fee, sigops, weight) = (selected.fee.to_sat(), selected.sigops, selected.weight.to_wu());
    push_text(json, format_args!("],\"fee\":{fee},\"sigops\":{sigops},\"weight\":{weight}}}"));
}

/// Appends the constant part of an entry.
fn push_part(json: &mut Vec<u8>, selected: &SelectedView<'_>) {
    json.extend_from_slice(b"{\"data\":\"");
    push_hex(json, selected.raw);
    json.extend_from_slice(b"\",\"txid\":\"");
    push_hash(json, selected.txid.to_byte_array());
    json.extend_from_slice(b"\",\"hash\":\"");
    push_hash(json, selected.wtxid.to_byte_array());
    json.extend_from_slice(b"\",\"depends\":[");
}

/// Appends a hash in display order: the last byte first.
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
    use std::sync::Arc;

    use bitcoin::{Amount, Txid, Weight};
    use outrigger_sdk::wire::{Blob, Encoded};

    use super::*;

    fn selected(number: u8, depends: Vec<u32>) -> Selected {
        Selected {
            raw: Arc::new(Blob(vec![number; 3])),
            txid: Txid::from_byte_array([number; 32]),
            wtxid: Wtxid::from_byte_array([number + 1; 32]),
            fee: Amount::from_sat(7),
            sigops: 8,
            weight: Weight::from_wu(9),
            depends,
        }
    }

    fn json(transactions: &[Selected], before: Option<(&Parts, &[u8])>) -> (Parts, Vec<u8>) {
        // As in an answer, the array does not begin at 0.
        let mut json = b"...".to_vec();
        let message = Encoded::new(&transactions.to_vec());
        let parts = Parts::push(&mut json, message.view().unwrap(), before);
        (parts, json)
    }

    #[test]
    fn getblocktemplate_copied_transactions_equal_newly_written_ones() {
        let (parts, first) = json(&[selected(1, vec![]), selected(3, vec![1, 1])], None);
        let id = |byte: &str| byte.repeat(32);
        let expected = format!(
            "...[{{\"data\":\"010101\",\"txid\":\"{}\",\"hash\":\"{}\",\"depends\":[],\"fee\":7,\"sigops\":8,\"weight\":9}},\
             {{\"data\":\"030303\",\"txid\":\"{}\",\"hash\":\"{}\",\"depends\":[1,1],\"fee\":7,\"sigops\":8,\"weight\":9}}]",
            id("01"),
            id("02"),
            id("03"),
            id("04")
        );
        assert_eq!(String::from_utf8_lossy(&first), expected);
        let next = [selected(5, vec![]), selected(3, vec![1]), selected(1, vec![])];
        let (_, fresh) = json(&next, None);
        let (parts, copied) = json(&next, Some((&parts, &first)));
        assert_eq!(fresh, copied);
        assert_eq!(json(&[], Some((&parts, &copied))).1, b"...[]");
    }
}

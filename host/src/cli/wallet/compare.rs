//! Comparing a copy with its original.

use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};

use outrigger_node_wallet::Content;
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::MoveError;
use super::node::{Entry, ListedDescriptor, history, labels, listed, locked};
use super::side::Side;

/// What was compared, and what differs.
#[derive(Default)]
pub struct Comparison {
    lines: Vec<Line>,
    /// What cannot be compared, and why.
    left_out: Option<&'static str>,
}

struct Line {
    what: &'static str,
    /// How many of them are equal.
    equal: usize,
    /// What only one of the two has.
    differs: Vec<String>,
}

/// How many differences of a kind are shown.
const SHOWN: usize = 5;

impl Comparison {
    /// Whether all that was compared is equal.
    pub fn is_equal(&self) -> bool {
        self.lines.iter().all(|line| line.differs.is_empty())
    }

    fn add<T: Ord + Display>(&mut self, what: &'static str, theirs: &BTreeSet<T>, ours: &BTreeSet<T>) {
        let only = |of: &BTreeSet<T>, not: &BTreeSet<T>, who: &str| -> Vec<String> {
            of.difference(not).map(|one| format!("only {who}: {one}")).collect()
        };
        let differs = [only(theirs, ours, "in the original"), only(ours, theirs, "in the copy")].concat();
        self.lines.push(Line { what, equal: theirs.intersection(ours).count(), differs });
    }
}

impl Display for Comparison {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for Line { what, equal, differs } in &self.lines {
            writeln!(f, "{what}: {equal} equal, {} different", differs.len())?;
            for difference in differs.iter().take(SHOWN) {
                writeln!(f, "  {difference}")?;
            }
        }
        self.left_out.map_or(Ok(()), |left_out| writeln!(f, "{left_out}"))
    }
}

/// Compares with the wallet of a running node: balances, descriptors, addresses, confirmed history, transactions, labels
/// and locked outputs.
///
/// # Errors
/// As [`Side::ask`].
pub fn with_node(node: &Side, host: &Side, content: &Content) -> Result<Comparison, MoveError> {
    let mut compared = Comparison::default();
    compared.add("balances", &balances(node)?, &balances(host)?);
    let theirs = listed(node, false)?;
    compared.add("descriptors", &shown(&theirs), &shown(&listed(host, false)?));
    let mut addresses = BTreeSet::new();
    for descriptor in theirs.iter().filter(|descriptor| descriptor.desc.contains('*')) {
        let next = descriptor.next_index;
        addresses.extend(node.ask::<Vec<String>>("deriveaddresses", &json!([*descriptor.desc, [next, next]]))?);
    }
    let known: Vec<String> = addresses.into_iter().collect();
    compared.add("next addresses", &owned(node, &known)?, &owned(host, &known)?);
    let (theirs, ours) = (history(node)?, history(host)?);
    compared.add("confirmed entries of the history", &confirmed(&theirs), &confirmed(&ours));
    add_transactions(&mut compared, &ours, content);
    add_notes(&mut compared, host, content)?;
    Ok(compared)
}

/// The line on balances after a copy from a file.
const NO_BALANCES: &str = "balances: not compared, since the file does not tell them; once the node has the wallet loaded, compare its \
                           getbalances with the copy's";

/// Compares with what was read of a file: its transactions as far as they are confirmed, labels and locked outputs.
///
/// # Errors
/// As [`Side::ask`].
pub fn with_content(host: &Side, content: &Content) -> Result<Comparison, MoveError> {
    let mut compared = Comparison { left_out: Some(NO_BALANCES), ..Comparison::default() };
    add_transactions(&mut compared, &history(host)?, content);
    add_notes(&mut compared, host, content)?;
    Ok(compared)
}

/// The transactions that the copy is to have.
fn add_transactions(compared: &mut Comparison, ours: &[Entry], content: &Content) {
    let ours: BTreeSet<String> = ours.iter().map(|entry| entry.txid.to_string()).collect();
    let theirs: BTreeSet<String> = content.transactions.iter().map(ToString::to_string).collect();
    // What came since the original was read is the copy's alone, and no difference.
    compared.add("transactions", &theirs, &ours.intersection(&theirs).cloned().collect());
}

fn add_notes(compared: &mut Comparison, host: &Side, content: &Content) -> Result<(), MoveError> {
    let pair = |(address, label): &(String, String)| format!("{address} \"{label}\"");
    compared.add("labels", &content.labels.iter().map(pair).collect(), &labels(host)?.iter().map(pair).collect());
    let ours = locked(host)?;
    compared.add("locked outputs", &content.locked.iter().collect(), &ours.iter().collect());
    Ok(())
}

#[derive(Deserialize)]
struct Balances {
    mine: serde_json::Map<String, Value>,
}

fn balances(side: &Side) -> Result<BTreeSet<String>, MoveError> {
    let Balances { mine } = side.ask("getbalances", &json!([]))?;
    Ok(mine.iter().map(|(kind, amount)| format!("{kind} {amount}")).collect())
}

/// Descriptors as they are compared: the mark of hardened steps may differ, and how far they are derived.
fn shown(listed: &[ListedDescriptor]) -> BTreeSet<String> {
    let show = |ListedDescriptor { desc, active, internal, next_index, .. }: &ListedDescriptor| {
        let body = desc.split_once('#').map_or(desc.as_str(), |(body, _)| body).replace('\'', "h");
        format!("{body} active: {active}, change: {internal}, next index: {next_index}")
    };
    listed.iter().map(show).collect()
}

/// Those of the addresses that are the wallet's.
fn owned(side: &Side, addresses: &[String]) -> Result<BTreeSet<String>, MoveError> {
    let mut owned = BTreeSet::new();
    for address in addresses {
        let info: Value = side.ask("getaddressinfo", &json!([address]))?;
        owned.extend((info["ismine"] == true).then(|| address.clone()));
    }
    Ok(owned)
}

/// The confirmed entries of a wallet's history.
fn confirmed(history: &[Entry]) -> BTreeSet<String> {
    let show = |entry: &Entry| {
        let Entry { txid, vout, category, amount, fee, comment, to, .. } = entry;
        let fee = fee.as_ref().map_or_else(String::new, |fee| format!(", fee {fee}"));
        let noted =
            if comment.is_empty() && to.is_empty() { String::new() } else { format!(" \"{comment}\" \"{to}\"") };
        format!("{txid}:{vout} {category} {amount}{fee}{noted}")
    };
    history.iter().filter(|entry| entry.confirmations > 0).map(show).collect()
}

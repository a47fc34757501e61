//! Comparing a copy with its original.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};

use bitcoin::{Amount, OutPoint, Txid};
use outrigger_descriptor::checksum;
use outrigger_node_wallet::{Active, Comment, Content, Descriptor};
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::MoveError;
use super::node::{Entry, ListedDescriptor, history, labels, listed, locked};
use super::side::Side;

/// What was compared, and what differs.
#[derive(Default)]
pub struct Comparison {
    lines: Vec<Line>,
    /// What cannot be compared, or why something differs.
    left_out: Option<&'static str>,
}

struct Line {
    what: &'static str,
    equal: usize,
    /// The items that only one of the two has.
    differs: Vec<String>,
}

/// How many differences of a kind are shown.
const SHOWN: usize = 5;

impl Comparison {
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
/// and locked outputs. `node` has the original, and `host` the copy. Comments are left out unless `has_comments`.
pub fn with_node(node: &Side, host: &Side, content: &Content, has_comments: bool) -> Result<Comparison, MoveError> {
    let mut compared = Comparison::default();
    compared.add("balances", &balances(node)?, &balances(host)?);
    let theirs = listed(node, false)?;
    let mut addresses = BTreeSet::new();
    for descriptor in theirs.iter().filter(|descriptor| descriptor.desc.contains('*')) {
        let next = descriptor.next_index;
        addresses.extend(node.ask::<Vec<String>>("deriveaddresses", &json!([*descriptor.desc, [next, next]]))?);
    }
    let known: Vec<String> = addresses.into_iter().collect();
    let theirs: Vec<_> = theirs.into_iter().map(Descriptor::from).collect();
    add_descriptors(&mut compared, &theirs, listed(host, false)?, false);
    compared.add("next addresses", &owned(node, &known)?, &owned(host, &known)?);
    let (theirs, ours) = (history(node)?, history(host)?);
    compared.add(
        "confirmed entries of the history",
        &confirmed(&theirs, has_comments),
        &confirmed(&ours, has_comments),
    );
    add_transactions(&mut compared, &ours, content);
    add_notes(&mut compared, host, content, false)?;
    Ok(compared)
}

/// Compares a wallet with the file that it was imported from: confirmed coins, their sums, transactions, labels and locked outputs. With
/// `avoid_reuse`, a coin also differs if only one of the two marks its address as used: bitcoind marks addresses only while it is set.
pub fn with_content(host: &Side, content: &Content) -> Result<Comparison, MoveError> {
    let mut compared = Comparison::default();
    add_coins(&mut compared, host, content)?;
    add_transactions(&mut compared, &history(host)?, content);
    add_notes(&mut compared, host, content, false)?;
    Ok(compared)
}

/// Compares a wallet with the contents of a file, and with the `balances` in the file, if they can be compared. If the wallet is older than
/// the import (`is_older`), compares only the entries of the file.
pub fn with_file(
    host: &Side,
    content: &Content,
    balances_there: Option<Value>,
    is_older: bool,
) -> Result<Comparison, MoveError> {
    let mut compared = Comparison::default();
    match balances_there.map(Balances::deserialize) {
        Some(Ok(there)) if !is_older => compared.add("balances", &there.lines(), &balances(host)?),
        _ => compared.left_out = Some(NO_FILE_BALANCES),
    }
    // Private descriptors of a locked wallet are not listed.
    if !content.encrypted {
        let ours = listed(host, content.private_keys)?;
        add_descriptors(&mut compared, &content.descriptors, ours, is_older);
    }
    add_notes(&mut compared, host, content, is_older)?;
    let noted = history(host)?.into_iter().filter(|entry| !entry.comment.is_empty() || !entry.to.is_empty());
    let noted: BTreeMap<Txid, [String; 2]> = noted.map(|entry| (entry.txid, [entry.comment, entry.to])).collect();
    let note = |txid: &Txid, [comment, to]: [&String; 2]| format!("{txid} \"{comment}\" \"{to}\"");
    let theirs = content.comments.iter().map(|Comment { txid, comment, to }| match noted.get(txid) {
        // An empty text changes nothing.
        Some([ours, ours_to]) if is_older => {
            note(txid, [if comment.is_empty() { ours } else { comment }, if to.is_empty() { ours_to } else { to }])
        }
        _ => note(txid, [comment, to]),
    });
    let theirs = theirs.collect();
    let ours = noted.iter().map(|(txid, [comment, to])| note(txid, [comment, to]));
    compared.add("comments", &theirs, &narrowed(ours, &theirs, is_older));
    Ok(compared)
}

/// The line on balances after an import.
const NO_FILE_BALANCES: &str = "balances: not compared, since the file does not have those at the current block";

/// All entries, or for an older wallet only those of the file.
fn narrowed<T: Ord>(ours: impl Iterator<Item = T>, theirs: &BTreeSet<T>, is_older: bool) -> BTreeSet<T> {
    ours.filter(|one| !is_older || theirs.contains(one)).collect()
}

#[derive(Deserialize)]
struct ListedCoin {
    txid: Txid,
    vout: u32,
    #[serde(default)]
    reused: bool,
}

/// The confirmed coins of the transactions in a file, and their sums.
fn add_coins(compared: &mut Comparison, host: &Side, content: &Content) -> Result<(), MoveError> {
    let addresses: BTreeSet<&String> = content.coins.iter().map(|coin| &coin.address).collect();
    let addresses: Vec<String> = addresses.into_iter().cloned().collect();
    let owned = owned(host, &addresses)?;
    let unspent: Vec<ListedCoin> =
        host.ask("listunspent", &json!([1, MAX_CONFIRMATIONS, [], true, {"include_immature_coinbase": true}]))?;
    let mut ours: BTreeMap<OutPoint, Option<bool>> =
        unspent.iter().map(|coin| (OutPoint { txid: coin.txid, vout: coin.vout }, Some(coin.reused))).collect();
    // Locked coins are not listed, so it is unknown whether they are used.
    ours.extend(locked(host)?.into_iter().map(|output| (output, None)));
    let (mut there, mut here) = (BTreeSet::new(), BTreeSet::new());
    let (mut sums_there, mut sums_here) = ([Amount::ZERO; 2], [Amount::ZERO; 2]);
    for coin in content.coins.iter().filter(|coin| !content.pending.contains(&coin.output)) {
        let is_used_there = content.avoid_reuse && coin.is_used;
        let show = |is_used| format!("{} {}{}", coin.output, coin.value, if is_used { ", used" } else { "" });
        let add = |sums: &mut [Amount; 2], is_used| {
            let sum = &mut sums[usize::from(is_used)];
            *sum = sum.checked_add(coin.value).unwrap_or(*sum);
        };
        if owned.contains(&coin.address) {
            there.insert(show(is_used_there));
            add(&mut sums_there, is_used_there);
        }
        if let Some(is_used) = ours.get(&coin.output) {
            let is_used = is_used.unwrap_or(is_used_there);
            here.insert(show(is_used));
            add(&mut sums_here, is_used);
        }
    }
    let lines = |[free, used]: [Amount; 2]| BTreeSet::from([format!("confirmed {free}"), format!("used {used}")]);
    if sums_here != sums_there && content.avoid_reuse {
        compared.left_out = Some(LATE_REUSE);
    }
    compared.add("balances", &lines(sums_there), &lines(sums_here));
    compared.add("coins", &there, &here);
    Ok(())
}

/// The line on coins that only the copy marks as used.
const LATE_REUSE: &str = "bitcoind marks addresses as used only once avoid_reuse is set; its rescanblockchain finds those that were \
                          spent from earlier. The copy knows all of them";

/// The most confirmations that `listunspent` is asked for.
const MAX_CONFIRMATIONS: u32 = 9_999_999;

/// The transactions that the copy must have.
fn add_transactions(compared: &mut Comparison, ours: &[Entry], content: &Content) {
    let ours: BTreeSet<String> = ours.iter().map(|entry| entry.txid.to_string()).collect();
    let theirs: BTreeSet<String> = content.transactions.iter().map(ToString::to_string).collect();
    // Later transactions, which only the copy has, are no difference.
    compared.add("transactions", &theirs, &ours.intersection(&theirs).cloned().collect());
}

fn add_notes(compared: &mut Comparison, host: &Side, content: &Content, is_older: bool) -> Result<(), MoveError> {
    let pair = |(address, label): &(String, String)| format!("{address} \"{label}\"");
    let theirs: BTreeSet<String> = content.labels.iter().map(pair).collect();
    let ours = labels(host)?;
    // Addresses that the copy counts as given out, since they were paid, have an empty label.
    let ours = ours.iter().filter(|one| !one.1.is_empty() || theirs.contains(&pair(one))).map(pair);
    compared.add("labels", &theirs, &narrowed(ours, &theirs, is_older));
    let theirs = content.locked.iter().copied().collect();
    compared.add("locked outputs", &theirs, &narrowed(locked(host)?.into_iter(), &theirs, is_older));
    Ok(())
}

#[derive(Deserialize)]
struct Balances {
    mine: serde_json::Map<String, Value>,
}

impl Balances {
    fn lines(&self) -> BTreeSet<String> {
        self.mine.iter().map(|(kind, amount)| format!("{kind} {amount}")).collect()
    }
}

fn balances(side: &Side) -> Result<BTreeSet<String>, MoveError> {
    side.ask::<Balances>("getbalances", &json!([])).map(|balances| balances.lines())
}

/// A descriptor for comparison. Its text may have private keys and is not shown.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Shown {
    /// Without the checksum, and with `h` as the mark of hardened steps.
    body: String,
    active: Option<bool>,
    /// The first index and the end (exclusive).
    range: Option<(u32, u32)>,
    next_index: u32,
}

impl From<&Descriptor> for Shown {
    fn from(Descriptor { text, active, range, next_index, .. }: &Descriptor) -> Self {
        let body = text.split_once('#').map_or(text.as_str(), |(body, _)| body).replace('\'', "h");
        Self { body, active: active.map(|active| active == Active::Change), range: *range, next_index: *next_index }
    }
}

impl Display for Shown {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { body, active, range, next_index } = self;
        let (kind, checksum) = (body.split('(').next().unwrap_or_default(), checksum(body).unwrap_or_default());
        let (is_active, is_change) = (active.is_some(), *active == Some(true));
        write!(f, "{kind}(...)#{checksum} active: {is_active}, change: {is_change}, next index: {next_index}")?;
        range.map_or(Ok(()), |(begin, end)| write!(f, ", range: {begin} to {}", end.saturating_sub(1)))
    }
}

/// The copy may know more than the original: it derives further ahead, and also sets next indexes from the chain. It
/// differs if its range lacks an index of the original's, or if its next index is smaller.
fn add_descriptors(compared: &mut Comparison, theirs: &[Descriptor], ours: Vec<ListedDescriptor>, is_older: bool) {
    let ours: Vec<Shown> = ours.into_iter().map(|one| Shown::from(&Descriptor::from(one))).collect();
    let theirs = theirs.iter().map(|one| {
        let mut one = Shown::from(one);
        if let Some(copy) = ours.iter().find(|ours| (&ours.body, ours.active) == (&one.body, one.active)) {
            one.next_index = copy.next_index.max(one.next_index);
            let both = one.range.zip(copy.range);
            let lacks = both.is_some_and(|((begin, end), (first, last))| begin < first || end > last);
            one.range = if lacks { one.range } else { copy.range };
        }
        one
    });
    let theirs = theirs.collect();
    compared.add("descriptors", &theirs, &narrowed(ours.into_iter(), &theirs, is_older));
}

/// The addresses that belong to the wallet.
fn owned(side: &Side, addresses: &[String]) -> Result<BTreeSet<String>, MoveError> {
    let mut owned = BTreeSet::new();
    for address in addresses {
        let info: Value = side.ask("getaddressinfo", &json!([address]))?;
        owned.extend((info["ismine"] == true).then(|| address.clone()));
    }
    Ok(owned)
}

/// The confirmed entries of a wallet's history.
fn confirmed(history: &[Entry], has_comments: bool) -> BTreeSet<String> {
    let show = |entry: &Entry| {
        let Entry { txid, vout, category, amount, fee, comment, to, .. } = entry;
        let fee = fee.as_ref().map_or_else(String::new, |fee| format!(", fee {fee}"));
        let noted = if !has_comments || (comment.is_empty() && to.is_empty()) {
            String::new()
        } else {
            format!(" \"{comment}\" \"{to}\"")
        };
        format!("{txid}:{vout} {category} {amount}{fee}{noted}")
    };
    history.iter().filter(|entry| entry.confirmations > 0).map(show).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The printed differences of two descriptors, each given as range and next index.
    fn told(original: ((u32, u32), u32), copy: ((u32, u32), u32), is_older: bool) -> Vec<String> {
        let listed = |(range, next_index): ((u32, u32), u32)| -> ListedDescriptor {
            let desc = "wpkh(xpub/0/*)#x";
            let row = json!({"desc": desc, "timestamp": 0, "active": true, "range": range, "next_index": next_index});
            serde_json::from_value(row).unwrap()
        };
        let mut compared = Comparison::default();
        add_descriptors(&mut compared, &[listed(original).into()], vec![listed(copy)], is_older);
        let rows = compared.lines.into_iter().flat_map(|line| line.differs);
        rows.map(|row| row.split_once(", next index: ").map_or_else(String::new, |(_, rest)| rest.to_owned())).collect()
    }

    #[test]
    fn descriptor_of_a_copy_that_lacks_indexes_of_the_original_differs() {
        let original = ((5, 5000), 4501);
        for copy in [original, ((5, 5500), 4501), ((0, 5000), 4501), ((5, 5000), 4600)] {
            assert_eq!(told(original, copy, false), [""; 0], "{copy:?}");
        }
        for (copy, shown) in [
            (((5, 4999), 4501), "4501, range: 5 to 4999"),
            (((6, 5000), 4501), "4501, range: 6 to 5000"),
            (((5, 5000), 4500), "4500, range: 5 to 5000"),
        ] {
            assert_eq!(told(original, copy, false), ["4501, range: 5 to 5000", shown], "{copy:?}");
            // An older wallet is compared only by the entries of the file.
            assert_eq!(told(original, copy, true), ["4501, range: 5 to 5000"], "{copy:?}");
        }
    }
}

//! listaddressgroupings: addresses that transactions have shown to be of one owner, by spending from them together or by paying
//! the change to them.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use bitcoin::{Amount, OutPoint, Script, ScriptBuf};
use outrigger_sdk::CallContext;
use outrigger_sdk::amount::Saturating;
use outrigger_sdk::service::wallet::{HistoryRange, Ownership, TxState, WalletCoin, WalletTransactionView};
use outrigger_sdk::standard::address;
use serde_json::Value;

use crate::destination::{self, Order};
use crate::error::HistoryError;
use crate::json;
use crate::list::{Batches, walk};
use crate::viewpoint::{COINBASE_MATURITY_DEPTH, WalletViewpoint, signed};

/// The most coins to ask the host for at a time.
const BATCH: u32 = 1000;

/// An address of the wallet.
struct Member {
    script: ScriptBuf,
    /// None where it has no entry in the address book.
    label: Option<String>,
    /// The member that leads to its group: itself, where it stands for the group.
    group: usize,
}

/// The wallet's addresses that were met in transactions, by what they are grouped.
#[derive(Default)]
struct Groups {
    members: Vec<Member>,
    by_script: HashMap<ScriptBuf, usize>,
    /// The addresses of the wallet's outputs.
    outputs: HashMap<OutPoint, usize>,
    /// What each transaction spends, and the addresses of its change.
    spends: Vec<(Vec<OutPoint>, Vec<usize>)>,
}

impl Groups {
    fn member(&mut self, script: &Script, label: Option<&str>) -> usize {
        if let Some(known) = self.by_script.get(script) {
            return *known;
        }
        let member = self.members.len();
        self.members.push(Member { script: script.to_owned(), label: label.map(str::to_owned), group: member });
        self.by_script.insert(script.to_owned(), member);
        member
    }

    fn add(&mut self, transaction: &WalletTransactionView<'_>) {
        let mut change = Vec::new();
        for (vout, output) in (0_u32..).zip(transaction.outputs.iter()) {
            if output.ownership != Ownership::None && destination::order(output.script).is_some() {
                let member = self.member(output.script, output.label);
                self.outputs.insert(OutPoint { txid: transaction.txid, vout }, member);
                change.extend(output.change.then_some(member));
            }
        }
        self.spends.push((transaction.inputs.iter().collect(), change));
    }

    /// The member that stands for a member's group.
    fn leader(&mut self, mut member: usize) -> usize {
        while let Some(at) = self.members.get(member).map(|at| at.group).filter(|group| *group != member) {
            // Each step halves the way for those that come after.
            let above = self.members.get(at).map_or(at, |above| above.group);
            if let Some(below) = self.members.get_mut(member) {
                below.group = above;
            }
            member = at;
        }
        member
    }

    /// Joins the addresses that each transaction spends from with one another and with its change.
    fn join(&mut self) {
        for (inputs, change) in std::mem::take(&mut self.spends) {
            let mut spent =
                inputs.iter().filter_map(|input| self.outputs.get(input).copied()).collect::<Vec<_>>().into_iter();
            let Some(first) = spent.next() else { continue };
            for other in spent.chain(change) {
                let (leader, other) = (self.leader(first), self.leader(other));
                if let Some(other) = self.members.get_mut(other) {
                    other.group = leader;
                }
            }
        }
    }

    /// The groups, and the addresses of each, in bitcoind's order.
    fn sorted(mut self) -> Vec<Vec<(Order, Member)>> {
        let leaders: Vec<usize> = (0..self.members.len()).map(|member| self.leader(member)).collect();
        let mut groups = BTreeMap::<usize, Vec<(Order, Member)>>::new();
        for (leader, member) in leaders.into_iter().zip(self.members) {
            if let Some(order) = destination::order(&member.script) {
                groups.entry(leader).or_default().push((order, member));
            }
        }
        let mut groups: Vec<_> = groups.into_values().collect();
        groups.iter_mut().for_each(|group| group.sort_by(|(one, _), (other, _)| one.cmp(other)));
        groups.sort_by(|one, other| one.iter().map(|(order, _)| order).cmp(other.iter().map(|(order, _)| order)));
        groups
    }
}

/// listaddressgroupings.
pub fn list_address_groupings(context: &CallContext<'_>) -> Result<Vec<u8>, HistoryError> {
    let viewpoint = WalletViewpoint::of(context, &context.wallet()?, &Value::Bool(true))?;
    let balances = balances(context, &viewpoint)?;
    let mut groups = Groups::default();
    walk(Batches::new(context, HistoryRange::All, false, u32::MAX), |tx| {
        groups.add(&tx.transaction);
        Ok(ControlFlow::Continue(()))
    })?;
    groups.join();
    let mut reply = Vec::from(b"[".as_slice());
    let mut text = String::new();
    for group in groups.sorted() {
        json::item(&mut reply);
        reply.push(b'[');
        for (_, member) in group {
            text.clear();
            address::write_address(&member.script, viewpoint.network, &mut text);
            json::item(&mut reply);
            reply.push(b'[');
            json::plain(&mut reply, &text);
            reply.push(b',');
            json::bitcoin(&mut reply, signed(balances.get(&member.script).copied().unwrap_or_default()));
            if let Some(label) = &member.label {
                reply.push(b',');
                json::text(&mut reply, label);
            }
            reply.push(b']');
        }
        reply.push(b']');
    }
    reply.push(b']');
    Ok(reply)
}

/// The balances of the scripts of coins that can be relied on.
fn balances(
    context: &CallContext<'_>,
    viewpoint: &WalletViewpoint,
) -> Result<HashMap<ScriptBuf, Amount>, HistoryError> {
    let (mut balances, mut after) = (HashMap::<ScriptBuf, Amount>::new(), None);
    loop {
        let batch = context.host.wallet.coins(context.scope, after, BATCH)?;
        for coin in batch.coins.into_iter().filter(|coin| counts(coin, viewpoint)) {
            let balance = balances.entry(coin.script).or_default();
            *balance = balance.saturating_add(coin.value);
        }
        after = batch.next;
        if after.is_none() {
            return Ok(balances);
        }
    }
}

/// Whether a coin is part of a balance: in a block, or trusted and of a transaction of the wallet's own.
fn counts(coin: &WalletCoin, viewpoint: &WalletViewpoint) -> bool {
    let depth = match coin.state {
        TxState::Confirmed { height, .. } => i64::from(viewpoint.synced.height) - i64::from(height) + 1,
        _ => 0,
    };
    let mature = !coin.coinbase || depth >= COINBASE_MATURITY_DEPTH;
    coin.trusted && mature && (depth > 0 || coin.from_us)
}

//! listaddressgroupings: groups of addresses with one owner. A transaction reveals the owner when it spends from several
//! addresses, or when it pays change.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use bitcoin::{Amount, OutPoint, Script, ScriptBuf};
use outrigger_kit::services;
use outrigger_kit::spend::coins;
use outrigger_sdk::amount::Saturating;
use outrigger_sdk::methods::Json;
use outrigger_sdk::service::ServiceError;
use outrigger_sdk::service::wallet::{HistoryRange, Ownership, WalletCoin, WalletTransactionView};
use outrigger_sdk::standard::address;
use outrigger_sdk::{Call, RpcError, methods};

use crate::destination::{self, Order};
use crate::list::{Batches, walk};
use crate::viewpoint::{COINBASE_MATURITY_DEPTH, WalletViewpoint, signed};
use crate::{HistoryPlugin, json};

/// An address of the wallet.
struct Member {
    script: ScriptBuf,
    /// `None` without an entry in the address book.
    label: Option<String>,
    /// The index of its parent in the union-find forest; the member's own index for a root.
    parent: usize,
}

/// A union-find forest of the wallet's addresses.
#[derive(Default)]
struct Groups {
    members: Vec<Member>,
    by_script: HashMap<ScriptBuf, usize>,
    /// The member that each of the wallet's outputs pays to.
    outputs: HashMap<OutPoint, usize>,
    /// The inputs of each transaction, and the members of its change.
    spends: Vec<(Vec<OutPoint>, Vec<usize>)>,
}

impl Groups {
    fn member(&mut self, script: &Script, label: Option<&str>) -> usize {
        if let Some(known) = self.by_script.get(script) {
            return *known;
        }
        let member = self.members.len();
        self.members.push(Member { script: script.to_owned(), label: label.map(str::to_owned), parent: member });
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

    /// The root of a member's group. Each step shortens the path for later calls.
    fn root(&mut self, mut member: usize) -> usize {
        while let Some(parent) = self.members.get(member).map(|at| at.parent).filter(|parent| *parent != member) {
            let grandparent = self.members.get(parent).map_or(parent, |at| at.parent);
            if let Some(at) = self.members.get_mut(member) {
                at.parent = grandparent;
            }
            member = parent;
        }
        member
    }

    /// Joins the addresses of each transaction's inputs and change.
    fn join(&mut self) {
        for (inputs, change) in std::mem::take(&mut self.spends) {
            let mut spent =
                inputs.iter().filter_map(|input| self.outputs.get(input).copied()).collect::<Vec<_>>().into_iter();
            let Some(first) = spent.next() else { continue };
            for other in spent.chain(change) {
                let (root, other) = (self.root(first), self.root(other));
                if let Some(other) = self.members.get_mut(other) {
                    other.parent = root;
                }
            }
        }
    }

    /// The groups and their addresses in bitcoind's order.
    fn sorted(mut self) -> Vec<Vec<(Order, Member)>> {
        let roots: Vec<usize> = (0..self.members.len()).map(|member| self.root(member)).collect();
        let mut groups = BTreeMap::<usize, Vec<(Order, Member)>>::new();
        for (root, member) in roots.into_iter().zip(self.members) {
            if let Some(order) = destination::order(&member.script) {
                groups.entry(root).or_default().push((order, member));
            }
        }
        let mut groups: Vec<_> = groups.into_values().collect();
        groups.iter_mut().for_each(|group| group.sort_by(|(one, _), (other, _)| one.cmp(other)));
        groups.sort_by(|one, other| one.iter().map(|(order, _)| order).cmp(other.iter().map(|(order, _)| order)));
        groups
    }
}

#[methods(category = "Wallet")]
impl HistoryPlugin {
    /// Lists the wallet's addresses in groups with one owner. A transaction reveals the owner when it spends from
    /// several addresses, or when it pays change.
    ///
    /// # Result
    /// [[["address", n, "label"], ...], ...]    (json array) Each address with its balance in BTC, and with its label
    /// if it has an entry in the address book.
    #[method(unchecked)]
    fn listaddressgroupings(call: &Call<'_>) -> Result<Json, RpcError> {
        let synced = call.wallet()?.synced;
        let viewpoint = WalletViewpoint { synced, watch_only: true, network: call.network()? };
        let balances = balances(call, &viewpoint)?;
        let mut groups = Groups::default();
        walk(Batches::new(call, HistoryRange::All, false, u32::MAX), |tx| {
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
        Ok(Json(reply))
    }
}

/// The balance of each script.
fn balances(call: &Call<'_>, viewpoint: &WalletViewpoint) -> Result<HashMap<ScriptBuf, Amount>, ServiceError> {
    let mut balances = HashMap::<ScriptBuf, Amount>::new();
    for page in coins::pages(services(call), false, coins::BATCH) {
        for coin in page?.into_iter().filter(|coin| counts(coin, viewpoint)) {
            let balance = balances.entry(coin.script).or_default();
            *balance = balance.saturating_add(coin.value);
        }
    }
    Ok(balances)
}

/// Whether a coin counts in a balance: it is mature and trusted, and confirmed or from the wallet's own transaction.
fn counts(coin: &WalletCoin, viewpoint: &WalletViewpoint) -> bool {
    let depth = coin.state.depth(viewpoint.synced.height);
    let mature = !coin.coinbase || depth >= COINBASE_MATURITY_DEPTH;
    coin.trusted && mature && (depth > 0 || coin.from_us)
}

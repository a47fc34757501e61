//! waitevents: the entries of wallet logs after a number, at once or when some arrive. The `wallet-log` event answers waiting calls.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use outrigger_kit::waits::{Waiter, Waits, deadline};
use outrigger_sdk::service::Scope;
use outrigger_sdk::service::wallet::MAX_LOG_ENTRIES;
use outrigger_sdk::{Call, Host, Reply, RpcError, methods, typed};
use serde_json::{Value, json};

use crate::HistoryPlugin;

/// The maximum number of wallets in a call.
const MAX_WALLETS: usize = 1_000;
/// The maximum number of entries in an answer. The wallets share it equally.
const MAX_EVENTS: u32 = 1_000;
/// An answer with at least this many payments includes no further wallets.
const MAX_PAYMENTS: usize = 4_000;

/// A wallet, and the number after which the client wants entries of its log.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Cursor {
    wallet: String,
    scope: Scope,
    since: u64,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Wanted {
    cursors: Vec<Cursor>,
    /// Whether `next` is an object: a number for each wallet.
    by_wallet: bool,
}

/// Answers the calls that have new entries, an error or a timeout. `wallet` limits the check to one wallet.
pub fn answer_due(waits: &Waits<Wanted>, wallet: Option<&str>) {
    let is_asked = |cursor: &&Cursor| wallet.is_none_or(|wallet| wallet == cursor.wallet);
    let mut scopes = BTreeSet::new();
    waits.each(|wanted| scopes.extend(wanted.cursors.iter().filter(is_asked).map(|cursor| cursor.scope.0)));
    let last = |scope: u64| waits.host.wallet.log(Scope(scope), u64::MAX, 1).map(|log| log.last);
    let seen: HashMap<u64, _> = scopes.into_iter().map(|scope| (scope, last(scope))).collect();
    // If a wallet cannot be read, the call's answer below is the error.
    let is_met = |cursor: &Cursor| seen.get(&cursor.scope.0).is_some_and(|last| *last != Ok(cursor.since));
    // Calls with the same cursors share an answer.
    let mut answers = HashMap::new();
    for Waiter { reply, wanted, .. } in waits.take_due(|wanted| wanted.cursors.iter().any(is_met)) {
        let answer = answers.entry(wanted).or_insert_with_key(|wanted| wanted.answer(&waits.host));
        reply.send_json(answer.clone());
    }
}

impl Wanted {
    /// Reads the arguments. Without `since`, uses the current numbers and returns true: the call does not wait.
    fn of(call: &Call<'_>, since: Option<&Value>, wallets: Option<Vec<String>>) -> Result<(Self, bool), RpcError> {
        let wallet = &call.host.wallet;
        let sinces = match since {
            Some(Value::Object(sinces)) => Some(sinces),
            _ => None,
        };
        let by_wallet = sinces.is_some() || wallets.is_some();
        let names = match (wallets, sinces) {
            (Some(names), _) => names.into_iter().collect::<BTreeSet<String>>(),
            (None, Some(sinces)) => sinces.keys().cloned().collect(),
            (None, None) => [call.wallet()?.name].into(),
        };
        if names.is_empty() || names.len() > MAX_WALLETS {
            return Err(RpcError::invalid_parameter(format!("A call names between 1 and {MAX_WALLETS} wallets")));
        }
        let cursor = |name: String| {
            // Fails for a wallet that the user may not access.
            let scope = Scope(wallet.scope_of(call.scope, name.clone())?);
            let since = match (since, sinces) {
                (None, _) => wallet.log(scope, u64::MAX, 1)?.last,
                (_, Some(sinces)) => sinces.get(&name).map_or(Ok(0), typed::integer)?,
                (Some(since), None) => typed::integer(since)?,
            };
            Ok(Cursor { wallet: name, scope, since })
        };
        let cursors = names.into_iter().map(cursor).collect::<Result<Vec<_>, RpcError>>()?;
        Ok((Self { cursors, by_wallet }, since.is_none()))
    }

    fn has_news(&self, host: &Host) -> Result<bool, RpcError> {
        for cursor in &self.cursors {
            // A number beyond the end is of another log, such as that of a wallet since restored from a backup.
            if host.wallet.log(cursor.scope, cursor.since, 1)?.last != cursor.since {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The answer, as JSON.
    fn answer(&self, host: &Host) -> Result<Arc<Vec<u8>>, RpcError> {
        self.events(host).map(|answer| Arc::new(answer.to_string().into_bytes()))
    }

    fn events(&self, host: &Host) -> Result<Value, RpcError> {
        let limit = (MAX_EVENTS / u32::try_from(self.cursors.len()).unwrap_or(u32::MAX)).clamp(1, MAX_LOG_ENTRIES);
        let (mut events, mut missed, mut payments) = (Vec::new(), Vec::new(), 0);
        let mut next = BTreeMap::new();
        for Cursor { wallet, scope, since } in &self.cursors {
            let mut reached = *since;
            if payments < MAX_PAYMENTS {
                let log = host.wallet.log(*scope, *since, limit)?;
                if *since < log.dropped {
                    missed.push(wallet);
                }
                if log.entries.is_empty() {
                    reached = log.last;
                }
                for entry in &log.entries {
                    payments += entry.payments.len();
                    reached = entry.number;
                    events.push(entry.to_json(wallet));
                }
            }
            next.insert(wallet, reached);
        }
        let next = match next.values().next() {
            Some(only) if !self.by_wallet => json!(only),
            _ => json!(next),
        };
        Ok(json!({"events": events, "next": next, "missed": missed}))
    }
}

#[methods(category = "Wallet")]
impl HistoryPlugin {
    fn wait(&self, waiter: Waiter<Wanted>) {
        let (waits, token, wanted) = (&self.waits, waiter.reply.token(), waiter.wanted.clone());
        let closed = waits.keep(waiter);
        // An entry may have arrived before the call was stored.
        if (closed || !matches!(wanted.has_news(&waits.host), Ok(false)))
            && let Some(waiter) = waits.take(token)
        {
            waiter.reply.send_json(wanted.answer(&waits.host));
        }
    }

    /// Waits for entries in the logs of wallets: what happened to their transactions. An entry's kind is seen
    /// (unconfirmed), confirmed, deep (6 confirmations), reorganised (its block left the chain), conflicted (by a
    /// block), replaced (in the mempool), abandoned or removed. Pass next as the next call's since.
    ///
    /// * `since` - The number after which entries are wanted, 0 for all, or an object with a number for each wallet.
    ///   Without it the answer comes at once, with the numbers of now and no entries.
    /// * `timeout` - The timeout in milliseconds; 0 for none.
    /// * `wallets` (default: those of since, or the wallet of the call) - The names of the wallets.
    ///
    /// # Result
    /// {"events": [{"number": n, "wallet": "...", "kind": "...", "txid": "...", "blockhash": "...", "blockheight": n,
    /// "time": n, "fee": n, "payments": [{"category": "...", "amount": n, "vout": n, "address": "...", "label": "..."},
    /// ...]}, ...], "next": n or {"wallet": n, ...}, "missed": ["wallet", ...]}    (json object) The entries of each
    /// wallet by number; those of missed wallets were partly dropped before they were asked for.
    ///
    /// # Example
    /// 0 30000
    #[method(long_running, needs_tip = false)]
    fn waitevents(
        &self,
        call: &Call<'_>,
        since: Option<&Value>,
        #[arg(default = 0)] timeout: i32,
        wallets: Option<Vec<String>>,
        reply: Reply,
    ) {
        let begun = deadline(timeout).and_then(|deadline| {
            let (wanted, at_once) = Wanted::of(call, since, wallets)?;
            let answer = (at_once || wanted.has_news(call.host)?).then(|| wanted.answer(call.host)).transpose()?;
            Ok((wanted, deadline, answer))
        });
        match begun {
            Ok((wanted, deadline, None)) => self.wait(Waiter { reply, wanted, deadline }),
            Ok((.., Some(answer))) => {
                reply.send_json(Ok(answer));
            }
            Err(error) => {
                reply.fail(error);
            }
        }
    }
}

//! A wallet policy. Each option lists the acts for one behaviour, such as `Sign` or `GiveKeys`.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use outrigger_sdk::bitcoin::{OutPoint, ScriptBuf};
use outrigger_sdk::options::PluginOptions;
use outrigger_sdk::service::events::Event;
use outrigger_sdk::service::metrics::Measure;
use outrigger_sdk::service::policy::{Judgement, Policy, PolicyQuery};
use outrigger_sdk::service::rpc::As;
use outrigger_sdk::service::wallet::BalancesQuery;
use outrigger_sdk::service::{Result as ServiceResult, Scope};
use outrigger_sdk::wire::Blob;
use outrigger_sdk::{Call, Host, Plugin, Reply, RpcError, methods, plugin};
use serde_json::{Value, json};

#[derive(PluginOptions)]
pub struct Options {
    /// Refuses these.
    #[option(default = [])]
    refuse: Vec<String>,
    /// Does not answer these.
    #[option(default = [])]
    hang: Vec<String>,
    /// Panics in these.
    #[option(default = [])]
    panic: Vec<String>,
    /// Asks the host for everything while it judges these.
    #[option(default = [])]
    reach: Vec<String>,
    /// Allows all acts and keeps nothing, for benchmarks.
    #[option(default = false)]
    silent: bool,
}

pub struct Judge {
    host: Host,
    options: Options,
    seen: Mutex<Vec<Value>>,
    closed: Mutex<bool>,
    closing: Condvar,
    /// The events of its timers.
    timers: Mutex<Vec<String>>,
    working: Mutex<Vec<Reply>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[plugin(
    id = "judge",
    summary = "Judges for wallets",
    timers(soon = 1),
    optional = ["metrics/1", "wallet-read/1", "wallet-book/1", "wallet-pay/1", "wallet-admin/1", "wallet-keys/1", "signer/1", "rpc/1"],
    provides = ["policy/1"],
    restartable
)]
impl Plugin for Judge {
    type Options = Options;

    fn new(host: Host, options: Options) -> Result<Self, String> {
        let (seen, closed, closing, timers, working) = Default::default();
        Ok(Self { host, options, seen, closed, closing, timers, working })
    }

    fn event(&self, event: Event) {
        if let Event::Timer { name } = event {
            lock(&self.timers).push(name);
        }
    }

    fn quiesce(&self) {
        lock(&self.working).clear();
        *lock(&self.closed) = true;
        self.closing.notify_all();
    }
}

impl Judge {
    /// The host's answer to each request, with the scope of the call and with others. The first three only read.
    fn reach(&self, scope: Scope, wallet: &str) -> Vec<String> {
        let host = &self.host;
        let told = |outcome: ServiceResult<()>| outcome.map_or_else(|error| error.to_string(), |()| "allowed".into());
        let query = BalancesQuery { min_depth: 0, avoid_reuse: false };
        let named = host.wallet.scope_of(scope, wallet.to_owned()).map_or(scope, Scope);
        let mut reached = vec![
            host.wallet.info(scope).map(drop),
            host.wallet.balances(scope, query).map(drop),
            host.wallet.info(named).map(drop),
            host.rpc.caller(scope).map(drop),
        ];
        for scope in [scope, named, Scope::NONE] {
            reached.extend([
                self.sign(scope),
                host.pay.send(scope, Blob::default(), Vec::new()).map(drop),
                host.keys.private_descriptors(scope).map(drop),
                host.admin.lock(scope),
                host.book.lock_coins(scope, vec![OutPoint::null()], false),
                host.rpc.call(scope, "getblockcount".into(), Blob(b"[]".to_vec()), As::Plugin).map(drop),
            ]);
        }
        reached.into_iter().map(told).collect()
    }

    fn sign(&self, scope: Scope) -> ServiceResult<()> {
        self.host.signer.sign_message(scope, ScriptBuf::new(), Blob(vec![2; 33]), "text".into()).map(drop)
    }
}

impl Policy for Judge {
    fn judge(&self, scope: Scope, query: &PolicyQuery) -> Result<Judgement, RpcError> {
        if self.options.silent {
            return Ok(Judgement::Allow);
        }
        let act = format!("{:?}", query.act);
        let act = act.split([' ', '{']).next().unwrap_or_default().to_owned();
        let is_in = |acts: &[String]| acts.contains(&act);
        let mut seen = json!({"wallet": query.wallet, "user": query.user, "method": query.method, "act": act});
        if is_in(&self.options.reach) {
            seen["reached"] = json!(self.reach(scope, &query.wallet));
        }
        self.host.measure("verdicts", "Verdicts", &[("act", &act)], Measure::Count { by: 1 });
        let bounds = vec![2, 10];
        self.host.measure("act_letters", "Letters of acts", &[], Measure::Observed { value: act.len() as u64, bounds });
        self.host.measure(
            "last_act_letters",
            "Letters of the last act",
            &[],
            Measure::Level { value: act.len() as i64 },
        );
        lock(&self.seen).push(seen);
        if is_in(&self.options.panic) {
            #[allow(clippy::panic, reason = "asked for")]
            {
                panic!("asked for");
            }
        }
        if is_in(&self.options.hang) {
            let mut closed = lock(&self.closed);
            while !*closed {
                closed = self.closing.wait(closed).unwrap_or_else(PoisonError::into_inner);
            }
        }
        if is_in(&self.options.refuse) {
            return Ok(Judgement::Refuse { reason: "It is Sunday".into() });
        }
        Ok(Judgement::Allow)
    }
}

#[methods(category = "Test")]
impl Judge {
    /// Lists what the policy was asked since the last call.
    #[method]
    fn judged(&self) -> Result<Vec<Value>, RpcError> {
        Ok(std::mem::take(&mut *lock(&self.seen)))
    }

    /// Lists the events of timers.
    #[method]
    fn timers(&self) -> Result<Vec<String>, RpcError> {
        Ok(lock(&self.timers).clone())
    }

    /// Says how far it is, and does not end by itself.
    #[method(long_running)]
    fn work(&self, reply: Reply) {
        reply.progress(3, 10);
        lock(&self.working).push(reply);
    }

    /// Ends the calls of `work`.
    #[method]
    fn endwork(&self) -> Result<usize, RpcError> {
        let working = std::mem::take(&mut *lock(&self.working));
        Ok(working.into_iter().map(|reply| usize::from(reply.send(Ok(())))).sum())
    }

    /// Calls a method as the plugin.
    ///
    /// * `method` - The method.
    /// * `params` - Its parameters.
    #[method]
    fn asjudge(call: &Call<'_>, method: String, params: &Value) -> Result<Value, RpcError> {
        call.host.call(call.scope, &method, params, As::Plugin)
    }

    /// Signs a message by the wallet of the call.
    #[method]
    fn signasjudge(&self, call: &Call<'_>) -> Result<Option<()>, RpcError> {
        Ok(Some(self.sign(call.scope)?))
    }
}

outrigger_sdk::export_plugin!(Judge);

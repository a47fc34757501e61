//! The host's own methods.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use outrigger_sdk::manifest::{MethodSpec, ParamType};
use outrigger_standard::release::rules;
use outrigger_values::RpcError;
use outrigger_values::RpcErrorCode;
use outrigger_values::text::printable;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{arguments, openrpc};
use crate::active::{Active, Running};
use crate::metrics::Standing;
use crate::run::{Reloaded, Reloading};
use outrigger_passthrough::{DUMP_CONVERSIONS, NodeHelp, Passthrough};
use outrigger_plugins::instance::Instance;
use outrigger_plugins::metrics::{Labels, Metric, PluginMetrics, Series};
use outrigger_plugins::registry::{Chain, ChangeError, Link, Plugin, Registry, RouteTable};
use outrigger_rpc::{Call, Failure, Origin, Params, SUBSCRIBE, UNSUBSCRIBE};

const DESCRIPTION: &str = include_str!("builtins.json");

/// The specifications of the host's own methods. A test reads the description, so it is valid.
static SPECS: LazyLock<Vec<Arc<MethodSpec>>> = LazyLock::new(|| {
    let specs: Vec<MethodSpec> = serde_json::from_str(DESCRIPTION).unwrap_or_default();
    specs.into_iter().map(Arc::new).collect()
});

/// The names that no plugin may claim: the methods, and `generate`.
pub static RESERVED: LazyLock<Vec<&'static str>> = LazyLock::new(|| names().chain([GENERATE]).collect());

pub fn names() -> impl Iterator<Item = &'static str> {
    SPECS.iter().map(|spec| spec.name.as_str())
}

/// A method that bitcoind removed in favour of its command line, and bitcoind's error.
const GENERATE: &str = "generate";
const GENERATE_HELP: &str =
    "generate\n\nhas been replaced by the -generate cli option. Refer to -help for more information.\n";

/// The methods that only WebSocket connections have, and their help.
const OF_SOCKETS: [&str; 2] = [SUBSCRIBE, UNSUBSCRIBE];
const OF_SOCKETS_HELP: &str = "subscribe_events ( since wallets )\nunsubscribe_events subscription\n\n\
    Methods of WebSocket connections: each event comes as a notification. The arguments are those of waitevents.";

const STARTING: &str = "The host is starting";

/// How long stopplugin and reloadplugin wait for the old instance to end.
const END_PATIENCE: Duration = Duration::from_secs(1);

pub struct Builtins {
    pub registry: Arc<Registry>,
    pub started: Instant,
    /// Makes the host stop.
    pub stop: watch::Sender<bool>,
    /// The calls in progress, including those of plugins.
    pub active: Arc<Active>,
    /// The node's methods, if calls are forwarded.
    pub passthrough: Option<Arc<Passthrough>>,
    pub reloading: Reloading,
    pub standing: Arc<OnceLock<Standing>>,
}

impl Builtins {
    /// The specification of one of the host's own methods.
    pub(super) fn spec(&self, method: &str) -> Option<Arc<MethodSpec>> {
        SPECS.iter().find(|spec| spec.name == method).cloned()
    }

    /// Answers a call of one of the host's own methods; `None` for other methods.
    pub async fn call(&self, call: &Call) -> Option<Result<Bytes, RpcError>> {
        if call.method == GENERATE {
            return Some(Err(generate(&call.params)));
        }
        if OF_SOCKETS.contains(&&*call.method) {
            let message = format!("{} is a method of WebSocket connections", call.method);
            return Some(Err(RpcError::new(RpcErrorCode::METHOD_NOT_FOUND, message)));
        }
        let spec = SPECS.iter().find(|spec| spec.name == call.method)?;
        let params = match arguments::positional(spec, &self.registry.rules(), &call.params) {
            Ok(params) => serde_json::from_slice::<Vec<Value>>(params.as_bytes()).unwrap_or_default(),
            Err(error) => return Some(Err(error)),
        };
        let answer = match spec.name.as_str() {
            "startplugin" | "stopplugin" | "reloadplugin" => self.change(call, &params).await,
            "reload" => self.reload(call).await,
            "help" => self.help_of(&params, &call.origin).await,
            "rpc.discover" | "getopenrpcinfo" => Ok(self.discover(call).await),
            "stop" => {
                // This fails only if the host is already stopping.
                let _ = self.stop.send(true);
                Ok(json!("Outrigger stopping"))
            }
            "uptime" => Ok(json!(self.started.elapsed().as_secs())),
            "gethostinfo" => self.standing.get().map(Standing::info).ok_or_else(|| RpcError::misc(STARTING)),
            "getrpcinfo" => Ok(self.rpc_info()),
            "echo" | "echojson" => Ok(json!(params)),
            "listplugins" => Ok(self.list_plugins()),
            _ => Err(RpcError::new(RpcErrorCode::METHOD_NOT_FOUND, "Method not found")),
        };
        Some(answer.map(|value| Bytes::from(value.to_string())))
    }

    /// Describes the methods that the user may call, including those of the node.
    async fn discover(&self, call: &Call) -> Value {
        let mut document = {
            let (serving, rules) = (self.registry.serving(), self.registry.rules());
            let plugins = serving.routes.values().map(|chain| &chain.method);
            let methods: Vec<_> = SPECS.iter().chain(plugins).map(|spec| spec.under(&rules)).collect();
            openrpc::document(methods.iter().map(|spec| &**spec).filter(|spec| call.origin.may_call(&spec.name)))
        };
        if let Some(node) = &self.passthrough
            && let Ok(help) = node.read_help().await
        {
            let theirs = match node.document().await {
                Some(document) => document,
                None => openrpc::of_help(&help, &node.conversions().await.unwrap_or_default()),
            };
            openrpc::add(&mut document, theirs, |name| !self.answers(name) && node.shows(&call.origin, name, &help));
        }
        document
    }

    /// Starts, stops or reloads a plugin, on a thread that may block.
    async fn change(&self, call: &Call, params: &[Value]) -> Result<Value, RpcError> {
        let name = params.first().and_then(Value::as_str).unwrap_or_default().to_owned();
        let instance = self.registry.instance(&name);
        let id = instance.as_ref().map_or(&name, |instance| &instance.manifest().id);
        // The change would wait for this call to end.
        if call.through.iter().any(|passed| **passed == **id) {
            let message = format!("The call goes through the plugin '{id}', which it would end");
            return Err(RpcError::invalid_parameter(message));
        }
        let (registry, method) = (self.registry.clone(), call.method.clone());
        let asked_by = format!("the user {}", printable(&call.origin.user));
        let change = move || match method.as_str() {
            "startplugin" => registry.start_plugin(&name, &asked_by).map(|started| changed(&started, None)),
            "reloadplugin" => {
                let old = registry.instance(&name);
                registry.reload_plugin(&name, &asked_by).map(|started| changed(&started, old.as_deref()))
            }
            _ => registry.stop_plugin(&name, &asked_by).map(|stopped| changed(&stopped, Some(&stopped))),
        };
        let done = tokio::task::spawn_blocking(change).await;
        done.map_err(|_| RpcError::internal("The change ended without a result"))?.map_err(|error| match error {
            ChangeError::Unknown(_) => RpcError::new(RpcErrorCode::INVALID_PARAMETER, error.to_string()),
            ChangeError::Stopping => RpcError::new(RpcErrorCode::CLIENT_NOT_CONNECTED, error.to_string()),
            _ => RpcError::new(RpcErrorCode::MISC, error.to_string()),
        })
    }

    /// Reads the configuration again, on a thread that may block.
    async fn reload(&self, call: &Call) -> Result<Value, RpcError> {
        if !call.through.is_empty() {
            // The reload would wait for this call to end.
            return Err(RpcError::misc("The call goes through a plugin, which a reload may end"));
        }
        let (reloading, asked_by) = (self.reloading.clone(), format!("the user {}", printable(&call.origin.user)));
        let reload = move || match reloading.get() {
            Some(reloader) => reloader.reload(&asked_by).map_err(RpcError::misc),
            None => Err(RpcError::misc(STARTING)),
        };
        let done = tokio::task::spawn_blocking(reload).await;
        let Reloaded { changes, restart } =
            done.map_err(|_| RpcError::internal("The reload ended without a result"))??;
        Ok(json!({"changes": changes, "restart": restart}))
    }

    fn rpc_info(&self) -> Value {
        let told = |call: Running| {
            let micros = u64::try_from(call.began.elapsed().as_micros()).unwrap_or(u64::MAX);
            let mut told = json!({"method": call.method.name, "duration": micros});
            if let Some((done, total)) = call.progress.and_then(|progress| progress.get()) {
                told["progress"] = json!({"done": done, "total": total});
            }
            told
        };
        let calls: Vec<Value> = self.active.list().into_iter().map(told).collect();
        // The log goes to standard error, whose path is unknown.
        json!({"active_commands": calls, "logpath": ""})
    }

    async fn help_of(&self, params: &[Value], origin: &Origin) -> Result<Value, RpcError> {
        // bitcoind refuses a null here, though the argument is optional.
        if params == [Value::Null] {
            return Err(RpcError::type_error("JSON value of type null is not of expected type string"));
        }
        let command = params.first().and_then(Value::as_str).unwrap_or_default();
        let Some(node) = &self.passthrough else { return Ok(self.help(command, Vec::new())) };
        // While the node is unreachable, only the methods of the host and its plugins are listed.
        let help = node.read_help().await.ok();
        let is_ours = self.answers(command) || command == GENERATE || OF_SOCKETS.contains(&command);
        if !command.is_empty() && command != DUMP_CONVERSIONS && !is_ours {
            let shown = help.as_ref().is_none_or(|help| node.shows(origin, command, help));
            let text = if shown { node.help_text(command).await } else { Ok(unknown_command(command)) };
            return text.map(Value::from).map_err(|failure| match failure {
                Failure::Rpc(error) => error,
                _ => RpcError::internal("The node does not answer"),
            });
        }
        let shows = |help: &NodeHelp, name: &str| !self.answers(name) && node.shows(origin, name, help);
        let passed = help.iter().flat_map(|help| help.iter().filter(|(name, _)| shows(help, name)));
        let passed = passed.map(|(_, method)| (method.category.clone(), method.usage.clone())).collect();
        let mut answer = self.help(command, passed);
        if let (Value::Array(rows), Some(help)) = (&mut answer, &help) {
            let theirs = node.conversions().await.unwrap_or_default();
            rows.extend(theirs.into_iter().filter(|row| shows(help, row[0].as_str().unwrap_or_default())));
            rows.sort_by(|a, b| a[0].as_str().cmp(&b[0].as_str()));
        }
        Ok(answer)
    }

    /// Whether the host or a plugin answers a method.
    fn answers(&self, method: &str) -> bool {
        self.spec(method).is_some() || self.registry.spec(method).is_some()
    }

    /// The answer of `help`, in which `passed` are categories and usages of the node's methods.
    fn help(&self, command: &str, passed: Vec<(String, String)>) -> Value {
        let (serving, rules) = (self.registry.serving(), self.registry.rules());
        let all = SPECS.iter().chain(serving.routes.values().map(|route| &route.method));
        let all: Vec<Cow<'_, MethodSpec>> = all.map(|spec| spec.under(&rules)).collect();
        let mut all = all.iter().map(|spec| &**spec);
        if command == DUMP_CONVERSIONS {
            return conversions(all);
        }
        if !command.is_empty() {
            return match all.find(|spec| spec.name == command) {
                Some(spec) => json!(spec.full_help()),
                None if command == GENERATE => json!(GENERATE_HELP),
                None if OF_SOCKETS.contains(&command) => json!(OF_SOCKETS_HELP),
                None => json!(unknown_command(command)),
            };
        }
        let ours = all.map(|spec| (spec.category.clone(), spec.usage()));
        let mut lines: Vec<(String, String)> = ours.chain(passed).collect();
        lines.sort();
        let mut text = String::new();
        let mut category = "";
        for (of, usage) in &lines {
            if of != category {
                if !text.is_empty() {
                    text.push('\n');
                }
                text += &format!("== {of} ==\n");
                category = of;
            }
            text += usage;
            text.push('\n');
        }
        json!(text.trim_end())
    }

    fn list_plugins(&self) -> Value {
        let serving = self.registry.serving();
        serving.plugins.iter().map(|plugin| described(plugin, &serving.routes)).collect()
    }
}

/// The answer of `help` for an unknown method.
fn unknown_command(command: &str) -> String {
    format!("help: unknown command: {command}")
}

/// The error of `generate`: that it was removed, or the usage if the call has arguments.
fn generate(params: &Params) -> RpcError {
    let spec = serde_json::from_value(json!({"name": GENERATE, "category": "hidden", "help": ""}));
    let refused = spec.ok().and_then(|spec| arguments::positional(&spec, &rules(None), params).err());
    match refused {
        None => RpcError::new(RpcErrorCode::METHOD_NOT_FOUND, GENERATE_HELP),
        Some(error) if error.code == RpcErrorCode::MISC => RpcError::misc(GENERATE_HELP),
        Some(error) => error,
    }
}

/// The rows of `help dump_all_command_conversions`: method, position, name, and whether the argument is text, for each name of each
/// argument.
fn conversions<'a>(methods: impl Iterator<Item = &'a MethodSpec>) -> Value {
    let mut methods: Vec<_> = methods.collect();
    methods.sort_by(|a, b| a.name.cmp(&b.name));
    let of_method = |method: &'a MethodSpec| {
        method.params.iter().enumerate().flat_map(move |(position, param)| {
            std::iter::once(param).chain(&param.members).flat_map(move |param| {
                let is_text = matches!(param.kind, ParamType::String | ParamType::Hex);
                arguments::names(param).map(move |name| json!([method.name, position, name, is_text]))
            })
        })
    };
    methods.into_iter().flat_map(of_method).collect()
}

/// The result of a plugin's change, with the number of calls still open in the ending instance.
fn changed(instance: &Instance, ending: Option<&Instance>) -> Value {
    let draining = match ending {
        Some(ending) if !ending.wait_ended(Instant::now() + END_PATIENCE) => ending.waiting(),
        _ => 0,
    };
    let manifest = instance.manifest();
    json!({"id": manifest.id, "version": manifest.version, "hash": instance.code.hash, "draining": draining})
}

fn described(plugin: &Plugin, routes: &RouteTable) -> Value {
    let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    let (code, instance, health) = (plugin.code.as_ref(), plugin.instance.as_ref(), &plugin.health);
    let answered = |(name, chain): (&String, &Arc<Chain>)| {
        let is_own = |link: &Link| instance.is_some_and(|own| link.is_of(own)) && link.is_listed();
        chain.links.iter().any(is_own).then(|| name.clone())
    };
    let state = match (instance, code) {
        (Some(instance), _) => instance.state().name(),
        (None, Some(_)) if plugin.in_quarantine => "quarantined",
        (None, Some(_)) => "stopped",
        (None, None) => "disabled",
    };
    let runners = plugin.runners.read();
    let grants = instance.map_or(plugin.config.grants(), |instance| &instance.grants);
    json!({
        "id": plugin.id(),
        "version": code.map(|code| &code.manifest.version),
        "summary": code.map(|code| &code.manifest.summary),
        "file": code.and_then(|code| code.file.as_ref()).map(|file| file.display().to_string()),
        "hash": code.and_then(|code| code.hash.as_ref()),
        "form": code.map(|code| code.form()),
        "abi": code.map(|code| format!("{}.{}", outrigger_abi::ABI_MAJOR, code.abi_minor)),
        "state": state,
        "methods": routes.iter().filter_map(answered).collect::<Vec<_>>(),
        "grants": grants.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "trusted": plugin.config.trusted,
        "isolated": code.is_some_and(|code| code.is_isolated()),
        "pid": runners.pids.last(),
        "sandbox": runners.enforced,
        "denied": runners.denials,
        "crashes": runners.crashes,
        "last_crash": runners.last_crash.map(|crash| json!({"ending": crash.how.to_string(), "method": crash.method})),
        "calls": count(&health.calls),
        "answers": count(&health.answers),
        "errors": count(&health.errors),
        "time_us": health.microseconds(),
        "waiting": instance.map_or(0, |instance| instance.waiting()),
        "stuck": instance.map_or(0, |instance| instance.stuck()),
        "long_calls": instance.map_or(0, |instance| instance.long_calls()),
        "timeouts": count(&health.timeouts),
        "gone": count(&health.gone),
        "stale_answers": count(&health.stale),
        "faults": count(&health.faults),
        "last_fault": health.last_fault(),
        "metrics": measured(&health.metrics),
        "restarts": plugin.restart_count,
        "events_dropped": instance.map_or(0, |instance| instance.events.dropped_count()),
    })
}

/// The metrics that the plugin recorded itself (`metrics/1`).
fn measured(metrics: &PluginMetrics) -> Value {
    let value = |series: &Series| match series {
        Series::Counter(count) => json!(count),
        Series::Gauge(level) => json!(level),
        Series::Histogram { sum, count, .. } => json!({"count": count, "sum": sum}),
    };
    let series = |(labels, series): (&Labels, &Series)| {
        let labels: BTreeMap<_, _> = labels.iter().cloned().collect();
        json!({"labels": labels, "value": value(series)})
    };
    let metric = |(name, metric): (String, Metric)| (name, metric.series.iter().map(series).collect::<Value>());
    metrics.read().0.into_iter().map(metric).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_of_the_host_is_described() {
        assert!(!serde_json::from_str::<Vec<MethodSpec>>(DESCRIPTION).unwrap().is_empty());
    }
}
